// The heatmap as numbers: rows by cost, one column per step, a value or a gap per cell; and in words.
import { type Labels, labelsAmong, type MatrixElement, tellingLabels, type VectorElement } from "../shared/api";
import { formatClock, formatDuration, formatSpan, type Window } from "../shared/timerange";
import { type ChartUnit, counted, formatPercent, formatRate, parseSample, share } from "../shared/units";
import { ROWS_ASKED, HEAT_ROWS_MAX } from "./heatqueries";

export interface HeatRow {
	metric: Labels;
	label: string;
	/** What it cost in the whole window; of levels the mean. */
	total: number;
}

export interface HeatRows {
	rows: HeatRow[];
	/** The labels of all rows, also of those that are not drawn. */
	all: Labels[];
	/** How many rows are not drawn, and their part of the cost in percent. */
	left: number;
	leftShare: number;
}

const keyOf = (metric: Labels): string =>
	JSON.stringify(
		Object.entries(metric)
			.filter(([l]) => l !== "__name__")
			.sort(([a], [b]) => (a < b ? -1 : 1)),
	);

/** The rows that are drawn: the most expensive first, equal ones by name. */
export function heatRows(result: VectorElement[]): HeatRows {
	const all = result.map((e) => e.metric);
	const telling = tellingLabels(all);
	const rows = result
		.map((e) => ({
			metric: e.metric,
			label: labelsAmong(e.metric, telling),
			total: parseSample(e.value[1]),
		}))
		.sort((a, b) => b.total - a.total || (a.label < b.label ? -1 : 1));
	const sum = (of: HeatRow[]) => of.reduce((s, r) => s + Math.abs(r.total), 0);
	const hidden = rows.slice(HEAT_ROWS_MAX);
	return {
		rows: rows.slice(0, HEAT_ROWS_MAX),
		all,
		left: hidden.length,
		leftShare: share(sum(hidden), sum(rows)),
	};
}

/** What is said of the rows that are not drawn; "" if there are none. */
export function restWords({ rows, all, left, leftShare }: HeatRows): string {
	if (!left) return "";
	const some = all.length >= ROWS_ASKED;
	const others = left === 1 ? "the other one" : `the other ${left.toLocaleString("en")}`;
	return (
		`Top ${counted(rows.length, "row")} of ${some ? "at least " : ""}${all.length}: ` +
		`${others} cost ${formatPercent(leftShare)} of ${some ? "these" : "all"}.`
	);
}

export interface Heat {
	rows: HeatRow[];
	/** The columns end at these times; each is as long as `step`. */
	times: number[];
	step: number;
	/** By how many seconds the columns of a row are later; less than a step. */
	shifts: number[];
	/** Row by row: the server's number, NaN for a gap. */
	values: Float64Array;
	/** How many profiles a cell has; null where that is not known. */
	counts: Float64Array | null;
	max: number;
	/** The cell with the greatest value, the first of equal ones; -1 if there is no value. */
	hottest: number;
}

/** A matrix on the grid of rows and columns; points elsewhere are left out. */
function onGrid(matrix: MatrixElement[], rows: HeatRow[], window: Window, step: number, n: number) {
	const out = new Float64Array(rows.length * n).fill(NaN);
	const at = new Map(rows.map((r, i) => [keyOf(r.metric), i]));
	let placed = 0;
	for (const m of matrix) {
		const row = at.get(keyOf(m.metric));
		if (row === undefined) continue;
		placed++;
		for (const [t, text] of m.values) {
			const i = Math.round((t - window.start) / step);
			const v = parseSample(text);
			if (i >= 0 && i < n && Number.isFinite(v)) out[row * n + i] = v;
		}
	}
	return { out, placed };
}

function hottestOf(values: Float64Array): { hottest: number; max: number } {
	let hottest = -1;
	for (let i = 0; i < values.length; i++)
		if (values[i] > (hottest < 0 ? -Infinity : values[hottest])) hottest = i;
	return { hottest, max: hottest < 0 ? 0 : Math.max(0, values[hottest]) };
}

export function heatOf(
	rows: HeatRow[],
	cells: MatrixElement[],
	counts: MatrixElement[] | null,
	window: Window,
	step: number,
): Heat {
	const n = Math.max(1, Math.round((window.end - window.start) / step) + 1);
	const values = onGrid(cells, rows, window, step, n).out;
	const counted = counts && onGrid(counts, rows, window, step, n);
	return {
		rows,
		times: Array.from({ length: n }, (_, i) => window.start + i * step),
		step,
		shifts: rows.map(() => 0),
		values,
		counts: counted?.placed ? counted.out : null,
		...hottestOf(values),
	};
}

/** The end of a cell's column. */
export const endOf = ({ times, shifts }: Heat, cell: number): number =>
	times[cell % times.length] + shifts[Math.floor(cell / times.length)];

/**
 * The rows whose profiles end so near to the edge of a column that some come just behind it. There
 * `rate` takes one profile twice and leaves one out (promql/rate_window.c), which is right for a line
 * and wrong for single profiles.
 */
export function onEdge(heat: Heat): number[] {
	const { rows, times, values } = heat;
	const strange = (cell: number) => {
		const count = countAt(heat, cell);
		return count === 2 || (count === 0 && !Number.isNaN(values[cell]));
	};
	return rows.flatMap((_, r) => {
		const own = times.map((_, i) => r * times.length + i);
		return isSingle(heat, r) && own.some(strange) ? [r] : [];
	});
}

/** Some rows on columns that end `shift` seconds later: `cells` was asked for at these times. */
export function shifted(heat: Heat, some: number[], cells: MatrixElement[], shift: number): Heat {
	const { rows, times, step } = heat;
	const n = times.length;
	const window = { start: times[0] + shift, end: times[n - 1] + shift };
	const { out } = onGrid(cells, rows, window, step, n);
	const values = heat.values.slice();
	const counts = heat.counts?.slice() ?? null;
	for (const r of some) {
		const own = out.subarray(r * n, (r + 1) * n);
		values.set(own, r * n);
		counts?.set(own.map((v) => (Number.isNaN(v) ? NaN : 1)), r * n);
	}
	const shifts = heat.shifts.map((s, r) => (some.includes(r) ? shift : s));
	return { ...heat, values, counts, shifts, ...hottestOf(values) };
}

/** How many profiles a cell has: 0 if none ended in its column, -1 where that is not known. */
export const countAt = ({ counts }: Heat, cell: number): number =>
	!counts ? -1 : Number.isNaN(counts[cell]) ? 0 : counts[cell];

/** Whether a row has one profile per column, as far as one did not come late. */
export function isSingle({ counts, times }: Heat, row: number): boolean {
	if (!counts) return false;
	const own = counts.subarray(row * times.length, (row + 1) * times.length);
	const known = own.filter((c) => c > 0);
	return known.length > 0 && known.reduce((a, b) => a + b) < 1.5 * known.length;
}

const APART_MIN = 3; // distances, to say anything
const APART_NEAR = 2; // steps around the median: what is farther apart is a gap

/**
 * How far apart the profiles of most rows are, in steps: 1 if the columns are full. Null for too few
 * to tell. Counts tell it better: a rate over less than an interval takes the whole interval.
 */
export function stepsApart({ values, counts, times, rows }: Heat): number | null {
	const n = times.length;
	const of = counts ?? values;
	const all: number[] = [];
	for (let r = 0; r < rows.length; r++) {
		let last = -1;
		for (let i = 0; i < n; i++) {
			if (Number.isNaN(of[r * n + i])) continue;
			if (last >= 0) all.push(i - last);
			last = i;
		}
	}
	if (all.length < APART_MIN) return null;
	const median = all.sort((a, b) => a - b)[all.length >> 1];
	const near = all.filter((d) => Math.abs(d - median) < APART_NEAR);
	return near.reduce((a, b) => a + b) / near.length;
}

/* ---- keys ---- */

const PAGE_COLUMNS = 10;

/** The cell that a key goes to from `cell` (-1: none yet), null if it is no such key. */
export function movedCell({ rows, times, hottest }: Heat, cell: number, key: string): number | null {
	const [h, w] = [rows.length, times.length];
	const by: Record<string, [down: number, right: number] | undefined> = {
		ArrowUp: [-1, 0],
		ArrowDown: [1, 0],
		ArrowLeft: [0, -1],
		ArrowRight: [0, 1],
		PageUp: [0, -PAGE_COLUMNS],
		PageDown: [0, PAGE_COLUMNS],
		Home: [0, -w],
		End: [0, w],
	};
	const step = by[key];
	if (!step) return null;
	if (cell < 0) return hottest;
	const clamp = (v: number, n: number) => Math.min(n - 1, Math.max(0, v));
	const [down, right] = step;
	return clamp(Math.floor(cell / w) + down, h) * w + clamp((cell % w) + right, w);
}

/* ---- words ---- */

export const valueWords = (v: number, unit: ChartUnit): string => formatRate(v * unit.factor, unit);

const columnWords = (heat: Heat, cell: number): string => {
	const end = endOf(heat, cell);
	return formatSpan({ start: end - heat.step, end });
};

export interface CellWords {
	row: string;
	time: string;
	value: string;
	profiles: string;
}

/** A cell: its row, when, what it cost, and how many profiles that is. */
export function cellWords(heat: Heat, unit: ChartUnit, cell: number): CellWords {
	const n = heat.times.length;
	const row = Math.floor(cell / n);
	const v = heat.values[cell];
	const gap = Number.isNaN(v);
	const count = countAt(heat, cell);
	return {
		row: heat.rows[row].label,
		time: columnWords(heat, cell),
		value: gap ? "no profile" : valueWords(v, unit),
		profiles: gap || count < 1 ? "" : counted(count, "profile"),
	};
}

export function spokenCell(heat: Heat, unit: ChartUnit, cell: number): string {
	const { row, time, value, profiles } = cellWords(heat, unit, cell);
	return [row, time, value, profiles].filter(Boolean).join(", ");
}

/** The whole heatmap for screen readers: what it is, then one sentence per row. */
export function describeHeat(heat: Heat, unit: ChartUnit): string[] {
	const { rows, times, values, step } = heat;
	const n = times.length;
	const head =
		`${counted(rows.length, "row")}, ${counted(n, "column")} of ` +
		`${formatDuration(step)}, in ${unit.label}.`;
	return [
		head,
		...rows.map(({ label }, r) => {
			const own = values.subarray(r * n, (r + 1) * n);
			let [least, most, known] = [Infinity, -1, 0];
			own.forEach((v, i) => {
				if (Number.isNaN(v)) return;
				known++;
				least = Math.min(least, v);
				if (most < 0 || v > own[most]) most = i;
			});
			if (known === 0) return `${label}: no profiles.`;
			const gaps = n - known ? `, ${n - known} without a profile` : "";
			return (
				`${label}: from ${valueWords(least, unit)} to ${valueWords(own[most], unit)}, ` +
				`most at ${formatClock(endOf(heat, r * n + most))}${gaps}.`
			);
		}),
	];
}
