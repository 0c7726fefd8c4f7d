// The page in Firefox: what is drawn, clicked and typed there, with no error on its console. What a page says is
// tested in Chromium; here it is compared with the API where a browser could differ.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	clickNode,
	closeBrowser,
	countComes,
	cutOff,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	fleetApi,
	fleetTotal,
	openFleet,
	params,
	QUERY,
	settled,
	shot,
} from "./page.mjs";

after(closeBrowser);

const open = (t, path, options) => openFleet(t, path, { browser: "firefox", ...options });
const rootTotal = async (page) => (await drawn(page)).find((n) => n.level === 0).total;

/** How many colours the canvas of the flame graph has. */
const colours = (page) =>
	page.evaluate(() => {
		const canvas = document.querySelector(".flame-stage canvas");
		const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		const seen = new Set();
		for (let i = 0; i < data.length; i += 4 * 97)
			if (data[i + 3] === 255) seen.add(data.slice(i, i + 3).join());
		return seen.size;
	});

/** A node with callees, wide enough to hit. */
async function someNode(page) {
	const nodes = await drawn(page);
	const fits = (n) => n.level > 0 && n.x >= 0 && n.w > 60 && n.w < 800 && /^(main|net)/.test(n.name);
	return nodes.filter(fits).sort((a, b) => b.w - a.w)[0];
}

test("it is Firefox, and the first page has the services", async (t) => {
	const { page, problems } = await open(t, "");
	assert.match(await page.evaluate(() => navigator.userAgent), /Firefox\/\d+/);
	await page.getByRole("link", { name: "shop", exact: true }).waitFor();
	await page.locator(".fleet:not(.busy)").waitFor();
	const rows = await page.evaluate(() => window.__epi.table());
	assert.ok(rows.find((r) => r.service === "shop").cores > 0);
	assert.ok((await page.locator(".fleet svg.spark").count()) > 0, "lines are drawn");
	assert.deepEqual(problems, []);
	await shot(page, "firefox-services");
});

test("the flame graph is drawn, a click zooms, the back button returns", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	assert.equal(await rootTotal(page), await fleetTotal(QUERY, w.from, w.to));
	assert.ok((await colours(page)) > 6, "packages have colours");
	const node = await someNode(page);
	await clickNode(page, node);
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	const { zoomed, width } = await page.evaluate(() => window.__epi.flame());
	assert.equal(zoomed, node.name);
	const at = (await drawn(page)).find((n) => n.name === node.name && n.level === node.level);
	assert.ok(Math.abs(at.w - width) < 1, `it is ${at.w} of ${width} px wide`);
	await page.goBack();
	await page.waitForFunction(() => !location.search.includes("zoom="));
	await page.goForward();
	await page.waitForURL(/[?&]zoom=/);
	assert.deepEqual(problems, []);
	await shot(page, "firefox-zoom"); // last: a picture is taken with a style of its own, which the page's policy refuses
});

test("a right click's menu leads to the sandwich, and keys walk the graph", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const node = await someNode(page);
	await clickNode(page, node, { button: "right" });
	await page.getByRole("menuitem", { name: "Callers and callees" }).click();
	await addressHas(page, { fn: node.name });
	for (const half of ["callers", "callees"])
		await page.waitForFunction((h) => window.__epi?.drawn(h).length > 0, half);
	const cum = `cum(merge(${QUERY}), {function="${node.name}"})`;
	const { result } = await fleetApi("query", { query: cum, start: w.from, end: w.to });
	const callers = await page.evaluate(() => window.__epi.drawn("callers"));
	assert.equal(callers.find((n) => n.level === 0).total, Number(result[0].value[1]));
	await page.getByRole("region", { name: "Callees", exact: true }).getByRole("row").nth(1).waitFor();
	await page.keyboard.press("Escape");
	await addressHas(page, { fn: undefined });
	await flameReady(page);
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
	await page.waitForURL(/[?&]zoom=/);
	assert.deepEqual(problems, []);
	await shot(page, "firefox-keys");
});

test("two versions compared: the verdict, both charts and the difference", async (t) => {
	const w = await fixedWindow(120);
	const [next, base] = ["v2", "v1"].map((v) => `cpu{job="demo",version="${v}"}`);
	const { page, problems } = await open(t, `compare?${new URLSearchParams({ new: next, base, ...w, shift: "0" })}`);
	await flameReady(page);
	await page.waitForFunction(() => window.__epi.verdict() && window.__epi.totals());
	const { base: had, new: has } = await page.evaluate(() => window.__epi.totals());
	assert.deepEqual([had, has], [await fleetTotal(base, w.from, w.to), await fleetTotal(next, w.from, w.to)]);
	const { name } = await page.evaluate(() => window.__epi.verdict());
	await page.getByRole("region", { name: "Verdict" }).getByRole("button", { name, exact: true }).waitFor();
	for (const side of ["base", "new"])
		await page.waitForFunction((s) => window.__epi.chart(`chart-${s}`)?.columns[0]?.some((v) => v !== null), side);
	assert.ok((await colours(page)) > 2, "changes have colours");
	assert.deepEqual(problems, []);
	await shot(page, "firefox-compare");
});

test("targets are up", async (t) => {
	const { page, problems } = await open(t, "targets");
	const pool = page.getByRole("region", { name: "demo", exact: true });
	await pool.getByText("2 / 2 up").waitFor();
	await countComes(pool.locator("tbody .badge.up"), 2);
	assert.deepEqual(problems, []);
	await shot(page, "firefox-targets");
});

test("an alert: the limit moves by keys and pointer, and the rule follows", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, range: "15m" }));
	await page.getByRole("button", { name: "Alert", exact: true }).click();
	const drawer = page.getByRole("dialog", { name: "New alert" });
	const limit = drawer.getByRole("slider", { name: "Limit" });
	await limit.waitFor();
	await page.waitForFunction(() => window.__epi.chart("chart-alert")?.columns.length > 0);
	await page.waitForFunction(() => new URLSearchParams(location.search).has("aover"));
	const over = () => Number(params(page).aover);
	const raised = (was) => page.waitForFunction((v) => Number(new URLSearchParams(location.search).get("aover")) > v, was);
	const first = over();
	await limit.focus();
	await page.keyboard.press("ArrowUp");
	await raised(first);
	const second = over();
	const { x, y, width, height } = await limit.boundingBox();
	await page.mouse.move(x + width / 2, y + height / 2);
	await page.mouse.down();
	await page.mouse.move(x + width / 2, y - 30, { steps: 5 });
	await page.mouse.up();
	await raised(second);
	const rule = drawer.getByRole("region", { name: "Rule", exact: true });
	await rule.getByText(`/ 1e9 > ${params(page).aover}`).waitFor();
	assert.deepEqual(problems, []);
	await shot(page, "firefox-alert");
});

test("at 390 pixels nothing is cut off", async (t) => {
	const viewport = { width: 390, height: 844 };
	const w = await fixedWindow(120);
	for (const path of ["", explore({ query: QUERY, ...w }), "targets"]) {
		const { page, problems } = await open(t, path, { viewport });
		if (path.startsWith("explore")) await flameReady(page);
		else await page.locator("main [role=row], main tbody tr").first().waitFor();
		assert.deepEqual(await page.evaluate(cutOff), [], path);
		assert.deepEqual(problems, []);
	}
});
