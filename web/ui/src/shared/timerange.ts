// Time ranges: relative to now, or absolute; clocks in the zone that is shown. All times are seconds
import { must } from "./must";
// since 1970.

export type TimeRange =
	{ kind: "relative"; seconds: number } | { kind: "absolute"; start: number; end: number };

export interface Window {
	start: number;
	end: number;
}

export const RANGE_PRESETS = "5m 15m 30m 1h 3h 6h 12h 1d 2d 7d 14d 30d 60d 90d".split(" ");
export const REFRESH = ["off", "5s", "10s", "30s", "1m", "5m"];
export const DEFAULT_RANGE: TimeRange = { kind: "relative", seconds: 3600 };
/** The shortest scrape interval there is. */
const SHORTEST_S = 1;

const UNIT_S: Record<string, number> = {
	ms: 0.001,
	s: 1,
	m: 60,
	h: 3600,
	d: 86400,
	w: 604800,
	y: 31536000,
};

/** `1h30m` to seconds; null if it is no duration of the query language. */
export function parseDuration(text: string): number | null {
	if (!/^(\d+(ms|[smhdwy]))+$/.test(text)) return null;
	let s = 0;
	for (const [, n, unit] of text.matchAll(/(\d+)(ms|[smhdwy])/g)) s += Number(n) * UNIT_S[unit];
	return s;
}

/** The same for a text that is a duration: one of ours, or checked before. */
export const durationSeconds = (text: string): number => must(parseDuration(text), `a duration in "${text}"`);

/** Seconds as a duration of the query language, exact to the millisecond. */
export function formatDuration(seconds: number): string {
	let ms = Math.round(seconds * 1000);
	if (ms <= 0) return "0s";
	let out = "";
	for (const [unit, size] of [
		["d", 86400000],
		["h", 3600000],
		["m", 60000],
		["s", 1000],
		["ms", 1],
	] as const) {
		const n = Math.floor(ms / size);
		if (n > 0) out += n + unit;
		ms -= n * size;
	}
	return out;
}

export function resolve(range: TimeRange, now: number): Window {
	if (range.kind === "absolute") return { start: range.start, end: range.end };
	return { start: now - range.seconds, end: now };
}

export function absolute(start: number, end: number): TimeRange {
	const a = Math.min(start, end);
	const b = Math.max(start, end);
	if (b - a >= SHORTEST_S) return { kind: "absolute", start: a, end: b };
	const mid = (a + b) / 2;
	return { kind: "absolute", start: mid - SHORTEST_S / 2, end: mid + SHORTEST_S / 2 };
}

/** Twice as wide around the same middle, but not into the future. */
export function zoomOut(range: TimeRange, now: number): TimeRange {
	if (range.kind === "relative") return { kind: "relative", seconds: range.seconds * 2 };
	const w = range.end - range.start;
	const end = Math.min(range.end + w / 2, Math.max(now, range.end));
	return absolute(end - 2 * w, end);
}

/** Half a width to the past (-1) or the future (+1), never past now. */
export function shift(range: TimeRange, direction: -1 | 1, now: number): TimeRange {
	const { start, end } = resolve(range, now);
	const w = end - start;
	const to = Math.min(end + (direction * w) / 2, Math.max(now, end));
	return absolute(to - w, to);
}

/** The parameters of a new range, which also close an open part of the old one. */
export function rangeToParams(range: TimeRange): Record<string, string | null> {
	if (range.kind === "relative")
		return { ...NO_CONTEXT, range: formatDuration(range.seconds), from: null, to: null };
	return { ...NO_CONTEXT, range: null, from: trimMs(range.start), to: trimMs(range.end) };
}

export function rangeFromParams(get: (name: string) => string | null): TimeRange {
	const from = Number(get("from") ?? NaN);
	const to = Number(get("to") ?? NaN);
	if (Number.isFinite(from) && Number.isFinite(to) && from < to)
		return { kind: "absolute", start: from, end: to };
	const seconds = parseDuration(get("range") ?? "");
	const relative: TimeRange = seconds ? { kind: "relative", seconds } : DEFAULT_RANGE;
	const at = instantFromParams(get);
	return at === null ? relative : { kind: "absolute", ...resolve(relative, at) };
}

/** The time to evaluate at, as rules do; null if a range is asked for. */
export function instantFromParams(get: (name: string) => string | null): number | null {
	const at = Number(get("at") ?? NaN);
	return Number.isFinite(at) && at > 0 ? at : null;
}

/** The chart's own window while a part of it is open, and the range to return to. */
export interface ChartContext {
	window: Window;
	back: TimeRange;
}

export const NO_CONTEXT = { cfrom: null, cto: null, crange: null };

export function contextFromParams(get: (name: string) => string | null): ChartContext | null {
	const start = Number(get("cfrom") ?? NaN);
	const end = Number(get("cto") ?? NaN);
	if (!(start < end)) return null;
	const seconds = parseDuration(get("crange") ?? "");
	return {
		window: { start, end },
		back: seconds ? { kind: "relative", seconds } : { kind: "absolute", start, end },
	};
}

export function contextToParams(context: ChartContext): Record<string, string | null> {
	const { window, back } = context;
	return {
		cfrom: trimMs(window.start),
		cto: trimMs(window.end),
		crange: back.kind === "relative" ? formatDuration(back.seconds) : null,
	};
}

/** Seconds with at most three decimals, without trailing zeros. */
export function trimMs(t: number): string {
	return t.toFixed(3).replace(/\.?0+$/, "");
}

const POINTS_MAX = 240;
const MULTIPLES = [
	1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 90, 120, 180, 360, 720, 1440, 2880, 5760, 8640, 17280,
	60480,
];

/**
 * The step of the chart is a multiple of the scrape interval: with one scrape in some steps and two
 * in others, a flat cost would look like a saw.
 */
export function chooseStep(
	window: Window,
	intervalSeconds: number,
	pointsMax = POINTS_MAX,
): number {
	const want = (window.end - window.start) / pointsMax;
	for (const m of MULTIPLES) if (m * intervalSeconds >= want) return m * intervalSeconds;
	return Math.ceil(want / intervalSeconds) * intervalSeconds;
}

/** The least common multiple of the intervals if it is small, else the longest one. */
export function commonInterval(intervals: number[]): number {
	const whole = [
		...new Set(intervals.filter((s) => s > 0).map((s) => Math.max(1, Math.round(s)))),
	];
	if (whole.length === 0) return 15;
	const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
	const lcm = whole.reduce((a, b) => (a > 3600 ? a : (a * b) / gcd(a, b)));
	return lcm <= 60 ? lcm : Math.max(...whole);
}

/** Steps end on multiples of the step, and the last one is complete. */
export function alignWindow(window: Window, step: number): Window {
	const end = Math.floor(window.end / step) * step;
	const start = Math.min(end, Math.ceil(window.start / step) * step);
	return { start, end };
}

/* ---- clocks: every time that is shown says its zone ---- */

let utc = false;

/** Whether times are shown and typed in UTC; else in the zone of the browser. */
export const isUtc = (): boolean => utc;
export function setUtc(on: boolean): void {
	utc = on;
}

/** How many minutes a zone is ahead of UTC at `t`: the chosen one, or that of the browser. */
const minutesAhead = (t: number, inUtc: boolean): number =>
	inUtc ? 0 : -Math.round(new Date(t * 1000).getTimezoneOffset());

/** How many seconds the zone that is shown is ahead of UTC. */
export const secondsAhead = (t: number): number => 60 * minutesAhead(t, utc);

const two = (n: number) => String(n).padStart(2, "0");

/** `2026-01-02 15:00:00`, so many minutes ahead of UTC. */
function clockAhead(t: number, minutes: number): string {
	const d = new Date((t + minutes * 60) * 1000);
	return (
		`${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())} ` +
		`${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`
	);
}

const clock = (t: number): string => clockAhead(t, minutesAhead(t, utc));

/** The zone in which a time is shown: `UTC`, `UTC+2`, `UTC-3:30`. */
export function zoneAt(t: number, inUtc = utc): string {
	const minutes = minutesAhead(t, inUtc);
	if (!minutes) return "UTC";
	const [h, m] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
	return `UTC${minutes < 0 ? "-" : "+"}${h}${m ? ":" + two(m) : ""}`;
}

/** `2026-01-02`, in the zone that is shown. */
export const dayOf = (t: number): string => clock(t).slice(0, 10);

/** `2026-01-02 15:00:00 UTC+2` */
export const formatClock = (t: number): string => `${clock(t)} ${zoneAt(t)}`;

/** `15:00:00 UTC+2` */
export const formatTime = (t: number): string => formatClock(t).slice(11);

/** `15:00 UTC+2` */
export const formatMinute = (t: number): string => `${clock(t).slice(11, 16)} ${zoneAt(t)}`;

/** `2026-01-02 15:00:00 – 16:00:00 UTC+2`: what both times share is said once. */
export function formatSpan({ start, end }: Window): string {
	const from = zoneAt(start) === zoneAt(end) ? clock(start) : formatClock(start);
	return `${from} – ${dayOf(start) === dayOf(end) ? formatTime(end) : formatClock(end)}`;
}

/** A tick of a time axis: only the part of the time that differs between ticks. */
export function formatTick(t: number, increment: number): string {
	const text = clock(t);
	if (increment >= 86400 || text.endsWith("00:00:00")) return text.slice(5, 10);
	return increment < 60 ? text.slice(11) : text.slice(11, 16);
}

/** Where the day of a time begins. */
export function midnight(t: number): number {
	const d = new Date(t * 1000);
	return (utc ? d.setUTCHours(0, 0, 0, 0) : d.setHours(0, 0, 0, 0)) / 1000;
}

/** The value of an `<input type="datetime-local">`, in the zone that is shown. */
export function toLocalInput(t: number): string {
	return clock(t).replace(" ", "T");
}

export function fromLocalInput(value: string): number | null {
	const t = Date.parse(utc && value ? `${value}Z` : value);
	return Number.isFinite(t) ? t / 1000 : null;
}

export function describeRange(range: TimeRange): string {
	if (range.kind === "relative") return `Last ${formatDuration(range.seconds)}`;
	return formatSpan(range);
}

/* ---- typed times ---- */

const HOURS_AHEAD_MAX = 14;
const ZONE = /\s*(?:(Z|UTC|GMT)|(?:UTC|GMT)?([+\-\u2212])(\d{1,2})(?::?(\d{2}))?)$/i;

/** The zone at the end of a text, in minutes ahead of UTC, and the text before it. */
function splitZone(text: string): { text: string; minutes: number | null } {
	// Without a clock or a name, -02 ends a date.
	const m = /:\d|[a-z][+\-\u2212\d:]*$/i.test(text) ? ZONE.exec(text) : null;
	if (!m || Number(m[3] ?? 0) > HOURS_AHEAD_MAX || Number(m[4] ?? 0) > 59)
		return { text, minutes: null };
	const minutes = m[1] ? 0 : Number(m[3]) * 60 + Number(m[4] ?? 0);
	return { text: text.slice(0, m.index), minutes: m[2] && m[2] !== "+" ? -minutes : minutes };
}

/** A date, a date and a clock, a clock of this day, or seconds since 1970. */
function parseTime(text: string, minutes: number | null, day: string): number | null {
	if (/^\d{9,11}(\.\d+)?$/.test(text)) return Number(text);
	const alone = /^\d{1,2}:\d{2}(:\d{2})?$/.test(text);
	const dated = alone ? `${day} ${text.padStart(5, "0")}` : text;
	const m = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{1,2}:\d{2})(:\d{2}(?:\.\d+)?)?)?$/i.exec(dated);
	if (!m) return null;
	const inUtc = utc || minutes !== null;
	const written = `${m[1]}T${(m[2] ?? "00:00").padStart(5, "0")}${m[3] ?? ":00"}`;
	const ms = Date.parse(written + (inUtc ? "Z" : ""));
	return Number.isFinite(ms) ? ms / 1000 - (minutes ?? 0) * 60 : null;
}

/**
 * A range as people type it: `3h` or `last 3h`, else two times with "to", a slash or a dash with
 * spaces between them. The second may be a clock alone, of the first one's day, or `now`. A time
 * without a zone has that of the other time, else the zone that is shown.
 */
export function parseRangeText(text: string, now: number): TimeRange | null {
	const t = text.trim();
	const seconds = parseDuration(t.replace(/^(last\s+|now-|-)/i, "").replace(/\s+/g, ""));
	if (seconds) return { kind: "relative", seconds };
	const parts = t.split(/\s+to\s+|\s*\/\s*|\s+[-–—]\s+|\s*\.\.\s*/i);
	if (parts.length !== 2) return null;
	const [a, b] = parts.map((part) => splitZone(part.trim()));
	const [za, zb] = [a.minutes ?? b.minutes, b.minutes ?? a.minutes];
	const dayIn = (at: number, zone: number | null) =>
		clockAhead(at, zone ?? minutesAhead(at, utc)).slice(0, 10);
	const start = parseTime(a.text, za, dayIn(now, za));
	if (start === null) return null;
	const end = /^now$/i.test(b.text) ? now : parseTime(b.text, zb, dayIn(start, zb));
	return end !== null && start < end ? absolute(start, end) : null;
}
