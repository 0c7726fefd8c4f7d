// Findings: levels (memory in use, goroutines) that grow.
import { escapeRegexp, formatSelector } from "../query/text";
import { growth, type Growth, type Point } from "../result/levels";
import type { MatrixElement } from "../shared/api";
import { formatDuration, trimMs, type Window } from "../shared/timerange";
import { formatCount, formatValue } from "../shared/units";
import { type Finding, linkTo } from "./findings";
import { type Ask, type FleetAnswers, type FleetTimes, serviceQuery } from "./fleet";

export interface GrowthLevel {
	key: "memory" | "tasks";
	/** The name of the type; "" if there is none. */
	type: string;
	/** `goroutines`; "" for bytes. */
	noun: string;
	/** Less than this, gained in the window, is no news. */
	least: number;
	/** What one of it costs, in bytes: a goroutine's stack has 2 KiB at least. */
	bytes: number;
}

export function growthLevels(memory: string, tasks: string): GrowthLevel[] {
	const noun = tasks.startsWith("thread") ? "threads" : "goroutines";
	const levels: GrowthLevel[] = [
		{ key: "memory", type: memory, noun: "", least: 2 ** 20, bytes: 1 },
		{ key: "tasks", type: tasks, noun, least: 10, bytes: 2048 },
	];
	return levels.filter((l) => l.type);
}

const POINTS_MIN = 12;
const PARTS = 6;
/** Of what it is at the window's end. */
const GAIN_MIN = 0.1;

const median = (v: number[]): number => v.slice().sort((a, b) => a - b)[v.length >> 1];

function parts(points: Point[]): number[][] {
	const n = points.length;
	const at = (i: number) => Math.round((i * n) / PARTS);
	return Array.from({ length: PARTS }, (_, i) => points.slice(at(i), at(i + 1)).map((p) => p[1]));
}

/**
 * The growth of a level that is worth a line; null if there is none. All of this holds:
 * - Kendall's test finds a trend at three standard deviations, and Theil and Sen's slope gains a
 *   tenth of the level, and `least`, since the window's begin or the last fall to half;
 * - in six equal parts of that time the lowest values rise each time, which noise does once in 720
 *   windows, and a collector's sawtooth does not once the window has two teeth; and the lowest of the
 *   last part is above the highest of the first, so the gain is larger than the noise;
 * - the last third is at least half as steep as the whole, so filling a cache at the start ends it;
 * - the level is higher than ever before the last fall, and than in `before`, the range before the
 *   window. So a sawtooth whose tooth is longer than the window is none either.
 */
export function growing(points: Point[], before: Point[], least: number): Growth | null {
	const g = growth(points);
	if (!g || !(g.slope > 0)) return null;
	const since = points.filter((p) => p[0] >= g.since);
	if (since.length < POINTS_MIN) return null;
	const gained = g.slope * (g.end - g.since);
	if (gained < least || gained < GAIN_MIN * g.last) return null;
	const lows = parts(since).map((v) => Math.min(...v));
	if (lows.some((v, i) => i > 0 && v <= lows[i - 1])) return null;
	if (lows[PARTS - 1] <= Math.max(...parts(since)[0])) return null;
	const mid = parts(since).map(median);
	const [first, late, last] = [mid[0], mid[PARTS - 3], mid[PARTS - 1]];
	if ((last - late) / 2 < (0.5 * (last - first)) / (PARTS - 1)) return null;
	const old = points.filter((p) => p[0] < g.since).concat(before);
	return old.some((p) => p[1] >= g.last) ? null : g;
}

type Series = Map<string, Point[]>;

function seriesOf(by: string, data: unknown): Series {
	const result = (data as { result?: MatrixElement[] } | undefined)?.result ?? [];
	return new Map(
		result.map((m) => [m.metric[by] ?? "", m.values.map(([t, v]): Point => [t, Number(v)])]),
	);
}

/** Per process, where it is known how many there are: more processes are no leak. */
function perTarget(points: Point[], counts: Point[] | undefined): Point[] {
	if (!counts?.length) return points;
	const of = new Map(counts);
	return points.flatMap(([t, v]): Point[] => {
		const n = of.get(t);
		return n ? [[t, v / n]] : [];
	});
}

const CANDIDATES_MAX = 10;

export interface GrowthCandidate {
	level: GrowthLevel;
	service: string;
	points: Point[];
	growth: Growth;
}

/** What grows by the answers that the rows are made of, the most bytes per hour first. */
export function growthCandidates(
	by: string,
	levels: GrowthLevel[],
	answers: FleetAnswers,
): GrowthCandidate[] {
	const out: GrowthCandidate[] = [];
	for (const level of levels)
		for (const [service, points] of seriesOf(by, answers[`${level.key} over time`])) {
			const g = growing(points, [], level.least);
			if (g) out.push({ level, service, points, growth: g });
		}
	const cost = (c: GrowthCandidate) => c.growth.slope * c.level.bytes;
	return out.sort((a, b) => cost(b) - cost(a)).slice(0, CANDIDATES_MAX);
}

const STEPS_LEAST = 3;

/** What else is asked of candidates: the range before, as far as it is stored, and how many processes. */
export function growthQuestions(
	by: string,
	candidates: GrowthCandidate[],
	times: FleetTimes,
	oldest: number,
): Ask[] {
	if (candidates.length === 0) return [];
	const { step, grid } = times;
	const steps = (w: Window) => ({ start: trimMs(w.start), end: trimMs(w.end), step: String(step) });
	const of = (name: string, services: string[]) =>
		formatSelector({
			name,
			matchers: [{ label: by, op: "=~", value: [...new Set(services)].sort().map(escapeRegexp).join("|") }],
		});
	const out: Ask[] = [
		{
			key: "processes over time",
			title: "processes over time",
			name: "query_range",
			args: { query: `count by (${by}) (${of("up", candidates.map((c) => c.service))})`, ...steps(grid) },
		},
	];
	const width = Math.min(grid.end - grid.start, Math.floor((grid.start - oldest) / step) * step);
	if (width < STEPS_LEAST * step) return out;
	for (const key of ["memory", "tasks"]) {
		const mine = candidates.filter((c) => c.level.key === key);
		if (mine.length === 0) continue;
		const selector = of(mine[0].level.type, mine.map((c) => c.service));
		out.push({
			key: `${key} before`,
			title: `${mine[0].level.type} before the range`,
			name: "query_range",
			args: {
				query: `total(merge by (${by}) (${selector}[${formatDuration(step)}]))`,
				...steps({ start: grid.start - width, end: grid.start - step }),
			},
		});
	}
	return out;
}

/** `times`: parameters of the shown range. */
export function growthFindings(
	by: string,
	candidates: GrowthCandidate[],
	answers: FleetAnswers,
	times: Record<string, string>,
): Finding[] {
	const counts = seriesOf(by, answers["processes over time"]);
	const out: Finding[] = [];
	for (const { level, service, points, growth: g } of candidates) {
		const before = seriesOf(by, answers[`${level.key} before`]).get(service) ?? [];
		const each = perTarget(points, counts.get(service));
		if (!growing(points, before, level.least) || !growing(each, [], 0)) continue;
		const rate = 3600 * g.slope;
		const said = level.noun ? `${formatCount(rate)} ${level.noun}/h` : `${formatValue(rate, "bytes")}/h`;
		out.push({
			kind: "growth",
			who: service || `no ${by}`,
			text: `grows ${said}`,
			href: linkTo("explore", { query: serviceQuery(level.type, by, service), ...times }),
			cost: rate * level.bytes,
		});
	}
	return out;
}
