// The flame graph as a component: canvas, breadcrumbs, pointer and keyboard.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatPercent, formatValue, share } from "../lib/units";
import { publish } from "../lib/debug";
import { useTheme } from "../lib/theme";
import { arrange } from "./arrange";
import { Card } from "./card";
import { FlameCanvas, ROW_H } from "./canvas";
import { PALETTES } from "./color";
import { Crumbs } from "./crumbs";
import { neighbour } from "./keys";
import {
	ancestry,
	levelOf,
	nameOf,
	pathId,
	zoomedNode,
	type Flame,
	type WidthMode,
} from "./layout";
import type { FlameLook } from "./look";
import { LookMenu } from "./lookmenu";
import { FlameMenu, type FlameAction } from "./menu";
import type { Matches } from "./search";
import "./flame.css";

export interface FlameViewProps {
	flame: Flame;
	unit: string;
	matches: Matches | null;
	/** The path hash of the zoomed node, in hex; "" for everything. */
	zoom: string;
	widthMode: WidthMode;
	onZoom(path: string): void;
	onPick(name: string): void;
	look: FlameLook;
	/** Without it there is no menu that changes the look. */
	onLook?(look: FlameLook): void;
	/** Further entries of the menu of a right click. */
	actions?: FlameAction[];
	/** Under which name it stands in window.__epi, "flame" unless given. */
	debugName?: string;
	/** Stands at the right of the breadcrumbs. */
	tools?: ComponentChildren;
}

/** A node and where the pointer is. */
interface Hover {
	node: number;
	x: number;
	y: number;
}

type SetHover = (h: Hover | null) => void;



interface Elements {
	scroller: { current: HTMLDivElement | null };
	graph: { current: HTMLCanvasElement | null };
	overlay: { current: HTMLCanvasElement | null };
}

/** The canvas for as long as the component lives, and what it publishes. */
function useFlameCanvas(at: Elements, theme: "light" | "dark", debugName: string) {
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
		}));
		return () => publish(debugName, null);
	}, [debugName]);
	useEffect(() => canvas.current!.setPalette(PALETTES[theme]), [theme]);
	return canvas;
}

/** In the orientation of a flame one looks from the root up, so it scrolls from the bottom. */
function useScroll(
	at: Elements,
	canvas: { current: FlameCanvas | null },
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

/**
 * The card of what is under the pointer, else of the node the keyboard is on; a component of its
 * own, so that a moving pointer draws nothing else again.
 */
function Cards({
	flame,
	unit,
	selected,
	bind,
	canvas,
}: {
	flame: Flame;
	unit: string;
	/** -1 for none. */
	selected: number;
	bind: { current: SetHover };
	canvas: { current: FlameCanvas | null };
}) {
	const began = performance.now();
	const [hover, setHover] = useState<Hover | null>(null);
	bind.current = setHover;
	useLayoutEffect(() => canvas.current?.addTime(performance.now() - began));
	if (hover && hover.node < flame.count) return <Card flame={flame} unit={unit} {...hover} />;
	if (selected < 0 || selected >= flame.count || !canvas.current) return null;
	const p = canvas.current.placeOnPage(selected);
	return (
		<Card flame={flame} unit={unit} node={selected} x={p.x} y={p.y + ROW_H} top={p.y} />
	);
}

/** Moves the focus to the search of the result the graph stands in. */
function focusSearch(from: HTMLElement): boolean {
	const field = from.closest(".results")?.querySelector<HTMLInputElement>(".search input");
	field?.focus();
	field?.select();
	return field != null;
}

export function FlameView(props: FlameViewProps) {
	const { unit, matches, zoom, widthMode, look, onLook, onZoom, onPick } = props;
	const theme = useTheme();
	const at: Elements = {
		scroller: useRef<HTMLDivElement>(null),
		graph: useRef<HTMLCanvasElement>(null),
		overlay: useRef<HTMLCanvasElement>(null),
	};
	const debugName = props.debugName ?? "flame";
	const canvas = useFlameCanvas(at, theme, debugName);
	// The widths of a difference change in place, and with them what costs most.
	const flame = useMemo(
		() => arrange(props.flame, look),
		[props.flame, widthMode, look.order, look.collapse],
	);
	const zoomed = useMemo(() => zoomedNode(flame, zoom), [flame, zoom]);
	const [selected, setSelected] = useState(-1);
	const [menu, setMenu] = useState<Hover | null>(null);
	const setHover = useRef<SetHover>(() => {});
	const mounted = useRef<Flame | null>(null);
	const onScroll = useScroll(at, canvas, flame, look.orientation);

	useLayoutEffect(() => canvas.current!.setLook(look), [look.color, look.orientation]);
	useLayoutEffect(() => {
		canvas.current!.setFlame(flame);
		canvas.current!.setMatches(matches);
		setHover.current(null);
		setMenu(null);
		setSelected(-1);
	}, [flame, widthMode]);
	useLayoutEffect(() => {
		// A new answer jumps to its zoom; a zoom within one moves there.
		canvas.current!.zoomTo(zoomed, mounted.current === flame);
		mounted.current = flame;
		at.graph.current!.dataset.zoomed = nameOf(flame, zoomed) ?? "";
	}, [flame, widthMode, zoomed]);
	useEffect(() => canvas.current!.setMatches(matches), [matches, flame]);
	useEffect(() => canvas.current!.setMarks(-1, selected), [selected]);
	useEffect(() => {
		publish(`${debugName}Names`, () => (i: number) => ({
			name: nameOf(flame, i),
			total: flame.total[i],
			self: flame.self[i],
			level: levelOf(flame, i),
		}));
		return () => publish(`${debugName}Names`, null);
	}, [flame, debugName]);

	const zoomTo = useCallback(
		(i: number) => onZoom(i > 0 ? pathId(flame, i) : ""),
		[flame, onZoom],
	);
	const handlers = useInput({
		at,
		canvas,
		flame,
		look,
		zoomed,
		selected,
		setSelected,
		setHover,
		setMenu,
		zoomTo,
		onPick,
	});
	const spoken =
		selected >= 0
			? `${nameOf(flame, selected)}, ${formatValue(flame.total[selected], unit)}, ` +
				`${formatPercent(share(flame.total[selected], flame.width))} of all`
			: "";
	return (
		<div class="flame">
			<div class="flame-head">
				<Crumbs flame={flame} zoomed={zoomed} onZoom={zoomTo} />
				<div class="flame-tools">
					{props.tools}
					{onLook && (
						<LookMenu look={look} diff={flame.diff !== null} onChange={onLook} />
					)}
				</div>
			</div>
			<div
				class="flame-scroll"
				ref={at.scroller}
				onScroll={() => {
					handlers.leave();
					onScroll();
				}}
			>
				<div class="flame-space" style={{ height: `${flame.levels * ROW_H}px` }}>
					<div class="flame-stage">
						<canvas
							ref={at.graph}
							tabIndex={0}
							role="img"
							aria-label={
								"Flame graph. Arrow keys walk, Enter zooms, Escape goes back, " +
								"the menu key offers more."
							}
							onPointerMove={handlers.move}
							onPointerLeave={handlers.leave}
							onClick={handlers.click}
							onContextMenu={handlers.menu}
							onKeyDown={handlers.key}
						/>
						<canvas ref={at.overlay} class="flame-over" aria-hidden="true" />
					</div>
				</div>
			</div>
			<div class="visually-hidden" aria-live="polite">
				{spoken}
			</div>
			{menu && (
				<FlameMenu
					name={nameOf(flame, menu.node)}
					stack={ancestry(flame, menu.node)
						.slice(1)
						.map((n) => nameOf(flame, n))}
					actions={props.actions ?? []}
					x={menu.x}
					y={menu.y}
					onZoom={() => zoomTo(menu.node)}
					onPick={() => onPick(nameOf(flame, menu.node))}
					onClose={(back) => {
						setMenu(null);
						if (back) at.graph.current!.focus({ preventScroll: true });
					}}
				/>
			)}
			<Cards
				flame={flame}
				unit={unit}
				selected={menu ? -1 : selected}
				bind={setHover}
				canvas={canvas}
			/>
		</div>
	);
}

interface Input {
	at: Elements;
	canvas: { current: FlameCanvas | null };
	flame: Flame;
	look: FlameLook;
	zoomed: number;
	selected: number;
	setSelected(i: number): void;
	setHover: { current: SetHover };
	setMenu(h: Hover | null): void;
	zoomTo(i: number): void;
	onPick(name: string): void;
}

/** What pointer and keyboard do. */
function useInput(v: Input) {
	const { flame, selected, zoomed, setSelected, zoomTo } = v;
	const nodeUnder = (e: MouseEvent) => {
		const box = v.at.graph.current!.getBoundingClientRect();
		return v.canvas.current!.hit(e.clientX - box.left, e.clientY - box.top);
	};
	const hover = (h: Hover | null) => {
		v.canvas.current!.setMarks(h ? h.node : -1, selected);
		v.setHover.current(h);
	};
	const leave = () => hover(null);
	const openMenu = (node: number, x: number, y: number) => {
		leave();
		v.setMenu({ node, x, y });
	};
	const menuAtSelected = () => {
		const node = selected >= 0 ? selected : zoomed;
		const p = v.canvas.current!.placeOnPage(node);
		setSelected(node);
		openMenu(node, p.x + 8, p.y + ROW_H);
	};
	const reveal = (i: number) => {
		const box = v.at.scroller.current!;
		const y = v.canvas.current!.topOf(levelOf(flame, i)) + box.scrollTop;
		if (y < box.scrollTop) box.scrollTop = y;
		if (y + ROW_H > box.scrollTop + box.clientHeight)
			box.scrollTop = y + ROW_H - box.clientHeight;
		v.canvas.current!.setScroll(box.scrollTop);
	};
	const select = (i: number) => {
		if (i < 0) return;
		setSelected(i);
		reveal(i);
	};
	return {
		leave,
		move: (e: PointerEvent) => {
			const began = performance.now();
			const node = nodeUnder(e);
			hover(node < 0 ? null : { node, x: e.clientX, y: e.clientY });
			v.canvas.current!.addTime(performance.now() - began);
		},
		click: (e: MouseEvent) => {
			const node = nodeUnder(e);
			if (node < 0) return;
			setSelected(-1);
			if (e.altKey) v.onPick(nameOf(flame, node));
			else zoomTo(node);
		},
		menu: (e: MouseEvent) => {
			// A menu key arrives as a click of no button.
			const node = e.button === 2 ? nodeUnder(e) : -1;
			if (e.button === 2 && node < 0) return;
			e.preventDefault();
			if (node >= 0) openMenu(node, e.clientX, e.clientY);
			else menuAtSelected();
		},
		key: (e: KeyboardEvent) => {
			if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
			if (e.key.startsWith("Arrow"))
				select(
					selected < 0 ? zoomed : neighbour(flame, selected, e.key, v.look.orientation),
				);
			else if (e.key === "Home") select(0);
			else if (e.key === "Enter" && selected >= 0) zoomTo(selected);
			else if (e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey)) menuAtSelected();
			else if (e.key === "/") {
				if (!focusSearch(v.at.graph.current!)) return;
			} else if (e.key === "Escape") {
				if (selected < 0 && zoomed === 0) return;
				setSelected(-1);
				zoomTo(0);
			} else {
				return;
			}
			if (e.key !== "ContextMenu" && e.key !== "F10") leave();
			e.preventDefault();
		},
	};
}
