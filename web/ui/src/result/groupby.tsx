// A select for the label that a query groups by. It edits the query.
import { groupBy, groupLabels } from "../query/edit";
import { groupable } from "../query/labels";
import { useLabelNames } from "../query/questions";
import { optionsOf, Select } from "../shared/fields";
import type { Edit } from "./filters";

/** Offers labels of series and of samples; edits `query`. */
export function GroupBy({ query, edit }: { query: string; edit: Edit }) {
	const labels = useLabelNames();
	const now = groupLabels(query);
	const value = now.join(", ");
	const options = groupable(labels.answer?.data ?? []);
	return (
		<Select
			name="Group by"
			label="Group by"
			value={value}
			hint="One profile per value of a label, also of pprof's own labels"
			onChange={(l) => edit((q) => groupBy(q, l), { el: l ? "all" : null })}
		>
			<option value="">nothing</option>
			{value && !options.includes(value) && <option value={value}>{value}</option>}
			{optionsOf(options)}
		</Select>
	);
}
