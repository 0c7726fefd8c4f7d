// What changed over all services: which hours are compared, and the functions that gained most.
import { formatSelector } from "../query/text";
import type { Labels, VectorElement } from "../shared/api";
import { formatDuration, trimMs, type Window } from "../shared/timerange";
import { formatParams } from "../shared/urlstate";

const HOUR = 3600;
const DAY_H = 24;

/** Two windows of whole hours, which the server answers from its hourly sums. */
export interface Compared {
	hours: number;
	/** How many hours before the new window the base is. */
	back: number;
	next: Window;
	base: Window;
}

/** Nothing can be compared before `at`. */
export interface Later {
	at: number;
}

/**
 * The longest windows that the profiles since `oldest` allow: a day against the day before, else the
 * same hours of yesterday, else the older half against the newer one.
 */
export function comparedHours(now: number, oldest: number): Compared | Later {
	const first = Math.ceil(oldest / HOUR);
	const end = Math.floor(now / HOUR);
	const stored = end - first;
	if (stored < 2) return { at: (first + 2) * HOUR };
	const hours = stored > DAY_H ? Math.min(DAY_H, stored - DAY_H) : Math.floor(stored / 2);
	const back = stored > DAY_H ? DAY_H : hours;
	const window = (h: number) => ({ start: (h - hours) * HOUR, end: h * HOUR });
	return { hours, back, next: window(end), base: window(end - back) };
}

export const CHANGES_MAX = 10;
/** Smaller gains, in cores, are no news. */
const LEAST_CORES = 0.001;

/** One question over whole hours; its answer has a few rows, however many services there are. */
export function changesQuestion(by: string, type: string, c: Compared) {
	const cores = (back: number) =>
		`merge by (${by}) (mean_rate(${type}[${c.hours}h]${back ? ` offset ${back}h` : ""}))`;
	const diff = `diff(${cores(0)}, ${cores(c.back)})`;
	return {
		query: `topk(${CHANGES_MAX}, flat by (${by}, function) (${diff}))`,
		time: trimMs(c.next.end),
	};
}

export interface ChangeRow {
	service: string;
	function: string;
	gained: number;
}

/** `factor`: from the unit of the answer to cores. */
export function changeRows(by: string, vector: VectorElement[], factor: number): ChangeRow[] {
	const row = (m: Labels, v: string): ChangeRow => ({
		service: m[by] ?? "",
		function: m.function ?? "",
		gained: Number(v) * factor,
	});
	return vector
		.map((e) => row(e.metric, e.value[1]))
		.filter((r) => r.gained >= LEAST_CORES)
		.sort((a, b) => b.gained - a.gained);
}

const hoursText = (n: number) => (n === 1 ? "hour" : `${n} hours`);

export function comparedText(c: Compared): string {
	const last = `the last ${c.hours === 1 ? "whole hour" : `${c.hours} whole hours`}`;
	if (c.back === DAY_H && c.hours < DAY_H)
		return `${last} against the same ${hoursText(c.hours)} of yesterday`;
	return `${last} against the ${hoursText(c.hours)} before`;
}

/** The two windows of one service in Compare, with the function highlighted. */
export function changeLink(by: string, type: string, c: Compared, r: ChangeRow): string {
	const query = formatSelector({
		name: type,
		matchers: [{ label: by, op: "=", value: r.service }],
	});
	const args = {
		new: query,
		base: query,
		from: trimMs(c.next.start),
		to: trimMs(c.next.end),
		shift: formatDuration(c.back * HOUR),
		pick: r.function,
	};
	return "compare" + formatParams(new URLSearchParams(args));
}
