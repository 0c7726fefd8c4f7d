// The call tree as rows: the visible rows for a set of expanded nodes, and the effect of keys. Nodes
// are identified by the hash of their call path, so that they stay expanded after a refresh.
import { flameChildren, type Flame } from "../flame/layout";
import { rowByKey } from "../shared/rows";

export interface OutlineRow {
	node: number;
	/** 1 for the root. */
	level: number;
	/** Among its siblings, from 1. */
	position: number;
	siblings: number;
	/** Undefined for a leaf. */
	expanded?: boolean;
}

/** The callees of a node, the most expensive first, without those that cost nothing. */
export function callees(f: Flame, node: number): number[] {
	const [from, to] = flameChildren(f, node);
	const out: number[] = [];
	for (let i = from; i < to; i++) if (f.total[i] > 0) out.push(i);
	return out.sort((a, b) => f.total[b] - f.total[a] || a - b);
}

/** The rows from the top down: the root, and the callees of expanded nodes. */
export function outlineRows(f: Flame, expanded: ReadonlySet<number>): OutlineRow[] {
	const out: OutlineRow[] = [];
	const add = (node: number, level: number, position: number, siblings: number) => {
		const below = callees(f, node);
		const open = below.length ? expanded.has(f.path[node]) : undefined;
		out.push({ node, level, position, siblings, expanded: open });
		if (open) for (const [i, c] of below.entries()) add(c, level + 1, i + 1, below.length);
	};
	if (f.count) add(0, 1, 1, 1);
	return out;
}

/** The root and what costs most below it, level by level. */
export function heaviestPath(f: Flame): number[] {
	const out: number[] = [];
	for (let n = f.count ? 0 : -1; n >= 0; n = callees(f, n)[0] ?? -1) out.push(n);
	return out;
}

/** The nodes to expand so that a node is visible. */
export function expandedTo(f: Flame, path: number[]): Set<number> {
	return new Set(path.slice(0, -1).map((n) => f.path[n]));
}

/** The effect of a key: move to a row, expand, collapse, or pick. */
export type OutlineMove =
	{ to: number } | { open: number[] } | { close: number } | { pick: number } | null;

const parentRow = (rows: OutlineRow[], at: number): number => {
	for (let i = at - 1; i >= 0; i--) if (rows[i].level < rows[at].level) return i;
	return -1;
};

/** `at` is the row the keyboard is on; `page` how many a page holds. */
export function outlineKey(
	key: string,
	rows: OutlineRow[],
	at: number,
	page: number,
): OutlineMove {
	const row = rows[at];
	if (!row) return null;
	const to = rowByKey(key, at, rows.length, page);
	if (to >= 0) return { to };
	switch (key) {
		case "ArrowRight":
			if (row.expanded === false) return { open: [row.node] };
			return row.expanded ? { to: at + 1 } : null;
		case "ArrowLeft": {
			if (row.expanded) return { close: row.node };
			const up = parentRow(rows, at);
			return up >= 0 ? { to: up } : null;
		}
		case "*": {
			const up = parentRow(rows, at);
			const beside = rows.filter(
				(r, i) =>
					r.level === row.level && r.expanded === false && parentRow(rows, i) === up,
			);
			return { open: beside.map((r) => r.node) };
		}
		case "Enter":
			return { pick: row.node };
		default:
			return null;
	}
}
