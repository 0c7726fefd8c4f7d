// Edits of a query as text: filters on and off, grouping, and the alert on what is seen. What a
// view shows stays a query that can be shared, alerted on, or put on a dashboard.
import {
	escapeRegexp,
	findSelectors,
	flameQuery,
	guessKind,
	insideTop,
	quote,
	tokenize,
	unquote,
	withWindow,
	type Token,
} from "./query";

export type Filter = "focus" | "ignore" | "hide" | "show" | "show_from" | "prune_from";

const FRAME_FILTERS = new Set<string>([
	...["focus", "ignore", "hide", "show", "show_from", "prune_from"],
	...["callers", "callees"],
]);
const TAG_FILTERS = new Set(["tagfocus", "tagignore"]);
const isFilter = (name: string) => FRAME_FILTERS.has(name) || TAG_FILTERS.has(name);

/** A call in a query: where it stands, what is written before its parenthesis, its arguments. */
interface Call {
	name: string;
	/** `by (job)` and the like, "" for none. */
	modifier: string;
	start: number;
	end: number;
	args: [number, number][];
}

const MODIFIERS = new Set(["by", "without", "on", "ignoring"]);

/** The token behind the parenthesis or brace that token `at` opens; -1 where it stays open. */
function closing(tokens: Token[], at: number): number {
	let depth = 0;
	for (let i = at; i < tokens.length; i++) {
		if ("([{".includes(tokens[i].text)) depth++;
		else if (")]}".includes(tokens[i].text) && --depth === 0) return i + 1;
	}
	return -1;
}

function readCall(text: string, tokens: Token[], at: number): Call | null {
	if (tokens[at].kind !== "name" || MODIFIERS.has(tokens[at].text)) return null;
	let open = at + 1;
	if (MODIFIERS.has(tokens[open]?.text ?? "")) open = closing(tokens, open + 1);
	if (open < 0 || tokens[open]?.text !== "(") return null;
	const close = closing(tokens, open);
	if (close < 0) return null;
	// Commas of `name<a="b",c="d">` are no commas of the call; those of braces lie deeper.
	const selectors = findSelectors(text);
	const args: [number, number][] = [];
	let depth = 0;
	let first = open + 1;
	for (let i = open; i < close; i++) {
		const t = tokens[i];
		if (")]}".includes(t.text)) depth--;
		const comma = t.text === "," && depth === 1;
		const ends =
			i === close - 1 ||
			(comma && !selectors.some((s) => s.start < t.start && t.end < s.end));
		if (ends && i > first) args.push([tokens[first].start, tokens[i - 1].end]);
		if (ends) first = i + 1;
		if ("([{".includes(t.text)) depth++;
	}
	return {
		name: tokens[at].text,
		modifier: open > at + 1 ? text.slice(tokens[at + 1].start, tokens[open - 1].end) : "",
		start: tokens[at].start,
		end: tokens[close - 1].end,
		args,
	};
}

function findCalls(text: string): Call[] {
	const tokens = tokenize(text);
	return tokens.flatMap((_, i) => readCall(text, tokens, i) ?? []);
}

/** The call that is the whole query. */
function wholeCall(text: string): Call | null {
	const tokens = tokenize(text);
	const call = tokens.length ? readCall(text, tokens, 0) : null;
	return call && call.end === tokens[tokens.length - 1].end ? call : null;
}

const textOf = (text: string, [from, to]: [number, number]) => text.slice(from, to);
const argsOf = (text: string, call: Call) => call.args.map((a) => textOf(text, a));

function rewrite(call: Call, args: string[], modifier = call.modifier): string {
	return `${call.name}${modifier ? ` ${modifier} ` : ""}(${args.join(", ")})`;
}

/** Without comments, which would hide what is written behind them. */
function clean(text: string): string {
	if (!text.includes("#")) return text.trim();
	let out = "";
	let from = 0;
	for (const t of tokenize(text)) {
		const gap = text.slice(from, t.start);
		out += (gap.includes("#") ? " " : gap) + t.text;
		from = t.end;
	}
	return out.trim();
}

/** Applies a change to the profiles a query is about; costs stay as they are. */
function onProfiles(query: string, change: (profiles: string) => string): string {
	const q = clean(query);
	const call = wholeCall(q);
	if (call?.name === "top" && call.args.length === 2) {
		const [k, profiles] = argsOf(q, call);
		return rewrite(call, [k, change(flameQuery(profiles))]);
	}
	return !q || guessKind(q) === "costs" ? query : change(flameQuery(q));
}

/* ---- filters ---- */

/** An expression that matches this name and no other, as RE2 reads it. */
export function exactPattern(name: string): string {
	if (escapeRegexp(name) === name) return `^${name}$`;
	return name.includes("\\E")
		? `^${escapeRegexp(name)}$`
		: `^\\Q${name}\\E$`;
}

/** The name an exact pattern is of; null for other patterns. */
export function exactName(pattern: string): string | null {
	const quoted = /^\^\\Q((?:(?!\\E)[^])*)\\E\$$/.exec(pattern);
	if (quoted) return quoted[1];
	const plain = /^\^((?:[^\\^$.*+?()[\]{}|]|\\[\\^$.*+?()[\]{}|])*)\$$/.exec(pattern);
	return plain ? plain[1].replace(/\\(.)/g, "$1") : null;
}

/** As a string of the language: in backquotes where quotes would double its backslashes. */
function patternText(pattern: string): string {
	return pattern.includes("\\") && !/[`\n\r]/.test(pattern) ? `\`${pattern}\`` : quote(pattern);
}

/** What shows the stacks through one function, all but them, and so on: pprof's meaning. */
export function wrapFilter(query: string, filter: Filter, name: string): string {
	return onProfiles(query, (profiles) => {
		const call = wholeCall(profiles);
		const pattern = exactPattern(name);
		const last = call && call.name === filter && call.args[1];
		if (last && stringAt(profiles, last) === pattern) return profiles;
		return `${filter}(${profiles}, ${patternText(pattern)})`;
	});
}

/** Callers of a function, down to it, or what it calls: the halves of its sandwich. */
export function halfOf(query: string, half: "callers" | "callees", name: string): string {
	return onProfiles(query, (p) => `${half}(${p}, ${patternText(exactPattern(name))})`);
}

/** What each line of a function costs; `labels` are those of the elements it is asked for. */
export function linesOf(
	query: string,
	cost: "flat" | "cum",
	name: string,
	labels: string[],
): string {
	const by = [...labels, "filename", "line"].join(", ");
	return onProfiles(query, (p) => `${cost} by (${by}) (${p}, {function=${quote(name)}})`);
}

function stringAt(text: string, range: [number, number]): string | null {
	const [token, ...more] = tokenize(textOf(text, range));
	return token?.kind === "string" && !more.length ? unquote(token.text) : null;
}

export interface ActiveFilter {
	filter: string;
	/** Its regular expression, or what tagfocus takes. */
	pattern: string;
	/** The function, where the pattern is exactly its name. */
	name: string | null;
}

const filterCalls = (text: string): { call: Call; pattern: string }[] =>
	findCalls(text).flatMap((call) => {
		if (!isFilter(call.name) || call.args.length !== 2) return [];
		const pattern = stringAt(text, call.args[1]);
		return pattern === null ? [] : [{ call, pattern }];
	});

/** The filters of queries in the order they apply, each once though two sides have it. */
export function activeFilters(queries: string[]): ActiveFilter[] {
	const out = new Map<string, ActiveFilter>();
	for (const q of queries)
		for (const { call, pattern } of filterCalls(q).reverse()) {
			const key = `${call.name} ${pattern}`;
			const name = FRAME_FILTERS.has(call.name) ? exactName(pattern) : null;
			if (!out.has(key)) out.set(key, { filter: call.name, pattern, name });
		}
	return [...out.values()];
}

/** The query without a filter, on whichever side it stands. */
export function removeFilter(query: string, gone: { filter: string; pattern: string }): string {
	let q = query;
	for (;;) {
		const found = filterCalls(q).find(
			(f) => f.call.name === gone.filter && f.pattern === gone.pattern,
		);
		if (!found) return q;
		const { start, end, args } = found.call;
		q = q.slice(0, start) + textOf(q, args[0]) + q.slice(end);
	}
}

/* ---- groups ---- */

/** `A - B` at the outermost level, where the minus stands; null for anything else. */
function minusIn(text: string): [string, string] | null {
	const selectors = findSelectors(text);
	let depth = 0;
	let at: Token | null = null;
	let before = "";
	for (const t of tokenize(text)) {
		const last = before;
		before = t.text;
		if (last === "offset" || selectors.some((s) => s.start <= t.start && t.end <= s.end))
			continue;
		if ("([{".includes(t.text)) depth++;
		else if (")]}".includes(t.text)) depth--;
		else if (depth === 0 && t.text === "-" && t.start > 0) at = t;
		else if (depth === 0 && t.kind === "punct" && !"@:".includes(t.text)) return null;
	}
	return at ? [text.slice(0, at.start).trim(), text.slice(at.end).trim()] : null;
}

function grouped(profiles: string, modifier: string): string {
	const merge = (p: string) => `merge${modifier ? ` ${modifier} ` : ""}(${p})`;
	const sides = minusIn(profiles);
	if (sides) return sides.map((s) => grouped(s, modifier)).join(" - ");
	const call = wholeCall(profiles);
	if (!call || call.args.length === 0) return merge(profiles);
	const args = argsOf(profiles, call);
	if (call.name === "merge") return merge(args[0]);
	if (isFilter(call.name)) return rewrite(call, [grouped(args[0], modifier), ...args.slice(1)]);
	if (/^diff(_normalized)?$/.test(call.name) && args.length === 2)
		return rewrite(call, args.map((a) => grouped(a, modifier)), "");
	return merge(profiles);
}

/** One profile per value of `label`; "" merges them all into one again. */
export function groupBy(query: string, label: string): string {
	return onProfiles(query, (p) => grouped(p, label ? `by (${label})` : ""));
}

/** The labels a query groups by, outside of any cost; [] for none. */
export function groupLabels(query: string): string[] {
	const merge = findCalls(query).find((c) => c.name === "merge");
	const m = /^by\s*\(([^)]*)\)/.exec(merge?.modifier ?? "");
	return m ? m[1].split(",").map((s) => s.trim()).filter(Boolean) : [];
}

/* ---- alerts ---- */

const ALERT_WINDOW_S = 300;

/** What a share has to exceed to be worth an alert: a quarter more than now, two digits. */
export function alertThreshold(shareNow: number): number {
	const over = Math.min(0.95, Math.max(0.01, Math.abs(shareNow) * 1.25));
	return Number(over.toPrecision(over < 0.1 ? 1 : 2));
}

/** The newer side of a difference: of the two the one that an alert can be about. */
function newerSide(profiles: string): string {
	const sides = minusIn(profiles);
	if (sides) return newerSide(sides[0]);
	const call = wholeCall(profiles);
	if (!call || !call.args.length) return profiles;
	const args = argsOf(profiles, call);
	if (/^diff(_normalized)?$/.test(call.name)) return newerSide(args[0]);
	return isFilter(call.name) ? rewrite(call, [newerSide(args[0]), ...args.slice(1)]) : profiles;
}

/** Fires while a function and what it calls cost more than `over` of all, per job. */
export function alertOn(query: string, name: string, over = 0.1): string {
	const q = clean(query);
	const profiles = newerSide(flameQuery(insideTop(q) ?? q));
	const per = groupLabels(profiles).length ? profiles : grouped(profiles, "by (job)");
	const windowed = withWindow(per, ALERT_WINDOW_S, 0);
	return `cum_share(${windowed}, {function=${quote(name)}}) > ${over}`;
}

/* ---- significance ---- */

/**
 * The selector inside, with its window or one of `seconds`; null where it is more than a selector
 * merged.
 */
function plainSide(text: string, seconds: number): string | null {
	const call = wholeCall(text);
	const inner = call?.name === "merge" && !call.modifier ? argsOf(text, call)[0] : text;
	const [s, ...more] = findSelectors(inner);
	if (!s || more.length || s.start !== 0 || (s.range === null && seconds <= 0)) return null;
	const rest = inner.slice(s.end).replace(/^\[[^\]]*\]/, "");
	if (!/^(\s*offset\s+\w+|\s*@\s*[\w.]+(\(\))?)*$/.test(rest)) return null;
	return s.range === null ? withWindow(inner, seconds, 0) : inner;
}

/**
 * `changed_interval` of what a difference compares, for the end of a window of so many seconds; null
 * where a side is not a selector alone.
 */
export function changedQuery(query: string, seconds = 0): string | null {
	const q = clean(query);
	const call = wholeCall(q);
	const sides =
		call && /^diff(_normalized)?$/.test(call.name) && !call.modifier && call.args.length === 2
			? argsOf(q, call)
			: minusIn(q);
	const [next, base] = (sides ?? []).map((side) => plainSide(side, seconds));
	return next && base ? `changed_interval(${next}, ${base})` : null;
}
