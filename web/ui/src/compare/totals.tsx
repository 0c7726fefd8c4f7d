// The costs of both sides, their change, and the effect of normalizing.
import { useEffect } from "preact/hooks";
import type { DiffQuery } from "../query/query";
import type { QueryData } from "../shared/api";
import { publish } from "../shared/debug";
import { useApi } from "../shared/hooks";
import { trimMs, type Window } from "../shared/timerange";
import { chartUnit, formatPercent, formatSigned, formatValue, share, trend } from "../shared/units";
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

/** A sum over a window, and its rate if it has one. */
function Cost(props: { total: number; type: string; unit: string; win: Window; file: boolean }) {
	const { total, type, unit, win, file } = props;
	const rate = chartUnit(type, unit, file ? 0 : win.end - win.start);
	return (
		<>
			<b>{formatValue(total, unit)}</b>
			{!file && rate.factor !== 1 && (
				<span class="faint">
					{" "}
					{rate.format(total * rate.factor)} {rate.label === "cores" && "cores"}
				</span>
			)}
		</>
	);
}

export function SideTotals(props: TotalsProps) {
	const { data, sides, normalized, files } = props;
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
				Base <Cost total={base} type={type} unit={unit} win={sides.base} file={files.base} />
			</span>
			<span class="new">
				New <Cost total={next} type={type} unit={unit} win={sides.next} file={files.next} />
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
