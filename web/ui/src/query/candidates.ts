// The candidates of completion, best first, and the text when one is chosen.
import { type ProfileType, shortTypeName } from "../shared/api";
import type { CaretContext } from "./complete";
import { exactPattern } from "./edit";
import { type Language, type LanguageFunction, NO_LANGUAGE, takesLabels } from "./language";
import { queryWords } from "./syntax";
import { escapeRegexp, quote } from "./text";

export type CandidateKind =
	| "type"
	| "series"
	| "function"
	| "aggregation"
	| "keyword"
	| "label"
	| "field"
	| "operator"
	| "value"
	| "duration"
	| "code";

export interface Candidate {
	kind: CandidateKind;
	/** The text that is shown, matched, and written (quoted where needed). */
	text: string;
	help?: string;
	/** A function's form of call. */
	usage?: string;
}

/** Answers of the server; empty until they arrive. */
export interface Known {
	types: ProfileType[];
	/** Names of all series. */
	series: string[];
	language: Language;
	/** Labels, values or functions of code: the answer to `namesQuestion`. */
	names: string[];
}

export const NOTHING_KNOWN: Known = {
	types: [],
	series: [],
	language: NO_LANGUAGE,
	names: [],
};

const NAMES_MAX = 300; // per answer; typing more narrows it

/** The question for `names`; null if there is none. */
export function namesQuestion(c: CaretContext): { name: string; args: Record<string, string> } | null {
	const limit = String(NAMES_MAX);
	const match: Record<string, string> = c.selector ? { "match[]": c.selector } : {};
	if (c.wanted === "code")
		return { name: "functions", args: { substring: plain(c.typed), limit, ...match } };
	if (c.wanted === "label" && c.place !== "frames") return { name: "labels", args: match };
	if (c.wanted === "value" && c.label)
		return { name: `label/${encodeURIComponent(c.label)}/values`, args: match };
	return null;
}

/** A regular expression as the plain name it was typed for. */
function plain(typed: string): string {
	return typed.replace(/\\[QE]/g, "").replace(/\\(.)/g, "$1").replace(/^\^|\$$/g, "");
}

/** Help for keywords. The list of keywords is the server's. */
const KEYWORD_HELP: Record<string, string> = {
	by: "one element per value of these labels",
	without: "one element per value of all labels but these",
	on: "match elements by these labels",
	ignoring: "match elements by all labels but these",
	group_left: "many on the left match one on the right",
	group_right: "many on the right match one on the left",
	bool: "1 if true, 0 if false",
	offset: "evaluate at an earlier time",
	and: "elements that are on both sides",
	or: "elements of both sides",
	unless: "elements that are not on the right",
	atan2: "the arc tangent of two costs",
};
const OPERATORS: [string, string][] = [
	["=", "is"],
	["!=", "is not"],
	["=~", "matches, as a whole"],
	["!~", "does not match"],
];
const DURATIONS: [string, string][] = [
	["5m", "5 minutes"],
	["1m", "1 minute"],
	["15m", "15 minutes"],
	["30m", "30 minutes"],
	["1h", "1 hour"],
	["6h", "6 hours"],
	["1d", "1 day"],
	["7d", "7 days"],
];
const UNITS: [string, string][] = [
	["m", "minutes"],
	["s", "seconds"],
	["h", "hours"],
	["d", "days"],
	["w", "weeks"],
];

const keywords = (...names: string[]): Candidate[] =>
	names.map((text) => ({ kind: "keyword", text, help: KEYWORD_HELP[text] }));

function functionsOf(language: Language): Candidate[] {
	const some = (list: LanguageFunction[], kind: CandidateKind) =>
		list.map((f) => ({
			kind,
			text: f.name,
			help: f.help,
			usage: f.usage,
		}));
	return [
		...some(language.functions, "function"),
		...some(language.aggregations, "aggregation"),
	];
}

function operands(c: CaretContext, known: Known): Candidate[] {
	const types = known.types.map(
		(t): Candidate => ({
			kind: "type",
			text: shortTypeName(t, known.types),
			help: `${t.name}, ${t.sample_type} in ${t.sample_unit}`,
		}),
	);
	const profiles = new Set(known.types.map((t) => t.name));
	const series = known.series
		.filter((s) => !profiles.has(s))
		.map((text): Candidate => ({ kind: "series", text, help: "numbers" }));
	let more: Candidate[] = [];
	const operator = known.language.operators.find((o) => o.name === c.before);
	if (operator?.kind === "comparison") more = keywords("on", "ignoring", "bool");
	else if (operator) more = keywords("on", "ignoring");
	else if (c.before === "bool") more = keywords("on", "ignoring");
	else if (c.before === "on" || c.before === "ignoring")
		more = keywords("group_left", "group_right");
	return [...types, ...functionsOf(known.language), ...more, ...series];
}

function behind(c: CaretContext, known: Known): Candidate[] {
	const { functions, aggregations, operators, keywords: all } = known.language;
	const call = [...functions, ...aggregations].find((f) => f.name === c.before);
	if (call?.modifiers.length) return keywords(...call.modifiers);
	const more = c.before === ")" ? ["by", "without"] : [];
	const between = all.filter((k) => operators.some((o) => o.name === k));
	return keywords("offset", ...more, ...between);
}

function durations(typed: string): Candidate[] {
	const number = /^\d+/.exec(typed)?.[0];
	const list = number
		? UNITS.map(([unit, name]) => [number + unit, `${number} ${name}`])
		: DURATIONS;
	return list.map(([text, help]) => ({ kind: "duration", text, help }));
}

function labels(c: CaretContext, known: Known): Candidate[] {
	const fields = known.language.frameFields.map((text): Candidate => ({ kind: "field", text, help: "of frames" }));
	if (c.place === "frames") return fields;
	// A label that is not an identifier can only be written in a string.
	const names = known.names
		.filter((n) => c.place === "string" || /^[A-Za-z_]\w*$/.test(n))
		.sort((a, b) => Number(a.startsWith("__")) - Number(b.startsWith("__")));
	const found = names.map((text): Candidate => ({ kind: "label", text }));
	const ofFrames =
		c.place === "list" && known.language.functions.some((f) => f.name === c.call && f.byFrames);
	return ofFrames ? [...fields, ...found] : found;
}

/** All candidates, not ranked yet. */
export function candidates(c: CaretContext, known: Known): Candidate[] {
	switch (c.wanted) {
		case "operand":
			return operands(c, known);
		case "after":
			return behind(c, known);
		case "label":
			return labels(c, known);
		case "operator":
			return OPERATORS.map(([text, help]) => ({ kind: "operator", text, help }));
		case "value":
			return known.names.map((text) => ({ kind: "value", text }));
		case "code":
			return known.names.map((text) => ({ kind: "code", text }));
		case "duration":
			return durations(c.typed);
		case "instant":
			return ["start()", "end()"].map((text) => ({
				kind: "keyword",
				text,
				help: `the ${text.slice(0, -2)} of what is asked for`,
			}));
	}
}

export interface Ranked extends Candidate {
	/** The positions of the typed characters in the text. */
	hits: number[];
	score: number;
}

/** A match of at least this score is preselected. */
export const SURE = 40;

function span(at: number, n: number): number[] {
	return Array.from({ length: n }, (_, i) => at + i);
}

/** How well `typed` matches, and where; null if it does not. */
export function match(text: string, typed: string): { score: number; hits: number[] } | null {
	if (!typed) return { score: SURE, hits: [] };
	const [t, p] = [text.toLowerCase(), typed.toLowerCase()];
	if (text === typed) return { score: 100, hits: span(0, p.length) };
	if (t.startsWith(p)) return { score: t === p ? 95 : 80, hits: span(0, p.length) };
	for (let at = t.indexOf(p); at > 0; at = t.indexOf(p, at + 1))
		if (!/[a-z0-9]/i.test(text[at - 1])) return { score: 60, hits: span(at, p.length) };
	const inside = t.indexOf(p);
	if (inside > 0) return { score: SURE, hits: span(inside, p.length) };
	const hits: number[] = [];
	for (let i = 0; i < t.length && hits.length < p.length; i++)
		if (t[i] === p[hits.length]) hits.push(i);
	if (hits.length < p.length || p.length < 2 || hits[0] > 0) return null;
	return { score: 20, hits };
}

const isExpression = (c: CaretContext) => c.op === "=~" || c.op === "!~";

/** The best first; equal ones keep their order. */
export function rank(c: CaretContext, all: Candidate[], max: number): Ranked[] {
	const typed = c.wanted === "code" || isExpression(c) ? plain(c.typed) : c.typed;
	const seen = new Set<string>();
	return all
		.flatMap((x) => {
			const m = match(x.text, typed);
			if (!m || seen.has(x.text)) return [];
			seen.add(x.text);
			return [{ ...x, ...m }];
		})
		.sort((a, b) => b.score - a.score)
		.slice(0, max);
}

/** As a string, in backquotes where quotes would double its backslashes. */
function quoted(c: CaretContext, value: string): string {
	const raw = c.quote === "`" || (isExpression(c) && value.includes("\\"));
	if (raw && !/[`\n\r]/.test(value)) return "`" + value + "`";
	if (c.quote === "'") return "'" + quote(value).slice(1, -1).replace(/'/g, "\\'") + "'";
	return quote(value);
}

/** The content of the string; a function becomes a pattern that matches it exactly. */
function stringOf(c: CaretContext, x: Candidate): string {
	if (c.wanted === "label" || c.op === "=" || c.op === "!=") return x.text;
	const whole = c.place === "matchers" || c.place === "frames"; // these match as a whole
	return c.kept + (whole ? escapeRegexp(x.text) : exactPattern(x.text));
}

export interface CaretEdit {
	start: number;
	end: number;
	insert: string;
	/** The caret afterwards. */
	caret: number;
	/** Whether to offer the next candidates at once. */
	more: boolean;
}

/** The edit when `x` is chosen. */
export function accept(text: string, c: CaretContext, x: Candidate): CaretEdit {
	const rest = text.slice(c.end);
	const glued = c.start > 0 && /[\w)\]}"'`]/.test(text[c.start - 1]);
	const edit = (insert: string, back = 0, more = false): CaretEdit => ({
		start: c.start,
		end: c.end,
		insert,
		caret: c.start + insert.length - back,
		more,
	});
	if (x.kind === "function" || x.kind === "aggregation") {
		// Existing brackets are kept: `su|(x)`.
		const [next] = queryWords(rest);
		if (next && (next.text === "(" || takesLabels(next.text))) return edit(x.text);
		const nothing = x.usage?.endsWith("()");
		return edit(`${x.text}()`, nothing ? 0 : 1, !nothing);
	}
	if (x.kind === "keyword") {
		const before = glued ? " " : "";
		if (takesLabels(x.text) && !/^\s*\(/.test(rest))
			return edit(`${before}${x.text} ()`, 1, true);
		if (x.text.endsWith("()")) return edit(x.text);
		const after = rest.startsWith(" ") ? "" : " ";
		return edit(before + x.text + after, 0, !takesLabels(x.text));
	}
	if (x.kind === "duration") return edit(x.text + (closesWindow(text, c) ? "]" : ""));
	if (x.kind === "operator") return edit(x.text, 0, !/^\s*["'`]/.test(rest));
	if (c.quote && (c.wanted === "value" || c.wanted === "code" || c.place === "string"))
		return edit(quoted(c, stringOf(c, x)));
	if (c.wanted === "label" && c.place !== "list") return edit(x.text, 0, !/^\s*[=!]/.test(rest));
	return edit(x.text);
}

/** Whether a duration must close the bracket of its window; an offset has none. */
function closesWindow(text: string, c: CaretContext): boolean {
	return /\[\s*$/.test(text.slice(0, c.start)) && !/^\s*\]/.test(text.slice(c.end));
}
