// What a page shows when nobody chose a range: the last hour, or less where less is stored.
import { useMemo } from "preact/hooks";
import { useApi } from "./hooks";
import {
	DEFAULT_RANGE,
	durationSeconds,
	RANGE_PRESETS,
	rangeFromParams,
	type TimeRange,
} from "./timerange";

export interface Runtime {
	serverTime: string;
	/** Missing while nothing is stored. */
	oldestProfile?: string;
}

export const seconds = (time: string): number => Date.parse(time) / 1000;

/** How long ago the oldest profile was stored, by the server's clock; null if there is none. */
export function storedFor(runtime: Runtime): number | null {
	if (!runtime.oldestProfile) return null;
	return Math.max(0, seconds(runtime.serverTime) - seconds(runtime.oldestProfile));
}

/** The shortest preset with all that is stored, at most the default range. */
export function fittingRange(age: number): TimeRange {
	const longest = DEFAULT_RANGE.kind === "relative" ? DEFAULT_RANGE.seconds : Infinity;
	const fits = RANGE_PRESETS.map((p) => durationSeconds(p)).find((s) => s >= age) ?? longest;
	return { kind: "relative", seconds: Math.min(fits, longest) };
}

export interface FirstView {
	range: TimeRange;
	/** False until the range is known. */
	known: boolean;
}

const CHOICES = ["range", "from", "to", "at"];

/** The range in the address, else one that fits what is stored. `stored`: whether anything is. */
export function useFirstView(params: URLSearchParams, stored: boolean): FirstView {
	const chosen = CHOICES.some((k) => params.has(k));
	const { answer, error } = useApi<Runtime>(
		chosen ? null : `runtime ${stored}`,
		"status/runtimeinfo",
	);
	const age = useMemo(() => answer && storedFor(answer.data), [answer]);
	if (chosen || error || age === null)
		return {
			range: rangeFromParams((k) => params.get(k)),
			known: chosen || error !== null || answer !== null,
		};
	return { range: fittingRange(age), known: true };
}
