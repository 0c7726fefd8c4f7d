// The two sides of Compare: their windows in the address, the presets, and links to the page.
import { profilesOf, withMatcher } from "../query/query";
import { findSelectors, wholeCall } from "../query/read";
import type { QueryKind } from "../query/types";
import {
	absolute,
	formatDuration,
	midnight,
	parseDuration,
	rangeFromParams,
	rangeToParams,
	resolve,
	type TimeRange,
	trimMs,
	type Window,
} from "../shared/timerange";
import type { Patch } from "../shared/urlstate";

type Get = (name: string) => string | null;
type Params = Record<string, string>;

export interface Sides {
	next: Window;
	base: Window;
	/** The point between both windows; null if there is none. */
	point: number | null;
	/** How long before the base is: a duration, "prev" for one window, "own" if chosen freely. */
	shift: string;
}

const COMPARE_RANGE = "15m";
const SHORTEST_S = 1;

export function newRange(get: Get): TimeRange {
	return rangeFromParams((k) => get(k) ?? (k === "range" ? COMPARE_RANGE : null));
}

function pointOf(get: Get): number | null {
	const t = Number(get("point") ?? NaN);
	return Number.isFinite(t) && t > 0 ? t : null;
}

/** Both windows. Around a point they have equal lengths, and the later one ends by `now`. */
export function sidesFromParams(get: Get, now: number): Sides {
	const next = resolve(newRange(get), now);
	const width = next.end - next.start;
	const point = pointOf(get);
	if (point !== null) {
		const w = Math.max(SHORTEST_S, Math.min(width, now - point));
		return {
			next: { start: point, end: point + w },
			base: { start: point - w, end: point },
			point,
			shift: "point",
		};
	}
	const from = Number(get("bfrom") ?? NaN);
	const to = Number(get("bto") ?? NaN);
	if (from < to) return { next, base: { start: from, end: to }, point, shift: "own" };
	const shift = get("shift") ?? "prev";
	const by = shift === "prev" ? width : (parseDuration(shift) ?? 0);
	return { next, base: { start: next.start - by, end: next.end - by }, point, shift };
}

const NO_BASE = { shift: null, bfrom: null, bto: null, point: null };
const own = (w: Window) => ({ ...NO_BASE, bfrom: trimMs(w.start), bto: trimMs(w.end) });
const moved = (shift: string) => ({ ...NO_BASE, shift });
const fixed = (w: Window) => rangeToParams(absolute(w.start, w.end));

/** Chooses the window of one side; the other keeps its own, also if a point defined it. */
export function chooseBase(sides: Sides, w: Window): Patch {
	return { ...(sides.point === null ? {} : fixed(sides.next)), ...own(w) };
}
export function chooseNew(sides: Sides, w: Window): Patch {
	return { ...(sides.point === null ? {} : own(sides.base)), ...fixed(w) };
}

/** Another range for the new side; around a point only its length counts. */
export function chooseRange(sides: Sides, range: TimeRange): Patch {
	if (sides.point === null || range.kind === "relative") return rangeToParams(range);
	return chooseNew(sides, { start: range.start, end: range.end });
}

/** Compares before and after `t`; the windows are at most as long as the time since `t`. */
export function choosePoint(sides: Sides, t: number, now: number): Patch {
	const width = sides.next.end - sides.next.start;
	const seconds = Math.max(SHORTEST_S, Math.floor(Math.min(width, now - t)));
	return { ...rangeToParams({ kind: "relative", seconds }), ...NO_BASE, point: trimMs(t) };
}

export function chooseShift(sides: Sides, shift: string): Patch {
	return { ...(sides.point === null ? {} : fixed(sides.next)), ...moved(shift) };
}

/** Both windows as absolute times. */
export function pinned(sides: Sides): Patch {
	return { ...fixed(sides.next), ...own(sides.base) };
}

export function swapped(sides: Sides): Patch {
	return { ...fixed(sides.base), ...own(sides.next) };
}

/** The offered distances of the base. */
export const SHIFTS: [string, string][] = [
	["0", "the same time"],
	["prev", "the window before"],
	["1h", "1 hour before"],
	["1d", "1 day before"],
	["7d", "7 days before"],
];

export interface Preset {
	text: string;
	hint: string;
	patch(now: number): Patch;
	/** Whether the address has this preset. */
	on(get: Get): boolean;
}

const lastHour = (shift: string) => ({
	patch: () => ({ ...rangeToParams({ kind: "relative", seconds: 3600 }), ...moved(shift) }),
	on: (get: Get) => get("range") === "1h" && get("shift") === shift && !get("point"),
});

export const COMPARE_PRESETS: Preset[] = [
	{
		text: "This hour against yesterday",
		hint: "The last hour and the same hour a day before",
		...lastHour("1d"),
	},
	{
		text: "This hour against the hour before",
		hint: "The last hour and the one before it",
		...lastHour("1h"),
	},
	{
		text: "Today against a week ago",
		hint: "From midnight until now, and the same time seven days before",
		patch: (now) => ({ ...fixed({ start: midnight(now), end: now }), ...moved("7d") }),
		on: (get) => {
			const from = Number(get("from") ?? NaN);
			return get("shift") === "7d" && from === midnight(from) && !get("point");
		},
	},
];

/** The window with its length added on both sides, not past now; the range of a side's chart. */
export function surroundings(w: Window, now: number): Window {
	const width = w.end - w.start;
	return { start: w.start - width, end: Math.max(w.end, Math.min(w.end + width, now)) };
}

/** The factor that gives the new side the total of the base; 1 if a side is empty. */
export function scale(newTotal: number, baseTotal: number): number {
	return newTotal > 0 && baseTotal > 0 ? baseTotal / newTotal : 1;
}

/** The warning if the windows have different lengths; else "". */
export function unequalLengths({ next, base }: Sides): string {
	const [a, b] = [next, base].map((w) => Math.round(w.end - w.start));
	if (a === b) return "";
	return (
		`The windows are ${formatDuration(b)} (base) and ${formatDuration(a)} (new) long: ` +
		"use Normalized for costs that add up over time."
	);
}

/* ---- two values of a label ---- */

export interface LabelPair {
	label: string;
	base: string;
	next: string;
}

const DEFAULT_LABEL = "version";

/** The `=` matchers of a query's first selector. */
function equalities(query: string): Map<string, string> {
	const [first] = findSelectors(query);
	const exact = (first?.matchers ?? []).filter((m) => m.op === "=");
	return new Map(exact.map((m) => [m.label, m.value]));
}

/**
 * The label by which two queries differ, and its values on both sides. Without a difference the
 * values are those of `by` that both have, if any.
 */
export function labelPair(next: string, base: string, by: string | null = null): LabelPair {
	const [n, b] = [equalities(next), equalities(base)];
	const differs = [...n].find(([label, v]) => b.has(label) && b.get(label) !== v)?.[0];
	const label = differs ?? by ?? DEFAULT_LABEL;
	return { label, base: b.get(label) ?? "", next: n.get(label) ?? "" };
}

/** Both queries with the chosen values; unchanged without two different ones. */
export function withLabels(next: string, base: string, pair: LabelPair | null) {
	if (!pair?.label || !pair.base || !pair.next || pair.base === pair.next)
		return { next, base, labelled: false };
	return {
		next: withMatcher(next, pair.label, pair.next),
		base: withMatcher(next, pair.label, pair.base),
		labelled: true,
	};
}

/**
 * The two values of a label as a pair, the one that sorts last as new; null unless there are exactly
 * two. "v9" sorts before "v10".
 */
export function pairOfTwo(label: string, values: string[]): LabelPair | null {
	if (values.length !== 2) return null;
	const [base, next] = [...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
	return { label, base, next };
}

/* ---- links from Explore ---- */

/** Whether a query can be compared: it gives profiles, and is no difference. */
export function comparableQuery(query: string, kind: QueryKind): boolean {
	return kind === "selector" || kind === "top" || (kind === "profiles" && !isDiff(query));
}

const isDiff = (query: string) =>
	/^diff(_normalized)?$/.test(wholeCall(query)?.name ?? "");

const times = (w: Window): Params => ({ from: trimMs(w.start), to: trimMs(w.end) });

/** A window against the one before it. */
export function compareBefore(query: string, w: Window): Params {
	const q = profilesOf(query);
	return { new: q, base: q, ...times(w), shift: "prev" };
}

/** A range against a part of it. Their lengths differ, so it is compared in proportion. */
export function compareRange(query: string, range: Window, part: Window): Params {
	const q = profilesOf(query);
	const base = { bfrom: trimMs(part.start), bto: trimMs(part.end) };
	return { new: q, base: q, ...times(range), ...base, norm: "1" };
}

/** The end of a window against its beginning, a quarter of it each. */
export function compareParts(query: string, w: Window): Params {
	const q = profilesOf(query);
	const quarter = (w.end - w.start) / 4;
	return {
		new: q,
		base: q,
		...times({ start: w.end - quarter, end: w.end }),
		bfrom: trimMs(w.start),
		bto: trimMs(w.start + quarter),
	};
}

/** After a point against before it. */
export function comparePoint(query: string, point: number): Params {
	const q = profilesOf(query);
	return { new: q, base: q, point: trimMs(point) };
}
