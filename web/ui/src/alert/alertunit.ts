// The unit of an alert's values: on the chart, in its limit, and in the rule's summary.
import { isRate } from "../query/query";
import { readQuery } from "../query/read";
import { type ChartUnit, chartUnit, digits } from "../shared/units";
import { PLAIN_NUMBER, type SummaryFormat } from "./rule";

export interface AlertUnit {
	chart: ChartUnit;
	format: SummaryFormat;
	/** The unit of the limit: "" for numbers, bytes, ratio. */
	limit: string;
}

/** `type` is that of the profiles, `unit` that of the answer: "" if it is a number. */
export function alertUnit(expr: string, type: string, unit: string): AlertUnit {
	const { tree } = readQuery(expr);
	const rate = type.endsWith(":delta") && isRate(expr);
	const per = rate ? "/s" : "";
	const seconds = tree?.type === "binary" && /\/\s*1e9\s*$/.test(expr);
	if (unit === "ratio")
		return { chart: chartUnit("", unit, 1), format: { function: "humanizePercentage", suffix: "" }, limit: unit };
	if (unit === "" && rate && seconds && type.split(":")[2] === "nanoseconds") {
		const { label } = chartUnit(type, "nanoseconds", 1);
		const short = label === "cores" ? "cores" : "s/s";
		const format = (v: number) => `${v === 0 ? "0" : v < 0.001 ? Number(v.toPrecision(3)) : digits(v)} ${short}`;
		return { chart: { label, factor: 1, format }, format: { function: PLAIN_NUMBER, suffix: ` ${short}` }, limit: "" };
	}
	const chart = rate ? chartUnit(type, unit, 1) : chartUnit("", unit, 1);
	if (unit === "bytes")
		return { chart, format: { function: "humanize1024", suffix: `B${per}` }, limit: unit };
	const name = unit === "nanoseconds" ? " ns" : unit && unit !== "count" ? ` ${unit}` : "";
	return { chart, format: { function: "humanize", suffix: name + per }, limit: "" };
}
