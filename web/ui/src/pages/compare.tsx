// Compare: two selections in two windows, and what changed from one to the other.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { resolveType, shortTypeName, type ProfileType } from "../lib/api";
import { useApi, useUrl } from "../lib/hooks";
import { compareParams, expressionParams, parseMatch } from "../lib/measured";
import { chartQuery, diffQuery, findSelectors, withMatcher } from "../lib/query";
import { useChart, useProfileTypes, useQuestion, useScrapeInterval } from "../lib/questions";
import {
	absolute,
	formatClock,
	formatDuration,
	instantFromParams,
	parseDuration,
	rangeFromParams,
	rangeToParams,
	resolve,
	trimMs,
	type Window,
} from "../lib/timerange";
import type { Patch } from "../lib/urlstate";
import { Chart } from "../parts/chart";
import { IconSwap } from "../parts/icons";
import { useMeasured } from "../parts/measured";
import { Combo } from "../parts/picker";
import { Progress } from "../parts/progress";
import { Notices, QueryBar, QueryError } from "../parts/querybar";
import { DEFAULT_NODES, Results } from "../parts/results";
import { TimePicker } from "../parts/timepicker";

const EMPTY: never[] = [];

/** How far the base lies before the new window; "prev" is one window. */
const SHIFTS: [string, string][] = [
	["0", "the same time"],
	["prev", "the window before"],
	["1h", "1 hour before"],
	["1d", "1 day before"],
	["7d", "7 days before"],
];

function baseWindow(params: URLSearchParams, next: Window): Window {
	const from = Number(params.get("bfrom") ?? NaN);
	const to = Number(params.get("bto") ?? NaN);
	if (from < to) return { start: from, end: to };
	const shift = params.get("shift") ?? "prev";
	const by = shift === "prev" ? next.end - next.start : (parseDuration(shift) ?? 0);
	return { start: next.start - by, end: next.end - by };
}

/** The window with as much again on both sides, not past now: where it lies in time. */
function context(w: Window): Window {
	const width = w.end - w.start;
	return {
		start: w.start - width,
		end: Math.max(w.end, Math.min(w.end + width, Date.now() / 1000)),
	};
}

interface SideProps {
	title: string;
	kind: "base" | "new";
	query: string;
	window: Window;
	types: ProfileType[];
	interval: number | null;
	tick: number;
	onQuery(q: string): void;
	onWindow(w: Window): void;
}

function Side(props: SideProps) {
	const { title, kind, query, window: win, types, interval, tick } = props;
	const type = resolveType(findSelectors(query)[0]?.name ?? "", types);
	const around = context(win);
	const chart = useChart(
		query ? chartQuery(query, "", "profiles") : "",
		around,
		interval,
		type?.type ?? "",
		tick,
	);
	return (
		<section class={`panel side ${kind}`}>
			<div class="panel-head">
				<h2>
					<i class="side-mark" />
					{title}
				</h2>
				<span class="faint">
					{formatClock(win.start)} – {formatClock(win.end).slice(11)}
					{" · "}
					{formatDuration(Math.round(win.end - win.start))}
				</span>
				<span class="spacer" />
				<span class="faint">{chart.unit.label}</span>
			</div>
			<QueryBar query={query} label={`${title} query`} onRun={props.onQuery} />
			{chart.loaded.error ? (
				<QueryError error={chart.loaded.error} sent={chart.sent} />
			) : (
				<Chart
					matrix={chart.loaded.answer?.data.result ?? EMPTY}
					unit={chart.unit}
					window={chart.window}
					step={chart.step}
					mark={win}
					height={110}
					label={`Cost over time, ${title}`}
					debugName={`chart-${kind}`}
					onSelect={(a, b) => props.onWindow({ start: Math.floor(a), end: Math.ceil(b) })}
				/>
			)}
		</section>
	);
}

/** Two values of a label, side by side: v1 against v2. */
function LabelPreset({
	query,
	onApply,
}: {
	query: string;
	onApply(base: string, next: string): void;
}) {
	const { location } = useUrl();
	const [label, setLabel] = useState(location.params.get("by") ?? "version");
	const [base, setBase] = useState("");
	const [next, setNext] = useState("");
	const labels = useApi<string[]>("labels", "labels");
	const values = useApi<string[]>(label || null, `label/${encodeURIComponent(label)}/values`);
	const options = values.answer?.data ?? [];
	useEffect(() => {
		// The two that are there are most likely the two that are meant.
		setBase(options.length >= 2 ? options[options.length - 2] : "");
		setNext(options.length >= 2 ? options[options.length - 1] : "");
	}, [values.answer]);
	return (
		<div class="preset">
			<span class="faint">Label</span>
			<Combo
				value={label}
				options={(labels.answer?.data ?? []).filter((l) => !l.startsWith("__"))}
				label="Label to compare by"
				placeholder="label"
				onCommit={setLabel}
			/>
			<Combo
				value={base}
				options={options}
				label="Base value"
				placeholder="base"
				onCommit={setBase}
			/>
			<span class="faint">against</span>
			<Combo
				value={next}
				options={options}
				label="New value"
				placeholder="new"
				onCommit={setNext}
			/>
			<button
				type="button"
				class="primary"
				disabled={!label || !base || !next || base === next}
				onClick={() =>
					onApply(withMatcher(query, label, base), withMatcher(query, label, next))
				}
			>
				Compare
			</button>
		</div>
	);
}

export function Compare() {
	const { store, location } = useUrl();
	const { params } = location;
	const types = useProfileTypes();
	const known = types.answer?.data ?? [];
	const interval = useScrapeInterval();
	const [tick, setTick] = useState(0);
	const next = params.get("new") ?? "";
	const base = params.get("base") ?? "";
	const range = rangeFromParams((k) => params.get(k) ?? (k === "range" ? "15m" : null));
	const shift = params.has("bfrom") ? "own" : (params.get("shift") ?? "prev");

	const key = JSON.stringify([range, shift, params.get("bfrom"), params.get("bto"), tick]);
	const [nextWin, baseWin] = useMemo(() => {
		const w = resolve(range, Math.floor(Date.now() / 1000));
		return [w, baseWindow(params, w)];
	}, [key]);
	const patch = useCallback(
		(p: Record<string, string | null>, replace = false) => store.patch(p, replace),
		[store],
	);

	// An expression is worked out once; the address then says what is compared.
	const expr = params.get("expr") ?? "";
	const opened = useMemo(() => Math.floor(Date.now() / 1000), [expr]);
	const at = instantFromParams((k) => params.get(k)) ?? opened;
	const match = parseMatch(params.get("match") ?? "");
	const behind = useMeasured(expr, at, match);
	useEffect(() => {
		if (expr && behind.found) patch(compareParams(behind.found), true);
	}, [expr, behind.found]);

	useEffect(() => {
		if (expr || (next && base) || !types.answer) return;
		const cpu =
			known.find((t) => t.name === "process_cpu" && t.sample_type === "cpu") ?? known[0];
		const q = next || base || (cpu ? shortTypeName(cpu, known) : "");
		if (q) patch({ new: next || q, base: base || q }, true);
	}, [expr, next, base, types.answer]);

	const ask = useMemo(
		() =>
			next && base
				? diffQuery({ query: next, ...nextWin }, { query: base, ...baseWin })
				: null,
		[next, base, nextWin, baseWin],
	);
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const { loaded, asked } = useQuestion(ask?.query ?? "", times, nodes, tick);
	const changed = (p: Record<string, string | null>) => {
		setTick((t) => t + 1);
		patch({ zoom: null, el: null, ...p });
	};
	const edit = useCallback(
		(change: (q: string) => string, also: Patch = {}) =>
			patch({ new: change(next), base: change(base), zoom: null, el: null, ...also }),
		[patch, next, base],
	);
	const side = (kind: "base" | "new") => ({
		kind,
		types: known,
		interval,
		tick,
		query: kind === "new" ? next : base,
		window: kind === "new" ? nextWin : baseWin,
		onQuery: (q: string) => changed({ [kind]: q }),
	});

	return (
		<main class="compare">
			<h1 class="visually-hidden">Compare</h1>
			<section class="panel controls">
				<div class="row wrap">
					<TimePicker range={range} onChange={(r) => changed(rangeToParams(r))} />
					<label class="select">
						<span class="faint">Base window</span>
						<select
							value={shift}
							aria-label="Base window"
							onChange={(e) =>
								changed({
									shift: (e.target as HTMLSelectElement).value,
									bfrom: null,
									bto: null,
								})
							}
						>
							{SHIFTS.map(([v, text]) => (
								<option key={v} value={v}>
									{text}
								</option>
							))}
							{shift === "own" && <option value="own">as chosen on the chart</option>}
						</select>
					</label>
					<button
						type="button"
						onClick={() =>
							changed({ shift: "prev", bfrom: null, bto: null, base: next })
						}
					>
						Last window against the one before
					</button>
					<button
						type="button"
						title="Exchange base and new"
						onClick={() =>
							changed({
								new: base,
								base: next,
								range: null,
								shift: null,
								from: trimMs(baseWin.start),
								to: trimMs(baseWin.end),
								bfrom: trimMs(nextWin.start),
								bto: trimMs(nextWin.end),
							})
						}
					>
						<IconSwap />
						Swap
					</button>
					<span class="spacer" />
					<LabelPreset
						query={next}
						onApply={(b, n) =>
							changed({ base: b, new: n, shift: "0", bfrom: null, bto: null })
						}
					/>
				</div>
			</section>
			{behind.tree.error && <QueryError error={behind.tree.error} sent={expr} />}
			{behind.known && !behind.found && (
				<div class="notice">
					This expression looks at no stored profiles, so there is nothing to compare.{" "}
					<a
						href={store.href("explore", expressionParams("query", expr, at, match))}
					>
						Open it in Explore
					</a>
				</div>
			)}
			<div class="sides">
				<Side
					title="Base"
					{...side("base")}
					onWindow={(w) =>
						changed({ bfrom: trimMs(w.start), bto: trimMs(w.end), shift: null })
					}
				/>
				<Side
					title="New"
					{...side("new")}
					onWindow={(w) => changed(rangeToParams(absolute(w.start, w.end)))}
				/>
			</div>
			{ask && (
				<div class="asked">
					<code>{ask.query}</code>
					<a
						href={store.href(
							"explore",
							new URLSearchParams({
								query: ask.query,
								from: trimMs(nextWin.start),
								to: trimMs(ask.time),
							}),
						)}
					>
						Open in Explore
					</a>
				</div>
			)}
			<Progress loaded={loaded} />
			{loaded.error && ask && <QueryError error={loaded.error} sent={ask.query} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			{loaded.answer && ask && (
				<Results
					query={ask.query}
					times={times}
					asked={asked}
					answered={loaded.key}
					answer={loaded.answer}
					loading={loaded.loading}
					params={params}
					patch={patch}
					edit={edit}
					edited={[next, base]}
					fixed={{
						...rangeToParams(absolute(nextWin.start, nextWin.end)),
						bfrom: trimMs(baseWin.start),
						bto: trimMs(baseWin.end),
						shift: null,
					}}
				/>
			)}
			{!loaded.answer && loaded.loading && (
				<section class="panel">
					<div class="empty">Loading…</div>
				</section>
			)}
		</main>
	);
}
