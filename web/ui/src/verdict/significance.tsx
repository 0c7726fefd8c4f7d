// Which functions of a difference really changed: the server's changed_interval() of both sides, and
// its reasons where it cannot tell.
import { useMemo } from "preact/hooks";
import { changedQuery } from "../query/edit";
import type { Times } from "../query/questions";
import type { ProfileElement, QueryData, VectorElement } from "../shared/api";
import { useApi } from "../shared/hooks";
import { type Change, changesOf } from "./verdict";

export interface Significance {
	changes: Map<string, Change>;
	notes: string[];
	loading: boolean;
}

function windowOf(times: Times): number {
	return times.start && times.end ? Math.round(Number(times.end) - Number(times.start)) : 0;
}

function vectorOf(data: QueryData | undefined): VectorElement[] {
	return data?.resultType === "vector" ? data.result : [];
}

/** null if the question cannot be asked: for levels, filtered or grouped profiles. */
export function useSignificance(
	props: { query: string; times: Times; asked: string },
	element: ProfileElement | undefined,
	wanted: boolean,
): Significance | null {
	const { query, times, asked } = props;
	const diff = element?.flamebearer.format === "double";
	const sent =
		wanted && diff && element?.type?.endsWith(":delta")
			? changedQuery(query, windowOf(times))
			: null;
	const { answer, error, loading } = useApi<QueryData>(
		sent && JSON.stringify([asked, sent]),
		"query",
		{ query: sent ?? "", time: times.end ?? times.time },
	);
	return useMemo(() => {
		if (!sent) return null;
		const said = [...(answer?.warnings ?? []), ...(answer?.infos ?? [])];
		const notes = error
			? [error.detail]
			: said.map((n) => n.replace(/^changed_interval\(\): /, ""));
		return { changes: changesOf(vectorOf(answer?.data)), notes, loading };
	}, [sent, answer, error, loading]);
}

/** The server's remarks on all functions, below the table. */
export function SignificanceNotes({ of }: { of: Significance }) {
	return (
		<div class="table-notes" role="status">
			{of.loading && "Testing which functions changed…"}
			{of.notes.map((note, i) => (
				<div key={note} class={i > 0 ? "faint" : undefined}>
					{note.charAt(0).toUpperCase() + note.slice(1)}.
				</div>
			))}
		</div>
	);
}
