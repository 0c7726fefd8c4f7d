// Levels (memory in use, goroutines): how they grow, when they reach a limit, and what goroutines wait
// for. Numbers and words; levelpanel.tsx shows them.
import { ancestry, type Flame, FOLDED, nameOf } from "../flame/layout";
import { isOwn, ownCosts } from "../flame/owncode";
import { dayOf, formatMinute, type Window } from "../shared/timerange";
import { formatNanoseconds, formatValue } from "../shared/units";

/* ---- growth ---- */

export type Point = [t: number, v: number];

export interface Growth {
	/** Per second; 0 if there is no trend. */
	slope: number;
	/** The trend's value at the last point. */
	last: number;
	end: number;
	/** Where the trend begins: later than the first point if the level fell, as at a restart. */
	since: number;
	fell: boolean;
	points: number;
}

const POINTS_MIN = 6;
/** Pairs of points are compared, so there may not be too many. */
const POINTS_MAX = 200;
/** So many standard deviations of the test for a trend. */
const TREND_Z = 3;
/** A change of less than this part over the whole window is none. */
const CHANGE_MIN = 0.02;
const AROUND = 3;

const median = (all: number[]): number => {
	const v = all.slice().sort((a, b) => a - b);
	const mid = v.length >> 1;
	return v.length % 2 ? v[mid] : (v[mid - 1] + v[mid]) / 2;
};

/** The first point after the last fall to less than half that lasts. */
function afterFall(points: Point[]): number {
	for (let i = points.length - AROUND; i >= AROUND; i--) {
		const before = median(points.slice(i - AROUND, i).map((p) => p[1]));
		const behind = median(points.slice(i, i + AROUND).map((p) => p[1]));
		if (points[i][1] < points[i - 1][1] / 2 && behind < before / 2) return i;
	}
	return 0;
}

const thinned = (points: Point[]): Point[] => {
	const every = Math.ceil(points.length / POINTS_MAX);
	return points.filter((_, i) => (points.length - 1 - i) % every === 0);
};

/**
 * The median of the slopes between all pairs of points (Theil and Sen), which single peaks do not
 * move, if Kendall's test says that there is a trend at all. Null for too few points.
 */
export function growth(all: Point[]): Growth | null {
	const cut = afterFall(all);
	const points = thinned(all.slice(cut));
	const n = points.length;
	if (n < POINTS_MIN) return null;
	const slopes: number[] = [];
	let s = 0;
	for (let i = 0; i < n; i++)
		for (let k = i + 1; k < n; k++) {
			const dv = points[k][1] - points[i][1];
			slopes.push(dv / (points[k][0] - points[i][0]));
			s += Math.sign(dv);
		}
	const z = s / Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
	const slope = median(slopes);
	const middle = median(points.map((p) => p[1]));
	const [since] = points[0];
	const [end] = points[n - 1];
	const offset = median(points.map(([t, v]) => v - slope * (t - end)));
	const real = Math.abs(z) >= TREND_Z && Math.abs(slope * (end - since)) >= CHANGE_MIN * middle;
	return {
		slope: real ? slope : 0,
		last: real ? offset : middle,
		end,
		since,
		fell: cut > 0,
		points: n,
	};
}

/**
 * The part of a window in which the level grew to what it is: from its first point on, or from where
 * it fell. A point is of the `step` seconds before it.
 */
export function grownIn(win: Window, points: Point[] | null, g: Growth | null, step: number): Window {
	const since = g?.since ?? points?.[0]?.[0];
	return since === undefined ? win : { start: Math.max(win.start, since - step), end: win.end };
}

const HOUR_S = 3600;
const YEAR_S = 365 * 86400;

export function growthWords(g: Growth | null, unit: string): string {
	if (!g) return "Not enough data for a trend.";
	const since = g.fell ? ` since the drop at ${formatMinute(g.since)}` : "";
	if (g.slope === 0) return `Steady${since || " in this window"}.`;
	const rate = `${formatValue(Math.abs(g.slope * HOUR_S), unit)}/h${since}`;
	const grows = g.slope > 0;
	const seconds = g.last / Math.abs(g.slope) / (grows ? 1 : 2);
	const then = seconds > 0 && seconds < YEAR_S && `: ${grows ? "doubles" : "halves"} in ${formatNanoseconds(seconds * 1e9)}`;
	return `${grows ? "Growing" : "Falling"} ${rate}${then || ""}.`;
}

/* ---- the limit ---- */

const FACTORS: Record<string, number> = {
	"": 1,
	k: 1e3,
	m: 1e6,
	g: 1e9,
	t: 1e12,
	ki: 2 ** 10,
	mi: 2 ** 20,
	gi: 2 ** 30,
	ti: 2 ** 40,
};

/** `512MiB`, `2G`, `10k`, `1,000` as a number; null if it is none. */
export function parseAmount(text: string): number | null {
	const m = /^([\d,]*\.?\d+)\s*([kmgt]i?)?b?$/i.exec(text.trim());
	const factor = m && FACTORS[(m[2] ?? "").toLowerCase()];
	const n = m && factor ? Number(m[1].replace(/,/g, "")) * factor : NaN;
	return n > 0 ? n : null;
}

/** When a level reaches a limit at its pace. */
export function limitWords(g: Growth | null, limit: number, unit: string): string {
	const of = formatValue(limit, unit);
	if (!g) return "";
	if (g.last >= limit) return `Already above ${of}.`;
	if (g.slope <= 0) return `Does not reach ${of} at this rate.`;
	const seconds = (limit - g.last) / g.slope;
	if (seconds > YEAR_S) return `Reaches ${of} in more than a year.`;
	return (
		`Reaches ${of} in ${formatNanoseconds(seconds * 1e9)}, ` +
		`at ${dayOf(g.end + seconds)} ${formatMinute(g.end + seconds)}.`
	);
}

/* ---- which value of the window ---- */

export type LevelOf = "mean" | "end" | "max";

export const LEVELS: [LevelOf, string, string][] = [
	["mean", "Mean", "The mean of the window, weighted by time"],
	["end", "End", "The last profile of each series in the window"],
	["max", "Maximum", "The profile of each series with the largest total in the window"],
];

/* ---- who holds it ---- */

export interface Holder {
	name: string;
	/** For goroutines: the function that each began with, and what it waits for; else "". */
	started: string;
	waits: string;
	value: number;
}

/** What a goroutine waits for, by a function above its own code; the first that fits counts. */
const WAITS: [RegExp, string][] = [
	[/^time\.Sleep$/, "sleeps"],
	[/netpollblock$|runtime_pollWait$|^internal\/poll\./, "network or file"],
	[/^sync\.\(\*WaitGroup\)/, "wait group"],
	[/^sync\.\(\*Cond\)/, "condition"],
	[/^(internal\/)?sync\.\(\*(RW)?Mutex\)|SemacquireMutex$|SemacquireRWMutex/, "lock"],
	[/^runtime\.(selectgo|block)$|^reflect\.rselect$/, "select"],
	[/^runtime\.chanrecv/, "receives from a channel"],
	[/^runtime\.chansend/, "sends to a channel"],
	[/signal_recv$/, "signal"],
	[/^runtime\.notetsleepg$|[Ss]yscall|^runtime\.cgocall/, "system call"],
	[/^runtime\.gopark/, "the runtime"],
];

export function waitOf(above: string[]): string {
	return WAITS.find(([re]) => above.some((name) => re.test(name)))?.[1] ?? "runs";
}

const RUNTIME = /^(runtime|internal|sync|syscall|time|reflect)([./]|$)/;

/** Goroutines by where they began, the program's function nearest to the end of the stack, and its wait. */
export function goroutines(f: Flame): Holder[] {
	const out = new Map<string, Holder>();
	for (let i = 1; i < f.count; i++) {
		if (!f.self[i]) continue;
		const names = ancestry(f, i)
			.slice(1)
			.map((n) => nameOf(f, n));
		const folded = names[names.length - 1] === FOLDED;
		let at = names.length - 1;
		while (at >= 0 && !isOwn(names[at])) at--;
		// Without any function of the program: the nearest above the runtime.
		if (at < 0) at = names.length - 1;
		while (at > 0 && RUNTIME.test(names[at])) at--;
		const h: Holder = {
			name: names[at],
			started: names[0],
			waits: folded ? "not shown: below the node limit" : waitOf(names.slice(at + 1)),
			value: 0,
		};
		const key = JSON.stringify([h.name, h.started, h.waits]);
		const had = out.get(key) ?? h;
		had.value += f.self[i];
		out.set(key, had);
	}
	return largestFirst([...out.values()]);
}

/** The program's functions by what they and the libraries below them hold. */
export function holders(f: Flame): Holder[] {
	const all = [...ownCosts(f)].map(([name, c]) => ({ name, started: "", waits: "", value: c.next }));
	return largestFirst(all.filter((h) => h.value > 0));
}

const largestFirst = (all: Holder[]): Holder[] =>
	all.sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
