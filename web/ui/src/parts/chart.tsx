// Cost over time, drawn by uPlot. Dragging asks for a window; values under the pointer stand in
// a tooltip, sorted, so that many lines stay readable.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { MatrixElement } from "../lib/api";
import { css, oklch } from "../flame/color";
import { alignSeries, type Aligned } from "../lib/series";
import { useTheme, type Theme } from "../lib/theme";
import { formatClock, formatTick, type Window } from "../lib/timerange";
import type { ChartUnit } from "../lib/units";

export interface ChartProps {
	matrix: MatrixElement[];
	unit: ChartUnit;
	window: Window;
	step: number;
	/** A part of the window to mark. */
	mark?: Window;
	height?: number;
	onSelect(start: number, end: number): void;
}

const LINES_MAX = 20;
const TOOLTIP_ROWS = 12;

/** Distances of ticks in bytes: 2^-10 and up, past any memory. */
const BINARY_TICKS = Array.from({ length: 64 }, (_, i) => 2 ** (i - 10));

const HUE_STEP = 137.508; // the golden angle: neighbours in the list differ most

function lineColor(i: number, theme: Theme): string {
	const hue = (38 + i * HUE_STEP) % 360;
	return css(theme === "dark" ? oklch(0.76, 0.125, hue) : oklch(0.6, 0.145, hue));
}

function fillColor(i: number, theme: Theme, alpha: number): string {
	return lineColor(i, theme).replace("rgb(", "rgba(").replace(")", `,${alpha})`);
}

/** Plain DOM: it moves with every pointer event. Names go in as text, never as markup. */
function tooltipPlugin(data: Aligned, unit: ChartUnit, theme: Theme): uPlot.Plugin {
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
			return;
		}
		const rows = data.labels
			.map((label, i) => ({ label, i, v: data.columns[i][idx] }))
			.filter((r) => typeof r.v === "number")
			.sort((a, b) => b.v! - a.v!);
		box.replaceChildren(line("tip-time", formatClock(data.times[idx])));
		for (const r of rows.slice(0, TOOLTIP_ROWS)) {
			const dot = line("dot", "");
			dot.style.background = lineColor(r.i, theme);
			box.append(dot, line("tip-name", r.label), line("tip-value", unit.format(r.v!)));
		}
		if (rows.length > TOOLTIP_ROWS)
			box.append(line("tip-more", `and ${rows.length - TOOLTIP_ROWS} more`));
		if (rows.length === 0) box.append(line("tip-more", "no profiles here"));
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

function markPlugin(mark: Window | undefined, theme: Theme): uPlot.Plugin {
	return {
		hooks: {
			drawClear: (u) => {
				if (!mark) return;
				const { ctx, bbox } = u;
				const x0 = Math.max(bbox.left, u.valToPos(mark.start, "x", true));
				const x1 = Math.min(bbox.left + bbox.width, u.valToPos(mark.end, "x", true));
				ctx.save();
				ctx.fillStyle = theme === "dark" ? "rgba(240,128,60,.16)" : "rgba(224,104,40,.13)";
				ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
				ctx.fillStyle = theme === "dark" ? "#f0803c" : "#d9622b";
				ctx.fillRect(x0, bbox.top, devicePixelRatio, bbox.height);
				ctx.fillRect(x1 - devicePixelRatio, bbox.top, devicePixelRatio, bbox.height);
				ctx.restore();
			},
		},
	};
}

function makeOptions(
	p: ChartProps,
	data: Aligned,
	theme: Theme,
	size: { width: number; height: number },
	select: (a: number, b: number) => void,
): uPlot.Options {
	const dark = theme === "dark";
	const text = dark ? "#97a0ae" : "#68707d";
	const grid = { stroke: dark ? "rgba(255,255,255,.06)" : "rgba(20,30,50,.07)", width: 1 };
	const font = "11px system-ui, sans-serif";
	const single = data.columns.length === 1;
	return {
		...size,
		legend: { show: false },
		padding: [10, 20, 0, 0],
		cursor: {
			drag: { x: true, y: false, setScale: false },
			points: { size: 6 },
		},
		scales: {
			x: { time: true, range: () => [p.window.start, p.window.end] },
			y: {
				range: (_u, lo, hi) => [
					Math.min(0, lo ?? 0),
					(hi ?? 0) > 0 ? hi * 1.08 : lo < 0 ? 0 : 1,
				],
			},
		},
		axes: [
			{
				stroke: text,
				grid,
				ticks: { show: false },
				font,
				size: 26,
				gap: 4,
				space: 70,
				values: (_u, splits, _a, _s, incr) => splits.map((t) => formatTick(t, incr)),
			},
			{
				stroke: text,
				grid,
				ticks: { show: false },
				font,
				size: 64,
				gap: 6,
				...(p.unit.binary ? { incrs: BINARY_TICKS } : {}),
				values: (_u, values) => values.map((v) => p.unit.format(v)),
			},
		],
		series: [
			{},
			...data.labels.map(
				(label, i) =>
					({
						label,
						stroke: lineColor(i, theme),
						width: single ? 1.75 : 1.5,
						fill: single ? fillColor(i, theme, 0.12) : undefined,
						points: { show: data.times.length < 3 ? true : undefined, size: 4 },
					}) as uPlot.Series,
			),
		],
		plugins: [tooltipPlugin(data, p.unit, theme), markPlugin(p.mark, theme)],
		hooks: {
			setSelect: [
				(u) => {
					if (u.select.width < 4) return;
					select(
						u.posToVal(u.select.left, "x"),
						u.posToVal(u.select.left + u.select.width, "x"),
					);
					u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
				},
			],
		},
	};
}

export function Chart(props: ChartProps) {
	const { matrix, unit, window: win, step, mark, height = 150 } = props;
	const theme = useTheme();
	const box = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const onSelect = useRef(props.onSelect);
	onSelect.current = props.onSelect;

	const data = alignSeries(matrix, win, step, unit.factor, LINES_MAX);
	useLayoutEffect(() => {
		const el = box.current!;
		const options = makeOptions(props, data, theme, { width: el.clientWidth, height }, (a, b) =>
			onSelect.current(a, b),
		);
		const u = new uPlot(options, [data.times, ...data.columns] as uPlot.AlignedData, el);
		plot.current = u;
		return () => u.destroy();
		// The parent hands over new arrays only with a new answer.
	}, [
		matrix,
		unit.label,
		unit.factor,
		win.start,
		win.end,
		step,
		mark?.start,
		mark?.end,
		theme,
		height,
	]);
	useEffect(() => {
		const observer = new ResizeObserver(() => {
			const w = box.current!.clientWidth;
			if (w > 0 && plot.current && plot.current.width !== w)
				plot.current.setSize({ width: w, height });
		});
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, [height]);

	return (
		<div class="chart">
			<div class="chart-plot" ref={box} style={{ height: `${height}px` }} />
			{data.labels.length > 1 && (
				<ul class="legend">
					{data.labels.map((label, i) => (
						<li key={label}>
							<span class="dot" style={{ background: lineColor(i, theme) }} />
							{label}
						</li>
					))}
					{matrix.length > LINES_MAX && (
						<li class="faint">and {matrix.length - LINES_MAX} smaller</li>
					)}
				</ul>
			)}
		</div>
	);
}
