// A select for the label that a query groups by. It edits the query.
import { groupBy, groupLabels } from "../query/edit";
import { groupable } from "../query/labels";
import { useLabelNames } from "../query/questions";
import type { Edit } from "./filters";

/** Offers labels of series and of samples; edits `query`. */
export function GroupBy({ query, edit }: { query: string; edit: Edit }) {
	const labels = useLabelNames();
	const now = groupLabels(query);
	const value = now.join(", ");
	const options = groupable(labels.answer?.data ?? []);
	return (
		<label class="select" title="One profile per value of a label, also of pprof's own labels">
			<span class="faint">Group by</span>
			<select
				value={value}
				aria-label="Group by"
				onChange={(e) => {
					const label = (e.target as HTMLSelectElement).value;
					edit((q) => groupBy(q, label), { el: label ? "all" : null });
				}}
			>
				<option value="">nothing</option>
				{value && !options.includes(value) && <option value={value}>{value}</option>}
				{options.map((l) => (
					<option key={l} value={l}>
						{l}
					</option>
				))}
			</select>
		</label>
	);
}
