// Findings: each kind is found, is not found where nothing is wrong, and all are ranked.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { findings, findingsdown, findingsgrowth, findingsslower, fleet } = page;

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const NOW = 1700000000;
const vector = (...rows) => ({ result: rows.map(([metric, v]) => ({ metric, value: [NOW, String(v)] })) });
const said = (f) => `${f.who}: ${f.function ? `${f.function} ` : ""}${f.text}`;
const params = (href) => {
	const [path, query] = href.split("?");
	return { path, ...Object.fromEntries(new URLSearchParams(query)) };
};

/* ---- growth ---- */

const series = (n, of, step = 10) => Array.from({ length: n }, (_, i) => [NOW + step * i, of(i)]);
/** -1 to 1, the same in every run. */
function noise(seed) {
	let state = seed >>> 0;
	return () => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return state / 2 ** 31 - 1;
	};
}
const grows = (points, before = [], least = MIB) => findingsgrowth.growing(points, before, least) !== null;

test("growth: a leak is found within two minutes, also on top of noise and after a restart", () => {
	const leak = findingsgrowth.growing(series(12, (i) => (100 + 6 * i) * MIB), [], MIB);
	assert.ok(Math.abs(leak.slope * 10 - 6 * MIB) < 1);
	assert.equal(grows(series(11, (i) => (100 + 6 * i) * MIB)), false, "too early to tell");
	const draw = noise(1);
	assert.ok(grows(series(60, (i) => (100 + i + 4 * draw()) * MIB)));
	const restarted = series(60, (i) => (i < 20 ? 100 + i : 20 + 6 * (i - 20)) * MIB);
	assert.ok(grows(restarted), "it is higher than before the restart");
	const notYet = series(60, (i) => (i < 40 ? 300 + i : 20 + 6 * (i - 40)) * MIB);
	assert.equal(grows(notYet), false, "it was higher before the restart");
});

test("growth: noise, a collector's sawtooth, a cache that fills and small amounts say nothing", () => {
	let found = 0;
	for (let seed = 1; seed <= 500; seed++) {
		const draw = noise(seed);
		found += grows(series(60, () => (100 + 30 * draw()) * MIB));
	}
	assert.equal(found, 0, "of 500 noisy windows");
	let walks = 0;
	for (let seed = 1; seed <= 2000; seed++) {
		const draw = noise(seed);
		let level = 0;
		walks += grows(series(60, () => (100 + (level = 0.8 * level + 10 * draw())) * MIB));
	}
	assert.ok(walks <= 2, `${walks} of 2,000 windows whose noise has a memory`);
	for (const tooth of [3, 7, 20, 30])
		for (let from = 0; from < tooth; from++)
			assert.equal(
				grows(series(60, (i) => (100 + (200 / tooth) * ((i + from) % tooth)) * MIB)),
				false,
				`a tooth of ${tooth} points, from ${from}`,
			);
	const rising = series(60, (i) => (100 + 2 * i) * MIB);
	const tooth = series(60, (i) => (120 + 2 * i) * MIB).map(([t, v]) => [t - 600, v]);
	assert.ok(grows(rising));
	assert.equal(grows(rising, tooth), false, "a longer tooth: the range before was as high");
	assert.equal(grows(series(60, (i) => 100 * MIB * (1 - Math.exp(-i / 8)))), false, "a cache that fills");
	assert.equal(grows(series(60, (i) => (1000 + i) * MIB)), false, "6 % of what it is");
	assert.equal(grows(series(60, (i) => (100 + i) * 1024)), false, "60 KiB");
	assert.equal(grows(series(60, (i) => (100 - i) * MIB)), false);
});

const times = fleet.fleetTimes({ start: NOW - 600, end: NOW }, 10);
const matrix = (by) => ({
	result: Object.entries(by).map(([job, of]) => ({
		metric: job ? { job } : {},
		values: series(60, of).map(([t, v]) => [t, String(v)]),
	})),
});

test("growth: a line with its rate; more processes are no leak; what is asked about candidates", () => {
	const levels = findingsgrowth.growthLevels("memory", "goroutine");
	const answers = {
		"memory over time": matrix({
			leaky: (i) => 100 * MIB + (i * 2.3 * GIB) / 360,
			"a.b": (i) => (100 + 2 * i) * MIB,
			calm: () => 50 * MIB,
		}),
		"tasks over time": matrix({ calm: (i) => 100 + 10 * i }),
	};
	const found = findingsgrowth.growthCandidates("job", levels, answers);
	assert.deepEqual(found.map((c) => [c.level.key, c.service]), [["memory", "leaky"], ["memory", "a.b"], ["tasks", "calm"]]);
	const lines = (more) => findings.ranked(findingsgrowth.growthFindings("job", found, more, { range: "15m" }));
	assert.deepEqual(lines({}).map(said), ["leaky: grows 2.3 GiB/h", "a.b: grows 720 MiB/h", "calm: grows 3.6 k goroutines/h"]);
	assert.deepEqual(params(lines({})[0].href), { path: "explore", query: 'memory{job="leaky"}', range: "15m" });
	const scaled = { "processes over time": matrix({ leaky: () => 3, "a.b": (i) => 100 + 2 * i }) };
	assert.deepEqual(lines(scaled).map((f) => f.who), ["leaky", "calm"], "each process of a.b needs the same");

	const asks = (oldest) => findingsgrowth.growthQuestions("job", found, times, oldest);
	assert.deepEqual(asks(NOW - 610).map((a) => a.key), ["processes over time"], "nothing is stored before");
	const all = asks(NOW - 900);
	assert.deepEqual(all.map((a) => a.args.query), [
		'count by (job) (up{job=~"a\\\\.b|calm|leaky"})',
		`total(merge by (job) (memory{job=~"a\\\\.b|leaky"}[${times.step}s]))`,
		`total(merge by (job) (goroutine{job=~"calm"}[${times.step}s]))`,
	]);
	assert.equal(Number(all[1].args.start), times.grid.start - Math.floor(300 / times.step) * times.step);
	assert.deepEqual(findingsgrowth.growthQuestions("job", [], times, 0), []);
});

/* ---- functions ---- */

const minutes = (v) => Array.from({ length: 8 }, (_, i) => [NOW - 525 + 75 * i, String(v)]);
const version = (job, v, cost, values = minutes(cost)) => ({ metric: { job, version: v }, values });
const share = (job, v, name, part) => [{ job, version: v, function: name }, part];
const SHOP = {
	"versions over time": {
		result: [version("shop", "v1", 5e9), version("shop", "v2", 6e9), version("calm", "v1", 9e9), version("calm", "v2", 9e9)],
	},
	"functions by version": vector(
		share("shop", "v2", "main.scoreItems", 0.33),
		share("shop", "v2", "main.sign", 0.06),
		share("shop", "v1", "main.scoreItems", 0.07),
		share("shop", "v1", "main.sign", 0.09),
		share("calm", "v1", "main.f", 0.5),
		share("calm", "v2", "main.f", 0.51),
	),
};
const screen = { by: "job", version: "version", times, before: null };

test("two versions: the one that came last against the other, where a function rose", () => {
	const [c, ...others] = findingsslower.comparisons(screen, SHOP, new Map());
	assert.equal(others.length, 0, "calm's versions do not differ");
	const asked = findingsslower.changedQuestions([c])[0];
	assert.equal(asked.args.query, 'changed(cpu{job="shop",version="v2"}[10m], cpu{job="shop",version="v1"}[10m])');
	const answers = { [asked.key]: vector([{ function: "main.scoreItems" }, 0.26], [{ function: "main.x", pod: "p" }, 0.9]) };
	const [ask] = findingsslower.shareQuestions([c], answers);
	assert.equal(ask.args.query, 'flat_share(merge(cpu{job="shop",version="v2"}[10m]), {function="main.scoreItems"})');
	const lines = (part) => findingsslower.slowerFindings([c], { ...answers, [ask.key]: vector([{}, part]) });
	assert.deepEqual(lines(0.33).map(said), ["shop v2: main.scoreItems 4.7x of v1"]);
	assert.deepEqual(lines(0.26).map(said), ["shop v2: main.scoreItems new, 26% of CPU; not in v1"]);
	assert.deepEqual(lines(0.9), [], "not half as much again");
	assert.deepEqual(params(lines(0.33)[0].href), {
		path: "compare",
		new: 'cpu{job="shop",version="v2"}',
		base: 'cpu{job="shop",version="v1"}',
		from: String(NOW - 600),
		to: String(NOW),
		shift: "0",
		pick: "main.scoreItems",
	});
	// Chance explains it, or there is not enough data yet.
	assert.deepEqual(findingsslower.slowerFindings([c], { [asked.key]: vector() }), []);
	assert.deepEqual(findingsslower.shareQuestions([c], {}), []);
});

test("two versions: not where one is gone, and v10 comes after v9", () => {
	const over = (...result) => ({ ...SHOP, "versions over time": { result } });
	const gone = version("shop", "v1", 5e9, minutes(5e9).slice(0, 3));
	assert.deepEqual(findingsslower.comparisons(screen, over(gone, version("shop", "v2", 6e9)), new Map()), []);
	const ten = {
		"versions over time": { result: [version("shop", "v10", 6e9), version("shop", "v9", 5e9)] },
		"functions by version": vector(share("shop", "v10", "main.f", 0.5), share("shop", "v9", "main.f", 0.1)),
	};
	const [c] = findingsslower.comparisons(screen, ten, new Map());
	assert.deepEqual([c.who, c.than], ["shop v10", "v9"]);
	assert.equal(findingsslower.versionLabel("job", ["job", "version"]), "version");
	assert.equal(findingsslower.versionLabel("version", ["job", "version"]), "", "each row is a version");
	assert.deepEqual(findingsslower.slowerQuestions({ ...screen, version: "" }), []);
});

test("against the time before: the windows, and a line", () => {
	const two = (seconds, stored) => findingsslower.twoWindows({ start: NOW - seconds, end: NOW }, NOW - stored);
	assert.deepEqual(two(300, 239), null, "two minutes each are the least");
	assert.deepEqual(two(300, 365), { end: NOW, seconds: 180 }, "halves of what is stored");
	assert.deepEqual(two(900, 9000), { end: NOW, seconds: 900 });
	const hours = two(30 * 86400, 90 * 86400);
	assert.equal(hours.seconds, 86400, "a day at most");
	assert.equal(hours.end % 3600, 0);
	const before = two(900, 9000);
	const timed = { ...screen, version: "", before };
	assert.deepEqual(findingsslower.slowerQuestions(timed).map((a) => a.args.query), [
		"topk(10, flat by (job, function) (diff(merge by (job) (rate(cpu[15m])), merge by (job) (rate(cpu[15m] offset 15m)))))",
	]);
	const gained = { gained: vector([{ job: "api", function: "main.f" }, 2e8], [{ job: "calm", function: "g" }, 1e5]) };
	const [c, ...others] = findingsslower.comparisons(timed, gained, new Map([["api", 2]]));
	assert.equal(others.length, 0, "a ten-thousandth of a core is no news");
	const [asked] = findingsslower.changedQuestions([c]);
	assert.equal(asked.args.query, 'changed(cpu{job="api"}[15m], cpu{job="api"}[15m] offset 15m)');
	const answers = { [asked.key]: vector([{ function: "main.f" }, 0.1]) };
	const [ask] = findingsslower.shareQuestions([c], answers);
	const [line] = findingsslower.slowerFindings([c], { ...answers, [ask.key]: vector([{}, 0.2]) });
	assert.equal(said(line), "api: main.f 2.0x of the 15m before");
	assert.equal(params(line.href).shift, "15m");
	assert.ok(Math.abs(line.cost - 0.2) < 1e-9, "a tenth of two cores");
});

test("the number of tests is bounded, however many services have two versions", () => {
	const many = Array.from({ length: 100 }, (_, i) => `s${i}`);
	const answers = {
		"versions over time": { result: many.flatMap((s, i) => [version(s, "v1", 1e9), version(s, "v2", (1 + i) * 1e9)]) },
		"functions by version": vector(...many.flatMap((s) => [share(s, "v2", "main.f", 0.5), share(s, "v1", "main.f", 0.1)])),
	};
	const found = findingsslower.comparisons(screen, answers, new Map());
	assert.deepEqual(found.map((c) => c.service), ["s99", "s98", "s97", "s96"], "those that cost most");
});

/* ---- down, alerts, pushes ---- */

const down = (job, port, profile, lastError) => ({
	profile,
	discoveredLabels: { __address__: `10.0.0.1:${port}` },
	labels: { job, instance: `10.0.0.1:${port}` },
	scrapePool: job,
	scrapeUrl: `http://10.0.0.1:${port}/debug/pprof/${profile}`,
	lastError,
	lastScrape: "2026-01-01T00:00:00Z",
	health: "down",
});
const REFUSED = "connect 10.0.0.1:6999: Connection refused";

test("down: a service by its cause, some of its processes, one profile of one", () => {
	const activeTargets = [
		down("billing", 6999, "memory", REFUSED),
		down("billing", 6999, "process_cpu", REFUSED),
		down("api", 1, "memory", "server returned HTTP status 401"),
		down("web", 2, "memory", "pprof: cut short"),
		down("web", 3, "memory", "pprof: cut short"),
	];
	const all = new Map([["billing", 2], ["api", 10], ["web", 2]]);
	const lines = findings.ranked(findingsdown.downFindings("job", { activeTargets }, all));
	assert.deepEqual(lines.map(said), [
		"web: 2 processes down: pprof: cut short",
		"billing: down: nothing listens on 6999",
		'api: 10.0.0.1:1 fails (memory): credentials required; set "authorization" or "basic_auth"',
	]);
	assert.deepEqual(params(lines[1].href), { path: "targets", state: "down", filter: "10.0.0.1:6999" });
	assert.equal(params(lines[0].href).filter, "job=web");
	assert.deepEqual(findingsdown.downFindings("job", { activeTargets: [] }, all), []);
});

test("alerts: those that fire, one line for each name and service", () => {
	const alert = (alertname, job, state, summary = "") => ({ labels: { alertname, job }, annotations: { summary }, state });
	const lines = findings.alertFindings("job", [
		alert("Costly", "shop", "firing", "json takes 12 %"),
		alert("Many", "api", "firing"),
		alert("Many", "api", "firing"),
		alert("Quiet", "api", "pending"),
		{ labels: { alertname: "Fleet" }, annotations: {}, state: "firing" },
	]);
	assert.deepEqual(params(lines[0].href), { path: "alerts", state: "firing", filter: "Costly" });
	assert.deepEqual(findings.ranked(lines).map(said), ["api: Many: 2 firing", "Fleet: firing", "shop: Costly: json takes 12 %"]);
	assert.deepEqual(findings.alertFindings("job", []), []);
});

test("pushes: refused, stopped; those that are well say nothing", () => {
	const sender = (address, state, more = {}) => ({
		address,
		job: "ci",
		state,
		types: [],
		firstSeen: "2023-11-14T22:00:00Z",
		lastSeen: "2023-11-14T22:00:00Z",
		lastError: state === "refused" ? { time: "2023-11-14T22:13:00Z", reason: "unauthorized", message: "unknown token" } : undefined,
		...more,
	});
	const told = (...senders) => findings.senderFindings({ senders }, NOW).map(said);
	assert.deepEqual(told(sender("10.0.0.7", "refused")), ["ci: pushes refused: unknown token"]);
	assert.deepEqual(told(sender("a", "refused"), sender("b", "refused")), ["ci: 2 senders: pushes refused: unknown token"]);
	assert.deepEqual(told(sender("a", "sending"), sender("b", "idle")), []);
	assert.match(told(sender("a", "stopped", { lastStored: "2023-11-14T22:00:00Z" }))[0], /^ci: pushes stopped: silent for 13 min/);
	const [line] = findings.senderFindings({ senders: [sender("10.0.0.7", "refused")] }, NOW);
	assert.deepEqual(params(line.href), { path: "senders", state: "trouble", filter: "10.0.0.7" });
});

test("ranked: what is down first, then alerts, pushes, growth, functions; within a kind by cost", () => {
	const f = (kind, cost) => ({ kind, cost, who: kind, text: String(cost), href: "" });
	const all = [f("slower", 9), f("growth", 1), f("growth", 5), f("refused", 0), f("alert", 1), f("down", 1)];
	assert.deepEqual(findings.ranked(all).map((x) => `${x.kind} ${x.text}`), [
		"down 1", "alert 1", "refused 0", "growth 5", "growth 1", "slower 9",
	]);
});
