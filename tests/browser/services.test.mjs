// Services: every number of the overview against the API's, and the targets of its links.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	closeBrowser,
	comes,
	countComes,
	fixedWindow,
	flameReady,
	FLEET as base,
	fleetApi as api,
	openPage,
	params,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

after(closeBrowser);

const services = (args) => base + "services?" + new URLSearchParams(args);
const rows = (page) => page.locator(".fleet .vtable-body > [role=row]");
const loaded = async (page) => {
	await rows(page).first().waitFor();
	await page.locator(".fleet:not(.busy)").waitFor();
	await page.waitForFunction(published);
};
/** True when window.__epi has the drawn rows: each unknown value is a dash in its row. */
function published() {
	const drawn = [...document.querySelectorAll(".fleet .vtable-body > [role=row]")];
	const unknown = (r) =>
		[r.cores, r.memory, r.tasks, r.profiles, r.top, r.targets, r.firing].filter(
			(v) => v === null,
		).length;
	const dashes = (row) =>
		[...row.querySelectorAll("[role=cell]")].filter((c) => c.textContent === "–").length;
	const rows = window.__epi.table() ?? [];
	return drawn.length > 0 && drawn.every((d, i) => rows[i] && dashes(d) === unknown(rows[i]));
}
const table = (page) => page.evaluate(() => window.__epi.table());

/** A vector as a map from the value of `by`. */
const byValue = (data, by) =>
	Object.fromEntries(data.result.map((e) => [e.metric[by] ?? "", Number(e.value[1])]));

test("every number is the API's", async (t) => {
	const w = await fixedWindow(60);
	const { page, problems } = await openPage(t, services({ by: "job", ...w }));
	await loaded(page);
	const shown = Object.fromEntries((await table(page)).map((r) => [r.service, r]));
	assert.deepEqual(Object.keys(shown).sort(), ["demo", "epimetheus"]);

	const span = { start: w.from, end: w.to };
	const memory = byValue(await api("query", { query: "total(merge by (job) (memory))", ...span }), "job");
	assert.equal(shown.demo.memory, memory.demo);
	assert.equal(shown.epimetheus.memory, memory.epimetheus ?? null);
	const goroutines = await api("query", { query: "total(merge by (job) (goroutine))", ...span });
	assert.equal(shown.demo.tasks, byValue(goroutines, "job").demo);

	const top = await api("query", { query: "top(1, merge by (job) (cpu))", ...span });
	for (const e of top.result) {
		const { top } = shown[e.metric.job];
		assert.equal(top?.function, e.rows[0]?.function);
		assert.equal(top?.flat_percent, e.rows[0]?.flat_percent);
	}
	let profiles = 0;
	for (const kind of ["cpu", "memory", "goroutine", "block", "mutex"]) {
		const query = `sum by (job) (count_over_time(${kind}{job="demo"}[60s]))`;
		profiles += byValue(await api("query", { query, time: w.to }), "job").demo ?? 0;
	}
	assert.equal(shown.demo.profiles, profiles);
	const targets = await api("query", { query: "count by (job) (min without (profile) (up))", time: w.to });
	assert.equal(shown.demo.targets, byValue(targets, "job").demo);
	assert.deepEqual(problems, []);
});

test("what the answers lack is said once, and no longer than they lack it", async (t) => {
	const late = "shard shard-1 is late: its profiles after 2026-11-23T08:09:01Z may be missing";
	let warnings = [late];
	const { page, problems } = await openPage(t, services({ by: "job", ...(await fixedWindow(60)) }), {
		before: (p) =>
			p.route(/api\/v1\/query(_range)?\b/, async (route) => {
				const json = await (await route.fetch()).json();
				await route.fulfill({ json: { ...json, warnings } });
			}),
	});
	await loaded(page);
	assert.deepEqual(await page.locator(".notice.warning").allInnerTexts(), [late]);
	await shot(page, "services-late");
	warnings = [];
	await page.getByLabel("One row per value of").selectOption("version");
	await page.locator(".notice.warning").waitFor({ state: "detached" });
	await loaded(page);
	assert.deepEqual(problems, []);
});

test("cores are the mean rate of CPU time, and the sparkline is its steps", async (t) => {
	const w = await fixedWindow(60);
	const { page, problems } = await openPage(t, services({ by: "job", ...w }));
	const asked = [];
	page.on("request", (r) => asked.push(new URL(r.url())));
	await page.reload();
	await loaded(page);
	const overTime = async (query) => {
		const ranges = asked.filter((u) => u.pathname.endsWith("query_range"));
		const one = ranges.find((u) => u.searchParams.get("query") === query);
		assert.ok(one, `${query}, of ${ranges}`);
		return (await api("query_range", Object.fromEntries(one.searchParams))).result;
	};
	const result = await overTime("total(merge by (job) (rate(cpu[10s])))");
	const query = "total(merge by (job) (mean_rate(cpu[1m])))";
	const means = byValue(await api("query", { query, time: w.to }), "job");
	const shown = Object.fromEntries((await table(page)).map((r) => [r.service, r]));
	for (const m of result) {
		const row = shown[m.metric.job];
		const points = row.spark.filter((v) => typeof v === "number");
		assert.equal(points.length, m.values.length);
		m.values.forEach(([, v], i) => assert.ok(Math.abs(points[i] - Number(v) / 1e9) < 1e-9));
		const mean = means[m.metric.job] / 1e9;
		assert.ok(Math.abs(row.cores - mean) < 1e-9, `${row.cores} against ${mean}`);
		const cell = rows(page).filter({ hasText: m.metric.job }).locator("[role=cell]").nth(1);
		assert.equal(Number(await cell.innerText()), Number(row.cores.toPrecision(3)));
	}
	let lines = result.length;
	for (const [type, key] of [["memory", "memorySpark"], ["goroutine", "tasksSpark"]])
		for (const m of await overTime(`total(merge by (job) (${type}[10s]))`)) {
			const points = shown[m.metric.job][key].filter((v) => typeof v === "number");
			assert.deepEqual(points, m.values.map(([, v]) => Number(v)));
			lines++;
		}
	await countComes(page.locator(".fleet svg.spark"), lines);
	assert.deepEqual(problems, []);
	await shot(page, "services");
});

test("a row leads to its flame graph, its top function highlighted, and to yesterday", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await openPage(t, services({ by: "job", ...w }));
	await loaded(page);
	const demo = rows(page).filter({ hasText: "demo" });
	const top = (await table(page)).find((r) => r.service === "demo").top.function;
	await demo.locator(".top-function").click();
	await flameReady(page);
	assert.deepEqual(
		{ query: params(page).query, pick: params(page).pick, from: params(page).from, to: params(page).to },
		{ query: 'cpu{job="demo"}', pick: top, ...w },
	);
	const found = await page.evaluate(() => window.__epi.search());
	assert.ok(found.drawn > 0, "the function is highlighted");
	await page.goBack();
	await loaded(page);
	await demo.getByRole("link", { name: "Heap of demo" }).click();
	await flameReady(page);
	await addressHas(page, { query: 'memory{job="demo"}' });
	await page.goBack();
	await loaded(page);
	await demo.getByRole("link", { name: "Compare demo with yesterday" }).click();
	await page.waitForURL(/compare\?/);
	await addressHas(page, { new: 'cpu{job="demo"}', base: 'cpu{job="demo"}', shift: "1d" });
	assert.deepEqual(problems, []);
});

test("label, filter and sorting", async (t) => {
	const { page, problems } = await openPage(t, services({ range: "5m" }));
	await loaded(page);
	const labels = await api("labels");
	const first = labels.includes("service") ? "service" : "job";
	const select = page.getByLabel("One row per value of");
	assert.equal(await select.inputValue(), first);
	await select.selectOption("version");
	await page.waitForFunction(() => window.__epi.table()?.some((r) => r.service === "v1"));
	await addressHas(page, { by: "version" });
	await page.getByLabel("Filter services").fill("v2");
	await page.waitForFunction(() => window.__epi.table()?.length === 1);
	await addressHas(page, { filter: "v2" });
	assert.equal((await table(page))[0].service, "v2");
	await page.getByLabel("Filter services").fill("");
	await page.getByRole("columnheader", { name: "version" }).click();
	await addressHas(page, { sort: "service" });
	const names = async () => ((await table(page)) ?? []).map((r) => r.service);
	await page.waitForFunction(() => window.__epi.table()?.length > 1);
	const sorted = (await names()).sort((a, b) => a.localeCompare(b));
	await comes(names, sorted, "in the order of their names");
	await page.reload();
	await loaded(page);
	await comes(names, sorted, "the address says the order");
	assert.deepEqual(problems, []);
});

test("rows are by the labels that the range has", async (t) => {
	const flags = ["--web.enable-ingest", "--storage.tsdb.out-of-order-time-window=6h"];
	const server = await startServer({ files: { "e.yml": "scrape_configs: []\n" }, flags });
	t.after(() => server.stop());
	for (const [label, hours] of [["zone", 0], ["region", 4]]) {
		const profile = { functions: [{ name: "main.main" }], samples: [{ stack: [0], value: 1e9 }] };
		const time = Date.now() - 60000 - hours * 3600000;
		await push(server.base, { name: "process_cpu", job: "a", [label]: "x" }, cpuProfile({ ...profile, time }));
	}
	const { page, problems } = await openPage(t, `${server.base}services?range=15m`);
	const offered = () => page.getByLabel("One row per value of").locator("option").allInnerTexts();
	await comes(offered, ["job", "zone"], "labels of 15 minutes");
	await page.goto(`${server.base}services?range=6h`);
	await comes(offered, ["job", "region", "zone"], "labels of 6 hours");
	assert.deepEqual(problems, []);
});

test("one question that fails leaves the others' answers", async (t) => {
	const { page } = await openPage(t, services({ by: "job", range: "5m" }), {
		before: (p) =>
			p.route(/api\/v1\/query\?.*memory/, (r) =>
				r.fulfill({
					status: 422,
					contentType: "application/json",
					body: '{"status":"error","errorType":"execution","error":"too many samples"}',
				}),
			),
	});
	await loaded(page);
	assert.match(await page.getByRole("alert").innerText(), /No data for memory.*: too many samples/);
	const demo = (await table(page)).find((r) => r.service === "demo");
	assert.ok(demo.cores > 0);
	assert.equal(demo.memory, null);
	const cells = rows(page).filter({ hasText: "demo" }).locator("[role=cell]");
	assert.equal(await cells.nth(2).innerText(), "–");
});

test("what takes long shows how far it is, and can be given up", async (t) => {
	const held = [];
	const { page, problems } = await openPage(t, services({ by: "job", range: "5m" }), {
		before: (p) => p.route(/api\/v1\/query\?.*%28job%29\+%28mean_rate/, (r) => void held.push(r)),
	});
	const status = page.getByRole("status").filter({ hasText: /\d+ of \d+ answers/ });
	await status.waitFor();
	await page.waitForFunction(() => window.__epi.table()?.some((r) => r.memory > 0));
	const demo = (await table(page)).find((r) => r.service === "demo");
	assert.equal(demo.cores, null, "the rows stand before all is known");
	await status.getByRole("button", { name: "Cancel" }).click();
	await status.waitFor({ state: "detached" });
	await page.locator(".fleet:not(.busy)").waitFor();
	assert.ok((await table(page)).find((r) => r.service === "demo").memory > 0);
	assert.equal(held.length, 1);
	assert.deepEqual(problems, []);
});

test("what takes long says so in every round, also where nothing of it is here", async (t) => {
	const { page } = await openPage(t, services({ by: "job", range: "5m" }));
	await loaded(page);
	await page.route(/api\/v1\/(query|alerts)/, () => {}); // from here on the server does not answer
	for (let i = 0; i < 2; i++) {
		await page.getByRole("button", { name: "Earlier" }).click();
		const status = page.getByRole("status").filter({ hasText: /^0 of \d+ answers/ });
		await status.waitFor();
		await status.getByRole("button", { name: "Cancel" }).click();
		await status.waitFor({ state: "detached" });
	}
});

test("thousands of services: rows in view only, and a filter", async (t) => {
	const COUNT = 3000;
	const { page, problems } = await openPage(t, services({ by: "job", range: "5m" }), {
		before: (p) =>
			p.route(/api\/v1\/query\?.*by\+?(%20)?.*\(?up/, (r) => {
				const result = Array.from({ length: COUNT }, (_, i) => ({
					metric: { job: `service-${i}` },
					value: [1, "1"],
				}));
				const data = { resultType: "vector", result };
				return r.fulfill({ json: { status: "success", data } });
			}),
	});
	await loaded(page);
	await page.waitForFunction((n) => window.__epi.table()?.length >= n, COUNT);
	assert.ok((await rows(page).count()) < 120, "rows in view only");
	await page.getByLabel("Filter services").fill("service-2999");
	await page.waitForFunction(() => window.__epi.table()?.length === 1);
	assert.match(await rows(page).first().innerText(), /service-2999/);
	assert.deepEqual(problems, []);
});

test("every column stands below its head, also where the table is wider than the screen", async (t) => {
	for (const width of [1400, 700]) {
		const { page, problems } = await openPage(t, services({ by: "job", ...(await fixedWindow(60)) }), {
			viewport: { width, height: 900 },
		});
		await loaded(page);
		const [heads, cells] = await page.evaluate(() =>
			[".vtable-head > *", ".vtable-body > [role=row]:first-child > *"].map((s) =>
				[...document.querySelectorAll(`.fleet ${s}`)].map((e) => e.getBoundingClientRect().right),
			),
		);
		assert.ok(heads.length > 5);
		assert.deepEqual(heads, cells, `at ${width} px`);
		assert.deepEqual(problems, []);
	}
});

test("home is the fleet, and old links to the root that ask something still open it", async (t) => {
	const { page, problems } = await openPage(t, base);
	await loaded(page);
	assert.equal(await page.locator('nav a[aria-current="page"]').innerText(), "Services");
	await page.getByRole("link", { name: "Explore", exact: true }).click();
	await flameReady(page);
	await page.locator(".brand").click();
	await loaded(page);
	await page.goto(base + "?query=goroutine&range=5m");
	await flameReady(page);
	assert.equal(await page.locator('nav a[aria-current="page"]').innerText(), "Explore");
	assert.deepEqual(problems, []);
});

test("every column fits: at 1440 px all, at 390 px the name stays beside the numbers", async (t) => {
	for (const colorScheme of ["light", "dark"]) {
		const at = { colorScheme, viewport: { width: 1440, height: 900 } };
		const { page } = await openPage(t, services({ range: "5m" }), at);
		await loaded(page);
		const spill = () =>
			page.locator(".fleet .vtable-scroll").evaluate((e) => e.scrollWidth - e.clientWidth);
		assert.equal(await spill(), 0);
		await shot(page, `home-${colorScheme}-1440`);
		await page.setViewportSize({ width: 390, height: 844 });
		assert.ok((await spill()) > 0);
		const name = rows(page).first().locator("[role=cell]").first();
		const before = await name.boundingBox();
		await page.locator(".fleet .vtable-scroll").evaluate((e) => e.scrollTo(e.scrollWidth, 0));
		assert.equal((await name.boundingBox()).x, before.x);
		await shot(page, `home-${colorScheme}-390`);
	}
});
