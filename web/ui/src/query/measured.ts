// The profiles that an expression measures, their windows, and the base to compare them with. It is
// derived from the server's tree of the expression, so that an alert leads to the flame graph that
// made it fire.
import type { Labels } from "../shared/api";
import { trimMs, type Window } from "../shared/timerange";
import { argumentTypes } from "./language";
import { callArgument, findSelectors, parseSelector } from "./read";
import { formatSelector, type MatchOp } from "./text";

/** A node of api/v1/parse_query, with the fields that are used. */
export interface ExprNode {
	type: string;
	valueTypes: string;
	position: { start: number; end: number };
	op?: string;
	func?: { name: string };
	args?: ExprNode[];
	expr?: ExprNode;
	param?: ExprNode | null;
	lhs?: ExprNode;
	rhs?: ExprNode;
	val?: string;
	name?: string;
	/** Selectors have the following; times are in milliseconds. */
	range?: number;
	offset?: number;
	timestamp?: number | null;
	matchers?: { name: string; value: string; type: string }[];
	matching?: { include?: string[] } | null;
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
	/** The function that the expression names, or a pattern for several. */
	pick: string;
	search: string;
}

/** A selector without a window takes the latest profile of this long. */
const LOOKBACK_S = 300;

function isSelector(n: ExprNode): boolean {
	return n.type === "matrixSelector" || n.type === "vectorSelector";
}

function children(n: ExprNode): ExprNode[] {
	return [n.lhs, n.rhs, n.expr, n.param, ...(n.args ?? [])].filter((c): c is ExprNode => !!c?.type);
}

function walk(n: ExprNode, visit: (n: ExprNode) => void): void {
	visit(n);
	for (const c of children(n)) walk(c, visit);
}

function all(n: ExprNode, test: (n: ExprNode) => boolean): ExprNode[] {
	const out: ExprNode[] = [];
	walk(n, (c) => test(c) && out.push(c));
	return out;
}

function inside(n: ExprNode): ExprNode {
	return n.type === "parenExpr" && n.expr ? inside(n.expr) : n;
}

/** The name that a selector asks for, also if it is a matcher. */
function calledName(n: ExprNode): string {
	return (
		n.name || (n.matchers?.find((m) => m.name === "__name__" && m.type === "=")?.value ?? "")
	);
}

/** Whether `n` is a function over a window, which cannot be taken away. */
const needsWindow = (n: ExprNode): boolean =>
	(n.args ?? []).some((_, i) => argumentTypes(n.func?.name ?? "", i).includes("window"));

/** The outermost expressions that give profiles. */
function profileNodes(tree: ExprNode, isProfile: (name: string) => boolean): ExprNode[] {
	if (isSelector(tree))
		return tree.valueTypes.includes("profiles") && isProfile(calledName(tree)) ? [tree] : [];
	const whole =
		tree.valueTypes === "profiles" &&
		all(tree, needsWindow).length === 0 &&
		selectorsIn(tree).some((s) => isProfile(calledName(s)));
	if (whole) return [inside(tree)];
	return children(tree).flatMap((c) => profileNodes(c, isProfile));
}

/** The two sides of a difference. */
function sidesOf(n: ExprNode): [ExprNode, ExprNode] | null {
	if (/^diff(_normalized)?$/.test(n.func?.name ?? "") && n.args?.length === 2)
		return [inside(n.args[0]), inside(n.args[1])];
	if (n.type === "binaryExpr" && n.op === "-" && n.lhs && n.rhs)
		return [inside(n.lhs), inside(n.rhs)];
	return null;
}

/** Labels that the expression makes, which no profile has. */
function madeLabels(tree: ExprNode): Set<string> {
	const out = new Set(["function", "alertname", "__name__"]);
	walk(tree, (n) => {
		if (/^label_(replace|join)$/.test(n.func?.name ?? "") && n.args?.[1]?.val)
			out.add(n.args[1].val);
		for (const l of n.matching?.include ?? []) out.add(l);
	});
	return out;
}

function selectorsIn(n: ExprNode): ExprNode[] {
	return all(n, isSelector).sort((a, b) => a.position.start - b.position.start);
}

function windowOf(n: ExprNode, at: number): Window {
	const s = selectorsIn(n)[0];
	const end = (typeof s?.timestamp === "number" ? s.timestamp / 1000 : at) - (s?.offset ?? 0) / 1000;
	return { start: end - (s?.range ? s.range / 1000 : LOOKBACK_S), end };
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

function pickOf(tree: ExprNode, labels: Labels): { pick: string; search: string } {
	if (labels.function) return { pick: labels.function, search: "" };
	for (const n of all(tree, (c) => c.type === "frameMatchers")) {
		const m = n.matchers?.find((x) => x.name === "function");
		if (m?.type === "=") return { pick: m.value, search: "" };
		if (m?.type === "=~") return { pick: "", search: `^(?:${m.value})$` };
	}
	return { pick: "", search: "" };
}

/** A pair that the expression itself compares: a difference, `changed`, or one query at two times. */
function pairOf(tree: ExprNode, parts: ExprNode[], text: Text): [ExprNode, ExprNode] | null {
	const sides = sidesOf(parts[0]);
	if (sides) return sides;
	const changed = all(tree, (n) => /^changed(_interval)?$/.test(n.func?.name ?? ""))[0]?.args ?? [];
	if (changed.length >= 2) return [inside(changed[0]), inside(changed[1])];
	const query = text.with(parts[0], {}, false);
	const other = parts.find(
		(p) => windowOf(p, 0).end !== windowOf(parts[0], 0).end && text.with(p, {}, false) === query,
	);
	if (!other) return null;
	return windowOf(other, 0).end < windowOf(parts[0], 0).end
		? [parts[0], other]
		: [other, parts[0]];
}

/**
 * What `expr` measured at `at` (seconds) in its element with `labels`; null if it selects no
 * profiles. The comparison is the expression's own, else with the same window before.
 */
export function measured(
	expr: string,
	tree: ExprNode,
	at: number,
	labels: Labels,
	isProfile: (name: string) => boolean,
): Measured | null {
	const parts = profileNodes(tree, isProfile);
	if (parts.length === 0) return null;
	const made = madeLabels(tree);
	const match = Object.fromEntries(Object.entries(labels).filter(([k]) => !made.has(k)));
	const text = new Text(expr);
	const side = (n: ExprNode): MeasuredSide => ({ query: text.with(n, match, false), ...windowOf(n, at) });
	const pair = pairOf(tree, parts, text);
	const next = side(pair ? pair[0] : parts[0]);
	const width = next.end - next.start;
	return {
		exact: merged(text.with(pair ? pair[0] : parts[0], match, true)),
		next,
		base: pair
			? side(pair[1])
			: { query: next.query, start: next.start - width, end: next.start },
		...pickOf(tree, labels),
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
		range: null,
		shift: null,
		pick: m.pick || null,
		search: m.search || null,
		expr: null,
		at: null,
		match: null,
	};
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

/** The parameters of a link to an expression at a time: `query` of Explore, or `expr` of Compare. */
export function expressionParams(
	name: "query" | "expr",
	expr: string,
	at: number | null,
	labels: Labels = {},
): URLSearchParams {
	const out = new URLSearchParams({ [name]: expr });
	if (at !== null) out.set("at", trimMs(at));
	const match = formatMatch(labels);
	if (match) out.set("match", match);
	return out;
}
