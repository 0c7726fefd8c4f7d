// The colours of a chart's lines by their labels, for those who name the same groups beside it.
import { metricKey } from "../shared/api";
import type { Theme } from "../shared/theme";
import type { Window } from "../shared/timerange";
import { LINES_MAX, lineColor } from "./plot";
import { alignSeries, type CostSeries } from "./series";

export function lineColors(
	matrix: CostSeries[],
	window: Window,
	step: number,
	theme: Theme,
): Map<string, string> {
	const data = alignSeries(matrix, window, step, 1, LINES_MAX);
	return new Map(
		data.metrics.flatMap((m, i): [string, string][] =>
			i === data.rest ? [] : [[metricKey(m), lineColor(data, i, theme)]],
		),
	);
}
