// Which functions of a difference really changed: what the server's changed() says of the two
// sides, and why it says nothing where it does.
import { useMemo } from "preact/hooks";
import type { ProfileElement, QueryData } from "../lib/api";
import { changedQuery } from "../lib/edit";
import { useApi } from "../lib/hooks";
import type { Times } from "../lib/questions";

export interface Significance {
	/** Change of the share of the flat cost, -1..1, of those functions that changed. */
	changes: Map<string, number>;
	notes: string[];
	loading: boolean;
}

function windowOf(times: Times): number {
	return times.start && times.end ? Math.round(Number(times.end) - Number(times.start)) : 0;
}

/** null where the question cannot be asked: of levels, of filtered or grouped profiles. */
export function useSignificance(
	props: { query: string; times: Times; asked: string },
	element: ProfileElement,
	wanted: boolean,
): Significance | null {
	const { query, times, asked } = props;
	const diff = element.flamebearer.format === "double";
	const sent =
		wanted && diff && element.type?.endsWith(":delta")
			? changedQuery(query, windowOf(times))
			: null;
	const { answer, error, loading } = useApi<QueryData>(
		sent && JSON.stringify([asked, sent]),
		"query",
		{ query: sent ?? "", time: times.end ?? times.time },
	);
	return useMemo(() => {
		if (!sent) return null;
		const changes = new Map<string, number>();
		if (answer?.data.resultType === "vector")
			for (const { metric, value } of answer.data.result)
				changes.set(metric.function ?? "", Number(value[1]));
		const said = [...(answer?.warnings ?? []), ...(answer?.infos ?? [])];
		const notes = error ? [error.detail] : said.map((n) => n.replace(/^changed\(\): /, ""));
		return { changes, notes, loading };
	}, [sent, answer, error, loading]);
}

/** In words, below the table. */
export function SignificanceNotes({ of }: { of: Significance }) {
	const n = of.changes.size;
	const found =
		n === 0
			? "No function's share changed beyond what the spread of series and minutes explains."
			: `${n} ${n === 1 ? "function" : "functions"} changed beyond what the spread of ` +
				"series and minutes explains.";
	return (
		<div class="table-notes" role="status">
			{of.loading ? "Looking for what changed…" : found}
			{of.notes.map((note) => (
				<div key={note} class="faint">
					{note.charAt(0).toUpperCase() + note.slice(1)}
				</div>
			))}
		</div>
	);
}
