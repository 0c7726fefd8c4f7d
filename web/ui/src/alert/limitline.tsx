// The limit as a line over the chart: dragged, or moved by keys; and the times at which it was passed.
import { useRef } from "preact/hooks";
import type { PlotFrame } from "../chart/plot";
import { attached, must } from "../shared/must";
import type { Window } from "../shared/timerange";
import type { ChartUnit } from "../shared/units";
import type { Firing } from "./fired";
import { limitStep, onStep } from "./limit";

export interface LimitLineProps {
	frame: PlotFrame;
	window: Window;
	unit: ChartUnit;
	/** The unit of the limit. */
	of: string;
	over: number;
	firings: Firing[];
	/** While it is dragged, the scale must not change. */
	onHold(held: boolean): void;
	/** `done`: the drag ended, or a key was pressed. */
	onMove(over: number, done: boolean): void;
}

const PAGE_STEPS = 10;

function Firings({ frame, window: win, firings }: LimitLineProps) {
	const at = (t: number) => ((t - win.start) / (win.end - win.start)) * frame.width;
	return (
		<>
			{firings.map((f) => (
				<span
					key={`${f.from} ${JSON.stringify(f.metric)}`}
					class="fired"
					style={{
						left: `${frame.left + at(f.from)}px`,
						top: `${frame.top}px`,
						width: `${Math.max(2, at(f.to) - at(f.from))}px`,
						height: `${frame.height}px`,
					}}
				/>
			))}
		</>
	);
}

export function LimitLine(props: LimitLineProps) {
	const { frame, unit, of, over, onHold, onMove } = props;
	const held = useRef(false);
	const [least, most] = [frame.min, frame.max].map((v) => v / unit.factor);
	const box = useRef<HTMLDivElement>(null);
	const down = (over: number) => ((most - over) / (most - least)) * frame.height;
	const drag = (e: PointerEvent, done: boolean) => {
		if (!held.current) return;
		const chart = must(attached(box).parentElement, "the chart");
		const top = chart.getBoundingClientRect().top + frame.top;
		const part = Math.min(1, Math.max(0, (e.clientY - top) / frame.height));
		onMove(onStep(most - part * (most - least), most, of), done);
	};
	const release = (e: PointerEvent) => {
		drag(e, true);
		held.current = false;
		onHold(false);
	};
	const keys: Record<string, number> = {
		ArrowUp: over + limitStep(most, of),
		ArrowRight: over + limitStep(most, of),
		ArrowDown: over - limitStep(most, of),
		ArrowLeft: over - limitStep(most, of),
		PageUp: over + PAGE_STEPS * limitStep(most, of),
		PageDown: over - PAGE_STEPS * limitStep(most, of),
		Home: 0,
		End: most,
	};
	return (
		<>
			<Firings {...props} />
			<div
				class="limit-line"
				ref={box}
				role="slider"
				tabIndex={0}
				aria-label="Limit"
				aria-orientation="vertical"
				aria-valuemin={Math.min(0, least)}
				aria-valuemax={most}
				aria-valuenow={over}
				aria-valuetext={unit.format(over * unit.factor)}
				style={{
					left: `${frame.left}px`,
					width: `${frame.width}px`,
					top: `${frame.top + Math.min(frame.height, Math.max(0, down(over)))}px`,
				}}
				onPointerDown={(e) => {
					if (e.button !== 0) return;
					e.preventDefault();
					e.currentTarget.focus({ preventScroll: true });
					e.currentTarget.setPointerCapture(e.pointerId);
					held.current = true;
					onHold(true);
				}}
				onPointerMove={(e) => drag(e, false)}
				onPointerUp={release}
				onPointerCancel={() => {
					held.current = false;
					onHold(false);
				}}
				onKeyDown={(e) => {
					if (!(e.key in keys) || e.ctrlKey || e.metaKey || e.altKey) return;
					e.preventDefault();
					onMove(onStep(keys[e.key], most, of), true);
				}}
			>
				<span>{unit.format(over * unit.factor)}</span>
			</div>
		</>
	);
}
