// What the flame graph has not: parts that are read when they are zoomed, and groups as a legend.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	addressHas,
	api,
	clickNode,
	closeBrowser,
	countComes,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	fleetApi,
	openFleet,
	openPage,
	params,
	QUERY,
	settled,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const WIDE = 1500; // functions that main calls, each with a callee
const BIG = 900; // callees of main.big
const NODES = "512";
const MS = 1e6;

let server;
before(async () => {
	server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-ingest"],
	});
	await pushJob("wide", wide(1));
	await pushJob("second", wide(2));
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

const pushJob = (job, profile) => push(server.base, { name: "process_cpu", job }, cpuProfile(profile));

/** main calls 1,500 functions of two costs, one with many callees, and one that has none. */
function wide(factor) {
	const functions = [{ name: "main.main", file: "/src/main.go", line: 1 }];
	const samples = [];
	for (let i = 0; i < WIDE; i++) {
		const at = functions.length;
		functions.push({ name: i === 7 ? "other" : `main.f${i}`, file: "/src/f.go", line: i + 1 });
		functions.push({ name: `main.leaf${i}`, file: "/src/leaf.go", line: i + 1 });
		samples.push({ stack: [0, at, at + 1], value: factor * (1 + (i % 2)) * 10 * MS });
		samples.push({ stack: [0, at], value: factor * 10 * MS });
	}
	const big = functions.push({ name: "main.big" }, { name: "main.one" }) - 2;
	samples.push({ stack: [0, big + 1], value: factor * 5000 * MS });
	for (let i = 0; i < BIG; i++) {
		functions.push({ name: `main.part${i}` });
		samples.push({ stack: [0, big, big + 2 + i], value: factor * 10 * MS });
	}
	return { functions, samples };
}

const TOTAL = (WIDE * 25 + 5000 + BIG * 10) * MS; // of factor 1

/** Opens the graph; `asked` are the parts that the page asks for. */
async function open(t, args) {
	const asked = [];
	const path = explore({ range: "1h", view: "flame", nodes: NODES, ...args });
	const opened = await openPage(t, server.base + path, {
		before: (p) =>
			p.on("request", (r) => {
				const q = new URL(r.url()).searchParams;
				const form = new URLSearchParams(r.postData() ?? "");
				const of = q.has("query") ? q : form;
				if (of.has("call_site[]") || of.has("call_site_skip"))
					asked.push([of.getAll("call_site[]").join(";"), of.get("call_site_skip")]);
			}),
	});
	await flameReady(opened.page);
	return { ...opened, asked };
}

const zoomed = (page) => page.evaluate(() => window.__epi.flame().zoomed);
const find = async (page, name, level) =>
	(await drawn(page)).filter((n) => n.level === level && n.name === name).sort((a, b) => b.total - a.total)[0];
const ready = async (page, name) => {
	await page.waitForFunction((want) => window.__epi.flame().zoomed === want, name);
	await page.getByText("Reading this part").waitFor({ state: "detached" });
	await settled(page);
};

test("zooming into other reads it, again and again; back needs no question", async (t) => {
	const { page, problems, asked } = await open(t, { query: 'cpu{job="wide"}' });
	const at = (await drawn(page)).find((n) => n.level === 0);
	assert.equal(at.total, TOTAL);
	const other = await find(page, "other", 2);
	await clickNode(page, other);
	await ready(page, "other");
	assert.equal(asked.length, 1);
	const shown = Number(asked[0][1]);
	assert.ok(shown > 0 && shown < 512, `${shown}`);
	assert.equal(asked[0][0], "main.main");
	const first = params(page).zoom;
	assert.match(first, /^[0-9a-f]{8}$/);
	const opened = await find(page, "other", 2);
	assert.equal(opened.total, other.total, "its total is the same");
	const part = await api(server.base, "query", {
		query: 'merge(cpu{job="wide"}[1h])',
		max_nodes: NODES,
		"call_site[]": "main.main",
		call_site_skip: String(shown),
	});
	assert.equal(part.result[0].flamebearer.numTicks, other.total);
	assert.equal(part.result[0].total, TOTAL);
	const crumbs = await page.locator(".crumbs").innerText();
	assert.match(crumbs, new RegExp(`${((100 * other.total) / TOTAL).toFixed(2)}% of total`));
	// The rest of the rest.
	const rest = await find(page, "other", 3);
	await clickNode(page, rest);
	await ready(page, "other");
	assert.equal(asked.length, 2);
	assert.ok(Number(asked[1][1]) > shown);
	const second = params(page).zoom;
	assert.match(second, new RegExp(`^${first}\\.[0-9a-f]{8}$`));
	assert.equal((await find(page, "other", 3)).total, rest.total);
	await shot(page, "zoom-other");
	await page.locator(".flame canvas").first().focus();
	await page.keyboard.press("Escape");
	await addressHas(page, { zoom: undefined });
	await ready(page, "total");
	assert.equal((await find(page, "other", 2)).total, other.total);
	await page.goBack();
	await ready(page, "other");
	await page.goBack();
	await ready(page, "other");
	assert.equal(params(page).zoom, first);
	assert.equal(asked.length, 2, "what was read is kept");
	// A link to it on a fresh page.
	const fresh = await open(t, { query: 'cpu{job="wide"}', zoom: second });
	await ready(fresh.page, "other");
	await fresh.page.waitForFunction(() => window.__epi.drawn().some((n) => n.level === 4));
	assert.deepEqual(fresh.asked, asked);
	assert.equal((await find(fresh.page, "other", 3)).total, rest.total);
	assert.deepEqual([...problems, ...fresh.problems], []);
});

test("a node from which callees were left out is read; one that is whole is not", async (t) => {
	const { page, problems, asked } = await open(t, { query: 'cpu{job="wide"}' });
	const one = await find(page, "main.one", 2);
	assert.equal(one.total, 5000 * MS);
	await clickNode(page, one);
	await ready(page, "main.one");
	assert.deepEqual(asked, [], "it is whole");
	await page.goBack();
	await ready(page, "total");
	const big = await find(page, "main.big", 2);
	await clickNode(page, big);
	await ready(page, "main.big");
	assert.deepEqual(asked, [["main.main;main.big", null]]);
	assert.equal((await find(page, "main.big", 2)).total, BIG * 10 * MS);
	const parts = (await drawn(page)).filter((n) => n.level === 3);
	assert.ok(parts.length > 400, `${parts.length}`);
	assert.equal(parts.reduce((sum, n) => sum + n.total, 0), BIG * 10 * MS);
	assert.deepEqual(problems, []);
});

test("an other beside which no callee is shown is read too", async (t) => {
	const { page, problems, asked } = await open(t, { query: 'cpu{job="wide"}' });
	const { x } = await find(page, "main.big", 2);
	const rest = (await drawn(page)).find((n) => n.level === 3 && n.name === "other" && Math.abs(n.x - x) < 1);
	assert.equal(rest.total, BIG * 10 * MS);
	await clickNode(page, rest);
	await ready(page, "other");
	assert.deepEqual(asked, [["main.main;main.big", "0"]]);
	assert.ok((await drawn(page)).filter((n) => n.level === 4 && /^main\.part/.test(n.name)).length > 400);
	assert.deepEqual(problems, []);
});

test("groups together: the part is that of the group", async (t) => {
	const query = 'merge by (job) (cpu{job=~"wide|second"})';
	const { page, problems, asked } = await open(t, { query, el: "all" });
	const groups = page.getByRole("list", { name: "Groups" }).getByRole("button");
	const texts = (await groups.allInnerTexts()).map((s) => s.replace(/\s+/g, " ").trim());
	assert.deepEqual(texts, ["second 103 s 66.67%", "wide 51.5 s 33.33%"]);
	await clickNode(page, await find(page, "other", 3));
	await ready(page, "other");
	assert.equal(asked.length, 1);
	assert.equal(asked[0][0], "main.main", "the name of the group is no frame");
	assert.ok((await drawn(page)).some((n) => n.level === 4 && /^main\./.test(n.name)));
	// One group only, and all again.
	await groups.nth(1).click();
	await page.waitForFunction((v) => window.__epi.drawn().find((n) => n.level === 0)?.total === v, TOTAL);
	assert.equal(await groups.nth(1).getAttribute("aria-pressed"), "true");
	await groups.nth(1).click();
	await addressHas(page, { el: "all" });
	await page.waitForFunction((v) => window.__epi.drawn().find((n) => n.level === 0)?.total === v, 3 * TOTAL);
	assert.deepEqual(problems, []);
});

test("one Group by for chart and graph: the legend has the colours of the lines", async (t) => {
	const path = explore({ query: QUERY, ...(await fixedWindow(120)), view: "flame" });
	const { page, problems } = await openFleet(t, path);
	await flameReady(page);
	await page.getByRole("combobox", { name: "Group by" }).selectOption("version");
	await addressHas(page, { query: `merge by (version) (${QUERY})`, el: "all", by: undefined });
	const lines = page.locator(".chart-panel .legend li");
	await page.waitForFunction(() => window.__epi.chart()?.labels.length === 2);
	const colors = (all) =>
		all.evaluateAll((rows) =>
			rows
				.map((r) => [
					r.querySelector(".ellipsis").textContent,
					getComputedStyle(r.querySelector(".dot")).backgroundColor,
				])
				.sort(),
		);
	const want = await colors(lines);
	assert.deepEqual(want.map(([name]) => name), ["v1", "v2"]);
	await page.waitForFunction(() => document.querySelectorAll(".groups li").length === 2);
	assert.deepEqual(await colors(page.locator(".groups li")), want);
	await settled(page);
	const bands = await page.evaluate(() => window.__epi.flame().bands);
	const text = (c) => c.replace(/\s/g, "");
	assert.deepEqual(
		[...new Map(bands)].map(([n, c]) => [n, text(c)]).sort(),
		want.map(([n, c]) => [n, text(c)]),
	);
	// The picker still knows the selector.
	await countComes(page.getByText("The query is an expression"), 0);
	// Totals and shares are the API's.
	const { from, to } = params(page);
	const data = await fleetApi("query", { query: `total(merge by (version) (${QUERY}))`, start: from, end: to });
	const costs = data.result.map((e) => [e.metric.version, Number(e.value[1])]).sort();
	const all = costs.reduce((s, [, v]) => s + v, 0);
	for (const [name, cost] of costs) {
		const row = page.locator(".groups li", { hasText: name });
		assert.equal(await row.locator(".group-share").innerText(), `${((100 * cost) / all).toFixed(2)}%`);
	}
	await shot(page, "groups");
	await page.getByRole("combobox", { name: "Group by" }).selectOption("top functions (chart)");
	await addressHas(page, { by: "function", query: QUERY });
	await page.waitForFunction(() => window.__epi.chart()?.labels.includes("other"));
	// An old link's label becomes the group of the query.
	await page.goto(page.url().replace(/\?.*/, "?" + new URLSearchParams({ query: QUERY, from, to, by: "version" })));
	await addressHas(page, { query: `merge by (version) (${QUERY})`, by: undefined, el: "all" });
	assert.deepEqual(problems, []);
});
