// The way from a configuration to the first stored profile, as steps.
import type { ProfileType, Target, Targets } from "../shared/api";

export interface FirstError {
	url: string;
	error: string;
	/** The likely cause, in words; "" if none is known. */
	cause: string;
}

/**
 * `unconfigured`: no job scrapes anything. `empty`: the jobs have no targets. `failing`: every
 * target has failed. `waiting`: the first profile is under way.
 */
export type FirstKind = "unconfigured" | "empty" | "failing" | "waiting";

export interface FirstSteps {
	kind: FirstKind;
	jobs: number;
	targets: number;
	/** Of all targets together: each is scraped for several. */
	profiles: number;
	up: number;
	down: number;
	/** CPU profiles are on their way, so `dueIn` is of the first of them. */
	cpu: boolean;
	/** Seconds until the first profile is complete, negative if it is late; null if not known. */
	dueIn: number | null;
	error: FirstError | null;
}

const CAUSES: [RegExp, string][] = [
	[/set "scheme: https"$/, "The target speaks TLS: add scheme: https to the job."],
	[/set "scheme: http"$/, "The target does not speak TLS: remove scheme: https from the job."],
	[
		/redirected to \S*(log-?in|sign-?in|sso|oauth|\bauth\b)/i,
		"Redirect to a login page: set basic_auth or authorization of the job.",
	],
	[
		/redirected to |HTTP status 30\d/,
		"Redirect to another address: set that address if correct.",
	],
	[
		/connection refused/i,
		"Nothing listens at this address: check that the program runs, and the port.",
	],
	[
		/^(proxy .*)?lookup /i,
		"Host name not found: check the spelling and the DNS of this machine.",
	],
	[
		/HTTP status 404/,
		"No profile at this path. A Go program needs " +
			'import _ "net/http/pprof"; set another path by path_prefix in profiling_config.',
	],
	[
		/HTTP status 40[13]/,
		"Credentials required: set basic_auth, authorization or tls_config of the job.",
	],
	[
		/already in use|another profile/i,
		"Another profiler profiles the program; only one can at a time.",
	],
	[/HTTP status 5/, "The program failed to make the profile: see its log."],
	[
		/certificate|tls|ssl/i,
		"TLS failed: check scheme and tls_config of the job.",
	],
	[
		/deadline exceeded|nothing received|timed out/i,
		"No answer in time: check firewalls and scrape_timeout.",
	],
	[
		/malformed HTTP/i,
		"The target does not speak HTTP; for HTTPS, set scheme: https in the job.",
	],
	[
		/no route|unreachable/i,
		"No route to this address: check the address and the network.",
	],
];

export function likelyCause(error: string): string {
	return CAUSES.find(([pattern]) => pattern.test(error))?.[1] ?? "";
}

const CPU = "process_cpu";

const addressOf = (t: Target): string =>
	`${t.scrapePool} ${t.discoveredLabels.__address__ ?? t.labels.instance ?? t.scrapeUrl}`;

/** `now`: the server's time, in seconds. */
export function firstSteps(data: Targets, jobs: string[], now: number): FirstSteps {
	const rows = data.activeTargets ?? [];
	const down = rows.filter((t) => t.health === "down");
	const up = rows.filter((t) => t.health === "up").length;
	const fresh = rows.filter((t) => t.health === "unknown");
	// Others come before the first CPU profile; counting to one after the other would jump.
	const cpu = fresh.filter((t) => t.profile === CPU);
	const awaited = cpu.length ? cpu : fresh.length ? fresh : rows.filter((t) => t.health === "up");
	const due = awaited
		.map((t) => Date.parse(t.nextProfile ?? "") / 1000)
		.filter(Number.isFinite);
	const [pool, why] = Object.entries(data.scrapePoolErrors ?? {})[0] ?? [];
	const first: FirstError | null = down.length
		? { url: down[0].scrapeUrl, error: down[0].lastError, cause: "" }
		: pool !== undefined
			? { url: pool, error: why, cause: "" }
			: null;
	if (first) first.cause = likelyCause(first.error);
	const kind =
		jobs.length === 0 && rows.length === 0
			? "unconfigured"
			: rows.length === 0
				? "empty"
				: down.length === rows.length
					? "failing"
					: "waiting";
	return {
		kind,
		jobs: jobs.length,
		targets: new Set(rows.map(addressOf)).size,
		profiles: rows.length,
		up,
		down: down.length,
		cpu: cpu.length > 0,
		dueIn: due.length ? Math.min(...due) - now : null,
		error: first,
	};
}

/** Whether a CPU profile is on its way to a server that has none yet. */
export function cpuComes(types: ProfileType[], data: Targets | null): boolean {
	if (types.some((t) => t.name === CPU)) return false;
	if (!data) return true;
	return (data.activeTargets ?? []).some((t) => t.profile === CPU && t.health === "unknown");
}

/**
 * What is counted down to, in seconds since 1970: the earliest time seen so far, so that the number
 * never grows. `kept`: of the look before.
 */
export function keptDue(kept: number | null, due: number | null): number | null {
	if (kept === null || due === null) return kept ?? due;
	return Math.min(kept, due);
}

/** When the first profile is there, in words. */
export function dueText(dueIn: number | null): string {
	if (dueIn === null) return "after one scrape interval";
	const s = Math.ceil(dueIn);
	if (s > 0) return `expected in ${s} s`;
	return s > -3 ? "expected now" : `${-s} s late`;
}
