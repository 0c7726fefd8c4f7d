// The queries of the views: the user's query merged, put into a window, or compared. A query that
// the reader does not understand is sent as it is, so that the server says what is wrong.
import { formatDuration } from "../shared/timerange";
import { argumentTypes, filterKind } from "./language";
import {
	bare,
	callArgument,
	callArguments,
	findSelectors,
	hasSubquery,
	parseSelector,
	queryChildren,
	type QueryNode,
	readQuery,
	type SelectorNode,
} from "./read";
import { queryWords } from "./syntax";
import { formatSelector, splice } from "./text";
import { guessKind, type QueryKind, profileSelectors } from "./types";

/** Without comments: text that is appended would become part of the last one. */
export function clean(text: string): string {
	const comments = queryWords(text).filter((w) => w.kind === "comment");
	return splice(
		text,
		comments.map((w) => ({ ...w, insert: "" })),
	).trim();
}

/** Whether a query takes samples or frames away. */
export const hasFilter = (text: string): boolean =>
	readQuery(text).calls.some((c) => filterKind(c.name) !== null);

/** The query of the flame graph: a lone selector is merged over all its series. */
export function flameQuery(text: string): string {
	const t = text.trim();
	return parseSelector(clean(t)) ? `merge(${clean(t)})` : t;
}

export function tableQuery(text: string, rows: number): string {
	return `top(${rows}, ${flameQuery(clean(text))})`;
}

/** The profiles inside a `top(k, P)`. */
export const insideTop = (text: string): string | null => callArguments(text, "top")?.[1] ?? null;

/** The profiles a query is about. */
export function profilesOf(query: string, kind: QueryKind = guessKind(query)): string {
	const t = query.trim();
	return kind === "top" ? (insideTop(t) ?? t) : t;
}

/** Cost over time, one line per value of `by` ("" for one line). */
export function chartQuery(text: string, by: string, kind: QueryKind): string {
	if (kind === "costs") return text.trim();
	const profiles = profilesOf(clean(text), kind);
	if (!by) return `total(${flameQuery(profiles)})`;
	return `total(merge by (${by}) (${callArgument(profiles, "merge") ?? profiles}))`;
}

const RATES = ["rate", "mean_rate"];
/** Whether a query asks for costs per second. */
export const isRate = (text: string): boolean => readQuery(text).calls.some((c) => RATES.includes(c.name));

/**
 * How many seconds of cost a point of the chart holds: the query's own range, else the step; one
 * second for a rate.
 */
export function chartWindow(text: string, step: number): number {
	if (isRate(text)) return 1;
	return findSelectors(text).find((s) => s.range)?.range ?? step;
}

/**
 * The same query as a rate, for profiles of amounts. A query with windows, subqueries, offsets or
 * `@` is not changed.
 */
export function withRate(text: string, seconds: number): string {
	const { tree, selectors } = readQuery(text);
	if (!tree || hasSubquery(tree) || selectors.some((s) => s.end > s.head)) return text;
	const window = formatDuration(seconds);
	return splice(
		text,
		profileSelectors(tree).map((s) => ({
			start: s.start,
			end: s.end,
			insert: `rate(${text.slice(s.start, s.end)}[${window}])`,
		})),
	);
}

/** The selectors that stand where a function takes a window: `rate(cpu[5m])`. */
export function windowedIn(n: QueryNode): Set<QueryNode> {
	const out = new Set(queryChildren(n).flatMap((c) => [...windowedIn(c)]));
	if (n.type === "call")
		n.args.forEach((a, i) => {
			if (argumentTypes(n.name, i).includes("window")) out.add(bare(a));
		});
	return out;
}

/**
 * The mean cost per second of the window of `seconds` that ends at the time of the query: what the
 * page calls cores, in all places. The window begins no earlier than the first profile of each
 * element, and a query that has windows keeps them. Null for costs, and for profiles over whose
 * windows the query has a function already.
 */
export function meanRateQuery(text: string, seconds: number): string | null {
	const { tree } = readQuery(text);
	const selectors = tree ? profileSelectors(tree) : [];
	if (!tree || selectors.length === 0 || hasSubquery(tree)) return null;
	const over = windowedIn(tree);
	if (selectors.some((s) => over.has(s))) return null;
	const window = `[${formatDuration(seconds)}]`;
	return splice(
		text,
		selectors.map((s) => {
			const own = s.range === null ? window : text.slice(s.head, s.ranged);
			const all = text.slice(s.start, s.head) + own + text.slice(s.ranged, s.end);
			return { start: s.start, end: s.end, insert: `mean_rate(${all})` };
		}),
	);
}

/** ` offset 1h`: the selector's own offset plus `seconds`, unless `@` fixes the time. */
function offsetOf(s: SelectorNode, seconds: number): string {
	const total = s.offset + (s.at === "time" ? 0 : seconds);
	if (total === 0) return "";
	return ` offset ${total < 0 ? "-" : ""}${formatDuration(Math.abs(total))}`;
}

/**
 * Gives every selector of profiles a window unless it has one, and moves all selectors back by an
 * offset.
 */
export function withWindow(text: string, seconds: number, offsetSeconds: number): string {
	const t = text.trim();
	const { tree, selectors } = readQuery(t);
	if (!tree) return t;
	const windowed = new Set(profileSelectors(tree));
	const window = `[${formatDuration(seconds)}]`;
	return splice(
		t,
		selectors.map((s) => {
			const own = s.range === null && windowed.has(s) ? window : t.slice(s.head, s.ranged);
			if (offsetSeconds <= 0) return { start: s.head, end: s.ranged, insert: own };
			const at = s.atText && ` ${s.atText}`;
			return { start: s.head, end: s.end, insert: own + offsetOf(s, offsetSeconds) + at };
		}),
	);
}

/**
 * The last, or the largest, profile of each series in a window instead of the mean; null if a
 * selector has a window of its own, which says what is taken.
 */
export function levelQuery(text: string, of: "last" | "max", seconds: number): string | null {
	const t = clean(text);
	const { tree } = readQuery(t);
	const selectors = tree ? profileSelectors(tree) : [];
	if (selectors.length === 0 || selectors.some((s) => s.range !== null)) return null;
	const window = `[${formatDuration(seconds)}]`;
	return splice(
		t,
		selectors.map((s) => ({
			start: s.start,
			end: s.end,
			insert: `${of}_over_time(${t.slice(s.start, s.head)}${window}${t.slice(s.ranged, s.end)})`,
		})),
	);
}

/** Sets one equality matcher in every selector of a query. */
export function withMatcher(text: string, label: string, value: string): string {
	const t = text.trim();
	return splice(
		t,
		findSelectors(t).map((s) => {
			const matchers = s.matchers.filter((m) => m.label !== label);
			matchers.push({ label, op: "=", value });
			return { start: s.start, end: s.head, insert: formatSelector({ ...s, matchers }) };
		}),
	);
}

export interface DiffSide {
	query: string;
	start: number;
	end: number;
}

/** Whether a query keeps profiles apart by labels: `merge by (version) (...)`. */
const isGrouped = (text: string): boolean =>
	readQuery(text).calls.some((c) => c.name === "merge" && c.modifier !== null);

export interface DiffQuery {
	query: string;
	time: number;
	/** Both sides, to be asked at the same `time`. */
	next: string;
	base: string;
}

/**
 * The difference of two windows as one query, and the time to ask it at: the later end, so that no
 * offset is negative. If normalized, the new side is scaled to the total of the base.
 */
export function diffQuery(next: DiffSide, base: DiffSide, normalized = false): DiffQuery {
	const time = Math.max(next.end, base.end);
	const part = (s: DiffSide) => {
		const query = clean(s.query);
		if (isGrouped(query)) return withWindow(query, s.end - s.start, time - s.end);
		const arg = callArgument(query, "merge") ?? query;
		return `merge(${withWindow(arg, s.end - s.start, time - s.end)})`;
	};
	const sides = { next: part(next), base: part(base) };
	const call = normalized ? "diff_normalized" : "diff";
	return { query: `${call}(${sides.next}, ${sides.base})`, time, ...sides };
}
