// The first minute: from an empty store to the first graph, without a reload.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import {
	api,
	closeBrowser,
	countComes,
	flameReady,
	FLEET,
	HEAP_ALONE,
	openPage,
	params,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const profile = cpuProfile({
	functions: [{ name: "main.main" }, { name: "main.work" }],
	samples: [{ stack: [0, 1], value: 500e6 }],
});
const THEMES = ["light", "dark"];
const WIDTHS = [1440, 390];
const dark = (theme) => ({ colorScheme: theme });

/** A program that answers every question with the same profile. */
let program;
before(async () => {
	program = createServer((_, response) => response.end(profile));
	await new Promise((done) => program.listen(0, "127.0.0.1", done));
});
after(async () => {
	await closeBrowser();
	program?.close();
});

async function serverWith(t, config) {
	const server = await startServer({ files: { "e.yml": config } });
	t.after(() => server.stop());
	return server;
}

const panel = (page) => page.locator(".first-minute");
const answers = (page, name, data) =>
	page.route(`**/api/v1/${name}*`, (route) => route.fulfill({ json: { status: "success", data } }));

/** A target that has not been scraped yet, and whose first profile comes in `seconds`. */
const fresh = (seconds, more = {}) => ({
	profile: "process_cpu",
	discoveredLabels: { __address__: "127.0.0.1:6060" },
	labels: { instance: "127.0.0.1:6060", job: "shop" },
	scrapePool: "shop",
	scrapeUrl: "http://127.0.0.1:6060/debug/pprof/profile",
	lastError: "",
	lastScrape: "0001-01-01T00:00:00Z",
	nextProfile: new Date(Date.now() + 1000 * seconds).toISOString(),
	health: "unknown",
	scrapeInterval: "10s",
	scrapeTimeout: "20s",
	...more,
});

test("the checklist counts down, and the graph comes by itself", async (t) => {
	const began = Date.now();
	const { page, problems } = await openPage(t, FLEET + "explore", {
		before: async (p) => {
			await answers(p, "profile_types", []);
			await answers(p, "targets", { activeTargets: [fresh(300), fresh(500, { profile: "memory" })] });
		},
	});
	await page.getByRole("heading", { name: "Waiting for the first profile" }).waitFor();
	assert.match(await panel(page).innerText(), /Configuration read: 2 jobs/);
	assert.match(await panel(page).innerText(), /1 target found, with 2 profiles each interval/);
	const due = async () => Number(/expected in (\d+) s/.exec(await panel(page).innerText())[1]);
	const first = await due();
	const gone = Math.ceil((Date.now() - began) / 1000);
	assert.ok(first <= 301 && first >= 299 - gone, `${first} s, ${gone} s after the start`);
	await page.waitForFunction((n) => !document.querySelector(".first-minute").innerText.includes(`in ${n} s`), first);
	assert.ok((await due()) < first, "it counts down");
	await page.evaluate(() => (window.sameVisit = true));
	await shot(page, "first-minute");

	await page.unrouteAll({ behavior: "wait" });
	await flameReady(page);
	await countComes(panel(page), 0);
	assert.equal(params(page).query, "cpu", "CPU, as on any first visit");
	assert.ok(await page.evaluate(() => window.sameVisit), "without a reload");
	assert.deepEqual(problems, []);
});

test("other profiles come first: they are shown, and the countdown to CPU goes on", async (t) => {
	const types = await api(FLEET, "profile_types");
	const due = Date.now() / 1000 + 300;
	const cpu = () => fresh(due - Date.now() / 1000);
	const heap = (health, seconds) => fresh(seconds, { profile: "memory", health });
	const numbers = (page) =>
		page.evaluate(() => {
			window.counted = [];
			setInterval(() => {
				const said = /First CPU profile expected in (\d+) s/.exec(document.querySelector("main").innerText);
				if (said) window.counted.push(Number(said[1]));
			}, 50);
		});
	const { page } = await openPage(t, FLEET + "explore", {
		before: async (p) => {
			await answers(p, "profile_types", []);
			await answers(p, "targets", { activeTargets: [cpu(), heap("unknown", 2)] });
		},
	});
	await panel(page).getByText(/First CPU profile expected in \d+ s/).waitFor();
	await numbers(page);
	// The heap has come. Its next profile is later than the first one was.
	await page.unroute("**/api/v1/targets*");
	await answers(page, "targets", { activeTargets: [cpu(), heap("up", 12)] });
	await page.unroute("**/api/v1/profile_types*");
	await answers(page, "profile_types", types.filter((x) => x.name === "memory"));
	await page.waitForURL(/[?&]query=memory/);
	await flameReady(page);
	await page.locator(".first-cpu").getByText(/First CPU profile expected in \d+ s/).waitFor();
	const before = (await page.evaluate(() => window.counted)).at(-1);
	await page.waitForFunction((n) => window.counted.at(-1) < n, before);
	const counted = await page.evaluate(() => window.counted);
	assert.ok(counted.every((n, i) => i === 0 || n <= counted[i - 1]), `it never grows: ${counted}`);
	await shot(page, "first-cpu-comes");
	// CPU takes the place of what nobody chose.
	await page.unroute("**/api/v1/profile_types*");
	await page.waitForURL(/[?&]query=cpu/);
	await flameReady(page);
	await countComes(page.locator(".first-cpu"), 0);
});

test("a server that has just started: every page fills by itself", async (t) => {
	const server = await serverWith(t, `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: {process_cpu: {seconds: 1}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}}}
    static_configs: [{targets: ["127.0.0.1:${program.address().port}"]}]
`);
	const [one, two] = await Promise.all([
		openPage(t, server.base + "explore"),
		openPage(t, server.base + "services"),
	]);
	await flameReady(one.page);
	assert.equal(await one.page.locator(".time-text").innerText(), "Last 5m", "the range fits the data");
	assert.equal(params(one.page).range, undefined, "and nobody chose it");
	await two.page.locator(".fleet [role=row]").filter({ hasText: "shop" }).waitFor();
	await two.page.locator(".top-function").filter({ hasText: "work" }).waitFor();
	assert.deepEqual(one.problems.concat(two.problems), []);
	// What a person chose stays.
	await one.page.goto(server.base + "explore?query=cpu&range=3h");
	await flameReady(one.page);
	assert.equal(await one.page.locator(".time-text").innerText(), "Last 3h");
});

test("targets that all fail: the first error, its likely cause, and a link", async (t) => {
	const server = await serverWith(t, `
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: shop
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["127.0.0.1:1"]}]
`);
	for (const theme of THEMES)
		for (const width of WIDTHS) {
			const { page, problems } = await openPage(t, server.base + "explore", {
				...dark(theme),
				viewport: { width, height: 900 },
			});
			await page.getByRole("heading", { name: "All targets fail" }).waitFor();
			const said = await page.getByRole("alert").innerText();
			assert.match(said, /http:\/\/127\.0\.0\.1:1\/debug\/pprof\/allocs/);
			assert.match(said, /[Cc]onnection refused/);
			assert.match(said, /Nothing listens at this address/);
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
			await shot(page, `first-failing-${theme}-${width}`);
			await page.getByRole("link", { name: "All failing targets" }).click();
			await page.waitForURL(/targets\?state=down/);
			await page.locator("td.url").first().waitFor();
			assert.deepEqual(problems, []);
		}
});

test("only where nothing is configured it says how to name a program", async (t) => {
	const server = await serverWith(t, "scrape_configs: []\n");
	for (const name of ["explore", "compare", "services"]) {
		const { page, problems } = await openPage(t, server.base + name);
		await page.getByRole("heading", { name: "No profiles stored yet" }).waitFor();
		const lines = (await panel(page).locator("pre").innerText()).trim().split("\n");
		assert.deepEqual([lines.length, lines[0]], [3, "scrape_configs:"]);
		await page.getByRole("button", { name: "Copy" }).click();
		await page.getByText("Copied", { exact: true }).waitFor();
		assert.deepEqual(problems, []);
		await shot(page, `nothing-${name}`);
	}
});

test("a job without targets leads to service discovery", async (t) => {
	const server = await serverWith(t, `
scrape_configs:
  - job_name: shop
    file_sd_configs: [{files: [none.json]}]
`);
	const { page } = await openPage(t, server.base + "explore");
	await panel(page).getByText("No targets found yet").waitFor();
	await panel(page).getByRole("link", { name: "service discovery" }).click();
	await page.waitForURL(/service-discovery/);
});

// The fleet's own profiles would do where there are processors for it.
test("a regression as the demo's fires an alert of its rules, so that no page is empty", async (t) => {
	const server = await startServer({
		files: { "e.yml": "rule_files: [demo.yml]\n", "demo.yml": readFileSync("examples/rules/demo.yml", "utf8") },
		flags: ["--web.enable-ingest"],
	});
	const pushVersion = (version, scoring) =>
		push(
			server.base,
			{ name: "process_cpu", job: "demo", service: "shop", version },
			cpuProfile({
				functions: [{ name: "main.main" }, { name: "main.work" }, { name: "main.scoreItems" }],
				samples: [
					{ stack: [0, 1], value: 1000e6 - scoring },
					{ stack: [0, 2], value: scoring },
				],
			}),
		);
	const pushes = { ended: false };
	const pusher = (async () => {
		while (!pushes.ended) {
			await pushVersion("v1", 100e6);
			await pushVersion("v2", 400e6);
			await new Promise((done) => setTimeout(done, 2000));
		}
	})();
	t.after(async () => {
		pushes.ended = true;
		await pusher;
		await server.stop();
	});
	const { page } = await openPage(t, server.base + "alerts?state=firing");
	await page.getByText("main.scoreItems takes 30% more of the CPU time in v2 than in v1").waitFor();
	await page.goto(server.base + "rules");
	await page.getByText("service_version:cpu:cores").first().waitFor();
});
