// "Did you mean": the query with the name that the server suggests, as a query to run.
import { readQuery } from "./read";
import { formatSelector, type Selector, splice, unquote } from "./text";

const TEXT = '("(?:[^"\\\\]|\\\\.)*")';
const MEANT = `(?:.*); did you mean ${TEXT}\\?$`;
const TYPE = new RegExp(`^no type or series is named ${TEXT}${MEANT}`);
const LABEL = new RegExp(`^no series.* has a label ${TEXT}${MEANT}`);
const VALUE = new RegExp(`^no series.* has ([A-Za-z_]\\w*)=${TEXT}${MEANT}`);
const FUNCTION = new RegExp(`^unknown function ${TEXT}${MEANT}`);

/** Other names in the selector, or null if it has nothing of that name. */
type Renaming = (s: Selector) => Selector | null;

function changeOf(message: string): Renaming | null {
	const renamed = (s: Selector, matchers: Selector["matchers"]) =>
		matchers.some((m, i) => m !== s.matchers[i]) ? { ...s, matchers } : null;
	const type = TYPE.exec(message);
	if (type) {
		const [, from, to] = type.map(unquote);
		return (s) => (s.name === from ? { ...s, name: to } : null);
	}
	const label = LABEL.exec(message);
	if (label) {
		const [, from, to] = label.map(unquote);
		return (s) =>
			renamed(
				s,
				s.matchers.map((x) => (x.label === from ? { ...x, label: to } : x)),
			);
	}
	const value = VALUE.exec(message);
	if (value) {
		const [name, from, to] = [value[1], unquote(value[2]), unquote(value[3])];
		return (s) =>
			renamed(
				s,
				s.matchers.map((x) =>
					x.label === name && x.op === "=" && x.value === from ? { ...x, value: to } : x,
				),
			);
	}
	return null;
}

/** The query as the message suggests it; null if it suggests nothing for this query. */
export function suggested(query: string, message: string): string | null {
	const { selectors, calls } = readQuery(query);
	const parts: { start: number; end: number; insert: string }[] = [];
	const m = FUNCTION.exec(message);
	if (m) {
		const [, from, to] = m.map(unquote);
		for (const c of calls)
			if (c.name === from)
				parts.push({ start: c.start, end: c.start + from.length, insert: to });
	}
	const change = changeOf(message);
	if (change)
		for (const s of selectors) {
			const other = change(s);
			if (other) parts.push({ start: s.start, end: s.head, insert: formatSelector(other) });
		}
	return parts.length ? splice(query, parts) : null;
}
