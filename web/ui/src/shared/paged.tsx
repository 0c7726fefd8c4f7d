// Long lists a page at a time.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import "./paged.css";

export const PAGE_ITEMS = 50;

/** The first rows of a list, and a button for more: a thousand rows at once would stall the page. */
export function Paged<T>(props: {
	items: T[];
	what: string;
	children(items: T[]): ComponentChildren;
}) {
	const { items, what } = props;
	const [count, setCount] = useState(PAGE_ITEMS);
	const more = Math.min(PAGE_ITEMS, items.length - count);
	return (
		<>
			{props.children(items.slice(0, count))}
			{more > 0 && (
				<div class="paged">
					<span class="faint">
						{count.toLocaleString("en")} of {items.length.toLocaleString("en")} {what}
					</span>
					<button type="button" class="small" onClick={() => setCount(count + more)}>
						Show {more} more
					</button>
				</div>
			)}
		</>
	);
}
