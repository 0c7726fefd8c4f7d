// Parts of a flame graph that are read later. The server sends the heaviest nodes; what is left out
// below a node is one more node, "other". A part is asked by its call path (and, for "other", by how
// many callees are shown beside it), and is put into the graph at its node: all hashes of paths, widths
// and totals of the rest stay as they are.
import {
	ancestry,
	flameChildren,
	type Columns,
	type Flame,
	hashPaths,
	levelOf,
	nameOf,
	setWidthMode,
} from "./layout";

/**
 * What to ask for a node: the names from the root down; for an "other", how many callees are shown
 * beside it, else null.
 */
export interface PartAsk {
	path: string[];
	skip: number | null;
}

export const isOther = (f: Flame, i: number): boolean => f.name[i] === f.other;

/** Whether nodes of this subtree were left out, as far as they have not been read yet. */
export function isCut(f: Flame, i: number): boolean {
	if (f.other < 0 || i < 0 || i >= f.count) return false;
	let [from, to] = [i, i + 1];
	for (let level = levelOf(f, i); from < to && level < f.levels; level++) {
		const end = f.start[level + 1];
		for (let k = from; k < to; k++)
			if (isOther(f, k) && flameChildren(f, k)[0] === flameChildren(f, k)[1]) return true;
		if (level + 1 >= f.levels) break;
		// The children of a run of nodes are a run.
		const first = (parent: number) => {
			let [lo, hi] = [end, f.start[level + 2]];
			while (lo < hi) {
				const mid = (lo + hi) >> 1;
				if (f.parent[mid] < parent) lo = mid + 1;
				else hi = mid;
			}
			return lo;
		};
		[from, to] = [first(from), first(to)];
	}
	return false;
}

/** The question for a node's part. An "other" is below the same node as the callees beside it. */
export function partAsk(f: Flame, i: number): PartAsk {
	let skip = 0;
	let at = i;
	for (; isOther(f, at); at = f.parent[at]) {
		const [from, to] = flameChildren(f, f.parent[at]);
		for (let k = from; k < to; k++) if (!isOther(f, k)) skip++;
	}
	const nodes = ancestry(f, at).slice(1);
	return { path: nodes.filter((n) => !isOther(f, n)).map((n) => nameOf(f, n)), skip: at === i ? null : skip };
}

/** The node of a part at the end of the path that was asked for; -1: it is not there. */
function endOfPath(part: Flame, path: string[]): number {
	let at = 0;
	for (const name of path) {
		const [from, to] = flameChildren(part, at);
		at = -1;
		for (let k = from; k < to && at < 0; k++)
			if (nameOf(part, k) === name && !isOther(part, k)) at = k;
		if (at < 0) return -1;
	}
	return at;
}

const sides = (f: Flame): Columns[] => (f.diff ? [f.diff.base, f.diff.next] : [f]);

/** Names of both: where each name of the part is in the names of the whole. */
function joinNames(f: Flame, part: Flame) {
	const names = f.names.slice();
	const files = f.files.length ? f.files.slice() : part.files.length ? [""] : [];
	const nameFiles = Array.from(f.names, (_, i) => f.nameFiles[i] ?? 0);
	const nameLines = Array.from(f.names, (_, i) => f.nameLines[i] ?? 0);
	const known = new Map(names.map((n, i) => [n, i] as const).filter(([, i]) => i !== f.other));
	const fileAt = new Map(files.map((file, i) => [file, i] as const));
	let other = f.other;
	const map = part.names.map((name, i) => {
		if (i === part.other) {
			if (other < 0) other = names.push(name) - 1;
			return other;
		}
		let to = known.get(name);
		if (to === undefined) {
			const file = part.files[part.nameFiles[i] ?? 0] ?? "";
			let at = fileAt.get(file);
			if (at === undefined) {
				at = files.push(file) - 1;
				fileAt.set(file, at);
			}
			to = names.push(name) - 1;
			known.set(name, to);
			nameFiles[to] = at;
			nameLines[to] = part.nameLines[i] ?? 0;
		}
		return to;
	});
	return { names, files, nameFiles, nameLines, other, map };
}

/** The nodes of the new graph, level by level: whose they are, their index there, and their parents. */
function plan(f: Flame, at: number, part: Flame, end: number) {
	const own: number[] = [];
	const inPart: boolean[] = [];
	const parent: number[] = [];
	const start = [0];
	const add = (i: number, ofPart: boolean, above: number) => {
		own.push(i);
		inPart.push(ofPart);
		parent.push(above);
	};
	if (f.count) add(0, false, -1);
	for (let from = 0; from < own.length; ) {
		const to = own.length;
		start.push(to);
		for (let k = from; k < to; k++) {
			const opened = !inPart[k] && own[k] === at;
			const of = opened || inPart[k] ? part : f;
			const [a, b] = flameChildren(of, opened ? end : own[k]);
			for (let c = a; c < b; c++) add(c, of === part, k);
		}
		from = to;
	}
	return { own, inPart, parent, start };
}

/**
 * The graph with a part below its node; null if the part is not that of the node: its totals differ,
 * because the profiles are others by now.
 */
export function withPart(f: Flame, at: number, part: Flame, asked: PartAsk): Flame | null {
	const end = endOfPath(part, asked.path);
	const [whole, own] = [sides(f), sides(part)];
	if (end < 0 || whole.length !== own.length) return null;
	if (whole.some((c, s) => c.total[at] !== own[s].total[end])) return null;
	const names = joinNames(f, part);
	const p = plan(f, at, part, end);
	const n = p.own.length;
	const fill = (s: number): Columns => {
		const [a, b] = [whole[s], own[s]];
		const shift = a.x[at] - b.x[end];
		const pick = (of: "x" | "total" | "self", by: number) =>
			Float64Array.from(p.own, (i, k) => (p.inPart[k] ? b[of][i] + by : a[of][i]));
		const out = { x: pick("x", shift), total: pick("total", 0), self: pick("self", 0) };
		// What was left out has no cost of its own any more: it is in its callees.
		const opened = p.own.findIndex((i, k) => !p.inPart[k] && i === at);
		out.self[opened] = b.self[end];
		return out;
	};
	const columns = whole.map((_, s) => fill(s));
	const out: Flame = {
		...f,
		...names,
		count: n,
		levels: p.start.length - 1,
		start: Uint32Array.from(p.start),
		...(f.diff ? { x: new Float64Array(n), total: new Float64Array(n), self: new Float64Array(n) } : columns[0]),
		name: Uint32Array.from(p.own, (i, k) => (p.inPart[k] ? names.map[part.name[i]] : f.name[i])),
		parent: Int32Array.from(p.parent),
		path: new Uint32Array(n),
		diff: f.diff && { ...f.diff, base: columns[0], next: columns[1] },
		before: null,
	};
	if (out.diff) setWidthMode(out, "both");
	hashPaths(out);
	return out;
}

/* ---- the zoom in the address: hashes of paths, one below the other, of which all but the last were
 *      read as parts ---- */

/** The address stays short, and the parts of one zoom fit into what is kept of them. */
export const STEPS_MAX = 48;

export const zoomSteps = (zoom: string): string[] =>
	zoom.split(".").filter(Boolean).slice(0, STEPS_MAX);

export interface Resolved {
	flame: Flame;
	/** The nodes of the steps that were found, in `flame`. */
	read: { id: string; wasCut: boolean }[];
	/** The part that is missing, and its node. */
	ask: PartAsk | null;
	/** A part does not fit: the profiles are others by now. */
	changed: boolean;
}

/**
 * The graph with the parts of a zoom, as far as `partOf` has them (undefined: not yet). Nodes down to
 * the level `whole` are whole answers already.
 */
export function resolveZoom(
	base: Flame,
	zoom: string,
	whole: number,
	partOf: (ask: PartAsk) => Flame | undefined,
): Resolved {
	const out: Resolved = { flame: base, read: [], ask: null, changed: false };
	for (const id of zoomSteps(zoom)) {
		const at = out.flame.path.indexOf(parseInt(id, 16));
		if (at <= 0) break;
		const answered = levelOf(out.flame, at) <= whole && !isOther(out.flame, at);
		const wasCut = !answered && isCut(out.flame, at);
		out.read.push({ id, wasCut });
		if (!wasCut) continue;
		const ask = partAsk(out.flame, at);
		const part = partOf(ask);
		if (!part) return { ...out, ask };
		const joined = withPart(out.flame, at, part, ask);
		if (joined) out.flame = joined;
		else out.changed = true;
	}
	return out;
}

/** The zoom in the address for a node, by the hash of its path: the parts that it is in stay open. */
export function zoomTo({ flame, read }: Pick<Resolved, "flame" | "read">, id: string): string {
	if (!id) return "";
	const at = flame.path.indexOf(parseInt(id, 16));
	const above = new Set(ancestry(flame, at).map((n) => flame.path[n]));
	const kept = read
		.filter((r) => r.wasCut && r.id !== id && above.has(parseInt(r.id, 16)))
		.map((r) => r.id);
	return [...kept.slice(0, STEPS_MAX - 1), id].join(".");
}
