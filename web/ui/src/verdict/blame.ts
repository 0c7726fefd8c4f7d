// The verdict on a difference, as data: which function to name, how its share changed, who calls it,
// and whether that is certain.
import { comparable, diffOf, type Flame } from "../flame/layout";
import { callersOf, type Costs, costsOf, isOwn, ownCosts } from "../flame/owncode";
import type { MeasuredFunction } from "../query/measured";
import { flameQuery, withWindow } from "../query/query";
import { quote } from "../query/text";
import { parseDuration } from "../shared/timerange";
import { counted, digits, formatValue, share } from "../shared/units";
import { type Change, isProved, middleOf } from "./verdict";

export type Certainty = "certain" | "open" | "unjudged";

export interface Blame {
	name: string;
	/** What the shares count: the function with all it calls, or itself alone. */
	of: "cum" | "flat";
	costs: Costs;
	/** What a rule measures: costs, or shares of 0..1; undefined: costs, told as the type is. */
	by?: "cost" | "share";
	certainty: Certainty;
	/** Its callers, the most expensive first, with the share of its cost that each passes. */
	callers: [string, number][];
	/** Other functions of the program that changed for certain. */
	also: string[];
}

const ALSO_MAX = 3;
/** A cum that changes by so much more than the function's own work is mostly that of others. */
const OTHERS = 1.25;

const change = (c: Costs): number => c.next - c.base;
const size = (c: Costs): number => Math.abs(change(c));

/** Cum, unless most of its change is that of other functions of the program that it calls. */
function measure(f: Flame, name: string, own: Costs): Pick<Blame, "of" | "costs"> {
	const { cum, flat } = costsOf(f, name);
	const others = size(cum) > OTHERS * size(own) && size(flat) > size(own) / 2;
	return others ? { of: "flat", costs: flat } : { of: "cum", costs: cum };
}

/**
 * The function to name: of those that changed for certain the one whose cost moved most, else the one
 * that moved most of all. `changes` is null if the server does not judge such a difference.
 */
export function blame(f: Flame, changes: Map<string, Change> | null): Blame | null {
	if (!comparable(f)) return null;
	const all = [...ownCosts(f)].filter(([, c]) => size(c) > 0);
	const own = all.some(([n]) => isOwn(n)) ? all.filter(([n]) => isOwn(n)) : all;
	const sorted = own.sort((a, b) => size(b[1]) - size(a[1]) || (a[0] < b[0] ? -1 : 1));
	const sure = sorted.filter(([name]) => isProved(changes?.get(name)));
	const first = sure[0] ?? sorted[0];
	if (!first) return null;
	const [name, costs] = first;
	return {
		name,
		...measure(f, name, costs),
		certainty: !changes ? "unjudged" : sure.length ? "certain" : "open",
		callers: callersOf(f, name),
		also: sure.slice(1, 1 + ALSO_MAX).map(([n]) => n),
	};
}

/**
 * A given function, with its costs or shares on both sides. Others are still named if they changed
 * for certain.
 */
export function blameOf(
	f: Flame,
	changes: Map<string, Change> | null,
	{ name, of, share }: MeasuredFunction,
	costs: Costs,
): Blame {
	const sure = [...(changes ?? [])].filter(([n, c]) => n !== name && isOwn(n) && isProved(c));
	const moved = (c: Change) => Math.abs(middleOf(c));
	return {
		name,
		of,
		costs,
		by: share ? "share" : "cost",
		certainty: !changes ? "unjudged" : isProved(changes.get(name)) ? "certain" : "open",
		callers: callersOf(f, name),
		also: sure
			.sort((a, b) => moved(b[1]) - moved(a[1]))
			.slice(0, ALSO_MAX)
			.map(([n]) => n),
	};
}

/** "5.9%", "33%", "0.42%": two digits, which is as much as a sentence needs. */
export function shortPercent(percent: number): string {
	if (!(percent > 0)) return "0%";
	if (percent < 0.01) return "<0.01%";
	return percent >= 9.95 ? `${percent.toFixed(0)}%` : `${Number(percent.toPrecision(2))}%`;
}

/** "5.6×"; "new" where there was nothing, "gone" where nothing is left. */
export function timesText(base: number, next: number): string {
	if (!(base > 0)) return next > 0 ? "new" : "";
	if (!(next > 0)) return "gone";
	const by = next / base;
	if (by >= 1000) return ">999×";
	return `${by >= 9.95 ? by.toFixed(0) : digits(Number(by.toPrecision(2)))}×`;
}

/** Both sides of the named function: shares of amounts, values of levels, or what a rule measures. */
export function fromTo(b: Blame, f: Flame, type: string, unit: string): [string, string, string] {
	const { base, next } = b.costs;
	if (b.by === "share")
		return [shortPercent(100 * base), shortPercent(100 * next), timesText(base, next)];
	if (b.by === "cost" || !type.endsWith(":delta"))
		return [formatValue(base, unit), formatValue(next, unit), timesText(base, next)];
	const { baseTotal, nextTotal } = diffOf(f);
	const [x, y] = [share(base, baseTotal), share(next, nextTotal)];
	return [shortPercent(x), shortPercent(y), timesText(x, y)];
}

/** What an amount is: "of CPU", "allocated"; "" for others. */
export function amountWord(type: string): string {
	const [name, sample] = type.split(":");
	if (!type.endsWith(":delta")) return "";
	if (sample === "cpu") return " of CPU";
	if (sample?.startsWith("alloc_")) return " allocated";
	return name === "mutex" || name === "block" ? " of waiting" : "";
}

/** "only by", "mostly by" or "by", and how many of the callers are named. */
export function calledBy(callers: [string, number][]): { word: string; named: number } {
	if (callers.length === 0) return { word: "", named: 0 };
	if (callers.length === 1) return { word: "only by", named: 1 };
	if (callers[0][1] >= 0.9) return { word: "mostly by", named: 1 };
	return { word: "by", named: Math.min(2, callers.length) };
}

/** A smaller change of a share does not matter, as changed_interval() has it. */
const MATTERS = 0.02;
/** Windows so many times as long are no advice. */
const LONGER_MAX = 100;

/**
 * How much longer it takes to tell, in seconds; 0 if unknown. The interval of a function shrinks with
 * the root of the time, until 0 or what matters is outside of it.
 */
export function waitFor(notes: string[], c: Change | undefined, windowSeconds: number): number {
	for (const note of notes) {
		const more = /; about (\S+) more/.exec(note);
		if (more) return parseDuration(more[1]) ?? 0;
	}
	if (c?.verdict !== "cannot tell") return 0;
	const middle = Math.abs(middleOf(c));
	const width = (c.high - c.low) / 2;
	const longer = Math.max(2, Math.ceil((width / Math.max(middle, MATTERS - middle)) ** 2));
	return longer <= LONGER_MAX ? (longer - 1) * windowSeconds : 0;
}

/** "8 more minutes" */
export function moreTime(seconds: number): string {
	const [n, unit] =
		seconds < 90
			? [Math.ceil(seconds), "second"]
			: seconds < 5400
				? [Math.ceil(seconds / 60), "minute"]
				: seconds < 129600
					? [Math.ceil(seconds / 3600), "hour"]
					: [Math.ceil(seconds / 86400), "day"];
	return counted(n, `more ${unit}`);
}

/* ---- the share over time ---- */

const BARS_MAX = 60;
/** So few bars are above others by chance. */
const APART_MIN = 4;
const STEPS_S = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** The width of a bar: a minute, or longer where there would be too many; 0 for short windows. */
export function stripStep(seconds: number): number {
	if (seconds < 2 * STEPS_S[0]) return 0;
	return STEPS_S.find((s) => seconds / s <= BARS_MAX) ?? STEPS_S[STEPS_S.length - 1];
}

/** Whether each bar of the one side is above all bars of the other: "more", "less", or "". */
export function barsApart(base: (number | null)[], next: (number | null)[]): "more" | "less" | "" {
	const known = (v: (number | null)[]) => v.filter((x): x is number => x !== null);
	const [b, n] = [known(base), known(next)];
	if (b.length < APART_MIN || n.length < APART_MIN) return "";
	if (Math.min(...n) > Math.max(...b)) return "more";
	return Math.max(...n) < Math.min(...b) ? "less" : "";
}

/** The function's cost or share per step; 0 where it has none of what is stored. */
export function stripQuery(
	query: string,
	name: string,
	cost: "cum" | "flat" | "cum_share" | "flat_share",
	step: number,
): string {
	const profiles = withWindow(flameQuery(query), step, 0);
	return (
		`${cost}(${profiles}, {function=${quote(name)}}) ` +
		`or ignoring (function) 0 * total(${profiles})`
	);
}

/** One value per step of a window, null where nothing is stored; series are added up. */
export function bars(
	matrix: { values: [number, string][] }[],
	win: { start: number; end: number },
	step: number,
): (number | null)[] {
	const n = Math.floor((win.end - win.start) / step);
	const out: (number | null)[] = new Array(n).fill(null);
	for (const { values } of matrix)
		for (const [t, v] of values) {
			const i = Math.round((t - win.start) / step) - 1;
			if (i >= 0 && i < n && Number.isFinite(Number(v))) out[i] = (out[i] ?? 0) + Number(v);
		}
	return out;
}
