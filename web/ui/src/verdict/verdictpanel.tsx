// The verdict above a comparison: one sentence, and the function's share per minute on both sides.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { buildFlame, comparable, diffOf, type Flame } from "../flame/layout";
import { shortName } from "../flame/names";
import type { ProfileElement } from "../shared/api";
import { publish } from "../shared/debug";
import { IconBell } from "../shared/icons";
import { formatDuration } from "../shared/timerange";
import { formatNanoseconds, formatPoints, formatSigned, trend } from "../shared/units";
import { type AboutAsk, type AboutCosts, useAbout } from "./about";
import { amountWord, type Blame, blame, blameOf, calledBy, fromTo, moreTime, waitFor } from "./blame";
import type { Significance } from "./significance";
import { type StripSide, Strips } from "./strips";
import { boundsOf, wordsOf } from "./verdict";
import "./verdictpanel.css";

export interface VerdictProps {
	element: ProfileElement;
	/** null if the server does not judge such a difference. */
	significance: Significance | null;
	/** A side is a file: chance is not judged, and there is nothing to alert on. */
	files?: boolean;
	/** The length of the new window, 0 if unknown. */
	seconds: number;
	sides?: { base: StripSide; next: StripSide };
	tick?: number;
	/** Of the answer; they say which side has no profiles. */
	infos?: string[];
	/** The function that a rule is about; else the one that changed most is named. */
	about?: AboutAsk | null;
	/** Ends that. */
	onAll?(): void;
	/** The sentence alone, for one line. */
	brief?: boolean;
	onOpen(name: string): void;
	onAlert(name: string): void;
	/** Asks for windows of so many seconds. */
	onLonger?(seconds: number): void;
	/** Below the sentence. */
	children?: ComponentChildren;
}

function Name({ name, onOpen }: { name: string; onOpen(name: string): void }) {
	return (
		<button
			type="button"
			class="fn-link"
			title={`${name}: callers and callees`}
			onClick={() => onOpen(name)}
		>
			{shortName(name)}
		</button>
	);
}

function Callers({ of, onOpen }: { of: Blame; onOpen(name: string): void }) {
	const { word, named } = calledBy(of.callers);
	if (!named) return null;
	const more = word === "by" ? of.callers.length - named : 0;
	return (
		<>
			, called {word}{" "}
			{of.callers.slice(0, named).map(([name], i) => (
				<>
					{i > 0 && (more ? ", " : " and ")}
					<Name name={name} onOpen={onOpen} />
				</>
			))}
			{more > 0 && ` and ${more} more`}
		</>
	);
}

/** Why it is not certain yet, and how long it takes to tell. */
function Open(
	props: { of: Significance; name: string } & Pick<VerdictProps, "seconds" | "onLonger">,
) {
	const { of, name, seconds, onLonger } = props;
	if (of.loading) return <>testing significance…</>;
	const wait = waitFor(of.notes, of.changes.get(name), seconds);
	return (
		<>
			<b>not enough data yet{wait > 0 && `: ${moreTime(wait)}`}</b>
			{wait > 0 && seconds > 0 && onLonger && (
				<button type="button" class="small" onClick={() => onLonger(seconds + wait)}>
					Compare {formatDuration(Math.ceil((seconds + wait) / 60) * 60)}
				</button>
			)}
		</>
	);
}

function CertaintyText({ of, props }: { of: Blame; props: VerdictProps }) {
	const { significance, element } = props;
	if (of.certainty === "certain") {
		const bounds = significance?.changes.get(of.name);
		const hint = bounds && `Flat share moved between ${boundsOf(bounds)}; false in at most 1 % of comparisons without a change`;
		return (
			<>
				; <b title={hint}>significant (99 %)</b>
			</>
		);
	}
	const small = significance?.changes.get(of.name);
	if (of.by && small?.verdict === "not changed")
		return (
			<>
				; <b title={boundsOf(small)}>flat share moved {wordsOf(small)} (99 %)</b>
			</>
		);
	if (of.by && nothingChanged(significance)) return <>; {nothingChanged(significance)}</>;
	if (significance)
		return (
			<>
				; <Open {...props} of={significance} name={of.name} />
			</>
		);
	return element.type?.endsWith(":delta") ? (
		<span class="faint">
			; no significance test on {props.files ? "files" : "filtered or grouped profiles"}
		</span>
	) : null;
}

function Named({ of, flame, props }: { of: Blame; flame: Flame; props: VerdictProps }) {
	const { element, seconds, onOpen } = props;
	const { unit, type = "" } = element;
	const [from, to, by] = fromTo(of, flame, type, unit);
	const delta = of.costs.next - of.costs.base;
	const level = !type.endsWith(":delta");
	const share = of.by === "share";
	return (
		<>
			<Name name={of.name} onOpen={onOpen} />
			{of.of === "flat" && <span class="faint"> itself</span>} {from} →{" "}
			<b class={trend(delta)}>{to}</b> ({by && `${by}, `}
			{share ? formatPoints(100 * delta) : formatSigned(delta, unit)}
			{amountWord(type)}
			{seconds > 0 && !level && !share && ` in ${formatNanoseconds(seconds * 1e9)}`})
			<Callers of={of} onOpen={onOpen} />
			<CertaintyText of={of} props={props} />
		</>
	);
}

/** What to say if one side has no costs. */
function empty(flame: Flame, infos: string[]): string {
	const { baseTotal, nextTotal } = diffOf(flame);
	if (baseTotal > 0 || nextTotal > 0) {
		const side = baseTotal > 0 ? "new" : "base";
		return `No data in the ${side} window. The colours below are packages, not changes.`;
	}
	// A normalized difference has no costs if one side has no profiles.
	const said = infos.map((n) => /^no profiles on the (base|new) side/.exec(n)?.[1]).find(Boolean);
	return said ? `No data in the ${said} window.` : "No data in either window.";
}

/** The server's verdict that nothing changed; "" if it is another one. */
const nothingChanged = (of: Significance | null): string =>
	of?.notes.find((n) => /^no function changed/.test(n)) ?? "";

interface Told {
	flame: Flame;
	of: Blame | null;
	about: AboutCosts | null;
	props: VerdictProps;
}

function Sentence({ flame, of, about, props }: Told) {
	const calm = nothingChanged(props.significance);
	if (!comparable(flame)) return <>{empty(flame, props.infos ?? [])}</>;
	if (about && !of)
		return (
			<>
				{about.function.name}: {about.error ? about.error.detail : "reading its cost…"}
			</>
		);
	if (calm && !about)
		return (
			<>
				{calm.charAt(0).toUpperCase() + calm.slice(1)}; <b>99 % confidence</b>
			</>
		);
	if (!of) return <>Base and new cost the same.</>;
	return <Named of={of} flame={flame} props={props} />;
}

export function useBlame(
	element: ProfileElement,
	significance: Significance | null,
	about: AboutCosts | null,
) {
	const flame = useMemo((): Flame | null => {
		try {
			return buildFlame(element.flamebearer);
		} catch {
			return null; // the flame graph says why
		}
	}, [element]);
	const changes = significance && !significance.loading ? significance.changes : null;
	const judged = significance !== null;
	const of = useMemo(() => {
		const all = judged ? (changes ?? new Map()) : null;
		if (!flame || !about) return flame && blame(flame, all);
		return about.costs && blameOf(flame, all, about.function, about.costs);
	}, [flame, changes, judged, about]);
	return { flame, of };
}

export function VerdictPanel(props: VerdictProps) {
	const { element, significance, sides } = props;
	const about = useAbout(props.about ?? null, element);
	const { flame, of } = useBlame(element, significance, about);
	useEffect(() => {
		publish("verdict", () => of);
		return () => publish("verdict", null);
	}, [of]);
	if (!flame) return null;
	const level = !element.type?.endsWith(":delta");
	const shown = of && comparable(flame) && (about !== null || !nothingChanged(significance));
	const stripUnit = level && of?.by !== "share" ? element.unit : "";
	return (
		<section class="panel verdict" aria-label="Verdict">
			<p role="status" aria-busy={significance?.loading ?? false}>
				<Sentence flame={flame} of={of} about={about} props={props} />
			</p>
			{about && props.onAll && (
				<button type="button" class="small" onClick={props.onAll}>
					Largest change instead
				</button>
			)}
			{shown && !about && !props.files && (
				<button
					type="button"
					class="small"
					title={`Cost of ${of.name} in the past day, a limit, and the rule as text`}
					onClick={() => props.onAlert(of.name)}
				>
					<IconBell />
					Alert when it costs more
				</button>
			)}
			{shown && !props.brief && of.also.length > 0 && (
				<p class="faint also">
					Also changed:{" "}
					{of.also.map((name, i) => (
						<>
							{i > 0 && ", "}
							<Name name={name} onOpen={props.onOpen} />
						</>
					))}
				</p>
			)}
			{shown && !props.brief && sides && (
				<Strips {...sides} name={of.name} of={of.of} unit={stripUnit} tick={props.tick ?? 0} />
			)}
			{props.children}
		</section>
	);
}
