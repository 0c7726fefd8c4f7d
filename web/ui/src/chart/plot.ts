// Draws cost over time with uPlot: scales and axes, colours, stacked areas, points without
// neighbours, the marked window, and the values under the pointer.
import type uPlot from "uplot";
import { seriesColor } from "../flame/color";
import type { Theme } from "../shared/theme";
import { formatClock, formatTick, isUtc, type Window, zoneAt } from "../shared/timerange";
import type { ChartUnit } from "../shared/units";
import { type Aligned, type ChartColumn, isolatedPoints } from "./series";

export interface Plot {
	data: Aligned;
	/** The columns as drawn, possibly stacked. */
	drawn: ChartColumn[];
	stacked: boolean;
	unit: ChartUnit;
	window: Window;
	/** The top of the scale, if two charts share it. */
	yMax?: number;
	theme: Theme;
	/** The colour of a single line and of the marked window, where it says which side of a comparison it is. */
	color?: string;
}

export interface PlotEvents {
	/** The part of the window to mark; called on each drawing. */
	mark(): Window | undefined;
	/** A drag over a part of the window; `zoom` if Shift is held. */
	select(start: number, end: number, zoom: boolean): void;
	/** The line next to the pointer, -1 for none. */
	focus(series: number): void;
	/** The step under the cursor, -1 for none. */
	cursor(index: number): void;
	/** The place of the lines after a drawing. */
	frame?(frame: PlotFrame): void;
}

/** Where the lines are, in CSS pixels of the plot, and the scale of the values there. */
export interface PlotFrame {
	left: number;
	top: number;
	width: number;
	height: number;
	min: number;
	max: number;
}

function frameOf(u: uPlot): PlotFrame {
	const { left, top, width, height } = u.bbox;
	const css = (px: number) => px / devicePixelRatio;
	const { min, max } = u.scales.y;
	return {
		...{ left: css(left), top: css(top), width: css(width), height: css(height) },
		...{ min: min ?? 0, max: max ?? 1 },
	};
}

export const LINES_MAX = 20;
const TOOLTIP_ROWS = 12;
/** A shorter drag is a click. */
export const DRAG_MIN_PX = 4;
/** Space above the highest value. */
const HEADROOM = 1.08;

/** Distances of ticks in bytes: powers of two from 2^-10. */
const BINARY_TICKS = Array.from({ length: 64 }, (_, i) => 2 ** (i - 10));

export function lineColor(data: Aligned, i: number, theme: Theme): string {
	return seriesColor(i === data.rest ? -1 : i, theme);
}

/** The colour of a line: its own, unless it is the only one and the chart has a colour. */
export const plotColor = ({ data, theme, color }: Pick<Plot, "data" | "theme" | "color">, i: number): string =>
	color && data.columns.length === 1 ? color : lineColor(data, i, theme);

const withAlpha = (color: string, alpha: number): string =>
	color.replace("rgb(", "rgba(").replace(")", `,${alpha})`);

/** The tooltip, in plain DOM because it moves with the pointer. Names are text, never markup. */
function tooltipPlugin(p: Plot, events: PlotEvents): uPlot.Plugin {
	const { data, unit } = p;
	const box = document.createElement("div");
	box.className = "chart-tip";
	const line = (cls: string, text: string) => {
		const el = document.createElement("span");
		el.className = cls;
		el.textContent = text;
		return el;
	};
	const update = (u: uPlot) => {
		const { idx, left } = u.cursor;
		if (idx === null || idx === undefined || left === undefined || left < 0) {
			box.hidden = true;
			events.cursor(-1);
			return;
		}
		events.cursor(idx);
		const rows = data.labels
			.map((label, i) => ({ label, i, v: data.columns[i][idx] }))
			.filter((r): r is { label: string; i: number; v: number } => typeof r.v === "number")
			.sort((a, b) => b.v - a.v);
		box.replaceChildren(line("tip-time", formatClock(data.times[idx])));
		for (const r of rows.slice(0, TOOLTIP_ROWS)) {
			const dot = line("dot", "");
			dot.style.background = plotColor(p, r.i);
			box.append(dot, line("tip-name", r.label), line("tip-value", unit.format(r.v)));
		}
		if (rows.length > TOOLTIP_ROWS)
			box.append(line("tip-more", `and ${rows.length - TOOLTIP_ROWS} more`));
		if (rows.length === 0) box.append(line("tip-more", "no profiles"));
		box.hidden = false;
		const w = box.offsetWidth;
		const room = u.over.clientWidth;
		box.style.left = `${left + 16 + w < room ? left + 16 : Math.max(0, left - w - 16)}px`;
	};
	return {
		hooks: {
			init: (u) => {
				box.hidden = true;
				u.over.append(box);
			},
			setCursor: update,
		},
	};
}

/** Draws the marked window. Its edges are drawn even if it is narrower than a pixel. */
function markPlugin({ theme, color }: Plot, events: PlotEvents): uPlot.Plugin {
	return {
		hooks: {
			drawClear: (u) => {
				const mark = events.mark();
				if (!mark) return;
				const { ctx, bbox } = u;
				const right = bbox.left + bbox.width;
				const x0 = Math.max(bbox.left, u.valToPos(mark.start, "x", true));
				const x1 = Math.min(right, u.valToPos(mark.end, "x", true));
				if (x0 > right || x1 < bbox.left) return;
				const edge = devicePixelRatio;
				ctx.save();
				const dark = theme === "dark";
				const own = color ? withAlpha(color, dark ? 0.18 : 0.14) : null;
				ctx.fillStyle = own ?? (dark ? "rgba(240,128,60,.16)" : "rgba(224,104,40,.13)");
				ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
				ctx.fillStyle = color ?? (dark ? "#f0803c" : "#d9622b");
				ctx.fillRect(x0, bbox.top, edge, bbox.height);
				ctx.fillRect(Math.max(x0, x1 - edge), bbox.top, edge, bbox.height);
				ctx.restore();
			},
		},
	};
}

/** The zone of the ticks; of both ends if the clocks change in the window. */
export const zonesOf = ({ start, end }: Window): string =>
	[...new Set([zoneAt(start), zoneAt(end)])].join(", ");

/** The zone of the axis, above the lines at their right end. */
function zonePlugin({ theme, window }: Plot): uPlot.Plugin {
	return {
		hooks: {
			draw: (u) => {
				const { ctx, bbox } = u;
				ctx.save();
				ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
				ctx.textAlign = "right";
				ctx.textBaseline = "bottom";
				ctx.fillStyle = axisColor(theme);
				ctx.fillText(zonesOf(window), bbox.left + bbox.width, bbox.top);
				ctx.restore();
			},
		},
	};
}

const axisColor = (theme: Theme): string => (theme === "dark" ? "#97a0ae" : "#68707d");

/** uPlot's ticks are on round numbers of the local clock: this is UTC's, as if it were local. */
const asLocal = (t: number): Date => {
	const d = new Date(t * 1000);
	return new Date(+d + d.getTimezoneOffset() * 60e3);
};

/** Half of the longest label of the time axis, 00:00:00; the last label is at the very end. */
const TIME_LABEL_HALF_PX = 27;
const VALUE_GAP_PX = 6;
const VALUES_MIN_PX = 34;

/** The width of the y axis: that of its widest value, to save room on narrow screens. */
function valuesWidth(u: uPlot, values: string[] | null, axis: number, cycle: number): number {
	const { font, _size } = u.axes[axis] as { font?: unknown; _size?: number };
	if (cycle > 1 && _size) return _size; // else the size may alternate forever
	u.ctx.font = String(Array.isArray(font) ? font[0] : font);
	const widths = (values ?? []).map((v) => u.ctx.measureText(v).width / devicePixelRatio);
	return Math.ceil(Math.max(VALUES_MIN_PX, ...widths.map((w) => w + 2 * VALUE_GAP_PX)));
}

function axes(unit: ChartUnit, theme: Theme): uPlot.Axis[] {
	const dark = theme === "dark";
	const shared = {
		stroke: axisColor(theme),
		grid: { stroke: dark ? "rgba(255,255,255,.06)" : "rgba(20,30,50,.07)", width: 1 },
		ticks: { show: false },
		font: "11px system-ui, sans-serif",
	};
	return [
		{
			...shared,
			size: 26,
			gap: 4,
			space: 70,
			values: (_u, splits, _a, _s, incr) => splits.map((t) => formatTick(t, incr)),
		},
		{
			...shared,
			size: valuesWidth,
			gap: VALUE_GAP_PX,
			...(unit.binary ? { incrs: BINARY_TICKS } : {}),
			values: (_u, values) => values.map((v) => unit.format(v)),
		},
	];
}

function lines(p: Plot): uPlot.Series[] {
	const { data, drawn, stacked } = p;
	const single = data.columns.length === 1;
	const alpha = stacked ? 0.5 : 0.12;
	return data.labels.map((label, i) => {
		const alone = isolatedPoints(drawn[i]);
		return {
			label,
			stroke: plotColor(p, i),
			width: single ? 1.75 : stacked ? 1 : 1.5,
			fill: single || stacked ? withAlpha(plotColor(p, i), alpha) : undefined,
			points: {
				show: false,
				filter: () => (alone.length ? alone : null),
				size: 6,
				fill: plotColor(p, i),
			},
		};
	});
}

export function plotOptions(
	p: Plot,
	size: { width: number; height: number },
	events: PlotEvents,
): uPlot.Options {
	let shift = false;
	const many = p.data.columns.length > 1;
	return {
		...size,
		legend: { show: false },
		padding: [13, TIME_LABEL_HALF_PX, 0, 0],
		focus: { alpha: 0.25 },
		cursor: {
			drag: { x: true, y: false, setScale: false },
			points: { size: 6 },
			...(many ? { focus: { prox: 10 } } : {}),
		},
		scales: {
			x: { time: true, range: () => [p.window.start, p.window.end] },
			y: {
				range: (_u, lo, hi) => {
					const top = Math.max(hi ?? 0, p.yMax ?? 0);
					return [Math.min(0, lo ?? 0), top > 0 ? top * HEADROOM : lo < 0 ? 0 : 1];
				},
			},
		},
		axes: axes(p.unit, p.theme),
		...(isUtc() ? { tzDate: asLocal } : {}),
		series: [{}, ...lines(p)],
		bands: p.stacked
			? p.data.labels.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] }))
			: [],
		plugins: [tooltipPlugin(p, events), markPlugin(p, events), zonePlugin(p)],
		hooks: {
			ready: [(u) => u.over.addEventListener("mousedown", (e) => (shift = e.shiftKey))],
			draw: [(u) => events.frame?.(frameOf(u))],
			setSeries: [(_u, i) => events.focus(i === null ? -1 : i - 1)],
			setSelect: [
				(u) => {
					const { left, width } = u.select;
					if (width < DRAG_MIN_PX) return;
					u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
					events.select(u.posToVal(left, "x"), u.posToVal(left + width, "x"), shift);
				},
			],
		},
	};
}
