// Where rows, columns and times are on the canvas, in CSS pixels; texts that must fit.
import { must } from "../shared/must";
import { formatTick, secondsAhead, type Window } from "../shared/timerange";

export interface Grid {
	rows: number;
	columns: number;
	/** The left edge of the cells; the labels of the rows are before it. */
	left: number;
	/** The width of all cells. */
	width: number;
	rowHeight: number;
	/** The height of the canvas, with the axis. */
	height: number;
}

export interface Box {
	x: number;
	y: number;
	w: number;
	h: number;
}

const AXIS_H = 22;
const RIGHT_PAD = 10;
const LABEL_PAD = 8;
/** The labels take at most this part of the width. */
const LABEL_PART = 0.28;
const LABEL_MAX = 260;
const ROW_HEIGHTS: [rows: number, height: number][] = [
	[12, 24],
	[25, 18],
	[Infinity, 13],
];

/** `label`: the width of the longest label. */
export function gridOf(rows: number, columns: number, width: number, label: number): Grid {
	const room = Math.min(LABEL_MAX, width * LABEL_PART);
	const left = Math.min(Math.floor(room), Math.ceil(label + LABEL_PAD));
	const [, rowHeight] = must(ROW_HEIGHTS.find(([most]) => rows <= most), "a height of rows");
	return {
		rows,
		columns,
		left,
		width: Math.max(1, Math.floor(width - left - RIGHT_PAD)),
		rowHeight,
		height: rows * rowHeight + AXIS_H,
	};
}

/** How many columns are worth asking for, before the labels are known. */
export const columnsFor = (width: number): number =>
	Math.min(COLUMNS_MAX, Math.max(COLUMNS_MIN, Math.floor(width * (1 - LABEL_PART) - RIGHT_PAD)));

const COLUMNS_MIN = 60;
export const COLUMNS_MAX = 1000;

/** The cell at a place, -1 beside them. */
export function cellAt(g: Grid, x: number, y: number): number {
	const column = Math.floor(((x - g.left) * g.columns) / g.width);
	const row = Math.floor(y / g.rowHeight);
	if (column < 0 || column >= g.columns || row < 0 || row >= g.rows) return -1;
	return row * g.columns + column;
}

export function boxOf(g: Grid, cell: number): Box {
	const column = cell % g.columns;
	const row = Math.floor(cell / g.columns);
	const w = g.width / g.columns;
	return { x: g.left + column * w, y: row * g.rowHeight, w, h: g.rowHeight };
}

/** The time at a place, within the columns; they begin at `window.start`. */
export function timeAt(g: Grid, window: Window, x: number): number {
	const part = Math.min(1, Math.max(0, (x - g.left) / g.width));
	return window.start + part * (window.end - window.start);
}

export const xOf = (g: Grid, window: Window, t: number): number =>
	g.left + ((t - window.start) / (window.end - window.start)) * g.width;

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const TICKS = [
	...[1, 2, 5, 10, 15, 30],
	...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
	...[1, 2, 3, 6, 12].map((n) => n * HOUR),
	...[1, 2, 7, 14, 28].map((n) => n * DAY),
];
const TICK_PX = 78;

/** The ticks of the axis, on round times of the zone that is shown. */
export function ticksOf(g: Grid, window: Window): { x: number; text: string }[] {
	const room = ((window.end - window.start) * TICK_PX) / g.width;
	const every = TICKS.find((s) => s >= room) ?? TICKS[TICKS.length - 1];
	const zone = -secondsAhead(window.start);
	const out: { x: number; text: string }[] = [];
	for (let t = Math.ceil((window.start - zone) / every) * every + zone; t <= window.end; t += every)
		out.push({ x: xOf(g, window, t), text: formatTick(t, every) });
	return out;
}

/** A text in this width: what is too long loses its middle, since names differ at both ends. */
export function fitted(text: string, width: number, measure: (text: string) => number): string {
	if (measure(text) <= width) return text;
	const cut = (n: number) => {
		const head = Math.floor(n / 3);
		return `${text.slice(0, head)}…${text.slice(text.length - (n - head))}`;
	};
	let [low, high] = [0, text.length];
	while (low < high) {
		const mid = (low + high + 1) >> 1;
		if (measure(cut(mid)) <= width) low = mid;
		else high = mid - 1;
	}
	return low > 0 ? cut(low) : "";
}
