// How the values of an alert's expression are told: on the chart, and in the rule's summary.
import { read } from "../query/read";
import { type ChartUnit, chartUnit, digits } from "../shared/units";
import type { Told } from "./rule";

export interface UnitOf {
	chart: ChartUnit;
	told: Told;
	/** The unit of the limit: "" for numbers, bytes, ratio. */
	limit: string;
}

/** `type` is that of the profiles, `unit` that of the answer: "" if it is a number. */
export function unitOf(expr: string, type: string, unit: string): UnitOf {
	const { tree, calls } = read(expr);
	const rate = type.endsWith(":delta") && calls.some((c) => c.name === "rate");
	const per = rate ? "/s" : "";
	const seconds = tree?.type === "binary" && /\/\s*1e9\s*$/.test(expr);
	if (unit === "ratio")
		return { chart: chartUnit("", unit, 1), told: { function: "humanizePercentage", suffix: "" }, limit: unit };
	if (unit === "" && rate && seconds && type.split(":")[2] === "nanoseconds") {
		const { label } = chartUnit(type, "nanoseconds", 1);
		const short = label === "cores" ? "cores" : "s/s";
		const format = (v: number) => `${v === 0 ? "0" : v < 0.001 ? Number(v.toPrecision(3)) : digits(v)} ${short}`;
		return { chart: { label, factor: 1, format }, told: { function: "humanize", suffix: ` ${short}` }, limit: "" };
	}
	const chart = rate ? chartUnit(type, unit, 1) : chartUnit("", unit, 1);
	if (unit === "bytes")
		return { chart, told: { function: "humanize1024", suffix: `B${per}` }, limit: unit };
	const name = unit === "nanoseconds" ? " ns" : unit && unit !== "count" ? ` ${unit}` : "";
	return { chart, told: { function: "humanize", suffix: name + per }, limit: "" };
}
