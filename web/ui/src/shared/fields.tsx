// Fields of several pages: a choice of a few, a choice from a list, and the filter of a list.
import type { ComponentChildren } from "preact";
import { useUrl } from "./hooks";
import { IconSearch } from "./icons";
import { must } from "./must";
import "./fields.css";

export function Segmented<T extends string>(props: {
	value: T;
	options: [T, string, string?][];
	label: string;
	onChange(v: T): void;
}) {
	return (
		<div class="segmented" role="group" aria-label={props.label}>
			{props.options.map(([v, text, hint]) => (
				<button
					key={v}
					type="button"
					title={hint}
					aria-pressed={v === props.value}
					onClick={() => props.onChange(v)}
				>
					{text}
				</button>
			))}
		</div>
	);
}

/** A `<select>` behind its name. Screen readers read `label` instead of the name. */
export function Select(props: {
	name: string;
	label: string;
	value: string;
	hint?: string;
	onChange(v: string): void;
	/** The `<option>`s. */
	children: ComponentChildren;
}) {
	return (
		<label class="select" title={props.hint}>
			<span class="faint">{props.name}</span>
			<select
				value={props.value}
				aria-label={props.label}
				onChange={(e) => props.onChange((e.target as HTMLSelectElement).value)}
			>
				{props.children}
			</select>
		</label>
	);
}

/** One `<option>` per value; `text` is how it is shown. */
export function optionsOf<T extends string | number>(values: T[], text?: (v: T) => string) {
	return values.map((v) => (
		<option key={v} value={v}>
			{text ? text(v) : v}
		</option>
	));
}

/** The files chosen in a field. It is emptied, so that the same file may be chosen again. */
export function takeFiles(input: HTMLInputElement): File[] {
	const files = [...must(input.files, "a field for files")];
	input.value = "";
	return files;
}

/** The field that sets `filter` in the address. */
export function TextFilter({ label, hint = label }: { label: string; hint?: string }) {
	const { store, location } = useUrl();
	return (
		<div class="search">
			<IconSearch />
			<input
				type="text"
				placeholder={hint}
				aria-label={label}
				spellcheck={false}
				value={location.params.get("filter") ?? ""}
				onInput={(e) =>
					store.patch({ filter: (e.target as HTMLInputElement).value }, true)
				}
			/>
		</div>
	);
}
