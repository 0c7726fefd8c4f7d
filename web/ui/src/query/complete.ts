// Completion: what the user may be typing at the caret. candidates.ts lists what fits there;
// completion.tsx asks the server for it.
import { argumentTypes, filterKind, operatorNamed, takesLabels } from "./language";
import { findSelectors } from "./read";
import { type Word, queryWords } from "./syntax";
import { formatSelector, MATCH_OPS, type MatchOp, unquote } from "./text";

export type Wanted =
	/** A type, a series or a function. */
	| "operand"
	/** A word after an operand: offset, and, by. */
	| "after"
	| "label"
	| "operator"
	| "value"
	| "duration"
	/** The name of a function of the profiled code. */
	| "code"
	| "instant";

export interface CaretContext {
	wanted: Wanted;
	/** The part of the text that the choice replaces. */
	start: number;
	end: number;
	/** The part of it before the caret, without quotes. */
	typed: string;
	/** The selector around the caret or, in a list of labels, the first one; "" for all series. */
	selector: string;
	/** The function or aggregation around. */
	call: string;
	/** For "operand" and "after": the word before. */
	before: string;
	/** For "label": matchers in braces, a list in parentheses, fields of frames, or a string. */
	place: "matchers" | "frames" | "list" | "string";
	/** For "value" and "code" in matchers. */
	label: string;
	op: MatchOp;
	/** In `a|b`: the alternatives before this one, as written. */
	kept: string;
	quote: string;
	/** Any text is valid here, so nothing is preselected. */
	free: boolean;
}

/** Fields of frames that hold names of functions. */
const CODE_FIELDS = new Set(["function", "system_name"]);
interface Open {
	text: string;
	/** Index of the bracket among the words. */
	at: number;
	call: string;
	commas: number;
	list: boolean;
	frames: boolean;
}

const isName = (w: Word | undefined) =>
	!!w && ["name", "function", "label", "keyword"].includes(w.kind);

/** The brackets open at the end of `all`, outermost first, and the one closed last. */
function openBrackets(all: Word[]): { stack: Open[]; closed: Open | null } {
	const stack: Open[] = [];
	let closed: Open | null = null;
	all.forEach((w, i) => {
		const top = stack[stack.length - 1];
		const before = all[i - 1];
		const matchers = w.text === "<" && w.kind === "punct";
		if (w.kind === "string") return;
		if (matchers || ["(", "{", "["].includes(w.text)) {
			const list = w.text === "(" && takesLabels(before?.text ?? "");
			const named = list ? all[i - 2] : before;
			const call =
				w.text !== "("
					? (top?.call ?? "")
					: isName(named) && named.kind !== "keyword"
						? named.text
						: before?.text === ")" && closed?.list
							? closed.call
							: "";
			const frames =
				w.text === "{" &&
				before?.text === "," &&
				argumentTypes(call, top?.commas ?? 0).includes("frames");
			stack.push({ text: w.text, at: i, call, commas: 0, list, frames });
		} else if ([")", "}", "]"].includes(w.text) || (w.text === ">" && w.kind === "punct"))
			closed = stack.pop() ?? null;
		else if (w.text === "," && top) top.commas++;
	});
	return { stack, closed };
}

/** The selector whose matchers begin at `open`, without the matcher at the caret. */
function selectorAround(all: Word[], open: Open): string {
	const before = all[open.at - 1];
	const name = isName(before) && before.end === all[open.at].start ? before.text : "";
	const matchers = [];
	for (let i = open.at + 1; i + 2 < all.length; i += 4) {
		const [label, op, value, comma] = all.slice(i, i + 4);
		if (comma?.text !== "," || value.kind !== "string" || value.open) break;
		matchers.push({
			label: label.text,
			op: op.text as MatchOp,
			value: unquote(value.text),
		});
	}
	return name || matchers.length ? formatSelector({ name, matchers }) : "";
}

function firstSelector(text: string): string {
	const [s] = findSelectors(text);
	return s && (s.name || s.matchers.length) ? formatSelector(s) : "";
}

/** How many characters behind the caret belong to the string around it. */
function stringRest(rest: string, quoted: string): number {
	const m = quoted === "`" ? /^[^`]*`/.exec(rest) : /^(?:[^"'\\\n]|\\.)*["']/.exec(rest);
	if (!m?.[0].endsWith(quoted)) return 0;
	// This quote begins another string.
	return /[{}()]|,\s*[A-Za-z_]\w*\s*[=!]/.test(m[0].slice(0, -1)) ? 0 : m[0].length;
}

/** The content of an open string up to the caret. */
function stringText(word: Word): string {
	return unquote(word.text + word.text[0]);
}

/** The start of the last alternative of an expression; `\|` and groups do not separate. */
function lastAlternative(s: string): number {
	let depth = 0;
	let at = 0;
	for (let i = 0; i < s.length; i++) {
		if (s[i] === "\\") i++;
		else if (s[i] === "(") depth++;
		else if (s[i] === ")") depth--;
		else if (s[i] === "|" && depth === 0) at = i + 1;
	}
	return at;
}

const PLAIN: Omit<CaretContext, "wanted" | "start" | "end" | "typed"> = {
	selector: "",
	call: "",
	before: "",
	place: "list",
	label: "",
	op: "=",
	kept: "",
	quote: "",
	free: false,
};

/** In a string: a value, a label, or a function of the code. */
function inString(text: string, caret: number, all: Word[], stack: Open[]): CaretContext | null {
	const word = all[all.length - 1];
	const top = stack[stack.length - 1];
	const base = {
		...PLAIN,
		start: word.start,
		end: caret + stringRest(text.slice(caret), word.text[0]),
		typed: stringText(word),
		quote: word.text[0],
		call: top?.call ?? "",
	};
	const apart = (c: CaretContext): CaretContext => {
		const at = lastAlternative(c.typed);
		const free = true;
		return { ...c, free, kept: c.typed.slice(0, at), typed: c.typed.slice(at) };
	};
	if (!top) return null;
	if (top.text === "{" || top.text === "<") {
		const [label, op] = all.slice(-3, -1);
		if (!isName(label) || !MATCH_OPS.includes(op?.text as MatchOp)) return null;
		return valueContext(base, all, top, label.text, op.text as MatchOp, apart);
	}
	if (top.text !== "(") return null;
	if (top.commas === 1 && filterKind(top.call) === "frames")
		return apart({ ...base, wanted: "code", op: "=~", selector: firstSelector(text) });
	if (argumentTypes(top.call, top.commas).includes("label"))
		return {
			...base,
			wanted: "label",
			place: "string",
			free: true,
			selector: firstSelector(text),
		};
	return null;
}

function valueContext(
	base: Omit<CaretContext, "wanted">,
	all: Word[],
	top: Open,
	label: string,
	op: MatchOp,
	apart: (c: CaretContext) => CaretContext,
): CaretContext | null {
	const isExpression = op === "=~" || op === "!~";
	let c: CaretContext = { ...base, wanted: "value", label, op };
	if (top.frames) {
		if (!CODE_FIELDS.has(label)) return null;
		c = { ...c, wanted: "code", place: "frames" };
	} else c = { ...c, place: "matchers", selector: selectorAround(all, top) };
	return isExpression ? apart(c) : c;
}

/** In braces, outside of strings: a label, an operator, or a value without its quotes. */
function inMatchers(text: string, base: CaretContext, all: Word[], top: Open): CaretContext | null {
	const typing = base.end > base.start;
	const rest = typing && isName(all[all.length - 1]) ? all.slice(0, -1) : all;
	const before = rest[rest.length - 1];
	const place = top.frames ? "frames" : "matchers";
	const selector = top.frames ? firstSelector(text) : selectorAround(all, top);
	if (before === all[top.at] || before?.text === ",")
		return { ...base, wanted: "label", place, selector };
	if (MATCH_OPS.includes(before?.text as MatchOp) && isName(rest[rest.length - 2])) {
		const label = rest[rest.length - 2].text;
		const op = before.text as MatchOp;
		const c = valueContext({ ...base, quote: '"' }, all, top, label, op, (x) => x);
		return c && { ...c, free: op === "=~" || op === "!~" };
	}
	if (typing) return null;
	if (before?.text === "!" && isName(rest[rest.length - 2]))
		return { ...base, wanted: "operator", place, start: before.start, typed: "!" };
	return isName(before) ? { ...base, wanted: "operator", place } : null;
}

function inExpression(base: CaretContext, all: Word[], closed: Open | null): CaretContext | null {
	const typing = base.typed !== "" && isName(all[all.length - 1]);
	const rest = typing ? all.slice(0, -1) : all;
	const before = rest[rest.length - 1];
	const c = { ...base, before: before?.text.toLowerCase() ?? "" };
	if (all[all.length - 1]?.kind === "number" && base.typed)
		return rest[rest.length - 2]?.text.toLowerCase() === "offset"
			? { ...c, wanted: "duration" }
			: null;
	if (!before || before.text === "(" || before.text === ",") return { ...c, wanted: "operand" };
	if (before.text === "@") return { ...c, wanted: "instant" };
	if (c.before === "offset") return { ...c, wanted: "duration" };
	if (operatorNamed(c.before) || c.before === "bool") return { ...c, wanted: "operand" };
	// `x / on (job) y`: an operand follows the labels.
	if (before.text === ")" && closed?.list) {
		const word = all[closed.at - 1].text.toLowerCase();
		if (word === "by" || word === "without") return null;
		return { ...c, before: word, wanted: "operand" };
	}
	if (before.kind === "operator" || before.kind === "keyword" || before.text === "[") return null;
	return { ...c, wanted: "after" };
}

/**
 * What the user may type at the caret; null if nothing fits. A name that ends there is still
 * being typed, unless `whole`: then the question is what follows it.
 */
export function contextAt(text: string, caret: number, whole = false): CaretContext | null {
	const before = queryWords(text.slice(0, caret));
	const said = before[before.length - 1];
	if (said?.kind === "comment" && said.end === caret) return null;
	const all = before.filter((w) => w.kind !== "comment");
	const last = all[all.length - 1];
	const { stack, closed } = openBrackets(all);
	const top = stack[stack.length - 1];
	if (last?.open) return inString(text, caret, all, stack);
	const word = isName(last) || last?.kind === "number";
	const touched = !whole && word && last.end === caret;
	const start = touched ? last.start : caret;
	const end = caret + (touched ? text.slice(caret).search(/[^\w:]|$/) : 0);
	const base: CaretContext = {
		...PLAIN,
		wanted: "operand",
		start,
		end,
		typed: text.slice(start, caret),
		call: top?.call ?? "",
	};
	if (top?.text === "{" || top?.text === "<") return inMatchers(text, base, all, top);
	if (top?.text === "[") {
		const prior = all[all.length - (touched ? 2 : 1)];
		// `[5m`, and `:1m` of a subquery.
		return prior.text === "[" || prior.text === ":" ? { ...base, wanted: "duration" } : null;
	}
	if (top?.list) {
		const prior = all[all.length - (touched ? 2 : 1)];
		if (prior?.text !== "(" && prior?.text !== ",") return null;
		return { ...base, wanted: "label", selector: firstSelector(text) };
	}
	return inExpression(base, all, closed);
}
