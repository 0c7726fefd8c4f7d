// Compare: windows and presets, totals on both sides, equal scales, and the planted regression.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	closeBrowser,
	fixedWindow,
	flameReady,
	fleetApi as api,
	fleetTotal as total,
	openFleet,
	params,
	shot,
} from "./page.mjs";

const V1 = 'cpu{job="demo",version="v1"}';
const V2 = 'cpu{job="demo",version="v2"}';
const REGRESSED = "main.scoreItems"; // v2 of the demo fleet does more of it

after(closeBrowser);

const open = (t, args, options) =>
	openFleet(t, `compare?${new URLSearchParams(args)}`, options);
const chart = (page, side) => page.evaluate((s) => window.__epi.chart(`chart-${s}`), side);
const totals = (page) => page.evaluate(() => window.__epi.totals());

async function totalsReady(page) {
	await page.waitForFunction(() => window.__epi?.totals() !== null);
	return totals(page);
}

async function chartsReady(page) {
	await page.waitForFunction(() =>
		["base", "new"].every((s) =>
			window.__epi?.chart(`chart-${s}`)?.columns[0]?.some((v) => v !== null),
		),
	);
	return { base: await chart(page, "base"), next: await chart(page, "new") };
}

test("version against version finds the planted regression, and counts both sides", async (t) => {
	const w = fixedWindow(240);
	const { page, problems } = await open(t, { new: V2, base: V1, ...w, shift: "0" });
	await flameReady(page);
	await page.locator(".is-diff .vtable-body > div").first().waitFor();
	const rows = await page.evaluate(() => window.__epi.table());
	// Only the program's own functions: on a busy machine the runtime's may change more.
	const own = rows.filter((r) => r.function.startsWith("main."));
	assert.equal(own[0].function, REGRESSED, "the regression is first");
	assert.ok(own[0].flat > 0);
	const got = await totalsReady(page);
	const want = { base: await total(V1, w.from, w.to), new: await total(V2, w.from, w.to) };
	assert.ok(want.base > 0 && want.new > 0);
	assert.deepEqual(got, { ...want, change: want.new - want.base, factor: 1 });
	const text = await page.getByRole("region", { name: "Totals" }).innerText();
	assert.match(text, /Base\s+[\d.]+ (m?s|min)\s+[\d.]+ cores/);
	assert.deepEqual(problems, []);
	await shot(page, "compare-versions");
});

test("normalized totals: new is scaled to base, and the page says by how much", async (t) => {
	const w = fixedWindow(240);
	const { page, problems } = await open(t, { new: V2, base: V1, ...w, shift: "0" });
	await totalsReady(page);
	await page.getByRole("button", { name: "Normalized" }).click();
	await page.waitForURL(/[?&]norm=1/);
	await page.waitForFunction(() => (window.__epi.totals()?.factor ?? 1) !== 1);
	const got = await totals(page);
	const [v1, v2] = [await total(V1, w.from, w.to), await total(V2, w.from, w.to)];
	assert.deepEqual(got, { base: v1, new: v2, change: v2 - v1, factor: v1 / v2 });
	const sent = await page.locator(".asked code").textContent();
	assert.match(sent, /^diff_normalized\(/);
	const data = await api("query", { query: sent, time: w.to });
	const { left_total: left, right_total: right } = data.result[0];
	assert.equal(left, v1);
	assert.ok(Math.abs(right - v1) <= 1e-4 * v1, `${right} is about ${v1}`);
	await page
		.getByText(`new is multiplied by ${Number((v1 / v2).toPrecision(3))}, so that`)
		.waitFor();
	await flameReady(page);
	const root = await page.evaluate(() => window.__epi.drawn().find((n) => n.level === 0));
	assert.equal(root.total, left + right);
	await shot(page, "compare-normalized");
	await page.reload();
	assert.equal((await totalsReady(page)).new, v2, "the address says all of it");
	assert.deepEqual(problems, []);
});

test("both charts have one scale, and mark their windows", async (t) => {
	const w = fixedWindow(120);
	const { page, problems } = await open(t, {
		new: 'cpu{job="demo"}',
		base: V1,
		...w,
		shift: "prev",
	});
	await chartsReady(page);
	await page.waitForFunction(
		() => window.__epi.chart("chart-base").yMax === window.__epi.chart("chart-new").yMax,
	);
	const { base: b, next: n } = await chartsReady(page);
	const highest = Math.max(...[b, n].flatMap((c) => c.columns[0]));
	assert.ok(b.yMax >= highest && b.yMax <= highest * 1.2, `${b.yMax} for ${highest}`);
	assert.deepEqual(n.mark, { start: Number(w.from), end: Number(w.to) });
	assert.deepEqual(b.mark, { start: Number(w.from) - 120, end: Number(w.to) - 120 });
	// A drag on the base's chart chooses its window; the other window stays.
	const box = await page.locator(".side.base .u-over").boundingBox();
	await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 5 });
	await page.mouse.up();
	await page.waitForURL(/[?&]bfrom=/);
	assert.deepEqual([params(page).from, params(page).to], [w.from, w.to]);
	assert.deepEqual(problems, []);
});

test("presets are addresses", async (t) => {
	const { page, problems } = await open(t, { new: V2, base: V1, ...fixedWindow(60) });
	await chartsReady(page);
	const marks = async () => [await chart(page, "base"), await chart(page, "new")].map((c) => c.mark);
	const press = async (name, ready) => {
		await page.getByRole("button", { name, exact: true }).click();
		await page.waitForFunction(ready);
		const [b, n] = await marks();
		await addressHas(page, { base: V2 });
		assert.ok(await page.getByRole("button", { name, exact: true }).getAttribute("aria-pressed"));
		return { b, n, width: n.end - n.start, away: n.start - b.start };
	};
	const seconds = (k) => (k.b.end - k.b.start === k.width ? k.away : NaN);
	const apart = (s) => `(() => {
		const [b, n] = ["base", "new"].map((x) => window.__epi.chart("chart-" + x)?.mark);
		return b && n && n.start - b.start === ${s};
	})()`;
	const hour = await press("This hour against the hour before", apart(3600));
	assert.deepEqual([hour.width, seconds(hour)], [3600, 3600]);
	const day = await press("This hour against yesterday", apart(86400));
	assert.deepEqual([day.width, seconds(day)], [3600, 86400]);
	const week = await press("Today against a week ago", apart(7 * 86400));
	assert.equal(seconds(week), 7 * 86400);
	const midnight = await page.evaluate(
		(t) => new Date(t * 1000).setHours(0, 0, 0, 0) / 1000,
		week.n.end,
	);
	assert.equal(week.n.start, midnight);
	assert.ok(Math.abs(Date.now() / 1000 - week.n.end) < 60, "until now");
	assert.deepEqual(problems, []);
});

test("before against after a point, chosen on the new side's chart", async (t) => {
	const w = fixedWindow(180);
	const { page, problems } = await open(t, { new: V2, base: V2, ...w });
	await chartsReady(page);
	const before = await chart(page, "new");
	await page.getByRole("button", { name: "Before against after a point" }).click();
	const i = before.times.findIndex(
		(x, k) => x >= Number(w.from) + 60 && before.columns[0][k] !== null,
	);
	const point = before.times[i];
	const box = await page.locator(".side.new .u-over").boundingBox();
	const f = (point - before.window.start) / (before.window.end - before.window.start);
	await page.mouse.click(box.x + box.width * f, box.y + 20);
	await page.waitForURL((u) => u.searchParams.get("point") === String(point));
	await page.waitForFunction((p) => window.__epi.chart("chart-new")?.mark?.start === p, point);
	const [b, n] = [(await chart(page, "base")).mark, (await chart(page, "new")).mark];
	assert.equal(b.end, point);
	assert.equal(n.start, point);
	assert.equal(b.end - b.start, n.end - n.start, "equally long");
	assert.ok(n.end <= Date.now() / 1000, "not past now");
	const want = await total(V2, b.start, b.end);
	await page.waitForFunction((v) => window.__epi.totals()?.base === v, want);
	const got = await totals(page);
	assert.equal(got.new, await total(V2, n.start, n.end));
	await shot(page, "compare-point");
	await page.reload();
	await chartsReady(page);
	assert.equal((await chart(page, "new")).mark.start, point, "the address says it");
	assert.deepEqual(problems, []);
});

test("narrow and dark: nothing is wider than the screen", async (t) => {
	const { page, problems } = await open(
		t,
		{ new: V2, base: V1, ...fixedWindow(120), shift: "0" },
		{ viewport: { width: 400, height: 900 }, colorScheme: "dark" },
	);
	await chartsReady(page);
	const wide = await page.evaluate(
		() => document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth,
	);
	await shot(page, "compare-narrow");
	await page.locator(".results .vtable-body > div").first().waitFor();
	const [tall, window] = await page.evaluate(() => [
		document.documentElement.scrollHeight,
		innerHeight,
	]);
	assert.equal(tall, window, "what scrolls is the page's content, not the page into nothing");
	assert.ok(wide <= 0, `${wide} px too wide`);
	assert.deepEqual(problems, []);
});
