// Targets by pool, for the pages Targets and Service discovery. The text that a filter searches is
// built once per answer: thousands of targets have megabytes of labels.
import { quote } from "../query/text";
import type { DroppedTarget, Labels, MatrixElement, Target, Targets } from "../shared/api";
import { holds, filterWords } from "../shared/listfilter";
import { must } from "../shared/must";

export interface Pool<T> {
	name: string;
	/** The items that match the filter. */
	shown: T[];
	/** How many there are without the filter. */
	all: number;
	/** The error of the whole pool. */
	error: string;
}

export type Health = "all" | "up" | "down";

/** "down": not up, also those not scraped yet. */
const healthFits = (wanted: Health, health: string): boolean =>
	wanted === "all" || (wanted === "up") === (health === "up");

const cache = new WeakMap<object, string>();

/** The text that a filter searches, in lower case; cached per object. */
export function searchedText(of: object, make: () => string): string {
	let text = cache.get(of);
	if (text === undefined) {
		text = make().toLowerCase();
		cache.set(of, text);
	}
	return text;
}

const labelText = (labels: Labels): string =>
	Object.entries(labels)
		.map(([k, v]) => `${k}=${v}`)
		.join("\n");

function intoPools<T>(names: Iterable<string>, data: Targets): Map<string, Pool<T>> {
	const errors = data.scrapePoolErrors ?? {};
	const all = new Set([...names, ...Object.keys(errors)]);
	const sorted = [...all].sort((a, b) => a.localeCompare(b));
	return new Map(
		sorted.map((name) => [name, { name, shown: [], all: 0, error: errors[name] ?? "" }]),
	);
}

/** A scraped process: one address with its labels, and a target per profile. */
export interface Process {
	scrapePool: string;
	address: string;
	labels: Labels;
	targets: Target[];
	/** "part": some of its profiles fail. */
	state: "up" | "down" | "part" | "unknown";
	/** Each error once. */
	errors: ProcessError[];
	/** Each warning once. */
	warnings: ProcessError[];
	/** When one of its profiles was last scraped without an error, seconds; 0 if not known. */
	lastSuccess: number;
	/** The shard that scrapes it, on a query node. */
	shard?: string;
}

export interface ProcessError {
	text: string;
	/** The URL of the first target with it. */
	url: string;
	profiles: string[];
}

function textsOf(targets: Target[], of: "lastError" | "warning"): ProcessError[] {
	const out = new Map<string, ProcessError>();
	for (const t of targets) {
		const text = t[of];
		if (!text) continue;
		const had = out.get(text);
		if (had) had.profiles.push(t.profile);
		else out.set(text, { text, url: t.scrapeUrl, profiles: [t.profile] });
	}
	return [...out.values()];
}

function processState(targets: Target[]): Process["state"] {
	const has = (health: string) => targets.some((t) => t.health === health);
	if (has("down")) return has("up") ? "part" : "down";
	return has("up") ? "up" : "unknown";
}

function successOf(targets: Target[]): number {
	const times = targets
		.filter((t) => t.health === "up")
		.map((t) => Date.parse(t.lastScrape) / 1000)
		.filter((t) => t > 0);
	return Math.max(0, ...times);
}

const keyOf = (t: Target): string =>
	JSON.stringify([
		t.scrapePool,
		t.discoveredLabels.__address__,
		t.scrapeUnixSocket,
		t.labels,
		t.shard,
	]);

/** Targets by process, in the order in which they come. */
export function processes(targets: Target[]): Process[] {
	const byKey = new Map<string, Target[]>();
	for (const t of targets) {
		const key = keyOf(t);
		const had = byKey.get(key);
		if (had) had.push(t);
		else byKey.set(key, [t]);
	}
	return [...byKey.values()].map((of) => ({
		scrapePool: of[0].scrapePool,
		address: addressOf(of[0]),
		labels: of[0].labels,
		targets: of.sort((a, b) => (a.profile < b.profile ? -1 : 1)),
		state: processState(of),
		errors: textsOf(of, "lastError"),
		warnings: textsOf(of, "warning"),
		lastSuccess: successOf(of),
		...(of[0].shard !== undefined && { shard: of[0].shard }),
	}));
}

function addressOf(t: Target): string {
	const m = /^[a-z]+:\/\/([^/]*)/.exec(t.scrapeUrl);
	const host = m?.[1] ?? t.scrapeUrl;
	return t.scrapeUnixSocket ? `${host} (socket ${t.scrapeUnixSocket})` : host;
}

export interface ProcessPool extends Pool<Process> {
	up: number;
}

const searched = (p: Process): string =>
	[
		p.address,
		...p.targets.map((t) => `${t.scrapeUrl}\n${t.profile}\n${t.lastError}\n${t.warning ?? ""}`),
		labelText(p.labels),
		...(p.shard === undefined ? [] : [`shard=${p.shard}`]),
	].join("\n");

/** When the oldest of the lists that shards wrote is from, seconds; 0: this server scrapes itself. */
export function listedSince(data: Targets): number {
	const times = (data.shards ?? []).map((s) => Date.parse(s.time) / 1000).filter((t) => t > 0);
	return times.length ? Math.min(...times) : 0;
}

/** Counts and rows are of processes. "up" is a process of which no profile fails. */
export function processPools(all: Process[], data: Targets, filter: string, health: Health): ProcessPool[] {
	const pools = intoPools<Process>(
		all.map((p) => p.scrapePool),
		data,
	) as Map<string, ProcessPool>;
	const wanted = filterWords(filter);
	for (const p of pools.values()) p.up = 0;
	for (const one of all) {
		const p = must(pools.get(one.scrapePool), one.scrapePool);
		p.all++;
		if (one.state === "up") p.up++;
		if (!healthFits(health, one.state)) continue;
		if (wanted.length === 0 || holds(searchedText(one, () => searched(one)), wanted)) p.shown.push(one);
	}
	return [...pools.values()].filter((p) => p.shown.length || p.error);
}

/* ---- whether it was up ---- */

export const UPTIME_S = 3600;
export const UPTIME_STEP_S = 120;
/** More lines than anybody looks at are not asked for. */
const UPTIME_MAX = 300;

/**
 * The share of the scrapes that succeeded, per step; null for too many processes. Not by instance: a
 * selector of hundreds of values is slower than all series of a job.
 */
export function uptimeQuery(shown: Process[]): string | null {
	if (shown.length === 0 || shown.length > UPTIME_MAX) return null;
	const jobs = [...new Set(shown.map((p) => p.labels.job ?? ""))];
	const matcher = jobs.length === 1 ? `{job=${quote(jobs[0])}}` : "";
	return `avg without (profile) (avg_over_time(up${matcher}[${UPTIME_STEP_S / 60}m]))`;
}

/** The parts of an uptime line: 1 up, 0 down, between: some profiles failed; null: not scraped. */
export function uptimes(
	matrix: MatrixElement[],
	end: number,
): Map<string, (number | null)[]> {
	const n = UPTIME_S / UPTIME_STEP_S;
	return new Map(
		matrix.map(({ metric, values }) => {
			const line: (number | null)[] = new Array(n).fill(null);
			for (const [t, v] of values) {
				const i = n - 1 - Math.round((end - t) / UPTIME_STEP_S);
				if (i >= 0 && i < n) line[i] = Number(v);
			}
			return [labelKey(metric), line];
		}),
	);
}

/** Labels as a key, whatever their order. */
export const labelKey = (labels: Labels): string =>
	JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The share of the known parts in which it was up; null if nothing is known. */
export function upShare(line: (number | null)[] | undefined): number | null {
	const known = (line ?? []).filter((v): v is number => v !== null);
	return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

/** When the line was last up, seconds; 0 if it was not. */
export function lastUp(line: (number | null)[] | undefined, end: number): number {
	const known = line ?? [];
	let i = known.length - 1;
	while (i >= 0 && !known[i]) i--;
	return i < 0 ? 0 : end - (UPTIME_S / UPTIME_STEP_S - 1 - i) * UPTIME_STEP_S;
}

/** A process that was never up in its line: "not in the past 6 min", as far back as the line is known. */
export function notFor(line: (number | null)[] | undefined): string {
	const first = (line ?? []).findIndex((v) => v !== null);
	if (!line || first < 0) return "never";
	const seconds = (line.length - first) * UPTIME_STEP_S;
	return seconds >= UPTIME_S ? "not in the past hour" : `not in ${Math.round(seconds / 60)} min`;
}

/** A discovered target with its scraped profiles, if any. */
export interface Found {
	scrapePool: string;
	/** The common labels of its profiles. */
	discovered: Labels;
	/** One of its profiles, for the question about relabelling. */
	example: Labels;
	labels: Labels | null;
	/** Why it is not scraped, if it is not relabelling. */
	reason?: string;
	profiles: string[];
}

/** The common labels of two label sets. */
function common(a: Labels, b: Labels): Labels {
	return Object.fromEntries(Object.entries(a).filter(([k, v]) => b[k] === v));
}

const OF_PROFILE = ["__name__", "__profile_path__"];

/** Targets from their profiles, and those that relabelling dropped. */
export function foundTargets(data: Targets): Found[] {
	const byKey = new Map<string, Found>();
	for (const t of data.activeTargets ?? []) {
		const key = keyOf(t);
		const found = byKey.get(key);
		if (found) {
			found.profiles.push(t.profile);
			found.discovered = common(found.discovered, t.discoveredLabels);
			continue;
		}
		const discovered = { ...t.discoveredLabels };
		for (const label of OF_PROFILE) delete discovered[label];
		byKey.set(key, {
			scrapePool: t.scrapePool,
			discovered,
			example: t.discoveredLabels,
			labels: t.labels,
			profiles: [t.profile],
		});
	}
	const dropped = (data.droppedTargets ?? []).map((d: DroppedTarget) => ({
		scrapePool: d.scrapePool,
		discovered: d.discoveredLabels,
		example: d.discoveredLabels,
		labels: null,
		...(d.reason && { reason: d.reason }),
		profiles: [],
	}));
	return [...byKey.values(), ...dropped];
}

export interface FoundPool extends Pool<Found> {
	active: number;
	/** Dropped targets whose labels the server does not keep (keep_dropped_targets). */
	unseen: number;
}

export type Fate = "all" | "active" | "dropped";

export function foundPools(
	data: Targets,
	found: Found[],
	filter: string,
	fate: Fate,
): FoundPool[] {
	const counts = data.droppedTargetCounts ?? {};
	const pools = intoPools<Found>(
		[...found.map((f) => f.scrapePool), ...Object.keys(counts)],
		data,
	) as Map<string, FoundPool>;
	for (const p of pools.values()) {
		p.active = 0;
		p.unseen = counts[p.name] ?? 0;
	}
	const wanted = filterWords(filter);
	for (const f of found) {
		const p = must(pools.get(f.scrapePool), f.scrapePool);
		p.all++;
		if (f.labels) p.active++;
		else if (p.unseen > 0) p.unseen--;
		if (fate !== "all" && (fate === "active") !== (f.labels !== null)) continue;
		const text = () => `${labelText(f.discovered)}\n${labelText(f.labels ?? {})}`;
		if (wanted.length === 0 || holds(searchedText(f, text), wanted)) p.shown.push(f);
	}
	for (const p of pools.values()) p.all += p.unseen;
	const narrowed = wanted.length > 0 || fate !== "all";
	return [...pools.values()].filter((p) => p.shown.length || p.error || !narrowed);
}

const OPEN_MAX = 200;

/** Pools are open at first, unless the page would be long. */
export function openAtFirst<T>(pools: Pool<T>[]): boolean {
	return pools.length === 1 || pools.reduce((n, p) => n + p.shown.length, 0) <= OPEN_MAX;
}

/** A list of names in one parameter of the address; names may hold commas. */
export const listParam = {
	read: (text: string | null): string[] =>
		text ? text.split(",").map((s) => s.replace(/%2C/g, ",").replace(/%25/g, "%")) : [],
	write: (names: string[]): string | null =>
		names.map((s) => s.replace(/%/g, "%25").replace(/,/g, "%2C")).join(",") || null,
	toggle(text: string | null, name: string): string | null {
		const names = listParam.read(text);
		const without = names.filter((n) => n !== name);
		return listParam.write(without.length < names.length ? without : [...names, name]);
	},
};
