// Cost over time on Explore. The chart is compared with query_range, and the window that a click, a
// drag or a key opens with the API's answer for it.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	closeBrowser,
	countComes,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	fleetApi as api,
	fleetTotal,
	openFleet,
	params,
	QUERY,
	shot,
} from "./page.mjs";

const INTERVAL_S = 10; // the fleet's scrape interval

after(closeBrowser);

const open = (t, args, options) => openFleet(t, explore(args), options);
const chart = (page) => page.evaluate(() => window.__epi.chart());
const near = (a, b, what) =>
	assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b), 1), `${what}: ${a}, ${b}`);

/** Waits until the chart has lines with values; returns the chart. */
async function chartReady(page, lines = 1) {
	await page.waitForFunction(
		(n) => (window.__epi?.chart()?.columns ?? []).filter((c) => c.some((v) => v !== null)).length >= n,
		lines,
	);
	return chart(page);
}

/** The place of a time of the chart on the page. */
async function at(page, t) {
	const over = page.locator(".chart-panel .u-over");
	let box = await over.boundingBox();
	for (let i = 0; i < 1200 && !box; i++) {
		await page.waitForTimeout(50); // it is being drawn anew
		box = await over.boundingBox();
	}
	const { window: w } = await chart(page);
	return { x: box.x + (box.width * (t - w.start)) / (w.end - w.start), y: box.y + 30 };
}

/** A step that has a value and follows one with a value. */
const stepWithValue = (c, from) =>
	c.times.findIndex((_, i) => i >= from && c.columns[0][i] !== null && c.columns[0][i - 1] !== null);

const total = (query, w) => fleetTotal(query, w.from, w.to);

/** The cost of the flame graph's root, once the graph is of the window in the address. */
async function rootTotal(page, want) {
	await page.waitForFunction(
		(v) => window.__epi.drawn().find((n) => n.level === 0)?.total === v,
		want,
	);
	return (await drawn(page)).find((n) => n.level === 0).total;
}

test("a click opens one scrape, and the way back is the range", async (t) => {
	const { page, problems } = await open(t, { query: QUERY, range: "15m", view: "flame" });
	await flameReady(page);
	const before = await chartReady(page);
	const i = stepWithValue(before, Math.floor(before.times.length * 0.4));
	const p = await at(page, before.times[i]);
	await page.mouse.click(p.x, p.y);
	await page.waitForURL(/[?&]cfrom=/);
	const q = params(page);
	assert.equal(Number(q.to), before.times[i], "it ends at the step");
	assert.equal(Number(q.to) - Number(q.from), INTERVAL_S);
	assert.equal(q.crange, "15m");
	const want = await total(QUERY, q);
	assert.ok(want > 0);
	await rootTotal(page, want);
	const after = await chart(page);
	assert.deepEqual(after.mark, { start: Number(q.from), end: Number(q.to) });
	assert.ok(after.times.length >= before.times.length - 1, "the chart is as wide as it was");
	assert.equal(after.step, before.step);
	await page.locator(".opened").getByText("One scrape").waitFor();
	await shot(page, "chart-scrape");
	await page.getByRole("button", { name: "The one before" }).click();
	await page.waitForURL((u) => u.searchParams.get("to") === q.from);
	await rootTotal(page, await total(QUERY, params(page)));
	await page.reload();
	await chartReady(page);
	assert.equal((await chart(page)).mark.end, Number(q.from), "the address says all of it");
	await page.getByRole("button", { name: "Back to the last 15m" }).click();
	await page.waitForURL((u) => !u.searchParams.has("cfrom"));
	await addressHas(page, { range: "15m", from: undefined });
	assert.deepEqual(problems, []);
});

test("a drag merges its window, Shift zooms, a double click zooms out", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, { query: QUERY, ...w, view: "flame" });
	await flameReady(page);
	const before = await chartReady(page);
	const drag = async (a, b) => {
		const from = await at(page, a);
		const to = await at(page, b);
		await page.mouse.move(from.x, from.y);
		await page.mouse.down();
		await page.mouse.move(to.x, to.y, { steps: 6 });
		await page.mouse.up();
	};
	const { start, end } = before.window;
	// A fleet that has just started fills only the end of the chart.
	const since = before.times[before.columns[0].findIndex((v) => v !== null)];
	const [a, b] = [Math.max(start, since - before.step), end - before.step];
	await drag(a, b);
	await page.waitForURL(/[?&]cfrom=/);
	const q = params(page);
	assert.ok(Math.abs(Number(q.from) - a) <= 3, "from where it began");
	assert.ok(Math.abs(Number(q.to) - b) <= 3, "to where it ended");
	assert.deepEqual([q.cfrom, q.cto], [w.from, w.to]);
	const want = await total(QUERY, q);
	assert.ok(want > 0);
	await rootTotal(page, want);
	assert.deepEqual((await chart(page)).window, { start, end });
	await page.keyboard.down("Shift");
	await drag(start + 60, end - 60);
	await page.keyboard.up("Shift");
	await page.waitForURL((u) => !u.searchParams.has("cfrom"));
	const zoomed = params(page);
	assert.ok(Math.abs(Number(zoomed.to) - Number(zoomed.from) - (end - start - 120)) <= 6);
	await page.waitForFunction((s) => window.__epi.chart().window.start > s, start);
	const middle = await at(page, (Number(zoomed.from) + Number(zoomed.to)) / 2);
	await page.mouse.dblclick(middle.x, middle.y);
	const width = Number(zoomed.to) - Number(zoomed.from);
	await page.waitForURL((u) => {
		const p = u.searchParams;
		return !p.has("cfrom") && Math.abs(p.get("to") - p.get("from") - 2 * width) < 1;
	});
	assert.deepEqual(problems, []);
});

test("by top functions: the lines are the API's costs, and with the rest they are the total", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await open(t, { query: QUERY, ...w, by: "function" });
	const c = await chartReady(page, 3);
	assert.equal(c.unit, "cores");
	assert.equal(c.labels.at(-1), "other");
	const top = await api("query", {
		query: `top(8, merge(${QUERY}))`,
		start: c.window.start - c.step,
		end: c.window.end,
	});
	const names = top.result[0].rows.map((r) => r.function);
	assert.deepEqual(c.labels.slice(0, -1).sort(), [...names].sort());
	const range = { start: c.window.start, end: c.window.end, step: c.step };
	const rate = `rate(${QUERY}[${c.step}s])`;
	const all = await api("query_range", { query: `total(merge(${rate}))`, ...range });
	const each = await api("query_range", { query: `flat(merge(${rate}))`, ...range });
	const seconds = (v) => Number(v) / 1e9; // nanoseconds in a second to cores
	for (const [time, value] of all.result[0].values) {
		const i = c.times.indexOf(time);
		const sum = c.columns.reduce((s, column) => s + column[i], 0);
		near(sum, seconds(value), `all lines at ${time}`);
		for (const name of names) {
			const points = each.result.find((m) => m.metric.function === name).values;
			const cost = points.find(([x]) => x === time)?.[1] ?? 0;
			near(c.columns[c.labels.indexOf(name)][i], seconds(cost), `${name} at ${time}`);
		}
	}
	await page.getByRole("checkbox", { name: "Stacked" }).check();
	await page.waitForURL(/[?&]stack=1/);
	await page.waitForFunction(() => window.__epi.chart()?.stacked);
	const s = await chart(page);
	for (const [time, value] of all.result[0].values)
		near(s.drawn.at(-1)[s.times.indexOf(time)], seconds(value), `the top at ${time}`);
	await shot(page, "chart-functions");
	await page.locator(".legend button").first().click();
	await page.waitForURL((u) => u.searchParams.get("pick") === s.labels[0]);
	assert.deepEqual(problems, []);
});

test("a name in the legend brings its line out, and a press narrows the query to it", async (t) => {
	const { page, problems } = await open(t, { query: QUERY, ...(await fixedWindow(120)), by: "version" });
	const c = await chartReady(page, 2);
	assert.deepEqual([...c.labels].sort(), ["v1", "v2"]);
	const entry = page.locator(".legend").getByRole("button", { name: "v1" });
	await entry.hover();
	await page.waitForFunction(
		(i) => window.__epi.chart().focused === i,
		c.labels.indexOf("v1"),
	);
	await entry.click();
	await page.waitForURL(
		(u) => u.searchParams.get("query") === 'cpu{job="demo",version="v1"}',
	);
	await page.waitForFunction(() => window.__epi.chart()?.labels.length === 1);
	assert.deepEqual(problems, []);
});

/** Answers every query_range; `pick` chooses the steps that have values. */
const answer = (pick) => async (route) => {
	const asked = new URL(route.request().url()).searchParams;
	const [start, end, step] = ["start", "end", "step"].map((k) => Number(asked.get(k)));
	const times = [];
	for (let at = start; at <= end; at += step) times.push(at);
	await route.fulfill({
		json: {
			status: "success",
			data: {
				resultType: "matrix",
				unit: "nanoseconds",
				result: [{ metric: {}, values: pick(times).map((x) => [x, "5000000000"]) }],
			},
		},
	});
};

test("a single point is drawn, and so is one between gaps", async (t) => {
	const { page, problems } = await open(t, { query: QUERY, ...(await fixedWindow(600)) }, {
		before: (p) => p.route("**/api/v1/query_range?*", answer((x) => [x[20]])),
	});
	const c = await chartReady(page);
	assert.deepEqual(c.isolated, [[20]]);
	/** How much the colours around a value of the chart differ from the background. */
	const inked = (time, value) =>
		page.evaluate(
			([when, v]) => {
				const canvas = document.querySelector(".chart-panel canvas");
				const over = document.querySelector(".chart-panel .u-over");
				const d = window.__epi.chart();
				const scale = canvas.width / canvas.getBoundingClientRect().width;
				const box = over.getBoundingClientRect();
				const own = canvas.getBoundingClientRect();
				const f = (when - d.window.start) / (d.window.end - d.window.start);
				const x = (box.left - own.left + f * box.width) * scale;
				const y = (box.top - own.top + (1 - v / d.yMax) * box.height) * scale;
				const copy = document.createElement("canvas");
				Object.assign(copy, { width: canvas.width, height: canvas.height });
				const pen = copy.getContext("2d", { willReadFrequently: true });
				pen.drawImage(canvas, 0, 0);
				const { data } = pen.getImageData(x - 1, y - 1, 3, 3);
				return Math.min(...Array.from({ length: 9 }, (_, i) => data[i * 4 + 3]));
			},
			[time, value],
		);
	await countComes(page.locator(".chart-empty"), 0);
	const cores = 5;
	assert.equal(await inked(c.times[20], cores), 255, "a whole dot");
	assert.ok((await inked(c.times[40], cores)) < 255, "and nothing elsewhere");
	await shot(page, "chart-point");
	await page.unrouteAll({ behavior: "wait" });
	await page.route(
		"**/api/v1/query_range?*",
		answer((x) => [...x.slice(2, 9), x[20], ...x.slice(30, 40)]),
	);
	await page.getByRole("button", { name: "Run", exact: true }).click();
	await page.waitForFunction(() => window.__epi.chart()?.columns[0][2] !== null);
	const gaps = await chartReady(page);
	assert.deepEqual(gaps.isolated, [[20]]);
	assert.equal(await inked(gaps.times[20], cores), 255);
	assert.deepEqual(problems, []);
});

test("where nothing is drawn the chart says why", async (t) => {
	const { page, problems } = await open(t, { query: QUERY, ...(await fixedWindow(600)) }, {
		before: (p) => p.route("**/api/v1/query_range?*", answer(() => [])),
	});
	await page.getByText("No data at this resolution. Zoom in.").waitFor();
	assert.deepEqual(problems, []);
});

test("the keyboard moves the cursor and opens a scrape; what is drawn is said", async (t) => {
	const { page, problems } = await open(t, {
		query: QUERY,
		...(await fixedWindow(300)),
		by: "version",
		view: "flame",
	});
	await flameReady(page);
	const c = await chartReady(page, 2);
	const plot = page.getByRole("slider", { name: /Cost over time/ });
	const lines = await page.locator(".chart-summary li").allTextContents();
	assert.match(lines[0], /^2 lines, .*in cores, step 10s\.$/);
	for (const [i, label] of c.labels.entries()) {
		const values = c.columns[i].filter((v) => v !== null);
		const text = lines.find((l) => l.startsWith(`${label}: `));
		const [low, high, last] = text.match(/[\d.]+(?= cores)/g).map(Number);
		for (const [said, is] of [
			[low, Math.min(...values)],
			[high, Math.max(...values)],
			[last, values.at(-1)],
		])
			assert.ok(Math.abs(said - is) <= 0.005 * Math.abs(is) + 1e-9, `${text}: ${is}`);
	}
	await plot.focus();
	await page.keyboard.press("End");
	await page.keyboard.press("ArrowLeft");
	const last = c.times.findLastIndex((_, i) => c.columns.some((x) => x[i] !== null));
	const here = c.times.findLastIndex(
		(_, i) => i < last && c.columns.some((x) => x[i] !== null),
	);
	assert.equal((await chart(page)).cursor, here);
	assert.match(await plot.getAttribute("aria-valuetext"), /: v[12] [\d.]+ cores(, v[12] [\d.]+ cores)?$/);
	await page.keyboard.press("Enter");
	await page.waitForURL((u) => u.searchParams.get("to") === String(c.times[here]));
	await rootTotal(page, await total(QUERY, params(page)));
	assert.deepEqual(problems, []);
});

test("times are typed, shifted and widened; a link compares what is open", async (t) => {
	const { page, problems } = await open(t, { query: QUERY, range: "15m" });
	await chartReady(page);
	const time = () => page.getByRole("button", { name: /^Last |^\d{4}-/ });
	const type = async (text) => {
		await time().click();
		await page.getByRole("textbox", { name: "Range" }).fill(text);
		await page.keyboard.press("Enter");
	};
	await type("3h");
	await page.waitForURL((u) => u.searchParams.get("range") === "3h");
	await type("2026-01-02T03:00:00Z to 2026-01-02T05:30:00+02:00");
	await page.waitForURL((u) => u.searchParams.get("to") === "1767324600");
	await addressHas(page, { from: "1767322800" });
	await page.getByRole("button", { name: "Later" }).click();
	await page.waitForURL((u) => u.searchParams.get("from") === "1767323700");
	await page.getByRole("button", { name: "Zoom out" }).click();
	await page.waitForURL((u) => u.searchParams.get("from") === "1767322800");
	await addressHas(page, { to: "1767326400" });
	await type("soon");
	await page.getByText("Not a range").waitFor();
	await page.keyboard.press("Escape");
	await time().click();
	await page.getByRole("button", { name: "Last 90d" }).click();
	await page.waitForURL((u) => u.searchParams.get("range") === "90d");
	await page.getByRole("combobox", { name: "Refresh every" }).selectOption("5m");
	await page.waitForURL((u) => u.searchParams.get("refresh") === "5m");
	const link = page.getByRole("link", { name: "Compare with the window before" });
	const to = new URL(await link.getAttribute("href"), page.url()).searchParams;
	assert.deepEqual([to.get("new"), to.get("base"), to.get("shift")], [QUERY, QUERY, "prev"]);
	assert.equal(Math.round(Number(to.get("to")) - Number(to.get("from"))), 90 * 86400);
	assert.deepEqual(problems, []);
});

test("narrow: nothing is wider than the screen, with a scrape open", async (t) => {
	const w = await fixedWindow(300);
	const to = Number(w.to) - 60;
	const { page, problems } = await open(
		t,
		{ query: QUERY, from: to - INTERVAL_S, to, cfrom: w.from, cto: w.to, by: "function" },
		{ viewport: { width: 400, height: 900 } },
	);
	await chartReady(page, 2);
	await page.getByText("One scrape").waitFor();
	const inside = await page.evaluate(() =>
		[".time-picker .group", ".opened", ".chart-panel .panel-head", ".legend"].map(
			(s) => document.querySelector(s).getBoundingClientRect().right <= innerWidth - 16,
		),
	);
	assert.deepEqual(inside, [true, true, true, true]);
	await shot(page, "chart-narrow");
	assert.deepEqual(problems, []);
});

test("the last label of the time axis is not cut off", async (t) => {
	const to = Math.floor(Date.now() / 60000) * 60; // a label is at the very end
	const args = { query: QUERY, from: String(to - 120), to: String(to) };
	const { page, problems } = await open(t, args, { viewport: { width: 1400, height: 900 } });
	await chartReady(page);
	const ink = await page.locator(".chart-panel canvas").evaluate((canvas) => {
		const { data } = canvas.getContext("2d").getImageData(canvas.width - 1, 0, 1, canvas.height);
		return data.filter((v, i) => i % 4 === 3 && v > 0).length;
	});
	assert.equal(ink, 0, "nothing is drawn at the canvas's edge");
	assert.deepEqual(problems, []);
});
