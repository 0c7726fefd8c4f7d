// Labels of a query, for the label browser: the values that its selectors ask for, and the query
// with a value added or removed.
import { findSelectors } from "./read";
import { escapeRegexp, formatSelector, type Matcher, type Selector, splice } from "./text";

/** The alternatives of an expression of plain texts, `a|b\.c`; null for others. */
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

/** The values of a label that the first selector asks for, with `=` or alternatives. */
export function pickedValues(query: string, label: string): string[] {
	const first = findSelectors(query)[0];
	return first?.matchers.flatMap((m) => (m.label === label ? (valuesOf(m) ?? []) : [])) ?? [];
}

function matcherOf(label: string, values: string[]): Matcher[] {
	if (values.length === 0) return [];
	if (values.length === 1) return [{ label, op: "=", value: values[0] }];
	return [{ label, op: "=~", value: values.map(escapeRegexp).join("|") }];
}

/** Replaces the matchers `=` and `=~` of a label; the negative ones stay. */
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
 * Makes every selector ask for `value` alone or, if it already does, no longer for it. With `also`
 * the value is added to those asked for, or removed from them.
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

/** Makes every selector ask for these values of a label. */
export const pickValues = (query: string, label: string, values: string[]): string =>
	onSelectors(query, (s) => asking(s, label, values));

/** The labels that `by` can name: without quotes, only identifiers can be written. */
export const groupable = (labels: string[]): string[] =>
	labels.filter((l) => /^(?!__)[A-Za-z_]\w*$/.test(l));

/** Whether a series without the label is refused. The server wants one such matcher, or a name. */
function refusesEmpty({ op, value }: Matcher): boolean {
	if (op === "=") return value !== "";
	if (op === "!=") return value === "";
	try {
		return (op === "=~") !== new RegExp(`^(?:${value})$`).test("");
	} catch {
		return false;
	}
}

/** The selector for a question about series; "" if the server refuses it, such as `{}`. */
export const askedOf = (s: Selector): string =>
	s.name || s.matchers.some(refusesEmpty) ? formatSelector(s) : "";

/** The distinct selectors of a query, without their matchers of the label `without`; none: all series. */
export function selectorsOf(query: string, without = ""): string[] {
	const texts = findSelectors(query).map(({ name, matchers }) =>
		askedOf({ name, matchers: matchers.filter((m) => m.label !== without) }),
	);
	const known = [...new Set(texts)];
	return known.includes("") ? [] : known;
}

/** The windows of menus begin and end at whole steps, so that a refresh of the page asks no more. */
const MENU_STEP_S = 600;

/** The window of whole steps around that of a question; of one at a time none, which is all time. */
export function wholeWindow({ start, end }: { start?: string; end?: string }) {
	if (!start || !end) return {};
	return {
		start: String(Math.floor(Number(start) / MENU_STEP_S) * MENU_STEP_S),
		end: String(Math.ceil(Number(end) / MENU_STEP_S) * MENU_STEP_S),
	};
}
