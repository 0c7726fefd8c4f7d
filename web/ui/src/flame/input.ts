// Pointer and keyboard on a flame graph: hover, select, zoom, menu.
import { attached } from "../shared/must";
import { FLAME_ROW_H } from "./canvas";
import { neighbour } from "./keys";
import { type Flame, levelOf, nameOf } from "./layout";
import type { FlameLook } from "./look";
import type { CanvasRef, Elements } from "./usecanvas";

/** A node and where the pointer is. */
export interface Hover {
	node: number;
	x: number;
	y: number;
}

export type SetHover = (h: Hover | null) => void;

/** Moves the focus to the search field of the result. */
function focusSearch(from: HTMLElement): boolean {
	const field = from.closest(".results")?.querySelector<HTMLInputElement>(".search input");
	field?.focus();
	field?.select();
	return Boolean(field);
}

export interface Input {
	at: Elements;
	canvas: CanvasRef;
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

/** The handlers for pointer and keyboard. */
export function useInput(v: Input) {
	const { flame, selected, zoomed, setSelected, zoomTo } = v;
	const nodeUnder = (e: MouseEvent) => {
		const box = attached(v.at.graph).getBoundingClientRect();
		return attached(v.canvas).hit(e.clientX - box.left, e.clientY - box.top);
	};
	const hover = (h: Hover | null) => {
		attached(v.canvas).setMarks(h ? h.node : -1, selected);
		v.setHover.current(h);
	};
	const leave = () => hover(null);
	const openMenu = (node: number, x: number, y: number) => {
		leave();
		v.setMenu({ node, x, y });
	};
	const menuAtSelected = () => {
		const node = selected >= 0 ? selected : zoomed;
		const p = attached(v.canvas).placeOnPage(node);
		setSelected(node);
		openMenu(node, p.x + 8, p.y + FLAME_ROW_H);
	};
	const reveal = (i: number) => {
		const box = attached(v.at.scroller);
		const y = attached(v.canvas).topOf(levelOf(flame, i)) + box.scrollTop;
		if (y < box.scrollTop) box.scrollTop = y;
		if (y + FLAME_ROW_H > box.scrollTop + box.clientHeight)
			box.scrollTop = y + FLAME_ROW_H - box.clientHeight;
		attached(v.canvas).setScroll(box.scrollTop);
	};
	const select = (i: number) => {
		if (i < 0) return;
		setSelected(i);
		reveal(i);
	};
	const key = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
		const menu = e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey);
		if (menu) {
			menuAtSelected();
		} else if (e.key.startsWith("Arrow")) {
			const { orientation } = v.look;
			select(selected < 0 ? zoomed : neighbour(flame, selected, e.key, orientation));
		} else if (e.key === "Home") {
			select(0);
		} else if (e.key === "Enter" && selected >= 0) {
			zoomTo(selected);
		} else if (e.key === "Escape" && (selected >= 0 || zoomed !== 0)) {
			setSelected(-1);
			zoomTo(0);
		} else if (e.key !== "/" || !focusSearch(attached(v.at.graph))) {
			return;
		}
		if (!menu) leave();
		e.preventDefault();
	};
	return {
		leave,
		select,
		move: (e: PointerEvent) => {
			const began = performance.now();
			const node = nodeUnder(e);
			hover(node < 0 ? null : { node, x: e.clientX, y: e.clientY });
			attached(v.canvas).addTime(performance.now() - began);
		},
		click: (e: MouseEvent) => {
			const node = nodeUnder(e);
			if (node < 0) return;
			setSelected(-1);
			if (e.altKey) v.onPick(nameOf(flame, node));
			else zoomTo(node);
		},
		menu: (e: MouseEvent) => {
			const node = nodeUnder(e);
			if (node < 0) return;
			e.preventDefault();
			openMenu(node, e.clientX, e.clientY);
		},
		key,
	};
}
