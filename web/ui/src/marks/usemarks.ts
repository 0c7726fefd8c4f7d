// The marks of a window and a selection, asked of the server.
import { useCallback } from "preact/hooks";
import { pickValues, selectorsOf } from "../query/labels";
import { useApi, useOwnAnswer, useUrl } from "../shared/hooks";
import { trimMs, type Window } from "../shared/timerange";
import { type TimeMark, markComparison } from "./marks";

/** What a chart needs to draw marks. */
export interface ShownMarks {
	marks: TimeMark[];
	/** Where a press on a mark leads; null for nowhere. */
	hrefOf(mark: TimeMark): string | null;
}

/** The labels whose changes are marks. */
const VERSION_LABELS = ["version", "service_version", "app_version"];

const NO_MARKS: TimeMark[] = [];
const NOT_FOUND = 404;
/** The server has no marks, so it is not asked again. */
let unknown = false;

/**
 * The marks of the series that `query` selects, of any version; "" asks nothing. Charts of one window
 * and one selection share a call of this. A failure shows no marks, and no error. Marks lead nowhere
 * where the query selects no profiles, such as the series `up`.
 */
export function useMarks(query: string, window: Window, tick: number, profiles = true): ShownMarks {
	const { store } = useUrl();
	const { start, end } = window;
	const match = selectorsOf(VERSION_LABELS.reduce((q, label) => pickValues(q, label, []), query));
	const about = JSON.stringify(match);
	const args = { start: trimMs(start), end: trimMs(end), "match[]": match };
	const key = query && !unknown && start < end ? JSON.stringify([args, tick]) : null;
	const loaded = useApi<TimeMark[]>(key, "annotations", args);
	if (loaded.error?.status === NOT_FOUND) unknown = true;
	const answer = useOwnAnswer(loaded, key, about);
	const hrefOf = useCallback(
		(mark: TimeMark) => {
			const params = profiles ? markComparison(mark, query, { start, end }) : null;
			return params && store.href("compare", new URLSearchParams(params));
		},
		[store, query, start, end, profiles],
	);
	return { marks: answer?.data ?? NO_MARKS, hrefOf };
}
