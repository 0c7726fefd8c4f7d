// From the server's flamebearer to columns. A node is an index; nodes are ordered by level and from
// left to right. So a level is a run of indices sorted by x, its parents are sorted too, and drawing
// and hit testing are binary searches. Computed once per answer.
import type { Flamebearer } from "../shared/api";
import { must } from "../shared/must";

/** The name of the node into which the server folds small nodes. It is no function. */
export const FOLDED = "other";

export type WidthMode = "both" | "new" | "base";

/** One side of a difference: its own x, total and self of every node. */
export interface Columns {
	x: Float64Array;
	total: Float64Array;
	self: Float64Array;
}

/** Both sides of a difference. */
export interface FlameDiff {
	base: Columns;
	next: Columns;
	baseTotal: number;
	nextTotal: number;
}

export interface Flame {
	count: number;
	levels: number;
	/** Level `l` is the nodes start[l] .. start[l+1]-1. */
	start: Uint32Array;
	x: Float64Array;
	total: Float64Array;
	self: Float64Array;
	name: Uint32Array;
	/** -1 for the root. */
	parent: Int32Array;
	/** A hash of the names from the root down, equal for the same call path in any answer. */
	path: Uint32Array;
	names: string[];
	/** The name of nodes into which others were folded, which is no function; -1: there is none. */
	other: number;
	/** The width of the root, in the unit of x. */
	width: number;
	diff: FlameDiff | null;
	/** In a rearranged graph, the node for each path of the original. */
	before: { path: Uint32Array; at: Uint32Array } | null;
	/** Files of functions, if the answer has them: a name's file is files[nameFiles[name]]. */
	files: string[];
	nameFiles: ArrayLike<number>;
	nameLines: ArrayLike<number>;
}

export function hashName(s: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 0x01000193);
	return h >>> 0;
}

const GROUP = { single: 4, double: 7 };

function columns(n: number): Columns {
	return { x: new Float64Array(n), total: new Float64Array(n), self: new Float64Array(n) };
}

/** Decodes the delta coded groups of one side: `[dx, total, self]` at `offset` of each group. */
function decodeSide(fb: Flamebearer, group: number, offset: number, out: Columns): void {
	let i = 0;
	for (const row of fb.levels) {
		let end = 0;
		for (let k = offset; k < row.length; k += group) {
			out.x[i] = end + row[k];
			out.total[i] = row[k + 1];
			out.self[i] = row[k + 2];
			end = out.x[i] + out.total[i];
			i++;
		}
	}
}

function checkLevels(fb: Flamebearer, group: number): number {
	let n = 0;
	fb.levels.forEach((row, l) => {
		if (row.length % group !== 0)
			throw new Error(
				`flame graph: level ${l} holds ${row.length} numbers, not groups of ${group}`,
			);
		for (let k = group - 1; k < row.length; k += group)
			if (!(row[k] >= 0 && row[k] < fb.names.length))
				throw new Error(
					`flame graph: level ${l} names function ${row[k]} of ${fb.names.length}`,
				);
		n += row.length / group;
	});
	return n;
}

/** Parents by a sweep: both levels are sorted by x, and a child lies inside its parent. */
function linkParents(f: Flame): void {
	f.parent.fill(-1);
	for (let l = 1; l < f.levels; l++) {
		let p = f.start[l - 1];
		const pEnd = f.start[l];
		for (let i = f.start[l]; i < f.start[l + 1]; i++) {
			while (p + 1 < pEnd && f.x[p] + f.total[p] <= f.x[i]) p++;
			f.parent[i] = p;
		}
	}
}

export function hashPaths(f: Flame): void {
	const nameHash = Uint32Array.from(f.names, hashName);
	// A function of that name may be its neighbour.
	if (f.other >= 0) nameHash[f.other] = ~nameHash[f.other];
	for (let i = 0; i < f.count; i++) {
		const up = f.parent[i] < 0 ? 0x9e3779b9 : f.path[f.parent[i]];
		let h = Math.imul(up ^ nameHash[f.name[i]], 0x85ebca6b);
		h ^= h >>> 15;
		f.path[i] = Math.imul(h, 0xc2b2ae35) >>> 0;
	}
}

export function buildFlame(fb: Flamebearer): Flame {
	const group = GROUP[fb.format];
	if (!group) throw new Error(`flame graph: unknown format ${String(fb.format)}`);
	const count = checkLevels(fb, group);
	const start = new Uint32Array(fb.levels.length + 1);
	fb.levels.forEach((row, l) => {
		start[l + 1] = start[l] + row.length / group;
	});

	const f: Flame = {
		count,
		levels: fb.levels.length,
		start,
		...columns(count),
		name: new Uint32Array(count),
		parent: new Int32Array(count),
		path: new Uint32Array(count),
		names: fb.names,
		other: fb.other ?? -1,
		width: 0,
		diff: null,
		before: null,
		files: fb.files ?? [],
		nameFiles: fb.nameFiles ?? [],
		nameLines: fb.nameLines ?? [],
	};
	let i = 0;
	for (const row of fb.levels)
		for (let k = group - 1; k < row.length; k += group) f.name[i++] = row[k];

	if (fb.format === "single") {
		decodeSide(fb, group, 0, f);
		f.width = count ? f.total[0] : 0;
	} else {
		const base = columns(count);
		const next = columns(count);
		decodeSide(fb, group, 0, base);
		decodeSide(fb, group, 3, next);
		f.diff = {
			base,
			next,
			baseTotal: fb.leftTicks ?? base.total[0] ?? 0,
			nextTotal: fb.rightTicks ?? next.total[0] ?? 0,
		};
		setWidthMode(f, "both");
	}
	linkParents(f);
	hashPaths(f);
	return f;
}

/**
 * The meaning of a node's width in a difference. Both sides have the same order, so the sum of their
 * positions is a layout too: children stay within their parents.
 */
export function setWidthMode(f: Flame, mode: WidthMode): void {
	if (!f.diff) return;
	const { base, next } = f.diff;
	for (const key of ["x", "total", "self"] as const) {
		const out = f[key];
		for (let i = 0; i < f.count; i++)
			out[i] =
				mode === "both"
					? base[key][i] + next[key][i]
					: mode === "new"
						? next[key][i]
						: base[key][i];
	}
	f.width = f.count ? f.total[0] : 0;
}

export function levelOf(f: Flame, i: number): number {
	let lo = 0;
	let hi = f.levels - 1;
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (f.start[mid] <= i) lo = mid;
		else hi = mid - 1;
	}
	return lo;
}

/** The first node of a level that ends right of `x`. */
export function firstEndingAfter(f: Flame, level: number, x: number): number {
	let lo = f.start[level];
	let hi = f.start[level + 1];
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (f.x[mid] + f.total[mid] <= x) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** The node that covers `x` on a level; -1 for none. */
export function nodeAt(f: Flame, level: number, x: number): number {
	if (level < 0 || level >= f.levels) return -1;
	const i = firstEndingAfter(f, level, x);
	return i < f.start[level + 1] && f.x[i] <= x ? i : -1;
}

/** The children of a node as a half-open run; they are neighbours. */
export function flameChildren(f: Flame, i: number): [number, number] {
	const level = levelOf(f, i) + 1;
	if (level >= f.levels) return [0, 0];
	const bound = (want: number) => {
		let lo = f.start[level];
		let hi = f.start[level + 1];
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (f.parent[mid] < want) lo = mid + 1;
			else hi = mid;
		}
		return lo;
	};
	return [bound(i), bound(i + 1)];
}

/** From the root down to the node, both included. */
export function ancestry(f: Flame, i: number): number[] {
	const out: number[] = [];
	for (let n = i; n >= 0; n = f.parent[n]) out.push(n);
	return out.reverse();
}

export function findPath(f: Flame, hash: number): number {
	const i = f.path.indexOf(hash);
	if (i >= 0 || !f.before) return i;
	const old = f.before.path.indexOf(hash);
	return old < 0 ? -1 : f.before.at[old];
}

/** The node of a zoom in the address; the root if the graph has no such path. */
export function zoomedNode(f: Flame, zoom: string): number {
	return zoom && f.count ? Math.max(0, findPath(f, parseInt(zoom, 16))) : 0;
}

/** The file of a function; "" if unknown. */
export const fileOf = (f: Flame, name: number): string => f.files[f.nameFiles[name] ?? 0] ?? "";

const hex = (hash: number): string => hash.toString(16).padStart(8, "0");
export const pathId = (f: Flame, i: number): string => hex(f.path[i]);

/** The same for the graph as it was before it was rearranged: of several nodes the first. */
export function pathIdBefore(f: Flame, i: number): string {
	const at = f.before?.at.indexOf(i) ?? -1;
	return f.before && at >= 0 ? hex(f.before.path[at]) : pathId(f, i);
}
export const nameOf = (f: Flame, i: number): string => f.names[f.name[i]];

/** The sides of a graph that is a difference. */
export const diffOf = (f: Flame): FlameDiff => must(f.diff, "the difference");

/** Whether a difference has costs on both sides; else there is nothing to compare. */
export const comparable = (f: Flame): boolean =>
	f.diff !== null && f.diff.baseTotal > 0 && f.diff.nextTotal > 0;

/** A change of less than this part of the larger total fades to "no change". */
const SMALL = 0.005;

/**
 * Change of a node's cost, -1 (vanished) .. 1 (new), relative to the larger side. Both sides have the
 * same total where the difference is normalized, so there it is the change of the share.
 */
export function costChange(f: Flame, i: number): number {
	if (!f.diff || !comparable(f)) return 0;
	const { base, next, baseTotal, nextTotal } = f.diff;
	const change = next.total[i] - base.total[i];
	const larger = Math.max(base.total[i], next.total[i]);
	if (larger <= 0) return 0;
	const weight = Math.abs(change) / (SMALL * Math.max(baseTotal, nextTotal));
	return (change / larger) * Math.min(1, weight);
}
