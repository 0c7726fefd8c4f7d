// The pages Alerts and Rules of a server that this test starts, and the link of an alert as an
// Alertmanager gets it, followed to the flame graph.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import {
	closeBrowser,
	comes,
	countComes,
	flameReady,
	fleetApi,
	HEAP_ALONE,
	openPage,
	shot,
	startServer,
} from "./page.mjs";

const EXPR = "total(merge by (job) (heap)) > 0";
const rules = `
groups:
  - name: costs
    interval: 1s
    labels: {team: shop}
    rules:
      - alert: Burns
        expr: ${EXPR}
        labels: {severity: page}
        annotations: {summary: "{{ $labels.job }} works"}
      - {alert: Waits, expr: "${EXPR}", for: 1h}
      - {alert: Rests, expr: "total(merge by (job) (heap)) < 0"}
  - name: records
    interval: 1s
    rules:
      - {record: "job:heap:total", expr: "total(merge by (job) (heap))"}
`;

/** The address of a demo program. Two servers may read its heap at once. */
async function demo() {
	const { activeTargets } = await fleetApi("targets");
	return new URL(activeTargets.find((a) => a.labels.job === "demo").scrapeUrl).host;
}

/** The alerts that the Alertmanager received, by name. */
const posted = new Map();
const alertmanager = createServer((request, response) => {
	let body = "";
	request.on("data", (d) => (body += d));
	request.on("end", () => {
		for (const a of JSON.parse(body || "[]")) posted.set(a.labels.alertname, a);
		response.end();
	});
});

let server, base;
before(async () => {
	await new Promise((done) => alertmanager.listen(0, "127.0.0.1", done));
	const config = `
global: {scrape_interval: 2s, scrape_timeout: 1s}
rule_files: [rules.yml]
alerting:
  alertmanagers:
    - static_configs: [{targets: ["127.0.0.1:${alertmanager.address().port}"]}]
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["${await demo()}"]}]
`;
	server = await startServer({ files: { "rules.yml": rules, "e.yml": config }, prefix: "/epi/" });
	base = server.base;
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	alertmanager.close();
	alertmanager.closeAllConnections?.();
});

const open = (t, path) => openPage(t, path.startsWith("http") ? path : base + path);

test("what the server's rules found stands on the page", async (t) => {
	const { page, problems } = await open(t, "alerts");
	const rule = (name) => page.locator(".rule", { hasText: name });
	await rule("Burns").locator(".alerts .badge.down").waitFor();
	await rule("Waits").locator(".alerts .badge.wait").waitFor();
	assert.equal(await rule("Rests").locator(".badge").innerText(), "INACTIVE");
	const alert = rule("Burns").locator(".alerts tbody tr").first();
	const chips = await alert.locator(".chip").allInnerTexts();
	assert.deepEqual(chips.sort(), ["alertnameBurns", "jobshop", "severitypage", "teamshop"]);
	assert.match(await alert.innerText(), /summary shop works/);
	await page.getByRole("button", { name: "Inactive 1" }).waitFor();
	await shot(page, "rules-real");
	await alert.getByRole("button", { name: "Flame graph" }).click();
	await flameReady(page);
	await page.locator(".measured .vtable-body > div").first().waitFor();
	assert.deepEqual(problems, []);
});

test("the link an Alertmanager gets opens the expression and its flame graph", async (t) => {
	await comes(() => posted.has("Burns"), true, "the alert");
	const link = posted.get("Burns").generatorURL;
	const got = Object.fromEntries(new URL(link).searchParams);
	assert.ok(link.startsWith(`${base}explore?`), link);
	assert.equal(got.query, EXPR);
	assert.equal(got.match, '{job="shop"}');
	assert.deepEqual(Object.keys(got), ["query", "at", "since", "match"]);
	assert.ok(Number(got.since) <= Number(got.at), `${got.since} after ${got.at}`);
	const { page, problems } = await open(t, link);
	await flameReady(page);
	assert.equal(
		await page.locator(".asked code").textContent(),
		'merge(heap{job="shop"})',
	);
	await countComes(page.locator(".compact .vtable-body > div"), 1);
	await page.getByRole("link", { name: /^Compare with the (time before the alert|window before)$/ }).click();
	await page.waitForURL(/\/compare\?/);
	const to = Number(new URL(page.url()).searchParams.get("to"));
	assert.ok(Math.abs(to - Number(got.at)) < 0.001, `${to} against ${got.at}`);
	// The base ends where the first window of the alert began.
	const { from, bfrom, bto } = Object.fromEntries(new URL(page.url()).searchParams);
	assert.ok(Math.abs(Number(bto) - (Number(got.since) - (to - Number(from)))) < 0.002, page.url());
	assert.ok(Math.abs(Number(bto) - Number(bfrom) - (to - Number(from))) < 0.002, page.url());
	assert.deepEqual(problems, []);
});

test("recorded costs and the server's Alertmanager are shown", async (t) => {
	const { page, problems } = await open(t, "rules?type=recording");
	await page.getByText("job:heap:total", { exact: true }).waitFor();
	await page.locator(".rules .badge.up").waitFor();
	await page.goto(`${base}status`);
	await page
		.getByRole("cell", { name: `127.0.0.1:${alertmanager.address().port}/api/v2/alerts` })
		.waitFor();
	assert.deepEqual(problems, []);
});
