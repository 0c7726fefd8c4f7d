// Who pushes profiles: the answer of /api/v1/senders, its order and filter, and what the page Senders says of a row.
import { type ProfileType, shortTypeName } from "../shared/api";
import { filterWords, holds } from "../shared/listfilter";
import { counted, formatAgo, formatNanoseconds } from "../shared/units";
import { type PushCause, pushCause } from "./causes";
import { serviceQuery } from "./fleet";
import { searchedText } from "./targets";

/** One address, user, path, job, client and shard. Absent: not known, or never. */
export interface Sender {
	address: string;
	user?: string;
	path: string;
	/** Absent if nothing was decoded. */
	job?: string;
	/** Its User-Agent. */
	client?: string;
	/** On a query node. */
	shard?: string;
	types: string[];
	/** Times are RFC 3339. */
	firstSeen: string;
	lastSeen: string;
	lastStored?: string;
	profiles: number;
	samples: number;
	/** Of bodies, as they were sent. */
	bytes: number;
	/** The usual time between requests that were stored. */
	intervalSeconds?: number;
	state: "sending" | "in part" | "refused" | "stopped" | "idle";
	/** Profiles that were refused, by reason. */
	refused?: Record<string, number>;
	refusedProfiles?: number;
	lastError?: { time: string; reason: string; message: string };
}

export interface Senders {
	/** From when on the server knows senders. */
	since: string;
	/** How many it remembers. */
	max: number;
	/** How many it forgot since for lack of room. */
	forgotten: number;
	senders: Sender[];
}

/** What can be chosen to be shown. */
export type SenderView = "all" | "trouble" | "stopped" | "sending" | "idle";

interface StateLook {
	/** The order on the page. */
	rank: number;
	view: SenderView;
	/** The class of its badge. */
	badge: string;
	hint: string;
}

export const SENDER_STATES: Record<Sender["state"], StateLook> = {
	refused: { rank: 0, view: "trouble", badge: "down", hint: "The last requests were all refused" },
	"in part": { rank: 1, view: "trouble", badge: "wait", hint: "Some of the last profiles were refused" },
	stopped: { rank: 2, view: "stopped", badge: "down", hint: "Was regular, now silent for more than five intervals" },
	sending: { rank: 3, view: "sending", badge: "up", hint: "The last requests were stored" },
	idle: { rank: 4, view: "idle", badge: "", hint: "Silent, but never regular, like a CI job" },
};

const senderTime = (time: string | undefined): number => (time ? Date.parse(time) / 1000 : NaN);

/* ---- the list ---- */

const collator = new Intl.Collator("en", { numeric: true }); // 10.0.0.2 before 10.0.0.10

/** The worst first, then by job and address; those without a job come last of their state. */
export function sortedSenders(all: Sender[]): Sender[] {
	const keyed = all.map((of) => {
		const { address, job = "" } = of;
		const rest = JSON.stringify([of.path, of.user, of.client, of.shard]);
		return { of, rank: SENDER_STATES[of.state].rank, job, address, rest };
	});
	keyed.sort(
		(a, b) =>
			a.rank - b.rank ||
			Number(a.job === "") - Number(b.job === "") ||
			collator.compare(a.job, b.job) ||
			collator.compare(a.address, b.address) ||
			(a.rest < b.rest ? -1 : 1),
	);
	return keyed.map((k) => k.of);
}

const searched = (s: Sender): string =>
	[
		s.address,
		`job=${s.job ?? ""}`,
		`user=${s.user ?? ""}`,
		`path=${s.path}`,
		`shard=${s.shard ?? ""}`,
		s.client,
		s.state,
		...s.types,
		s.lastError && `${s.lastError.reason} ${s.lastError.message}`,
	].join("\n");

export function shownSenders(sorted: Sender[], filter: string, view: SenderView): Sender[] {
	const wanted = filterWords(filter);
	return sorted.filter(
		(s) =>
			(view === "all" || SENDER_STATES[s.state].view === view) &&
			(wanted.length === 0 || holds(searchedText(s, () => searched(s)), wanted)),
	);
}

export function countViews(all: Sender[]): Record<SenderView, number> {
	const counts = { all: all.length, trouble: 0, stopped: 0, sending: 0, idle: 0 };
	for (const s of all) counts[SENDER_STATES[s.state].view]++;
	return counts;
}

/* ---- a row ---- */

/** The mean since it was first seen; null unless it sends now, and regularly. */
export function profilesPerMinute(s: Sender): number | null {
	if (s.state !== "sending" && s.state !== "in part") return null;
	const covered = senderTime(s.lastStored) - senderTime(s.firstSeen) + (s.intervalSeconds ?? NaN);
	return covered > 0 ? (60 * s.profiles) / covered : null;
}

const WINDOW_S = 3600; // Explore's own where an address has no time

/**
 * What Explore shows of its data: of this type, else of CPU or the first one stored. The window is
 * the last hour that has data. null: nothing of it is stored.
 */
export function dataOf(
	s: Sender,
	all: ProfileType[],
	now: number,
	type?: string,
): Record<string, string> | null {
	const stored = senderTime(s.lastStored);
	if (s.job === undefined || !(stored > 0)) return null;
	const names = type ? [type] : s.types.includes("process_cpu") ? ["process_cpu"] : s.types;
	const named = all.filter((t) => t.name === names.find((n) => all.some((o) => o.name === n)));
	if (named.length === 0) return null;
	const short = named.map((t) => shortTypeName(t, all));
	const query = serviceQuery(short.find((n) => !n.includes(":")) ?? short[0], "job", s.job);
	if (now - stored < WINDOW_S / 2) return { query };
	const to = Math.ceil(stored);
	return { query, from: String(to - WINDOW_S), to: String(to + 1) };
}

/** What is said below a row. */
export interface SenderNote {
	/** It is the case now; else it is of the past. */
	now: boolean;
	cause: PushCause | null;
	/** The server's own words; "" if there are none. */
	message: string;
	/** `13 s ago`; "" if not known. */
	when: string;
	/** How many were refused, by reason. */
	counts: string;
}

/** `21 min`: how long ago, without the word. */
const howLong = (seconds: number): string => formatAgo(Math.max(0, seconds)).replace(" ago", "");

function silenceOf(s: Sender, now: number): SenderNote {
	const pace = s.intervalSeconds ? formatNanoseconds(1e9 * s.intervalSeconds) : "";
	const before = pace && `; before, one request every ${pace}`;
	const cause = `Silent for ${howLong(now - senderTime(s.lastSeen))}${before}`;
	const cure = "check that the program runs and reaches this server";
	return { now: true, cause: { cause, cure }, message: "", when: "", counts: "" };
}

function refusalOf(s: Sender, now: number): SenderNote {
	const { lastError: error, refused = {}, refusedProfiles = 0 } = s;
	const reasons = Object.entries(refused)
		.sort(([, a], [, b]) => b - a)
		.map(([reason, n]) => `${n.toLocaleString("en")} ${reason}`);
	const later = senderTime(s.lastStored) > senderTime(error?.time);
	return {
		now: s.state === "refused" || s.state === "in part" || (s.state === "stopped" && !later),
		cause: error ? pushCause(error.reason, error.message) : null,
		message: error?.message ?? "",
		when: error ? formatAgo(now - senderTime(error.time)) : "",
		counts: reasons.length
			? `${counted(refusedProfiles, "profile")} refused: ${reasons.join(", ")}`
			: "",
	};
}

/** That it has stopped, and its last error. */
export function notesOf(s: Sender, now: number): SenderNote[] {
	const notes = s.state === "stopped" ? [silenceOf(s, now)] : [];
	if (s.lastError || Object.keys(s.refused ?? {}).length) notes.push(refusalOf(s, now));
	return notes;
}
