// A comparison in one line: what both sides have in common once, what differs twice.
import { callArgument, parseSelector } from "../query/read";
import { clean } from "../query/query";
import { formatSelector, type Matcher, type Selector } from "../query/text";
import { formatClock, formatDuration, formatSpan, type Window } from "../shared/timerange";
import type { Sides } from "./sides";

export interface SidesText {
	/** Of both: "" if they have nothing in common. */
	both: string;
	next: string;
	base: string;
}

const selectorOf = (query: string): Selector | null => {
	const text = clean(query);
	return parseSelector(callArgument(text, "merge") ?? text);
};

const textOfMatchers = (all: Matcher[]): string => formatSelector({ name: "", matchers: all }).slice(1, -1);

/** Type and labels of both, and what each has alone. Queries that are more than selectors are shown whole. */
function queriesText(next: string, base: string): SidesText {
	if (clean(next) === clean(base)) return { both: clean(next), next: "", base: "" };
	const [a, b] = [selectorOf(next), selectorOf(base)];
	if (!a || !b) return { both: "", next: clean(next), base: clean(base) };
	const same = (x: Matcher) => (y: Matcher) => x.label === y.label && x.op === y.op && x.value === y.value;
	const has = (s: Selector, x: Matcher) => s.matchers.some(same(x));
	const shared = a.matchers.filter((m) => has(b, m));
	const alone = (s: Selector, other: Selector) => {
		const own = textOfMatchers(s.matchers.filter((m) => !has(other, m)));
		return a.name === b.name ? own || "all" : [s.name, own].filter(Boolean).join(" ");
	};
	const name = a.name === b.name ? a.name : "";
	const both = name || shared.length ? formatSelector({ name, matchers: shared }) : "";
	return { both, next: alone(a, b), base: alone(b, a) };
}

/** "the hour before": how the base's window differs, where a distance says it; else its times. */
function windowsText(sides: Sides, relative: boolean): [string, string] {
	const { next, base, shift, point } = sides;
	const width = (w: Window) => Math.round(w.end - w.start);
	const long = formatDuration(width(next));
	if (point !== null) return [`${long} after ${formatClock(point)}`, `${long} before`];
	if (width(base) === width(next) && shift !== "own") {
		const span = relative ? `last ${long}` : formatSpan(next);
		return [span, shift === "prev" ? `the ${long} before` : `${shift} before`];
	}
	return [formatSpan(next), formatSpan(base)];
}

/** `relative`: the new window is "the last so long". */
export function sidesText(next: string, base: string, sides: Sides, relative: boolean): SidesText {
	const text = queriesText(next, base);
	const { next: n, base: b } = sides;
	if (n.start === b.start && n.end === b.end) {
		if (text.next || text.base) return text;
		return { ...text, next: "all", base: "the same" };
	}
	const [newer, older] = windowsText(sides, relative);
	return { both: text.both, next: `${text.next} ${newer}`.trim(), base: `${text.base} ${older}`.trim() };
}
