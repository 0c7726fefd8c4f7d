// An answer of GET /api/v1/senders as the page Senders expects it: each state, old and new errors, senders that were
// refused before their profiles were decoded. The times are relative to `now`, in seconds.
export function sendersAt(now) {
	const ago = (s) => new Date(1000 * (now - s)).toISOString();
	const regular = (job, address, more = {}) => ({
		address, path: "/ingest", job, client: "pyroscope-go/1.2.0", types: ["process_cpu", "memory"],
		firstSeen: ago(36000), lastSeen: ago(4), lastStored: ago(4), profiles: 4800, samples: 960000,
		bytes: 125829120, intervalSeconds: 15, state: "sending", ...more,
	});
	const refused = (address, reason, message, more = {}) => ({
		address, path: "/ingest", types: [], firstSeen: ago(900), lastSeen: ago(9), profiles: 0, samples: 0,
		bytes: 40960, state: "refused", refused: { [reason]: 60 }, refusedProfiles: 60,
		lastError: { time: ago(9), reason, message }, ...more,
	});
	const senders = [
		regular("shop", "10.0.0.10"),
		regular("shop", "10.0.0.2", { user: "agent" }),
		regular("cart", "10.0.0.4", {
			client: undefined, lastError: { time: ago(7200), reason: "unavailable", message: "disk is full: nothing can be written" },
			refused: { unavailable: 4 }, refusedProfiles: 4,
		}),
		regular("fleet/profiler", "2001:db8::7", {
			path: "/v1development/profiles", client: "OpenTelemetry Collector Contrib/0.144.0 (linux/amd64)",
			types: ["samples", "off_cpu"], intervalSeconds: 5,
		}),
		regular("billing", "10.0.0.30", {
			state: "in part", refused: { "invalid input": 37, "exists already": 2 }, refusedProfiles: 39,
			lastError: {
				time: ago(4), reason: "invalid input",
				message: "profile of 2026-11-28T10:00:00Z is too old: profiles after 2026-11-28T12:00:00Z are accepted",
			},
		}),
		regular("search", "10.0.0.31", {
			path: "/push.v1.PusherService/Push", client: "pyroscope-rs/0.5", state: "in part", types: ["process_cpu"],
			refused: { "limit exceeded": 3 }, refusedProfiles: 3,
			lastError: { time: ago(40), reason: "limit exceeded", message: "41 labels, limit 32" },
		}),
		regular("mail", "10.0.0.40", { state: "stopped", lastSeen: ago(1260), lastStored: ago(1260) }),
		regular("queue", "10.0.0.41", {
			state: "stopped", lastSeen: ago(180000), lastStored: ago(180000), firstSeen: ago(900000), intervalSeconds: 60,
			user: "agent", refused: { "i/o error": 1 }, refusedProfiles: 1,
			lastError: { time: ago(500000), reason: "i/o error", message: "commit: I/O error" },
		}),
		regular("bench", "10.1.0.9", {
			path: "/api/v1/ingest", client: "epitool/0.9", user: "ci", types: ["process_cpu"], state: "idle",
			lastSeen: ago(5400), lastStored: ago(5400), intervalSeconds: undefined, profiles: 1, samples: 2200, bytes: 81920,
		}),
		refused("10.9.0.1", "unauthorized", "unknown token"),
		refused("10.9.0.2", "forbidden", 'user "shop" lacks the role ingest; it has read', { user: "shop" }),
		refused("10.9.0.3", "not found", 'no profiles accepted at "/v1/profiles"; send to /ingest, /v1development/profiles', {
			path: "/v1/profiles", client: "OTel-OTLP-Exporter-Python/1.29",
		}),
		refused("10.9.0.4", "invalid input", 'not a pprof profile: it begins with "<!DOCTYPE html><html><head>"', {
			path: "/api/v1/ingest", client: "curl/7.88.1", job: "proxy", types: ["process_cpu"],
		}),
	].map((s) => Object.fromEntries(Object.entries(s).filter(([, v]) => v !== undefined)));
	return { since: ago(1000000), max: 10000, forgotten: 0, senders };
}

/** `n` senders of every state, each with an address of its own. */
export function manySenders(now, n) {
	const { senders, ...rest } = sendersAt(now);
	const many = Array.from({ length: n }, (_, i) => ({
		...senders[i % senders.length],
		address: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
	}));
	return { ...rest, forgotten: 7, senders: many };
}
