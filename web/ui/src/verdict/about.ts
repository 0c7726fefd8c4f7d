// The cost of one function on both sides of a comparison, as a rule measures it. The server is asked,
// because the graph leaves small nodes out.
import { useMemo } from "preact/hooks";
import { groupBy } from "../query/edit";
import type { MeasuredFunction } from "../query/measured";
import type { DiffQuery } from "../query/query";
import { quote } from "../query/text";
import type { ApiError, Labels, ProfileElement, QueryData } from "../shared/api";
import { sameLabels } from "../shared/api";
import { useApi } from "../shared/hooks";
import { trimMs } from "../shared/timerange";

export interface AboutAsk {
	function: MeasuredFunction;
	ask: DiffQuery;
	/** Several elements are shown as one. */
	all: boolean;
	tick: number;
}

export interface AboutCosts {
	function: MeasuredFunction;
	/** Costs, or shares 0..1; null until they are known. */
	costs: { base: number; next: number } | null;
	error: ApiError | null;
}

/** `flat_share(PROFILES, {function="main.work"})` */
export function aboutQuery(profiles: string, { name, of, share }: MeasuredFunction): string {
	return `${of}${share ? "_share" : ""}(${profiles}, {function=${quote(name)}})`;
}

/** The value of the element with these labels; a function without a cost has no value. */
export function aboutValue(data: QueryData, metric: Labels): number {
	const vector = data.resultType === "vector" ? data.result : [];
	const own = vector.find(({ metric: { function: _, ...labels } }) => sameLabels(labels, metric));
	return own ? Number(own.value[1]) : 0;
}

function useAboutSide(of: AboutAsk | null, side: "next" | "base", element: ProfileElement) {
	const profiles = of && (of.all ? groupBy(of.ask[side], "") : of.ask[side]);
	const query = of && profiles ? aboutQuery(profiles, of.function) : "";
	const time = of ? trimMs(of.ask.time) : "";
	const key = query ? JSON.stringify([query, time, of?.tick]) : null;
	const { answer, error, key: answered } = useApi<QueryData>(key, "query", { query, time });
	const known = answer !== null && answered === key;
	return { value: known ? aboutValue(answer.data, of?.all ? {} : element.metric) : null, error };
}

/** null: nothing is asked. */
export function useAbout(of: AboutAsk | null, element: ProfileElement): AboutCosts | null {
	const next = useAboutSide(of, "next", element);
	const base = useAboutSide(of, "base", element);
	const error = next.error ?? base.error;
	const named = of?.function ?? null;
	return useMemo(() => {
		if (!named) return null;
		const known = next.value !== null && base.value !== null;
		const costs = known ? { base: base.value as number, next: next.value as number } : null;
		return { function: named, costs, error };
	}, [named, next.value, base.value, error]);
}
