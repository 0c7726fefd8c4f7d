// The answer of /api/v1/status/cluster, and what the page Cluster says of it.
import { formatClock } from "../shared/timerange";
import { counted, digits, formatPercent } from "../shared/units";

interface ShardProgress {
	/** RFC 3339: all profiles until then; missing: nothing was written or read yet. */
	through?: string;
	/** How long ago that is. */
	lag_seconds?: number;
}

/** What this server puts into the bucket. */
export interface OwnShard extends ShardProgress {
	name: string;
	state: "waiting" | "running" | "away" | "fenced";
	generation: number;
	waiting_blocks: number;
	waiting_bytes: number;
	blocks: number;
	windows: number;
	segments: number;
	bytes: number;
	kept: number;
	gone: number;
	failures: number;
	last_error?: string;
	/** Why no push is acknowledged now. */
	refuses_pushes?: string;
	/** Of shards that share targets, followed by this one; 0: none is known yet. */
	assignment?: number;
	members?: Member[];
}

/** A shard that shares targets with this one, as this one knows it. */
export interface Member {
	name: string;
	member: boolean;
	drained: boolean;
	/** Dead, stopped or gone. */
	ended: boolean;
	/** At least; 0: not known, or a fixed total. */
	follows: number;
}

/** A shard that is queried; one of this process has no more than a name. */
export interface Shard extends ShardProgress {
	name: string;
	own: boolean;
	state: "running" | "late" | "reading" | "stopped" | "failing" | "unread" | "own";
	host?: string;
	late?: boolean;
	stopped?: boolean;
	windows?: number;
	segments?: number;
	blocks?: number;
	bytes?: number;
	missing?: number;
	/** Only while windows are not here whole. */
	reading?: Reading;
	error?: string;
	assignment?: number;
	/** Others follow a newer assignment, for longer than its lease. */
	behind?: boolean;
}

/** How far the segments of a shard's windows are read. */
export interface Reading {
	read_segments: number;
	segments: number;
	read_bytes: number;
	bytes: number;
	/** An estimate; missing: too early to say. */
	left_seconds?: number;
}

export interface Cache {
	from_memory: number;
	from_disk: number;
	from_bucket: number;
	/** 0 to 1; missing: nothing was read. */
	hit_rate?: number;
	bytes: number;
	/** 0: there is no cache on disk. */
	max_bytes: number;
	damaged_pages: number;
	off?: string;
	down?: string;
}

export interface Requests {
	requests: number;
	sent_bytes: number;
	received_bytes: number;
}

export interface Cluster {
	mode: string;
	/** Missing, as all below: there is none. */
	bucket?: string;
	shard?: OwnShard;
	shards?: Shard[];
	cache?: Cache;
	requests?: Record<string, Requests>;
	cost?: { since_start: number; requests_per_day?: number; month: number };
}

export interface ShardChip {
	text: string;
	mark: "up" | "wait" | "down" | "";
	hint: string;
	/** Sorted, the worst comes first. */
	rank: number;
}

const SHARD: Record<Shard["state"], ShardChip> = {
	failing: { text: "failing", mark: "down", hint: "Not readable", rank: 0 },
	late: { text: "late", mark: "down", hint: "The newest profiles are missing in answers.", rank: 1 },
	unread: { text: "not read yet", mark: "wait", hint: "The manifest was not read yet.", rank: 2 },
	reading: { text: "reading", mark: "wait", hint: "Blocks can be queried. Open windows are being read, the newest first.", rank: 3 },
	running: { text: "up to date", mark: "up", hint: "All uploaded profiles can be queried.", rank: 4 },
	stopped: { text: "stopped", mark: "", hint: "Clean shutdown: all profiles can be queried.", rank: 5 },
	own: { text: "this server", mark: "up", hint: "The data is in this process.", rank: 6 },
};

/** "25 %": the part that is read; one that lacks anything is no 100 %. */
const readPart = (read: number, all: number): string => `${all ? Math.floor((100 * read) / all) : 0} %`;

function readingChip(chip: ShardChip, r: Reading): ShardChip {
	const left = r.left_seconds === undefined ? "" : ` About ${lag(r.left_seconds)} left.`;
	return {
		...chip,
		text: `reading ${readPart(r.read_bytes, r.bytes)}`,
		hint: `${chip.hint} ${r.read_segments.toLocaleString("en")} of ${r.segments.toLocaleString("en")} segments.${left}`,
	};
}

export function shardChip(s: Shard): ShardChip {
	const of = SHARD[s.state] ?? { text: String(s.state), mark: "", hint: "", rank: 3 };
	const chip = s.state === "reading" && s.reading ? readingChip(of, s.reading) : of;
	return s.error ? { ...chip, hint: `${chip.hint}: ${s.error}` } : chip;
}

const OWN: Record<OwnShard["state"], [text: string, mark: ShardChip["mark"], hint: string]> = {
	waiting: ["waiting", "wait", "Waiting for the lease of the shard's name."],
	running: ["publishing", "up", "Stored profiles are uploaded to the bucket."],
	away: ["bucket away", "down", "Profiles are stored here and uploaded later."],
	fenced: ["fenced", "down", "Another server has taken this name: this server stops."],
};

export function ownChipOf(s: OwnShard): Omit<ShardChip, "rank"> {
	const [text, mark, hint] = OWN[s.state] ?? [String(s.state), "", ""];
	return { text, mark, hint };
}

export const secondsOf = (p: ShardProgress): number => (p.through ? Date.parse(p.through) / 1000 : NaN);

const since = (p: ShardProgress): string =>
	p.through ? `its profiles after ${formatClock(secondsOf(p))}` : "its profiles";

const detail = (text: string | undefined): string => (text ? `: ${text}` : ".");

function troublesOfOwn(s: OwnShard): string[] {
	const of = `Shard ${s.name} of this server`;
	if (s.state === "fenced") return [`${of} was taken over by another server: profiles stored here are not uploaded${detail(s.last_error)}`];
	const out: string[] = [];
	if (s.state === "away") out.push(`${of} cannot reach the bucket: profiles are stored here and uploaded later${detail(s.last_error)}`);
	else if (s.last_error) out.push(`${of}: ${s.last_error}`);
	if (s.refuses_pushes) out.push(`${of} acknowledges no pushes: ${s.refuses_pushes}`);
	return out;
}

function troublesOfShard(s: Shard): string[] {
	const out: string[] = [];
	if (s.state === "failing")
		out.push(`Shard ${s.name} cannot be read${s.late ? `, and answers lack ${since(s)}` : ""}${detail(s.error)}`);
	else if (s.state === "late") out.push(`Shard ${s.name} is late: answers lack ${since(s)}.`);
	if (s.behind) out.push(`Shard ${s.name} follows an old assignment: profiles of targets that moved may be there twice.`);
	if (s.missing)
		out.push(
			`Shard ${s.name}: ${counted(s.missing, "object")} of the manifest ` +
				"missing in the bucket; affected answers have a warning.",
		);
	return out;
}

/** A sentence for all shards that are being read. */
function troublesOfReading(shards: Shard[]): string[] {
	const all = shards.flatMap((s) => s.reading ?? []);
	if (!all.length) return [];
	const read = all.reduce((n, r) => n + r.read_bytes, 0);
	const bytes = all.reduce((n, r) => n + r.bytes, 0);
	const left = Math.max(...all.map((r) => r.left_seconds ?? NaN));
	const which = counted(all.length, "shard is", "shards are");
	return [`${which} being read, ${readPart(read, bytes)} so far${left > 0 ? `, about ${lag(left)} left` : ""}: answers that meet unread windows have a warning.`];
}

/** What a person should know, in sentences, the worst shards first; nothing where all is well. */
export function troublesOf(c: Cluster): string[] {
	const out = c.shard ? troublesOfOwn(c.shard) : [];
	const shards = (c.shards ?? []).slice().sort((a, b) => shardChip(a).rank - shardChip(b).rank);
	for (const s of shards) out.push(...troublesOfShard(s));
	out.push(...troublesOfReading(shards));
	if (c.cache?.down) out.push(`The bucket did not answer the last read: ${c.cache.down}`);
	if (c.cache?.off) out.push(`The disk cache stores no pages, so more is read from the bucket: ${c.cache.off}`);
	return out;
}

/** The state of a member, in a word. */
export function memberState(m: Member, newest: number): string {
	if (m.drained) return "drained";
	if (m.ended) return "not running";
	if (m.follows === 0) return "follows none yet";
	return m.follows < newest ? `follows ${m.follows}` : "follows";
}

export interface ClusterTotals {
	shards: number;
	late: number;
	/** Of all shards that are known here. */
	bytes: number;
	requests: number;
}

export function clusterTotals(c: Cluster): ClusterTotals {
	const shards = c.shards ?? [];
	return {
		shards: shards.length,
		late: shards.filter((s) => s.late || s.state === "failing").length,
		bytes: shards.reduce((n, s) => n + (s.bytes ?? 0), c.shard?.bytes ?? 0),
		requests: Object.values(c.requests ?? {}).reduce((n, r) => n + r.requests, 0),
	};
}

/** In the currency of the configured prices. */
export function money(v: number): string {
	if (v === 0) return "0";
	if (v < 0.005) return "under 0.01";
	return v < 100 ? v.toFixed(2) : Math.round(v).toLocaleString("en");
}

/** A lag; under ten seconds with a digit behind the point. */
export function lag(seconds: number | undefined): string {
	if (seconds === undefined) return "–";
	if (seconds < 120) return `${digits(seconds)} s`;
	if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
	return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

export const hitRate = (c: Cache): string =>
	c.hit_rate === undefined ? "nothing read yet" : formatPercent(100 * c.hit_rate);
