// The elements of a grouped answer: as one tree, whose first level are the values of the labels, and as
// groups with their colours and shares.
import { seriesColor } from "../flame/color";
import { withFunctionFiles } from "../flame/functionfiles";
import {
	type Flamebearer,
	formatLabels,
	type Labels,
	labelsAmong,
	metricKey,
	type ProfileElement,
	tellingLabels,
} from "../shared/api";
import { share } from "../shared/units";

/** The name of an element: the value of its only label, else all its labels. */
export function elementName(metric: Labels, labels: string[]): string {
	if (labels.length === 1) return metric[labels[0]] || `no ${labels[0]}`;
	return formatLabels(metric, "no labels");
}

/** The labels that any of the elements has. */
export function labelNames(elements: { metric: Labels }[]): string[] {
	return [...new Set(elements.flatMap((e) => Object.keys(e.metric)))];
}

const GROUP = { single: 4, double: 7 };

/** Adds a tree below another's levels, to the right of what is there. */
class Combined {
	names: string[] = ["total"];
	/** The name of folded nodes, which is no function's. */
	other = -1;
	levels: number[][] = [];
	private byName = new Map<string, number>();
	/** The end of each side of each level so far. */
	private ends: number[][] = [];

	constructor(private group: number) {}

	nameIndex(name: string): number {
		let i = this.byName.get(name);
		if (i === undefined) {
			i = this.names.push(name) - 1;
			this.byName.set(name, i);
		}
		return i;
	}

	private otherIndex(name: string): number {
		if (this.other < 0) this.other = this.names.push(name) - 1;
		return this.other;
	}

	/** One node at x per side; each side is `[x, total, self]`. */
	node(level: number, sides: number[][], name: number): void {
		this.levels[level] ??= [];
		this.ends[level] ??= sides.map(() => 0);
		const [row, ends] = [this.levels[level], this.ends[level]];
		sides.forEach(([x, total, self], s) => {
			row.push(x - ends[s], total, self);
			ends[s] = x + total;
		});
		row.push(name);
	}

	/** A whole tree, its root under `title` on the first level, at `offsets` per side. */
	tree(fb: Flamebearer, title: string, offsets: number[]): void {
		const map = fb.names.map((name, i) =>
			i === 0 ? 0 : i === fb.other ? this.otherIndex(name) : this.nameIndex(name),
		);
		fb.levels.forEach((row, l) => {
			const ends = offsets.slice();
			for (let k = 0; k < row.length; k += this.group) {
				const sides = offsets.map((_, s) => {
					const [dx, total, self] = row.slice(k + 3 * s, k + 3 * s + 3);
					const x = ends[s] + dx;
					ends[s] = x + total;
					return [x, total, self];
				});
				const name = l === 0 ? this.nameIndex(title) : map[row[k + this.group - 1]];
				this.node(l + 1, sides, name);
			}
		});
	}
}

/** Total of each side of a tree. */
function totals(fb: Flamebearer): number[] {
	const root = fb.levels[0] ?? [];
	return fb.format === "double" ? [root[1] ?? 0, root[4] ?? 0] : [root[1] ?? 0];
}

/** One tree of several, the greatest first; all are of one format. */
export function combineFlames(parts: { title: string; flame: Flamebearer }[]): Flamebearer {
	const format = parts[0]?.flame.format ?? "single";
	const out = new Combined(GROUP[format]);
	const size = (fb: Flamebearer) => totals(fb).reduce((a, b) => a + b, 0);
	const sorted = parts.slice().sort((a, b) => size(b.flame) - size(a.flame));
	const sums = sorted.reduce(
		(sum, p) => totals(p.flame).map((t, i) => t + (sum[i] ?? 0)),
		format === "double" ? [0, 0] : [0],
	);
	out.node(
		0,
		sums.map((t) => [0, t, 0]),
		0,
	);
	let offsets = sums.map(() => 0);
	for (const p of sorted) {
		out.tree(p.flame, p.title, offsets);
		const own = totals(p.flame);
		offsets = offsets.map((o, i) => o + own[i]);
	}
	const all: Flamebearer = {
		format,
		names: out.names,
		levels: out.levels,
		...(out.other < 0 ? {} : { other: out.other }),
		numTicks: sums.reduce((a, b) => a + b, 0),
		maxSelf: parts.reduce((m, p) => Math.max(m, p.flame.maxSelf), 0),
		...(format === "double" ? { leftTicks: sums[0], rightTicks: sums[1] } : {}),
	};
	return withFunctionFiles(all, ...parts.map((p) => p.flame));
}

/** All elements as one element. */
export function together(elements: ProfileElement[]): ProfileElement {
	const labels = labelNames(elements);
	const sum = (of: (e: ProfileElement) => number) => elements.reduce((n, e) => n + of(e), 0);
	const flamebearer = combineFlames(
		elements.map((e) => ({ title: elementName(e.metric, labels), flame: e.flamebearer })),
	);
	return {
		...elements[0],
		metric: {},
		total: sum((e) => e.total),
		cost: sum((e) => e.cost),
		profiles: elements.reduce((n, e) => Math.max(n, e.profiles), 0),
		...(flamebearer.format === "double"
			? {
					left_total: sum((e) => e.left_total ?? 0),
					right_total: sum((e) => e.right_total ?? 0),
				}
			: {}),
		flamebearer,
	};
}

/* ---- colours and shares ---- */

/** Colours of groups by their labels, as the chart has them. */
export type GroupColors = Map<string, string>;

export interface Group {
	/** Its place in the answer. */
	index: number;
	name: string;
	title: string;
	color: string;
	element: ProfileElement;
	/** 0..100; null in a difference, and where costs cancel out. */
	share: number | null;
}

/** The groups, the greatest first. Without a chart each rank has its colour. */
export function groupsOf(
	elements: ProfileElement[],
	colors: GroupColors | undefined,
	theme: "light" | "dark",
): Group[] {
	const telling = tellingLabels(elements.map((e) => e.metric));
	const costs = elements.map((e) => e.cost);
	const all = costs.every((c) => c >= 0) ? costs.reduce((a, b) => a + b, 0) : 0;
	const diff = elements[0]?.flamebearer.format === "double";
	return elements
		.map((element, index) => ({ element, index }))
		.sort((a, b) => Math.abs(b.element.cost) - Math.abs(a.element.cost) || a.index - b.index)
		.map(({ element, index }, rank) => ({
			element,
			index,
			name: labelsAmong(element.metric, telling),
			title: Object.entries(element.metric)
				.map(([k, v]) => `${k}="${v}"`)
				.join(", "),
			color: colors?.size
				? (colors.get(metricKey(element.metric)) ?? seriesColor(-1, theme))
				: seriesColor(rank, theme),
			share: !diff && all > 0 ? share(element.cost, all) : null,
		}));
}
