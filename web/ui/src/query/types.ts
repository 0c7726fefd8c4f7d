// The type of a query's answer, by the server's table of functions. If a name may mean profiles or
// numbers, it is a guess; only the server knows.
import { argumentTypes, functionNamed, type Operator } from "./language";
import { bare, queryChildren, type QueryNode, parseSelector, readQuery, type SelectorNode } from "./read";

export type ValueType = "profiles" | "costs" | "scalar" | "table" | "string" | "frames" | "range";
type Types = Set<ValueType>;

const of = (...types: ValueType[]): Types => new Set(types);

/** The type of `l op r` as the server checks it; null if it is an error. */
function binaryType(op: Operator, l: ValueType, r: ValueType): ValueType | null {
	const both = `${l} ${r}`;
	if (both === "costs costs") return "costs";
	if (both === "profiles profiles") return op.name === "-" ? "profiles" : null;
	if (both === "profiles scalar") return "*/".includes(op.name) ? "profiles" : null;
	if (both === "scalar profiles") return op.name === "*" ? "profiles" : null;
	if (op.kind === "set") return null;
	if (both === "scalar scalar") return "scalar";
	return both === "costs scalar" || both === "scalar costs" ? "costs" : null;
}

/** All types that an expression may have; empty if a function is unknown. */
export function typesOf(n: QueryNode): Types {
	switch (n.type) {
		case "number":
			return of("scalar");
		case "string":
		case "frames":
			return of(n.type);
		case "selector":
			return n.range === null ? of("profiles", "costs") : of("profiles");
		case "subquery":
			return of("range");
		case "paren":
			return typesOf(n.inner);
		case "unary":
			return new Set([...typesOf(n.inner)].filter((t) => t === "scalar" || t === "costs"));
		case "binary": {
			const out: Types = new Set();
			for (const l of typesOf(n.lhs))
				for (const r of typesOf(n.rhs)) {
					const type = binaryType(n.op, l, r);
					if (type) out.add(type);
				}
			if (n.many) out.delete("profiles");
			return out;
		}
		case "call": {
			const returns = functionNamed(n.name)?.returns;
			const types = new Set((returns?.split(" or ") ?? []) as ValueType[]);
			// Over a window, they are what the window has.
			if (types.has("costs") && n.args.some((a) => bare(a).type === "subquery")) types.delete("profiles");
			return types;
		}
	}
}

/** Whether an expression gives profiles, or may. */
export function maybeProfiles(n: QueryNode): boolean {
	const types = typesOf(n);
	return types.size === 0 || types.has("profiles");
}

/** Whether argument `i` of a call takes only profiles. */
function wantsProfiles(name: string, i: number): boolean {
	const f = functionNamed(name);
	if (!f) return true;
	const types = f.argumentTypes[i] ?? [];
	return types.includes("profiles") && !types.includes("costs");
}

/** Whether argument `i` of a call may be profiles. */
const takesProfiles = (name: string, i: number): boolean =>
	argumentTypes(name, i).includes("profiles");

/** The selectors of profiles in a query about profiles, without those of numbers. */
export function profileSelectors(n: QueryNode, wanted = true): SelectorNode[] {
	if (n.type === "selector") return wanted ? [n] : [];
	if (n.type === "call") {
		// `rate(cpu[5m])` is of profiles where these are wanted.
		const through = wanted && typesOf(n).has("profiles");
		return n.args.flatMap((a, i) =>
			profileSelectors(a, wantsProfiles(n.name, i) || (through && takesProfiles(n.name, i))),
		);
	}
	if (n.type === "subquery") return profileSelectors(n.inner, false);
	if (n.type === "binary") {
		const whole = wanted && maybeProfiles(n);
		return [n.lhs, n.rhs].flatMap((s) => profileSelectors(s, whole && maybeProfiles(s)));
	}
	return queryChildren(n).flatMap((c) => profileSelectors(c, wanted));
}

export type QueryKind = "selector" | "profiles" | "costs" | "top" | "unknown";

/** The probable type of the answer: a guess that saves a round trip. */
export function guessKind(text: string): QueryKind {
	if (parseSelector(text)) return "selector";
	const { tree } = readQuery(text);
	if (!tree) return "unknown";
	const types = typesOf(tree);
	if (tree.type === "call") {
		if (types.has("table")) return "top";
		if (types.has("profiles")) return "profiles";
		return types.size ? "costs" : "unknown";
	}
	return types.size === 1 && types.has("costs") ? "costs" : "unknown";
}

