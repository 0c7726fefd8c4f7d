// Compare: windows and presets, totals on both sides, equal scales, and the planted regression.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	addressHas,
	closeBrowser,
	countComes,
	editComparison,
	fixedWindow,
	flameReady,
	FLEET,
	fleetApi as api,
	fleetTotal as total,
	openFleet,
	params,
	shot,
	verdictReady,
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

/** Both charts are there. A chart is drawn anew when the other one comes, with the greater scale of both. */
async function chartsReady(page) {
	await page.waitForFunction(() => {
		const [a, b] = ["base", "new"].map((s) => window.__epi?.chart(`chart-${s}`));
		return [a, b].every((c) => c?.columns[0]?.some((v) => v !== null)) && a.yMax === b.yMax;
	});
	return { base: await chart(page, "base"), next: await chart(page, "new") };
}

test("version against version finds the planted regression, and counts both sides", async (t) => {
	let w = await fixedWindow(240);
	const at = () => new URLSearchParams({ new: V2, base: V1, ...w, shift: "0" });
	const { page, problems } = await openFleet(t, `compare?${at()}`);
	for (let tries = 1; ; tries++) {
		await flameReady(page);
		await page.locator(".is-diff .vtable-body > div").first().waitFor();
		const rows = await page.evaluate(() => window.__epi.table());
		// Only the program's own functions: on a busy machine the runtime's may change more.
		const own = rows.filter((r) => r.function.startsWith("main."));
		if (own[0]?.function === REGRESSED && own[0].flat > 0) break;
		// In a window in which the fleet hardly ran, chance moves another function more.
		assert.ok(tries < 12, `${own[0]?.function} is first`);
		await page.waitForTimeout(10000);
		w = await fixedWindow(240);
		await page.goto(`${FLEET}compare?${at()}`);
	}
	const got = await totalsReady(page);
	const want = { base: await total(V1, w.from, w.to), new: await total(V2, w.from, w.to) };
	assert.ok(want.base > 0 && want.new > 0);
	assert.deepEqual(got, { ...want, change: want.new - want.base, factor: 1 });
	const text = await page.getByRole("region", { name: "Totals" }).innerText();
	assert.match(text, /Base\s+[\d.]+ (m?s|min)\s+[\d.]+ cores/);
	assert.deepEqual(problems, []);
	await shot(page, "compare-versions");
});

test("the verdict names the planted regression, and what it says is the API's answer", async (t) => {
	let w = await fixedWindow(240);
	const at = () => new URLSearchParams({ new: V2, base: V1, ...w, shift: "0" });
	const { page, problems } = await openFleet(t, `compare?${at()}`);
	const verdict = page.getByRole("region", { name: "Verdict" });
	let said;
	for (let tries = 1; ; tries++) {
		said = await verdictReady(page);
		await page.waitForFunction(() => window.__epi.strips());
		if (said.name === REGRESSED) break;
		// In a window in which the fleet hardly ran, chance moves another function more.
		assert.ok(tries < 12, `${said.name} is named`);
		await page.waitForTimeout(10000);
		w = await fixedWindow(240);
		await page.goto(`${FLEET}compare?${at()}`);
	}
	const text = (await verdict.getByRole("status").innerText()).replace(/\s+/g, " ");
	const percent = String.raw`<?[\d.]+%`;
	assert.match(
		text,
		new RegExp(
			`^main\\.scoreItems ${percent} → ${percent} \\([\\d.]+×, \\+[\\d.]+ m?s of CPU in 4 min\\), ` +
				`called only by main\\.\\(\\*shop\\)\\.search; (significant \\(99 %\\)|not enough data yet)`,
		),
	);
	const interval = await api("query", {
		query: `changed_interval(${V2}[4m], ${V1}[4m])`,
		time: w.to,
	});
	const sure = interval.result.some(
		(e) => e.metric.function === REGRESSED && e.metric.verdict === "changed",
	);
	assert.equal(/; significant/.test(text), sure, text);
	assert.equal(said.certainty, sure ? "certain" : "open");
	// A strip has a bar per minute: the share that the API gives for it.
	const strips = await page.evaluate(() => window.__epi.strips());
	assert.equal(strips.step, 60);
	for (const [side, query] of [
		["new", V2],
		["base", V1],
	]) {
		assert.equal(strips[side].length, 4);
		const { result } = await api("query", {
			query: `cum_share(merge(${query}[1m]), {function="${REGRESSED}"})`,
			time: w.to,
		});
		assert.equal(strips[side][3], Number(result[0]?.value[1] ?? 0), side);
	}
	assert.deepEqual(problems, []);
	await verdict.getByRole("button", { name: REGRESSED }).click();
	await page.waitForURL(/[?&]fn=main\.scoreItems/);
	await shot(page, "compare-verdict");
});

test("base, new, difference and times are those of the API", async (t) => {
	const w = await fixedWindow(240);
	const args = { new: V2, base: V1, ...w, shift: "0", view: "table" };
	const { page, problems } = await open(t, args);
	for (const name of ["Base", "New", "Difference", "Times", "Δ Cum", "Significance"])
		await page.getByRole("columnheader", { name: new RegExp(`${name}( ▼)?$`) }).first().waitFor();
	const row = page
		.locator(".vtable-body > div")
		.filter({ has: page.getByTitle(REGRESSED, { exact: true }) });
	const cells = async () => (await row.locator("> div").allInnerTexts()).slice(1, 5);
	await row.getByText("×").first().waitFor();
	const flat = async (query) => {
		const { result } = await api("query", { query: `top(5000, merge(${query}[4m]))`, time: w.to });
		return result[0].rows.find((r) => r.function === REGRESSED).flat;
	};
	const [b, n] = [await flat(V1), await flat(V2)];
	const seconds = (text) =>
		Number(text.replace("−", "-").replace(/[^\d.-]/g, "")) * (/ ms/.test(text) ? 1e6 : 1e9);
	const [base, next, difference, times] = await cells();
	for (const [text, want] of [
		[base, b],
		[next, n],
		[difference, n - b],
	])
		assert.ok(Math.abs(seconds(text) - want) <= 0.01 * Math.abs(want), `${text}: ${want}`);
	assert.ok(Math.abs(parseFloat(times) - n / b) <= 0.05 * (n / b) + 0.05, `${times}: ${n / b}`);
	assert.deepEqual(problems, []);
});

test("an empty base is said, and is no wall of one colour", async (t) => {
	const w = await fixedWindow(120);
	const none = { bfrom: "1000000000", bto: "1000000120" };
	for (const colorScheme of ["light", "dark"]) {
		const { page, problems } = await open(
			t,
			{ new: V2, base: V2, ...w, ...none },
			{ colorScheme },
		);
		await flameReady(page);
		await page
			.getByRole("region", { name: "Verdict" })
			.getByText("No data in the base window. The colours")
			.waitFor();
		await page.getByText("no profiles on the base side of the difference").waitFor();
		// The table has the costs of New, none of them as a change.
		await page.locator(".vtable-body > div").first().waitFor();
		await countComes(page.locator(".is-diff"), 0);
		const top = await api("query", { query: `top(5, merge(${V2}[2m]))`, time: w.to });
		const rows = await page.evaluate(() => window.__epi.table());
		assert.deepEqual(rows.slice(0, 1).map((r) => [r.function, r.flat]), top.result[0].rows.slice(0, 1).map((r) => [r.function, r.flat]));
		const colors = await page.evaluate(() => {
			const canvas = document.querySelector(".flame-stage canvas");
			const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
			const seen = {};
			for (let i = 0; i < data.length; i += 4 * 97)
				if (data[i + 3] === 255) {
					const c = data.slice(i, i + 3).join();
					seen[c] = (seen[c] ?? 0) + 1;
				}
			return Object.values(seen);
		});
		const all = colors.reduce((a, b) => a + b, 0);
		assert.ok(colors.length > 6, `${colors.length} colours`);
		assert.ok(Math.max(...colors) < 0.8 * all, "no colour has it all");
		assert.deepEqual(problems, []);
		await shot(page, `compare-empty-${colorScheme}`);
	}
});

test("a link's labels are in the fields; one button compares what was typed", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await open(t, { new: V2, base: V1, ...w, shift: "0" });
	const field = (name) => page.getByRole("combobox", { name, exact: true });
	await editComparison(page);
	await field("Base value").waitFor();
	const values = async () =>
		Promise.all(
			["Label to compare by", "Base value", "New value"].map((n) => field(n).inputValue()),
		);
	assert.deepEqual(await values(), ["version", "v1", "v2"]);
	await countComes(page.locator("button.primary:visible"), 1);
	await page.getByRole("textbox", { name: "Base query", exact: true }).fill('cpu{job="demo"}');
	await page.getByRole("button", { name: "Compare", exact: true }).click();
	await addressHas(page, { base: 'cpu{job="demo"}', new: V2, shift: "0" });
	await editComparison(page);
	assert.deepEqual(await values(), ["version", "", "v2"]);
	await page.goBack();
	await addressHas(page, { base: V1 });
	// The fields follow the address.
	await page.waitForFunction(
		() => document.querySelector('[aria-label="Base value"]').value === "v1",
	);
	assert.deepEqual(await values(), ["version", "v1", "v2"]);
	assert.deepEqual(problems, []);
});

test("the controls take at most a fifth of the screen; a preset shows the comparison", async (t) => {
	const w = await fixedWindow(120);
	for (const viewport of [
		{ width: 1440, height: 900 },
		{ width: 1100, height: 800 },
		{ width: 390, height: 844 },
	]) {
		const { page, problems } = await open(t, { new: V2, base: V1, ...w, shift: "0" }, { viewport });
		await chartsReady(page);
		const { height } = await page.getByRole("region", { name: "What is compared" }).boundingBox();
		assert.ok(height <= viewport.height / 5, `${viewport.width}: ${height} px`);
		const { y } = await page.getByRole("region", { name: "Verdict" }).boundingBox();
		assert.ok(y < viewport.height / 3, `the verdict begins at ${y} px`);
		await editComparison(page);
		await page.getByRole("button", { name: "Normalized", exact: true }).click();
		await page.waitForURL(/[?&]norm=1/);
		await page.getByRole("button", { name: "Normalized", exact: true }).waitFor({ state: "hidden" });
		await editComparison(page);
		await page.getByRole("button", { name: "This hour against yesterday" }).click();
		await page.getByRole("button", { name: "Normalized", exact: true }).waitFor({ state: "hidden" });
		assert.deepEqual(problems, []);
	}
});

test("normalized totals: new is scaled to base, and the page says by how much", async (t) => {
	const w = await fixedWindow(240);
	const { page, problems } = await open(t, { new: V2, base: V1, ...w, shift: "0" });
	await totalsReady(page);
	await editComparison(page);
	await page.getByRole("button", { name: "Normalized", exact: true }).click();
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
		.getByText(`new × ${Number((v1 / v2).toPrecision(3))}, scaled to`)
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
	const w = await fixedWindow(120);
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
	const { page, problems } = await open(t, { new: V2, base: V1, ...(await fixedWindow(60)) });
	await chartsReady(page);
	const marks = async () => [await chart(page, "base"), await chart(page, "new")].map((c) => c.mark);
	const press = async (name, ready) => {
		await editComparison(page);
		await page.getByRole("button", { name, exact: true }).click();
		await page.waitForFunction(ready);
		const [b, n] = await marks();
		await addressHas(page, { base: V2 });
		await editComparison(page);
		assert.equal(await page.getByRole("button", { name, exact: true }).getAttribute("aria-pressed"), "true");
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
	const pressed = Date.now() / 1000;
	const week = await press("Today against a week ago", apart(7 * 86400));
	assert.equal(seconds(week), 7 * 86400);
	const midnight = await page.evaluate(
		(t) => new Date(t * 1000).setHours(0, 0, 0, 0) / 1000,
		week.n.end,
	);
	assert.equal(week.n.start, midnight);
	assert.ok(pressed - 1 <= week.n.end && week.n.end <= Date.now() / 1000, "until now");
	assert.deepEqual(problems, []);
});

test("before against after a point, chosen on the new side's chart", async (t) => {
	const w = await fixedWindow(180);
	const { page, problems } = await open(t, { new: V2, base: V2, ...w });
	await chartsReady(page);
	const before = await chart(page, "new");
	await editComparison(page);
	await page.getByRole("button", { name: "Before against after a point" }).click();
	await page.locator(".compare.picking").waitFor();
	const i = before.times.findIndex(
		(x, k) => x >= Number(w.from) + 60 && before.columns[0][k] !== null,
	);
	const aimed = before.times[i];
	const f = (aimed - before.window.start) / (before.window.end - before.window.start);
	const chosen = () => new URL(page.url()).searchParams.get("point");
	// On a busy machine the page may still move while the chart is measured, and the click goes beside it.
	for (let tries = 0; tries < 20 && !chosen(); tries++) {
		const box = await page.locator(".side.new .u-over").boundingBox();
		await page.mouse.click(box.x + box.width * f, box.y + 20);
		await page.waitForURL(chosen, { timeout: 5000 }).catch(() => {});
	}
	const point = Number(chosen());
	assert.ok(before.times.includes(point), `${point} is a point of the chart`);
	assert.ok(Math.abs(point - aimed) <= before.times[1] - before.times[0], `${point}, aimed at ${aimed}`);
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
		{ new: V2, base: V1, ...(await fixedWindow(120)), shift: "0" },
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

test("the call path of a zoom is whole: where one is, a click on each part, after a reload", async (t) => {
	const w = await fixedWindow(120);
	const [next, base] = ["v2", "v1"].map((v) => `cpu{job="demo",version="${v}"}`);
	const { page } = await openFleet(t, `compare?${new URLSearchParams({ new: next, base, ...w, shift: "0" })}`, {
		viewport: { width: 1440, height: 900 },
	});
	await flameReady(page);
	await page.locator(".flame-stage canvas").first().focus();
	for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForURL(/[?&]zoom=/);
	const path = page.getByRole("group", { name: "Call path of the zoomed function" });
	const cut = () =>
		path.evaluate((c) => {
			const right = c.getBoundingClientRect().right + 0.5;
			return [...c.children].filter((e) => e.getBoundingClientRect().right > right).map((e) => e.textContent);
		});
	const current = () => path.locator(".current").getAttribute("title");
	const zoomedIs = (name) => page.waitForFunction((n) => window.__epi.flame().zoomed === n, name);
	await path.getByRole("button", { name: "Reset zoom" }).waitFor();
	assert.deepEqual(await cut(), []);
	const deepest = await current();
	await zoomedIs(deepest);
	await page.reload();
	await flameReady(page);
	await zoomedIs(deepest);
	assert.equal(await current(), deepest);
	const above = await path.locator("button[title]:not(.current)").last().getAttribute("title");
	await path.locator("button[title]:not(.current)").last().click();
	await zoomedIs(above);
	assert.equal(await current(), above);
	await path.getByRole("button", { name: "Reset zoom" }).click();
	await page.waitForFunction(() => !location.search.includes("zoom="));
});
