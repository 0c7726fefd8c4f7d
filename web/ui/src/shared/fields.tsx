// Fields of several pages: a choice of a few, and the filter of a list.
import { useUrl } from "./hooks";
import { IconSearch } from "./icons";
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
