// The words of a query. This is the only tokenizer of the page, and follows the server's (lexer.re).
// Colours, completion and the reader use it. It accepts any text; the server reports errors.
import { must } from "../shared/must";
import { functionNamed, isKeyword, isNumber, takesLabels } from "./language";
import type { Span } from "./text";

export type WordKind =
	| "name"
	| "function"
	| "keyword"
	| "label"
	| "string"
	| "number"
	| "operator"
	| "punct"
	| "comment";

export interface Word extends Span {
	kind: WordKind;
	text: string;
	/** A string without its closing quote. */
	open?: boolean;
}

const BETWEEN = ["(?<space>[ \\t\\r\\n]+)", "(?<comment>#[^\\r\\n]*)"];
const STRING = [
	"(?<string>\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\"|'(?:[^'\\\\\\n]|\\\\[^\\n])*'|`[^`]*`)",
	"(?<open>[\"'][^\\n]*|`[^]*)",
];
const NUMBER = "(?<number>(?:0[xX][0-9a-fA-F]+|(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][-+]?\\d+)?)\\w*)";
const sticky = (...parts: string[]) => new RegExp(parts.join("|"), "sy");

const IN_QUERY = sticky(
	...[...BETWEEN, ...STRING, NUMBER],
	"(?<name>[A-Za-z_:][\\w:]*)",
	"(?<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=!@])",
	"(?<punct>[^])",
);
/** Between the braces of a selector. */
const IN_MATCHERS = sticky(
	...[...BETWEEN, ...STRING, NUMBER],
	"(?<name>[A-Za-z_]\\w*)",
	"(?<operator>=~|!~|!=|[=!<>])",
	"(?<punct>[^])",
);

/** Between the brackets of a window, where a colon begins no name. */
const IN_BRACKETS = sticky(
	...[...BETWEEN, ...STRING, NUMBER],
	"(?<name>[A-Za-z_]\\w*)",
	"(?<operator>[-+*/%^])",
	"(?<punct>[^])",
);

/** `<` and behind it a label, an operator and the beginning of a string. */
const ANGLE = /^<\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=)\s*["'`]/;
const ANGLE_MAX = 200;

/** Whether `w` is a `<` that opens matchers rather than a comparison. */
function opensMatchers(text: string, w: Word, before: Word | undefined): boolean {
	if (w.text !== "<" || before?.kind !== "name" || before.end !== w.start) return false;
	return ANGLE.test(text.slice(w.start, w.start + ANGLE_MAX));
}

/** Words with the kinds that follow from their text and from the matchers around them. */
function split(text: string): Word[] {
	const out: Word[] = [];
	let closer = "";
	for (let at = 0; at < text.length; ) {
		const pattern = closer === "]" ? IN_BRACKETS : closer ? IN_MATCHERS : IN_QUERY;
		pattern.lastIndex = at;
		const m = must(pattern.exec(text), "a word of the query");
		const groups = Object.entries(m.groups ?? {});
		const [kind] = must(groups.find(([, v]) => v !== undefined), "the kind of a word");
		const start = at;
		at += m[0].length;
		if (kind === "space") continue;
		const w: Word = { kind: kind as WordKind, text: m[0], start, end: at };
		if (kind === "open") Object.assign(w, { kind: "string", open: true });
		if (w.text === closer) {
			closer = "";
			w.kind = "punct";
		} else if (closer && closer !== "]") w.kind = w.kind === "name" ? "label" : w.kind;
		else if (w.text === "{") closer = "}";
		else if (w.text === "[") closer = "]";
		else if (opensMatchers(text, w, out[out.length - 1])) {
			closer = ">";
			w.kind = "punct";
		}
		out.push(w);
	}
	return out;
}

/** The kind of a name, which depends on the words behind it. */
function nameKind(words: Word[], i: number): WordKind {
	const [word, next] = [words[i].text, words[i + 1]];
	if (isNumber(word)) return "number";
	// `start()` is a function, but not in `@ start()`.
	if (next?.text === "(" && words[i - 1]?.text !== "@" && functionNamed(word)) return "function";
	if (isKeyword(word)) return "keyword";
	if (next?.text === "(") return "function";
	return next && takesLabels(next.text) && words[i + 2]?.text === "(" ? "function" : "name";
}

/** All words of `text`, in order, without spaces. */
export function queryWords(text: string): Word[] {
	const out = split(text);
	let list = false;
	out.forEach((w, i) => {
		if (w.kind === "string" || w.kind === "comment") return;
		if (w.text === "(") list = takesLabels(out[i - 1]?.text ?? "");
		else if (w.text === ")") list = false;
		else if (w.kind === "name") w.kind = list ? "label" : nameKind(out, i);
	});
	return out;
}

/** Whether the brackets of `text` match. */
export function balanced(text: string): boolean {
	const open: string[] = [];
	for (const w of queryWords(text)) {
		if (w.kind !== "punct" && w.text !== "<") continue;
		const close = { "(": ")", "{": "}", "[": "]" }[w.text];
		if (close) open.push(close);
		else if (")}]".includes(w.text) && open.pop() !== w.text) return false;
	}
	return open.length === 0;
}

/** The word, or else the place, at the server's line and column (in characters, from 1). */
export function placeOf(text: string, line: number, column: number): Span | null {
	if (line < 1 || column < 1) return null;
	const lines = text.split("\n");
	if (line > lines.length) return null;
	const before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
	const within = [...lines[line - 1]].slice(0, column - 1).join("").length;
	const start = before + within;
	const word = queryWords(text).find((w) => w.start <= start && start < w.end);
	const end = word ? word.end : start + 1;
	// If a string or comment has several lines, only the first is marked.
	return { start, end: Math.min(end, Math.max(start + 1, before + lines[line - 1].length)) };
}

export interface Segment extends Span {
	kind: WordKind | "";
	wrong: boolean;
}

/** `text` cut where its look changes; `wrong` may be just behind its end. */
export function segments(text: string, wrong: Span | null): Segment[] {
	const out: Segment[] = [];
	const add = (start: number, end: number, kind: WordKind | "") => {
		const cuts = [start, wrong?.start ?? start, wrong?.end ?? start, end]
			.map((x) => Math.min(end, Math.max(start, x)))
			.sort((a, b) => a - b);
		for (let i = 0; i + 1 < cuts.length; i++) {
			const [a, b] = [cuts[i], cuts[i + 1]];
			const hit = !!wrong && a >= wrong.start && b <= wrong.end;
			if (a < b) out.push({ start: a, end: b, kind, wrong: hit });
		}
	};
	let at = 0;
	for (const w of queryWords(text)) {
		add(at, w.start, "");
		add(w.start, w.end, w.kind);
		at = w.end;
	}
	add(at, text.length, "");
	return out;
}
