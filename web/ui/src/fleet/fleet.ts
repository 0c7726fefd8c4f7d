// The questions of Services, and the rows from their answers. If one question fails, only its cells
// are empty.
import type { ChartColumn } from "../chart/series";
import { formatSelector } from "../query/text";
import type { Alert } from "../rules/rules";
import {
	type Args,
	type Labels,
	type MatrixElement,
	type ProfileType,
	resolveType,
	shortTypeName,
	type TopElement,
	type TopRow,
	type VectorElement,
} from "../shared/api";
import { alignWindow, chooseStep, formatDuration, trimMs, type Window } from "../shared/timerange";
import { chartUnit, type ChartUnit } from "../shared/units";

/** A question to the API; `key` identifies its answer. */
export interface Ask {
	key: string;
	/** Its subject, for messages. */
	title: string;
	name: string;
	args: Args;
}

/** The names of the types that the overview uses; "" if there is none. */
export interface FleetTypes {
	/** One of those that `cpu` selects. */
	cpu: ProfileType | null;
	memory: string;
	/** Goroutines, or threads. */
	tasks: string;
	/** Goroutines that Go found to be leaked. */
	leaked: string;
	/** The exact names of profiles. */
	kinds: string[];
}

const BYTES = /^([kmgtp]i?)?b$|bytes?$/i;

/**
 * Services send their types in units of their own, and `cpu` and `memory` convert them. So these names
 * are asked, and not one of the types in full, which has a part of the fleet.
 */
export function fleetTypes(all: ProfileType[]): FleetTypes {
	const cpu = resolveType("cpu", all);
	const memory = all.some((t) => t.name === "memory" && !t.delta && BYTES.test(t.sample_unit));
	const tasks =
		all.find((t) => !t.delta && t.name === "goroutine") ??
		all.find((t) => !t.delta && /^thread/.test(t.name));
	const leaked = all.find((t) => !t.delta && t.name === "goroutineleak");
	const short = (t: ProfileType | undefined) => (t ? shortTypeName(t, all) : "");
	return {
		cpu,
		memory: memory ? "memory" : "",
		tasks: short(tasks),
		leaked: short(leaked),
		kinds: [...new Set(all.map((t) => t.name))],
	};
}

const UP = "min without (profile) (up)";
const LEVEL_KEYS = ["memory", "tasks"] as const;
const SPARK_POINTS = 4; // a sparkline takes every fourth point of a chart

export interface FleetTimes {
	window: Window;
	step: number;
	/** The window of the sparkline, in whole steps. */
	grid: Window;
}

export function fleetTimes(window: Window, interval: number): FleetTimes {
	const width = window.end - window.start;
	const step = chooseStep({ start: 0, end: SPARK_POINTS * width }, interval);
	return { window, step, grid: alignWindow(window, step) };
}

export function fleetQuestions(by: string, types: FleetTypes, times: FleetTimes): Ask[] {
	const { window: w, step, grid } = times;
	const span = { start: trimMs(w.start), end: trimMs(w.end) };
	const seconds = Math.max(1, Math.round(w.end - w.start));
	const out: Ask[] = [];
	const ask = (key: string, title: string, query: string, args: Args = span, name = "query") =>
		out.push({ key, title, name, args: { query, ...args } });
	const at = { time: trimMs(w.end) };
	const steps = { start: trimMs(grid.start), end: trimMs(grid.end), step: String(step) };
	const overTime = (key: string, title: string, query: string) =>
		ask(`${key} over time`, `${title} over time`, query, steps, "query_range");
	if (types.cpu) {
		const mean = `mean_rate(cpu[${formatDuration(w.end - w.start)}])`;
		ask("cores", "CPU", `total(merge by (${by}) (${mean}))`, at);
		ask("all cores", "CPU of all", `total(merge(${mean}))`, at);
		overTime("cores", "CPU", `total(merge by (${by}) (rate(cpu[${formatDuration(step)}])))`);
		ask("top", "top functions", `top(1, merge by (${by}) (cpu))`);
	}
	for (const level of LEVEL_KEYS) {
		const type = types[level];
		if (!type) continue;
		const title = level === "memory" ? level : type;
		ask(level, title, `total(merge by (${by}) (${type}))`);
		overTime(level, title, `total(merge by (${by}) (${type}[${formatDuration(step)}]))`);
	}
	if (types.leaked) ask("leaked", "leaked goroutines", `total(merge by (${by}) (${types.leaked}))`);
	// A process has a target per profile, and is up if none of them fails.
	ask("up", "processes that are up", `sum by (${by}) (${UP})`, at);
	ask("targets", "processes", `count by (${by}) (${UP})`, at);
	for (const kind of types.kinds) {
		// The exact name: a profile may be called by another's short name, and would count twice.
		const exact = formatSelector({ name: "", matchers: [{ label: "__name__", op: "=", value: kind }] });
		ask(
			`count ${kind}`,
			`profiles of ${kind}`,
			`sum by (${by}) (count_over_time(${exact}[${formatDuration(seconds)}]))`,
			at,
		);
	}
	out.push({ key: "alerts", title: "alerts", name: "alerts", args: {} });
	return out;
}

export interface ServiceRow {
	/** The value of the label; "" if missing. */
	service: string;
	/** Mean CPU over the window, since the first profile; null if there are none. */
	cores: number | null;
	/** CPU per step of the grid: a number, null for a gap, undefined where the line is drawn across. */
	spark: ChartColumn;
	memory: number | null;
	memorySpark: ChartColumn;
	tasks: number | null;
	tasksSpark: ChartColumn;
	leaked: number | null;
	profiles: number | null;
	top: TopRow | null;
	up: number | null;
	targets: number | null;
	firing: number | null;
}

/** The data of the answers by key; missing ones are not known yet. */
export type FleetAnswers = Partial<Record<string, unknown>>;

const vector = (data: unknown): VectorElement[] | null =>
	(data as { result?: VectorElement[] } | undefined)?.result ?? null;

/** A profile may come a step late; longer gaps are time without profiles. */
const BRIDGE_STEPS = 1;

/** The points of a series on the grid, times `factor`. */
export function sparkOf(m: MatrixElement, times: FleetTimes, factor: number): ChartColumn {
	const { grid, step } = times;
	const n = Math.max(1, Math.round((grid.end - grid.start) / step) + 1);
	const spark: ChartColumn = new Array(n).fill(null);
	let last = -1;
	for (const [t, text] of m.values) {
		const i = Math.round((t - grid.start) / step);
		const v = Number(text) * factor;
		if (i <= last || i >= n || !Number.isFinite(v)) continue;
		if (last >= 0 && i - last - 1 <= BRIDGE_STEPS)
			for (let k = last + 1; k < i; k++) spark[k] = undefined;
		spark[i] = v;
		last = i;
	}
	return spark;
}

function countFiring(alerts: Alert[], by: string): Map<string, number> {
	const out = new Map<string, number>();
	for (const a of alerts) {
		const service = a.labels[by] ?? "";
		if (a.state === "firing") out.set(service, (out.get(service) ?? 0) + 1);
	}
	return out;
}

class Rows {
	readonly byService = new Map<string, ServiceRow>();

	constructor(
		private by: string,
		private known: ServiceRow,
	) {}

	of(metric: Labels): ServiceRow {
		const service = metric[this.by] ?? "";
		let row = this.byService.get(service);
		if (!row) {
			row = { ...this.known, service };
			this.byService.set(service, row);
		}
		return row;
	}

	put(data: unknown, key: "memory" | "tasks" | "leaked" | "up" | "targets" | "profiles"): void {
		for (const e of vector(data) ?? []) {
			const row = this.of(e.metric);
			row[key] = (row[key] ?? 0) + Number(e.value[1]);
		}
	}
}

/** One row per value of the label `by` in any answer. */
export function fleetRows(
	by: string,
	times: FleetTimes,
	unit: ChartUnit,
	answers: FleetAnswers,
): ServiceRow[] {
	const alerts = (answers.alerts as { alerts: Alert[] | null } | undefined) ?? null;
	const firing = alerts && countFiring(alerts.alerts ?? [], by);
	const rows = new Rows(by, {
		service: "",
		cores: null,
		spark: [],
		memory: null,
		memorySpark: [],
		tasks: null,
		tasksSpark: [],
		leaked: null,
		profiles: null,
		top: null,
		up: null,
		targets: null,
		firing: firing && 0,
	});
	const overTime = (key: string) =>
		(answers[`${key} over time`] as { result?: MatrixElement[] } | undefined)?.result ?? [];
	for (const m of overTime("cores")) rows.of(m.metric).spark = sparkOf(m, times, unit.factor);
	for (const e of vector(answers.cores) ?? [])
		rows.of(e.metric).cores = Number(e.value[1]) * unit.factor;
	for (const level of LEVEL_KEYS)
		for (const m of overTime(level))
			rows.of(m.metric)[`${level}Spark`] = sparkOf(m, times, 1);
	for (const e of (answers.top as { result?: TopElement[] } | undefined)?.result ?? [])
		rows.of(e.metric).top = e.rows[0] ?? null;
	for (const key of ["memory", "tasks", "leaked", "up", "targets"] as const) rows.put(answers[key], key);
	for (const key of Object.keys(answers))
		if (key.startsWith("count ")) rows.put(answers[key], "profiles");
	for (const [service, n] of firing ?? [])
		if (rows.byService.has(service) || service) rows.of({ [by]: service }).firing = n;
	return [...rows.byService.values()];
}

export const SPARK_PAD = 2;

/** The line as an SVG path, from zero to the largest value; a lone point is a dash. */
export function sparkPath(values: ChartColumn, width: number, height: number): string {
	const top = values.reduce<number>((m, v) => Math.max(m, v ?? 0), 0) || 1;
	const dx = values.length > 1 ? width / (values.length - 1) : 0;
	const place = (i: number, v: number) =>
		`${(SPARK_PAD + i * dx).toFixed(1)} ${(SPARK_PAD + height * (1 - v / top)).toFixed(1)}`;
	let path = "";
	let pen = false;
	values.forEach((v, i) => {
		if (v === undefined) return;
		if (v === null) {
			pen = false;
			return;
		}
		const next = values[i + 1] === undefined ? values[i + 2] : values[i + 1];
		const alone = !pen && typeof next !== "number";
		path += `${pen ? "L" : "M"}${place(i, v)}${alone ? "h1.5" : ""}`;
		pen = true;
	});
	return path;
}

/** The unit of the answer, which says it: that of the type is of one sender among others. */
export function coresUnit(types: FleetTypes, answers: FleetAnswers): ChartUnit {
	const t = types.cpu;
	const answer = (answers.cores ?? answers["cores over time"]) as { unit?: string } | undefined;
	return chartUnit(t?.type ?? "", answer?.unit ?? t?.sample_unit ?? "", 1);
}

/** The cores of all services together, since the first profile of any; null if there are none. */
export function allCores(unit: ChartUnit, answers: FleetAnswers): number | null {
	const all = vector(answers["all cores"])?.[0];
	return all ? Number(all.value[1]) * unit.factor : null;
}

/** The selector of one service's profiles; "" selects those without the label. */
export const serviceQuery = (type: string, by: string, service: string): string =>
	formatSelector({ name: type, matchers: [{ label: by, op: "=", value: service }] });

/** The default label of the rows: `service` if it exists, else `job`. */
export function defaultLabel(labels: string[]): string {
	return labels.includes("service") ? "service" : "job";
}
