// What a query gave, and what is done with it: edits of the query by menu and chips, the sandwich
// of a function, groups, significance and permalinks, each against the API's numbers.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	api as ask,
	closeBrowser,
	drawn,
	fixedWindow,
	FLEET as base,
	flameReady,
	nodePoint,
	openPage,
	params,
	settled,
	shot,
} from "./page.mjs";

const QUERY = 'cpu{job="demo"}';

after(closeBrowser);

const open = (t, path, options) => openPage(t, base + path, options);
const api = (name, args) => ask(base, name, args);
const explore = (args) => "explore?" + new URLSearchParams(args);
const times = (w) => ({ start: w.from, end: w.to });

const total = async (query, when) =>
	Number((await api("query", { query: `total(${query})`, ...when })).result[0]?.value[1] ?? 0);

/** The widest drawn function that is not as wide as everything, and no runtime's. */
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

/** Waits until the root of what is drawn holds this much. */
const rootIs = (page, want) =>
	page.waitForFunction((n) => window.__epi.node(0)?.total === n, want);

test("the menu of a function edits the query, and what is drawn is its answer", async (t) => {
	const w = fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const node = await someFunction(page);
	const whole = (await page.evaluate(() => window.__epi.node(0))).total;
	for (const [entry, filter] of [
		["Focus on stacks through it", "focus"],
		["Hide stacks through it (ignore)", "ignore"],
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

test("filters stand above the results, and go one by one", async (t) => {
	const w = fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const whole = (await page.evaluate(() => window.__epi.node(0))).total;
	const node = await someFunction(page);
	await menu(page, node, "Focus on stacks through it");
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
	assert.equal(await page.locator(".filter").count(), 0);
	assert.deepEqual(problems, []);
});

test("in Compare a filter goes onto both sides", async (t) => {
	const w = fixedWindow(120);
	const sides = { new: 'cpu{job="demo",version="v2"}', base: 'cpu{job="demo",version="v1"}' };
	const { page, problems } = await open(
		t,
		"compare?" + new URLSearchParams({ ...sides, ...w, shift: "0", view: "flame" }),
	);
	await flameReady(page);
	const node = await someFunction(page);
	await menu(page, node, "Focus on stacks through it");
	const focus = (q) => `focus(merge(${q}), \`^\\Q${node.name}\\E$\`)`;
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("base") === q,
		focus(sides.base),
	);
	assert.equal(params(page).new, focus(sides.new));
	const sum = (await total(focus(sides.new), times(w))) + (await total(focus(sides.base), times(w)));
	await rootIs(page, sum);
	await page.getByRole("button", { name: `Remove the filter focus ${node.name}` }).click();
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("new") === q,
		`merge(${sides.new})`,
	);
	assert.deepEqual(problems, []);
});

test("an alert on a function opens as the rule would see it", async (t) => {
	const w = fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const node = await someFunction(page);
	await menu(page, node, "Alert when it costs more");
	await page.waitForFunction(() => new URLSearchParams(location.search).has("at"));
	const { query } = params(page);
	const [, over] =
		/^cum_share\(merge by \(job\) \(cpu\{job="demo"\}\[5m\]\), \{function="[^"]+"\}\) > (0\.\d+)$/.exec(
			query,
		) ?? [];
	assert.ok(over, query);
	const when = { time: params(page).at };
	const now = await api("query", { query: query.replace(/ > .*/, ""), ...when });
	const share = Number(now.result[0].value[1]);
	assert.ok(share < Number(over), `${share} now, fires above ${over}`);
	await page.getByText("The expression gives nothing at this time.").waitFor();
	await flameReady(page); // what it measures stands below
	assert.deepEqual(problems, []);
});
