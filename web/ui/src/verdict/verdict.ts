// The answer of changed_interval() for each function, in words.
import type { VectorElement } from "../shared/api";
import { formatPoints } from "../shared/units";

export interface Change {
	verdict: string; // "changed", "rises", "falls", "not changed" or "cannot tell"
	/** Bounds of the change of the flat share, -1..1. */
	low: number;
	high: number;
	/** Changes of one series alone, by the labels that name it: `pod="api-7"`. */
	alone?: Map<string, Change>;
}

const OWN = ["function", "verdict", "bound"];

function seriesOf(metric: Record<string, string>): string {
	const labels = Object.entries(metric).filter(([k]) => !OWN.includes(k));
	return labels.map(([k, v]) => `${k}="${v}"`).join(", ");
}

export function changesOf(vector: VectorElement[]): Map<string, Change> {
	const out = new Map<string, Change>();
	for (const { metric, value } of vector) {
		const { function: name, verdict, bound } = metric;
		if (name === undefined) continue; // a remark on all functions, which is shown as a note
		const series = seriesOf(metric);
		const all = out.get(name) ?? { verdict: "cannot tell", low: -1, high: 1 };
		out.set(name, all);
		if (series) all.alone ??= new Map();
		const of = series ? (all.alone?.get(series) ?? { verdict, low: -1, high: 1 }) : all;
		if (series) all.alone?.set(series, of);
		of.verdict = verdict;
		if (bound === "low") of.low = Number(value[1]);
		else of.high = Number(value[1]);
	}
	return out;
}

export function middleOf(c: Change): number {
	return (c.low + c.high) / 2;
}

const WORDS = ["changed", "rises", "falls"];

/** Whether the server is certain that the function changed: at once, bit by bit, or in one series. */
export function isProved(c: Change | undefined): boolean {
	return c !== undefined && (WORDS.includes(c.verdict) || c.alone !== undefined);
}

/** Two digits, rounded up: a bound has to hold. 1.38 is "1.4". */
function pointsAbove(points: number): string {
	const unit = 10 ** Math.max(-2, Math.floor(Math.log10(points)) - 1);
	const above = Math.ceil(points / unit - 1e-9) * unit;
	return String(Number(Math.max(0.01, above).toPrecision(6)));
}

/** "+22.10 pp", "+6.40 pp, rising", "< 1.2 pp", "not enough data yet". */
export function wordsOf(c: Change): string {
	if (c.alone && !WORDS.includes(c.verdict)) {
		const [[series, of]] = c.alone;
		const more = c.alone.size > 1 ? ` and ${c.alone.size - 1} more` : "";
		return `${wordsOf(of)} in ${series}${more}`;
	}
	if (isProved(c)) {
		const drift = { rises: ", rising", falls: ", falling" }[c.verdict] ?? "";
		return formatPoints(100 * middleOf(c)) + drift;
	}
	if (c.verdict !== "not changed") return "not enough data yet";
	return `< ${pointsAbove(100 * Math.max(-c.low, c.high))} pp`;
}

/** The interval. */
export function boundsOf(c: Change): string {
	return `${formatPoints(100 * c.low)} and ${formatPoints(100 * c.high)}`;
}

/** Sorts changed functions first, then those that cannot be told; by how far they may have moved. */
export function rankOf(c: Change | undefined): number {
	if (!c) return 0;
	const reach = Math.max(-c.low, c.high);
	if (WORDS.includes(c.verdict)) return 4 + Math.abs(middleOf(c));
	if (c.alone) return 4;
	return c.verdict === "cannot tell" ? 2 + reach : reach;
}
