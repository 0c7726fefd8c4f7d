// Reads a query into a tree, for edits. The server owns the grammar and reports errors; this reader
// only has to agree with it on valid queries, which tests/ui/server.test.mjs proves. In invalid ones
// it still finds selectors and calls.
import { must } from "../shared/must";
import { parseDuration } from "../shared/timerange";
import {
	argumentTypes,
	functionNamed,
	type Operator,
	operatorNamed,
	takesLabels,
} from "./language";
import { type Word, queryWords } from "./syntax";
import { MATCH_OPS, type Matcher, type MatchOp, type Selector, type Span, unquote } from "./text";

export interface SelectorNode extends Selector, Span {
	type: "selector";
	/** The end of name and matchers; window, offset and `@` follow. */
	head: number;
	/** The window in seconds. */
	range: number | null;
	/** The offset in seconds. */
	offset: number;
	/** The time after `@`: fixed, or start() or end(). */
	at: "" | "time" | "edge";
	/** The end of the window. */
	ranged: number;
	/** `@` with what follows it. */
	atText: string;
}

/** `by (job)` and the like. */
export interface Modifier extends Span {
	word: string;
	labels: string[];
}

export interface CallNode extends Span {
	type: "call";
	/** As written. */
	name: string;
	modifier: Modifier | null;
	args: QueryNode[];
}

export interface BinaryNode extends Span {
	type: "binary";
	op: Operator;
	lhs: QueryNode;
	rhs: QueryNode;
	/** Whether `on`, `group_left` or `bool` follow the operator. */
	modified: boolean;
	/** Whether `group_left` or `group_right` follow. */
	many: boolean;
}

/** `inner[range:step]`, offset and `@` included. */
export interface SubqueryNode extends Span {
	type: "subquery";
	inner: QueryNode;
}

export type QueryNode =
	| SelectorNode
	| SubqueryNode
	| CallNode
	| BinaryNode
	| (Span & { type: "paren"; inner: QueryNode })
	| (Span & { type: "unary"; inner: QueryNode })
	| (Span & { type: "number" })
	| (Span & { type: "string"; value: string })
	| (Span & { type: "frames" });

export interface Query {
	/** null if the text is not a valid query. */
	tree: QueryNode | null;
	/** In order; also those of invalid queries. */
	selectors: SelectorNode[];
	calls: CallNode[];
}

/** Deeper queries are not read; the server refuses them too. */
const DEPTH_MAX = 300;

class Reader {
	private readonly words: Word[];
	private at = 0;
	private depth = 0;
	private broken = false;
	/** The name of a series in the matchers read last: `{"its.name"}`. */
	private quotedName = "";
	private readonly selectors: SelectorNode[] = [];
	private readonly calls: CallNode[] = [];

	constructor(text: string) {
		this.words = queryWords(text).filter((w) => w.kind !== "comment");
	}

	query(): Query {
		const tree = this.words.length ? this.expr(0) : null;
		while (this.peek()) this.skip();
		const { selectors, calls } = this;
		const order = (a: Span, b: Span) => a.start - b.start;
		return {
			tree: this.broken ? null : tree,
			selectors: selectors.sort(order),
			calls: calls.sort(order),
		};
	}

	private peek(ahead = 0): Word | undefined {
		return this.words[this.at + ahead];
	}

	/** The word that is next, where there is one. */
	private next(): Word {
		return must(this.peek(), "a word of the query");
	}

	private isAt(text: string): boolean {
		return this.peek()?.text === text && this.peek()?.kind !== "string";
	}

	private isWord(text: string): boolean {
		const w = this.peek();
		return w?.kind === "keyword" && w.text.toLowerCase() === text;
	}

	/** Steps over `text`, which must come next. */
	private expect(text: string): void {
		if (this.isAt(text)) this.at++;
		else this.broken = true;
	}

	private end(): number {
		return this.words[this.at - 1]?.end ?? 0;
	}

	/** Steps over something that is in the wrong place. */
	private skip(): void {
		const before = this.at;
		this.broken = true;
		this.expr(0);
		if (this.at === before) this.at++;
	}

	/** An expression whose operators bind at least as strongly as `least`; null if there is none. */
	private expr(least: number): QueryNode | null {
		if (this.depth >= DEPTH_MAX) {
			this.broken = true;
			return null;
		}
		this.depth++;
		const left = this.operators(least);
		this.depth--;
		return left;
	}

	private operators(least: number): QueryNode | null {
		let lhs = this.signed();
		for (;;) {
			const w = this.peek();
			const op =
				w && (w.kind === "operator" || w.kind === "keyword")
					? operatorNamed(w.text)
					: undefined;
			if (!lhs || !op || op.binds < least) return lhs;
			this.at++;
			const matching = this.matching();
			const rhs = this.expr(op.right ? op.binds : op.binds + 1);
			if (!rhs) {
				this.broken = true;
				return lhs;
			}
			const span = { start: lhs.start, end: rhs.end };
			const modified = matching.length > 0;
			const many = matching.some((m) => /^group_/i.test(m));
			lhs = { type: "binary", op, lhs, rhs, modified, many, ...span };
		}
	}

	/** Steps over `bool on (job) group_left (pod)`; returns its keywords. */
	private matching(): string[] {
		const out: string[] = [];
		while (this.isWord("bool") || this.isLabelList()) {
			const { text } = this.next();
			out.push(text);
			this.at++;
			if (this.isAt("(") && takesLabels(text)) this.labels();
		}
		return out;
	}

	/** `on` with its bracket, or `group_left`, which needs none. A series may be called `by`. */
	private isLabelList(): boolean {
		const w = this.peek();
		if (w?.kind !== "keyword" || !takesLabels(w.text)) return false;
		return this.peek(1)?.text === "(" || /^group_/i.test(w.text);
	}

	private labels(): string[] {
		const out: string[] = [];
		this.expect("(");
		while (this.peek() && !this.isAt(")")) {
			const w = this.next();
			if (w.kind === "string") out.push(w.open ? "" : unquote(w.text));
			else if (w.text !== ",") out.push(w.text);
			this.at++;
		}
		this.expect(")");
		return out;
	}

	private signed(): QueryNode | null {
		const sign = this.peek();
		if (sign?.kind !== "operator" || (sign.text !== "-" && sign.text !== "+"))
			return this.operand(false);
		this.at++;
		// A sign binds as `*` does.
		const inner = this.expr((operatorNamed("*")?.binds ?? 0) + 1);
		if (!inner) {
			this.broken = true;
			return null;
		}
		const span = { start: sign.start, end: inner.end };
		return inner.type === "number" ? { ...inner, ...span } : { type: "unary", inner, ...span };
	}

	private operand(frames: boolean): QueryNode | null {
		let n = this.single(frames);
		while (n && this.isAt("[")) n = this.subquery(n);
		return n;
	}

	private single(frames: boolean): QueryNode | null {
		const w = this.peek();
		if (!w) return null;
		const { start, end } = w;
		switch (w.kind) {
			case "string":
				this.at++;
				this.broken ||= !!w.open;
				return { type: "string", value: w.open ? "" : unquote(w.text), start, end };
			case "number":
				this.at++;
				return { type: "number", start, end };
			case "function":
				return this.call();
			case "name":
				// `sum by`: an unfinished call.
				return takesLabels(this.peek(1)?.text ?? "") ? this.call() : this.selector();
			case "keyword":
				return this.selector();
		}
		if (w.text === "{") return frames ? this.frames() : this.selector();
		if (w.text !== "(") return null;
		this.at++;
		const inner = this.expr(0);
		this.close();
		if (!inner) this.broken = true;
		return inner && { type: "paren", inner, start, end: this.end() };
	}

	/** Steps over the closing bracket, and over anything wrong before it. */
	private close(): void {
		while (this.peek() && !this.isAt(")")) this.skip();
		this.expect(")");
	}

	private frames(): QueryNode {
		const { start } = this.next();
		this.at++;
		this.matchers("}");
		return { type: "frames", start, end: this.end() };
	}

	private modifier(): Modifier | null {
		const w = this.peek();
		if (!w || !takesLabels(w.text)) return null;
		this.at++;
		const labels = this.labels();
		return { word: w.text.toLowerCase(), labels, start: w.start, end: this.end() };
	}

	private call(): QueryNode {
		const { text: name, start } = this.next();
		this.at++;
		const node: CallNode = { type: "call", name, modifier: null, args: [], start, end: 0 };
		this.calls.push(node);
		node.modifier = this.modifier();
		this.expect("(");
		if (this.words[this.at - 1]?.text === "(") {
			this.args(node);
			this.expect(")");
		}
		node.modifier = this.modifier() ?? node.modifier;
		node.end = this.end();
		return node;
	}

	private args(node: CallNode): void {
		if (this.isAt(")")) return;
		for (let i = 0; this.peek(); i++) {
			const types = argumentTypes(node.name, i);
			// In an unknown function, braces behind a comma are taken for frame matchers.
			const frames = types.includes("frames") || (!functionNamed(node.name) && i > 0);
			const arg = frames && this.isAt("{") ? this.operand(true) : this.expr(0);
			if (arg) node.args.push(arg);
			else this.broken = true;
			while (this.peek() && !this.isAt(",") && !this.isAt(")")) this.skip();
			if (!this.isAt(",")) return;
			this.at++;
		}
		this.broken = true;
	}

	/** Reads `a="b",...` and steps over `close`; null if it is something else. */
	private matchers(close: string): Matcher[] | null {
		const out: Matcher[] = [];
		while (this.peek() && !this.isAt(close)) {
			const [label, op, value] = [this.peek(), this.peek(1), this.peek(2)];
			if (label?.kind === "string" && !label.open && (op?.text === "," || op?.text === close)) {
				this.quotedName = unquote(label.text);
				this.at += op.text === "," ? 2 : 1;
				continue;
			}
			if (
				(label?.kind !== "label" && (label?.kind !== "string" || label.open)) ||
				!op ||
				!MATCH_OPS.includes(op.text as MatchOp) ||
				value?.kind !== "string" ||
				value.open
			)
				return this.notMatchers(close);
			const name = label.kind === "string" ? unquote(label.text) : label.text;
			out.push({ label: name, op: op.text as MatchOp, value: unquote(value.text) });
			this.at += 3;
			if (this.isAt(",")) this.at++;
			else if (!this.isAt(close)) return this.notMatchers(close);
		}
		if (!this.peek()) return this.notMatchers(close);
		this.at++;
		return out;
	}

	private notMatchers(close: string): null {
		this.broken = true;
		while (this.peek() && !this.isAt(close)) this.at++;
		if (this.peek()) this.at++;
		return null;
	}

	private selector(): QueryNode {
		const first = this.next();
		const named = first.text !== "{";
		const node: SelectorNode = {
			...{ type: "selector", name: named ? first.text : "", matchers: [] },
			...{ start: first.start, end: first.end, head: first.end },
			...{ range: null, offset: 0, at: "", ranged: first.end, atText: "" },
		};
		this.selectors.push(node);
		if (named) this.at++;
		const open = this.peek();
		if (open?.kind === "punct" && (open.text === "{" || open.text === "<")) {
			this.at++;
			this.quotedName = "";
			const found = this.matchers(open.text === "{" ? "}" : ">");
			if (found) {
				node.matchers = found;
				node.name ||= this.quotedName;
				node.head = this.end();
			}
		}
		node.ranged = node.head;
		if (this.isAt("[") && this.peek(2)?.text !== ":") this.range(node);
		this.shift(node);
		node.end = this.end();
		return node;
	}

	/** Steps over a duration, or a number of seconds; null if there is none. */
	private seconds(): number | null {
		const w = this.peek();
		if (w?.kind !== "number") return null;
		this.at++;
		const seconds = parseDuration(w.text) ?? Number(w.text);
		return Number.isFinite(seconds) ? seconds : null;
	}

	private range(node: SelectorNode): void {
		this.at++;
		node.range = this.seconds();
		this.broken ||= node.range === null;
		this.expect("]");
		node.ranged = this.end();
	}

	private subquery(inner: QueryNode): SubqueryNode {
		this.at++;
		this.broken ||= this.seconds() === null;
		this.expect(":");
		if (!this.isAt("]")) this.broken ||= this.seconds() === null;
		this.expect("]");
		this.shift({ offset: 0, at: "", atText: "" });
		return { type: "subquery", inner, start: inner.start, end: this.end() };
	}

	/** Reads `offset` and `@`. */
	private shift(node: Pick<SelectorNode, "offset" | "at" | "atText">): void {
		while (this.isWord("offset") || this.isAt("@")) {
			if (this.isAt("@")) this.time(node);
			else this.offset(node);
		}
	}

	private offset(node: Pick<SelectorNode, "offset">): void {
		this.at++;
		const sign = this.isAt("-") ? -1 : 1;
		if (sign < 0 || this.isAt("+")) this.at++;
		const seconds = this.seconds();
		this.broken ||= seconds === null || node.offset !== 0;
		node.offset = sign * (seconds ?? 0);
	}

	private time(node: Pick<SelectorNode, "at" | "atText">): void {
		const { start } = this.next();
		this.at++;
		if (this.isAt("-") || this.isAt("+")) this.at++;
		const w = this.peek();
		this.broken ||= node.at !== "";
		if (this.isWord("start") || this.isWord("end")) {
			this.at++;
			this.expect("(");
			this.expect(")");
			node.at = "edge";
		} else {
			this.broken ||= w?.kind !== "number";
			if (w?.kind === "number") this.at++;
			node.at = "time";
		}
		node.atText = this.words
			.filter((x) => x.start >= start && x.end <= this.end())
			.map((x) => x.text)
			.join("")
			.replace("@", "@ ");
	}
}

export const readQuery = (text: string): Query => new Reader(text).query();

/** Every selector of a query, in order. */
export const findSelectors = (text: string): SelectorNode[] => readQuery(text).selectors;

/** The selector, if the whole query is one (with no window, offset or @). */
export function parseSelector(text: string): Selector | null {
	const t = text.trim();
	const { tree } = readQuery(t);
	if (tree?.type !== "selector" || tree.start !== 0 || tree.head !== t.length) return null;
	return { name: tree.name, matchers: tree.matchers };
}

/** Without the parentheses around it. */
export const bare = (n: QueryNode): QueryNode => (n.type === "paren" ? bare(n.inner) : n);

/** The children of a node, in order. */
export function queryChildren(n: QueryNode): QueryNode[] {
	if (n.type === "binary") return [n.lhs, n.rhs];
	if (n.type === "call") return n.args;
	return n.type === "paren" || n.type === "unary" || n.type === "subquery" ? [n.inner] : [];
}

export const hasSubquery = (n: QueryNode): boolean =>
	n.type === "subquery" || queryChildren(n).some(hasSubquery);

/** The call that is the whole query. */
export function wholeCall(text: string): CallNode | null {
	const { tree } = readQuery(text);
	return tree?.type === "call" ? tree : null;
}

/** The arguments of `fn(...)`, as text, if the whole query is that one call without `by`. */
export function callArguments(text: string, fn: string): string[] | null {
	const call = wholeCall(text);
	if (!call || call.name !== fn || call.modifier) return null;
	return call.args.map((a) => text.slice(a.start, a.end));
}

/** The same of a call with one argument. */
export function callArgument(text: string, fn: string): string | null {
	const args = callArguments(text, fn);
	return args?.length === 1 ? args[0] : null;
}
