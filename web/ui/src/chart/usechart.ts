// Cost over time, asked of the server in steps.
import { useMemo } from "preact/hooks";
import { chartWindow } from "../query/query";
import type { MatrixElement } from "../shared/api";
import { type Loaded, useApi } from "../shared/hooks";
import { alignWindow, chooseStep, trimMs, type Window } from "../shared/timerange";
import { chartUnit, type ChartUnit } from "../shared/units";

interface ChartAnswer {
	resultType: string;
	unit?: string;
	result: MatrixElement[];
}

export interface ChartData {
	loaded: Loaded<ChartAnswer>;
	window: Window;
	step: number;
	unit: ChartUnit;
	sent: string;
}

/**
 * Cost over time of `query`. `type` is the selected profile type, "" if unknown; it is used if the
 * answer has its unit.
 */
export function useChart(
	query: string,
	window: Window,
	interval: number | null,
	type: string,
	tick: number,
): ChartData {
	const step = chooseStep(window, interval ?? 15);
	const aligned = alignWindow(window, step);
	const sent = query && interval !== null ? query : "";
	const args = {
		query: sent,
		start: trimMs(aligned.start),
		end: trimMs(aligned.end),
		step: String(step),
	};
	const loaded = useApi<ChartAnswer>(
		sent ? JSON.stringify([args, tick]) : null,
		"query_range",
		args,
	);
	const seconds = chartWindow(query, step);
	const data = loaded.answer?.data;
	// An answer without points has no unit; take that of the type.
	const unit = data?.unit ?? (data?.result.length ? "" : (type.split(":")[2] ?? ""));
	const of = type.split(":")[2] === unit ? type : "";
	const u = useMemo(() => chartUnit(of, unit, seconds), [of, unit, seconds]);
	return { loaded, window: aligned, step, unit: u, sent };
}
