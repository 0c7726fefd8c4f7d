// The costs of both sides, their change, and the effect of normalizing.
import { useEffect } from "preact/hooks";
import { ofAll, useMeanRates } from "../query/meanrate";
import type { DiffQuery } from "../query/query";
import type { QueryData } from "../shared/api";
import { publish } from "../shared/debug";
import { useApi } from "../shared/hooks";
import { trimMs, type Window } from "../shared/timerange";
import { formatPercent, formatSigned, formatValue, share, trend } from "../shared/units";
import { scale, type Sides, unequalLengths } from "./sides";

export interface TotalsProps {
	data: QueryData;
	ask: DiffQuery;
	sides: Sides;
	normalized: boolean;
	tick: number;
	/** Which sides are files, whose time is not that of the window. */
	files: { base: boolean; next: boolean };
}

const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);

/** The unscaled total of the new side, which a normalized difference does not have. */
function useNewTotal({ data, ask, normalized, tick }: TotalsProps): number | null {
	const time = trimMs(ask.time);
	const query = `total(${ask.next})`;
	const key = normalized ? JSON.stringify([query, time, tick]) : null;
	const { answer } = useApi<QueryData>(key, "query", { query, time });
	if (data.resultType !== "profiles") return null;
	if (!normalized) return sum(data.result.map((e) => e.right_total ?? 0));
	if (answer?.data.resultType !== "vector") return null;
	return sum(answer.data.result.map((e) => Number(e.value[1])));
}

interface CostProps {
	/** The profiles of the side, with their windows, to be asked at `time`. */
	profiles: string;
	time: number;
	total: number;
	type: string;
	unit: string;
	win: Window;
	file: boolean;
	tick: number;
}

/** A sum over a window, and its mean rate if it has one. */
function Cost({ profiles, time, total, type, unit, win, file, tick }: CostProps) {
	const seconds = win.end - win.start;
	const rates = useMeanRates(file ? "" : ofAll(profiles), { start: time - seconds, end: time }, type, tick);
	const mean = rates?.words({});
	return (
		<>
			<b>{formatValue(total, unit)}</b>
			{mean && <span class="faint mean"> {mean}</span>}
		</>
	);
}

export function SideTotals(props: TotalsProps) {
	const { data, ask, sides, normalized, files, tick } = props;
	const { time } = ask;
	const elements = data.resultType === "profiles" ? data.result : [];
	const element = elements[0];
	const base = sum(elements.map((e) => e.left_total ?? 0));
	const next = useNewTotal(props);
	const factor = normalized && next !== null ? scale(next, base) : 1;
	useEffect(() => {
		if (next === null) return;
		publish("totals", () => ({ base, new: next, change: next - base, factor }));
		return () => publish("totals", null);
	}, [base, next, factor]);
	if (!element || next === null) return null;
	const { unit, type = "" } = element;
	const change = next - base;
	const unequal = normalized || files.base || files.next ? "" : unequalLengths(sides);
	return (
		<section class="panel totals" aria-label="Totals">
			<span class="base">
				Base <Cost profiles={ask.base} total={base} win={sides.base} file={files.base} {...{ type, unit, time, tick }} />
			</span>
			<span class="new">
				New <Cost profiles={ask.next} total={next} win={sides.next} file={files.next} {...{ type, unit, time, tick }} />
			</span>
			{base > 0 && next > 0 && (
				<span class={change ? trend(change) : ""}>
					{formatSigned(change, unit)}
					{` (${change > 0 ? "+" : ""}${formatPercent(share(change, base))})`}
				</span>
			)}
			{normalized && base > 0 && next > 0 && (
				<span class="faint scaled">
					{elements.length > 1
						? "Normalized: in each group, new is scaled to the total of base."
						: `Normalized: new × ${Number(factor.toPrecision(3))}, ` +
							"scaled to the total of base."}
				</span>
			)}
			{unequal && <span class="faint">{unequal}</span>}
		</section>
	);
}
