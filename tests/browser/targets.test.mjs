// The page Targets of a server that this test starts: the steps of relabelling.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import test, { after, before } from "node:test";
import { closeBrowser, HEAP_ALONE, openPage, shot, startServer } from "./page.mjs";

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
const config = (address) => `
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
`;

let server, target;
before(async () => {
	target = createServer((req, res) => res.end(profile()));
	await new Promise((done) => target.listen(0, "127.0.0.1", done));
	server = await startServer({
		files: { "e.yml": config(`127.0.0.1:${target.address().port}`) },
		flags: ["--web.enable-admin-api"],
	});
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	target?.closeAllConnections();
	target?.close();
});

const open = (t) => openPage(t, `${server.base}targets`);

const pool = (page, job) =>
	page.locator(".pool", { has: page.getByRole("heading", { name: job, exact: true }) });

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
