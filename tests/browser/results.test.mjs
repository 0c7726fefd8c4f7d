// The result of a query: edits by menu and chips, the sandwich of a function, groups, significance
// and permalinks, each checked against the API's numbers.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
	addressHas,
	closeBrowser,
	countComes,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	FLEET as base,
	fleetApi as api,
	fleetTotal,
	nodePoint,
	openFleet as open,
	params,
	QUERY,
	settled,
	shot,
	WAIT_MS,
} from "./page.mjs";

after(closeBrowser);

const times = (w) => ({ start: w.from, end: w.to });

const total = async (query, when) =>
	Number((await api("query", { query: `total(${query})`, ...when })).result[0]?.value[1] ?? 0);

/** The widest function of package main that is narrower than the root. */
async function someFunction(page) {
	const width = await page.evaluate(() => window.__epi.flame().width);
	return (await drawn(page))
		.filter((n) => n.level > 1 && n.name.startsWith("main.") && n.w < width * 0.9)
		.sort((a, b) => b.w - a.w)[0];
}

async function menu(page, node, entry) {
	const { x, y } = await nodePoint(page, node);
	await page.mouse.click(x, y, { button: "right" });
	await page.getByRole("menuitem", { name: entry }).click();
}

const queryIs = (page, want) =>
	page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("query") === q,
		want,
	);

/** Presses Share and reads the clipboard. */
async function copiedLink(page) {
	await flameReady(page);
	await page.getByRole("button", { name: "Share" }).click();
	await page.getByText("Link copied").waitFor();
	return page.evaluate(() => navigator.clipboard.readText());
}

/** Of a page whose window ends now: opens its link, and compares the flame graphs. `still` says that the link's windows have what `page` drew. */
async function checkSamePicture(t, page, problems, still) {
	const end = Date.now() + WAIT_MS;
	for (;;) {
		const link = await copiedLink(page);
		const picture = await drawn(page);
		const other = await open(t, link.slice(base.length));
		await flameReady(other.page);
		const opened = await drawn(other.page);
		assert.deepEqual([...problems, ...other.problems], []);
		if (isDeepStrictEqual(opened, picture)) return;
		// A profile of that time may have come after the page asked.
		if (Date.now() > end || (await still(Object.fromEntries(new URL(link).searchParams)))) assert.deepEqual(opened, picture);
		await other.page.close();
		await page.reload();
	}
}

/** Waits until the root of the flame graph costs this much. */
const rootIs = (page, want) =>
	page.waitForFunction((n) => window.__epi.node(0)?.total === n, want);

test("the menu of a function edits the query, and what is drawn is its answer", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const node = await someFunction(page);
	const whole = (await page.evaluate(() => window.__epi.node(0))).total;
	for (const [entry, filter] of [
		["Focus on stacks through here", "focus"],
		["Hide stacks through here (ignore)", "ignore"],
		["Hide the function", "hide"],
		["Start stacks here (show_from)", "show_from"],
	]) {
		await menu(page, node, entry);
		const want = `${filter}(merge(${QUERY}), \`^\\Q${node.name}\\E$\`)`;
		await queryIs(page, want);
		const sum = await total(want, times(w));
		await rootIs(page, sum);
		await settled(page);
		const names = (await drawn(page)).map((n) => n.name);
		const left = filter === "ignore" || filter === "hide" ? !names.includes(node.name) : true;
		assert.ok(left, `${node.name} after ${filter}`);
		if (filter === "show_from")
			assert.ok((await drawn(page)).every((n) => n.level !== 1 || n.name === node.name));
		await page.goBack();
		await queryIs(page, QUERY);
		await rootIs(page, whole);
		await settled(page);
	}
	assert.deepEqual(problems, []);
});

test("an address that asks for views nobody knows shows the usual ones", async (t) => {
	const args = { query: QUERY, ...(await fixedWindow(60)), view: "graph", width: "half" };
	const { page, problems } = await open(t, explore(args));
	await flameReady(page);
	await page.waitForFunction(() => window.__epi.table()?.length > 0);
	await page.getByRole("button", { name: "Both", exact: true, pressed: true }).waitFor();
	assert.deepEqual(problems, []);
});

test("filters stand above the results, and go one by one", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const whole = (await page.evaluate(() => window.__epi.node(0))).total;
	const node = await someFunction(page);
	await menu(page, node, "Focus on stacks through here");
	await page.getByRole("button", { name: `Remove the filter focus ${node.name}` }).waitFor();
	await rootIs(page, await total(`focus(merge(${QUERY}), \`^\\Q${node.name}\\E$\`)`, times(w)));
	await settled(page);
	const root = (await drawn(page)).find((n) => n.level === 1);
	await menu(page, root, "Hide the function");
	const chips = page.getByRole("group", { name: "Filters of the query" }).locator(".filter b");
	await page.waitForFunction(() => document.querySelectorAll(".filter").length === 2);
	assert.deepEqual(await chips.allTextContents(), ["focus", "hide"]);
	await shot(page, "chips");
	await page.getByRole("button", { name: `Remove the filter focus ${node.name}` }).click();
	await queryIs(page, `hide(merge(${QUERY}), \`^\\Q${root.name}\\E$\`)`);
	await page.getByRole("button", { name: /^Remove the filter hide/ }).click();
	await queryIs(page, `merge(${QUERY})`);
	await rootIs(page, whole);
	await countComes(page.locator(".filter"), 0);
	assert.deepEqual(problems, []);
});

test("in Compare a filter goes onto both sides", async (t) => {
	const w = await fixedWindow(120);
	const sides = { new: 'cpu{job="demo",version="v2"}', base: 'cpu{job="demo",version="v1"}' };
	const { page, problems } = await open(
		t,
		"compare?" + new URLSearchParams({ ...sides, ...w, shift: "0", view: "flame" }),
	);
	await flameReady(page);
	const node = await someFunction(page);
	await menu(page, node, "Focus on stacks through here");
	const focus = (q) => `focus(merge(${q}), \`^\\Q${node.name}\\E$\`)`;
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("base") === q,
		focus(sides.base),
	);
	await addressHas(page, { new: focus(sides.new) });
	const sum = (await total(focus(sides.new), times(w))) + (await total(focus(sides.base), times(w)));
	await rootIs(page, sum);
	await page.getByRole("button", { name: `Remove the filter focus ${node.name}` }).click();
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("new") === q,
		`merge(${sides.new})`,
	);
	assert.deepEqual(problems, []);
});

/* ---- the table ---- */

const firstRow = (page) => page.locator(".split-table .vtable-body > div").first();

test("the table by keyboard: arrows walk, space highlights, Enter opens", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w }));
	await flameReady(page);
	await firstRow(page).waitFor();
	const rows = await page.evaluate(() => window.__epi.table());
	const answer = await api("query", { query: `top(5000, merge(${QUERY}))`, ...times(w) });
	assert.equal(rows.length, answer.result[0].rows.length, "every function there is");
	const grid = page.getByRole("grid").first();
	await grid.focus();
	await page.keyboard.press("End");
	await page.locator(`.vtable-body > div.active[aria-rowindex="${rows.length + 1}"]`).waitFor();
	for (const key of ["Home", "ArrowDown", "ArrowDown", "ArrowUp"]) await page.keyboard.press(key);
	const active = page.locator(".vtable-body > div.active");
	assert.equal(await active.getAttribute("aria-rowindex"), "3");
	assert.equal(await grid.getAttribute("aria-activedescendant"), await active.getAttribute("id"));
	await page.keyboard.press(" ");
	await page.waitForFunction(
		(name) => new URLSearchParams(location.search).get("pick") === name,
		rows[1].function,
	);
	await page.locator(".vtable-body > div.selected.active").waitFor();
	await page.keyboard.press(" ");
	await page.waitForFunction(() => !new URLSearchParams(location.search).has("pick"));
	await page.keyboard.press("Enter");
	await page.getByRole("heading", { name: rows[1].function, exact: true }).waitFor();
	assert.deepEqual(problems, []);
});

/* ---- the sandwich ---- */

const half = (page, name) => page.evaluate((n) => window.__epi.node(0, n), name);
const halves = (page) =>
	page.waitForFunction(() => window.__epi.node(0, "callers") && window.__epi.node(0, "callees"));

test("a sandwich's halves and tables are the API's callers and callees", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w }));
	await firstRow(page).waitFor();
	const name = "net/http.(*conn).serve";
	const inner = "main.newHandler.func1.1";
	await page.getByRole("textbox", { name: "Search" }).fill("newHandler\\.func1\\.1$");
	await page.waitForFunction(() => window.__epi.table()?.length === 1);
	await firstRow(page).click();
	await halves(page);
	const P = `merge(${QUERY})`;
	const top = await api("query", { query: `top(5000, ${P})`, ...times(w) });
	const row = top.result[0].rows.find((r) => r.function === inner);
	for (const side of ["callers", "callees"]) {
		const want = await total(`${side}(${P}, \`^\\Q${inner}\\E$\`)`, times(w));
		const root = await half(page, side);
		assert.deepEqual([root.name, root.total], [inner, want]);
		assert.equal(want, row.cum, "both are what it costs with all it calls");
	}
	// Each level of callers has the cost that passed through it; the outermost is the server's root.
	const drawnCallers = await page.evaluate(() => window.__epi.drawn("callers"));
	assert.ok(drawnCallers.some((n) => n.name === name && n.level > 1), "its outermost caller");
	const byLevel = (l) =>
		drawnCallers.filter((n) => n.level === l).reduce((s, n) => s + n.total, 0);
	assert.equal(byLevel(1), row.cum);
	const rows = await page.evaluate(() => window.__epi.table("calleesTable"));
	const callees = await api("query", {
		query: `cum by (function) (callees(${P}, \`^\\Q${inner}\\E$\`))`,
		...times(w),
	});
	const handlers = rows.filter((r) => r.name.startsWith("main.(*shop)"));
	assert.ok(handlers.length >= 3, "the demo's handlers");
	for (const r of handlers)
		assert.equal(
			r.cost,
			Number(callees.result.find((c) => c.metric.function === r.name).value[1]),
			r.name,
		);
	assert.equal(rows.reduce((s, r) => s + r.cost, 0) + row.flat, row.cum);
	await page.waitForFunction(() => window.__epi.table("lines")?.length > 0);
	const lines = await page.evaluate(() => window.__epi.table("lines"));
	assert.equal(
		lines.reduce((s, l) => s + l.flat, 0),
		row.flat,
	);
	await shot(page, "sandwich");
	// A row opens a callee; the browser's back button returns.
	await page.getByRole("region", { name: "Callees" }).locator(".vtable-body > div").first().click();
	await page.getByRole("heading", { name: rows[0].name, exact: true }).waitFor();
	await page.goBack();
	await page.getByRole("heading", { name: inner, exact: true }).waitFor();
	await page.waitForFunction(() => document.activeElement?.tagName === "H2");
	await page.keyboard.press("Escape");
	await firstRow(page).waitFor();
	await page.goBack();
	await halves(page);
	await page.getByRole("button", { name: "Close" }).click();
	await firstRow(page).waitFor();
	assert.deepEqual(problems, []);
});

test("a sandwich shows nothing of another function's while its own is asked for", async (t) => {
	const w = await fixedWindow(300);
	const fn = "main.newHandler.func1.1";
	const { page } = await open(t, explore({ query: QUERY, ...w, fn }));
	await halves(page);
	await page.route(/callers|callees|filename/, () => {}); // from here on the server does not answer
	await page.getByRole("region", { name: "Callees" }).locator(".vtable-body > div").first().click();
	await page.getByRole("heading", { name: fn, exact: true }).waitFor({ state: "detached" });
	await page.locator(".half.callers", { hasText: "Loading…" }).waitFor();
	await page.locator(".half.callees", { hasText: "Loading…" }).waitFor();
	await countComes(page.locator(".sandwich .vtable-body > div"), 0);
});

test("a sandwich of a difference has both sides; one of nothing says so", async (t) => {
	const w = await fixedWindow(120);
	const P = 'diff(merge(cpu{job="demo",version="v2"}), merge(cpu{job="demo",version="v1"}))';
	const fn = "main.(*shop).search";
	const { page, problems } = await open(t, explore({ query: P, ...w, fn }));
	await halves(page);
	const both = async (side) =>
		(await api("query", { query: `${side}(${P}, \`^\\Q${fn}\\E$\`)`, ...times(w) })).result[0];
	for (const side of ["callers", "callees"]) {
		const e = await both(side);
		assert.equal((await half(page, side)).total, e.left_total + e.right_total);
	}
	await shot(page, "sandwich-diff");
	await page.goto(base + explore({ query: QUERY, ...w, fn: "no.Such" }));
	await page.getByText("No stack of this query has this function.").waitFor();
	assert.deepEqual(problems, []);
});

/* ---- groups ---- */

test("a group by a sample's label is one graph with the values below the root", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	await page.getByRole("combobox", { name: "Group by" }).selectOption("handler");
	const query = `merge by (handler) (${QUERY})`;
	await queryIs(page, query);
	const values = await api("query", { query: `total(${query})`, ...times(w) });
	assert.ok(values.result.length > 3, "the demo's handlers");
	const want = new Map(
		values.result.map((v) => [v.metric.handler ?? "no handler", Number(v.value[1])]),
	);
	await rootIs(page, [...want.values()].reduce((a, b) => a + b, 0));
	await settled(page);
	const first = (await drawn(page)).filter((n) => n.level === 1);
	for (const n of first) assert.equal(n.total, want.get(n.name), n.name);
	assert.ok(first.length >= 3);
	await addressHas(page, { el: "all" });
	await shot(page, "group");
	// First one element alone, then one value as a matcher.
	const [name, cost] = [...want].sort((a, b) => b[1] - a[1])[0];
	const select = page.getByRole("combobox", { name: "Which result" });
	const options = await select.locator("option").allTextContents();
	await select.selectOption({ label: options.find((o) => o.includes(name)) });
	await rootIs(page, cost);
	await page.goBack();
	await settled(page);
	const value = (await drawn(page)).find((n) => n.level === 1 && n.name.startsWith("/"));
	await menu(page, value, "Only this handler");
	await queryIs(page, `merge(cpu{job="demo",handler="${value.name}"})`);
	await rootIs(page, want.get(value.name));
	assert.deepEqual(problems, []);
});

/* ---- significance ---- */

/** The intervals of a window that ends now. Waits until there are enough profiles for a verdict. */
async function judgedIntervals(sides, seconds) {
	for (let tries = 0; ; tries++) {
		const w = await fixedWindow(seconds);
		const query = `changed_interval(${sides.new}[${seconds}s], ${sides.base}[${seconds}s])`;
		const response = await fetch(
			`${base}api/v1/query?` + new URLSearchParams({ query, time: w.to }),
		);
		const { data, infos = [] } = await response.json();
		if (data.result.some((e) => e.metric.function)) return { w, data, infos };
		assert.ok(tries < 90, `nothing is judged: ${infos}`);
		await new Promise((done) => setTimeout(done, 1000));
	}
}

/** 1.38 is 1.4: a bound is rounded up. */
function twoDigitsUp(points) {
	const unit = 10 ** (Math.floor(Math.log10(points)) - 1);
	return Number((Math.ceil(points / unit) * unit).toPrecision(2));
}

test("a difference says of each function: changed, at most so much, or not enough data", async (t) => {
	const sides = { new: 'cpu{job="demo",version="v2"}', base: 'cpu{job="demo",version="v1"}' };
	const { w, data, infos } = await judgedIntervals(sides, 120);
	const { page, problems } = await open(
		t,
		"compare?" + new URLSearchParams({ ...sides, ...w, shift: "0", view: "table" }),
	);
	await page.getByRole("columnheader", { name: "Significance" }).waitFor();
	const notes = page.locator(".table-notes[role=status]");
	for (const info of infos)
		await notes
			.getByText(info.replace("changed_interval(): ", ""), { exact: false })
			.waitFor();
	const low = data.result.filter((e) => e.metric.bound === "low" && e.metric.function);
	const high = new Map(
		data.result
			.filter((e) => e.metric.bound === "high")
			.map((e) => [e.metric.function, Number(e.value[1])]),
	);
	await page.getByRole("columnheader", { name: "Significance" }).click();
	await page.getByRole("columnheader", { name: /Significance.*▼/ }).waitFor();
	const rows = page.locator(".vtable-body > div");
	// The server's order: changed functions by their change, the others by their bounds.
	const first = low[0].metric;
	const [from, to] = [Number(low[0].value[1]), high.get(first.function)];
	const want = {
		changed: `${(50 * Math.abs(from + to)).toFixed(2)} pp`,
		"not changed": `< ${twoDigitsUp(100 * Math.max(-from, to))} pp`,
		"cannot tell": "not enough data yet",
	}[first.verdict];
	const row = rows.filter({ has: page.getByTitle(first.function, { exact: true }) });
	assert.ok((await row.innerText()).includes(want), `${await row.innerText()}: ${want}`);
	await row.getByTitle(`Between ${from > 0 ? "+" : "−"}`, { exact: false }).waitFor();
	const changed = low.filter((e) => e.metric.verdict === "changed").length;
	const marked = await page.locator(".vtable-body > div b").count();
	assert.ok(marked <= changed && marked > 0 === changed > 0, `${marked} of ${changed} marked`);
	const words = await rows.locator("[title^=Between]").allInnerTexts();
	assert.ok(words.length > 0);
	for (const text of words)
		assert.match(text, /^([+−][\d.]+ pp|< [\d.]+ pp|not enough data yet)$/);
	await shot(page, "significance");
	// The window is too short, and the page says so.
	const short = { from: String(Number(w.to) - 40), to: w.to };
	await page.goto(
		base + "compare?" + new URLSearchParams({ ...sides, ...short, shift: "0", view: "table" }),
	);
	await notes.getByText(/not enough data yet: /i).waitFor();
	await page.getByRole("region", { name: "Verdict" }).getByText(/not enough data yet/).waitFor();
	assert.deepEqual(problems, []);
});

test("what normalizes to an empty base says so, and not that nothing was used", async (t) => {
	const w = await fixedWindow(120);
	const none = { from: "1000000000", to: "1000000120" };
	const { page, problems } = await open(
		t,
		"compare?" +
			new URLSearchParams({ new: QUERY, base: QUERY, ...w, bfrom: none.from, bto: none.to, norm: "1" }),
	);
	const text = await page.locator(".results .empty").innerText();
	assert.match(text, /^No data in the base window/, text);
	await page.getByRole("region", { name: "Verdict" }).getByText("No data in the base window.").waitFor();
	assert.deepEqual(problems, []);
});

test("the tools above a result stand in one line", async (t) => {
	const sides = { new: 'cpu{job="demo",version="v2"}', base: 'cpu{job="demo",version="v1"}' };
	const viewport = { width: 1400, height: 900 };
	for (const at of [
		explore({ query: `merge by (handler) (${QUERY})`, range: "5m" }),
		explore({ query: `focus(${QUERY}, "main")`, range: "5m" }),
		"compare?" + new URLSearchParams({ ...sides, range: "5m", shift: "0" }),
	]) {
		const { page, problems } = await open(t, at, { viewport });
		await flameReady(page);
		const bar = await page.locator(".results > .toolbar").boundingBox();
		assert.ok(bar.height < 60, `${at}: ${bar.height} px`);
		assert.deepEqual(problems, []);
	}
});

test("narrow: the list of exports is on the screen", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, range: "5m", view: "flame" }), {
		viewport: { width: 400, height: 900 },
	});
	await flameReady(page);
	await page.getByRole("button", { name: "More", exact: true }).click();
	await page.getByRole("button", { name: "Export" }).click();
	const box = await page.locator(".menu-items").boundingBox();
	const tools = await page.locator(".results > .toolbar").boundingBox();
	assert.ok(box.x >= tools.x && box.x + box.width <= tools.x + tools.width, JSON.stringify(box));
	assert.deepEqual(problems, []);
});

/* ---- share ---- */

test("a permalink opens the same picture, whatever the time", async (t) => {
	const permissions = ["clipboard-read", "clipboard-write"];
	const asked = { query: QUERY, range: "5m", view: "flame" };
	const restless = await open(t, explore({ ...asked, refresh: "30s" }), { permissions });
	const got = new URL(await copiedLink(restless.page)).searchParams;
	assert.equal(Number(got.get("to")) - Number(got.get("from")), 300);
	assert.equal(got.get("range"), null);
	assert.equal(got.get("refresh"), null);
	assert.deepEqual(restless.problems, []);
	const { page, problems } = await open(t, explore(asked), { permissions });
	await checkSamePicture(t, page, problems, async ({ from, to }) => {
		const root = await page.evaluate(() => window.__epi.node(0));
		return root.total === (await fleetTotal(QUERY, from, to));
	});
});

test("a permalink of a comparison keeps both windows", async (t) => {
	const sides = { new: 'cpu{job="demo",version="v2"}', base: 'cpu{job="demo",version="v1"}' };
	const { page, problems } = await open(
		t,
		"compare?" + new URLSearchParams({ ...sides, range: "5m", view: "flame" }),
		{ permissions: ["clipboard-read", "clipboard-write"] },
	);
	const got = Object.fromEntries(new URL(await copiedLink(page)).searchParams);
	assert.equal(got.from - got.bfrom, 300);
	assert.equal(got.bto, got.from);
	await checkSamePicture(t, page, problems, async ({ from, to, bfrom, bto }) => {
		const drew = await page.evaluate(() => window.__epi.totals());
		return drew.new === (await fleetTotal(sides.new, from, to)) && drew.base === (await fleetTotal(sides.base, bfrom, bto));
	});
});

test("without a clipboard the link stands in a field", async (t) => {
	const w = await fixedWindow(120);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }), {
		before: (p) =>
			p.addInitScript(() => Object.defineProperty(window, "isSecureContext", { value: false })),
	});
	await flameReady(page);
	await page.getByRole("button", { name: "Share" }).click();
	const field = page.getByRole("textbox", { name: "Link to this view at these times" });
	await field.waitFor();
	assert.equal(await field.inputValue(), page.url());
	assert.equal(await page.evaluate(() => String(getSelection())), page.url(), "it is selected");
	await page.keyboard.press("Escape");
	await field.waitFor({ state: "detached" });
	assert.deepEqual(problems, []);
});
