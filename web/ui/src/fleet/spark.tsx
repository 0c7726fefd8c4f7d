// A sparkline: a service's cost over the window, small enough for a cell of a table.
import type { ChartColumn } from "../chart/series";
import { SPARK_PAD as PAD, sparkPath } from "./fleet";
import "./spark.css";

const W = 64;
const H = 20;

interface SparkProps {
	/** Evenly spaced: a number, null for a gap, undefined where the line is drawn across. */
	values: ChartColumn;
	/** The label for screen readers. */
	label: string;
}

export function Spark({ values, label }: SparkProps) {
	return (
		<svg class="spark" viewBox={`0 0 ${W} ${H}`} width={W} height={H} role="img">
			<title>{label}</title>
			<path class="spark-base" d={`M${PAD} ${H - PAD}H${W - PAD}`} />
			<path class="spark-line" d={sparkPath(values, W - 2 * PAD, H - 2 * PAD)} />
		</svg>
	);
}
