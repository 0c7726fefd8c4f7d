// Connects the canvas of a flame graph with its component: size, theme, scrolling, content.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { publish } from "../shared/debug";
import { attached } from "../shared/must";
import { useTheme } from "../shared/theme";
import { FlameCanvas } from "./canvas";
import { PALETTES } from "./color";
import { type Flame, levelOf, nameOf } from "./layout";
import type { FlameLook } from "./look";
import type { Matches } from "./search";

export type CanvasRef = { current: FlameCanvas | null };

export interface Elements {
	scroller: { current: HTMLDivElement | null };
	graph: { current: HTMLCanvasElement | null };
	overlay: { current: HTMLCanvasElement | null };
}

/** Creates the canvas for the lifetime of the component, and publishes it to tests. */
export function useFlameCanvas(at: Elements, debugName: string): CanvasRef {
	const theme = useTheme();
	const canvas = useRef<FlameCanvas | null>(null);
	const first = useRef(theme);
	const { scroller, graph, overlay } = at;
	useLayoutEffect(() => {
		const box = attached(scroller);
		const c = new FlameCanvas(attached(graph), attached(overlay), PALETTES[first.current]);
		canvas.current = c;
		const fit = () => c.resize(box.clientWidth, box.clientHeight);
		const observer = new ResizeObserver(fit);
		observer.observe(box);
		fit();
		return () => {
			observer.disconnect();
			c.dispose();
		};
	}, [scroller, graph, overlay]);
	useLayoutEffect(() => {
		publish(debugName, () => {
			const [c, el] = [attached(canvas), attached(graph)];
			return {
				width: el.clientWidth,
				drawMs: c.drawMs,
				frames: c.frameTimes(),
				framesDrawn: c.framesDrawn,
				zoomed: el.dataset.zoomed ?? "",
				nodes: c.drawnNodes(),
				bands: c.drawnBands,
			};
		});
		return () => publish(debugName, null);
	}, [graph, debugName]);
	useEffect(() => attached(canvas).setPalette(PALETTES[theme]), [theme]);
	return canvas;
}

/** With the root at the bottom, scrolling begins at the bottom. */
export function useScroll(
	at: Elements,
	canvas: CanvasRef,
	flame: Flame,
	orientation: FlameLook["orientation"],
) {
	const fromBottom = useRef(0);
	const rooted = useRef("");
	useLayoutEffect(() => {
		const box = attached(at.scroller);
		if (rooted.current !== orientation) {
			fromBottom.current = 0;
			rooted.current = orientation;
			box.scrollTop = 0;
		}
		if (orientation === "flame")
			box.scrollTop = box.scrollHeight - box.clientHeight - fromBottom.current;
		attached(canvas).setScroll(box.scrollTop);
	}, [at.scroller, canvas, flame, orientation]);
	return () => {
		const box = attached(at.scroller);
		fromBottom.current = box.scrollHeight - box.clientHeight - box.scrollTop;
		attached(canvas).setScroll(box.scrollTop);
	};
}

export interface DrawnFlame {
	flame: Flame;
	zoomed: number;
	selected: number;
	matches: Matches | null;
	look: FlameLook;
	bands: Map<string, string> | null;
}

/** Passes the content to the canvas; calls `redrawn` when the graph is another one. */
export function useDrawing(at: Elements, canvas: CanvasRef, v: DrawnFlame, redrawn: () => void): void {
	const { flame, zoomed, selected, matches, look, bands } = v;
	const mounted = useRef<Flame | null>(null);
	const { color, orientation } = look;
	useLayoutEffect(() => attached(canvas).setLook({ color, orientation }), [canvas, color, orientation]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: other matches of this graph are passed below
	useLayoutEffect(() => {
		const c = attached(canvas);
		c.setFlame(flame);
		c.setMatches(matches);
		redrawn();
	}, [flame]);
	useLayoutEffect(() => {
		// A new answer jumps to its zoom; within one answer zooming is animated.
		attached(canvas).zoomTo(zoomed, mounted.current === flame);
		mounted.current = flame;
		attached(at.graph).dataset.zoomed = nameOf(flame, zoomed) ?? "";
	}, [at.graph, canvas, flame, zoomed]);
	useEffect(() => attached(canvas).setMatches(matches), [canvas, matches, flame]);
	useEffect(() => attached(canvas).setBands(bands), [canvas, bands]);
	useEffect(() => attached(canvas).setMarks(-1, selected), [canvas, selected, flame]);
}

/** Publishes the nodes by index, for tests. */
export function usePublishedNames(flame: Flame, debugName: string): void {
	useEffect(() => {
		publish(`${debugName}Names`, () => (i: number) => ({
			name: nameOf(flame, i),
			total: flame.total[i],
			self: flame.self[i],
			level: levelOf(flame, i),
		}));
		return () => publish(`${debugName}Names`, null);
	}, [flame, debugName]);
}
