// Deploys on time lines: a server gets profiles of two versions and one posted annotation, and each chart
// marks both. A press on a mark compares; marks that are close are one flag with a list.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	api,
	closeBrowser,
	countComes,
	explore,
	flameReady,
	openPage,
	params,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const END = Math.floor(Date.now() / 60000) * 60 - 60;
const MINUTES = 30;
const START = END - 60 * MINUTES;
/** v2 runs from here on. */
const CHANGED = START + 60 * 20;
const POSTED = START + 60 * 8 + 0.5;
const W = { from: String(START), to: String(END) };
const QUERY = 'cpu{job="shop"}';
const VERSIONS = /^version v1 → v2, .* job=shop/;

let server;
before(async () => {
	server = await startServer({ files: { "e.yml": "{}\n" }, flags: ["--web.enable-ingest"] });
	for (let i = 0; i < MINUTES; i++) {
		const time = START + 60 * i;
		const version = time < CHANGED ? "v1" : "v2";
		const profile = {
			functions: ["main.main", "main.score", "main.fill"].map((name) => ({ name, file: "/src/main.go", line: 7 })),
			samples: [
				{ stack: [0, 1], value: version === "v2" ? 900e6 : 300e6 },
				{ stack: [0, 2], value: 500e6 },
			],
			time: 1000 * time,
		};
		const labels = { name: "process_cpu", job: "shop", version, instance: "a:1" };
		await push(server.base, labels, cpuProfile(profile));
		await push(server.base, { ...labels, job: "other", version: "v7" }, cpuProfile(profile));
	}
	await post({ time: POSTED, text: "deploy v41", labels: { job: "shop" } });
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

async function post(mark) {
	const response = await fetch(`${server.base}api/v1/annotations`, {
		method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify(mark),
	});
	assert.equal(response.status, 200, await response.text());
}

const open = (t, path, options) => openPage(t, server.base + path, options);
const flags = (page, within = "main") => page.locator(`${within} .mark-flag`);
/** The marks in the description of a chart. */
const said = (page, within = "main") => page.locator(`${within} .chart-summary ul li`);

/** The time at the middle of an element, by the chart's own scale. */
async function timeAt(page, locator, name = "chart") {
	const box = await locator.boundingBox();
	const over = await page.locator(".u-over").first().boundingBox();
	const { window: w } = await page.evaluate((n) => window.__epi.chart(n), name);
	return w.start + ((box.x + box.width / 2 - over.x) / over.width) * (w.end - w.start);
}

test("the server tells both marks, of the job alone", async () => {
	const all = await api(server.base, "annotations", { start: START, end: END, "match[]": QUERY });
	assert.deepEqual(
		all.map(({ kind, text }) => [kind, text]),
		[
			["posted", "deploy v41"],
			["version", "v1 -> v2"],
		],
	);
});

test("Explore marks a changed version and a posted deploy; a press compares", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, ...W }));
	await flameReady(page);
	const panel = page.locator(".chart-panel");
	const before = await panel.boundingBox();
	await flags(page).nth(1).waitFor();
	await countComes(flags(page), 2);
	assert.deepEqual(await panel.boundingBox(), before, "marks take no room");
	assert.match(await flags(page).nth(0).getAttribute("aria-label"), /^deploy v41, .* job=shop\. Compare after against before$/);
	assert.match(await flags(page).nth(1).getAttribute("aria-label"), VERSIONS);
	const second = ((END - START) / (await page.locator(".u-over").boundingBox()).width) * 1.5;
	for (const [i, time] of [POSTED, CHANGED].entries()) {
		const line = await timeAt(page, page.locator(".mark-line").nth(i));
		assert.ok(Math.abs(line - time) <= second + 15, `line ${i} is at ${line}, the mark at ${time}`);
	}
	await countComes(said(page), 2);
	assert.match(await said(page).nth(1).innerText(), VERSIONS);

	await flags(page).nth(1).hover();
	await page.locator(".mark-tip").getByText("version v1 → v2").waitFor();
	await countComes(page.locator(".chart-tip:visible"), 0);
	await shot(page, "marks-explore");
	await flags(page).nth(1).click();
	await page.waitForURL(/\/compare\?/);
	const { new: next, base, ...times } = params(page);
	assert.deepEqual([next, base], ['cpu{job="shop",version="v2"}', 'cpu{job="shop",version="v1"}']);
	assert.ok(Math.abs(Number(times.from) - CHANGED) < 60 && Number(times.to) <= END, JSON.stringify(times));
	assert.equal(times.bto, times.from);
	assert.equal((times.to - times.from).toFixed(2), (times.bto - times.bfrom).toFixed(2));
	await flameReady(page);
	assert.deepEqual(problems, []);
});

test("both charts of Compare have marks, whatever version each side selects", async (t) => {
	const args = { new: 'cpu{job="shop",version="v2"}', base: 'cpu{job="shop",version="v1"}' };
	const times = { from: String(CHANGED), to: String(END), bfrom: W.from, bto: String(CHANGED) };
	const { page, problems } = await open(t, `compare?${new URLSearchParams({ ...args, ...times })}`);
	await flameReady(page);
	for (const side of [".side.base", ".side.new"]) {
		const changed = page.locator(side).getByRole("link", { name: VERSIONS });
		await changed.waitFor();
		await countComes(changed, 1);
	}
	await shot(page, "marks-compare");
	assert.deepEqual(problems, []);
});

test("keys: the flag's words, its way, and Escape", async (t) => {
	const { page, problems } = await open(t, explore({ query: "cpu", ...W }));
	await flameReady(page);
	await flags(page).nth(1).waitFor();
	await page.locator(".chart-plot").focus();
	await page.keyboard.press("Tab");
	await page.locator(".mark-tip").getByText("deploy v41").waitFor();
	await page.keyboard.press("Escape");
	await countComes(page.locator(".mark-tip"), 0);
	await page.keyboard.press("Enter");
	await page.waitForURL(/\/compare\?/);
	const p = params(page);
	assert.deepEqual([p.new, p.base], ["cpu", "cpu"]);
	assert.equal(Number(p.from), POSTED);
	assert.equal(Number(p.bto), POSTED);
	assert.deepEqual(problems, []);
});

test("the heatmap and the alert drawer have the marks too", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, ...W, chart: "heatmap" }));
	await page.waitForFunction(() => window.__epi?.heat());
	await flags(page).nth(1).waitFor();
	assert.match(await flags(page).nth(1).getAttribute("aria-label"), VERSIONS);
	assert.match(await page.locator(".heat-summary").textContent(), /Deploys in this range: deploy v41/);
	const [cells, line] = await Promise.all([
		page.locator(".heat-stage canvas").boundingBox(),
		page.locator(".mark-line").nth(1).boundingBox(),
	]);
	const { grid, times, step } = await page.evaluate(() => window.__epi.heat());
	const begins = times[0] - step;
	const x = cells.x + grid.left + ((CHANGED - begins) / (times.at(-1) - begins)) * grid.width;
	assert.ok(Math.abs(line.x - x) <= (grid.width * 15) / (END - START) + 2, `${line.x}, ${x}`);
	await flags(page).nth(1).hover();
	await shot(page, "marks-heatmap");

	await page.goto(`${server.base}${explore({ query: QUERY, ...W, alert: `total(rate(${QUERY}[5m]))` })}`);
	// In a day of 1,440 minutes both are one flag.
	const drawer = page.getByRole("dialog", { name: "New alert" });
	const both = drawer.getByRole("button", { name: /^2 deploys from/ });
	await both.waitFor();
	await both.click();
	const list = drawer.locator(".mark-tip");
	assert.deepEqual(await list.getByRole("link").locator("b").allInnerTexts(), ["deploy v41", "version v1 → v2"]);
	await shot(page, "marks-alert");
	await page.keyboard.press("Escape");
	await countComes(list, 0);
	assert.ok(await drawer.isVisible(), "Escape closes the list alone");
	await both.click();
	await list.getByRole("link").nth(1).click();
	await page.waitForURL(/\/compare\?/);
	assert.equal(params(page).new, 'cpu{job="shop",version="v2"}');
	assert.equal(params(page).alert, undefined);
	assert.deepEqual(problems, []);
});

test("close marks are one flag with a count, and a server without annotations shows none", async (t) => {
	const many = Array.from({ length: 30 }, (_, i) => ({
		...{ time: CHANGED + 2 * i, kind: "posted", text: `deploy ${i}`, labels: { job: "shop" } },
	}));
	const answers = (body, status = 200) => ({
		before: (page) => page.route("**/api/v1/annotations?*", (r) => r.fulfill({ status, json: body })),
	});
	const { page, problems } = await open(t, explore({ query: QUERY, ...W }), answers({ status: "success", data: many }));
	await flameReady(page);
	const [first] = await flags(page).all();
	await first.waitFor();
	const counts = await Promise.all((await flags(page).all()).map(async (f) => Number((await f.innerText()) || 1)));
	assert.equal(counts.reduce((a, b) => a + b), 30);
	assert.ok(counts[0] > 12, String(counts));
	await flags(page).first().hover();
	await page.locator(".mark-tip").getByText(`and ${counts[0] - 12} more`).waitFor();
	await shot(page, "marks-many");
	assert.deepEqual(problems, []);

	const absent = { status: "error", errorType: "not_found", error: "no such page" };
	const without = await open(t, explore({ query: QUERY, ...W }), answers(absent, 404));
	await flameReady(without.page);
	await without.page.getByRole("button", { name: "Run" }).first().click();
	await flameReady(without.page);
	await countComes(flags(without.page), 0);
	await countComes(without.page.locator(".notice.error"), 0);
	assert.equal(without.problems.length, 1, "the browser's own note of the one question that failed");
});
