// The heatmap as a component: canvas, pointer, keys, what is under them in words, the scale.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { MarkFlags, MarksSaid } from "../marks/markflags";
import type { ShownMarks } from "../marks/usemarks";
import { publish } from "../shared/debug";
import { attached, must } from "../shared/must";
import { useTheme } from "../shared/theme";
import { formatClock, type Window } from "../shared/timerange";
import type { ChartUnit } from "../shared/units";
import { covered, HeatCanvas } from "./canvas";
import { cellWords, describeHeat, type Heat, movedCell, spokenCell, valueWords } from "./cells";
import { boxOf, cellAt, type Grid } from "./grid";
import { gradient } from "./palette";
import "./heat.css";

export interface HeatmapProps {
	heat: Heat;
	unit: ChartUnit;
	/** The query of the cells, for tests. */
	sent: string;
	/** An open part of the window. */
	mark: Window | null;
	/** Deploys in the window. */
	marks: ShownMarks;
	/** A click on a cell with a profile, or Enter. */
	onOpen(cell: number): void;
	/** A drag over a part of the window; `zoom` if Shift is held. */
	onSelect(start: number, end: number, zoom: boolean): void;
	/** The width of the canvas. */
	onWidth(width: number): void;
}

const HEAT_DRAG_MIN_PX = 4;
const TIP_OFF_PX = 14;

type HeatCanvasRef = { current: HeatCanvas | null };

interface Spot {
	cell: number;
	/** In the box of the heatmap. */
	x: number;
	y: number;
}
type SetSpot = (spot: Spot | null) => void;

/**
 * The card of the cell under the pointer, else of the selected one. It is a component of its own, so
 * that a moving pointer renders nothing else.
 */
function Tip(props: {
	heat: Heat;
	unit: ChartUnit;
	selected: number;
	bind: { current: SetSpot };
	canvas: HeatCanvasRef;
}) {
	const { heat, unit, selected, bind, canvas } = props;
	const began = performance.now();
	const [hover, setHover] = useState<Spot | null>(null);
	bind.current = setHover;
	useLayoutEffect(() => canvas.current?.addTime(performance.now() - began));
	const grid = canvas.current?.grid;
	const cell = hover ? hover.cell : selected;
	if (!grid || cell < 0 || cell >= heat.values.length) return null;
	const box = boxOf(grid, cell);
	const { x, y } = hover ?? { x: box.x + box.w / 2, y: box.y };
	const words = cellWords(heat, unit, cell);
	const side =
		x > grid.left + grid.width / 2
			? { right: `calc(100% - ${x - TIP_OFF_PX}px)` }
			: { left: `${x + TIP_OFF_PX}px` };
	return (
		<div class="heat-tip" aria-hidden="true" style={{ top: `${y + grid.rowHeight}px`, ...side }}>
			<b class="ellipsis">{words.row}</b>
			<span>{words.time}</span>
			<span>
				<b>{words.value}</b> {words.profiles && <i>{words.profiles}</i>}
			</span>
		</div>
	);
}

/** From a cost of 0 to the greatest, and what a gap looks like. */
function Scale({ heat, unit }: { heat: Heat; unit: ChartUnit }) {
	const theme = useTheme();
	return (
		<div class="heat-scale" aria-hidden="true">
			<span class="heat-gap" />
			no profile
			<span class="heat-low">{valueWords(0, unit)}</span>
			<span class="heat-ramp" style={{ background: gradient(theme) }} />
			<span>{valueWords(heat.max, unit)}</span>
		</div>
	);
}

/** The selected cell: it stays at its row and time when the answer changes; -1 for none. */
function useSelected(heat: Heat): [number, (cell: number) => void] {
	const [at, set] = useState<{ label: string; time: number } | null>(null);
	const n = heat.times.length;
	const row = at ? heat.rows.findIndex((r) => r.label === at.label) : -1;
	const column = at ? Math.ceil((at.time - heat.times[0]) / heat.step) : -1;
	const known = row >= 0 && column >= 0 && column < n;
	return [
		known ? row * n + column : -1,
		(cell) =>
			set(
				cell < 0
					? null
					: { label: heat.rows[Math.floor(cell / n)].label, time: heat.times[cell % n] },
			),
	];
}

/** Creates the canvas for the lifetime of the component, and draws what changes. Gives the place of the cells too. */
function useCanvas(
	p: HeatmapProps,
	at: { current: HTMLCanvasElement | null },
): [HeatCanvasRef, Grid | null] {
	const [grid, setGrid] = useState<Grid | null>(null);
	const theme = useTheme();
	const drawn = useRef<HeatCanvas | null>(null);
	const latest = useRef(p);
	latest.current = p;
	useLayoutEffect(() => {
		const canvas = attached(at);
		const box = must(canvas.parentElement, "the box of the heatmap");
		const c = new HeatCanvas(canvas);
		drawn.current = c;
		const fit = () => {
			c.resize(box.clientWidth);
			setGrid(c.grid);
			latest.current.onWidth(box.clientWidth);
		};
		const observer = new ResizeObserver(fit);
		observer.observe(box);
		fit();
		return () => {
			observer.disconnect();
			c.dispose();
		};
	}, [at]);
	const clock = formatClock(p.heat.times[0]); // it changes with the zone that is shown
	// biome-ignore lint/correctness/useExhaustiveDependencies: the mark by its ends, which are drawn
	useLayoutEffect(() => {
		const c = attached(drawn);
		c.setContent({ heat: p.heat, theme, mark: p.mark });
		setGrid(c.grid);
	}, [p.heat, theme, p.mark?.start, p.mark?.end, clock]);
	return [drawn, grid];
}

/** The heatmap as drawn, for tests: a canvas cannot be read. */
function usePublished(p: HeatmapProps, drawn: HeatCanvasRef, selected: number) {
	const { heat, unit, sent } = p;
	useLayoutEffect(() => {
		publish("heat", () => ({
			rows: heat.rows,
			times: heat.times,
			step: heat.step,
			shifts: heat.shifts,
			get values() {
				return Array.from(heat.values, (v) => (Number.isNaN(v) ? null : v));
			},
			hottest: heat.hottest,
			max: heat.max,
			unit: unit.label,
			factor: unit.factor,
			sent,
			selected,
			grid: attached(drawn).grid,
			frames: attached(drawn).frameTimes(),
			framesDrawn: attached(drawn).framesDrawn,
		}));
		return () => publish("heat", null);
	}, [heat, unit, sent, drawn, selected]);
}

/** Pointer: a cell under it, a click that opens, a drag that selects a part of the window. */
function usePointer(p: HeatmapProps, drawn: HeatCanvasRef, spot: { current: SetSpot }) {
	const down = useRef<number | null>(null);
	const dragged = useRef(false);
	const place = (e: MouseEvent) => {
		const box = (e.currentTarget as Element).getBoundingClientRect();
		return { x: e.clientX - box.left, y: e.clientY - box.top };
	};
	const timed = (work: () => void) => {
		const began = performance.now();
		work();
		drawn.current?.addTime(performance.now() - began);
	};
	const leave = () => {
		spot.current(null);
		drawn.current?.setMarks({ hover: -1 });
	};
	const end = () => {
		down.current = null;
		drawn.current?.setMarks({ drag: null });
	};
	return {
		onPointerDown: (e: PointerEvent) => {
			if (e.button !== 0) return;
			down.current = place(e).x;
			dragged.current = false;
			if (e.pointerType === "mouse") (e.currentTarget as Element).setPointerCapture(e.pointerId);
		},
		onPointerMove: (e: PointerEvent) =>
			timed(() => {
				const { x, y } = place(e);
				const c = attached(drawn);
				const from = down.current;
				if (from !== null && Math.abs(x - from) >= HEAT_DRAG_MIN_PX) dragged.current = true;
				if (from !== null && dragged.current) c.setMarks({ drag: [from, x] });
				const { grid } = c;
				const cell = grid ? cellAt(grid, x, y) : -1;
				spot.current(grid && cell >= 0 ? { cell, x, y: boxOf(grid, cell).y } : null);
				c.setMarks({ hover: cell });
			}),
		onPointerUp: (e: PointerEvent) => {
			const from = down.current;
			end();
			if (from === null || !dragged.current) return;
			const times = [from, place(e).x].map((x) => attached(drawn).timeAt(x));
			p.onSelect(Math.min(...times), Math.max(...times), e.shiftKey);
		},
		onPointerCancel: end,
		onPointerLeave: leave,
		onClick: (e: MouseEvent) => {
			const { x, y } = place(e);
			const grid = drawn.current?.grid;
			if (dragged.current || !grid) return;
			const cell = cellAt(grid, x, y);
			if (cell >= 0) p.onOpen(cell);
		},
	};
}

const HOW =
	"Heatmap of single profiles over time. Arrow keys walk, beginning at the hottest cell, " +
	"Page up and Page down go ten columns, Enter opens the flame graph of the profile.";

const cellsPlace = ({ left, width, rows, rowHeight }: Grid) => ({ left, top: 0, width, height: rows * rowHeight });

export function Heatmap(p: HeatmapProps) {
	const { heat, unit } = p;
	const at = useRef<HTMLCanvasElement>(null);
	const spot = useRef<SetSpot>(() => {});
	const [selected, select] = useSelected(heat);
	const [drawn, grid] = useCanvas(p, at);
	const on = usePointer(p, drawn, spot);
	usePublished(p, drawn, selected);
	useEffect(() => attached(drawn).setMarks({ selected }), [drawn, selected]);
	useLayoutEffect(() => {
		spot.current(null); // what is under the pointer is another cell now
		attached(drawn).setMarks({ hover: -1 });
	}, [drawn, heat]);
	const about = useId();
	const words = useMemo(() => describeHeat(heat, unit), [heat, unit]);
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const to = movedCell(heat, selected, e.key);
		if (to !== null) select(to);
		else if (e.key === "Enter" && selected >= 0) p.onOpen(selected);
		else if (e.key === "Escape" && selected >= 0) select(-1);
		else return;
		spot.current(null);
		e.preventDefault();
	};
	return (
		<div class="heat">
			<div class="heat-stage">
				<canvas
					ref={at}
					tabIndex={0}
					role="application"
					aria-roledescription="heatmap"
					aria-label={HOW}
					aria-describedby={about}
					onKeyDown={onKeyDown}
					onBlur={() => select(-1)}
					{...on}
				/>
				{grid && <MarkFlags shown={p.marks} window={covered(heat)} place={cellsPlace(grid)} />}
				<Tip {...{ heat, unit, selected }} bind={spot} canvas={drawn} />
			</div>
			<div class="visually-hidden" aria-live="polite">
				{selected < 0 ? "" : spokenCell(heat, unit, selected)}
			</div>
			<div class="visually-hidden heat-summary">
				<p id={about}>{words[0]}</p>
				<ul>
					{words.slice(1).map((text) => (
						<li key={text}>{text}</li>
					))}
					<MarksSaid marks={p.marks.marks} window={covered(heat)} />
				</ul>
			</div>
			<Scale heat={heat} unit={unit} />
		</div>
	);
}
