// A sparkline: a service's cost over the window, small enough for a cell of a table.
import "./spark.css";

const W = 120;
const H = 20;
const PAD = 2;

export interface SparkProps {
	/** Evenly spaced: a number, null for a gap, undefined for a hole that is drawn over. */
	values: (number | null | undefined)[];
	/** What it shows, in words. */
	label: string;
}

/** The line as an SVG path, from zero to the largest value; a lone point is a dash. */
export function sparkPath(values: SparkProps["values"], width: number, height: number): string {
	const top = values.reduce<number>((m, v) => Math.max(m, v ?? 0), 0) || 1;
	const dx = values.length > 1 ? width / (values.length - 1) : 0;
	const place = (i: number, v: number) =>
		`${(PAD + i * dx).toFixed(1)} ${(PAD + height * (1 - v / top)).toFixed(1)}`;
	let path = "";
	let pen = false;
	values.forEach((v, i) => {
		if (v === undefined) return;
		if (v === null) {
			pen = false;
			return;
		}
		const alone = !pen && typeof (values[i + 1] ?? values[i + 2]) !== "number";
		path += `${pen ? "L" : "M"}${place(i, v)}${alone ? "h1.5" : ""}`;
		pen = true;
	});
	return path;
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
