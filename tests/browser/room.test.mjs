// Room for the graph: Compare in one line, charts that fold, the full screen, one side's own graph, and the rows of a
// difference by what became of the function.
//
// The share of the graph is the visible part of its canvas, height by width, of the window.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	addressHas,
	clickNode,
	closeBrowser,
	comes,
	countComes,
	cutOff,
	drawn,
	editComparison,
	explore,
	fixedWindow,
	flameReady,
	fleetTotal,
	openFleet,
	openPage,
	params,
	QUERY,
	shot,
	startServer,
	verdictReady,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const V1 = 'cpu{job="demo",version="v1"}';
const V2 = 'cpu{job="demo",version="v2"}';
const MS = 1e6;
/** More functions than a table of one profile has rows. */
const MANY = 6000;
const ADDED = 37;
const REMOVED = 23;

let server;
before(async () => {
	server = await startServer({ files: { "e.yml": "scrape_configs: []\n" }, flags: ["--web.enable-ingest"] });
	await push(server.base, { name: "process_cpu", job: "many", version: "v1" }, many("removed", REMOVED, 1));
	await push(server.base, { name: "process_cpu", job: "many", version: "v2" }, many("added", ADDED, 2));
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

/** main calls 6,000 functions, which cost `factor` times 10 ms, and `n` more that this side has alone. */
function many(own, n, factor) {
	const functions = [{ name: "main.main" }];
	const samples = [];
	const add = (name, value) => samples.push({ stack: [0, functions.push({ name }) - 1], value });
	for (let i = 0; i < MANY; i++) add(`main.f${i}`, factor * 10 * MS);
	for (let i = 0; i < n; i++) add(`main.${own}${i}`, MS);
	return cpuProfile({ functions, samples });
}

const compare = (args) => `compare?${new URLSearchParams(args)}`;
const versions = async (more = {}) => compare({ new: V2, base: V1, ...(await fixedWindow(120)), shift: "0", ...more });
const line = (page) => page.getByRole("button", { name: /^Edit the comparison/ });
const textOf = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();
const rootTotal = async (page) => (await drawn(page)).find((n) => n.level === 0)?.total;
const fullScreen = (page) => page.getByRole("button", { name: "Full screen" });

/** The visible part of the graph's canvas as a share of the window. */
async function graphShare(page) {
	await flameReady(page);
	return page.evaluate(() => {
		const r = document.querySelector(".flame-stage canvas").getBoundingClientRect();
		const part = (from, to, most) => Math.max(0, Math.min(to, most) - Math.max(from, 0)) / most;
		return part(r.left, r.right, innerWidth) * part(r.top, r.bottom, innerHeight);
	});
}

/** Width, height, and the least shares of the graph: at once, with the charts folded, in full screen. */
const SIZES = [
	[1440, 900, 0.6, 0.85, 0.95],
	[1024, 768, 0.35, 0.65, 0.85],
	[390, 844, 0.25, 0.4, 0.7],
];

test("the graph has the room, wide and narrow, and nothing scrolls sideways", async (t) => {
	for (const [width, height, once, folded, full] of SIZES) {
		const { page, problems } = await openFleet(t, await versions(), { viewport: { width, height } });
		await verdictReady(page);
		await page.waitForFunction(() => window.__epi.strips() && window.__epi.chart("chart-new"));
		const check = async (least, name) => {
			const share = await graphShare(page);
			assert.ok(share >= least, `${width} x ${height}, ${name}: ${(100 * share).toFixed(1)} %, not ${100 * least} %`);
			const beside = await page.evaluate(() => {
				const main = document.querySelector("main");
				return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth];
			});
			assert.deepEqual(beside, [0, 0], `${width}, ${name}: scrolls sideways`);
			assert.deepEqual(await page.evaluate(cutOff), [], `${width}, ${name}`);
			t.diagnostic(`${width} x ${height}, ${name}: ${(100 * share).toFixed(1)} %`);
			await shot(page, `room-${width}-${name}`);
		};
		await check(once, "once");
		await page.getByRole("button", { name: "Charts" }).click();
		await addressHas(page, { fold: "1" });
		await check(folded, "folded");
		await fullScreen(page).click();
		await addressHas(page, { full: "1" });
		await check(full, "full");
		assert.deepEqual(problems, []);
	}
});

test("one line says what is compared: what both have once, what differs twice; it opens to edit", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await openFleet(t, compare({ new: V2, base: V1, ...w, shift: "0" }));
	await flameReady(page);
	const said = () => textOf(line(page));
	const TWO = 'Edit the comparison: cpu{job="demo"} New version="v2" against Base version="v1"';
	assert.equal(await said(), TWO);
	const field = page.getByRole("textbox", { name: "Base query", exact: true });
	assert.equal(await field.isVisible(), false);
	await line(page).click();
	await field.fill('cpu{job="demo"}');
	await page.getByRole("button", { name: "Compare", exact: true }).click();
	await addressHas(page, { base: 'cpu{job="demo"}' });
	await field.waitFor({ state: "hidden" });
	assert.equal(await said(), 'Edit the comparison: cpu{job="demo"} New version="v2" against Base all');
	await editComparison(page);
	await page.keyboard.press("Escape");
	await field.waitFor({ state: "hidden" });
	await page.goto(new URL(page.url()).origin + `/${compare({ new: V2, base: V2, range: "5m" })}`);
	await comes(said, `Edit the comparison: ${V2} New last 5m against Base the 5m before`, "two windows");
	assert.deepEqual(problems, []);
});

test("the chart of Explore folds too, and the graph fills the window", async (t) => {
	const { page, problems } = await openFleet(t, explore({ query: QUERY, range: "5m", view: "flame" }), {
		viewport: { width: 1440, height: 900 },
	});
	const before = await graphShare(page);
	await page.getByRole("button", { name: "Chart", exact: true }).click();
	await addressHas(page, { fold: "1" });
	await page.locator(".chart-plot").waitFor({ state: "detached" });
	const folded = await graphShare(page);
	assert.ok(folded > before + 0.1, `${before}, folded ${folded}`);
	await page.keyboard.press("f");
	await addressHas(page, { full: "1" });
	const full = await graphShare(page);
	assert.ok(full >= 0.88, `full screen: ${full}`);
	await page.reload();
	assert.equal(await graphShare(page), full, "the address says it");
	await page.keyboard.press("Escape");
	await addressHas(page, { full: undefined, fold: "1" });
	await page.getByRole("button", { name: "Chart", exact: true }).click();
	await page.locator(".chart-plot").waitFor();
	assert.deepEqual(problems, []);
});

test("the heatmap folds", async (t) => {
	const { page, problems } = await openFleet(t, explore({ query: QUERY, range: "5m", chart: "heatmap" }));
	await page.waitForFunction(() => window.__epi?.heat());
	await page.getByRole("button", { name: "Chart", exact: true }).click();
	await page.waitForFunction(() => !window.__epi.heat());
	await page.getByRole("button", { name: "Chart", exact: true }).click();
	await page.waitForFunction(() => window.__epi.heat());
	assert.deepEqual(problems, []);
});

test("full screen: Escape first closes what is open in there, then leaves", async (t) => {
	const { page, problems } = await openFleet(t, await versions());
	await flameReady(page);
	await fullScreen(page).click();
	await addressHas(page, { full: "1" });
	await flameReady(page);
	await countComes(page.locator(".vtable"), 0, "the graph alone");
	const hidden = () => page.locator("header a, .compare-top button").evaluateAll((all) =>
		all.filter((e) => getComputedStyle(e).visibility !== "hidden").length);
	assert.equal(await hidden(), 0, "what is behind takes no focus");
	await page.getByRole("button", { name: "View", exact: true }).click();
	await page.locator(".look-popup").waitFor();
	await page.keyboard.press("Escape");
	await page.locator(".look-popup").waitFor({ state: "detached" });
	const [widest] = (await drawn(page)).filter((n) => n.level === 3).sort((a, b) => b.w - a.w);
	await clickNode(page, widest);
	await page.waitForURL(/[?&]zoom=/);
	await flameReady(page);
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	await page.keyboard.press("Escape");
	await addressHas(page, { zoom: undefined, full: "1" });
	await page.keyboard.press("Escape");
	await addressHas(page, { full: undefined });
	await page.locator(".vtable").waitFor();
	// `g f` are the flags, not the full screen.
	await page.keyboard.press("g");
	await page.keyboard.press("f");
	await page.waitForURL(/\/flags$/);
	assert.deepEqual(problems, []);
});

test("either side's own graph is one press away, and so is the difference", async (t) => {
	const w = await fixedWindow(120);
	const prev = { start: w.from - 120, end: w.from };
	const { page, problems } = await openFleet(t, compare({ new: V2, base: V1, ...w, shift: "prev" }));
	await flameReady(page);
	const [next, base] = [await fleetTotal(V2, w.from, w.to), await fleetTotal(V1, prev.start, prev.end)];
	await comes(() => rootTotal(page), next + base, "both together");
	const { zoom } = params(page);
	assert.equal(zoom, undefined);
	const press = (name) => page.getByRole("button", { name, exact: true }).click();
	await press("New alone");
	await comes(() => rootTotal(page), next, "New");
	await addressHas(page, { side: "new" });
	await page.locator(".vtable-body > div").first().waitFor();
	assert.ok(await page.getByRole("region", { name: "Verdict" }).isVisible(), "the verdict stays");
	await press("Base alone");
	await comes(() => rootTotal(page), base, "Base");
	await page.reload();
	await comes(() => rootTotal(page), base, "the address says it");
	await press("Difference");
	await comes(() => rootTotal(page), next + base, "both again");
	await addressHas(page, { side: undefined });
	assert.deepEqual(problems, []);
});

test("rows by new, gone and changed, counted over all functions; names have the room", async (t) => {
	const sides = { new: 'cpu{job="many",version="v2"}', base: 'cpu{job="many",version="v1"}' };
	const { page, problems } = await openPage(t, server.base + compare({ ...sides, range: "1h", shift: "0" }), {
		viewport: { width: 1440, height: 900 },
	});
	const chips = page.getByRole("group", { name: "Rows by what became of the function" });
	const chip = (name) => chips.getByRole("button", { name: new RegExp(`^${name}`) });
	const all = MANY + ADDED + REMOVED + 1;
	for (const [name, count] of [
		["All", all.toLocaleString("en")],
		["New", String(ADDED)],
		["Gone", String(REMOVED)],
		["Changed", (MANY + 1).toLocaleString("en")], // and main.main, by what it calls
	])
		await comes(() => textOf(chip(name)), `${name} ${count}`, name);
	const rows = () => page.evaluate(() => window.__epi.table().map((r) => r.function));
	await chip("Gone").click();
	await addressHas(page, { rows: "gone" });
	await comes(async () => (await rows()).length, REMOVED, "gone");
	assert.ok((await rows()).every((name) => /^main\.removed\d+$/.test(name)));
	await chip("New").click();
	await comes(async () => (await rows()).length, ADDED, "new");
	assert.ok((await rows()).every((name) => /^main\.added\d+$/.test(name)));
	await page.reload();
	await comes(async () => page.evaluate(() => window.__epi?.table()?.length), ADDED, "the address says it");
	const name = await page.getByRole("columnheader", { name: "Function" }).boundingBox();
	assert.ok(name.width >= 600, `names have ${name.width} px`);
	await chip("New").click();
	await addressHas(page, { rows: undefined });
	assert.deepEqual(problems, []);
});

test("New has a value where Base has none", async (t) => {
	const sides = { new: 'cpu{job="many",version="v2"}', base: 'cpu{job="many",version="v1"}' };
	const args = { ...sides, range: "1h", shift: "0", view: "table", rows: "new" };
	const { page, problems } = await openPage(t, server.base + compare(args));
	const row = page.locator(".vtable-body > div").filter({ has: page.getByTitle("main.added0", { exact: true }) });
	const cells = async () => (await row.locator("> div").allInnerTexts()).slice(1, 5).map((s) => s.trim());
	await comes(cells, ["0 s", "1 ms", "+1 ms", "new"], "the row");
	assert.deepEqual(problems, []);
});

test("two values of a label are chosen among those that the selection has", async (t) => {
	const one = cpuProfile({ functions: [{ name: "main.main" }], samples: [{ stack: [0], value: MS }] });
	await push(server.base, { name: "process_cpu", job: "elsewhere", version: "v9", zone: "eu" }, one);
	const side = (version) => `cpu{job="many",version="${version}"}`;
	const path = compare({ new: side("v2"), base: side("v1"), range: "15m", shift: "0" });
	const { page, problems } = await openPage(t, server.base + path);
	await flameReady(page);
	await editComparison(page);
	const offered = async (name) => {
		await page.getByRole("combobox", { name, exact: true }).click();
		return page.getByRole("listbox", { name, exact: true }).getByRole("option").allInnerTexts();
	};
	await comes(() => offered("Label to compare by"), ["job", "version"], "labels of the job");
	await comes(() => offered("New value"), ["v1", "v2"], "versions of the job");
	assert.deepEqual(await offered("Base value"), ["v1", "v2"]);
	assert.deepEqual(problems, []);
});

test("all names of Also changed are shown, however long", async (t) => {
	const names = Array.from({ length: 6 }, (_, i) => `example.com/shop/orders.(*RequestHandler).computeRecommendations${i}`);
	for (const [version, factor] of [["v1", 1], ["v2", 3]]) {
		const functions = ["main.main", ...names].map((name) => ({ name }));
		const samples = names.map((_, i) => ({ stack: [0, i + 1], value: (i + 1) * 100 * MS * (i % 2 ? factor : 1) }));
		// A change is significant once there are some profiles of both.
		for (let i = 1; i <= 15; i++) {
			const time = Date.now() - i * 30000;
			await push(server.base, { name: "process_cpu", job: "long", version }, cpuProfile({ functions, samples, time }));
		}
	}
	const of = (version) => `cpu{job="long",version="${version}"}`;
	const path = compare({ new: of("v2"), base: of("v1"), range: "15m", shift: "0" });
	for (const width of [1440, 1024]) {
		const { page, problems } = await openPage(t, server.base + path, { viewport: { width, height: 900 } });
		await flameReady(page);
		const also = page.locator(".verdict .also");
		await also.waitFor();
		const last = await also.locator(".fn-link").last().boundingBox();
		const box = await also.boundingBox();
		const inside = last.x + last.width <= box.x + box.width + 1 && last.y + last.height <= box.y + box.height + 1;
		assert.ok(inside, `${width}: the last name ${JSON.stringify(last)}, the line ${JSON.stringify(box)}`);
		await shot(page, `room-also-${width}`);
		assert.deepEqual(problems, []);
	}
});

test("each side has its colour in the charts, and its mark has the same", async (t) => {
	for (const colorScheme of ["light", "dark"]) {
		const { page, problems } = await openFleet(t, await versions(), { colorScheme });
		const color = (side) => page.evaluate((s) => window.__epi?.chart?.(`chart-${s}`)?.colors[0].replace(/,/g, ", "), side);
		const mark = (side) => page.locator(`.sides .${side} .side-mark`).evaluate((e) => getComputedStyle(e).backgroundColor);
		await page.locator(".side.new .chart-plot").waitFor();
		await page.waitForFunction(() => ["base", "new"].every((s) => window.__epi.chart(`chart-${s}`)?.colors[0]));
		for (const side of ["base", "new"]) assert.equal(await color(side), await mark(side), side);
		assert.notEqual(await color("base"), await color("new"));
		assert.deepEqual(problems, []);
	}
});

test("a file as New leaves no empty card", async (t) => {
	const { page, problems } = await openFleet(t, compare({ new: V2, base: V1, ...(await fixedWindow(120)), shift: "0" }));
	await flameReady(page);
	const input = page.getByLabel("Profiles to open");
	await input.setInputFiles({ name: "mine.pb.gz", mimeType: "application/gzip", buffer: many("own", 3, 1) });
	await addressHas(page, { new: 'file("mine.pb.gz")' });
	await flameReady(page);
	await countComes(page.getByRole("region", { name: "New", exact: true }), 0, "no card");
	const chart = await page.getByRole("region", { name: "Base", exact: true }).boundingBox();
	const { width } = page.viewportSize();
	assert.ok(chart.width > 0.9 * width, `Base's chart has ${chart.width} px`);
	assert.deepEqual(problems, []);
});
