// The client of the HTTP API. Paths are relative to the page's base, which has the route prefix.
import { released } from "./press";

export type Labels = Record<string, string>;

export interface Flamebearer {
	format: "single" | "double";
	names: string[];
	levels: number[][];
	numTicks: number;
	maxSelf: number;
	/** The name of nodes that sum up what was left out; without it nothing was. */
	other?: number;
	leftTicks?: number;
	rightTicks?: number;
	/** With files=true: distinct files, "" first; per name its file and line, 0 where unknown. */
	files?: string[];
	nameFiles?: number[];
	nameLines?: number[];
}

export interface ProfileElement {
	metric: Labels;
	type?: string;
	unit: string;
	/** 100% of percentages: the sum of magnitudes before any filter; of a difference, the base's. */
	total: number;
	/** The sum of the costs, with its sign. */
	cost: number;
	left_total?: number;
	right_total?: number;
	profiles: number;
	/** With search=: what it finds. */
	matched?: Matched;
	flamebearer: Flamebearer;
}

/** What a search finds in all of a profile; of a difference on both sides. */
export interface Matched {
	/** The share of the total, 0..100. */
	percent?: number;
	left_percent?: number;
	right_percent?: number;
	stacks: number;
	/** How many functions match; `rows` may have fewer. */
	functions: number;
	rows: TopRow[];
	/** The names of the frames of `paths`. */
	names: string[];
	/** The heaviest nodes that match. */
	paths: MatchedPath[];
}

export interface MatchedPath {
	total?: number;
	left_total?: number;
	right_total?: number;
	/** Root first, indices of names. */
	frames: number[];
}

export interface TopRow {
	function: string;
	flat: number;
	flat_percent: number;
	sum_percent: number;
	cum: number;
	cum_percent: number;
}

export interface TopElement {
	metric: Labels;
	unit: string;
	total: number;
	/** How many functions there are; `rows` may have fewer. */
	functions?: number;
	rows: TopRow[];
}
export interface VectorElement {
	metric: Labels;
	value: [number, string];
}
export interface MatrixElement {
	metric: Labels;
	values: [number, string][];
}

export type QueryData =
	| { resultType: "profiles"; result: ProfileElement[] }
	| { resultType: "top"; result: TopElement[] }
	| { resultType: "vector"; unit?: string; result: VectorElement[] }
	| { resultType: "matrix"; unit?: string; result: MatrixElement[] }
	| { resultType: "scalar" | "string"; unit?: string; result: [number, string] };

export interface ProfileType {
	type: string;
	name: string;
	sample_type: string;
	sample_unit: string;
	period_type: string;
	period_unit: string;
	delta: boolean;
}

export interface Target {
	profile: string;
	discoveredLabels: Labels;
	labels: Labels;
	scrapePool: string;
	scrapeUrl: string;
	/** The socket that it is scraped through; absent if it is scraped by TCP. */
	scrapeUnixSocket?: string;
	lastError: string;
	/** What is stored may not be what is meant; absent if there is no doubt. */
	warning?: string;
	lastScrape: string;
	lastScrapeDuration: number;
	/** When the next profile is complete; not known just after the start. */
	nextProfile?: string;
	/** How its CPU profiler is shared with another server; absent if this one is alone. */
	profilerShared?: "halves" | "turns";
	health: string;
	scrapeInterval: string;
	scrapeTimeout: string;
	/** The shard that scrapes it, on a query node. */
	shard?: string;
}

export interface DroppedTarget {
	discoveredLabels: Labels;
	scrapePool: string;
	/** Why, if it is not relabelling: another shard scrapes it. */
	reason?: string;
}

/** The answer to profiling a target now. */
export interface OrderedProfile {
	labels: Labels;
	scrapeUrl: string;
	time: number;
	samples: number;
	bytes: number;
	query: string;
}

export interface Targets {
	activeTargets: Target[];
	droppedTargets?: DroppedTarget[];
	droppedTargetCounts?: Record<string, number>;
	/** Pools that do not scrape at all, and why. */
	scrapePoolErrors?: Record<string, string>;
	/** On a query node: when each shard wrote the list of its targets. */
	shards?: { shard: string; time: string; targets: number; leftOut: number }[];
}

export interface Answer<T> {
	data: T;
	warnings: string[];
	infos: string[];
	tookMs: number;
}

export class ApiError extends Error {
	/** The place in the query, from 1; 0 if the server named none. */
	line = 0;
	column = 0;
	/** The message without its place. */
	detail: string;
	/** When the question is asked again by itself, by performance.now(). */
	retryAt?: number;

	constructor(
		public status: number,
		public errorType: string,
		message: string,
	) {
		super(message);
		const m = /^(\d+):(\d+):\s*([\s\S]*)$/.exec(message);
		this.detail = m ? m[3] : message;
		if (m) {
			this.line = Number(m[1]);
			this.column = Number(m[2]);
		}
	}
}

export type Args = Record<string, string | number | string[] | undefined>;

/** `name` under `api/v1/`, with its arguments; undefined ones are left out. */
export function apiUrl(name: string, args: Args = {}): string {
	const params = new URLSearchParams();
	for (const [k, v] of Object.entries(args)) {
		if (Array.isArray(v)) for (const x of v) params.append(k, x);
		else if (v !== undefined) params.set(k, String(v));
	}
	const query = params.toString();
	return `api/v1/${name}${query ? "?" + query : ""}`;
}

const URL_MAX = 4000;

/**
 * Profiles that were dropped on the page, by the names that queries have for them: file("NAME"). They
 * are in this page's memory only, and go with each query that names them.
 */
export const droppedFiles = new Map<string, Blob>();

/** Those that may be in a query: it has their names. */
const namedFiles = (args: Args): [string, Blob][] =>
	[...droppedFiles].filter(([name]) => String(args.query ?? "").includes(name));

/** Whether a question needs more than an address: a link cannot ask it. */
export const needsFiles = (args: Args): boolean => namedFiles(args).length > 0;

function withFiles(args: Args, files: [string, Blob][]): FormData {
	const form = new FormData();
	for (const [k, v] of new URLSearchParams(apiUrl("", args).split("?", 2)[1])) form.append(k, v);
	for (const [name, blob] of files) form.append("file", blob, name);
	return form;
}

/** Where and how a question is asked: in the address, if it is short and no file goes with it. */
function questionOf(name: string, args: Args, post: boolean): [path: string, init: RequestInit] {
	const [path, query = ""] = apiUrl(name, args).split("?", 2);
	const files = name === "query" ? namedFiles(args) : [];
	if (files.length) return [path, { method: "POST", body: withFiles(args, files) }];
	if (post || query.length > URL_MAX) // a target's labels may be longer than a URL can be
		return [path, { method: "POST", body: new URLSearchParams(query) }];
	return [apiUrl(name, args), {}];
}

async function fetched(path: string, init: RequestInit): Promise<Response> {
	try {
		return await fetch(new URL(path, document.baseURI), init);
	} catch (e) {
		if ((e as Error).name === "AbortError") throw e;
		throw new ApiError(0, "unavailable", "the server cannot be reached");
	}
}

async function requestEnvelope<T>(path: string, init: RequestInit): Promise<Answer<T>> {
	const began = performance.now();
	const response = await fetched(path, init);
	let text: string;
	try {
		text = await response.text(); // the connection may break halfway
	} catch (e) {
		if ((e as Error).name === "AbortError") throw e;
		throw new ApiError(0, "unavailable", "the server cannot be reached");
	}
	let body: {
		status?: string;
		data?: T;
		error?: string;
		errorType?: string;
		warnings?: string[];
		infos?: string[];
	};
	try {
		body = JSON.parse(text);
	} catch {
		throw new ApiError(
			response.status,
			"bad_response",
			`${response.status} ${response.statusText}: ${text.slice(0, 200).trim()}`,
		);
	}
	if (body.status !== "success")
		throw new ApiError(
			response.status,
			body.errorType ?? "error",
			body.error ?? `the server answered ${response.status}`,
		);
	return {
		data: body.data as T,
		warnings: body.warnings ?? [],
		infos: body.infos ?? [],
		tookMs: performance.now() - began,
	};
}

/** An answer in the API's envelope; not while the pointer is pressed, since what is shown may move. */
export async function request<T>(path: string, init: RequestInit): Promise<Answer<T>> {
	try {
		return await requestEnvelope(path, init);
	} finally {
		await released();
	}
}

export function call<T>(
	name: string,
	args: Args = {},
	signal?: AbortSignal,
	post = false,
): Promise<Answer<T>> {
	const [path, init] = questionOf(name, args, post);
	return request<T>(path, { ...init, signal });
}

/** The answer as a file, for formats other than JSON; their errors are text. */
export async function callBlob(name: string, args: Args): Promise<Blob> {
	const response = await fetched(...questionOf(name, args, false));
	if (response.ok) return response.blob();
	throw new ApiError(response.status, "error", (await response.text()).trim());
}

/** The labels in which the elements of a result differ, as one line. */
export function formatLabels(metric: Labels, empty = "total"): string {
	const pairs = Object.entries(metric).map(([k, v]) => `${k}="${v}"`);
	return pairs.length ? pairs.join(", ") : empty;
}

/** The labels in which series differ; of a single series all labels. */
export function tellingLabels(metrics: Labels[]): string[] {
	const names = [...new Set(metrics.flatMap((m) => Object.keys(m)))];
	const telling = names.filter((n) => metrics.some((m) => m[n] !== metrics[0][n]));
	return telling.length ? telling : names;
}

/** The name of a series among others: a single value if they differ in one label only. */
export function labelsAmong(metric: Labels, telling: string[]): string {
	const [only] = telling;
	if (telling.length === 1) return metric[only] || `no ${only}`;
	const kept = Object.entries(metric).filter(([k]) => telling.includes(k));
	return formatLabels(Object.fromEntries(kept), telling.length ? "no labels" : "total");
}

/** Labels as a key, without the name. */
export const metricKey = (m: Labels): string =>
	JSON.stringify(Object.entries(m).filter(([k]) => k !== "__name__").sort());

export const sameLabels = (a: Labels, b: Labels): boolean => {
	const ka = Object.keys(a);
	return ka.length === Object.keys(b).length && ka.every((k) => a[k] === b[k]);
};

const SHORT_NAMES: Record<string, string> = { process_cpu: "cpu" };
const DEFAULT_SAMPLE: Record<string, string> = {
	process_cpu: "cpu",
	memory: "inuse_space",
	block: "delay",
	mutex: "delay",
};
/** The unit in which the short name has all of them, whatever they are stored in. */
const USUAL_UNIT: Record<string, string> = {
	process_cpu: "nanoseconds",
	memory: "bytes",
	block: "nanoseconds",
	mutex: "nanoseconds",
};

const isUsual = (t: ProfileType) =>
	DEFAULT_SAMPLE[t.name] === t.sample_type && USUAL_UNIT[t.name] === t.sample_unit;

/**
 * The shortest spelling that selects this type; that of a usual type also selects what has another
 * unit, and converts it.
 */
export function shortTypeName(t: ProfileType, all: ProfileType[]): string {
	const same = all.filter((o) => o.name === t.name);
	const twins = same.filter((o) => o.sample_type === t.sample_type);
	if (twins.length > 1 && !(isUsual(t) && twins.filter(isUsual).length === 1)) return t.type;
	const name = SHORT_NAMES[t.name] ?? t.name;
	if (DEFAULT_SAMPLE[t.name] === t.sample_type || same.length === 1) return name;
	return `${name}:${t.sample_type}`;
}

/** `cpu`, `memory alloc_space`: a type in full for people, without what its name alone means. */
export function typeInWords(type: string): string {
	const [name, sample = ""] = type.split(":");
	const known = sample === name || DEFAULT_SAMPLE[name] === sample;
	return [SHORT_NAMES[name] ?? name, known ? "" : sample].filter(Boolean).join(" ");
}

/** The query of a first visit: all CPU, or else memory, or else the first type. */
export function firstQuery(types: ProfileType[]): string {
	for (const name of ["cpu", "memory"]) if (resolveType(name, types)) return name;
	return types[0] ? shortTypeName(types[0], types) : "";
}

/** The stored type that a selector's name means. */
export function resolveType(name: string, all: ProfileType[]): ProfileType | null {
	return (
		all.find((t) => t.type === name || t.type === name + ":delta") ??
		all.find((t) => shortTypeName(t, all) === name) ??
		all.find((t) => {
			const [head, sample, unit] = name.replace(/^heap\b/, "memory").split(":");
			return (
				(t.name === head || SHORT_NAMES[t.name] === head) &&
				(sample ?? DEFAULT_SAMPLE[t.name] ?? t.sample_type) === t.sample_type &&
				(unit === undefined || unit === t.sample_unit)
			);
		}) ??
		// Node's SDKs send CPU time beside wall time.
		(name === "cpu" ? all.find((t) => t.name === "wall" && t.sample_type === "cpu") : null) ??
		null
	);
}
