// The flame graph as a component: canvas, breadcrumbs, pointer and keyboard.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatPercent, formatValue, share } from "../lib/units";
import { publish } from "../lib/debug";
import { useTheme } from "../lib/theme";
import { Card } from "./card";
import { FlameCanvas, ROW_H } from "./canvas";
import { LookMenu } from "./lookmenu";
import type { FlameLook } from "./look";
import { FlameMenu, type FlameAction } from "./menu";
import { makePalette, shortName } from "./color";
import {
	ancestry,
	childrenOf,
	findPath,
	levelOf,
	nameOf,
	pathId,
	type Flame,
	type WidthMode,
} from "./layout";
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

interface Hover {
	node: number;
	x: number;
	y: number;
}

const PALETTES = { light: makePalette("light"), dark: makePalette("dark") };

/** The node one key away; -1 where there is none. */
function neighbour(f: Flame, i: number, key: string): number {
	const level = levelOf(f, i);
	if (key === "ArrowUp") return f.parent[i];
	if (key === "ArrowDown") {
		const [from, to] = childrenOf(f, i);
		let best = -1;
		for (let c = from; c < to; c++) if (best < 0 || f.total[c] > f.total[best]) best = c;
		return best;
	}
	const step = key === "ArrowLeft" ? -1 : 1;
	for (let n = i + step; n >= f.start[level] && n < f.start[level + 1]; n += step)
		if (f.total[n] > 0) return n;
	return -1;
}

function Crumbs({
	flame,
	zoomed,
	onZoom,
}: {
	flame: Flame;
	zoomed: number;
	onZoom(i: number): void;
}) {
	const path = ancestry(flame, zoomed);
	const shown = path.length > 7 ? [path[0], -1, ...path.slice(-5)] : path;
	return (
		<nav class="crumbs" aria-label="Call path of the zoomed function">
			{shown.map((n) =>
				n < 0 ? (
					<span key="gap" class="faint">
						…
					</span>
				) : (
					<button
						key={n}
						type="button"
						title={nameOf(flame, n)}
						class={n === zoomed ? "current" : ""}
						onClick={() => onZoom(n)}
					>
						{n === 0 ? "total" : shortName(nameOf(flame, n))}
					</button>
				),
			)}
			{zoomed > 0 && (
				<>
					<span class="faint">
						{formatPercent(share(flame.total[zoomed], flame.width))} of all
					</span>
					<button type="button" class="reset" onClick={() => onZoom(0)}>
						Reset zoom
					</button>
				</>
			)}
		</nav>
	);
}

export function FlameView(props: FlameViewProps) {
	const { flame, unit, matches, zoom, widthMode, onZoom, onPick, look, onLook } = props;
	const debugName = props.debugName ?? "flame";
	const theme = useTheme();
	const scroller = useRef<HTMLDivElement>(null);
	const canvasEl = useRef<HTMLCanvasElement>(null);
	const canvas = useRef<FlameCanvas | null>(null);
	const [hover, setHover] = useState<Hover | null>(null);
	const [selected, setSelected] = useState(-1);
	const [menu, setMenu] = useState<Hover | null>(null);
	const mounted = useRef<Flame | null>(null);

	const zoomed = useMemo(() => {
		if (!zoom || !flame.count) return 0;
		return Math.max(0, findPath(flame, parseInt(zoom, 16)));
	}, [flame, zoom]);

	useLayoutEffect(() => {
		const c = new FlameCanvas(canvasEl.current!, PALETTES[theme]);
		canvas.current = c;
		const fit = () => {
			const box = scroller.current!;
			c.resize(box.clientWidth, box.clientHeight);
		};
		const observer = new ResizeObserver(fit);
		observer.observe(scroller.current!);
		fit();
		publish(debugName, () => ({
			width: canvasEl.current!.clientWidth,
			drawMs: c.drawMs,
			zoomed: canvasEl.current!.dataset.zoomed ?? "",
			nodes: c.drawnNodes().map(({ index, x, y, w }) => ({ index, x, y, w })),
		}));
		return () => {
			observer.disconnect();
			c.dispose();
			publish(debugName, null);
		};
	}, []);

	useEffect(() => canvas.current!.setPalette(PALETTES[theme]), [theme]);
	useLayoutEffect(() => {
		canvas.current!.setFlame(flame);
		setHover(null);
		setMenu(null);
		setSelected(-1);
	}, [flame, widthMode]);
	useLayoutEffect(() => {
		// A new answer jumps to its zoom; a zoom within one moves there.
		canvas.current!.zoomTo(zoomed, mounted.current === flame);
		mounted.current = flame;
		canvasEl.current!.dataset.zoomed = nameOf(flame, zoomed) ?? "";
	}, [flame, widthMode, zoomed]);
	useEffect(() => canvas.current!.setMatches(matches), [matches, flame]);
	useEffect(() => {
		canvas.current!.hovered = hover ? hover.node : -1;
		canvas.current!.selected = selected;
		canvas.current!.schedule();
	}, [hover, selected]);
	useEffect(() => {
		publish(`${debugName}Names`, () => (i: number) => ({
			name: nameOf(flame, i),
			total: flame.total[i],
			self: flame.self[i],
			level: levelOf(flame, i),
		}));
		return () => publish(`${debugName}Names`, null);
	}, [flame]);

	const zoomTo = useCallback(
		(i: number) => onZoom(i > 0 ? pathId(flame, i) : ""),
		[flame, onZoom],
	);

	const nodeUnder = (e: MouseEvent) => {
		const box = canvasEl.current!.getBoundingClientRect();
		return canvas.current!.hit(e.clientX - box.left, e.clientY - box.top);
	};
	const onMove = (e: PointerEvent) => {
		const node = nodeUnder(e);
		setHover(node < 0 ? null : { node, x: e.clientX, y: e.clientY });
	};
	const onMenu = (e: MouseEvent) => {
		const node = nodeUnder(e);
		if (node < 0) return;
		e.preventDefault();
		setHover(null);
		setMenu({ node, x: e.clientX, y: e.clientY });
	};
	const onClick = (e: MouseEvent) => {
		const node = nodeUnder(e);
		if (node < 0) return;
		setSelected(-1);
		if (e.altKey) onPick(nameOf(flame, node));
		else zoomTo(node);
	};
	const reveal = (i: number) => {
		const box = scroller.current!;
		const y = levelOf(flame, i) * ROW_H;
		if (y < box.scrollTop) box.scrollTop = y;
		if (y + ROW_H > box.scrollTop + box.clientHeight)
			box.scrollTop = y + ROW_H - box.clientHeight;
	};
	const onKey = (e: KeyboardEvent) => {
		const at = selected >= 0 ? selected : zoomed;
		if (e.key.startsWith("Arrow")) {
			const to = selected < 0 ? zoomed : neighbour(flame, at, e.key);
			if (to >= 0) {
				setSelected(to);
				reveal(to);
			}
		} else if (e.key === "Enter" && selected >= 0) {
			zoomTo(selected);
		} else if (e.key === "Escape") {
			if (selected < 0 && zoomed === 0) return;
			setSelected(-1);
			zoomTo(0);
		} else {
			return;
		}
		setHover(null);
		e.preventDefault();
	};

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
				ref={scroller}
				onScroll={(e) => {
					setHover(null);
					canvas.current!.setScroll((e.target as HTMLElement).scrollTop);
				}}
			>
				<div class="flame-space" style={{ height: `${flame.levels * ROW_H}px` }}>
					<canvas
						ref={canvasEl}
						tabIndex={0}
						role="img"
						aria-label="Flame graph. Arrow keys walk, Enter zooms, Escape goes back."
						onPointerMove={onMove}
						onPointerLeave={() => setHover(null)}
						onClick={onClick}
						onContextMenu={onMenu}
						onKeyDown={onKey}
					/>
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
					onClose={() => setMenu(null)}
				/>
			)}
			{hover && !menu && hover.node < flame.count && (
				<Card flame={flame} unit={unit} {...hover} />
			)}
			{!hover &&
				selected >= 0 &&
				canvasEl.current &&
				(() => {
					const box = canvasEl.current.getBoundingClientRect();
					const p = canvas.current!.place(selected, levelOf(flame, selected));
					return (
						<Card
							flame={flame}
							unit={unit}
							node={selected}
							x={box.left + Math.max(0, p.x)}
							y={box.top + p.y + ROW_H}
						/>
					);
				})()}
		</div>
	);
}
