// Long lists, of tables and of the call tree: rows of one height below a fixed head. Only the rows
// in view are in the document.
import { useEffect, useRef, useState } from "preact/hooks";
import { attached } from "./must";

export const ROW_H = 25;
const HEAD_H = 31;
const OVERSCAN = 8;
const HEIGHT_AT_FIRST = 600; // until the box is measured

/** Which of `count` rows are in view, and how to scroll; `box` is the ref of the scrolling element. */
export function useRowsInView(count: number, rowHeight = ROW_H) {
	const box = useRef<HTMLDivElement>(null);
	const [top, setTop] = useState(0);
	const [height, setHeight] = useState(HEIGHT_AT_FIRST);
	useEffect(() => {
		const el = attached(box);
		const observer = new ResizeObserver(() => setHeight(el.clientHeight));
		observer.observe(el);
		return () => observer.disconnect();
	}, []);
	/** Scrolls as little as possible until the row is in view. */
	const reveal = (index: number) => {
		const el = attached(box);
		const y = index * rowHeight;
		if (y < el.scrollTop) el.scrollTop = y;
		const below = y + rowHeight + HEAD_H - el.clientHeight;
		if (below > el.scrollTop) el.scrollTop = below;
	};
	/** Scrolls until the row is in the middle. */
	const center = (index: number) => {
		const el = attached(box);
		el.scrollTop = (index + 0.5) * rowHeight - (el.clientHeight - HEAD_H) / 2;
	};
	return {
		box,
		reveal,
		center,
		from: Math.max(0, Math.floor(top / rowHeight) - OVERSCAN),
		to: Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN),
		/** How many rows Page Down moves: one less than are in view. */
		page: Math.max(1, Math.floor((height - HEAD_H) / rowHeight) - 1),
		onScroll: (e: Event) => setTop((e.target as HTMLElement).scrollTop),
	};
}

/** The row that a key moves to; -1 for other keys. */
export function rowByKey(key: string, at: number, rows: number, page: number): number {
	const to: Record<string, number> = {
		ArrowDown: at + 1,
		ArrowUp: at - 1,
		PageDown: at + page,
		PageUp: at - page,
		Home: 0,
		End: rows - 1,
	};
	return key in to && rows > 0 ? Math.max(0, Math.min(rows - 1, to[key])) : -1;
}
