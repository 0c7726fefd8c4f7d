// The question of the chart of Explore: one line, one per value of a label, or one per function, for
// the functions that cost most in the whole window.
import { useMemo } from "preact/hooks";
import { regrouped } from "../query/edit";
import { type MeanRates, ofAll, useMeanRates } from "../query/meanrate";
import { chartQuery, clean, flameQuery, profilesOf, withRate } from "../query/query";
import { callArgument } from "../query/read";
import { escapeRegexp, quote } from "../query/text";
import type { QueryKind } from "../query/types";
import type { QueryData } from "../shared/api";
import { useApi, useOwnAnswer } from "../shared/hooks";
import { alignWindow, chooseStep, trimMs, type Window } from "../shared/timerange";
import { type CostSeries, withRest } from "./series";
import { type ChartData, useChart } from "./usechart";

const FUNCTIONS = 8;

export interface CostChart extends ChartData {
	matrix: CostSeries[];
	/** Mean rates over the window of the question: of the lines, and of all together. */
	rates: MeanRates | null;
	mean: MeanRates | null;
}

const EMPTY: never[] = [];

const merged = (profiles: string) => `merge(${callArgument(profiles, "merge") ?? profiles})`;

/** The flat cost of these functions, and the total as a line without labels. */
export function functionsQuery(profiles: string, names: string[]): string {
	const total = `total(${merged(profiles)})`;
	if (names.length === 0) return total;
	const re = names.map(escapeRegexp).join("|");
	return `flat by (function) (${profiles}, {function=~${quote(re)}}) or ${total}`;
}

/** The functions with the greatest flat cost in the whole window; null until known. */
function useTopFunctions(profiles: string, window: Window, tick: number) {
	const args = {
		query: `top(${FUNCTIONS}, ${merged(profiles)})`,
		start: trimMs(window.start),
		end: trimMs(window.end),
	};
	const key = profiles ? JSON.stringify([args, tick]) : null;
	const loaded = useApi<QueryData>(key, "query", args);
	// A refresh keeps its lines until the next names arrive; another query does not.
	const data = useOwnAnswer(loaded, key, profiles)?.data;
	const names = useMemo(() => {
		if (data?.resultType !== "top") return null;
		// Sorted by name, so that the same functions give the same question.
		const all = data.result.flatMap((e) => e.rows.map((r) => r.function));
		return [...new Set(all)].filter(Boolean).sort();
	}, [data]);
	return { loaded, names };
}

export interface CostQuestion {
	/** "" asks nothing. Its groups are the lines. */
	query: string;
	/** Whether the lines are functions. */
	functions: boolean;
	kind: QueryKind;
	window: Window;
	/** The scrape interval; null: not known yet, ask nothing. */
	interval: number | null;
	/** The selected profile type, "" if unknown. */
	type: string;
	tick: number;
}

export function useCostChart(q: CostQuestion): CostChart {
	const { query, kind, interval, tick } = q;
	const byFunction = q.functions && kind !== "costs" && query !== "";
	const step = chooseStep(q.window, interval ?? 15);
	const aligned = alignWindow(q.window, step);
	const profiles = byFunction ? regrouped(profilesOf(query, kind), "") : "";
	// The first point is the cost of the step before it.
	const whole = { start: aligned.start - step, end: aligned.end };
	const top = useTopFunctions(interval === null ? "" : profiles, whole, tick);
	const asked = !query
		? ""
		: !byFunction
			? chartQuery(query, "", kind)
			: top.names
				? functionsQuery(profiles, top.names)
				: "";
	// Queries for costs are drawn as they are.
	const adds = kind !== "costs" && q.type.endsWith(":delta");
	const sent = adds ? withRate(asked, step) : asked;
	const chart = useChart(sent, q.window, interval, q.type, tick);
	const all = adds && asked ? ofAll(flameQuery(clean(profilesOf(query, kind)))) : "";
	const mean = useMeanRates(all, q.window, q.type, tick);
	const lines = useMeanRates(adds && asked !== all ? asked : "", q.window, q.type, tick);
	const rates = asked === all ? mean : lines;
	const result = chart.loaded.answer?.data.result ?? EMPTY;
	const matrix = useMemo(() => (byFunction ? withRest(result) : result), [result, byFunction]);
	if (!byFunction || sent) return { ...chart, matrix, rates, mean };
	return { ...chart, matrix, rates, mean, sent: profiles, loaded: { ...chart.loaded, ...pending(top.loaded) } };
}

/** While the functions are loaded, progress and errors are those of that question. */
function pending(top: ReturnType<typeof useTopFunctions>["loaded"]) {
	const { loading, error, since, cancelled, cancel, again } = top;
	return { loading, error, since, cancelled, cancel, again };
}
