// The page Targets of a server that this test starts: the steps of relabelling.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcp } from "node:net";
import { gzipSync } from "node:zlib";
import test, { after, before } from "node:test";
import { closeBrowser, cutOff, HEAP_ALONE, openPage, shot, startServer } from "./page.mjs";

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
/** Ports of servers that fail in one way each, and one where nobody listens. */
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
    static_configs: [{targets: ["127.0.0.1:${bad.refused}"]}]
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
	// A port that was free a moment ago.
	const gone = await listening(createTcp());
	const refused = gone.address().port;
	await new Promise((done) => gone.close(done));
	const bad = { refused, half: half.address().port, silent: silent.address().port };
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

test("a process is one row: a chip per profile, each error once with its cause", async (t) => {
	const { page, problems } = await open(t);
	for (const [job, profiles, state, error] of [
		["refused", 5, "down", /^Nothing listens on \d+\. connect 127\.0\.0\.1:\d+: Connection refused$/],
		[
			"half",
			2,
			"in part",
			/^goroutine: it does not serve \/debug\/pprof\/goroutine; is net\/http\/pprof imported.*404/,
		],
		["plain", 1, "down", /^Port \d+ speaks plain HTTP; remove "scheme: https"\. tls /],
		["silent", 1, "down", /^It does not answer in time; .*deadline exceeded$/],
		["nowhere", 1, "down", /^No name server knows nosuch\.invalid; .*lookup nosuch\.invalid/],
	]) {
		const of = pool(page, job);
		await of.locator(".err > div").first().waitFor();
		const text = async () => (await of.locator(".err").innerText()).replace(/\s+/g, " ").trim();
		for (let i = 0; !error.test(await text()) && i < 60; i++) await page.waitForTimeout(1000);
		assert.match(await text(), error, job);
		assert.equal(await of.locator(".err > div").count(), 1, `${job}: once`);
		assert.equal(await of.locator("tbody tr:not(.error-row)").count(), 1, `${job}: one row`);
		assert.equal(await of.locator(".chip.profile").count(), profiles, job);
		await of.locator(".badge", { hasText: new RegExp(`^${state}$`, "i") }).waitFor();
	}
	assert.equal(await pool(page, "half").locator(".chip.profile.up").count(), 1);
	assert.match(await pool(page, "half").locator("td.num").first().innerText(), /ago$/);
	assert.equal(await pool(page, "half").locator(".count").innerText(), "0 / 1 up");
	assert.equal(await pool(page, "refused").locator("td.num").first().innerText(), "over 1 h ago, if ever");
	assert.deepEqual(problems, []);
	await shot(page, "processes");
});

test("the last hour of a process is the mean of its `up`", async (t) => {
	const { page, problems } = await open(t);
	const line = (job) => pool(page, job).locator("svg.uptime");
	// The line is asked when the page opens; the first numbers may be stored later.
	for (let i = 0; (await line("half").count()) === 0; i++) {
		assert.ok(i < 60, "no line");
		await page.waitForTimeout(1000);
		await page.reload();
		await pool(page, "half").locator("tbody tr").first().waitFor();
		await page.waitForTimeout(500);
	}
	assert.equal(await line("half").locator("rect").count(), 30);
	assert.ok((await line("half").locator("rect.part").count()) > 0, "half of its profiles");
	await line("refused").waitFor();
	assert.ok((await line("refused").locator("rect.down").count()) > 0);
	assert.equal(await line("refused").locator("rect.up, rect.part").count(), 0);
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
	assert.equal(await steps.count(), 3);
	assert.equal(await steps.nth(0).locator("code").innerText(), "source_labels: [__meta_zone], target_label: zone");
	assert.equal(await steps.nth(0).locator(".chip.added").innerText(), "zoneeu");
	assert.match(await steps.nth(1).innerText(), /no change/);
	assert.equal(await steps.nth(2).locator(".chip.added").innerText(), "afterall");
	const result = page.locator(".targets .relabel tr");
	assert.equal(await result.count(), 1);
	assert.match(await result.innerText(), /memory\s+http:\/\/127\.0\.0\.1:1\/debug\/pprof\/allocs/);
	await shot(page, "why");
	assert.deepEqual(problems, []);
});

test("why a target was dropped", async (t) => {
	const { page, problems } = await open(t);
	const dropped = page.locator(".dropped > li");
	await dropped.first().waitFor();
	assert.equal(await dropped.count(), 1);
	await dropped.getByRole("button", { name: "why" }).click();
	const steps = dropped.locator(".relabel li");
	await steps.first().waitFor();
	assert.equal(await steps.count(), 2);
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
