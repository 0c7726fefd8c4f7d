// Edits of a query: filters on and off, grouping, alerts. So what a view shows is always a query that
// can be shared, alerted on, or put on a dashboard.
import { must } from "../shared/must";
import { formatDuration } from "../shared/timerange";
import { filterKind } from "./language";
import { clean, flameQuery, insideTop, windowedIn, withWindow } from "./query";
import {
	bare,
	type BinaryNode,
	callArgument,
	type CallNode,
	queryChildren,
	type QueryNode,
	parseSelector,
	readQuery,
	wholeCall,
} from "./read";
import { escapeRegexp, formatLabel, quote, type Span, splice } from "./text";
import { maybeProfiles, profileSelectors } from "./types";

export type Filter = "focus" | "ignore" | "hide" | "show" | "show_from" | "prune_from";

const isFilter = (name: string) => filterKind(name) !== null;
const isDiff = (name: string) => name === "diff" || name === "diff_normalized";

const textOf = (text: string, n: Span) => text.slice(n.start, n.end);
const argsOf = (text: string, call: CallNode) => call.args.map((a) => textOf(text, a));

function rewrite(name: string, args: string[], modifier = ""): string {
	return `${name}${modifier ? ` ${modifier} ` : ""}(${args.join(", ")})`;
}

/** Applies a change to the profiles of a query; queries for costs are not changed. */
function onProfiles(query: string, change: (profiles: string) => string): string {
	const q = clean(query);
	const call = wholeCall(q);
	if (call?.name === "top" && call.args.length === 2) {
		const [k, profiles] = argsOf(q, call);
		return rewrite(call.name, [k, change(flameQuery(profiles))]);
	}
	const { tree } = readQuery(q);
	return tree && maybeProfiles(tree) ? change(flameQuery(q)) : query;
}

/* ---- filters ---- */

/** An RE2 expression that matches exactly this name. */
export function exactPattern(name: string): string {
	if (escapeRegexp(name) === name) return `^${name}$`;
	return name.includes("\\E")
		? `^${escapeRegexp(name)}$`
		: `^\\Q${name}\\E$`;
}

/** The name that an exact pattern matches; null for other patterns. */
export function exactName(pattern: string): string | null {
	const quoted = /^\^\\Q((?:(?!\\E)[\s\S])*)\\E\$$/.exec(pattern);
	if (quoted) return quoted[1];
	const plain = /^\^((?:[^\\^$.*+?()[\]{}|]|\\[\\^$.*+?()[\]{}|])*)\$$/.exec(pattern);
	return plain ? plain[1].replace(/\\(.)/g, "$1") : null;
}

/** As a string of the language, in backquotes where quotes would double its backslashes. */
function patternText(pattern: string): string {
	return pattern.includes("\\") && !/[`\n\r]/.test(pattern) ? `\`${pattern}\`` : quote(pattern);
}

/** Adds a filter by one function, which means the same as in pprof. */
export function wrapFilter(query: string, filter: Filter, name: string): string {
	return onProfiles(query, (profiles) => {
		const call = wholeCall(profiles);
		const pattern = exactPattern(name);
		const last = call?.name === filter ? call.args[1] : undefined;
		if (last?.type === "string" && last.value === pattern) return profiles;
		return `${filter}(${profiles}, ${patternText(pattern)})`;
	});
}

/** The callers of a function, or what it calls: half of its sandwich. */
export function halfOf(query: string, half: "callers" | "callees", name: string): string {
	return onProfiles(query, (p) => `${half}(${p}, ${patternText(exactPattern(name))})`);
}

/** The cost of frames that match all of `match`, per value of the fields and labels in `by`. */
export function framesOf(
	query: string,
	cost: "flat" | "cum",
	match: Record<string, string>,
	by: string[],
): string {
	const profiles = insideTop(clean(query)) ?? query;
	const frames = Object.entries(match).map(([field, value]) => `${field}=${quote(value)}`);
	const fields = [...new Set(by)].map(formatLabel).join(", ");
	return onProfiles(profiles, (p) => `${cost} by (${fields}) (${p}, {${frames.join(", ")}})`);
}

/** The cost of each line of a function, per value of `labels`. */
export const linesOf = (
	query: string,
	cost: "flat" | "cum",
	name: string,
	labels: string[],
): string => framesOf(query, cost, { function: name }, [...labels, "filename", "line"]);

export interface ActiveFilter {
	filter: string;
	/** Its second argument. */
	pattern: string;
	/** The function, if the pattern matches exactly one name. */
	name: string | null;
}

const filterCalls = (text: string): { call: CallNode; pattern: string }[] =>
	readQuery(text).calls.flatMap((call) => {
		const last = call.args.length === 2 ? bare(call.args[1]) : undefined;
		if (!isFilter(call.name) || last?.type !== "string") return [];
		return [{ call, pattern: last.value }];
	});

/** The filters of queries in the order they apply; a filter of both sides is listed once. */
export function activeFilters(queries: string[]): ActiveFilter[] {
	const out = new Map<string, ActiveFilter>();
	for (const q of queries)
		for (const { call, pattern } of filterCalls(q).reverse()) {
			const key = `${call.name} ${pattern}`;
			const name = filterKind(call.name) === "frames" ? exactName(pattern) : null;
			if (!out.has(key)) out.set(key, { filter: call.name, pattern, name });
		}
	return [...out.values()];
}

/** Whether the call at `at` is an operand, so that its replacement may need parentheses. */
function isOperand(n: QueryNode, at: Span): boolean {
	const operators = n.type === "binary" || n.type === "unary";
	const here = (c: QueryNode) => c.start === at.start && c.end === at.end && c.type === "call";
	return queryChildren(n).some((c) => (here(c) && operators) || isOperand(c, at));
}

/** Removes a filter wherever the query has it. */
export function removeFilter(query: string, gone: { filter: string; pattern: string }): string {
	let q = query;
	for (;;) {
		const found = filterCalls(q).find(
			(f) => f.call.name === gone.filter && f.pattern === gone.pattern,
		);
		if (!found) return q;
		const { call } = found;
		const inner = textOf(q, call.args[0]);
		const { tree } = readQuery(q);
		const apart = call.args[0].type === "binary" && !!tree && isOperand(tree, call);
		q = splice(q, [{ start: call.start, end: call.end, insert: apart ? `(${inner})` : inner }]);
	}
}

/* ---- groups ---- */

/** `A - B` of profiles; null for anything else. */
const minusIn = (n: QueryNode): BinaryNode | null =>
	n.type === "binary" && n.op.name === "-" && maybeProfiles(n) ? n : null;

/** Whether profiles are merged inside `n`, which drops labels. */
function mergesInside(n: QueryNode): boolean {
	return (n.type === "call" && n.name === "merge") || queryChildren(n).some(mergesInside);
}

/** `n` with its first argument replaced. */
function onFirst(text: string, n: CallNode, change: (n: QueryNode) => string): string {
	const [first, ...more] = n.args;
	return rewrite(n.name, [change(first), ...more.map((a) => textOf(text, a))]);
}

function grouped(text: string, n: QueryNode, modifier: string): string {
	const group = (inner: QueryNode) => grouped(text, inner, modifier);
	const merge = (of: QueryNode) => rewrite("merge", [textOf(text, of)], modifier);
	const minus = minusIn(n);
	if (minus) return `${group(minus.lhs)} - ${group(minus.rhs)}`;
	if (n.type === "call" && n.args.length) {
		if (isFilter(n.name)) return onFirst(text, n, group);
		if (isDiff(n.name) && n.args.length === 2) return rewrite(n.name, n.args.map(group));
		const [inner] = n.args;
		if (n.name === "merge") return mergesInside(inner) ? group(bare(inner)) : merge(inner);
	}
	if (!mergesInside(n)) return merge(n);
	if (n.type === "paren") return `(${group(n.inner)})`;
	if (n.type !== "binary") return merge(n);
	// `profiles * number`: group the profiles, keep the number.
	const side = maybeProfiles(n.lhs) ? n.lhs : n.rhs;
	const at = { start: side.start - n.start, end: side.end - n.start };
	return splice(textOf(text, n), [{ ...at, insert: group(side) }]);
}

/** `a, b` as it is written. */
const labelsOf = (labels: string): string =>
	labels
		.split(/,\s*/)
		.map(formatLabel)
		.join(", ");

/** One profile per value of `label`; "" merges all into one. */
export function groupBy(query: string, label: string): string {
	return onProfiles(query, (p) => {
		const { tree } = readQuery(p);
		return tree ? grouped(p, tree, label ? `by (${labelsOf(label)})` : "") : p;
	});
}

/** The labels of the query's first `merge by`; [] for none. */
export function groupLabels(query: string): string[] {
	const merge = readQuery(query).calls.find((c) => c.name === "merge");
	return merge?.modifier?.word === "by" ? merge.modifier.labels : [];
}

/** The query with another grouping; as it is if it has none and gets none. */
export const regrouped = (query: string, label: string): string =>
	label || groupLabels(query).length ? groupBy(query, label) : query;

/** The query without its group; a lone selector is one again. */
export function ungrouped(query: string): string {
	if (!groupLabels(query).length) return query;
	const merged = groupBy(query, "");
	const inner = callArgument(merged, "merge");
	return inner && parseSelector(inner) ? inner : merged;
}

/* ---- alerts ---- */

const ALERT_WINDOW_S = 300;

/** The newer side of a difference, which is what an alert can watch. */
function newerSide(text: string, n: QueryNode): string {
	const newer = (inner: QueryNode) => newerSide(text, inner);
	const minus = minusIn(n);
	if (minus) return newer(minus.lhs);
	if (n.type === "paren") return newer(n.inner);
	if (n.type === "call" && n.args.length) {
		if (isDiff(n.name)) return newer(n.args[0]);
		if (isFilter(n.name)) return onFirst(text, n, newer);
	}
	return textOf(text, n);
}

/** The profiles as a cost per second, over the windows of the query, else those of an alert. */
function perSecond(text: string): string {
	const { tree } = readQuery(text);
	if (!tree) return text;
	const windowed = windowedIn(tree);
	const window = `[${formatDuration(ALERT_WINDOW_S)}]`;
	return splice(
		text,
		profileSelectors(tree)
			.filter((s) => !windowed.has(s))
			.map((s) => {
				const own = s.range === null ? window : text.slice(s.head, s.ranged);
				const all = text.slice(s.start, s.head) + own + text.slice(s.ranged, s.end);
				return { start: s.start, end: s.end, insert: `rate(${all})` };
			}),
	);
}

/** ` / 1e9` if amounts are told in nanoseconds: an alert on CPU time is in cores. */
const inSeconds = (type: string): string =>
	type.endsWith(":delta") && type.split(":")[2] === "nanoseconds" ? " / 1e9" : "";

/**
 * What an alert compares with its limit: the cost of a function and its callees, or of all for the
 * name null. Amounts are told per second. If the type is not known, it is a share, or the total of a
 * window. Queries that give costs are taken as they are.
 */
export function alertOn(query: string, name: string | null, type: string): string {
	const q = clean(query);
	const all = flameQuery(insideTop(q) ?? q);
	const { tree } = readQuery(all);
	if (!tree || !maybeProfiles(tree)) return q;
	const profiles = newerSide(all, tree);
	const per = groupLabels(profiles).length
		? profiles
		: grouped(profiles, must(readQuery(profiles).tree, "the tree of a query"), "by (job)");
	const frames = name === null ? "" : `, {function=${quote(name)}}`;
	const windowed = () => withWindow(per, ALERT_WINDOW_S, 0);
	if (!type && name !== null) return `cum_share(${windowed()}${frames})`;
	const measured = type.endsWith(":delta") ? perSecond(per) : windowed();
	return `${name === null ? "total" : "cum"}(${measured}${frames})${inSeconds(type)}`;
}

/** The expression as a share, or a share as a cost of profiles of `type`; null if it is neither. */
export function alertAs(expr: string, of: "share" | "cost", type: string): string | null {
	const q = clean(expr);
	const { tree } = readQuery(q);
	const side = tree?.type === "binary" && tree.op.name === "/" ? bare(tree.lhs) : tree;
	if (side?.type !== "call" || side.args.length !== 2) return null;
	if (side.name !== "cum" && side.name !== "cum_share") return null;
	const [profiles, frames] = argsOf(q, side);
	if (of === "share") return `cum_share(${profiles}, ${frames})`;
	const measured = type.endsWith(":delta") ? perSecond(profiles) : profiles;
	return `cum(${measured}, ${frames})${inSeconds(type)}`;
}

/** Takes `> 5` off the end of an expression: what is compared, and the limit; else all of it. */
export function splitLimit(expr: string): { expr: string; over: string | null } {
	const q = clean(expr);
	const { tree } = readQuery(q);
	if (tree?.type !== "binary" || tree.op.name !== ">" || tree.modified) return { expr: q, over: null };
	const over = textOf(q, tree.rhs);
	if (tree.rhs.type !== "number" || !Number.isFinite(Number(over))) return { expr: q, over: null };
	return { expr: textOf(q, tree.lhs), over };
}

/** The expression of the rule. */
export function overLimit(expr: string, over: string): string {
	const q = clean(expr);
	const { tree } = readQuery(q);
	const apart = tree?.type === "binary" && !"+-*/%^".includes(tree.op.name);
	return `${apart ? `(${q})` : q} > ${over}`;
}

/* ---- significance ---- */

/**
 * A side that is a selector, or one merged: with its own window, or one of `seconds`. Else null.
 */
function plainSide(text: string, n: QueryNode, seconds: number): string | null {
	const side = bare(n);
	const inner =
		side.type === "call" && side.name === "merge" && !side.modifier && side.args.length === 1
			? bare(side.args[0])
			: side;
	if (inner.type !== "selector" || (inner.range === null && seconds <= 0)) return null;
	return withWindow(textOf(text, inner), seconds, 0);
}

/** The two sides of a difference that matches all labels; else null. */
function sidesOf(n: QueryNode | null): [QueryNode, QueryNode] | null {
	if (n?.type === "paren") return sidesOf(n.inner);
	if (n?.type === "call" && isDiff(n.name) && !n.modifier && n.args.length === 2)
		return [n.args[0], n.args[1]];
	const minus = n && minusIn(n);
	return minus && !minus.modified ? [minus.lhs, minus.rhs] : null;
}

/** The base of a difference, as text; null if the query is none. */
export function baseSide(query: string): string | null {
	const q = clean(query);
	const sides = sidesOf(readQuery(q).tree);
	return sides && textOf(q, sides[1]);
}

/**
 * `changed_interval` of the two sides of a difference, over a window of `seconds`; null if a side is
 * more than a selector.
 */
export function changedQuery(query: string, seconds = 0): string | null {
	const q = clean(query);
	const [next, base] = (sidesOf(readQuery(q).tree) ?? []).map((side) => plainSide(q, side, seconds));
	return next && base ? `changed_interval(${next}, ${base})` : null;
}
