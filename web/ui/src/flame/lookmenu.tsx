// The "View" popup of a flame graph: orientation, order, colour, recursion.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { useOutside } from "../shared/hooks";
import { IconDown } from "../shared/icons";
import type { FlameLook } from "./look";
import "./lookmenu.css";

const ORIENTATIONS: [FlameLook["orientation"], string][] = [
	["icicle", "Icicle: root at the top"],
	["flame", "Flame: root at the bottom"],
];
const ORDERS: [FlameLook["order"], string][] = [
	["name", "Name"],
	["cost", "Cost, most first"],
];
const COLORS: [FlameLook["color"], string][] = [
	["package", "Package"],
	["file", "File"],
	["share", "Share of total"],
];

function Choice<T extends string>(props: {
	title: string;
	value: T;
	options: [T, string][];
	disabled?: boolean;
	hint?: string;
	onChange(v: T): void;
}) {
	const name = useId();
	return (
		<fieldset disabled={props.disabled}>
			<legend>{props.title}</legend>
			{props.options.map(([v, text]) => (
				<label key={v}>
					<input
						type="radio"
						name={name}
						checked={v === props.value}
						onChange={() => props.onChange(v)}
					/>
					{text}
				</label>
			))}
			{props.hint && <p class="faint">{props.hint}</p>}
		</fieldset>
	);
}

function colorHint(look: FlameLook, diff: boolean): string | undefined {
	if (diff) return "In a comparison the colour shows the change.";
	return look.color === "share" ? "Warmer colours are larger shares." : undefined;
}

export function LookMenu({
	look,
	diff,
	onChange,
	children,
}: {
	look: FlameLook;
	diff: boolean;
	onChange(look: FlameLook): void;
	/** Below the choices. */
	children?: ComponentChildren;
}) {
	const [open, setOpen] = useState(false);
	const button = useRef<HTMLButtonElement>(null);
	const ref = useOutside(open, () => setOpen(false));
	const set = (part: Partial<FlameLook>) => onChange({ ...look, ...part });
	return (
		<div
			class="menu look"
			ref={ref}
			onKeyDown={(e) => {
				if (e.key === "Escape" && open) button.current?.focus();
			}}
		>
			<button
				type="button"
				ref={button}
				aria-haspopup="dialog"
				aria-expanded={open}
				title="View of the flame graph"
				onClick={() => setOpen(!open)}
			>
				View
				<IconDown />
			</button>
			{open && (
				<div class="popup look-popup" role="dialog" aria-label="View of the flame graph">
					<Choice
						title="Orientation"
						value={look.orientation}
						options={ORIENTATIONS}
						onChange={(orientation) => set({ orientation })}
					/>
					<Choice
						title="Siblings by"
						value={look.order}
						options={ORDERS}
						onChange={(order) => set({ order })}
					/>
					<Choice
						title="Colour by"
						value={look.color}
						options={COLORS}
						disabled={diff}
						hint={colorHint(look, diff)}
						onChange={(color) => set({ color })}
					/>
					<fieldset>
						<legend>Recursion</legend>
						<label>
							<input
								type="checkbox"
								checked={look.collapse}
								onChange={() => set({ collapse: !look.collapse })}
							/>
							As one frame
						</label>
					</fieldset>
					{children}
				</div>
			)}
		</div>
	);
}
