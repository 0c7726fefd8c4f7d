// The callers of a function as a tree with the function as its root, each caller as wide as the cost
// that passed through it; and the tree of what the function calls.
import type { Flamebearer } from "../shared/api";
import type { Columns, Flame } from "./layout";

interface CallerNode {
	name: number;
	/** Per side: total and self. */
	total: number[];
	self: number[];
	children: Map<number, CallerNode>;
}

const ROOT = 0;

function write(root: CallerNode, names: string[], double: boolean): Flamebearer {
	const sides = double ? [0, 1] : [0];
	const levels: number[][] = [];
	const ends: number[][] = [];
	let maxSelf = 0;
	const byName = (a: CallerNode, b: CallerNode) =>
		names[a.name] < names[b.name] ? -1 : names[a.name] > names[b.name] ? 1 : 0;
	const emit = (node: CallerNode, level: number, at: number[]) => {
		levels[level] ??= [];
		ends[level] ??= sides.map(() => 0);
		const [row, end] = [levels[level], ends[level]];
		for (const s of sides) {
			row.push(at[s] - end[s], node.total[s], node.self[s]);
			end[s] = at[s] + node.total[s];
			maxSelf = Math.max(maxSelf, node.self[s]);
		}
		row.push(node.name);
		const child = at.slice();
		for (const c of [...node.children.values()].sort(byName)) {
			emit(c, level + 1, child);
			for (const s of sides) child[s] += c.total[s];
		}
	};
	emit(
		root,
		0,
		sides.map(() => 0),
	);
	return {
		format: double ? "double" : "single",
		names,
		levels,
		numTicks: root.total.reduce((a, b) => a + b, 0),
		maxSelf,
		...(double ? { leftTicks: root.total[0], rightTicks: root.total[1] } : {}),
	};
}

/**
 * The tree of `callers(P, fn)` with `fn` as its root and its callers below it, outermost last. A
 * stack that was folded before it reached `fn` passes through the folded node.
 */
export function invertCallers(f: Flame, fn: string): Flamebearer {
	const sides: Columns[] = f.diff ? [f.diff.base, f.diff.next] : [f];
	const names = [fn];
	const index = new Map<string, number>([[fn, ROOT]]);
	const nameIndex = (name: string): number => {
		let i = index.get(name);
		if (i === undefined) {
			i = names.push(name) - 1;
			index.set(name, i);
		}
		return i;
	};
	const fresh = (name: number): CallerNode => ({
		name,
		total: sides.map(() => 0),
		self: sides.map(() => 0),
		children: new Map(),
	});
	const root = fresh(ROOT);
	for (let i = 1; i < f.count; i++) {
		const cost = sides.map((s) => s.self[i]);
		if (cost.every((c) => c === 0)) continue;
		let node = root;
		const add = (n: CallerNode) => {
			for (let s = 0; s < cost.length; s++) n.total[s] += cost[s];
		};
		add(node);
		// The leaf is the function itself, unless it was folded.
		const from = f.names[f.name[i]] === fn ? f.parent[i] : i;
		for (let n = from; n > 0; n = f.parent[n]) {
			const name = nameIndex(f.names[f.name[n]]);
			let next = node.children.get(name);
			if (!next) {
				next = fresh(name);
				node.children.set(name, next);
			}
			node = next;
			add(node);
		}
		for (let s = 0; s < cost.length; s++) node.self[s] += cost[s];
	}
	return write(root, names, f.diff !== null);
}

/** The tree of `callees(P, fn)` with `fn` as its root. */
export function withoutRoot(fb: Flamebearer): Flamebearer {
	const group = fb.format === "double" ? 7 : 4;
	if (fb.levels.length < 2 || fb.levels[1].length !== group) return fb;
	return { ...fb, levels: fb.levels.slice(1) };
}

export interface Neighbour {
	name: string;
	/** The cost passed from or to it; in a difference new minus base. */
	cost: number;
	base?: number;
	next?: number;
}

/** The functions next to the root, with the cost passed; the most expensive first. */
export function neighbours(f: Flame): Neighbour[] {
	const out = new Map<string, Neighbour>();
	for (let i = f.start[1] ?? 0; i < (f.start[2] ?? 0); i++) {
		const name = f.names[f.name[i]];
		const row: Neighbour = out.get(name) ?? { name, cost: 0 };
		if (f.diff) {
			row.base = (row.base ?? 0) + f.diff.base.total[i];
			row.next = (row.next ?? 0) + f.diff.next.total[i];
			row.cost = row.next - row.base;
		} else row.cost += f.total[i];
		out.set(name, row);
	}
	return [...out.values()].sort(
		(a, b) => Math.abs(b.cost) - Math.abs(a.cost) || (a.name < b.name ? -1 : 1),
	);
}
