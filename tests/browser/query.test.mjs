// Drives what queries are written and asked with, and checks it against the API.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	api as ask,
	closeBrowser,
	decode,
	drawn,
	fixedWindow,
	FLEET as base,
	flameReady,
	openPage,
	settled,
	shot,
} from "./page.mjs";

const QUERY = 'cpu{job="demo"}';

after(closeBrowser);

const open = (t, path, options) => openPage(t, base + path, options);
const api = (name, args) => ask(base, name, args);
const explore = (args) => "explore?" + new URLSearchParams(args);

test("a slow query can be given up and asked again", async (t) => {
	let slow = true;
	const { page, problems } = await open(t, explore({ query: QUERY, ...fixedWindow(120) }), {
		before: (p) =>
			p.route("**/api/v1/query?*", async (route) => {
				if (!slow) return route.continue();
				// Never answered: the page has to give it up.
			}),
	});
	const aborted = page.waitForEvent("requestfailed", (r) => r.url().includes("/api/v1/query?"));
	await page.getByText(/Under way/).waitFor();
	await page.getByRole("button", { name: "Cancel", exact: true }).click();
	assert.match((await aborted).failure().errorText, /ABORTED/);
	await page.getByText("Cancelled.").waitFor();
	assert.equal(await page.getByText("Loading").count(), 0);
	slow = false;
	await page.getByRole("button", { name: "Run again" }).click();
	await flameReady(page);
	assert.equal(await page.getByText("Cancelled.").count(), 0);
	assert.deepEqual(problems, []);
});

/* ---- writing ---- */

const field = (page) => page.getByRole("combobox", { name: "Query", exact: true });
const offers = (page) => page.getByRole("listbox", { name: "Completions" }).getByRole("option");
const chosen = (page) => new URL(page.url()).searchParams.get("query");

/** Types, and waits until `text` is what Enter would choose. */
async function typeUntil(page, keys, text) {
	await page.keyboard.type(keys);
	await marked(page, text);
}

async function marked(page, text) {
	await page.waitForFunction((want) => {
		const id = document.activeElement?.getAttribute("aria-activedescendant");
		const option = id && document.getElementById(id);
		return option?.querySelector(".offer-text")?.textContent === want;
	}, text);
}

/** What Chromium says of answers that find fault with a query is no fault of the page. */
const real = (problems) => problems.filter((p) => !/status of 40[04]/.test(p));

test("a query is written by keyboard, and its answer is the API's", async (t) => {
	const w = fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: "goroutine", ...w, view: "flame" }));
	await flameReady(page);
	await field(page).focus();
	await page.keyboard.press("Control+A");
	await typeUntil(page, "merge(focus(cp", "cpu");
	assert.equal(await field(page).getAttribute("aria-expanded"), "true");
	await page.keyboard.press("Enter");
	await typeUntil(page, "{jo", "job");
	await page.keyboard.press("Tab");
	await marked(page, "=");
	await page.keyboard.press("Enter");
	const jobs = await api("label/job/values", { "match[]": "cpu", start: w.from, end: w.to });
	await marked(page, jobs[0]);
	assert.deepEqual(await page.locator(".offer-text").allTextContents(), jobs);
	await typeUntil(page, "de", "demo");
	await page.keyboard.press("Enter");
	const top = await api("query", { query: `top(1, merge(${QUERY}))`, start: w.from, end: w.to });
	const code = top.result[0].rows[0].function;
	await page.keyboard.type(`}, "${code.slice(-8)}`);
	const offer = offers(page).filter({ hasText: code }).first();
	await offer.waitFor();
	assert.equal(await field(page).getAttribute("aria-activedescendant"), null, "any text may do");
	const at = (await page.locator(".offer-text").allTextContents()).indexOf(code);
	for (let i = 0; i <= at; i++) await page.keyboard.press("ArrowDown");
	await marked(page, code);
	await shot(page, "completion");
	await page.keyboard.press("Enter");
	await page.keyboard.type("))");
	const escaped = code.replace(/[\\^$.*+?()[\]{}|]/g, "\\\\$&");
	const query = `merge(focus(cpu{job="demo"}, "^${escaped}$"))`;
	assert.equal(await field(page).inputValue(), query);
	await page.keyboard.press("Enter");
	await page.waitForFunction(
		(want) => new URLSearchParams(location.search).get("query") === want,
		query,
	);
	await flameReady(page);
	const data = await api("query", { query, start: w.from, end: w.to, max_nodes: 2048 });
	const nodes = decode(data.result[0].flamebearer);
	const total = (name) => Math.max(...nodes.filter((n) => n.name === name).map((n) => n.total));
	await page.waitForFunction(
		(want) => window.__epi.drawn().some((n) => n.name === want),
		code,
	);
	await settled(page);
	const { width } = await page.evaluate(() => window.__epi.flame());
	const seen = await drawn(page);
	const widest = Math.max(...seen.filter((n) => n.name === code).map((n) => n.w));
	assert.ok(Math.abs(widest - (total(code) * width) / nodes[0].total) < 0.5, `${widest} px`);
	assert.deepEqual(real(problems), []);
});

test("functions and words of the language are offered with what they take", async (t) => {
	const language = await fetch(`${base}api/v1/language`);
	if (language.status === 404) return t.skip("this server does not tell its language");
	const { data } = await language.json();
	const { page } = await open(t, explore({ query: "cpu", ...fixedWindow(60) }));
	await field(page).focus();
	await page.keyboard.press("Control+A");
	await typeUntil(page, "cum_s", "cum_share");
	const told = data.functions.find((f) => f.name === "cum_share");
	assert.equal(await page.locator(".offer-usage code").textContent(), told.usage);
	await page.keyboard.press("Enter");
	assert.equal(await field(page).inputValue(), "cum_share()");
	await typeUntil(page, "mer", "merge");
	await page.keyboard.press("Enter");
	await typeUntil(page, "cp", "cpu");
	await page.keyboard.press("Enter");
	await page.keyboard.type(")"); // over the one that is there
	await typeUntil(page, ", {fu", "function");
	assert.equal(await field(page).inputValue(), "cum_share(merge(cpu), {fu)");
	await page.keyboard.press("Escape");
	await offers(page).first().waitFor({ state: "detached" });
	await page.keyboard.press("Control+A");
	await typeUntil(page, "merge b", "by");
	await page.keyboard.press("Enter");
	await typeUntil(page, "vers", "version");
	await page.keyboard.press("Enter");
	assert.equal(await field(page).inputValue(), "merge by (version)");
});

test("what is wrong is underlined where the server says, while typing", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, ...fixedWindow(60) }));
	await flameReady(page);
	const text = 'flat(merge(cpu{job="demo"}))\n+ + nosuch(cpu)';
	await field(page).fill(text);
	const wrong = page.locator(".query-copy .wrong");
	await wrong.waitFor();
	const answer = await (
		await fetch(`${base}api/v1/parse_query?${new URLSearchParams({ query: text })}`)
	).json();
	const [, line, column, message] = /^(\d+):(\d+): (.*)/.exec(answer.error);
	const start =
		text
			.split("\n")
			.slice(0, line - 1)
			.reduce((n, l) => n + l.length + 1, 0) +
		Number(column) -
		1;
	const before = await wrong.evaluate((el) => {
		let s = "";
		for (let n = el.previousSibling; n; n = n.previousSibling) s = n.textContent + s;
		return s;
	});
	assert.equal(before, text.slice(0, start));
	assert.equal(await wrong.textContent(), "nosuch");
	assert.equal(
		await page.locator(".query-wrong").textContent(),
		`${line}:${column}: ${message}`,
	);
	assert.equal(await field(page).getAttribute("aria-invalid"), "true");
	await shot(page, "wrong");
	// The copy breaks its lines where the field does, or the underline stood elsewhere.
	const long = `flat(merge(cpu{job=~"${"demo|".repeat(90)}"}))`;
	await field(page).fill(long);
	const [copy, own] = await Promise.all(
		[page.locator(".query-copy"), field(page)].map((l) => l.evaluate((el) => el.scrollHeight)),
	);
	assert.ok(own > 30, "several lines");
	assert.equal(copy, own);
	await page.locator(".query-wrong").waitFor({ state: "detached" });
	assert.deepEqual(real(problems), []);
});

test("a query is formatted as the server does it, and that can be undone", async (t) => {
	const { page } = await open(t, explore({ query: QUERY, ...fixedWindow(60) }));
	const text = "topk( 3,flat( merge(cpu{ job='demo' } [ 5m ])) )";
	await field(page).fill(text);
	await page.keyboard.press("Alt+Shift+F");
	const want = (await api("format_query", { query: text })).trim();
	await page.waitForFunction(
		(s) => document.querySelector(".query-field textarea").value === s,
		want,
	);
	await page.keyboard.press("Control+Z");
	assert.equal(await field(page).inputValue(), text);
	assert.equal(chosen(page), QUERY, "nothing was run");
	await field(page).fill("cpu # all of it");
	assert.ok(await page.getByRole("button", { name: "Format" }).isDisabled());
});
