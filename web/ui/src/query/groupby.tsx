// The label that a query groups by: one select for the graph and for the chart above it. It edits the
// query, so that what is asked can be seen.
import { optionsOf, Select } from "../shared/fields";
import type { Patch } from "../shared/urlstate";
import { groupLabels, regrouped, ungrouped } from "./edit";
import { groupable, selectorsOf } from "./labels";
import { useMenu } from "./menus";
import type { Times } from "./questions";

/** The value of `by` in the address for a chart of functions; any other is a label of old links. */
export const BY_FUNCTION = "function";

export interface GroupByProps {
	query: string;
	/** The window whose labels are offered. */
	times: Times;
	/** Whether the chart is by function; not offered if not given. */
	functions?: boolean;
	onChange(change: (query: string) => string, also: Patch): void;
}

export function GroupBy({ query, times, functions, onChange }: GroupByProps) {
	const labels = useMenu<string>("labels", selectorsOf(query), times);
	const own = groupLabels(query).join(", ");
	const options = groupable(labels).filter(
		(l) => !l.startsWith("__") && l !== BY_FUNCTION,
	);
	const choose = (v: string) => {
		const label = v === BY_FUNCTION ? "" : v;
		onChange((q) => (label ? regrouped(q, label) : ungrouped(q)), {
			el: label ? "all" : null,
			...(functions === undefined ? {} : { by: v === BY_FUNCTION ? v : null }),
		});
	};
	return (
		<Select
			name="Group by"
			label="Group by"
			value={functions ? BY_FUNCTION : own}
			hint="One line and one graph per value of a label, also of sample labels"
			onChange={choose}
		>
			<option value="">nothing</option>
			{functions !== undefined && <option value={BY_FUNCTION}>top functions (chart)</option>}
			{own && !options.includes(own) && <option value={own}>{own}</option>}
			{optionsOf(options)}
		</Select>
	);
}
