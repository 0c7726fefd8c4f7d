// A label set as small boxes.
import type { Labels } from "./api";

const VALUE_SHOWN = 160; // an annotation of a pod may be a whole document

export const shortened = (value: string): string =>
	value.length > VALUE_SHOWN ? value.slice(0, VALUE_SHOWN) + "…" : value;

export function Chips({ labels }: { labels: Labels }) {
	return (
		<span class="chips">
			{Object.entries(labels).map(([k, v]) => (
				<span key={k} class="chip" title={v.length > VALUE_SHOWN ? v : undefined}>
					<b>{k}</b>
					{shortened(v)}
				</span>
			))}
		</span>
	);
}
