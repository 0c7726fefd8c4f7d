// Search: its share is that of the whole profile, and what the graph and the table lack is found too.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	addressHas,
	api,
	closeBrowser,
	comes,
	countComes,
	drawn,
	explore,
	flameReady,
	openPage,
	params,
	settled,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const WIDE = 6000; // functions that main calls: more than the table loads
const MS = 1e6;
const QUERY = 'cpu{job="wide"}';

let server;
before(async () => {
	server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-ingest", "--web.enable-files"],
	});
	await push(server.base, { name: "process_cpu", job: "wide" }, wide(1));
	await push(server.base, { name: "process_cpu", job: "second" }, wide(3));
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

/**
 * main calls 6,000 functions, every second of which calls main.alloc, and one that is large. Two that cost
 * least call main.needle, the lighter one by two steps.
 */
function wide(factor, time = Date.now() - 15000) {
	const functions = ["main.main", "main.big", "main.alloc", "main.needle", "main.step1", "main.step2"].map((name) => ({ name }));
	const [main, big, alloc, needle, step1, step2] = functions.keys();
	const samples = [{ stack: [main, big], value: 5000 * factor * MS }];
	for (let i = 0; i < WIDE; i++) {
		const at = functions.push({ name: `main.f${i}` }) - 1;
		samples.push({ stack: [main, at], value: 10 * MS });
		if (i % 2) samples.push({ stack: [main, at, alloc], value: 3 * MS });
		if (i === 100) samples.push({ stack: [main, at, needle], value: 2 * MS });
		if (i === 102) samples.push({ stack: [main, at, step1, step2, needle], value: 1 * MS });
	}
	return cpuProfile({ functions, samples, time });
}

async function open(t, args, before) {
	const path = explore({ range: "1h", view: "flame", query: QUERY, ...args });
	const opened = await openPage(t, server.base + path, { before });
	await flameReady(opened.page);
	return opened;
}

const field = (page) => page.getByRole("textbox", { name: "Search" });
const text = async (page) => (await page.locator(".search-info").allInnerTexts()).join();

/** What the server found for this search. */
async function answered(page, what) {
	await page.waitForFunction((want) => {
		const now = window.__epi?.search();
		return now?.text === want && now.stacks !== undefined;
	}, what);
	return page.evaluate(() => window.__epi.search());
}

/** Types a search and waits for the server's answer to it. */
async function searchFor(page, what) {
	await field(page).fill(what);
	return answered(page, what);
}

/** The share that focus() leaves. */
async function focused(query, re) {
	const cost = async (q) => Number((await api(server.base, "query", { query: `total(${q})` })).result[0]?.value[1] ?? 0);
	return (100 * (await cost(`focus(merge(${query}[1h]), "${re}")`))) / (await cost(`merge(${query}[1h])`));
}

const near = (got, want, what) => assert.ok(Math.abs(got - want) < 1e-9, `${what}: ${got} against ${want}`);
const zoomed = (page, name) => page.waitForFunction((want) => window.__epi?.flame()?.zoomed === want, name);

for (const nodes of ["512", "2048"])
	test(`of a graph of ${nodes} nodes: the share is that of focus()`, async (t) => {
		const { page, problems } = await open(t, { nodes });
		for (const name of ["main.alloc", "main.needle", "main.f1"]) {
			const got = await searchFor(page, name);
			near(got.percent, await focused(QUERY, name), name);
			assert.ok(got.drawn < (got.percent / 100) * 74003 * MS, "the graph has less of it");
			const shown = got.percent < 0.01 ? "<0.01" : got.percent.toFixed(2);
			assert.equal(await text(page), `${shown}% matched`);
		}
		assert.equal((await searchFor(page, "main.alloc")).functions, 1);
		assert.equal((await searchFor(page, "ALLOC")).percent, 0, "upper case letters count");
		assert.equal(await text(page), "0.00% matched");
		assert.deepEqual(problems, []);
	});

test("Enter and Shift+Enter go from match to match, and read what the graph lacks", async (t) => {
	const { page, problems } = await open(t, { nodes: "512" });
	await searchFor(page, "main.needle");
	assert.ok(!(await drawn(page)).some((n) => n.name === "main.needle"));
	const place = async (name, path, at) => {
		await zoomed(page, name);
		await page.locator(".search-info", { hasText: `matched ${at}` }).waitFor();
		await settled(page);
		const crumbs = (await page.locator(".crumbs").innerText()).replaceAll("\n", " ");
		for (const one of path) assert.ok(crumbs.includes(one), `${one} is not in ${crumbs}`);
	};
	await field(page).press("Enter");
	await place("main.needle", ["main.f100"], "1/2");
	assert.equal((await drawn(page)).find((n) => n.name === "main.needle").total, 2 * MS);
	await shot(page, "search-needle");
	await field(page).press("Enter");
	await place("main.needle", ["main.step1", "main.step2"], "2/2");
	assert.equal((await drawn(page)).find((n) => n.name === "main.needle").total, MS);
	await field(page).press("Shift+Enter");
	await place("main.needle", ["main.f100"], "1/2");
	await field(page).press("Shift+Enter");
	await place("main.needle", ["main.step1"], "2/2");
	// Its address shows it to others.
	const fresh = await openPage(t, page.url());
	await zoomed(fresh.page, "main.needle");
	// What is large enough is selected where it is.
	await page.locator(".flame canvas").first().focus();
	await page.keyboard.press("Escape");
	await zoomed(page, "total");
	await searchFor(page, "main.big");
	await field(page).press("Enter");
	await page.locator(".flame .visually-hidden", { hasText: "main.big" }).waitFor({ state: "attached" });
	assert.equal(params(page).zoom, undefined);
	// Enter right after the last letter waits for both.
	await field(page).fill("main.step2");
	await field(page).press("Enter");
	await place("main.step2", ["main.step1"], "1/1");
	assert.deepEqual([...problems, ...fresh.problems], []);
});

test("the table lists matches beyond the rows that are loaded", async (t) => {
	const { page, problems } = await open(t, { view: "both" });
	const rows = () => page.evaluate(() => window.__epi.table().map((r) => [r.function, r.flat, r.cum]));
	await comes(async () => (await rows()).length, 5000, "rows");
	await page.getByText("1,006 more functions with a smaller flat cost not shown.").waitFor();
	await searchFor(page, "needle|step");
	await comes(rows, [
		["main.needle", 3 * MS, 3 * MS],
		["main.step1", 0, MS],
		["main.step2", 0, MS],
	], "rows of what matches");
	await countComes(page.getByText(/ not shown\.$/), 0);
	const [row] = await page.evaluate(() => window.__epi.table());
	const [want] = (await api(server.base, "query", { query: `top(9000, merge(${QUERY}[1h]))` })).result[0].rows
		.filter((r) => r.function === "main.needle");
	assert.deepEqual(row, want, "its row is that of the whole table");
	// More than the server sends: those that are missing are counted.
	await searchFor(page, "[.]");
	await page.getByText("6 more functions of the search not shown.").waitFor();
	assert.deepEqual(problems, []);
});

test("in the tree Enter opens the way to a match", async (t) => {
	const { page, problems } = await open(t, {});
	await page.getByRole("radiogroup", { name: "View" }).or(page.getByRole("group", { name: "View" })).getByText("Tree").click();
	await addressHas(page, { view: "tree" });
	await searchFor(page, "main.needle");
	await field(page).press("Enter");
	const row = page.locator(".outline [role=row].active.matched");
	await row.getByText("needle").waitFor();
	assert.ok(Number(await row.getAttribute("aria-level")) >= 5, "below total, main, other and f100");
	assert.deepEqual(problems, []);
});

test("groups together, and a difference on both sides", async (t) => {
	const both = 'cpu{job=~"wide|second"}';
	const { page, problems } = await open(t, { query: `merge by (job) (${both})`, el: "all", nodes: "512" });
	near((await searchFor(page, "main.alloc")).percent, await focused(both, "main.alloc"), "all together");
	await searchFor(page, "main.needle");
	await field(page).press("Enter");
	await zoomed(page, "main.needle");
	await page.locator(".search-info", { hasText: "matched 1/4" }).waitFor();
	assert.deepEqual(problems, []);

	const diff = await open(t, { query: `merge(${QUERY}) - merge(cpu{job="second"})`, nodes: "512" });
	const got = await searchFor(diff.page, "main.alloc");
	near(got.right_percent, await focused(QUERY, "main.alloc"), "new");
	near(got.left_percent, await focused('cpu{job="second"}', "main.alloc"), "base");
	assert.equal(await text(diff.page), `${got.left_percent.toFixed(2)}% → ${got.right_percent.toFixed(2)}% matched`);
	await field(diff.page).press("Enter");
	await zoomed(diff.page, "main.alloc");
	assert.deepEqual(diff.problems, []);
});

test("a file is searched as what is stored is", async (t) => {
	const { page, problems } = await openPage(t, `${server.base}explore?view=flame&nodes=512`);
	const name = "wide.pb.gz";
	await page.locator("input[type=file]").first().setInputFiles({ name, mimeType: "application/gzip", buffer: wide(1) });
	await addressHas(page, { query: `file("${name}")` });
	await flameReady(page);
	near((await searchFor(page, "main.alloc")).percent, await focused(QUERY, "main.alloc"), "of the file");
	await searchFor(page, "main.needle");
	await field(page).press("Enter");
	await zoomed(page, "main.needle");
	assert.deepEqual(problems, []);
});

test("while the server searches the old share is dimmed, and a newer search ends an older one", async (t) => {
	const held = [];
	const aborted = [];
	const { page } = await open(t, { search: "main.alloc" }, async (p) => {
		await p.route(/[?&]search=main\.(needle|f2)(&|$)/, (route) => void held.push(route));
		p.on("requestfailed", (r) => aborted.push(new URL(r.url()).searchParams.get("search")));
	});
	await answered(page, "main.alloc");
	const old = await text(page);
	await field(page).fill("main.needle");
	await comes(async () => held.length, 1, "questions");
	await page.locator(".search-info.old").waitFor();
	assert.equal(await text(page), old);
	await field(page).fill("main.f2");
	await comes(async () => aborted, ["main.needle"], "the older question");
	await comes(async () => held.length, 2, "questions");
	await held[1].continue();
	const newer = await answered(page, "main.f2");
	await countComes(page.locator(".search-info.old"), 0);
	near(newer.percent, await focused(QUERY, "main.f2"), "the newer one");
	// What the browser takes and RE2 does not.
	await field(page).fill("(?!a)b");
	await page.locator(".search-info", { hasText: "not a regexp" }).waitFor();
	assert.match(await page.locator(".search-info").getAttribute("title"), /invalid perl operator/);
});

test("in a difference, rows beyond the loaded ones have their cost in Base", async (t) => {
	// Of `twice` each cost is twice that of `wide`.
	for (const ago of [15000, 40000])
		await push(server.base, { name: "process_cpu", job: "twice" }, wide(1, Date.now() - ago));
	const args = { new: 'cpu{job="twice"}', base: QUERY, range: "1h", shift: "0", view: "table" };
	// A table of a difference loads 50,000 rows; here it loads 3.
	const fewer = (page) =>
		page.route("**/api/v1/query?*", (r) =>
			r.continue({ url: r.request().url().replace("query=top%2850000%2C", "query=top%283%2C") }),
		);
	const path = `compare?${new URLSearchParams({ ...args, search: "main\\.(f100|needle|step1)$" })}`;
	const { page, problems } = await openPage(t, server.base + path, { before: fewer });
	const cells = async (name) => {
		const row = page.locator(".vtable-body > [role=row]", { hasText: name });
		await row.waitFor();
		return (await row.locator("[role=gridcell]").allInnerTexts()).slice(1, 4);
	};
	await comes(() => cells("f100"), ["10 ms", "20 ms", "+10 ms"], "f100 in Base, in New, and the difference");
	assert.deepEqual(await cells("needle"), ["3 ms", "6 ms", "+3 ms"]);
	assert.deepEqual(await cells("step1"), ["0 s", "0 s", "0 s"]);
	assert.deepEqual(problems, []);
});
