// Writing and asking queries: the field, completion, the label browser, checked against the API.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
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

test("a slow query can be given up and asked again", async (t) => {
	let slow = true;
	const { page, problems } = await open(t, explore({ query: QUERY, ...(await fixedWindow(120)) }), {
		before: (p) =>
			p.route("**/api/v1/query?*", async (route) => {
				if (!slow) return route.continue();
				// Never answered; the page has to cancel it.
			}),
	});
	const aborted = page.waitForEvent("requestfailed", (r) => r.url().includes("/api/v1/query?"));
	await page.getByText(/^Running/).waitFor();
	await page.getByRole("button", { name: "Cancel", exact: true }).click();
	assert.match((await aborted).failure().errorText, /ABORTED/);
	await page.getByText("Cancelled.").waitFor();
	await countComes(page.getByText("Loading"), 0);
	slow = false;
	await page.getByRole("button", { name: "Run again" }).click();
	await flameReady(page);
	await countComes(page.getByText("Cancelled."), 0);
	// A cancelled refresh leaves the old answer.
	slow = true;
	await page.getByRole("button", { name: "Run", exact: true }).click();
	await page.getByRole("button", { name: "Cancel", exact: true }).click();
	await page.getByText("The result below is the previous one.").waitFor();
	await shot(page, "cancelled");
	assert.ok((await drawn(page)).length > 1);
	assert.deepEqual(problems, []);
});

/* ---- writing ---- */

const field = (page) => page.getByRole("textbox", { name: "Query", exact: true });
const offers = (page) => page.getByRole("listbox", { name: "Completions" }).getByRole("option");
const chosen = (page) => new URL(page.url()).searchParams.get("query");

/** Types, and waits until Enter would choose `text`. */
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

/** The problems, without Chromium's messages about answers that refuse a query. */
const real = (problems) => problems.filter((p) => !/status of 40[04]/.test(p));

test("a query is written by keyboard, and its answer is the API's", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: "goroutine", ...w, view: "flame" }));
	await flameReady(page);
	await field(page).focus();
	await page.keyboard.press("Control+A");
	await typeUntil(page, "merge(focus(cp", "cpu");
	assert.ok(await page.getByRole("listbox", { name: "Completions" }).isVisible());
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
	// The name is quoted as it is, in backquotes: its dots and brackets are not an expression.
	const exact = /^\w+$/.test(code) ? `"^${code}$"` : `\`^\\Q${code}\\E$\``;
	const query = `merge(focus(cpu{job="demo"}, ${exact}))`;
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

test("the page works before the language is loaded, and loads it again", async (t) => {
	let refused = 0;
	const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(60)) }), {
		before: (p) =>
			p.route("**/api/v1/language", (r) => (refused++ ? r.continue() : r.abort())),
	});
	const loaded = page.waitForResponse("**/api/v1/language");
	await flameReady(page);
	await loaded;
	assert.equal(refused, 2);
	await field(page).focus();
	await page.keyboard.press("Control+A");
	await typeUntil(page, "cum_s", "cum_share");
});

test("functions and words of the language are offered with what they take", async (t) => {
	const data = await api("language");
	const { page } = await open(t, explore({ query: "cpu", ...(await fixedWindow(60)) }));
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
	await page.keyboard.type(")"); // moves over the existing one
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
	const { page, problems } = await open(t, explore({ query: QUERY, ...(await fixedWindow(60)) }));
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
	// A selector is sent inside merge(). Its error is shown where the user wrote it.
	await field(page).fill('cpu{job=~"("}');
	await page.keyboard.press("Enter");
	await page.getByRole("alert").waitFor();
	assert.equal(await wrong.textContent(), '"("');
	// The copy must break its lines where the field does, else the underline is in a wrong place.
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
	const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(60)) }));
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

/* ---- labels ---- */

const names = (page) => page.getByRole("group", { name: "Label names" }).getByRole("listitem");
const values = (page, label) =>
	page.getByRole("group", { name: `Values of ${label}` }).getByRole("listitem");

test("the label browser counts as the API does, and a press changes the query", async (t) => {
	const w = await fixedWindow(300);
	const times = { start: w.from, end: w.to };
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	await page.getByRole("button", { name: "Labels", exact: true }).click();
	const counts = await api("label_counts", { "match[]": QUERY, ...times });
	await names(page).filter({ hasText: "version" }).waitFor();
	const shown = await names(page).allInnerTexts();
	for (const c of counts.filter((x) => !x.name.startsWith("__"))) {
		const line = `${c.name} ${c.values} value${c.values === 1 ? "" : "s"} · ${c.series} series`;
		assert.ok(
			shown.some((s) => s.replace(/\s+/g, " ").trim() === line),
			`${line} among ${shown}`,
		);
	}
	await page.getByLabel("Filter labels").fill("vers");
	await countComes(names(page), 1);
	await names(page).getByRole("button", { name: /^version/ }).click();
	assert.equal(new URL(page.url()).searchParams.get("labels"), "version");
	const versions = await api("label_counts", { "match[]": QUERY, label: "version", ...times });
	await values(page, "version").first().waitFor();
	await page.waitForFunction(() =>
		/series/.test(document.querySelectorAll(".label-column")[1].textContent),
	);
	assert.deepEqual(
		(await values(page, "version").allInnerTexts()).map((s) => s.replace(/\s+/g, " ").trim()),
		versions.map((v) => `${v.value} ${v.series} series`),
	);
	await shot(page, "labels");
	const before = await page.locator(".summary").first().innerText();
	const [one, two] = versions.map((v) => v.value);
	await values(page, "version").getByRole("button", { name: new RegExp(`^${one}`) }).click();
	const query = `cpu{job="demo",version="${one}"}`;
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("query") === q,
		query,
	);
	await page.waitForFunction((s) => document.querySelector(".summary").innerText !== s, before);
	await flameReady(page);
	const data = await api("query", { query: `merge(${query})`, ...times, max_nodes: 2048 });
	const nodes = decode(data.result[0].flamebearer);
	const { width } = await page.evaluate(() => window.__epi.flame());
	for (const n of (await drawn(page)).filter((x) => x.level === 1)) {
		const same = nodes.filter((x) => x.level === 1 && x.name === n.name);
		assert.ok(
			same.some((x) => Math.abs((x.total * width) / nodes[0].total - n.w) < 0.5),
			`${n.name} is ${n.w} px wide`,
		);
	}
	// The other values stay visible; Shift adds them.
	const pressed = values(page, "version").getByRole("button", { pressed: true });
	assert.equal((await pressed.innerText()).split(/\s/)[0], one);
	await values(page, "version")
		.getByRole("button", { name: new RegExp(`^${two}`) })
		.click({ modifiers: ["Shift"] });
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("query") === q,
		`cpu{job="demo",version=~"${one}|${two}"}`,
	);
	await values(page, "version").getByRole("button", { name: `Without ${one}` }).click();
	await values(page, "version").getByRole("button", { name: new RegExp(`^${two}`) }).click();
	await page.waitForFunction(
		(q) => new URLSearchParams(location.search).get("query") === q,
		QUERY,
	);
	await page.keyboard.press("Escape");
	await page.getByRole("region", { name: "Labels" }).waitFor({ state: "detached" });
	await page.locator("button:focus", { hasText: "Labels" }).waitFor();
	assert.deepEqual(problems, []);
});

test("of thousands of values a part is shown, and typing narrows", async (t) => {
	const many = Array.from({ length: 3000 }, (_, i) => ({ value: `pod-${i}`, series: 2 }));
	const { page } = await open(
		t,
		explore({ query: QUERY, ...(await fixedWindow(60)), labels: "instance" }),
		{
			before: (p) =>
				p.route("**/api/v1/label_counts?*label=instance*", (route) =>
					route.fulfill({ json: { status: "success", data: many } }),
				),
		},
	);
	await page.getByText("more; type to narrow").waitFor();
	assert.ok((await values(page, "instance").count()) < 200);
	await page.getByLabel("Filter values of instance").fill("pod-2999");
	await page.waitForFunction(
		() => document.querySelectorAll(".label-column")[1].querySelectorAll("li").length === 1,
	);
});

test("a server that does not answer is said once, on every page", async (t) => {
	for (const name of ["explore", "explore?query=cpu", "compare", "services", "targets"]) {
		const { page } = await open(t, name, {
			before: (p) => p.route("**/api/**", (route) => route.abort()),
		});
		await page.locator(".notice.error").first().waitFor();
		await page.waitForLoadState("networkidle");
		await countComes(page.getByText("Loading…"), 0, name);
		const said = await page.locator(".notice.error").allInnerTexts();
		assert.equal(said.length, 1, `${name}: ${said}`);
		assert.match(said[0], /the server cannot be reached/i, name);
	}
});

test("each side of a comparison completes from its own window", async (t) => {
	const w = await fixedWindow(120);
	const { page } = await open(
		t,
		"compare?" + new URLSearchParams({ new: "cpu", base: "cpu", ...w, shift: "prev" }),
	);
	await editComparison(page);
	const side = page.getByRole("textbox", { name: "Base query", exact: true });
	await side.focus();
	await page.keyboard.press("End");
	const asked = page.waitForRequest((r) => r.url().includes("/api/v1/labels?match"));
	await page.keyboard.type("{");
	const { searchParams } = new URL((await asked).url());
	assert.equal(searchParams.get("match[]"), "cpu");
	assert.equal(searchParams.get("start"), String(w.from - 120));
	assert.equal(searchParams.get("end"), w.from);
});
