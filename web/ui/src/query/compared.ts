// What an expression compares: the two selections of profiles on the sides of a difference, a ratio or
// a comparison, which labels of an element each side has, and which cost of a function is measured.
import type { Labels } from "../shared/api";
import type { Window } from "../shared/timerange";
import { argumentTypes } from "./language";

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
	/** Of an aggregation. */
	grouping?: string[];
	without?: boolean;
	lhs?: ExprNode;
	rhs?: ExprNode;
	val?: string;
	name?: string;
	/** Selectors and subqueries have the following; times are in milliseconds. */
	range?: number;
	offset?: number;
	timestamp?: number | null;
	matchers?: { name: string; value: string; type: string }[];
	/** How a binary operator finds the partner of an element. */
	matching?: { card: string; on: boolean; labels: string[]; include: string[] } | null;
}

/** Which cost of a function an expression measures. */
export interface MeasuredCost {
	of: "flat" | "cum";
	/** As a share of its profile. */
	share: boolean;
}

/** An expression that gives profiles, and what its surroundings do with them. */
export interface MeasuredPart {
	node: ExprNode;
	/** Whether an element of the whole expression has this label from here. */
	has(label: string): boolean;
	/** The subqueries around it, the outermost first. */
	subqueries: ExprNode[];
	cost: MeasuredCost | null;
}

export interface ComparedPair {
	next: MeasuredPart;
	base: MeasuredPart;
	/** Whether the expression compares shares, so that totals do not count. */
	normalized: boolean;
}

/** The full type of the profiles that a name asks for; "": it names none. */
export type TypeOf = (name: string) => string;

/** What is known of an evaluation. */
export interface Evaluation {
	/** Seconds. */
	at: number;
	typeOf: TypeOf;
}

/** A selector without a window takes the latest profile of this long. */
const LOOKBACK_S = 300;

function isSelector(n: ExprNode): boolean {
	return n.type === "matrixSelector" || n.type === "vectorSelector";
}

function nodeChildren(n: ExprNode): ExprNode[] {
	return [n.lhs, n.rhs, n.expr, n.param, ...(n.args ?? [])].filter((c): c is ExprNode => !!c?.type);
}

/** All nodes of a tree that pass the test. */
export function nodesOf(n: ExprNode, test: (n: ExprNode) => boolean): ExprNode[] {
	return [...(test(n) ? [n] : []), ...nodeChildren(n).flatMap((c) => nodesOf(c, test))];
}

function inside(n: ExprNode): ExprNode {
	return n.type === "parenExpr" && n.expr ? inside(n.expr) : n;
}

/** The selectors in the order of the text. */
export function selectorsIn(n: ExprNode): ExprNode[] {
	return nodesOf(n, isSelector).sort((a, b) => a.position.start - b.position.start);
}

const funcOf = (n: ExprNode): string => n.func?.name ?? "";

/** The name that a selector asks for, also if it is a matcher. */
function calledName(n: ExprNode): string {
	return (
		n.name || (n.matchers?.find((m) => m.name === "__name__" && m.type === "=")?.value ?? "")
	);
}

/** Whether `n` is a function over a window, which cannot be taken away. */
const needsWindow = (n: ExprNode): boolean =>
	(n.args ?? []).some((_, i) => argumentTypes(funcOf(n), i).includes("window"));

/* ---- the profiles of an expression ---- */

type Around = Omit<MeasuredPart, "node">;

const ALONE: Around = { has: () => true, subqueries: [], cost: null };

/** The labels that the side of a binary operator gives to an element of its result. */
function sideLabels(n: ExprNode, side: "lhs" | "rhs", has: Around["has"]): Around["has"] {
	const m = n.matching;
	const many = m?.card === "one-to-many" ? "rhs" : "lhs";
	if (!m || side === many) return has;
	const listed = new Set(m.labels);
	return (label) => has(label) && listed.has(label) === m.on;
}

/** flat(), cum() and their shares. */
function costOf(n: ExprNode): MeasuredCost | null {
	const [, of, share] = /^(flat|cum)(_share)?$/.exec(funcOf(n)) ?? [];
	return of ? { of: of as MeasuredCost["of"], share: Boolean(share) } : null;
}

/** What is around the child `c` of `n`. */
function aroundChild(n: ExprNode, c: ExprNode, around: Around): Around {
	if (n.type === "binaryExpr")
		return { ...around, has: sideLabels(n, c === n.lhs ? "lhs" : "rhs", around.has) };
	if (n.type === "subquery") return { ...around, subqueries: [...around.subqueries, n] };
	// A scalar has no labels.
	if (funcOf(n) === "scalar") return { ...around, has: () => false };
	return { ...around, cost: costOf(n) ?? around.cost };
}

/** The outermost expressions that give profiles. */
export function profileParts(n: ExprNode, typeOf: TypeOf, around: Around = ALONE): MeasuredPart[] {
	const asks = (s: ExprNode) => typeOf(calledName(s)) !== "";
	if (isSelector(n))
		return n.valueTypes.includes("profiles") && asks(n) ? [{ node: n, ...around }] : [];
	const whole =
		n.valueTypes === "profiles" &&
		nodesOf(n, needsWindow).length === 0 &&
		selectorsIn(n).some(asks);
	if (whole) return [{ node: inside(n), ...around }];
	return nodeChildren(n).flatMap((c) => profileParts(c, typeOf, aroundChild(n, c, around)));
}

/** The window of the profiles if the whole expression is evaluated at `at` (seconds). */
export function partWindow({ node, subqueries }: MeasuredPart, at: number): Window {
	let [start, end] = [at, at];
	const move = (n: ExprNode, width: number) => {
		if (typeof n.timestamp === "number") start = end = n.timestamp / 1000;
		start -= (n.offset ?? 0) / 1000 + width;
		end -= (n.offset ?? 0) / 1000;
	};
	for (const s of subqueries) move(s, (s.range ?? 0) / 1000);
	const selector = selectorsIn(node)[0];
	if (selector) move(selector, selector.range ? selector.range / 1000 : LOOKBACK_S);
	return { start, end };
}

/* ---- pairs ---- */

/** What a part reads, without its filters: a function's cost and the total of all read the same. */
function readsOf(p: MeasuredPart): string {
	const of = (s: ExprNode) => {
		const matchers = (s.matchers ?? []).map((m) => [m.name, m.type, m.value]);
		return [s.name, matchers.sort(), s.range, s.offset, s.timestamp];
	};
	return JSON.stringify([selectorsIn(p.node).map(of), p.subqueries.map(of)]);
}

/** The type of the profiles of a part. */
function partType(p: MeasuredPart, typeOf: TypeOf): string {
	return selectorsIn(p.node).map((s) => typeOf(calledName(s))).find(Boolean) ?? "";
}

const COMPARES = new Set(["-", "/", ">", ">=", "<", "<=", "==", "!="]);

/** The first profiles of one side and the first others of the same type on the other side. */
function pairOfSides(n: ExprNode, { at, typeOf }: Evaluation, around: Around): ComparedPair | null {
	if (!n.lhs || !n.rhs) return null;
	const [next] = profileParts(n.lhs, typeOf, aroundChild(n, n.lhs, around));
	if (!next) return null;
	const base = profileParts(n.rhs, typeOf, aroundChild(n, n.rhs, around)).find(
		(p) => partType(p, typeOf) === partType(next, typeOf) && readsOf(p) !== readsOf(next),
	);
	if (!base) return null;
	const ofCosts = n.valueTypes !== "profiles";
	const normalized = ofCosts && Boolean(next.cost?.share);
	// Of costs, the later profiles are the new ones, wherever they are written.
	const late = ofCosts && partWindow(base, at).end > partWindow(next, at).end;
	return late ? { next: base, base: next, normalized } : { next, base, normalized };
}

/** Both arguments of `diff` and `changed`. */
function pairOfCall(n: ExprNode, { typeOf }: Evaluation, around: Around): ComparedPair | null {
	const [, of, normal] = /^(diff|changed)(_normalized|_interval)?$/.exec(funcOf(n)) ?? [];
	if (!of) return null;
	const cost: MeasuredCost | null = of === "changed" ? { of: "flat", share: true } : around.cost;
	const [next, base] = (n.args ?? []).map((c) => profileParts(c, typeOf, { ...around, cost })[0]);
	if (!next || !base) return null;
	return { next, base, normalized: of === "changed" || normal !== undefined };
}

/** The outermost comparison of profiles with others of the same type. */
function outermostPair(n: ExprNode, of: Evaluation, around: Around = ALONE): ComparedPair | null {
	const own =
		n.type === "binaryExpr" && COMPARES.has(n.op ?? "")
			? pairOfSides(n, of, around)
			: pairOfCall(n, of, around);
	if (own) return own;
	for (const c of nodeChildren(n)) {
		const found = outermostPair(c, of, aroundChild(n, c, around));
		if (found) return found;
	}
	return null;
}

/** The same profiles at two times, as in `topk(9, A) unless topk(9, A offset 1d)`. */
function pairOfTimes(parts: MeasuredPart[], at: number, text: (n: ExprNode) => string): ComparedPair | null {
	const [first] = parts;
	const end = (p: MeasuredPart) => partWindow(p, at).end;
	const other = parts.find((p) => end(p) !== end(first) && text(p.node) === text(first.node));
	if (!other) return null;
	const [next, base] = end(other) < end(first) ? [first, other] : [other, first];
	return { next, base, normalized: Boolean(next.cost?.share) };
}

/**
 * What the expression itself compares; null: it compares profiles with nothing, as a limit does.
 * `text` gives the text of a node without its windows.
 */
export function comparedPair(
	tree: ExprNode,
	parts: MeasuredPart[],
	of: Evaluation,
	text: (n: ExprNode) => string,
): ComparedPair | null {
	return outermostPair(tree, of) ?? pairOfTimes(parts, of.at, text);
}

/* ---- labels ---- */

/** The profiles that `merge by` groups, if the labels leave one group: then nothing is grouped. */
export function ungroupedNode(n: ExprNode, labels: Labels): ExprNode {
	const by = n.type === "aggregation" && n.op === "merge" && !n.without ? (n.grouping ?? []) : [];
	return by.length > 0 && n.expr && by.every((l) => labels[l]) ? inside(n.expr) : n;
}

/** Labels that the expression makes, which no profile has. */
export function madeLabels(tree: ExprNode): Set<string> {
	const out = new Set(["function", "alertname", "__name__"]);
	for (const n of nodesOf(tree, () => true)) {
		if (/^label_(replace|join)$/.test(funcOf(n)) && n.args?.[1]?.val) out.add(n.args[1].val);
		if (funcOf(n) === "changed_interval") out.add("verdict").add("bound");
		for (const l of n.matching?.include ?? []) out.add(l);
	}
	return out;
}

/** The function of the element, or the one that the expression asks for; or a pattern for several. */
export function namedFunction(tree: ExprNode, labels: Labels): { pick: string; search: string } {
	if (labels.function) return { pick: labels.function, search: "" };
	for (const n of nodesOf(tree, (c) => c.type === "frameMatchers")) {
		const m = n.matchers?.find((x) => x.name === "function");
		if (m?.type === "=") return { pick: m.value, search: "" };
		if (m?.type === "=~") return { pick: "", search: `^(?:${m.value})$` };
	}
	return { pick: "", search: "" };
}
