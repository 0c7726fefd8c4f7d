// Drives the page of a running server in Chromium and checks what it shows against the API.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	clickNode,
	closeBrowser,
	countComes,
	decode,
	drawn,
	editComparison,
	explore,
	fixedWindow,
	flameReady,
	FLEET as base,
	fleetApi as api,
	openFleet as open,
	QUERY,
	settled,
	shot,
} from "./page.mjs";

after(closeBrowser);

/** The flame graph that the API gives for QUERY in this window. */
async function storedGraph(w) {
	const data = await api("query", {
		query: `merge(${QUERY})`,
		start: w.from,
		end: w.to,
		max_nodes: 2048,
	});
	assert.equal(data.resultType, "profiles");
	return data.result[0].flamebearer;
}

test("a first visit shows a flame graph, a chart and a table, and asks nobody else", async (t) => {
	const { page, problems } = await open(t, "explore");
	await flameReady(page);
	await page.locator(".chart canvas").waitFor();
	await page.locator(".vtable-body > div").first().waitFor();
	assert.match(await page.title(), /Epimetheus/);
	assert.match(page.url(), /[?&]query=/);
	assert.ok(
		(await drawn(page)).some((n) => n.level > 0 && n.name),
		"a function is drawn",
	);
	assert.deepEqual(problems, []);
	await shot(page, "first");
});

test("every node is where the API's numbers put it", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const graph = await storedGraph(w);
	const nodes = decode(graph);
	const { width } = await page.evaluate(() => window.__epi.flame());
	const scale = width / nodes[0].total;
	const shown = await drawn(page);
	assert.ok(shown.length > 3, `${shown.length} nodes`);
	const byName = new Map();
	for (const n of nodes) {
		const key = `${n.level} ${n.name}`;
		byName.set(key, [...(byName.get(key) ?? []), n]);
	}
	for (const s of shown) {
		const same = byName.get(`${s.level} ${s.name}`) ?? [];
		assert.ok(
			same.some(
				(n) => Math.abs(s.x - n.x * scale) < 0.01 && Math.abs(s.w - n.total * scale) < 0.01,
			),
			`${s.name} on level ${s.level} at ${s.x}, ${s.w} px wide`,
		);
	}
	const wide = nodes.filter((n) => n.total * scale >= 1).length;
	const levels = new Set(shown.map((s) => s.level)).size;
	if (levels === graph.levels.length)
		// else some are scrolled out of view
		assert.ok(shown.length >= wide, `${shown.length} drawn, ${wide} wider than a pixel`);
	assert.deepEqual(problems, []);
});

test("a click zooms, the crumbs and the back button return", async (t) => {
	const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(300)), view: "flame" }));
	await flameReady(page);
	const whole = await page.evaluate(() => window.__epi.flame().width);
	const target = (await drawn(page))
		.filter((n) => n.level > 0 && n.w < whole * 0.9)
		.sort((a, b) => b.w - a.w)[0];
	assert.ok(target, "a node to zoom to");
	await clickNode(page, target);
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	const after = (await drawn(page)).find((n) => n.index === target.index);
	assert.ok(Math.abs(after.x) < 0.5 && Math.abs(after.w - whole) < 0.5, `${after.x} ${after.w}`);
	await page.getByRole("button", { name: "Reset zoom" }).waitFor();
	await shot(page, "zoomed");
	await page.reload();
	await flameReady(page);
	const again = (await drawn(page)).find((n) => n.index === target.index);
	assert.ok(Math.abs(again.w - whole) < 0.5, "a reload keeps the zoom");
	await page.goBack();
	await settled(page);
	const back = (await drawn(page)).find((n) => n.index === target.index);
	assert.ok(Math.abs(back.w - target.w) < 0.5, "back is as before");
});

test("the keyboard walks and zooms", async (t) => {
	const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(300)), view: "flame" }));
	await flameReady(page);
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !location.search.includes("zoom="));
});

test("a search shows the matched share", async (t) => {
	const w = await fixedWindow(300);
	const { page } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const nodes = decode(await storedGraph(w));
	const name = nodes
		.filter((n) => n.level === 2 && n.name !== "other")
		.sort((a, b) => b.total - a.total)[0].name;
	// The same share computed here, from outermost matches only.
	const hits = nodes.filter((n) => n.level > 0 && n.name === name);
	const outer = hits.filter(
		(n) => !hits.some((o) => o.level < n.level && o.x <= n.x && n.x + n.total <= o.x + o.total),
	);
	const want = (100 * outer.reduce((s, n) => s + n.total, 0)) / nodes[0].total;
	await page
		.getByRole("textbox", { name: "Search" })
		.fill("^" + name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$");
	await page.waitForFunction(() => window.__epi.search()?.percent !== undefined);
	const got = await page.evaluate(() => window.__epi.search());
	assert.ok(Math.abs(got.percent - want) < 1e-6, `${got.percent} against ${want}`);
	assert.match(await page.locator(".search-info").textContent(), /^[\d.]+% matched$/);
	await page.waitForURL(/[?&]search=/);
	await page.getByRole("textbox", { name: "Search" }).fill("(");
	await page.getByText("not a regexp").waitFor();
	await shot(page, "search");
});

test("the table's numbers are the API's", async (t) => {
	const w = await fixedWindow(300);
	const { page } = await open(t, explore({ query: QUERY, ...w, view: "table" }));
	await page.locator(".vtable-body > div").first().waitFor();
	const data = await api("query", {
		query: `top(5000, merge(${QUERY}))`,
		start: w.from,
		end: w.to,
	});
	const want = Object.fromEntries(data.result[0].rows.map((r) => [r.function, [r.flat, r.cum]]));
	const rows = await page.evaluate(() => window.__epi.table());
	assert.ok(rows.length > 3);
	assert.deepEqual(Object.fromEntries(rows.map((r) => [r.function, [r.flat, r.cum]])), want);
	const flats = rows.map((r) => r.flat);
	assert.deepEqual(
		flats,
		[...flats].sort((a, b) => b - a),
		"sorted by flat",
	);
	await page.getByRole("columnheader", { name: /^Cum(?! %)/ }).click();
	await page.waitForFunction(
		(first) => window.__epi.table()[0].cum >= first,
		Math.max(...rows.map((r) => r.cum)),
	);
	const first = (await page.evaluate(() => window.__epi.table()))[0].function;
	await page.locator(".vtable-body > div").first().click();
	await page.waitForFunction(
		(name) => new URLSearchParams(location.search).get("fn") === name,
		first,
	);
	await page.getByRole("heading", { name: first, exact: true }).waitFor();
	await page.goBack();
	await page.locator(".vtable-body > div").first().waitFor();
	await shot(page, "table");
});

test("the picker writes the query", async (t) => {
	const { page } = await open(t, explore({ query: "cpu" }));
	await flameReady(page);
	await page.getByRole("button", { name: "Label", exact: true }).click();
	await page.getByRole("combobox", { name: "Label", exact: true }).fill("job");
	await page.keyboard.press("Enter");
	await page.getByRole("combobox", { name: "Value", exact: true }).click();
	await page.getByRole("option", { name: "demo", exact: true }).click();
	await page.waitForFunction(
		() => new URLSearchParams(location.search).get("query") === 'cpu{job="demo"}',
	);
	assert.equal(await page.getByRole("textbox", { name: "Query" }).inputValue(), QUERY);
	await page.getByRole("combobox", { name: "Group by" }).selectOption("version");
	// The chart ends with the last whole step, so a fleet that has just started is asked again.
	const both = page.locator(".legend").filter({ hasText: "v1" }).filter({ hasText: "v2" });
	for (let i = 0; i < 20 && !(await both.isVisible()); i++) {
		await page.waitForTimeout(2000);
		await page.getByRole("button", { name: "Run", exact: true }).click();
	}
	await both.waitFor();
	assert.deepEqual((await page.locator(".legend li .ellipsis").allTextContents()).sort(), ["v1", "v2"]);
});

test("dragging on the chart chooses the window", async (t) => {
	const { page } = await open(t, explore({ query: QUERY, range: "15m" }));
	await flameReady(page);
	const over = page.locator(".chart .u-over");
	const box = await over.boundingBox();
	await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.9, box.y + 40, { steps: 6 });
	await page.mouse.up();
	await page.waitForURL(/[?&]from=\d+/);
	const p = new URL(page.url()).searchParams;
	const width = Number(p.get("to")) - Number(p.get("from"));
	assert.ok(width > 280 && width < 440, `${width} s`);
});

test("a wrong query says what and where", async (t) => {
	const { page } = await open(t, explore({ query: "merge(cpu" }));
	const alert = page.getByRole("alert");
	await alert.waitFor();
	assert.match(await alert.locator("pre").textContent(), /^merge\(cpu\n {5,}\^$/);
	await shot(page, "error");
});

test("costs are a table of labels and values", async (t) => {
	const w = await fixedWindow(300);
	const { page } = await open(t, explore({ query: `flat(merge(${QUERY}))`, ...w }));
	await page.locator(".vtable-body > div").first().waitFor();
	const data = await api("query", { query: `flat(merge(${QUERY}))`, start: w.from, end: w.to });
	assert.equal(data.resultType, "vector");
	const rows = await page.evaluate(() => window.__epi.table());
	assert.equal(rows.length, data.result.length);
	await page.getByRole("columnheader", { name: "function" }).waitFor();
});

test("costs of CPU are times, and their chart is in cores", async (t) => {
	const w = await fixedWindow(300);
	const query = `topk(3, flat(merge(${QUERY})))`;
	const { page, problems } = await open(t, explore({ query, ...w }));
	await page.locator(".vtable-body > div").first().waitFor();
	await page.locator(".chart-panel .panel-head").getByText("cores", { exact: true }).waitFor();
	const text = await page.locator(".vtable-body > div").first().innerText();
	assert.match(text, /[\d.]+ (ns|µs|ms|s|min|h)\s*$/);
	assert.deepEqual(problems, []);
});

test("a selection that cost nothing says so, and one that is not stored too", async (t) => {
	const w = await fixedWindow(120);
	// The server may have been busy in these two minutes, so the test makes up an idle answer.
	const idle = {
		json: {
			status: "success",
			data: {
				resultType: "profiles",
				result: [
					{
						metric: {},
						type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
						unit: "nanoseconds",
						total: 0,
						cost: 0,
						profiles: 12,
						flamebearer: {
							format: "single",
							levels: [[0, 0, 0, 0]],
							names: ["total"],
							numTicks: 0,
							maxSelf: 0,
						},
					},
				],
			},
		},
	};
	const { page } = await open(t, explore({ query: 'cpu{job="epimetheus"}', ...w }), {
		before: (p) => p.route("**/api/v1/query?*", (route) => route.fulfill(idle)),
	});
	await page.getByText(/^No CPU time in this window: 12 profiles without samples[.]/).waitFor();
	await page.unrouteAll({ behavior: "wait" });
	await page.goto(base + explore({ query: "nosuchtype", ...w }));
	await page.getByText("No stored type is named nosuchtype").waitFor();
});

test("differences in the table have their signs", async (t) => {
	const w = await fixedWindow(120);
	const { page } = await open(
		t,
		explore({ query: `diff(merge(cpu{job="demo",version="v1"}), merge(${QUERY}))`, ...w, view: "table" }),
	);
	const first = page.locator(".vtable-body > div").first();
	await first.waitFor();
	// Base, new, difference, times; and the difference with what it calls.
	assert.match(await first.innerText(), /[\d.]+ \w+\s+[\d.]+ \w+\s+−[\d.]+ \w+\s+(gone|[\d.]+×)\s+−[\d.]+ \w+/);
});

test("a difference with a side that has no profiles shows the other side as it is", async (t) => {
	const [whole, none] = [`merge(${QUERY})`, `merge(${QUERY} offset 1d)`];
	for (const [query, side] of [
		[`${whole} - ${none}`, "base"],
		[`${none} - ${whole}`, "new"],
	]) {
		const w = await fixedWindow(120);
		const { page, problems } = await open(t, explore({ query, ...w }));
		await flameReady(page);
		await page.getByText(`no profiles on the ${side} side of the difference`).waitFor();
		await page.getByRole("region", { name: "Verdict" }).getByText(`No data in the ${side} window.`).waitFor();
		await page.locator(".vtable-body > div").first().waitFor();
		await countComes(page.locator(".is-diff"), 0);
		const top = await api("query", { query: `top(5, ${whole})`, start: w.from, end: w.to });
		const rows = await page.evaluate(() => window.__epi.table());
		assert.deepEqual([rows[0].function, rows[0].flat], [top.result[0].rows[0].function, top.result[0].rows[0].flat]);
		assert.deepEqual(problems, []);
		await shot(page, `no-${side}`);
	}
});

test("the exports open", async (t) => {
	const w = await fixedWindow(120);
	const { page } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	await page.getByRole("button", { name: "Export" }).click();
	const links = await page.locator(".menu-items a").evaluateAll((all) => all.map((a) => a.href));
	assert.equal(links.length, 4);
	const bodies = await Promise.all(
		links.map(async (href) => {
			const response = await fetch(href);
			assert.equal(response.status, 200, href);
			return Buffer.from(await response.arrayBuffer());
		}),
	);
	assert.deepEqual([...bodies[0].subarray(0, 2)], [0x1f, 0x8b], "pprof is gzip");
	assert.match(bodies[1].toString().split("\n")[0], /^.+ \d+$/);
	assert.match(JSON.parse(bodies[2]).$schema, /speedscope/);
	assert.match(bodies[3].toString(), /flat%/);
});

test("compare finds a function that differs between two versions", async (t) => {
	const { page, problems } = await open(
		t,
		"compare?" +
			new URLSearchParams({
				new: QUERY,
				base: QUERY,
				...(await fixedWindow(120)),
			}),
	);
	await flameReady(page);
	await editComparison(page);
	const value = (name) => page.getByRole("combobox", { name });
	for (const [name, text] of [
		["Label to compare by", "version"],
		["Base value", "v1"],
		["New value", "v2"],
	]) {
		await value(name).fill(text);
		await page.keyboard.press("Enter");
	}
	await page.getByRole("button", { name: "Compare", exact: true }).click();
	await page.waitForFunction(() =>
		/version="v2"/.test(new URLSearchParams(location.search).get("new")),
	);
	await flameReady(page);
	await page.locator(".is-diff .vtable-body > div").first().waitFor();
	const sent = await page.locator(".asked code").textContent();
	assert.match(
		sent,
		/^diff\(merge\(cpu\{job="demo",version="v2"\}\[2m\]\), merge\(cpu\{job="demo",version="v1"\}\[2m\]\)\)$/,
	);
	const rows = await page.evaluate(() => window.__epi.table());
	assert.ok(rows[0].flat > 0, "the first function costs more than before");
	const top = await api("query", {
		query: `top(5000, ${sent})`,
		time: new URL(page.url()).searchParams.get("to"),
	});
	assert.equal(rows[0].flat, Math.max(...top.result[0].rows.map((r) => r.flat)));
	assert.deepEqual(problems, []);
	await shot(page, "compare");
});

test("the targets page lists both jobs, and they are up", async (t) => {
	const { page, problems } = await open(t, "targets");
	for (const job of ["demo", "epimetheus"]) {
		const pool = page.locator(".pool", {
			has: page.getByRole("heading", { name: job, exact: true }),
		});
		await pool.locator(".badge.up").first().waitFor();
	}
	assert.deepEqual(problems, []);
	await shot(page, "targets");
});

test("light and dark follow the system, and the button", async (t) => {
	const { page } = await open(t, "targets", { colorScheme: "dark" });
	const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
	const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	await page.getByRole("button", { name: "Switch to light" }).waitFor();
	assert.equal(await theme(), "dark");
	const dark = await ground();
	await page.getByRole("button", { name: "Switch to light" }).click();
	assert.equal(await theme(), "light");
	assert.notEqual(await ground(), dark);
	await page.reload();
	await page.getByRole("button", { name: "Switch to dark" }).waitFor();
	assert.equal(await theme(), "light", "the choice outlives the page");
});
