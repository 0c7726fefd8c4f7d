// The alert drawer, over any page: the expression over the past day, its limit, how often it would
// have fired, and the rule with its test as text.
import { useEffect, useRef, useState } from "preact/hooks";
import { Chart } from "../chart/chart";
import { largestValue } from "../chart/series";
import type { PlotFrame } from "../chart/plot";
import { useMarks } from "../marks/usemarks";
import { alertAs } from "../query/edit";
import { type Against, againstVersion, withoutVersions } from "../query/versions";
import { QueryBar } from "../query/querybar";
import { CopyButton } from "../shared/copybutton";
import { Segmented } from "../shared/fields";
import { IconX } from "../shared/icons";
import { attached, must } from "../shared/must";
import { QueryError } from "../shared/notices";
import { parseDuration } from "../shared/timerange";
import { limitText, parseLimit } from "./limit";
import { LimitLine } from "./limitline";
import { INTERVAL_S, alertRuleText, validName } from "./rule";
import { SaveRule } from "./saverule";
import { type DraftState, useAlertDraft } from "./usedraft";
import "./alert.css";

const CHART_PX = 190;
/** Space above the limit. */
const ABOVE = 1.25;

const FOCUSED =
	"a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea, [tabindex='0']";

/** Tab at the last place of the drawer goes to the first one, with Shift the other way around. */
function keepFocus(e: KeyboardEvent, drawer: HTMLElement): void {
	const places = [...drawer.querySelectorAll<HTMLElement>(FOCUSED)].filter((p) => p.offsetParent !== null);
	const at = document.activeElement;
	const inside = at instanceof HTMLElement && places.includes(at);
	const [first, last] = [places[0], places[places.length - 1]];
	if (e.shiftKey ? inside && at !== first : at !== last) return;
	e.preventDefault();
	(e.shiftKey ? last : first).focus();
}

/** The focus goes into the drawer, stays in it, and then goes back to where it was. */
function useDrawer(close: () => void) {
	const ref = useRef<HTMLDivElement>(null);
	const last = useRef(close);
	last.current = close;
	useEffect(() => {
		const before = document.activeElement;
		const drawer = attached(ref);
		must(drawer.querySelector("h2"), "the title").focus({ preventScroll: true });
		const onKey = (e: KeyboardEvent) => {
			if (e.defaultPrevented || document.querySelector("dialog[open]")) return;
			const at = document.activeElement;
			if (at !== document.body && !drawer.contains(at)) return;
			if (e.key === "Escape") last.current();
			else if (e.key === "Tab" && at !== document.body) keepFocus(e, drawer);
		};
		document.addEventListener("keydown", onKey);
		return () => {
			document.removeEventListener("keydown", onKey);
			if (!drawer.contains(document.activeElement) && document.activeElement !== document.body) return;
			const there = before instanceof HTMLElement && before.isConnected && before !== document.body;
			(there ? before : document.querySelector<HTMLElement>("main h1, main"))?.focus({ preventScroll: true });
		};
	}, []);
	return ref;
}

function DayPlot({ of }: { of: DraftState }) {
	const { past, unit, window: win, over, fired, move } = of;
	const [frame, setFrame] = useState<PlotFrame | null>(null);
	const marks = useMarks(of.draft.expr, win, 0);
	const [held, setHeld] = useState<number | null>(null);
	const top = Math.max(largestValue(past.lines, unit.chart.factor), over * unit.chart.factor * ABOVE);
	const same = (a: PlotFrame, b: PlotFrame) => (Object.keys(a) as (keyof PlotFrame)[]).every((k) => a[k] === b[k]);
	return (
		<div class={past.loaded.loading ? "busy" : ""}>
			<Chart
				matrix={past.lines}
				unit={unit.chart}
				window={win}
				step={INTERVAL_S}
				height={CHART_PX}
				yMax={held ?? top}
				label="The past day"
				debugName="chart-alert"
				marks={marks}
				empty={past.known ? "No data in the past day" : undefined}
				onSelect={() => undefined}
				onFrame={(f) => setFrame((was) => (was && same(was, f) ? was : f))}
			>
				{frame && (
					<LimitLine
						frame={frame}
						window={win}
						unit={unit.chart}
						of={unit.limit}
						over={over}
						firings={fired.firings}
						onHold={(h) => setHeld(h ? top : null)}
						onMove={move}
					/>
				)}
			</Chart>
		</div>
	);
}

/** A field that keeps what is typed, and reports only what can be read. */
function Field(props: {
	name: string;
	value: string;
	hint?: string;
	wrong?(text: string): string;
	onText(text: string): void;
}) {
	const { name, value, hint, wrong, onText } = props;
	const [text, setText] = useState<string | null>(null);
	const said = text === null ? "" : (wrong?.(text) ?? "");
	return (
		<label class="alert-field">
			<span class="faint">{name}</span>
			<input
				type="text"
				value={text ?? value}
				title={hint}
				spellcheck={false}
				aria-invalid={said ? "true" : undefined}
				onInput={(e) => {
					const v = (e.target as HTMLInputElement).value;
					setText(v);
					if (!wrong?.(v)) onText(v);
				}}
				onBlur={() => !said && setText(null)}
			/>
			{said && <span class="worse" role="status">{said}</span>}
		</label>
	);
}

function Fields({ of }: { of: DraftState }) {
	const { draft, unit, over, move, set, severity, setSeverity } = of;
	return (
		<div class="alert-fields">
			<Field
				name={`Above, in ${unit.chart.factor === 1 ? unit.chart.label : of.past.unit}`}
				value={limitText(over)}
				hint="A number: 1.5, 20%, 512MiB"
				wrong={(v) => (parseLimit(v) === null ? "not a number" : "")}
				onText={(v) => move(must(parseLimit(v), "the limit"), true)}
			/>
			<Field
				name="For"
				value={draft.wait}
				hint="Time above the limit until the alert fires: 5m, 1h, 0s"
				wrong={(v) => (parseDuration(v) === null ? "not a duration" : "")}
				onText={(v) => set({ afor: v })}
			/>
			<Field name="Severity" value={severity} onText={setSeverity} />
			<Field
				name="Name"
				value={draft.name}
				wrong={(v) => (validName(v) ? "" : "letters, digits and _")}
				onText={(v) => set({ aname: v })}
			/>
			<Field
				name="More labels"
				value={of.labelsText}
				hint="team=shop, tier=1"
				wrong={() => ""}
				onText={(v) => set({ alabels: v })}
			/>
			{of.labelsWrong && <span class="worse" role="status">Write labels as name=value, name=value.</span>}
		</div>
	);
}

function Text({ title, file, text }: { title: string; file: string; text: string }) {
	return (
		<section class="alert-text" aria-label={title}>
			<div class="alert-text-head">
				<h3>{title}</h3>
				<code class="faint ellipsis">{file}</code>
				<span class="spacer" />
				<CopyButton text={text} label={`Copy ${title.toLowerCase()}`} />
			</div>
			<pre tabIndex={0}>{text}</pre>
		</section>
	);
}

function Texts({ of }: { of: DraftState }) {
	const { draft, test } = of;
	const file = draft.name;
	// In a folder of its own: a pattern such as rules/*.yml would load a test as rules.
	const testFile = `tests/${file}_test.yml`;
	const rule = alertRuleText(draft);
	return (
		<div class="alert-texts" aria-busy={of.busy}>
			<SaveRule name={draft.name} text={rule} busy={of.busy} />
			<Text title="Rule" file={`${file}.yml`} text={rule} />
			{"text" in test ? (
				<Text title="Rule test" file={testFile} text={test.text} />
			) : (
				<p class="notice">{test.none}</p>
			)}
			<p class="faint">
				<code>epitool check rules {file}.yml</code>
				{"text" in test && (
					<>
						{" and "}
						<code>epitool test rules {testFile}</code>
					</>
				)}{" "}
				check both before you add them to <code>rule_files</code>.
			</p>
		</div>
	);
}

function As({ of }: { of: DraftState }) {
	const { draft, type, setExpr } = of;
	const [cost, share] = [alertAs(draft.expr, "cost", type), alertAs(draft.expr, "share", type)];
	if (!cost || !share) return null;
	return (
		<Segmented
			label="Measured value"
			value={/^cum_share\b/.test(draft.expr) ? "share" : "cost"}
			options={[
				["cost", "Cost", "Cost of the function and its callees"],
				["share", "Share", "Share of the total cost"],
			]}
			onChange={(v) => setExpr(v === "cost" ? cost : share)}
		/>
	);
}

/** The limit alone, or one version against the other where the selection has two. */
function Versions({ of }: { of: DraftState }) {
	const { draft, pair, versions, setExpr } = of;
	const [next, base] = pair ? [pair.next, pair.base] : (versions ?? []);
	if (next === undefined || base === undefined) return null;
	const against = (how: Against) => againstVersion(draft.expr, { how, next, base });
	if (!against("points")) return null;
	return (
		<div class="alert-versions">
			<Segmented<Against | "limit">
				label="Compared with"
				value={pair ? pair.how : "limit"}
				options={[
					["limit", "Limit", "The value above a limit"],
					["points", `${next} − ${base}`, `Share in ${next} above the share in ${base}, by points of the total`],
					["times", `${next} / ${base}`, `Share in ${next} as a multiple of the share in ${base}`],
				]}
				onChange={(v) => setExpr((v === "limit" ? withoutVersions(draft.expr) : against(v)) ?? draft.expr)}
			/>
		</div>
	);
}

export function AlertDrawer() {
	const of = useAlertDraft();
	const ref = useDrawer(of.close);
	const { past, draft } = of;
	return (
		<div class="alert-drawer" role="dialog" aria-labelledby="alert-title" ref={ref}>
			<div class="panel-head">
				<h2 id="alert-title" tabIndex={-1}>
					New alert
				</h2>
				<As of={of} />
				<span class="spacer" />
				<button type="button" class="quiet" aria-label="Close" title="Close (Escape)" onClick={of.close}>
					<IconX />
				</button>
			</div>
			<div class="alert-body">
				<QueryBar
					query={draft.expr}
					label="Expression of the alert"
					loading={past.loaded.loading}
					error={past.loaded.loading ? null : past.loaded.error}
					onRun={(text) => text && of.setExpr(text)}
				/>
				<Versions of={of} />
				{past.loaded.error && <QueryError error={past.loaded.error} sent={draft.expr} />}
				<DayPlot of={of} />
				<p class="alert-says" role="status">
					{past.known ? of.sentence : past.loaded.loading ? "Loading the past day…" : ""}
				</p>
				<Fields of={of} />
				<Texts of={of} />
			</div>
		</div>
	);
}
