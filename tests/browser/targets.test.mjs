// The page of targets, of a server of its own: what relabelling did, and to whom.
//
//   EPI_BUILD     has the server
//   EPI_CHROMIUM  the browser, /usr/bin/chromium unless given
//   EPI_SHOTS     a directory for screenshots, none unless given
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { chromium } from "playwright-core";

const shots = process.env.EPI_SHOTS;
const heap =
	"{process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, " +
	"goroutine: {enabled: false}}";
const config = `
global: {scrape_interval: 2s, scrape_timeout: 1s}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: ${heap}}
    static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2"], labels: {__meta_zone: eu, long: "${"x".repeat(5000)}"}}]
    relabel_configs:
      - {source_labels: [__meta_zone], target_label: zone}
      - {source_labels: [__address__], regex: ".*:2", action: drop}
      - {target_label: after, replacement: all}
`;

let browser, server, dir, base;
before(async () => {
	dir = mkdtempSync(join(tmpdir(), "epi-browser-"));
	writeFileSync(join(dir, "e.yml"), config);
	server = spawn(
		join(process.env.EPI_BUILD, "epimetheus"),
		[
			`--config.file=${join(dir, "e.yml")}`,
			`--storage.tsdb.path=${join(dir, "data")}`,
			"--web.listen-address=127.0.0.1:0",
			"--web.enable-admin-api",
		],
		{ stdio: ["ignore", "ignore", "pipe"] },
	);
	base = await new Promise((done, fail) => {
		let log = "";
		server.stderr.on("data", (d) => {
			log += d;
			const port = log.match(/msg=ready\b.*\bport=(\d+)/)?.[1];
			if (port) done(`http://127.0.0.1:${port}/`);
		});
		server.on("close", () => fail(new Error(log)));
	});
	browser = await chromium.launch({
		executablePath: process.env.EPI_CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
	});
});
after(async () => {
	await browser?.close();
	server?.kill();
	if (dir) rmSync(dir, { recursive: true, force: true });
});

async function open(t) {
	const context = await browser.newContext({ viewport: { width: 1480, height: 940 } });
	t.after(() => context.close());
	const page = await context.newPage();
	page.setDefaultTimeout(20000);
	const problems = [];
	page.on("console", (m) => {
		if (m.type() === "error" || m.type() === "warning") problems.push(`console: ${m.text()}`);
	});
	page.on("pageerror", (e) => problems.push(`page: ${e.message}`));
	await page.goto(base + "targets");
	return { page, problems };
}

const shot = async (page, name) => {
	if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
};

test("why a target is scraped: rule by rule", async (t) => {
	const { page, problems } = await open(t);
	await page.locator(".targets").getByRole("button", { name: "why" }).click();
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
