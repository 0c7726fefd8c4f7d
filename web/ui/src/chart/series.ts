// Series of query_range for the chart: on one grid of times, stacked, and in words.
import { type Labels, labelsAmong, type MatrixElement, tellingLabels } from "../shared/api";
import { must } from "../shared/must";
import { formatClock, formatDuration, formatSpan, type Window } from "../shared/timerange";
import { type ChartUnit, counted, formatRate } from "../shared/units";

export type ChartColumn = (number | null | undefined)[];

/** A series to draw; `rest`: the total minus all others. */
export interface CostSeries extends MatrixElement {
	rest?: boolean;
}

export interface Aligned {
	times: number[];
	labels: string[];
	metrics: Labels[];
	/** Per series: a number, null for a gap, undefined for a step that a line is drawn across. */
	columns: ChartColumn[];
	/** The series that is the sum of those without a line; -1 for none. */
	rest: number;
}

/** A profile may come late; lines are drawn across this many empty steps. */
const BRIDGE_STEPS = 1;

interface Line {
	label: string;
	metric: Labels;
	column: ChartColumn;
	sum: number;
	rest: boolean;
}

/**
 * The largest `max` series, each multiplied by `factor`, on the grid of steps. With `sumSmaller`
 * the others become one series, so that a stack is as high as the total.
 */
export function alignSeries(
	matrix: CostSeries[],
	window: Window,
	step: number,
	factor: number,
	max: number,
	sumSmaller = false,
): Aligned {
	const n = Math.max(1, Math.round((window.end - window.start) / step) + 1);
	const times = Array.from({ length: n }, (_, i) => window.start + i * step);
	const telling = tellingLabels(matrix.filter((m) => !m.rest).map((m) => m.metric));
	const lines = matrix.map((m): Line => {
		const column: ChartColumn = new Array(n).fill(null);
		let sum = 0;
		for (const [t, text] of m.values) {
			const i = Math.round((t - window.start) / step);
			const v = Number(text) * factor;
			if (i < 0 || i >= n || !Number.isFinite(v)) continue;
			column[i] = v;
			sum += Math.abs(v);
		}
		const label = m.rest ? "other" : labelsAmong(m.metric, telling);
		return { label, metric: m.metric, column, sum, rest: m.rest ?? false };
	});
	lines.sort((a, b) => Number(a.rest) - Number(b.rest) || b.sum - a.sum);
	const kept = lines.slice(0, max);
	const smaller = lines.slice(max);
	if (sumSmaller && smaller.length)
		kept.push({
			label: `${smaller.length} smaller`,
			metric: {},
			column: times.map((_, i) => sumAt(smaller.map((l) => l.column[i]))),
			sum: 0,
			rest: true,
		});
	return {
		times,
		labels: kept.map((l) => l.label),
		metrics: kept.map((l) => l.metric),
		columns: kept.map((l) => bridge(l.column)),
		rest: kept.findIndex((l) => l.rest),
	};
}

function sumAt(values: ChartColumn): number | null {
	const numbers = values.filter((v): v is number => typeof v === "number");
	return numbers.length ? numbers.reduce((a, b) => a + b, 0) : null;
}

function bridge(column: ChartColumn): ChartColumn {
	let lastSeen = -1;
	for (let i = 0; i < column.length; i++) {
		if (typeof column[i] !== "number") continue;
		if (lastSeen >= 0 && i - lastSeen - 1 <= BRIDGE_STEPS)
			for (let k = lastSeen + 1; k < i; k++) column[k] = undefined;
		lastSeen = i;
	}
	return column;
}

/**
 * Takes functions and a total (the series without labels); replaces the total by the rest. A
 * function without a point in a step cost 0 there.
 */
export function withRest(matrix: MatrixElement[]): CostSeries[] {
	const total = matrix.find((m) => Object.keys(m.metric).length === 0);
	const named = matrix.filter((m) => m !== total);
	if (!total || named.length === 0) return matrix;
	const points = named.map((m) => new Map(m.values));
	const rest: [number, string][] = total.values.map(([t, all]) => [
		t,
		String(points.reduce((left, p) => left - Number(p.get(t) ?? 0), Number(all))),
	]);
	return [
		...named.map((m, i) => ({
			metric: m.metric,
			values: total.values.map(([t]): [number, string] => [t, points[i].get(t) ?? "0"]),
		})),
		{ metric: {}, values: rest, rest: true },
	];
}

/** Stacks the columns; null only where none has a value. */
export function stackColumns(columns: ChartColumn[]): ChartColumn[] {
	const filled = columns.map(fillHoles);
	const n = columns[0]?.length ?? 0;
	const sum: ChartColumn = Array.from({ length: n }, (_, i) =>
		filled.some((c) => typeof c[i] === "number") ? 0 : null,
	);
	return filled.map((c) => {
		for (let i = 0; i < n; i++) {
			const below = sum[i];
			if (typeof below === "number") sum[i] = below + (c[i] ?? 0);
		}
		return [...sum];
	});
}

/** Fills holes with the values of the line across them; else a stack would drop to 0 there. */
function fillHoles(column: ChartColumn): ChartColumn {
	return column.map((v, i) => {
		if (v !== undefined) return v;
		let a = i;
		let b = i;
		while (column[a] === undefined) a--;
		while (column[b] === undefined) b++;
		const [from, to] = [a, b].map((k) => must(column[k], "an end of a hole"));
		return from + ((to - from) * (i - a)) / (b - a);
	});
}

/** Values without neighbours, which are drawn as points. */
export function isolatedPoints(column: ChartColumn): number[] {
	const out: number[] = [];
	// null is a gap; across undefined a line is drawn.
	const alone = (v: number | null | undefined, outside: boolean) => outside || v === null;
	for (let i = 0; i < column.length; i++)
		if (
			typeof column[i] === "number" &&
			alone(column[i - 1], i === 0) &&
			alone(column[i + 1], i === column.length - 1)
		)
			out.push(i);
	return out;
}

/** The steps at which at least one series has a value. */
export function stepsWithValues(data: Aligned): number[] {
	return data.times.flatMap((_, i) =>
		data.columns.some((c) => typeof c[i] === "number") ? [i] : [],
	);
}

/** The largest value of a matrix as drawn; 0 without any. */
export function largestValue(matrix: MatrixElement[], factor: number): number {
	let max = 0;
	for (const m of matrix)
		for (const [, v] of m.values) if (Number(v) * factor > max) max = Number(v) * factor;
	return max;
}

/** A chart in words, for screen readers: first the total, then one sentence per series. */
export function describeChart(data: Aligned, unit: ChartUnit, step: number): string[] {
	const { times, columns, labels } = data;
	const whole = { start: times[0], end: times[times.length - 1] };
	const span = formatSpan(whole).replace(" – ", " to ");
	const n = columns.length;
	const head =
		`${counted(n, "line")}, ${span}, ` +
		`in ${unit.label}, step ${formatDuration(step)}.`;
	const lines = columns.map((c, i) => {
		const v = c.filter((x): x is number => typeof x === "number");
		if (v.length === 0) return `${labels[i]}: no values.`;
		const min = v.reduce((a, b) => Math.min(a, b));
		const max = v.reduce((a, b) => Math.max(a, b));
		const [low, high, last] = [min, max, v[v.length - 1]].map((x) => formatRate(x, unit));
		return `${labels[i]}: from ${low} to ${high}, last ${last}.`;
	});
	return [n === 0 ? `No profiles, ${span}.` : head, ...lines];
}

const SPOKEN = 5;

/** The values at one step, largest first. */
export function describeStep(data: Aligned, unit: ChartUnit, at: number): string {
	const rows = data.columns
		.map((c, i) => ({ label: data.labels[i], v: c[at] }))
		.filter((r): r is { label: string; v: number } => typeof r.v === "number")
		.sort((a, b) => b.v - a.v);
	const shown = rows.slice(0, SPOKEN).map((r) => `${r.label} ${formatRate(r.v, unit)}`);
	if (rows.length > SPOKEN) shown.push(`and ${rows.length - SPOKEN} more`);
	return `${formatClock(data.times[at])}: ${shown.join(", ") || "no profiles"}`;
}
