// Reading and writing queries. The server owns the grammar; the page only needs to find the
// selectors of a query, to write them, and to wrap what the user typed. Where it does not
// understand a query it sends it as it stands.
import { formatDuration, parseDuration } from "./timerange";

export type MatchOp = "=" | "!=" | "=~" | "!~";
export const MATCH_OPS: MatchOp[] = ["=", "!=", "=~", "!~"];

export interface Matcher {
	label: string;
	op: MatchOp;
	value: string;
}
export interface Selector {
	name: string;
	matchers: Matcher[];
}

/** A selector found in a query: where it stands, and what follows it. */
export interface FoundSelector extends Selector {
	start: number;
	/** End of the name and matchers, before any `[range]`. */
	end: number;
	range: number | null;
}

export interface Token {
	kind: "name" | "string" | "number" | "punct";
	text: string;
	start: number;
	end: number;
}

const TOKEN = new RegExp(
	[
		"(?<space>\\s+|#[^\\n]*)",
		"(?<string>\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)",
		"(?<number>\\d[\\w.]*)",
		"(?<name>[A-Za-z_][A-Za-z0-9_]*(?::[A-Za-z0-9_]+)*)",
		"(?<punct>=~|!~|!=|==|>=|<=|.)",
	].join("|"),
	"sy",
);

export function tokenize(text: string): Token[] {
	const out: Token[] = [];
	TOKEN.lastIndex = 0;
	for (let m = TOKEN.exec(text); m; m = TOKEN.exec(text)) {
		const kind = Object.entries(m.groups!).find(([, v]) => v !== undefined)![0];
		if (kind !== "space")
			out.push({
				kind: kind as Token["kind"],
				text: m[0],
				start: m.index,
				end: m.index + m[0].length,
			});
	}
	return out;
}

/** Words that take a list of labels in parentheses. */
const LABEL_LISTS = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);
const WORDS = new Set(["offset", "bool", "and", "or", "unless", ...LABEL_LISTS]);

export function unquote(s: string): string {
	const body = s.slice(1, -1);
	if (s[0] === "`") return body;
	return body.replace(/\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)/gs, (_, e: string) => {
		if (e.length > 1) return String.fromCharCode(parseInt(e.slice(1), 16));
		return ({ n: "\n", t: "\t", r: "\r" } as Record<string, string>)[e] ?? e;
	});
}

/** As an expression that matches this text. */
export const escapeRegexp = (s: string): string => s.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export function quote(s: string): string {
	return (
		'"' +
		s
			.replace(/[\\"]/g, "\\$&")
			.replace(/\n/g, "\\n")
			.replace(/\t/g, "\\t")
			.replace(/\r/g, "\\r") +
		'"'
	);
}

/** Reads `{a="b",...}` from the token after the opening one; null where it is none. */
function readMatchers(
	tokens: Token[],
	at: number,
	close: string,
): { matchers: Matcher[]; next: number } | null {
	const matchers: Matcher[] = [];
	let i = at;
	while (i < tokens.length && tokens[i].text !== close) {
		const [label, op, value] = [tokens[i], tokens[i + 1], tokens[i + 2]];
		if (!label || !op || !value || label.kind !== "name" || value.kind !== "string")
			return null;
		if (!MATCH_OPS.includes(op.text as MatchOp)) return null;
		matchers.push({ label: label.text, op: op.text as MatchOp, value: unquote(value.text) });
		i += 3;
		if (tokens[i]?.text === ",") i++;
		else if (tokens[i]?.text !== close) return null;
	}
	return tokens[i] ? { matchers, next: i + 1 } : null;
}

function skipParens(tokens: Token[], at: number): number {
	if (tokens[at]?.text !== "(") return at;
	let i = at + 1;
	while (i < tokens.length && tokens[i].text !== ")") i++;
	return i + 1;
}

/** Every selector of a query, in order. */
export function findSelectors(text: string): FoundSelector[] {
	const tokens = tokenize(text);
	const out: FoundSelector[] = [];
	let i = 0;
	while (i < tokens.length) {
		const t = tokens[i];
		const next = tokens[i + 1];
		if (t.kind === "name" && LABEL_LISTS.has(t.text)) {
			i = skipParens(tokens, i + 1);
			continue;
		}
		// `flat(P, {function="x"})`: braces directly after a comma are matchers of frames.
		const nameless = t.text === "{" && tokens[i - 1]?.text !== ",";
		const call = next?.text === "(" || next?.text === "by" || next?.text === "without";
		const named = t.kind === "name" && !WORDS.has(t.text) && !call;
		if (!named && !nameless) {
			if (t.text === "{") i = readMatchers(tokens, i + 1, "}")?.next ?? i + 1;
			else i++;
			continue;
		}
		let at = named ? i + 1 : i;
		const found: FoundSelector = {
			name: named ? t.text : "",
			matchers: [],
			start: t.start,
			end: t.end,
			range: null,
		};
		// `<` opens matchers only directly after the name and before `label op string`.
		const open = tokens[at];
		const angle = named && open?.text === "<" && open.start === t.end;
		if (open && (open.text === "{" || angle)) {
			const m = readMatchers(tokens, at + 1, angle ? ">" : "}");
			if (m) {
				found.matchers = m.matchers;
				found.end = tokens[m.next - 1].end;
				at = m.next;
			} else if (!angle) {
				at++;
			}
		}
		if (tokens[at]?.text === "[" && tokens[at + 2]?.text === "]") {
			found.range = parseDuration(tokens[at + 1].text);
			at += 3;
		}
		out.push(found);
		i = at;
	}
	return out;
}

/** The selector, if the whole query is one (with no range, offset or @). */
export function parseSelector(text: string): Selector | null {
	const trimmed = text.trim();
	const [s, ...rest] = findSelectors(trimmed);
	if (!s || rest.length || s.start !== 0 || s.end !== trimmed.length) return null;
	return { name: s.name, matchers: s.matchers };
}

export function formatSelector(s: Selector): string {
	const m = s.matchers.map((x) => `${x.label}${x.op}${quote(x.value)}`).join(",");
	return m || !s.name ? `${s.name}{${m}}` : s.name;
}

/** The argument of `fn(...)` if the whole query is that one call. */
export function callArgument(text: string, fn: string): string | null {
	const t = text.trim();
	const head = new RegExp(`^${fn}\\s*\\(`).exec(t);
	if (!head || !t.endsWith(")")) return null;
	let depth = 0;
	for (const token of tokenize(t)) {
		if (token.text === "(") depth++;
		if (token.text === ")" && --depth === 0 && token.end !== t.length) return null;
	}
	return depth === 0 ? t.slice(head[0].length, -1).trim() : null;
}

export type Kind = "selector" | "profiles" | "costs" | "top" | "unknown";

const PROFILE_CALLS = new Set([
	"merge",
	"diff",
	"diff_normalized",
	"focus",
	"ignore",
	"hide",
	"show",
	"show_from",
	"prune_from",
	"tagfocus",
	"tagignore",
	"callers",
	"callees",
	"last_over_time",
	"max_over_time",
	"min_over_time",
	"sum_over_time",
	"avg_over_time",
	"rate",
]);
const COST_CALLS = new Set([
	"flat",
	"cum",
	"total",
	"flat_share",
	"cum_share",
	"topk",
	"bottomk",
	"sum",
	"avg",
	"min",
	"max",
	"count",
	"quantile",
	"stddev",
	"group",
	"count_over_time",
	"abs",
	"clamp_min",
	"clamp_max",
	"round",
	"sort",
	"sort_desc",
	"label_replace",
	"label_join",
	"absent",
	"scalar",
	"vector",
	"time",
	"changed",
	"changed_interval",
]);

const FILTERS = new Set(
	"focus ignore hide show show_from prune_from tagfocus tagignore callers callees".split(" "),
);

/** Whether a query takes samples or frames away. */
export function hasFilter(text: string): boolean {
	const tokens = tokenize(text);
	return tokens.some((t, i) => FILTERS.has(t.text) && tokens[i + 1]?.text === "(");
}

/** What a query will probably give; only a guess that saves a round trip. */
export function guessKind(text: string): Kind {
	if (parseSelector(text)) return "selector";
	const tokens = tokenize(text);
	if (tokens[0]?.kind !== "name") return "unknown";
	let depth = 0;
	for (let i = 0; i < tokens.length; i++) {
		if ("([{".includes(tokens[i].text)) depth++;
		else if (")]}".includes(tokens[i].text)) depth--;
		else if (depth === 0 && i > 0 && tokens[i].kind !== "name") return "unknown";
	}
	if (tokens[0].text === "top") return "top";
	if (PROFILE_CALLS.has(tokens[0].text)) return "profiles";
	return COST_CALLS.has(tokens[0].text) ? "costs" : "unknown";
}

/** What the flame graph asks: a lone selector is merged over all its series. */
export function flameQuery(text: string): string {
	const t = text.trim();
	return parseSelector(t) ? `merge(${t})` : t;
}

export function tableQuery(text: string, rows: number): string {
	return `top(${rows}, ${flameQuery(text)})`;
}

/** The profiles inside a `top(k, P)`. */
export function insideTop(text: string): string | null {
	const arg = callArgument(text, "top");
	const m = arg && /^\d+\s*,\s*(.+)$/s.exec(arg);
	return m ? m[1] : null;
}

/** The profiles a query is about. */
export function profilesOf(query: string, kind: Kind = guessKind(query)): string {
	const t = query.trim();
	return kind === "top" ? (insideTop(t) ?? t) : t;
}

/** Cost over time, one line per value of `by` ("" for one line). */
export function chartQuery(text: string, by: string, kind: Kind): string {
	const t = text.trim();
	if (kind === "costs") return t;
	const profiles = profilesOf(t, kind);
	if (!by) return `total(${flameQuery(profiles)})`;
	return `total(merge by (${by}) (${callArgument(profiles, "merge") ?? profiles}))`;
}

/** Whether a query asks for costs per second. */
const isRate = (text: string): boolean => {
	const tokens = tokenize(text);
	return tokens.some((t, i) => t.text === "rate" && tokens[i + 1]?.text === "(");
};

/**
 * The seconds a point of the chart adds up: the query's own range, else the step; of a rate it is
 * one second.
 */
export function chartWindow(text: string, step: number): number {
	if (isRate(text)) return 1;
	return findSelectors(text).find((s) => s.range)?.range ?? step;
}

/**
 * The same query with the cost per second in place of what each step adds up, which only amounts
 * have. A query that says something about time itself stays as it is.
 */
export function withRate(text: string, seconds: number): string {
	const found = findSelectors(text);
	const isTimed = ({ end, range }: FoundSelector) =>
		range !== null || /^\s*(offset\b|@)/.test(text.slice(end));
	if (found.some(isTimed)) return text;
	let out = "";
	let from = 0;
	for (const s of found) {
		out += text.slice(from, s.start);
		out += `rate(${text.slice(s.start, s.end)}[${formatDuration(seconds)}])`;
		from = s.end;
	}
	return out + text.slice(from);
}

/** Gives every selector without a range one, and an offset. */
export function withWindow(text: string, seconds: number, offsetSeconds: number): string {
	const t = text.trim();
	const offset = offsetSeconds > 0 ? ` offset ${formatDuration(offsetSeconds)}` : "";
	let out = "";
	let from = 0;
	for (const s of findSelectors(t)) {
		if (s.range !== null) continue;
		out += t.slice(from, s.end) + `[${formatDuration(seconds)}]${offset}`;
		from = s.end;
	}
	return out + t.slice(from);
}

/** Sets one equality matcher in every selector of a query. */
export function withMatcher(text: string, label: string, value: string): string {
	const t = text.trim();
	let out = "";
	let from = 0;
	for (const s of findSelectors(t)) {
		const matchers = s.matchers.filter((m) => m.label !== label);
		matchers.push({ label, op: "=", value });
		out += t.slice(from, s.start) + formatSelector({ name: s.name, matchers });
		from = s.end;
	}
	return out + t.slice(from);
}

export interface Side {
	query: string;
	start: number;
	end: number;
}

/** Whether a query keeps profiles apart by labels: `merge by (version) (...)`. */
function isGrouped(text: string): boolean {
	const tokens = tokenize(text);
	return tokens.some(
		(t, i) => t.text === "merge" && /^(by|without)$/.test(tokens[i + 1]?.text ?? ""),
	);
}

export interface DiffQuery {
	query: string;
	time: number;
	/** What is compared, each to be asked at the same time. */
	next: string;
	base: string;
}

/**
 * The difference of two windows as one query and the time to ask it for. The later end is that
 * time, so that no offset is negative. Normalized, the new side has the total of the base.
 */
export function diffQuery(next: Side, base: Side, normalized = false): DiffQuery {
	const time = Math.max(next.end, base.end);
	const part = (s: Side) => {
		if (isGrouped(s.query)) return withWindow(s.query, s.end - s.start, time - s.end);
		const arg = callArgument(s.query, "merge") ?? s.query;
		return `merge(${withWindow(arg, s.end - s.start, time - s.end)})`;
	};
	const sides = { next: part(next), base: part(base) };
	const call = normalized ? "diff_normalized" : "diff";
	return { query: `${call}(${sides.next}, ${sides.base})`, time, ...sides };
}
