// The profiles that an expression measures, their windows, and the base to compare them with. It is
// derived from the server's tree of the expression, so that an alert leads to the flame graph that
// made it fire.
import type { Labels } from "../shared/api";
import { trimMs, type Window } from "../shared/timerange";
import {
	comparedPair,
	type ExprNode,
	madeLabels,
	type MeasuredCost,
	namedFunction,
	type MeasuredPart,
	partWindow,
	profileParts,
	selectorsIn,
	type TypeOf,
	ungroupedNode,
} from "./compared";
import { callArgument, findSelectors, parseSelector } from "./read";
import { formatSelector, type MatchOp } from "./text";

export type { ExprNode } from "./compared";

/** The cost of a function that an expression measures. */
export interface MeasuredFunction extends MeasuredCost {
	name: string;
}

export interface MeasuredSide extends Window {
	/** The profiles, without windows and offsets. */
	query: string;
}

export interface Measured {
	/** The profiles as the expression selects them at its time, with the labels of the element. */
	exact: string;
	next: MeasuredSide;
	base: MeasuredSide;
	/** Where the base is from: the expression, or the time before the alert or before the window. */
	against: "own" | "alert" | "window";
	/** Shares are compared, so new is scaled to the total of base. */
	normalized: boolean;
	/** The function that the expression names, or a pattern for several. */
	pick: string;
	search: string;
	/** What is measured of that function; null: something else is, as a total. */
	about: MeasuredFunction | null;
}

class Text {
	private bytes: Uint8Array;

	constructor(expr: string) {
		this.bytes = new TextEncoder().encode(expr);
	}

	slice(start: number, end: number): string {
		return new TextDecoder().decode(this.bytes.subarray(start, end));
	}

	/**
	 * A node's text with `labels` added to each of its selectors. A selector's own `=` matchers stay:
	 * in v2 against v1 each side has its own version.
	 */
	with(n: ExprNode, labels: Labels, windows: boolean): string {
		let out = "";
		let from = n.position.start;
		const asked = new Set(Object.keys(labels));
		for (const s of selectorsIn(n)) {
			const own = (s.matchers ?? []).filter((m) => m.name !== "__name__" || !s.name);
			const fixed = new Set(own.filter((m) => m.type === "=").map((m) => m.name));
			const matchers = own
				.filter((m) => fixed.has(m.name) || !asked.has(m.name))
				.map((m) => ({ label: m.name, op: m.type as MatchOp, value: m.value }));
			for (const [label, value] of Object.entries(labels))
				if (!fixed.has(label)) matchers.push({ label, op: "=", value });
			out += this.slice(from, s.position.start);
			out += formatSelector({ name: s.name ?? "", matchers });
			if (windows) out += windowText(this.slice(s.position.start, s.position.end));
			from = s.position.end;
		}
		return out + this.slice(from, n.position.end);
	}
}

/** The window, offset and `@` of a selector, as written. */
function windowText(selector: string): string {
	const [s] = findSelectors(selector);
	return s ? selector.slice(s.head).replace(/^(?=[^[\s])/, " ") : "";
}

/** What an expression is asked about: when it was evaluated, and the element. */
export interface AskedElement {
	/** Seconds. */
	at: number;
	labels: Labels;
	/** When the alert began, in seconds; null: unknown. */
	since?: number | null;
}

/**
 * What `expr` measured in an element; null if it selects no profiles. The comparison is the
 * expression's own. If it compares nothing, the base is the window that ends where the first window of
 * the alert began, which had none of what the alert is about.
 */
export function measured(
	expr: string,
	tree: ExprNode,
	{ at, labels, since = null }: AskedElement,
	typeOf: TypeOf,
): Measured | null {
	const parts = profileParts(tree, typeOf);
	if (parts.length === 0) return null;
	const made = madeLabels(tree);
	const text = new Text(expr);
	const matchOf = (p: MeasuredPart): Labels =>
		Object.fromEntries(Object.entries(labels).filter(([k]) => !made.has(k) && p.has(k)));
	const textOf = (p: MeasuredPart, windows: boolean): string =>
		text.with(ungroupedNode(p.node, matchOf(p)), matchOf(p), windows);
	const side = (p: MeasuredPart): MeasuredSide => ({ query: textOf(p, false), ...partWindow(p, at) });
	const pair = comparedPair(tree, parts, { at, typeOf }, (n) => text.with(n, {}, false));
	const part = pair?.next ?? parts[0];
	const next = side(part);
	const end = since !== null && since < at ? partWindow(part, since).start : next.start;
	const { pick, search } = namedFunction(tree, labels);
	return {
		exact: merged(textOf(part, true)),
		next,
		base: pair
			? side(pair.base)
			: { query: next.query, start: end - (next.end - next.start), end },
		against: pair ? "own" : end < next.start ? "alert" : "window",
		normalized: pair?.normalized ?? false,
		pick,
		search,
		about: pick && part.cost ? { name: pick, ...part.cost } : null,
	};
}

function merged(query: string): string {
	return callArgument(query, "merge") ? query : `merge(${query})`;
}

/** The state of the Compare page; the parameters of the link are removed. */
export function compareParams(m: Measured): Record<string, string | null> {
	return {
		new: m.next.query,
		base: m.base.query,
		from: trimMs(m.next.start),
		to: trimMs(m.next.end),
		bfrom: trimMs(m.base.start),
		bto: trimMs(m.base.end),
		norm: m.normalized ? "1" : null,
		range: null,
		shift: null,
		point: null,
		pick: m.pick || null,
		search: m.search || null,
		...aboutParams(m.about),
		expr: null,
		at: null,
		match: null,
		since: null,
	};
}

/** `about=main.work&measure=flat_share`: the function of the verdict, and its cost. */
export function aboutParams(m: MeasuredFunction | null): Record<string, string | null> {
	return {
		about: m ? m.name : null,
		measure: m ? m.of + (m.share ? "_share" : "") : null,
	};
}

export function aboutFromParams(get: (name: string) => string | null): MeasuredFunction | null {
	const name = get("about");
	const [, of, share] = /^(flat|cum)(_share)?$/.exec(get("measure") ?? "cum_share") ?? [];
	return name && of ? { name, of: of as MeasuredCost["of"], share: Boolean(share) } : null;
}

/** The value of the parameter `match`: `{a="b"}`; "" for none. */
export function formatMatch(labels: Labels): string {
	const matchers = Object.entries(labels).map(([label, value]) => ({
		label,
		op: "=" as MatchOp,
		value,
	}));
	return matchers.length ? formatSelector({ name: "", matchers }) : "";
}

export function parseMatch(text: string): Labels {
	const selector = text ? parseSelector(text) : null;
	return Object.fromEntries(
		(selector?.matchers ?? []).filter((m) => m.op === "=").map((m) => [m.label, m.value]),
	);
}

/**
 * The parameters of a link to an expression at a time: `query` of Explore, or `expr` of Compare.
 * `since` is when its alert began. Each link from an alert is made here.
 */
export function expressionParams(
	name: "query" | "expr",
	expr: string,
	{ at, labels = {}, since = null }: { at: number | null; labels?: Labels; since?: number | null },
): URLSearchParams {
	const out = new URLSearchParams({ [name]: expr });
	if (at !== null) out.set("at", trimMs(at));
	if (since !== null) out.set("since", trimMs(since));
	const match = formatMatch(labels);
	if (match) out.set("match", match);
	return out;
}

/** When the alert of a link began; null: the link does not say. */
export function sinceFromParams(get: (name: string) => string | null): number | null {
	const since = Number(get("since") ?? NaN);
	return Number.isFinite(since) && since > 0 ? since : null;
}
