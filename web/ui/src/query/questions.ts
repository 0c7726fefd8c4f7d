// Questions to the server that several pages ask.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { ProfileType, QueryData, Target, Targets } from "../shared/api";
import { type Loaded, useApi } from "../shared/hooks";
import { commonInterval, parseDuration, trimMs, type Window } from "../shared/timerange";
import { installLanguage, type Language } from "./language";

export type Times = { time?: string; start?: string; end?: string };

export function windowTimes(w: Window): Times {
	return { start: trimMs(w.start), end: trimMs(w.end) };
}

/** The answer to a query, and `asked`, which identifies the question. */
export function useQuestion(
	query: string,
	times: Times,
	nodes: string,
	tick: number,
): {
	loaded: Loaded<QueryData>;
	asked: string;
} {
	const asked = query ? JSON.stringify([query, times, nodes, tick]) : "";
	const loaded = useApi<QueryData>(query ? asked : null, "query", {
		query,
		...times,
		max_nodes: nodes,
		files: "true",
	});
	return { loaded, asked };
}

const LANGUAGE_AGAIN_MS = 5000;

/**
 * Loads the query language. True when the pages can be shown: it is loaded, or loading failed. Then
 * it is retried, and until it succeeds edits of queries may not work.
 */
export function useLanguage(): boolean {
	const { answer, error, again } = useApi<Language>("language", "language");
	const installed = useRef(answer);
	if (answer && installed.current !== answer) installLanguage(answer.data);
	installed.current = answer;
	useEffect(() => {
		if (!error) return;
		const timer = setTimeout(again, LANGUAGE_AGAIN_MS);
		return () => clearTimeout(timer);
	}, [error, again]);
	return answer !== null || error !== null;
}

/** Names of labels of series and samples. */
export function useLabelNames(): Loaded<string[]> {
	return useApi<string[]>("labels", "labels");
}

export function useProfileTypes(): Loaded<ProfileType[]> {
	return useApi<ProfileType[]>("types", "profile_types");
}

export function useActiveTargets(on = true): Loaded<Targets> {
	return useApi<Targets>(on ? "targets" : null, "targets", { state: "active" });
}

/** The scrape interval; steps of charts are multiples of it. */
export function useScrapeInterval(): number | null {
	const { answer, error } = useActiveTargets();
	return useMemo(() => {
		if (error) return 15;
		if (!answer) return null;
		return commonInterval(
			(answer.data.activeTargets ?? []).map(
				(t: Target) => parseDuration(t.scrapeInterval ?? "") ?? 0,
			),
		);
	}, [answer, error]);
}
