import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { causes, targets } = page;

const active = (pool, address, profile, health = "up", labels = {}) => ({
	profile,
	discoveredLabels: { __address__: address, __name__: profile, __profile_path__: `/p/${profile}` },
	labels: { instance: address, job: pool, ...labels },
	scrapePool: pool,
	scrapeUrl: `http://${address}/p/${profile}`,
	lastError: health === "down" ? "connection refused" : "",
	health,
});
const DATA = {
	activeTargets: [
		active("web", "a:1", "memory"),
		active("web", "a:1", "goroutine", "down"),
		active("web", "b:1", "memory", "unknown", { zone: "eu" }),
		active("api", "c:1", "memory"),
	],
	droppedTargets: [{ discoveredLabels: { __address__: "d:1" }, scrapePool: "api" }],
	droppedTargetCounts: { api: 3, empty: 0 },
	scrapePoolErrors: { broken: "no such file" },
};
const names = (pools) => pools.map((p) => p.name);

test("processes: one row each, its profiles, and each error once", () => {
	const down = { lastError: "server returned HTTP status 404 Not Found" };
	const list = targets.processes([
		{ ...active("web", "a:1", "mutex", "down"), ...down },
		active("web", "a:1", "memory"),
		{ ...active("web", "a:1", "block", "down"), ...down },
		{ ...active("web", "b:1", "memory"), warning: "doubtful", lastScrape: "2026-01-01T00:00:10Z" },
		{ ...active("web", "b:1", "goroutine"), lastScrape: "2026-01-01T00:00:20Z" },
		active("web", "b:1", "memory", "up", { zone: "eu" }),
	]);
	assert.deepEqual(
		list.map((p) => [p.address, p.state, p.targets.map((t) => t.profile)]),
		[
			["a:1", "part", ["block", "memory", "mutex"]],
			["b:1", "up", ["goroutine", "memory"]],
			["b:1", "up", ["memory"]],
		],
	);
	assert.deepEqual(
		list[0].errors.map((e) => [e.text, e.profiles, e.url]),
		[[down.lastError, ["block", "mutex"], "http://a:1/p/block"]],
	);
	assert.deepEqual(list[1].errors, []);
	assert.deepEqual(
		list[1].warnings.map((w) => [w.text, w.profiles]),
		[["doubtful", ["memory"]]],
	);
	assert.deepEqual(list[0].warnings, []);
	assert.equal(list[1].lastSuccess, Date.parse("2026-01-01T00:00:20Z") / 1000);
	assert.equal(list[0].lastSuccess, 0, "not known when");
});

test("targets: counts are of the whole pool, rows of the filter", () => {
	const all = targets.processes(DATA.activeTargets);
	const pools = (filter, health) => targets.processPools(all, DATA, filter, health);
	assert.deepEqual(
		pools("", "all").map((p) => [p.name, p.up, p.all, p.shown.length, p.error]),
		[
			["api", 1, 1, 1, ""],
			["broken", 0, 0, 0, "no such file"],
			["web", 0, 2, 2, ""],
		],
	);
	for (const [filter, health, want] of [
		["", "down", { broken: [], web: ["a:1", "b:1"] }],
		["", "up", { api: ["c:1"], broken: [] }],
		["REFUSED", "all", { broken: [], web: ["a:1"] }],
		["zone=eu b:1", "all", { broken: [], web: ["b:1"] }],
		["zone=eu a:1", "all", { broken: [] }],
	]) {
		const got = pools(filter, health);
		const shown = Object.fromEntries(got.map((p) => [p.name, p.shown.map((t) => t.address)]));
		assert.deepEqual(shown, want, `${filter} ${health}`);
		const web = got.find((p) => p.name === "web");
		if (web) assert.deepEqual([web.up, web.all], [0, 2]);
	}
});

test("the uptime line: parts of an hour, and what is known of them", () => {
	const all = targets.processes(DATA.activeTargets);
	const web = all.filter((p) => p.scrapePool === "web");
	const lines = (s) => `avg without (profile) (avg_over_time(up${s}[2m]))`;
	assert.equal(targets.uptimeQuery(web), lines('{job="web"}'));
	assert.equal(targets.uptimeQuery(all), lines(""));
	assert.equal(targets.uptimeQuery([]), null);
	assert.equal(targets.uptimeQuery(new Array(301).fill(web[0])), null, "too many");
	const end = 100000;
	const metric = { job: "web", instance: "a:1" };
	const values = [
		[end - 240, "1"],
		[end - 120, "0.5"],
		[end, "0"],
	];
	const line = targets.uptimes([{ metric, values }], end).get(targets.labelKey(web[0].labels));
	assert.equal(line.length, 30);
	assert.deepEqual(line.slice(-4), [null, 1, 0.5, 0]);
	assert.equal(targets.upShare(line), 0.5);
	assert.equal(targets.lastUp(line, end), end - 120);
	assert.deepEqual([targets.upShare(undefined), targets.lastUp([0, null], end)], [null, 0]);
});

test("the likely cause of an error", () => {
	const url = "http://shop:6999/debug/pprof/heap";
	for (const [error, want] of [
		["connect 127.0.0.1:6999: Connection refused", /^nothing listens on 6999$/],
		[
			"server returned HTTP status 404 Not Found",
			/^no profile at \/debug\/pprof\/heap; import net\/http\/pprof/,
		],
		["server returned HTTP status 401 Unauthorized", /credentials/],
		["server returned HTTP status 503 Service Unavailable", /proxy at port 6999/],
		["server returned HTTP status 500 Internal Server Error", /another profiler/],
		[
			'tls 127.0.0.1:1: wrong version number: the target does not speak TLS, set "scheme: http"',
			/^port 6999 speaks plain HTTP; remove "scheme: https"$/,
		],
		[
			'server returned HTTP status 400 Bad Request: the target speaks TLS, set "scheme: https"',
			/^port 6999 speaks TLS; add "scheme: https" to the job$/,
		],
		['malformed HTTP response: the server speaks TLS: set "scheme: https"', /^port 6999 speaks TLS;/],
		[
			'server returned HTTP status 302 Found: it leads to /x, and the job has "follow_redirects: false"',
			/^redirect not followed; set the final address, or remove "follow_redirects: false"$/,
		],
		["server returned HTTP status 307 Temporary Redirect: it does not say where to", /redirect to another address/],
		[
			'target answers a web page (Content-Type "text/html"), not a profile; the target redirected to http://sso/login?x=xxxxx',
			/^redirect to a login page;/,
		],
		[
			"server returned HTTP status 404 Not Found; the target redirected to http://b/",
			/^redirect to http:\/\/b\/; set that address if correct$/,
		],
		["stopped after 10 redirects; the target redirected to http://b/", /redirect loop/],
		["tls 127.0.0.1:1: certificate verify failed: self-signed certificate", /ca_file/],
		["tls 127.0.0.1:1: certificate verify failed: hostname mismatch", /server_name/],
		["lookup shop: Domain name not found", /^host name shop not found;/],
		["context deadline exceeded", /^no answer in time;/],
		["read 127.0.0.1:1: connection closed without an answer", /speaks TLS/],
		["read 127.0.0.1:1: Connection reset by peer", /restart/],
		['target answers a web page (Content-Type "text/html"), not a profile', /another program/],
		["connect unix:///run/app.sock: No such file or directory", /^no socket at \/run\/app\.sock; /],
		["connect unix:///run/app.sock: Connection refused", /^nothing listens on \/run\/app\.sock; /],
		["connect unix:///run/app.sock: Permission denied", /^the server's user has no write permission on \/run/],
		["connect unix:///run/app.sock: not a socket", /^$/],
		["profile is empty", /^$/],
	])
		assert.match(causes.causeOf(error, url), want, error);
	assert.match(
		causes.causeOf("connect [::1]:443: Connection refused", "https://[::1]/x"),
		/^nothing listens on 443$/,
	);
});

test("discovery: why a target is not scraped, if another shard scrapes it", () => {
	const reason = "shard 1 scrapes it (shards 0 to 2)";
	const elsewhere = { discoveredLabels: { __address__: "e:1" }, scrapePool: "api", reason };
	const found = targets.foundTargets({ ...DATA, droppedTargets: [...DATA.droppedTargets, elsewhere] });
	assert.deepEqual(
		found.filter((f) => !f.labels).map((f) => [f.discovered.__address__, f.reason]),
		[["d:1", undefined], ["e:1", reason]],
	);
});

test("discovery: a target once, whatever is scraped of it; dropped ones too", () => {
	const found = targets.foundTargets(DATA);
	assert.deepEqual(
		found.map((f) => [f.scrapePool, f.discovered.__address__, f.profiles, f.labels !== null]),
		[
			["web", "a:1", ["memory", "goroutine"], true],
			["web", "b:1", ["memory"], true],
			["api", "c:1", ["memory"], true],
			["api", "d:1", [], false],
		],
	);
	assert.deepEqual(found[0].discovered, { __address__: "a:1" });
	const pools = targets.foundPools(DATA, found, "", "all");
	assert.deepEqual(
		pools.map((p) => [p.name, p.active, p.all, p.unseen]),
		[["api", 1, 4, 2], ["broken", 0, 0, 0], ["empty", 0, 0, 0], ["web", 2, 2, 0]],
	);
	assert.deepEqual(names(targets.foundPools(DATA, found, "", "dropped")), ["api", "broken"]);
	assert.deepEqual(names(targets.foundPools(DATA, found, "instance=a", "all")), ["broken", "web"]);
});

test("many targets: pools are closed at first", () => {
	const pool = (n) => ({ shown: new Array(n) });
	assert.equal(targets.openAtFirst([pool(100), pool(100)]), true);
	assert.equal(targets.openAtFirst([pool(100), pool(101)]), false);
	assert.equal(targets.openAtFirst([pool(5000)]), true);
});

test("names of pools in one parameter", () => {
	const { read, write, toggle } = targets.listParam;
	assert.deepEqual(read(null), []);
	assert.equal(write([]), null);
	for (const list of [["a"], ["a,b", "c"], ["100%", "%2C", "x"]])
		assert.deepEqual(read(write(list)), list);
	assert.equal(toggle(null, "a"), "a");
	assert.equal(toggle("a,b", "a"), "b");
	assert.equal(toggle("a", "a"), null);
});

test("on a query node a process is a shard's, and the list says of when it is", () => {
	const of = (shard) => ({ ...active("web", "a:1", "memory"), shard });
	const data = {
		activeTargets: [of("shard-0"), of("shard-1")],
		shards: [
			{ shard: "shard-0", time: "2026-01-01T00:01:00Z", targets: 1, leftOut: 0 },
			{ shard: "shard-1", time: "2026-01-01T00:00:30Z", targets: 1, leftOut: 0 },
		],
	};
	const all = targets.processes(data.activeTargets);
	assert.deepEqual(all.map((p) => p.shard), ["shard-0", "shard-1"]);
	assert.deepEqual(targets.processPools(all, data, "shard-1", "all").map((p) => p.shown.length), [1]);
	assert.equal(targets.listedSince(data), Date.parse("2026-01-01T00:00:30Z") / 1000);
	assert.equal(targets.listedSince(DATA), 0);
	assert.ok(!("shard" in targets.processes(DATA.activeTargets)[0]));
});

test("how long a process was not up, as far back as is known", () => {
	const line = (known, value = 0) => [...new Array(30 - known).fill(null), ...new Array(known).fill(value)];
	assert.deepEqual(
		[undefined, line(0), line(1), line(3), line(29), line(30)].map(targets.notFor),
		["never", "never", "not in 2 min", "not in 6 min", "not in 58 min", "not in the past hour"],
	);
});
