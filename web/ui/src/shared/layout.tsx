// Parts of the layout of several pages: an area that scrolls sideways, and what a phone has no room for.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { IconDown } from "./icons";

/** What may be wider than the page scrolls by itself, also by keyboard. `label` is for screen readers. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
	return (
		<div class="scroll-x" role="group" aria-label={label} tabIndex={0}>
			{children}
		</div>
	);
}

/** What a phone has behind a button; elsewhere it is as if it were not wrapped. */
export function Narrow({ name, children }: { name: string; children: ComponentChildren }) {
	const [open, setOpen] = useState(false);
	const id = useId();
	return (
		<>
			<button
				type="button"
				class="narrow-more"
				aria-expanded={open}
				aria-controls={id}
				onClick={() => setOpen(!open)}
			>
				{name}
				<IconDown />
			</button>
			<div id={id} class={open ? "narrow-part open" : "narrow-part"}>
				{children}
			</div>
		</>
	);
}
