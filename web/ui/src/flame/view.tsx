// The flame graph as a component: canvas, breadcrumbs, pointer and keyboard.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { attached } from "../shared/must";
import { formatPercent, formatValue, share } from "../shared/units";
import { arrange } from "./arrange";
import { FLAME_ROW_H } from "./canvas";
import { Card } from "./card";
import { Crumbs } from "./crumbs";
import { type Hover, type SetHover, useInput } from "./input";
import {
	ancestry,
	findPath,
	type Flame,
	nameOf,
	pathIdBefore,
	type WidthMode,
	zoomedNode,
} from "./layout";
import type { FlameLook } from "./look";
import { LookMenu } from "./lookmenu";
import { type FlameAction, FlameMenu } from "./menu";
import type { Matches } from "./search";
import { UnnamedLegend, useUnnamed } from "./unnamed";
import {
	type CanvasRef,
	type Elements,
	useDrawing,
	useFlameCanvas,
	usePublishedNames,
	useScroll,
} from "./usecanvas";
import "./flame.css";

/** A node to go to: it is selected, and zoomed if it is too small to see. */
export interface Goal {
	/** Each is gone to once. */
	turn: number;
	/** The hash of its path. */
	path: number;
	/** Parts of the graph were read to find it. */
	opened: boolean;
	/** It is in the graph without any such part. */
	whole: boolean;
}

export interface FlameViewProps {
	flame: Flame;
	unit: string;
	matches: Matches | null;
	/** The path hash of the zoomed node, in hex; "" for the root. */
	zoom: string;
	widthMode: WidthMode;
	/** Colours below the frames of the first level, by name: those of groups. */
	bands?: Map<string, string> | null;
	onZoom(path: string, replace?: boolean): void;
	onPick(name: string): void;
	/** A node to go to. */
	goal?: Goal | null;
	look: FlameLook;
	/** If not given, there is no menu for the look. */
	onLook?(look: FlameLook): void;
	/** More entries for the menu of a right click. */
	actions?: FlameAction[];
	/** Whether zooming reads what was folded. */
	reads?: boolean;
	/** Its name in window.__epi; "flame" if not given. */
	debugName?: string;
	/** Shown at the right of the breadcrumbs. */
	tools?: ComponentChildren;
	/** Shown in the menu for the look. */
	more?: ComponentChildren;
}

/**
 * The card of the node under the pointer, else of the selected one. It is a separate component, so
 * that a moving pointer renders nothing else.
 */
function Cards({
	flame,
	unit,
	reads,
	selected,
	bind,
	canvas,
}: {
	flame: Flame;
	unit: string;
	reads?: boolean;
	/** -1 for none. */
	selected: number;
	bind: { current: SetHover };
	canvas: CanvasRef;
}) {
	const began = performance.now();
	const [hover, setHover] = useState<Hover | null>(null);
	bind.current = setHover;
	useLayoutEffect(() => canvas.current?.addTime(performance.now() - began));
	if (hover && hover.node < flame.count) return <Card {...{ flame, unit, reads }} {...hover} />;
	if (selected < 0 || selected >= flame.count || !canvas.current) return null;
	const p = canvas.current.placeOnPage(selected);
	return (
		<Card {...{ flame, unit, reads }} node={selected} x={p.x} y={p.y + FLAME_ROW_H} top={p.y} />
	);
}

/** The canvases, as large as the scrolling element above them. */
function Stage(props: {
	at: Elements;
	levels: number;
	on: ReturnType<typeof useInput>;
	onScroll(): void;
}) {
	const { at, levels, on, onScroll } = props;
	return (
		<div
			class="flame-scroll"
			ref={at.scroller}
			onScroll={() => {
				on.leave();
				onScroll();
			}}
		>
			<div class="flame-space" style={{ height: `${levels * FLAME_ROW_H}px` }}>
				<div class="flame-stage">
					<canvas
						ref={at.graph}
						tabIndex={0}
						role="img"
						aria-label={
							"Flame graph. Arrow keys walk, Enter zooms, Escape goes back, " +
							"the menu key offers more."
						}
						onPointerMove={on.move}
						onPointerLeave={on.leave}
						onClick={on.click}
						onContextMenu={on.menu}
						onKeyDown={on.key}
					/>
					<canvas ref={at.overlay} class="flame-over" aria-hidden="true" />
				</div>
			</div>
		</div>
	);
}

function spoken(f: Flame, i: number, unit: string): string {
	if (i < 0 || i >= f.count) return "";
	const part = formatPercent(share(f.total[i], f.width));
	return `${nameOf(f, i)}, ${formatValue(f.total[i], unit)}, ${part} of total`;
}

/** The selected node; it keeps its call path when the graph changes. */
function useSelected(flame: Flame): [number, (i: number) => void] {
	const [at, set] = useState({ flame, node: -1 });
	const same = at.node < 0 || at.flame === flame;
	const node = same ? at.node : findPath(flame, at.flame.path[at.node]);
	return [node, (node) => set({ flame, node })];
}

const SEEN_PX = 20; // as wide as a frame has to be, to be found at a glance

/** Goes to the goal once: the zoom changes only if the node is not easily seen. */
function useGoal(
	{ goal, onZoom }: Pick<FlameViewProps, "goal" | "onZoom">,
	at: Elements,
	flame: Flame,
	zoomed: number,
	select: (i: number) => void,
) {
	const gone = useRef(0);
	// biome-ignore lint/correctness/useExhaustiveDependencies: a goal is gone to once
	useEffect(() => {
		if (!goal || goal.turn === gone.current) return;
		const node = findPath(flame, goal.path);
		if (node < 0) return;
		gone.current = goal.turn;
		const width = attached(at.graph).clientWidth;
		const seenIn = (top: number) => (width * flame.total[node]) / flame.total[top] >= SEEN_PX;
		const here = !goal.opened && ancestry(flame, node).includes(zoomed) && seenIn(zoomed);
		if (!here) {
			const fromRoot = goal.whole && !goal.opened && seenIn(0);
			onZoom(fromRoot ? "" : pathIdBefore(flame, node), goal.opened);
		}
		select(node);
	}, [goal, flame]);
}

export function FlameView(props: FlameViewProps) {
	const { unit, matches, zoom, widthMode, look, onLook, onZoom, onPick } = props;
	const at: Elements = {
		scroller: useRef<HTMLDivElement>(null),
		graph: useRef<HTMLCanvasElement>(null),
		overlay: useRef<HTMLCanvasElement>(null),
	};
	const debugName = props.debugName ?? "flame";
	const canvas = useFlameCanvas(at, debugName);
	// The widths of a difference change in place, so the mode is a dependency as well.
	const { order, collapse } = look;
	const flame = useMemo(() => {
		const f = arrange(props.flame, { order, collapse });
		return f === props.flame ? { ...f } : f;
	}, [props.flame, widthMode, order, collapse]);
	const zoomed = useMemo(() => zoomedNode(flame, zoom), [flame, zoom]);
	const [selected, setSelected] = useSelected(flame);
	const [menu, setMenu] = useState<Hover | null>(null);
	const setHover = useRef<SetHover>(() => {});
	const onScroll = useScroll(at, canvas, flame, look.orientation);
	const bands = props.bands ?? null;
	useDrawing(at, canvas, { flame, zoomed, selected, matches, look, bands }, () => {
		setHover.current(null);
		setMenu(null);
	});
	usePublishedNames(flame, debugName);
	const unnamed = useUnnamed(flame);
	const zoomTo = useCallback(
		(i: number) => onZoom(i > 0 ? pathIdBefore(flame, i) : ""),
		[flame, onZoom],
	);
	const on = useInput({
		...{ at, canvas, flame, look, zoomed, selected },
		...{ setSelected, setHover, setMenu, zoomTo, onPick },
	});
	useGoal(props, at, flame, zoomed, on.select);
	return (
		<div class="flame">
			<div class="flame-head">
				<Crumbs flame={flame} zoomed={zoomed} onZoom={zoomTo} />
				<div class="flame-tools">
					{unnamed && <UnnamedLegend />}
					{props.tools}
					{onLook && (
						<LookMenu look={look} diff={!!flame.diff} onChange={onLook}>
							{props.more}
						</LookMenu>
					)}
				</div>
			</div>
			<Stage at={at} levels={flame.levels} on={on} onScroll={onScroll} />
			<div class="visually-hidden" aria-live="polite">
				{spoken(flame, selected, unit)}
			</div>
			{menu && menu.node < flame.count && (
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
						if (back) attached(at.graph).focus({ preventScroll: true });
					}}
				/>
			)}
			<Cards
				{...{ flame, unit, canvas }}
				reads={props.reads}
				selected={menu ? -1 : selected}
				bind={setHover}
			/>
		</div>
	);
}
