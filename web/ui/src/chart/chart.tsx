// Cost over time. A click opens a step, a drag opens a window. A tooltip shows the values under the
// pointer, sorted, so that many lines stay readable. Arrow keys move the same cursor, and the content
// is also given in words.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Labels } from "../shared/api";
import { type MarksPlace, MarkFlags, MarksSaid } from "../marks/markflags";
import type { ShownMarks } from "../marks/usemarks";
import { publish } from "../shared/debug";
import { attached } from "../shared/must";
import { useTheme } from "../shared/theme";
import type { Window } from "../shared/timerange";
import type { ChartUnit } from "../shared/units";
import { Legend } from "./legend";
import { DRAG_MIN_PX, type PlotFrame, LINES_MAX, type Plot, plotColor, plotOptions, zonesOf } from "./plot";
import {
	type Aligned,
	alignSeries,
	type CostSeries,
	describeChart,
	describeStep,
	isolatedPoints,
	stackColumns,
	stepsWithValues,
} from "./series";
import "./chart.css";

export interface ChartProps {
	matrix: CostSeries[];
	unit: ChartUnit;
	window: Window;
	step: number;
	/** The label for screen readers. */
	label?: string;
	/** A part of the window to mark. */
	mark?: Window;
	height?: number;
	/** The message if there is nothing to draw. */
	empty?: string;
	stacked?: boolean;
	/** The top of the scale, if two charts share it. */
	yMax?: number;
	/** The mean of a line, in words; "" if it is not known. */
	meanOf?(metric: Labels): string;
	/** The colour of a single line, `rgb(r,g,b)`. */
	color?: string;
	/** The tooltip of a line's name: what a press does; "" for nothing. */
	pickHint?(metric: Labels): string;
	/** Its name in window.__epi. */
	debugName?: string;
	onPick?(metric: Labels): void;
	/** A drag over a window; `zoom` if Shift is held. */
	onSelect(start: number, end: number, zoom: boolean): void;
	/** A step with values, clicked. */
	onPoint?(t: number): void;
	/** A double click. */
	onOut?(): void;
	/** Called with the place of the lines after each drawing. */
	onFrame?(frame: PlotFrame): void;
	/** Deploys in the window. */
	marks?: ShownMarks;
	/** What lies over the lines. */
	children?: ComponentChildren;
}

/** A click within this distance of a step with values selects it. */
const CLICK_REACH_PX = 8;
const PAGE_STEPS = 10;
const DOUBLE_MS = 400;

/** The step with values nearest to `x`, in pixels of the plot; -1 where none is near. */
function stepAt(u: uPlot, data: Aligned, x: number): number {
	const near = u.posToIdx(x);
	let best = -1;
	let distance = Infinity;
	for (const i of stepsWithValues(data)) {
		const d = i === near ? -1 : Math.abs(u.valToPos(data.times[i], "x") - x);
		if (d < distance) [best, distance] = [i, d];
	}
	return distance <= CLICK_REACH_PX ? best : -1;
}

/**
 * Clicks, as steps. A second one soon after is a double click: the browser does not report one if
 * the first click redrew the plot.
 */
function usePresses(props: ChartProps, data: Aligned, plot: { current: uPlot | null }) {
	const down = useRef(-1);
	const last = useRef({ x: -1, at: -Infinity });
	const onClick = (e: MouseEvent) => {
		const u = plot.current;
		const box = u?.over.getBoundingClientRect();
		const x = box ? e.clientX - box.left : -1;
		if (!u || !box || x < 0 || x > box.width || e.shiftKey) return;
		if (Math.abs(e.clientX - down.current) >= DRAG_MIN_PX) return;
		const soon = e.timeStamp - last.current.at < DOUBLE_MS;
		const twice = soon && Math.abs(x - last.current.x) < DRAG_MIN_PX;
		last.current = { x, at: twice ? -Infinity : e.timeStamp };
		if (twice && props.onOut) return props.onOut();
		const i = stepAt(u, data, x);
		if (i >= 0) props.onPoint?.(data.times[i]);
	};
	const onMouseDown = (e: MouseEvent) => {
		down.current = e.clientX;
	};
	return { onMouseDown, onClick };
}

/** The cursor of the arrow keys: its step, -1 for none. */
function useKeys(props: ChartProps, data: Aligned, plot: { current: uPlot | null }) {
	const [at, setAt] = useState(-1);
	const steps = useMemo(() => stepsWithValues(data), [data]);
	const show = (i: number) => {
		const u = plot.current;
		if (u)
			u.setCursor(
				i < 0
					? { left: -10, top: -10 }
					: { left: u.valToPos(data.times[i], "x"), top: u.over.clientHeight / 2 },
			);
		setAt(i);
	};
	const move = (by: number) => {
		const now = steps.findIndex((s) => s >= at);
		const from = at < 0 || now < 0 ? (by > 0 ? -1 : steps.length) : now;
		show(steps[Math.min(steps.length - 1, Math.max(0, from + by))] ?? -1);
	};
	const keys: Record<string, () => void> = {
		ArrowLeft: () => move(-1),
		ArrowRight: () => move(1),
		ArrowDown: () => move(-1),
		ArrowUp: () => move(1),
		PageDown: () => move(-PAGE_STEPS),
		PageUp: () => move(PAGE_STEPS),
		Home: () => move(-Infinity),
		End: () => move(Infinity),
		Enter: () => at >= 0 && props.onPoint?.(data.times[at]),
		Escape: () => show(-1),
	};
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
		if (e.key === "Escape" && at < 0) return; // it closes what the chart is in
		e.preventDefault();
		keys[e.key]();
	};
	return { at: at < data.times.length ? at : -1, steps, show, onKeyDown };
}

function useResize(
	box: { current: HTMLDivElement | null },
	plot: { current: uPlot | null },
	height: number,
) {
	useEffect(() => {
		const el = attached(box);
		const observer = new ResizeObserver(() => {
			const width = el.clientWidth;
			if (width > 0 && plot.current && plot.current.width !== width)
				plot.current.setSize({ width, height });
		});
		observer.observe(el);
		return () => observer.disconnect();
	}, [box, plot, height]);
}

/** The place of the lines in the box of the chart, the same object while it is the same. */
function usePlace(): [MarksPlace | null, (frame: PlotFrame) => void] {
	const [place, set] = useState<MarksPlace | null>(null);
	const keep = ({ left, top, width, height }: PlotFrame) =>
		set((was) =>
			was && was.left === left && was.top === top && was.width === width && was.height === height
				? was
				: { left, top, width, height },
		);
	return [place, keep];
}

/** uPlot keeps the highlighted line there. */
type Focusable = { _focus?: boolean | null };

/** The chart as drawn, for tests: a canvas cannot be read. */
function published(u: uPlot, p: Plot, { mark, step }: ChartProps, cursor: number) {
	const numbers = (c: (number | null | undefined)[]) => c.map((v) => v ?? null);
	return {
		times: p.data.times,
		labels: p.data.labels,
		colors: p.data.labels.map((_, i) => plotColor(p, i)),
		columns: p.data.columns.map(numbers),
		drawn: p.drawn.map(numbers),
		isolated: p.drawn.map(isolatedPoints),
		stacked: p.stacked,
		window: p.window,
		mark: mark ?? null,
		step,
		unit: p.unit.label,
		zone: zonesOf(p.window),
		yMax: u.scales.y.max,
		cursor,
		focused: u.series.slice(1).findIndex((s) => (s as Focusable)._focus === true),
	};
}

export function Chart(props: ChartProps) {
	const { matrix, unit, window: win, step, height = 150, yMax, color } = props;
	const theme = useTheme();
	const box = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const cursor = useRef(-1);
	const latest = useRef(props);
	latest.current = props;
	const [focused, setFocused] = useState(-1);
	const [place, setPlace] = usePlace();
	const summary = useId();

	const zone = zonesOf(win);
	const stacked = Boolean(props.stacked) && matrix.length > 1;
	const { start, end } = win;
	const { label, factor } = unit;
	const data = useMemo(
		() => alignSeries(matrix, { start, end }, step, factor, LINES_MAX, stacked),
		[matrix, start, end, step, label, factor, stacked],
	);
	const presses = usePresses(props, data, plot);
	const { at, steps, show, onKeyDown } = useKeys(props, data, plot);
	// biome-ignore lint/correctness/useExhaustiveDependencies: data is new where unit, window or stacking are, and the cursor draws nothing anew
	useLayoutEffect(() => {
		const el = attached(box);
		const drawn = stacked ? stackColumns(data.columns) : data.columns;
		const p: Plot = { data, drawn, stacked, unit, window: win, yMax, theme, color };
		const options = plotOptions(p, { width: el.clientWidth, height }, {
			mark: () => latest.current.mark,
			select: (a, b, zoom) => latest.current.onSelect(a, b, zoom),
			focus: setFocused,
			cursor: (i) => (cursor.current = i),
			frame: (f) => {
				const frame = { ...f, left: f.left + el.offsetLeft };
				setPlace(frame);
				latest.current.onFrame?.(frame);
			},
		});
		const u = new uPlot(options, [data.times, ...drawn] as uPlot.AlignedData, el);
		plot.current = u;
		const name = props.debugName ?? "chart";
		publish(name, () => published(u, p, latest.current, cursor.current));
		if (at >= 0 && document.activeElement === el) show(at);
		return () => {
			publish(name, null);
			u.destroy();
		};
	}, [data, yMax, theme, height, zone, color]);
	useEffect(() => plot.current?.redraw(false), [props.mark?.start, props.mark?.end]);
	useResize(box, plot, height);

	return (
		<div class={props.onPoint && steps.length ? "chart points" : "chart"}>
			<div
				class="chart-plot"
				ref={box}
				style={{ height: `${height}px` }}
				tabIndex={0}
				role="slider"
				aria-label={props.label ?? "Cost over time"}
				aria-describedby={summary}
				aria-valuemin={data.times[0]}
				aria-valuemax={data.times[data.times.length - 1]}
				aria-valuenow={data.times[at >= 0 ? at : (steps[steps.length - 1] ?? 0)]}
				aria-valuetext={at >= 0 ? describeStep(data, unit, at) : "no step chosen"}
				onKeyDown={onKeyDown}
				onBlur={() => at >= 0 && show(-1)}
				{...presses}
			/>
			{props.marks && place && <MarkFlags shown={props.marks} window={win} place={place} />}
			{props.children}
			{steps.length === 0 && props.empty && <div class="chart-empty">{props.empty}</div>}
			<ul class="visually-hidden chart-summary" id={summary}>
				{describeChart(data, unit, step).map((text) => (
					<li key={text}>{text}</li>
				))}
				{props.marks && <MarksSaid marks={props.marks.marks} window={win} />}
			</ul>
			{data.labels.length > 1 && (
				<Legend
					data={data}
					color={(i) => plotColor({ data, theme, color }, i)}
					focused={focused}
					more={stacked ? 0 : matrix.length - LINES_MAX}
					meanOf={props.meanOf}
					pickHint={props.pickHint}
					onPick={props.onPick}
					onFocus={(i) => plot.current?.setSeries(i < 0 ? null : i + 1, { focus: true })}
				/>
			)}
		</div>
	);
}
