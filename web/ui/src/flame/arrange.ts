// Rearranges a flame graph: siblings by cost, recursion as one frame.
//
// Collapsing joins consecutive frames of one function: main > walk > walk > walk > leaf becomes
// main > walk > leaf. The callees of the inner walks become callees of the remaining one; callees of
// the same name become one node. Mutual recursion (a > b > a) is not joined: it is not clear which
// frame should remain, and pprof and speedscope leave it too. The total of a node is the cost of its
// stacks, each counted once, and selfs are added up; so the whole and each function's flat and cum
// are exact.
//
// A zoom is the hash of a call path of the original graph, which finds the node that it became part of.
// Order does not change it.
import { type Columns, type Flame, FOLDED, hashPaths } from "./layout";
import type { FlameLook } from "./look";

export type Arrangement = Pick<FlameLook, "order" | "collapse">;

/** The children of old node `i` are first[i] .. first[i+1]-1; parents never fall. */
function firstChildren(f: Flame): Uint32Array {
	const first = new Uint32Array(f.count + 1);
	let c = Math.min(1, f.count);
	for (let i = 0; i < f.count; i++) {
		while (c < f.count && f.parent[c] < i) c++;
		first[i] = c;
	}
	first[f.count] = f.count;
	return first;
}

/** The position of each name among siblings. */
function nameRanks(names: string[]): Uint32Array {
	const order = names.map((_, i) => i);
	const last = (i: number) => (names[i] === FOLDED ? 1 : 0);
	order.sort((a, b) => last(a) - last(b) || (names[a] < names[b] ? -1 : 1));
	const rank = new Uint32Array(names.length);
	order.forEach((name, r) => {
		rank[name] = r;
	});
	return rank;
}

/** New nodes level by level, each with the old nodes it is made of. */
interface Plan {
	count: number;
	start: number[];
	name: Uint32Array;
	parent: Int32Array;
	/** Old nodes of new node `k`: members[from[k]] .. ; the first direct[k] are not absorbed. */
	members: Uint32Array;
	from: Uint32Array;
	direct: Uint32Array;
}

class Planner {
	plan: Plan;
	private first: Uint32Array;
	private used = 0;
	private kids: number[] = [];

	constructor(
		private f: Flame,
		private collapse: boolean,
	) {
		const n = f.count;
		this.first = firstChildren(f);
		this.plan = {
			count: 0,
			start: [0],
			name: new Uint32Array(n),
			parent: new Int32Array(n),
			members: new Uint32Array(n),
			from: new Uint32Array(n + 1),
			direct: new Uint32Array(n),
		};
	}

	/** A node out of kids[at .. end-1], all of one name, and of the same function below them. */
	private add(parent: number, kids: number[], at: number, end: number): void {
		const { f, plan, first } = this;
		const k = plan.count++;
		const name = f.name[kids[at]];
		plan.name[k] = name;
		plan.parent[k] = parent;
		plan.from[k] = this.used;
		plan.direct[k] = end - at;
		for (let j = at; j < end; j++) plan.members[this.used++] = kids[j];
		if (this.collapse && parent >= 0 && f.names[name] !== FOLDED)
			for (let m = plan.from[k]; m < this.used; m++)
				for (let c = first[plan.members[m]]; c < first[plan.members[m] + 1]; c++)
					if (f.name[c] === name) plan.members[this.used++] = c;
		plan.from[k + 1] = this.used;
	}

	private childrenOf(k: number): number[] {
		const { f, plan, first, kids } = this;
		kids.length = 0;
		const own = this.collapse && k > 0 ? plan.name[k] : -1;
		const folded = own >= 0 && f.names[own] === FOLDED;
		for (let m = plan.from[k]; m < plan.from[k + 1]; m++)
			for (let c = first[plan.members[m]]; c < first[plan.members[m] + 1]; c++)
				if (f.name[c] !== own || folded) kids.push(c);
		return kids;
	}

	run(rank: Uint32Array, byCost: boolean): Plan {
		const { f, plan } = this;
		if (f.count === 0) return plan;
		this.add(-1, [0], 0, 1);
		const cost = new Float64Array(f.names.length);
		const isFolded = f.names.map((n) => n === FOLDED);
		const compare = (a: number, b: number) => {
			const x = f.name[a];
			const y = f.name[b];
			if (byCost && cost[x] !== cost[y] && isFolded[x] === isFolded[y])
				return cost[y] - cost[x];
			return rank[x] - rank[y] || a - b;
		};
		for (let from = 0; from < plan.count; ) {
			const to = plan.count;
			plan.start.push(to);
			for (let k = from; k < to; k++) {
				const kids = this.childrenOf(k);
				for (const c of kids) cost[f.name[c]] = 0;
				for (const c of kids) cost[f.name[c]] += f.total[c];
				if (kids.length > 1) kids.sort(compare);
				for (let at = 0, end = 0; at < kids.length; at = end) {
					for (end = at + 1; end < kids.length; end++)
						if (f.name[kids[end]] !== f.name[kids[at]]) break;
					this.add(k, kids, at, end);
				}
			}
			from = to;
		}
		return plan;
	}
}

/** The plan filled in for one set of columns; children begin where `selfFirst` says. */
function fill(plan: Plan, old: Columns, selfFirst: boolean): Columns {
	const n = plan.count;
	const out = { x: new Float64Array(n), total: new Float64Array(n), self: new Float64Array(n) };
	const next = new Float64Array(n);
	for (let k = 0; k < n; k++) {
		const from = plan.from[k];
		for (let m = from; m < plan.from[k + 1]; m++) {
			out.self[k] += old.self[plan.members[m]];
			if (m < from + plan.direct[k]) out.total[k] += old.total[plan.members[m]];
		}
		const p = plan.parent[k];
		out.x[k] = p < 0 ? old.x[0] : next[p];
		if (p >= 0) next[p] += out.total[k];
		next[k] = out.x[k] + (selfFirst ? out.self[k] : 0);
	}
	return out;
}

/** The flame graph in the given look; `f` itself if nothing changes. */
export function arrange(f: Flame, look: Arrangement): Flame {
	const byCost = look.order === "cost";
	if ((!byCost && !look.collapse) || f.count === 0) return f;
	const plan = new Planner(f, look.collapse).run(nameRanks(f.names), byCost);
	const n = plan.count;
	const out: Flame = {
		...f,
		count: n,
		levels: plan.start.length - 1,
		start: Uint32Array.from(plan.start),
		// By cost, the most expensive callee is at its caller's left edge.
		...fill(plan, f, !byCost),
		name: plan.name.subarray(0, n),
		parent: plan.parent.subarray(0, n),
		path: new Uint32Array(n),
		diff: f.diff && {
			...f.diff,
			base: fill(plan, f.diff.base, !byCost),
			next: fill(plan, f.diff.next, !byCost),
		},
		before: null,
	};
	hashPaths(out);
	if (look.collapse) {
		const at = new Uint32Array(f.count);
		for (let k = 0; k < n; k++)
			for (let m = plan.from[k]; m < plan.from[k + 1]; m++) at[plan.members[m]] = k;
		out.before = { path: f.path, at };
	}
	return out;
}
