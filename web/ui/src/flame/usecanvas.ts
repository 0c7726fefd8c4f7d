// Connects the canvas of a flame graph with its component: size, theme, scrolling, content.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { publish } from "../shared/debug";
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
	useLayoutEffect(() => {
		const box = at.scroller.current!;
		const c = new FlameCanvas(at.graph.current!, at.overlay.current!, PALETTES[theme]);
		canvas.current = c;
		const fit = () => c.resize(box.clientWidth, box.clientHeight);
		const observer = new ResizeObserver(fit);
		observer.observe(box);
		fit();
		return () => {
			observer.disconnect();
			c.dispose();
		};
	}, []);
	useLayoutEffect(() => {
		publish(debugName, () => ({
			width: at.graph.current!.clientWidth,
			drawMs: canvas.current!.drawMs,
			frames: canvas.current!.frameTimes(),
			framesDrawn: canvas.current!.framesDrawn,
			zoomed: at.graph.current!.dataset.zoomed ?? "",
			nodes: canvas.current!.drawnNodes(),
			bands: canvas.current!.drawnBands,
		}));
		return () => publish(debugName, null);
	}, [debugName]);
	useEffect(() => canvas.current!.setPalette(PALETTES[theme]), [theme]);
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
		const box = at.scroller.current!;
		if (rooted.current !== orientation) {
			fromBottom.current = 0;
			rooted.current = orientation;
			box.scrollTop = 0;
		}
		if (orientation === "flame")
			box.scrollTop = box.scrollHeight - box.clientHeight - fromBottom.current;
		canvas.current!.setScroll(box.scrollTop);
	}, [flame, orientation]);
	return () => {
		const box = at.scroller.current!;
		fromBottom.current = box.scrollHeight - box.clientHeight - box.scrollTop;
		canvas.current!.setScroll(box.scrollTop);
	};
}

export interface Drawn {
	flame: Flame;
	zoomed: number;
	selected: number;
	matches: Matches | null;
	look: FlameLook;
	bands: Map<string, string> | null;
}

/** Passes the content to the canvas; calls `redrawn` when the graph is another one. */
export function useDrawing(at: Elements, canvas: CanvasRef, v: Drawn, redrawn: () => void): void {
	const { flame, zoomed, selected, matches, look, bands } = v;
	const mounted = useRef<Flame | null>(null);
	useLayoutEffect(() => canvas.current!.setLook(look), [look.color, look.orientation]);
	useLayoutEffect(() => {
		canvas.current!.setFlame(flame);
		canvas.current!.setMatches(matches);
		redrawn();
	}, [flame]);
	useLayoutEffect(() => {
		// A new answer jumps to its zoom; within one answer zooming is animated.
		canvas.current!.zoomTo(zoomed, mounted.current === flame);
		mounted.current = flame;
		at.graph.current!.dataset.zoomed = nameOf(flame, zoomed) ?? "";
	}, [flame, zoomed]);
	useEffect(() => canvas.current!.setMatches(matches), [matches, flame]);
	useEffect(() => canvas.current!.setBands(bands), [bands]);
	useEffect(() => canvas.current!.setMarks(-1, selected), [selected, flame]);
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
