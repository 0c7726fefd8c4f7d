// Numbers for people: durations, sizes, counts and shares, three significant digits.

interface Step {
	size: number;
	suffix: string;
}

const TIME_NS: Step[] = [
	{ size: 1, suffix: " ns" },
	{ size: 1e3, suffix: " µs" },
	{ size: 1e6, suffix: " ms" },
	{ size: 1e9, suffix: " s" },
	{ size: 60e9, suffix: " min" },
	{ size: 3600e9, suffix: " h" },
	{ size: 86400e9, suffix: " d" },
];
// Minutes begin at two, and so do hours: "90 s" reads better than "1.5 min".
const TIME_FROM = [0, 1e3, 1e6, 1e9, 120e9, 7200e9, 172800e9];

const NS_PER: Record<string, number> = {
	nanoseconds: 1,
	ns: 1,
	microseconds: 1e3,
	us: 1e3,
	milliseconds: 1e6,
	ms: 1e6,
	seconds: 1e9,
	s: 1e9,
};

const BINARY = [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"];
const DECIMAL = ["", " k", " M", " G", " T", " P", " E"];

/** Three significant digits without an exponent; integers below 1000 stay whole. */
export function digits(v: number): string {
	const a = Math.abs(v);
	if (a === 0) return "0";
	if (a >= 99.95) return v.toFixed(0);
	if (a >= 9.995) return trim(v.toFixed(1));
	if (a >= 0.9995) return trim(v.toFixed(2));
	return a < 0.001 ? v.toExponential(1) : trim(v.toPrecision(3));
}

function trim(s: string): string {
	return s.includes(".") ? s.replace(/\.?0+$/, "") : s;
}

export function formatNanoseconds(ns: number): string {
	const a = Math.abs(ns);
	let i = 0;
	while (i + 1 < TIME_NS.length && a >= TIME_FROM[i + 1]) i++;
	return digits(ns / TIME_NS[i].size) + TIME_NS[i].suffix;
}

function scaled(v: number, base: number, suffixes: string[]): string {
	let a = Math.abs(v);
	let i = 0;
	// 999.6 would print as 1000; take the next suffix as soon as rounding gets there.
	const limit = base === 1000 ? 999.5 : 1023.5;
	while (a >= limit && i + 1 < suffixes.length) {
		a /= base;
		v /= base;
		i++;
	}
	return digits(v) + suffixes[i];
}

export function formatBytes(v: number): string {
	return scaled(v, 1024, BINARY);
}

export function formatCount(v: number): string {
	return scaled(v, 1000, DECIMAL);
}

/** A value in its unit: `1.23 s`, `4.5 MiB`, `12.3 k`, `12.30%`. */
export function formatValue(v: number, unit: string): string {
	if (!Number.isFinite(v)) return String(v).replace("Infinity", "Inf");
	if (unit === "ratio") return formatPercent(100 * v);
	const ns = NS_PER[unit];
	if (ns !== undefined) return v === 0 ? "0 s" : formatNanoseconds(v * ns);
	if (unit === "bytes" || unit === "byte") return formatBytes(v);
	return formatCount(v);
}

export function formatSigned(v: number, unit: string): string {
	return (v > 0 ? "+" : v < 0 ? "−" : "") + formatValue(Math.abs(v), unit);
}

/** `percent` is 0..100. */
export function formatPercent(percent: number): string {
	if (!Number.isFinite(percent)) return "–";
	const a = Math.abs(percent);
	if (a > 0 && a < 0.01) return (percent < 0 ? "−" : "") + "<0.01%";
	return (percent < 0 ? "−" : "") + (a >= 99.995 ? a.toFixed(0) : a.toFixed(2)) + "%";
}

/** A change of a share, in percentage points. */
export function formatPoints(points: number): string {
	if (Math.abs(points) < 0.005) return "±0 pp";
	return (points > 0 ? "+" : "−") + Math.abs(points).toFixed(2) + " pp";
}

export function share(part: number, whole: number): number {
	return whole === 0 ? 0 : (100 * part) / whole;
}

/** A percentage with the sign of its value: pprof's table gives it without one. */
export function signedPercent(
	row: { flat: number; flat_percent: number; cum: number; cum_percent: number },
	of: "flat" | "cum",
): number {
	return Math.sign(row[of]) * Math.abs(row[`${of}_percent`]);
}

/** A value as the server writes it. */
export function parseSample(text: string): number {
	return Number(text.replace(/^([+-]?)Inf$/, "$1Infinity"));
}

/** The class of a change of cost. */
export const trend = (v: number): string => (v > 0 ? "more" : v < 0 ? "less" : "faint");

const PLURALS: Record<string, string> = { series: "series", process: "processes", binary: "binaries" };

/** A count with its noun: `1 group`, `2 groups`, `1,200 processes`. `many`: the noun for all but one. */
export function counted(n: number, noun: string, many = PLURALS[noun] ?? `${noun}s`): string {
	return `${n.toLocaleString("en")} ${n === 1 ? noun : many}`;
}

/** The message for a selection without samples; it depends on what is counted. */
export function nothingCounted(type: string, unit: string, profiles: number): string {
	const [name, sample] = type.split(":");
	const what =
		sample === "cpu" || (name === "process_cpu" && sample === "samples")
			? "No CPU time in this window"
			: unit === "bytes" && type.endsWith(":delta")
				? "No allocations in this window"
				: unit === "bytes"
					? "No memory in use in this window"
					: name === "mutex" || name === "block"
						? "No waiting in this window"
						: "Nothing counted in this window";
	return `${what}: ${counted(profiles, "profile")} without samples.`;
}

export interface ChartUnit {
	label: string;
	/** Ticks are powers of two. */
	binary?: boolean;
	/** Factor for the points of query_range. */
	factor: number;
	format(v: number): string;
}

/**
 * How the cost over time is drawn. A delta type adds up over its window, so a point is divided
 * by the window and becomes a rate: CPU nanoseconds per second are cores.
 */
export function chartUnit(type: string, unit: string, windowSeconds: number): ChartUnit {
	const delta = type.endsWith(":delta");
	const ns = NS_PER[unit];
	if (delta && ns !== undefined) {
		const cpu = /(^|:)(process_)?cpu:/.test(type) || type.split(":")[1] === "cpu";
		return {
			label: cpu ? "cores" : "seconds per second",
			factor: ns / 1e9 / windowSeconds,
			// Thousandths of a core are common, so no exponents: 0.0005.
			format: (v) => (cpu ? String(Number(v.toPrecision(3))) : digits(v) + " s/s"),
		};
	}
	if (delta)
		return {
			label: unit === "bytes" ? "bytes per second" : `${unit || "count"} per second`,
			binary: unit === "bytes",
			factor: 1 / windowSeconds,
			format: (v) => formatValue(v, unit) + "/s",
		};
	return {
		label: unit === "ratio" ? "share" : unit || "value",
		binary: unit === "bytes",
		factor: 1,
		format: (v) => formatValue(v, unit),
	};
}

/** A value that has the unit's factor, with its unit: `0.032 cores`. */
export function formatRate(v: number, unit: ChartUnit): string {
	const text = unit.format(v);
	return unit.label === "cores" && !text.endsWith(" cores") ? `${text} cores` : text;
}

export function formatAgo(seconds: number): string {
	if (seconds < 0) return "just now";
	if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s ago`;
	if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
	if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
	return `${Math.round(seconds / 86400)} d ago`;
}
