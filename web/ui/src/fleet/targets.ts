// Targets by pool, for the pages Targets and Service discovery. The text that a filter searches is
// built once per answer: thousands of targets have megabytes of labels.
import type { Dropped, Labels, Target, Targets } from "../shared/api";
import { holds, words } from "../shared/words";

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
function textOf(of: object, make: () => string): string {
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

export interface TargetPool extends Pool<Target> {
	up: number;
}

export function targetPools(data: Targets, filter: string, health: Health): TargetPool[] {
	const active = data.activeTargets ?? [];
	const pools = intoPools<Target>(
		active.map((t) => t.scrapePool),
		data,
	) as Map<string, TargetPool>;
	const wanted = words(filter);
	for (const p of pools.values()) p.up = 0;
	for (const t of active) {
		const p = pools.get(t.scrapePool)!;
		p.all++;
		if (t.health === "up") p.up++;
		if (!healthFits(health, t.health)) continue;
		const text = () => `${t.scrapeUrl}\n${t.profile}\n${t.lastError}\n${labelText(t.labels)}`;
		if (wanted.length === 0 || holds(textOf(t, text), wanted)) p.shown.push(t);
	}
	return [...pools.values()].filter((p) => p.shown.length || p.error);
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
		const key = JSON.stringify([t.scrapePool, t.discoveredLabels.__address__, t.labels]);
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
	const dropped = (data.droppedTargets ?? []).map((d: Dropped) => ({
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
	const wanted = words(filter);
	for (const f of found) {
		const p = pools.get(f.scrapePool)!;
		p.all++;
		if (f.labels) p.active++;
		else if (p.unseen > 0) p.unseen--;
		if (fate !== "all" && (fate === "active") !== (f.labels !== null)) continue;
		const text = () => `${labelText(f.discovered)}\n${labelText(f.labels ?? {})}`;
		if (wanted.length === 0 || holds(textOf(f, text), wanted)) p.shown.push(f);
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
