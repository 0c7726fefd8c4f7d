// Parts of the layout of several pages: an area that scrolls sideways, what a phone has no room for, and room for the
// graph: charts that fold, a result that fills the window.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { IconDown, IconFull } from "./icons";
import type { Patch } from "./urlstate";

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

interface RoomProps {
	on: boolean;
	patch(p: Patch): void;
}

/** Folds the chart above a result: `fold` in the address. */
export function FoldButton({ on, patch, name }: RoomProps & { name: string }) {
	return (
		<button
			type="button"
			class={on ? "fold folded" : "fold"}
			aria-expanded={!on}
			title={on ? `Show the ${name.toLowerCase()}` : `Fold the ${name.toLowerCase()}: more room for the graph`}
			onClick={() => patch({ fold: on ? null : "1" })}
		>
			{name}
			<IconDown />
		</button>
	);
}

/** What Escape closes before it leaves the full screen. */
const OVER_THE_PAGE = '.popup, .flame-menu, dialog[open], [role="dialog"]';

/** Lets the result fill the window: `full` in the address. Escape leaves, unless it closes something in there. */
export function FullButton({ on, patch }: RoomProps) {
	const last = useRef(patch);
	last.current = patch;
	useEffect(() => {
		if (!on) return;
		const leave = (e: KeyboardEvent) => {
			const typed = e.target instanceof HTMLInputElement && e.target.value !== "";
			if (e.key !== "Escape" || e.defaultPrevented || typed) return;
			if (!document.querySelector(OVER_THE_PAGE)) last.current({ full: null });
		};
		document.addEventListener("keydown", leave);
		return () => document.removeEventListener("keydown", leave);
	}, [on]);
	return (
		<button
			type="button"
			class="full-screen"
			aria-pressed={on}
			aria-label="Full screen"
			title={on ? "Leave full screen (Escape)" : "Full screen (f)"}
			onClick={() => patch({ full: on ? null : "1" })}
		>
			<IconFull />
		</button>
	);
}

/** Presses the button of the full screen, if there is one. */
export function pressFullScreen(): boolean {
	const button = document.querySelector<HTMLElement>("main .full-screen");
	button?.click();
	return button !== null;
}
