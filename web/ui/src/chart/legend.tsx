// The names of a chart's lines. Pointing at a name highlights its line; a press narrows the query.
import { formatLabels, type Labels } from "../shared/api";
import type { Aligned } from "./series";

export interface LegendProps {
	data: Aligned;
	color(i: number): string;
	/** The line next to the pointer, -1 for none. */
	focused: number;
	/** How many lines are not drawn. */
	more: number;
	/** The mean of a line, in words; "" if it is not known. */
	meanOf?(metric: Labels): string;
	pickHint?(metric: Labels): string;
	onPick?(metric: Labels): void;
	onFocus(i: number): void;
}

export function Legend(props: LegendProps) {
	const { data, focused, more, meanOf, pickHint, onPick, onFocus } = props;
	return (
		<ul class="legend">
			{data.labels.map((label, i) => {
				const hint = i === data.rest ? "" : (pickHint?.(data.metrics[i]) ?? "");
				const mean = i === data.rest ? "" : (meanOf?.(data.metrics[i]) ?? "");
				const content = (
					<>
						<span class="dot" style={{ background: props.color(i) }} />
						<span class="ellipsis">{label}</span>
						{mean && <span class="faint mean">{mean}</span>}
					</>
				);
				return (
					<li
						key={`${i} ${label}`}
						class={i === focused ? "on" : ""}
						title={i === data.rest ? undefined : formatLabels(data.metrics[i], label)}
						onPointerEnter={() => onFocus(i)}
						onPointerLeave={() => onFocus(-1)}
					>
						{hint && onPick ? (
							<button
								type="button"
								title={hint}
								onFocus={() => onFocus(i)}
								onBlur={() => onFocus(-1)}
								onClick={() => onPick(data.metrics[i])}
							>
								{content}
							</button>
						) : (
							content
						)}
					</li>
				);
			})}
			{more > 0 && <li class="faint">and {more} smaller</li>}
		</ul>
	);
}
