// The words of a query, for colouring and completion: it never fails, whatever is typed. The
// server's parser says what is right; this says what things look like.

export type Kind =
	| "name"
	| "function"
	| "keyword"
	| "label"
	| "string"
	| "number"
	| "operator"
	| "punct"
	| "comment";

export interface Word {
	kind: Kind;
	text: string;
	start: number;
	end: number;
	/** A string whose end is not there yet. */
	open?: boolean;
}

const WORD = new RegExp(
	[
		"(?<space>\\s+)",
		"(?<comment>#[^\\n]*)",
		"(?<string>\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)",
		"(?<open>[\"'`][^]*)",
		"(?<number>\\.?\\d[\\w.]*)",
		"(?<name>[A-Za-z_]\\w*(?::\\w*)*)",
		"(?<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=!@])",
		"(?<punct>[^])",
	].join("|"),
	"sy",
);

/** Words that take a list of labels in parentheses. */
export const LABEL_LISTS = new Set([
	"by",
	"without",
	"on",
	"ignoring",
	"group_left",
	"group_right",
]);
const BETWEEN = ["and", "or", "unless", "atan2"];
export const KEYWORDS = new Set([...LABEL_LISTS, ...BETWEEN, "offset", "bool"]);
/** Behind these an operand stands. */
export const BINARY = new Set([
	...["+", "-", "*", "/", "%", "^", "==", "!=", ">=", "<=", "<", ">"],
	...BETWEEN,
]);

const ANGLE = /^<\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=)\s*["'`]/;

function split(text: string): Word[] {
	const out: Word[] = [];
	WORD.lastIndex = 0;
	for (let m = WORD.exec(text); m; m = WORD.exec(text)) {
		const [kind] = Object.entries(m.groups!).find(([, v]) => v !== undefined)!;
		if (kind === "space") continue;
		const word: Word = {
			kind: kind === "open" ? "string" : (kind as Kind),
			text: m[0],
			start: m.index,
			end: m.index + m[0].length,
		};
		if (kind === "open") word.open = true;
		out.push(word);
	}
	return out;
}

/** What a name is: it depends on what surrounds it. */
function nameKind(words: Word[], i: number, inLabels: boolean): Kind {
	if (inLabels) return "label";
	const [word, next] = [words[i].text.toLowerCase(), words[i + 1]];
	if (KEYWORDS.has(word)) return "keyword";
	if (next?.text === "(") return "function";
	const list = next?.kind === "name" && LABEL_LISTS.has(next.text.toLowerCase());
	return list && words[i + 2]?.text === "(" ? "function" : "name";
}

/** Whether `<` at `i` opens matchers, and is no comparison. */
function opensMatchers(text: string, words: Word[], i: number): boolean {
	const [word, before] = [words[i], words[i - 1]];
	if (before?.kind !== "name" || before.end !== word.start) return false;
	return ANGLE.test(text.slice(word.start, word.start + 200));
}

/** All words of `text`, in order; what is between them is space. */
export function words(text: string): Word[] {
	const out = split(text);
	const closers: string[] = []; // of the brackets that are open; labels stand in all but ")"
	for (let i = 0; i < out.length; i++) {
		const w = out[i];
		const top = closers[closers.length - 1];
		if (w.text === "{") closers.push("}");
		else if (w.text === "<" && opensMatchers(text, out, i)) {
			closers.push(">");
			w.kind = "punct";
		} else if (w.text === "(")
			closers.push(LABEL_LISTS.has(out[i - 1]?.text.toLowerCase() ?? "") ? ")list" : ")");
		else if (w.text === top?.[0] && w.kind !== "string") {
			closers.pop();
			w.kind = "punct";
		} else if (w.kind === "name") w.kind = nameKind(out, i, !!top && top !== ")");
	}
	return out;
}

/** Whether every bracket of `text` has its partner. */
export function balanced(text: string): boolean {
	const open: string[] = [];
	for (const w of words(text)) {
		if (w.kind !== "punct" && w.text !== "<") continue;
		const close = { "(": ")", "{": "}", "[": "]" }[w.text];
		if (close) open.push(close);
		else if (")}]".includes(w.text) && open.pop() !== w.text) return false;
	}
	return open.length === 0;
}

export interface Span {
	start: number;
	end: number;
}

/** What the server's line and column (of characters, from 1) point at: a word, or one place. */
export function placeOf(text: string, line: number, column: number): Span | null {
	if (line < 1 || column < 1) return null;
	const lines = text.split("\n");
	if (line > lines.length) return null;
	const before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
	const within = [...lines[line - 1]].slice(0, column - 1).join("").length;
	const start = before + within;
	const word = words(text).find((w) => w.start <= start && start < w.end);
	const end = word ? word.end : start + 1;
	// A string or comment over several lines is marked to the end of its line only.
	return { start, end: Math.min(end, Math.max(start + 1, before + lines[line - 1].length)) };
}

export interface Segment extends Span {
	kind: Kind | "";
	wrong: boolean;
}

/** The whole of `text`, cut where its look changes; `wrong` may lie just behind its end. */
export function segments(text: string, wrong: Span | null): Segment[] {
	const out: Segment[] = [];
	const add = (start: number, end: number, kind: Kind | "") => {
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
	for (const w of words(text)) {
		add(at, w.start, "");
		add(w.start, w.end, w.kind);
		at = w.end;
	}
	add(at, text.length, "");
	return out;
}
