// The page Targets of a server that this test starts: the steps of relabelling.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcp } from "node:net";
import { gzipSync } from "node:zlib";
import test, { after, before } from "node:test";
import { api, closeBrowser, comes, countComes, cutOff, HEAP_ALONE, openPage, shot, startServer } from "./page.mjs";

const profile = () =>
	gzipSync(
		// sample types inuse_space/bytes; one sample of one location of one function; strings
		Buffer.concat([
			Buffer.from([0x0a, 4, 8, 1, 0x10, 2]),
			Buffer.from([0x12, 6, 0x0a, 1, 1, 0x12, 1, 42]),
			Buffer.from([0x22, 6, 8, 1, 0x22, 2, 8, 1]),
			Buffer.from([0x2a, 4, 8, 1, 0x10, 3]),
			...["", "inuse_space", "bytes", "main.work"].map((s) =>
				Buffer.concat([Buffer.from([0x32, s.length]), Buffer.from(s)]),
			),
		]),
	);
/** Ports of servers that fail in one way each; nobody listens on port 1. */
const config = (address, bad) => `
global: {scrape_interval: 2s, scrape_timeout: 1s}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2"], labels: {__meta_zone: eu, long: "${"x".repeat(5000)}"}}]
    relabel_configs:
      - {source_labels: [__meta_zone], target_label: zone}
      - {source_labels: [__address__], regex: ".*:2", action: drop}
      - {target_label: after, replacement: all}
  - job_name: live
    scrape_interval: 10m
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["${address}"]}]
  - job_name: refused
    static_configs: [{targets: ["127.0.0.1:1"]}]
  - job_name: half
    profiling_config:
      pprof_config: {process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
    static_configs: [{targets: ["127.0.0.1:${bad.half}"]}]
  - job_name: plain
    scheme: https
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["127.0.0.1:${bad.half}"]}]
  - job_name: silent
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["127.0.0.1:${bad.silent}"]}]
  - job_name: nowhere
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["nosuch.invalid:80"]}]
`;

const listening = async (server) => {
	await new Promise((done) => server.listen(0, "127.0.0.1", done));
	return server;
};

let server, target, half, silent;
before(async () => {
	target = await listening(createServer((req, res) => res.end(profile())));
	half = await listening(
		createServer((req, res) => {
			if (/goroutine/.test(req.url)) res.statusCode = 404;
			res.end(res.statusCode === 404 ? "404 page not found\n" : profile());
		}),
	);
	silent = await listening(createTcp(() => {}));
	const bad = { half: half.address().port, silent: silent.address().port };
	server = await startServer({
		files: { "e.yml": config(`127.0.0.1:${target.address().port}`, bad) },
		flags: ["--web.enable-admin-api"],
	});
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	for (const s of [target, half]) {
		s?.closeAllConnections();
		s?.close();
	}
	silent?.close();
});

const open = (t) => openPage(t, `${server.base}targets`);

const pool = (page, job) =>
	page.locator(".pool", { has: page.getByRole("heading", { name: job, exact: true }) });

/** In the page: what a pool shows of its only process. */
function readPool(pool) {
	const all = (selector) => [...pool.querySelectorAll(selector)];
	const texts = (selector) => all(selector).map((e) => e.innerText.replace(/\s+/g, " ").trim());
	return {
		text: texts(".err").join(" "),
		since: texts("td.num")[0],
		errors: all(".err > div").length,
		rows: all("tbody tr:not(.error-row)").length,
		profiles: all(".chip.profile").length,
		up: all(".chip.profile.up").length,
		count: texts(".count").join(" "),
		badges: texts(".badge").map((s) => s.toLowerCase()),
	};
}

test("a process is one row: a chip per profile, each error once with its cause", async (t) => {
	const { page, problems } = await open(t);
	const never = /^(never|not in (the past hour|\d+ min))$/;
	for (const [job, profiles, up, state, last, error] of [
		["refused", 5, 0, "down", never, /^Nothing listens on 1\. connect 127\.0\.0\.1:1: Connection refused$/],
		[
			"half",
			2,
			1,
			"in part",
			/ago$/,
			/^goroutine: no profile at \/debug\/pprof\/goroutine; import net\/http\/pprof.*404/,
		],
		["plain", 1, 0, "down", never, /^Port \d+ speaks plain HTTP; remove "scheme: https"\. tls /],
		["silent", 1, 0, "down", never, /^No answer in time; .*deadline exceeded$/],
		["nowhere", 1, 0, "down", never, /^Host name nosuch\.invalid not found; .*lookup nosuch\.invalid/],
	]) {
		const of = pool(page, job);
		await of.locator(".err > div").first().waitFor();
		// Each scrape may end in another way on a busy machine, so all of a row is read at once.
		const shown = { errors: 1, rows: 1, profiles, up, count: "0 / 1 up", badges: [state], error: true, last: true };
		await comes(async () => {
			const { text, since, ...got } = await of.evaluate(readPool);
			return { ...got, error: error.test(text) || text, last: last.test(since) || since };
		}, shown, job);
	}
	assert.deepEqual(problems, []);
	await shot(page, "processes");
});

test("the last hour of a process is the mean of its `up`", async (t) => {
	// The line is asked when the page opens: numbers of both profiles are stored by then.
	const up = async (job) => {
		const { result } = await api(server.base, "query", { query: `avg(avg_over_time(up{job="${job}"}[2m]))` });
		return Number(result[0]?.value[1] ?? NaN);
	};
	await comes(async () => (await up("refused")) === 0 && (await up("half")) % 1 > 0, true, "numbers of both profiles");
	const { page, problems } = await open(t);
	const line = (job) => pool(page, job).locator("svg.uptime");
	await line("half").waitFor();
	await countComes(line("half").locator("rect"), 30);
	assert.ok((await line("half").locator("rect.part").count()) > 0, "half of its profiles");
	await line("refused").waitFor();
	assert.ok((await line("refused").locator("rect.down").count()) > 0);
	await countComes(line("refused").locator("rect.up, rect.part"), 0);
	assert.match(await line("refused").locator("title").textContent(), /^up 0% of the last hour$/);
	assert.deepEqual(problems, []);
});

test("narrow: the table of processes scrolls inside its panel", async (t) => {
	const { page } = await openPage(t, `${server.base}targets`, {
		viewport: { width: 390, height: 844 },
	});
	await pool(page, "half").locator("tbody tr").first().waitFor();
	assert.deepEqual(await page.evaluate(cutOff), []);
});

test("why a target is scraped: rule by rule", async (t) => {
	const { page, problems } = await open(t);
	await pool(page, "shop").getByRole("button", { name: "why" }).click();
	const steps = page.locator(".targets .relabel li");
	await steps.first().waitFor();
	await countComes(steps, 3);
	assert.equal(await steps.nth(0).locator("code").innerText(), "source_labels: [__meta_zone], target_label: zone");
	assert.equal(await steps.nth(0).locator(".chip.added").innerText(), "zoneeu");
	assert.match(await steps.nth(1).innerText(), /no change/);
	assert.equal(await steps.nth(2).locator(".chip.added").innerText(), "afterall");
	const result = page.locator(".targets .relabel tr");
	await countComes(result, 1);
	assert.match(await result.innerText(), /memory\s+http:\/\/127\.0\.0\.1:1\/debug\/pprof\/allocs/);
	await shot(page, "why");
	assert.deepEqual(problems, []);
});

test("why a target was dropped", async (t) => {
	const { page, problems } = await open(t);
	const dropped = page.locator(".dropped > li");
	await dropped.first().waitFor();
	await countComes(dropped, 1);
	await dropped.getByRole("button", { name: "why" }).click();
	const steps = dropped.locator(".relabel li");
	await steps.first().waitFor();
	await countComes(steps, 2);
	assert.match(await steps.nth(1).innerText(), /regex: '\.\*:2', action: drop\s*dropped here/i);
	assert.match(await dropped.locator(".relabel").innerText(), /1 more, not run/);
	assert.match(await dropped.locator(".relabel tr").innerText(), /memory\s+dropped by rule 2/i);
	await shot(page, "dropped");
	assert.deepEqual(problems, []);
});

test("a target is profiled now, and the page leads to its profile", async (t) => {
	const { page, problems } = await open(t);
	await pool(page, "live").getByRole("button", { name: "profile now" }).click();
	await pool(page, "live").getByRole("link", { name: "show" }).click();
	await page.waitForFunction(() => (window.__epi?.flame()?.nodes.length ?? 0) > 1);
	assert.match(await page.evaluate(() => location.search), /query=memory%7B/);
	await shot(page, "now");
	assert.deepEqual(problems, []);

	await page.goto(`${server.base}targets`);
	await pool(page, "shop").getByRole("button", { name: "profile now" }).click();
	await pool(page, "shop").locator(".profile-now .err").waitFor();
	const text = await pool(page, "shop").locator(".profile-now .err").innerText();
	assert.match(text, /Connection refused/);
});

test("a query node shows the shard of each process, how old the lists are, and what is missing", async (t) => {
	const at = (s) => new Date(Date.now() - 1000 * s).toISOString();
	const target = (shard, address) => ({
		profile: "memory",
		shard,
		discoveredLabels: { __address__: address },
		labels: { instance: address, job: "shop" },
		scrapePool: "shop",
		scrapeUrl: `http://${address}/debug/pprof/allocs`,
		lastError: "",
		lastScrape: at(50),
		lastScrapeDuration: 0.1,
		health: "up",
		scrapeInterval: "15s",
		scrapeTimeout: "10s",
	});
	const data = {
		activeTargets: [target("shard-0", "10.0.0.1:80"), target("shard-1", "10.0.0.2:80")],
		droppedTargets: [],
		droppedTargetCounts: { shop: 0 },
		shards: ["shard-0", "shard-1"].map((shard, i) => ({ shard, time: at(20 + 20 * i), targets: 1, leftOut: 0 })),
	};
	const missing = "the targets of shard shard-2 are missing: it has put no list into the bucket yet";
	const { page, problems } = await openPage(t, `${server.base}targets`, {
		before: (p) =>
			p.route("**/api/v1/targets", (route) =>
				route.fulfill({ json: { status: "success", data, warnings: [missing] } }),
			),
	});
	const of = pool(page, "shop");
	await of.locator("tbody tr").nth(1).waitFor();
	assert.deepEqual(await of.locator("thead th").last().innerText(), "Shard");
	assert.deepEqual(await of.locator('td[data-title="Shard"]').allInnerTexts(), ["shard-0", "shard-1"]);
	await countComes(of.getByRole("button", { name: "profile now" }), 0);
	assert.deepEqual(await page.locator(".notice.warning").allInnerTexts(), [missing]);
	assert.match(
		await page.locator(".page-bar").innerText(),
		/2 processes, 2 profiles, 0 dropped, of 2 shards as they were \d+ s ago/,
	);
	await shot(page, "fleet");
	assert.deepEqual(problems, []);
});
