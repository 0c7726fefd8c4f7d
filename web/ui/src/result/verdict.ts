// The answer of changed_interval() for each function, in words.
import type { VectorElement } from "../shared/api";
import { formatPoints } from "../shared/units";

export interface Change {
	verdict: string; // "changed", "rises", "falls", "not changed" or "cannot tell"
	/** Bounds of the change of the flat share, -1..1. */
	low: number;
	high: number;
}

export function changesOf(vector: VectorElement[]): Map<string, Change> {
	const out = new Map<string, Change>();
	for (const { metric, value } of vector) {
		const { function: name, verdict, bound } = metric;
		if (name === undefined) continue; // a remark on all functions, which is shown as a note
		const of = out.get(name) ?? { verdict, low: -1, high: 1 };
		if (bound === "low") of.low = Number(value[1]);
		else of.high = Number(value[1]);
		out.set(name, of);
	}
	return out;
}

export function middleOf(c: Change): number {
	return (c.low + c.high) / 2;
}

/** Whether the server is certain that the function changed: at once, or bit by bit. */
export function isProved(c: Change | undefined): boolean {
	return c !== undefined && ["changed", "rises", "falls"].includes(c.verdict);
}

/** "+22.10 pp", "+6.40 pp, rising", "not by more than 1.20 pp", "cannot tell yet". */
export function wordsOf(c: Change): string {
	if (isProved(c)) {
		const drift = { rises: ", rising", falls: ", falling" }[c.verdict] ?? "";
		return formatPoints(100 * middleOf(c)) + drift;
	}
	if (c.verdict !== "not changed") return "cannot tell yet";
	const most = formatPoints(100 * Math.max(-c.low, c.high)).replace(/^\+/, "");
	return `not by more than ${most}`;
}

/** The interval. */
export function boundsOf(c: Change): string {
	return `${formatPoints(100 * c.low)} and ${formatPoints(100 * c.high)}`;
}

/** Sorts changed functions first, then those that cannot be told; by how far they may have moved. */
export function rankOf(c: Change | undefined): number {
	if (!c) return 0;
	const reach = Math.max(-c.low, c.high);
	if (isProved(c)) return 4 + Math.abs(middleOf(c));
	return c.verdict === "cannot tell" ? 2 + reach : reach;
}
