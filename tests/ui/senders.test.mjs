import assert from "node:assert/strict";
import test from "node:test";
import { manySenders, sendersAt } from "../browser/senders_answer.mjs";
import { page } from "./page.mjs";

const { causes, senders } = page;

const NOW = 1_790_000_000;
const { senders: ALL } = sendersAt(NOW);
const find = (address) => ALL.find((s) => s.address === address);
const rfc = (seconds) => new Date(1000 * seconds).toISOString();
const addresses = (list) => list.map((s) => s.address);

test("senders: trouble first, then what stopped, by job and address", () => {
	assert.deepEqual(
		senders.sortedSenders(ALL).map((s) => [s.state, s.job ?? "", s.address]),
		[
			["refused", "proxy", "10.9.0.4"],
			["refused", "", "10.9.0.1"],
			["refused", "", "10.9.0.2"],
			["refused", "", "10.9.0.3"],
			["in part", "billing", "10.0.0.30"],
			["in part", "search", "10.0.0.31"],
			["stopped", "mail", "10.0.0.40"],
			["stopped", "queue", "10.0.0.41"],
			["sending", "cart", "10.0.0.4"],
			["sending", "fleet/profiler", "2001:db8::7"],
			["sending", "shop", "10.0.0.2"],
			["sending", "shop", "10.0.0.10"],
			["idle", "bench", "10.1.0.9"],
		],
	);
	const twins = ["/b", "/a"].map((path) => ({ ...find("10.0.0.2"), path }));
	assert.deepEqual(senders.sortedSenders(twins).map((s) => s.path), ["/a", "/b"], "whatever the answer's order");
});

test("senders: the filter's words and its choice of states", () => {
	const sorted = senders.sortedSenders(ALL);
	assert.deepEqual(senders.countViews(ALL), { all: 13, trouble: 6, stopped: 2, sending: 4, idle: 1 });
	for (const [filter, view, want] of [
		["", "trouble", ["10.9.0.4", "10.9.0.1", "10.9.0.2", "10.9.0.3", "10.0.0.30", "10.0.0.31"]],
		["", "stopped", ["10.0.0.40", "10.0.0.41"]],
		["", "idle", ["10.1.0.9"]],
		["JOB=shop", "all", ["10.0.0.2", "10.0.0.10"]],
		["user=agent", "all", ["10.0.0.41", "10.0.0.2"]],
		["shop role", "all", ["10.9.0.2"]],
		["off_cpu", "all", ["2001:db8::7"]],
		["pyroscope-rs", "trouble", ["10.0.0.31"]],
		["stopped", "all", ["10.0.0.40", "10.0.0.41"]],
		["nobody's", "sending", []],
	])
		assert.deepEqual(addresses(senders.shownSenders(sorted, filter, view)), want, `${filter} ${view}`);
});

test("10,000 senders: each is read once to be sorted, and once to be searched", () => {
	let reads = 0;
	const counted = manySenders(NOW, 10_000).senders.map((s) => {
		const { address } = s;
		return Object.defineProperty({ ...s }, "address", { get: () => (reads++, address) });
	});
	const sorted = senders.sortedSenders(counted);
	assert.equal(reads, 10_000, "to be sorted");
	reads = 0;
	for (const filter of ["s", "sh", "sho", "shop", "shop 10.0.0.", "nothing"]) senders.shownSenders(sorted, filter, "all");
	assert.equal(reads, 10_000, "to be searched six times");
	reads = 0;
	senders.shownSenders(sorted, "", "trouble");
	senders.countViews(sorted);
	assert.equal(reads, 0);
});

test("senders: the pace of those that send, over the time that is known", () => {
	const of = (more) => senders.profilesPerMinute({ ...find("10.0.0.2"), ...more });
	// 4,800 profiles in 10 hours, the first of them covers the interval before.
	assert.equal(of({ firstSeen: rfc(NOW - 3585), lastStored: rfc(NOW), profiles: 480 }), 8);
	assert.equal(of({ firstSeen: rfc(NOW), lastStored: rfc(NOW), profiles: 2 }), 8, "one request");
	for (const more of [
		{ intervalSeconds: undefined },
		{ lastStored: undefined },
		{ state: "stopped" },
		{ state: "idle" },
		{ firstSeen: rfc(NOW + 3600), lastStored: rfc(NOW) }, // a step of the clock
	])
		assert.equal(of(more), null, JSON.stringify(more));
});

const TYPES = [
	["process_cpu", "cpu", true],
	["memory", "alloc_space", true],
	["memory", "inuse_space", false],
	["heap", "objects", false],
].map(([name, sample_type, delta]) => ({ name, sample_type, delta, type: `${name}:${sample_type}:x:y:z` }));

test("senders: the link to the data, in a window that has it", () => {
	const link = (more, type) => senders.dataOf({ ...find("10.0.0.2"), ...more }, TYPES, NOW, type);
	assert.deepEqual(link({}), { query: 'cpu{job="shop"}' });
	assert.deepEqual(link({ types: ["heap", "memory", "process_cpu"] }), { query: 'cpu{job="shop"}' }, "CPU first");
	assert.deepEqual(link({ types: ["memory"], job: 'a"b' }), { query: 'memory{job="a\\"b"}' });
	assert.deepEqual(link({}, "heap"), { query: 'heap{job="shop"}' });
	assert.equal(link({ types: ["wall"] }), null, "nothing of this type is stored");
	assert.equal(link({ job: undefined }), null);
	assert.equal(link({ lastStored: undefined }), null);
	assert.deepEqual(link({ lastStored: rfc(NOW - 7200) }), {
		query: 'cpu{job="shop"}',
		from: String(NOW - 7200 - 3600),
		to: String(NOW - 7200 + 1),
	});
});

test("senders: what is said below a row", () => {
	const notes = (address) => senders.notesOf(find(address), NOW);
	const [now, past] = [true, false];
	assert.deepEqual(notes("10.0.0.2"), []);
	assert.deepEqual(notes("10.1.0.9"), [], "a CI job comes when it comes");
	assert.deepEqual(notes("10.9.0.1"), [
		{
			now,
			cause: { cause: "Unknown token", cure: "compare it with the user's token_file in --web.config.file" },
			message: "unknown token",
			when: "9.0 s ago",
			counts: "60 profiles refused: 60 unauthorized",
		},
	]);
	const said = (address) => notes(address).map((n) => [n.now, n.cause?.cause, n.when, n.counts]);
	assert.deepEqual(said("10.0.0.30"), [
		[now, "Profiles too late", "4.0 s ago", "39 profiles refused: 37 invalid input, 2 exists already"],
	]);
	assert.deepEqual(
		said("10.0.0.4"),
		[[past, "Disk full on this server", "2 h ago", "4 profiles refused: 4 unavailable"]],
		"it sends again",
	);
	assert.deepEqual(notes("10.0.0.40"), [
		{
			now,
			cause: {
				cause: "Silent for 21 min; before, one request every 15 s",
				cure: "check that the program runs and reaches this server",
			},
			message: "",
			when: "",
			counts: "",
		},
	]);
	assert.deepEqual(
		said("10.0.0.41"),
		[
			[now, "Silent for 2 d; before, one request every 60 s", "", ""],
			[past, "Disk failure on this server", "6 d ago", "1 profile refused: 1 i/o error"],
		],
		"the error was before what was stored last",
	);
	const ended = { ...find("10.0.0.41"), lastError: { ...find("10.0.0.41").lastError, time: rfc(NOW - 179000) } };
	assert.deepEqual(senders.notesOf(ended, NOW).map((n) => n.now), [now, now], "the error was the last that came");
	const counted = { ...find("10.0.0.2"), refused: { "invalid input": 1 }, refusedProfiles: 1 };
	assert.deepEqual(
		senders.notesOf(counted, NOW),
		[{ now: past, cause: null, message: "", when: "", counts: "1 profile refused: 1 invalid input" }],
		"its error was forgotten",
	);
});

test("the likely cause of a refused push, and its cure", () => {
	for (const [reason, message, cause, cure] of [
		["unauthorized", "no credentials", /no password and no token/, /basic_auth_users.*token_file.*--web\.config\.file/],
		["unauthorized", "unknown token", /Unknown token/, /token_file/],
		["unauthorized", "unknown name or password", /Wrong name or password/, /basic_auth_users/],
		["unauthorized", "proxy header from an untrusted address", /proxy/, /trusted_proxy/],
		["unauthorized", "Unauthorized", /Missing or wrong credentials/, /basic_auth_users/],
		["forbidden", 'user "shop" lacks the role ingest; it has read', /User "shop" may not push/, /role ingest/],
		["forbidden", "Forbidden: a client certificate is required", /^Client certificate/, /client_auth_type/],
		["forbidden", `request of another site's page (origin "http://x"): only this server's pages`, /from another site/, /--web\.external-url/],
		["forbidden", "no", /may not push/, /--web\.config\.file/],
		["not found", "ingest is disabled: start with --web.enable-ingest", /Pushes are off/, /--web\.enable-ingest/],
		["not found", "ingest is disabled on a query node: send to a shard", /takes no profiles in/, /send to a shard/],
		["not found", 'no profiles accepted at "/v1/profiles"; send to /ingest', /Wrong path/, /\/v1development\/profiles/],
		["not found", 'no profiles accepted at "/v1experimental/profiles"; send to', /Wrong path/, /\/v1development\/profiles/],
		["not found", 'no profiles accepted at "/upload"; send to /ingest', /Wrong path/, /one of these paths/],
		["invalid input", "host \"epi\" is not a name of this server: allow with --web.allowed-host", /Unknown host name/, /--web\.allowed-host/],
		["unsupported", "Content-Type must be application/x-protobuf or application/json", /neither protobuf nor JSON/, /application\/x-protobuf/],
		["unsupported", 'Content-Encoding "snappy" is unknown; use gzip, zstd or identity', /compression: "snappy"/, /gzip, zstd or none/],
		["invalid input", "Content-Encoding is gzip, the body is not", /says compressed/, /proxies/],
		[
			"unsupported",
			"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: field 2 of a profile is not its samples; update the sender",
			/OTLP.*older than 1\.8/,
			/update/,
		],
		["invalid input", 'not a pprof profile: it begins with "<!DOCTYPE html><html>"', /web page/, /address/],
		["invalid input", 'cpu: not a pprof profile: it begins with "404 page not found"', /text/, /pprof/],
		["invalid input", 'not a pprof profile: it begins with "{"profile": 1}"', /JSON/, /pprof/],
		[
			"invalid input",
			"not pprof, folded stacks, speedscope, JFR or a format before pprof; as pprof: profile: bad varint",
			/Unknown profile format/,
			/pprof/,
		],
		["invalid input", "series[0].samples[0]: raw_profile is empty", /empty/, /profiler/],
		["invalid input", "profile is empty", /empty/, /profiler/],
		["invalid input", "the body is empty", /empty/, /profiler/],
		["invalid input", "multipart: part 2 is cut short", /SDKs/, /SDK/],
		["invalid input", "gzip: wrong checksum", /damaged or cut/, /proxies/],
		["invalid input", "request is not well-formed at resourceProfiles[0]: truncated", /damaged or cut/, /proxies/],
		["invalid input", "profile of 2020-01-01T00:00:00Z is older than the retention, which ends at 2026-01-01T00:00:00Z", /older than the retention/, /clock.*--storage\.tsdb\.retention\.time/],
		["invalid input", "profile of 2020-01-01T00:00:00Z is too old: profiles after 2026-01-01T00:00:00Z are accepted", /too late/, /clock.*--storage\.tsdb\.out-of-order-time-window/],
		["invalid input", "profile of 2020-01-01T00:00:00Z is too old: the window is closed", /too late/, /clock/],
		["invalid input", "profile of 2030-01-01T00:00:00Z is more than 10m ahead of this server's clock", /clock is ahead/, /NTP/],
		["invalid input", "the profile's time is before 1970 or after 2116", /Wrong unit/, /nanoseconds/],
		["invalid input", "profiles of 2026-01-01T00:00:00Z were deleted", /deleted/, /nothing/],
		["invalid input", 'invalid parameter "until": before from', /until/, /web\/push|parameter/],
		["invalid input", '"a b" is not a label name', /label/, /push_config/],
		["invalid input", "the value of label pod is not UTF-8", /label/, /push_config/],
		["limit exceeded", "41 labels, limit 32", /labels/, /drop_labels.*push_config/],
		["limit exceeded", "the value of label cmd is longer than 2048 bytes", /labels/, /drop_labels.*push_config/],
		["limit exceeded", "labels of the series are 70000 bytes, limit 65536", /labels/, /drop_labels.*push_config/],
		["limit exceeded", "this sender sends more than 10000 profiles per second (profiles_per_second)", /per second/, /profiles_per_second.*push_config/],
		["limit exceeded", "64 requests of this sender are in progress: try again later", /at once/, /fewer/],
		[
			"limit exceeded",
			"too many bodies at once from this address: try again later (--web.max-body-memory-per-address is 67108864 bytes)",
			/at once/,
			/--web\.max-body-memory-per-address/,
		],
		["unavailable", "too many bodies at once: try again later (--web.max-body-memory is 268435456 bytes)", /at once/, /--web\.max-body-memory\b(?!-)/],
		["limit exceeded", "the body is too large", /too large/, /smaller batches/],
		["limit exceeded", "request is more than 67108864 bytes inflated, the limit", /too large/, /smaller batches/],
		["limit exceeded", "profile is 17000000 bytes, limit 16777216", /too large/, /shorten/],
		["limit exceeded", "profile has more than 1000000 locations, the limit", /too large/, /shorten/],
		["limit exceeded", "900 profiles in a request, limit 512", /too large/, /smaller batches/],
		["exists already", "another profile of 2026-01-01T00:00:00Z of series {job=\"x\"} is stored already", /same labels/, /instance or pod/],
		["unavailable", "disk is full: nothing can be written", /Disk full on this server/, /retry/],
		["unavailable", "this server stores no profiles", /stores no profiles/, /address of a shard/],
		["unavailable", "the database is open for reading only", /stores no profiles/, /address of a shard/],
		["unavailable", "too many profiles are being sent: try again later", /busy/, /retry/],
		["unavailable", "the server is shutting down", /stopping|restart/, /retry/],
		["i/o error", "commit: I/O error", /Disk failure/, /log/],
		["out of memory", "profile: out of memory", /memory/, /retry/],
	]) {
		const got = causes.pushCause(reason, message);
		assert.ok(got, `${reason}: ${message}`);
		assert.match(got.cause, cause, message);
		assert.match(got.cure, cure, message);
	}
	assert.equal(causes.pushCause("corrupt data", "who knows"), null);
});
