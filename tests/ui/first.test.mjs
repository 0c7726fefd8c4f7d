// The first minute: steps, causes of errors, and the range that fits what is stored.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { defaultrange, firststeps } = page;

const NOW = 1700000000;
const at = (s) => new Date((NOW + s) * 1000).toISOString();
const row = (health, more = {}) => ({
	profile: "process_cpu",
	discoveredLabels: { __address__: "a:1" },
	labels: {},
	scrapePool: "j",
	scrapeUrl: "http://a:1/p",
	lastError: health === "down" ? "connect a:1: Connection refused" : "",
	health,
	...more,
});
const steps = (rows, jobs = ["j"], more = {}) =>
	firststeps.firstSteps({ activeTargets: rows, ...more }, jobs, NOW);

test("what stands between a configuration and its first profile", () => {
	assert.equal(steps([], []).kind, "unconfigured");
	assert.equal(steps([]).kind, "empty");
	assert.equal(steps([row("unknown"), row("down")]).kind, "waiting");
	assert.equal(steps([row("up"), row("down")]).kind, "waiting");
	const failing = steps([row("down"), row("down", { discoveredLabels: { __address__: "b:1" } })]);
	assert.deepEqual([failing.kind, failing.targets, failing.profiles], ["failing", 2, 2]);
	assert.deepEqual(failing.error, {
		url: "http://a:1/p",
		error: "connect a:1: Connection refused",
		cause: firststeps.likelyCause("Connection refused"),
	});
	assert.notEqual(failing.error.cause, "");
	const broken = steps([], ["j"], { scrapePoolErrors: { j: "target_limit exceeded" } });
	assert.deepEqual(broken.error, { url: "j", error: "target_limit exceeded", cause: "" });
});

test("the first profile is that of the target which is complete first", () => {
	const due = (...rows) => steps(rows).dueIn;
	assert.equal(due(row("unknown", { nextProfile: at(14) }), row("unknown", { nextProfile: at(6) })), 6);
	// One that was scraped had nothing to store; one that failed is not counted on.
	assert.equal(due(row("up", { nextProfile: at(2) }), row("unknown", { nextProfile: at(9) })), 9);
	assert.equal(due(row("up", { nextProfile: at(2) })), 2);
	assert.equal(due(row("down", { nextProfile: at(2) })), null);
	assert.equal(due(row("unknown")), null, "just after the start");
	for (const [s, text] of [
		[5.2, "expected in 6 s"],
		[0, "expected now"],
		[-2, "expected now"],
		[-12, "12 s late"],
		[null, "after one scrape interval"],
	])
		assert.equal(firststeps.dueText(s), text);
});

test("the countdown is to the first CPU profile while that is on its way, and never grows", () => {
	const heap = { profile: "memory", nextProfile: at(0) };
	const cpu = { nextProfile: at(9) };
	const both = steps([row("unknown", heap), row("unknown", cpu)]);
	assert.deepEqual([both.dueIn, both.cpu], [9, true], "not 0 first and 9 once the heap is there");
	const later = steps([row("up", { ...heap, nextProfile: at(10) }), row("unknown", cpu)]);
	assert.deepEqual([later.dueIn, later.cpu], [9, true]);
	assert.deepEqual([steps([row("unknown", heap)]).dueIn, steps([row("unknown", heap)]).cpu], [0, false]);
	// One CPU target fails, the next is later: what was promised stays.
	const { keptDue } = firststeps;
	const shown = [null, 9, 14, null, 8, 30].reduce((all, due) => [...all, keptDue(all.at(-1) ?? null, due)], []);
	assert.deepEqual(shown, [null, 9, 9, 9, 8, 8]);
});

test("errors of scrapes have likely causes", () => {
	for (const [error, cause] of [
		["connect 127.0.0.1:1: Connection refused", /Nothing listens/],
		["lookup nowhere.example: not found", /^Host name not found/],
		["server returned HTTP status 404 Not Found", /net\/http\/pprof/],
		["server returned HTTP status 401", /^Credentials required/],
		["server returned HTTP status 500: cpu profiling already in use", /Another profiler/],
		["server returned HTTP status 503", /log/],
		["tls handshake 10.0.0.1:443: certificate verify failed", /TLS/],
		["context deadline exceeded", /in time/],
		['malformed HTTP response "SSH-2.0"', /HTTPS/],
		['malformed HTTP response: the server speaks TLS: set "scheme: https"', /add scheme: https/],
		[
			'server returned HTTP status 400 Bad Request: the target speaks TLS, set "scheme: https"',
			/add scheme: https/,
		],
		[
			'tls 127.0.0.1:1: wrong version number: the target does not speak TLS, set "scheme: http"',
			/remove scheme: https/,
		],
		["server returned HTTP status 404 Not Found; the target redirected to http://a/login", /login page/],
		["server returned HTTP status 302 Found: it leads to /x", /^Redirect to another address/],
		["pprof: field 3 is cut short", /^$/],
	])
		assert.match(firststeps.likelyCause(error), cause, error);
});

test("a first visit asks for CPU profiles while one is on its way", () => {
	const memory = [{ name: "memory" }];
	const data = (...rows) => ({ activeTargets: rows });
	assert.equal(firststeps.cpuComes([{ name: "process_cpu" }], null), false);
	assert.equal(firststeps.cpuComes(memory, null), true, "not known yet");
	assert.equal(firststeps.cpuComes(memory, data(row("unknown"))), true);
	assert.equal(firststeps.cpuComes(memory, data(row("down"))), false);
	assert.equal(firststeps.cpuComes(memory, data(row("unknown", { profile: "memory" }))), false);
});

test("the first range fits what is stored", () => {
	const age = (s) => defaultrange.storedFor({ serverTime: at(s), oldestProfile: at(0) });
	assert.equal(defaultrange.storedFor({ serverTime: at(0) }), null);
	for (const [s, seconds] of [
		[0, 300],
		[240, 300],
		[300, 300],
		[301, 900],
		[1900, 3600],
		[86400 * 30, 3600],
		[-5, 300],
	])
		assert.deepEqual(defaultrange.fittingRange(age(s)), { kind: "relative", seconds }, `${s} s`);
});
