// Series of query_range on one grid of times, as the chart wants them.
import type { MatrixElement } from "./api";
import { formatLabels } from "./api";
import type { Window } from "./timerange";

export interface Aligned {
	times: number[];
	labels: string[];
	/** Per series: a number, null for a gap, undefined for a hole that is drawn over. */
	columns: (number | null | undefined)[][];
}

/** A profile may come late; this many empty steps are drawn over. */
const BRIDGE_STEPS = 1;

/** The largest `max` series, each multiplied by `factor`, on the grid of steps. */
export function alignSeries(
	matrix: MatrixElement[],
	window: Window,
	step: number,
	factor: number,
	max: number,
): Aligned {
	const n = Math.max(1, Math.round((window.end - window.start) / step) + 1);
	const times = Array.from({ length: n }, (_, i) => window.start + i * step);
	const names = [...new Set(matrix.flatMap((m) => Object.keys(m.metric)))];
	const series = matrix.map((m) => {
		const column: (number | null | undefined)[] = new Array(n).fill(null);
		let sum = 0;
		for (const [t, text] of m.values) {
			const i = Math.round((t - window.start) / step);
			const v = Number(text) * factor;
			if (i < 0 || i >= n || !Number.isFinite(v)) continue;
			column[i] = v;
			sum += Math.abs(v);
		}
		return { label: seriesLabel(m, names), column: bridge(column), sum };
	});
	series.sort((a, b) => b.sum - a.sum);
	const kept = series.slice(0, max);
	return { times, labels: kept.map((s) => s.label), columns: kept.map((s) => s.column) };
}

function bridge(column: (number | null | undefined)[]): (number | null | undefined)[] {
	let lastSeen = -1;
	for (let i = 0; i < column.length; i++) {
		if (typeof column[i] !== "number") continue;
		if (lastSeen >= 0 && i - lastSeen - 1 <= BRIDGE_STEPS)
			for (let k = lastSeen + 1; k < i; k++) column[k] = undefined;
		lastSeen = i;
	}
	return column;
}

/** One label alone is shown by its value; `names` are the labels of all series. */
function seriesLabel(m: MatrixElement, names: string[]): string {
	if (names.length === 1) return m.metric[names[0]] || `no ${names[0]}`;
	return formatLabels(m.metric, names.length ? "no labels" : "all");
}
