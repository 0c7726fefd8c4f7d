// Mean cost per second of a window: what the page calls cores. All views ask for it here, so that the
// same selection and window have the same number everywhere.
import { useMemo } from "preact/hooks";
import { type Labels, metricKey, type VectorElement } from "../shared/api";
import { useApi } from "../shared/hooks";
import { trimMs, type Window } from "../shared/timerange";
import { type ChartUnit, chartUnit, formatRate } from "../shared/units";
import { regrouped } from "./edit";
import { meanRateQuery } from "./query";
import { callArgument } from "./read";

interface RateVector {
	resultType: string;
	unit?: string;
	result: VectorElement[];
}

export interface MeanRates {
	unit: ChartUnit;
	/** In the unit, by the labels of the elements; null if there is no such element. */
	of(metric: Labels): number | null;
	/** With its unit; "" if there is no such element. */
	words(metric: Labels): string;
}

/** The answer to a mean rate of profiles of `type`, an amount; any of its units will do. */
export function meanRates(type: string, data: RateVector): MeanRates {
	const unit = chartUnit(type, data.unit ?? type.split(":")[2] ?? "", 1);
	const values = new Map(data.result.map((e) => [metricKey(e.metric), Number(e.value[1]) * unit.factor]));
	const of = (metric: Labels) => values.get(metricKey(metric)) ?? null;
	const words = (metric: Labels) => {
		const v = of(metric);
		return v === null ? "" : formatRate(v, unit);
	};
	return { unit, of, words };
}

/**
 * The mean rates of costs such as `total(merge by (version) (cpu))` over a window. Asks nothing for
 * "", for levels, and for queries that have no mean rate; then it is null, as while there is no answer.
 */
export function useMeanRates(costs: string, window: Window, type: string, tick: number): MeanRates | null {
	const query = costs && type.endsWith(":delta") ? meanRateQuery(costs, window.end - window.start) : null;
	const args = { query: query ?? "", time: trimMs(window.end) };
	const { answer } = useApi<RateVector>(query ? JSON.stringify([args, tick]) : null, "query", args);
	return useMemo(
		() => (query && answer?.data.resultType === "vector" ? meanRates(type, answer.data) : null),
		[query, answer, type],
	);
}

/** The costs of all groups of profiles together. */
export function ofAll(profiles: string): string {
	const q = regrouped(profiles, "");
	return `total(merge(${callArgument(q, "merge") ?? q}))`;
}
