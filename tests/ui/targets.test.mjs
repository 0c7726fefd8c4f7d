import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { targets } = page;

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

test("targets: counts are of the whole pool, rows of the filter", () => {
	const all = targets.targetPools(DATA, "", "all");
	assert.deepEqual(names(all), ["api", "broken", "web"]);
	assert.deepEqual(
		all.map((p) => [p.up, p.all, p.shown.length, p.error]),
		[[1, 1, 1, ""], [0, 0, 0, "no such file"], [1, 3, 3, ""]],
	);
	for (const [filter, health, want] of [
		["", "down", { broken: [], web: ["goroutine", "memory"] }],
		["", "up", { api: ["memory"], broken: [], web: ["memory"] }],
		["REFUSED", "all", { broken: [], web: ["goroutine"] }],
		["zone=eu b:1", "all", { broken: [], web: ["memory"] }],
		["zone=eu a:1", "all", { broken: [] }],
	]) {
		const got = targets.targetPools(DATA, filter, health);
		const shown = Object.fromEntries(got.map((p) => [p.name, p.shown.map((t) => t.profile)]));
		assert.deepEqual(shown, want, `${filter} ${health}`);
		const web = got.find((p) => p.name === "web");
		if (web) assert.deepEqual([web.up, web.all], [1, 3]);
	}
});

test("discovery: why a target is not scraped, if another shard scrapes it", () => {
	const reason = "shard 1 of 3 scrapes it";
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
