// When an alert would have fired: the states of a rule that was evaluated at each step.
import { type Labels, labelsAmong, type MatrixElement, tellingLabels } from "../shared/api";
import { dayOf, formatMinute, type Window } from "../shared/timerange";
import { parseSample } from "../shared/units";

export interface Firing {
	metric: Labels;
	/** From the evaluation that fired to the first one that did not; seconds since 1970. */
	from: number;
	to: number;
	/** It fires at the last evaluation, which is `to`. */
	still: boolean;
}

export interface Past {
	firings: Firing[];
	/** The evaluation at which there was a value for the first time; null: none has any. */
	since: number | null;
}

/**
 * What a rule would have done with these series if it had been evaluated at each step of the window.
 * A step without a value ends an alert, as in a rule. An alert that is above the limit at the first
 * step has waited from there.
 */
export function firingsOf(
	matrix: MatrixElement[],
	window: Window,
	step: number,
	over: number,
	forSeconds: number,
): Past {
	const firings: Firing[] = [];
	const last = Math.round((window.end - window.start) / step);
	let first = Infinity;
	for (const { metric, values } of matrix) {
		const above = new Set<number>();
		for (const [t, text] of values) {
			const i = Math.round((t - window.start) / step);
			if (i < 0 || i > last) continue;
			first = Math.min(first, i);
			if (parseSample(text) > over) above.add(i);
		}
		for (let i = 0; i <= last; i++) {
			if (!above.has(i)) continue;
			const active = i;
			while (above.has(i)) i++; // `i` is the first step that does not fire
			const from = active + Math.ceil(forSeconds / step - 1e-9);
			const still = i > last;
			const to = still ? last : i;
			if (from > i - 1) continue;
			const at = (k: number) => window.start + k * step;
			firings.push({ metric, from: at(from), to: at(to), still });
		}
	}
	firings.sort((a, b) => a.from - b.from);
	return { firings, since: first === Infinity ? null : window.start + first * step };
}

const NAMED = 4;
/** So much less than the window is said. */
const MISSING_S = 600;
const DAY_S = 86400;

/** `7 min`, `1 h 20 min`, `3 d 2 h`: at least a minute unless it is 0. */
export function spanText(seconds: number): string {
	const minutes = Math.max(seconds > 0 ? 1 : 0, Math.round(seconds / 60));
	const [d, h, m] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24, minutes % 60];
	const parts = [d && `${d} d`, h && `${h} h`, !d && m && `${m} min`].filter(Boolean);
	return parts.join(" ") || "0 min";
}

const firedTimes = (n: number): string => (n === 1 ? "once" : n === 2 ? "twice" : `${n} times`);

/** The clock of a time of the day before `now`, in the zone that is shown. */
function clockText(t: number, now: number): string {
	return (dayOf(t) === dayOf(now) ? "" : "yesterday ") + formatMinute(t);
}

/** How often the alert would have fired, when, and for how long, in one sentence. */
export function firedText({ firings, since }: Past, window: Window): string {
	if (since === null) return "No data in the past day: firings cannot be counted.";
	const there = window.end - since;
	const short = window.end - window.start - there > MISSING_S;
	const past = short
		? `the past ${spanText(there)} (no older data)`
		: window.end - window.start > DAY_S - MISSING_S
			? "the past day"
			: `the past ${spanText(window.end - window.start)}`;
	if (firings.length === 0) return `No firing in ${past}.`;
	const telling = tellingLabels(firings.map((f) => f.metric));
	const each = firings.slice(0, NAMED).map((f) => {
		const who = telling.length ? ` (${labelsAmong(f.metric, telling)})` : "";
		const long = f.still
			? f.to > f.from
				? `for ${spanText(f.to - f.from)} until now`
				: "just now"
			: `for ${spanText(f.to - f.from)}`;
		return `${clockText(f.from, window.end)} ${long}${who}`;
	});
	const more = firings.length - each.length;
	const rest = more ? `, and ${more} more` : "";
	return `Would have fired ${firedTimes(firings.length)} in ${past}: ${each.join(", ")}${rest}.`;
}
