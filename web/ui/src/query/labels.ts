// Labels of a query, as the label browser chooses them: what its selectors ask of a label, and the
// query when a value is added or taken away.
import { findSelectors } from "./read";
import { escapeRegexp, formatSelector, type Matcher, type Selector, splice } from "./text";

/** The alternatives of an expression that is nothing but texts: `a|b\.c`; null of others. */
function alternatives(expression: string): string[] | null {
	const out = [""];
	for (let i = 0; i < expression.length; i++) {
		const c = expression[i];
		if (c === "|") out.push("");
		else if (c === "\\" && /[^A-Za-z0-9]/.test(expression[i + 1] ?? "a"))
			out[out.length - 1] += expression[++i];
		else if (/[\\^$.*+?()[\]{}]/.test(c)) return null;
		else out[out.length - 1] += c;
	}
	return out;
}

function valuesOf(m: Matcher): string[] | null {
	if (m.op === "=") return [m.value];
	return m.op === "=~" ? alternatives(m.value) : null;
}

/** The values a query asks of a label with `=` or alternatives; those of its first selector. */
export function pickedValues(query: string, label: string): string[] {
	const first = findSelectors(query)[0];
	return first?.matchers.flatMap((m) => (m.label === label ? (valuesOf(m) ?? []) : [])) ?? [];
}

function matcherOf(label: string, values: string[]): Matcher[] {
	if (values.length === 0) return [];
	if (values.length === 1) return [{ label, op: "=", value: values[0] }];
	return [{ label, op: "=~", value: values.map(escapeRegexp).join("|") }];
}

/** What a label has to be is replaced; what it must not be stays. */
function asking(s: Selector, label: string, values: string[]): Selector {
	const [wanted] = matcherOf(label, values);
	const own = (m: Matcher) => m.label === label && (m.op === "=" || m.op === "=~");
	const at = s.matchers.findIndex(own);
	const rest = s.matchers.filter((m) => !own(m));
	if (wanted) rest.splice(at < 0 ? rest.length : at, 0, wanted);
	return { name: s.name, matchers: rest };
}

function onSelectors(query: string, change: (s: Selector) => Selector): string {
	return splice(
		query,
		findSelectors(query).map((s) => {
			const next = change(s);
			const empty = !next.name && !next.matchers.length; // `{}` asks for nothing and is an error
			const insert = empty ? query.slice(s.start, s.head) : formatSelector(next);
			return { start: s.start, end: s.head, insert };
		}),
	);
}

/**
 * Every selector of a query asks for `value`, or, if it was all that was asked for, no longer.
 * With `also` the value is one more, or one fewer, of those asked for.
 */
export function pickValue(query: string, label: string, value: string, also: boolean): string {
	const picked = pickedValues(query, label);
	const on = picked.includes(value);
	const values = also
		? on
			? picked.filter((v) => v !== value)
			: [...picked, value]
		: on && picked.length === 1
			? []
			: [value];
	return onSelectors(query, (s) => asking(s, label, values));
}

/** Those of some labels that a list of labels in a query can name: there are no quotes there. */
export const groupable = (labels: string[]): string[] =>
	labels.filter((l) => /^(?!__)[A-Za-z_]\w*$/.test(l));

/** The selectors of a query, each once; `without` what they ask of a label. */
export function selectorsOf(query: string, without = ""): string[] {
	const texts = findSelectors(query).map(({ name, matchers }) =>
		formatSelector({ name, matchers: matchers.filter((m) => m.label !== without) }),
	);
	const known = [...new Set(texts)];
	return known.includes("{}") ? [] : known; // one that takes all takes all there is
}
