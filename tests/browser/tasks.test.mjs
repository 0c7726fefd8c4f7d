// What a new user comes for, each in at most three clicks from the page's start and without a key. What the
// page says is compared with the API's answers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import {
	addressHas,
	closeBrowser,
	comes,
	complete,
	countComes,
	drawn,
	fleetApi,
	params,
	shot,
	startServer,
	verdictReady,
	WAIT_MS,
} from "./page.mjs";
import { amount, drawnTotal, same, sidesOf, visit } from "./visitor.mjs";

const REGRESSED = "main.scoreItems"; // v2 of the demo fleet does more of it
const CALLER = "main.(*shop).search";
const INTERVAL_S = 10;
/** A trend takes that much of the fleet's life. */
const OLD_ENOUGH_S = 150;

before(async () => {
	for (let i = 0; i < OLD_ENOUGH_S; i++) {
		const { oldestProfile, serverTime } = await fleetApi("status/runtimeinfo");
		if (Date.parse(serverTime) - Date.parse(oldestProfile) >= 1000 * OLD_ENOUGH_S) return;
		await new Promise((done) => setTimeout(done, 1000));
	}
	assert.fail("the fleet's profiles do not get older");
});
after(closeBrowser);

const pageLink = (page, name) =>
	page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
const service = (page) => page.getByRole("link", { name: "shop", exact: true });
const verdict = (page) => page.getByRole("region", { name: "Verdict" });
const textOf = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();
const escaped = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Waits for the verdict on the comparison whose question `fits`; gives it and the answer. */
async function judged(v, fits) {
	const { page } = v;
	const { data } = await v.answer("the difference", (a) => a.args.max_nodes && /^diff/.test(a.args.query) && fits(a.args.query));
	const said = await verdictReady(page);
	return { said, data, text: await textOf(verdict(page).getByRole("status")) };
}

/** Two clicks, and the verdict names the regression. */
async function regression(t) {
	for (let tries = 1; ; tries++) {
		const v = await visit(t);
		await v.click(pageLink(v.page, "Compare"));
		await v.click(v.page.getByRole("button", { name: "version v2 against v1" }));
		await addressHas(v.page, { new: 'cpu{version="v2"}', base: 'cpu{version="v1"}', shift: "0" });
		const found = await judged(v, (q) => /"v1"/.test(q) && /"v2"/.test(q));
		if (found.said.name === REGRESSED) return { v, ...found };
		// While the fleet has hardly run, chance moves another function more.
		v.done();
		assert.ok(tries < 12, `${found.said.name} is named`);
		await v.page.close();
		await new Promise((done) => setTimeout(done, 1000 * INTERVAL_S));
	}
}

test("1. the regression between two versions", async (t) => {
	const { v, data, text } = await regression(t);
	const [, from, to, times, gained] =
		new RegExp(`^${escaped(REGRESSED)} ([\\d.]+)% → ([\\d.]+)% \\(([\\d.]+)×, \\+([\\d.]+ \\w+) of CPU in `).exec(text) ??
		assert.fail(text);
	const { base, next, baseTotal, nextTotal } = sidesOf(data, REGRESSED);
	assert.ok(base > 0 && next > 2 * base, `${base} and ${next}`);
	// The sentence has two digits.
	same(Number(from), (100 * base) / baseTotal, "the share in v1", 0.05);
	same(Number(to), (100 * next) / nextTotal, "the share in v2", 0.05);
	same(Number(times), next / nextTotal / (base / baseTotal), "how many times as much", 0.05);
	same(amount(gained), next - base, "the time gained");
	v.done();
	await shot(v.page, "task-1-regression");
});

test("2. who calls it", async (t) => {
	const { v, data, text } = await regression(t);
	assert.ok(text.includes(`, called only by ${CALLER};`), text);
	await v.click(verdict(v.page).getByRole("button", { name: REGRESSED, exact: true }));
	const rows = v.page.getByRole("region", { name: "Callers", exact: true }).getByRole("row");
	await rows.nth(1).waitFor();
	await countComes(rows, 2, "a head and one caller");
	const [name, base, next, change] = await rows.nth(1).getByRole("gridcell").allInnerTexts();
	assert.equal(name.replace(/\s/g, ""), CALLER);
	const want = sidesOf(data, REGRESSED);
	same(amount(base), want.base, "base");
	same(amount(next), want.next, "new");
	same(amount(change), want.next - want.base, "change");
	v.done();
	await shot(v.page, "task-2-caller");
});

test("3. an alert on it", async (t) => {
	const { v } = await regression(t);
	await v.click(verdict(v.page).getByRole("button", { name: "Alert when it costs more" }));
	const drawer = v.page.getByRole("dialog", { name: "New alert" });
	await drawer.getByRole("slider", { name: "Limit" }).waitFor();
	await v.page.waitForFunction(() => new URLSearchParams(location.search).has("aover"));
	const rule = drawer.getByRole("region", { name: "Rule", exact: true });
	await rule.getByText(`/ 1e9 > ${params(v.page).aover}`).waitFor();
	const yaml = await rule.locator("pre").textContent();
	assert.match(yaml, /^ +- alert: \w+$/m);
	assert.ok(yaml.includes(`rate(cpu{version="v2"}[5m])`) && yaml.includes(`{function="${REGRESSED}"}`), yaml);
	const dir = mkdtempSync(join(tmpdir(), "epi-task-"));
	t.after(() => rmSync(dir, { recursive: true, force: true }));
	writeFileSync(join(dir, "rule.yml"), yaml);
	execFileSync(join(process.env.EPI_BUILD ?? "build", "epitool"), ["check", "rules", join(dir, "rule.yml")]);
	v.done();
	await shot(v.page, "task-3-alert");
});

/** From a number of the service to what grew; gives what the verdict says. */
async function leak(t, number, type) {
	const v = await visit(t);
	await v.click(v.page.getByRole("link", { name: number }));
	await addressHas(v.page, { query: `${type}{service="shop"}` });
	const level = v.page.getByRole("region", { name: "Level" });
	await level.getByText(/^Growing /).waitFor();
	const rows = await level.locator("tbody tr").allInnerTexts();
	await v.click(level.getByRole("link", { name: "What grew?" }));
	const { said, data, text } = await judged(v, (q) => q.includes(type));
	const { base, next } = sidesOf(data, said.name);
	assert.deepEqual(said.costs, { base, next });
	assert.ok(next > base);
	v.done();
	return { v, said, text, rows, base, next };
}

test("4. the heap leak", async (t) => {
	const { v, said, text, base, next } = await leak(t, /^Heap of shop/, "memory");
	assert.equal(said.name, "main.(*leak).keepReceipt", text);
	const [, from, to, gained] =
		/keepReceipt ([\d.]+ \w+) → ([\d.]+ \w+) \([\d.]+×, \+([\d.]+ \w+)\), called only by main\.\(\*shop\)\.checkout$/.exec(
			text,
		) ?? assert.fail(text);
	same(amount(from), base, "before");
	same(amount(to), next, "now");
	same(amount(gained), next - base, "the growth");
	await shot(v.page, "task-4-heap");
});

test("5. the goroutine leak", async (t) => {
	const { v, said, text, rows, base, next } = await leak(t, /^Goroutines of shop/, "goroutine");
	assert.equal(said.name, "main.awaitReview", text);
	const [, from, to] = /awaitReview ([\d.,]+ ?k?) → ([\d.,]+ ?k?) \(/.exec(text) ?? assert.fail(text);
	same(amount(from), base, "before");
	same(amount(to), next, "now");
	// What they wait for stood on the page before.
	const row = rows.map((r) => r.replace(/\s+/g, " ")).find((r) => /awaitReview/.test(r));
	assert.match(row ?? "", /awaitReview receives from a channel main\./);
	await shot(v.page, "task-5-goroutines");
});

test("6. the share of a function in its service", async (t) => {
	const v = await visit(t);
	await v.click(service(v.page));
	await v.click(v.page.getByRole("row").filter({ has: v.page.getByTitle(REGRESSED, { exact: true }) }));
	await v.page.getByRole("heading", { name: REGRESSED }).waitFor();
	const cost = v.page.locator(".sandwich-head dl");
	await cost.getByText("cum").waitFor();
	const { data } = await v.answer("the table", (a) => /^top\(/.test(a.args.query ?? "") && /service="shop"/.test(a.args.query));
	const row = data.result[0].rows.find((r) => r.function === REGRESSED);
	const [, shown, percent] = /cum ([\d.]+ \w+) ([\d.]+)% of total/.exec(await textOf(cost)) ?? assert.fail(await textOf(cost));
	same(amount(shown), row.cum, "its cost");
	same(Number(percent), row.cum_percent, "its share");
	v.done();
	await shot(v.page, "task-6-share");
});

test("7. the cost of a handler, which is a label of samples", async (t) => {
	const v = await visit(t);
	const select = v.page.getByLabel("One row per value of");
	await select.locator("option", { hasText: /^handler$/ }).waitFor({ state: "attached" });
	await v.choose(select, "handler");
	const over = () =>
		v.answer("the rows", (a) => a.name === "query" && /^total\(merge by \(handler\) \(mean_rate\(cpu/.test(a.args.query));
	const row = v.page.getByRole("row").filter({ has: v.page.getByRole("link", { name: "/search", exact: true }) });
	await row.waitFor();
	const cores = row.getByRole("link", { name: /^Cores of \/search/ });
	// While the fleet is young, the page asks again by itself: the row counts that is of the newest answer.
	await comes(async () => {
		const { data } = await over();
		const shown = await cores.innerText();
		if ((await over()).data !== data) return "a newer answer came";
		const [, ns] = data.result.find((e) => e.metric.handler === "/search").value;
		const digits = String(Number((ns / 1e9).toPrecision(3)));
		return shown === digits || `${shown} is shown, ${digits} is true`;
	}, true, "cores");
	await v.click(row.getByRole("link", { name: "/search", exact: true }));
	const { data } = await v.answer("the handler", (a) => a.args.max_nodes && /handler="\/search"/.test(a.args.query));
	const [{ total }] = data.result;
	await drawnTotal(v.page, total);
	same(amount((await textOf(v.page.locator(".results .summary"))).replace(/^total /, "")), total, "the total");
	assert.ok((await drawn(v.page)).some((n) => n.name === CALLER), "its function is there");
	v.done();
	await shot(v.page, "task-7-handler");
});

test("8. from a spike in the chart to the flame graph of that time", async (t) => {
	const v = await visit(t);
	await v.click(service(v.page));
	await v.page.waitForFunction(() => window.__epi?.chart?.()?.columns[0]?.filter((x) => x !== null).length > 3);
	const chart = await v.page.evaluate(() => window.__epi.chart());
	const [line] = chart.columns;
	const { start, end } = chart.window;
	const inside = (time) => time > start && time < end;
	const spike = line.reduce((best, x, i) => (inside(chart.times[i]) && x > (line[best] ?? 0) ? i : best), -1);
	const time = chart.times[spike];
	const box = await v.page.locator(".chart-panel .u-over").boundingBox();
	await v.clickAt({ x: box.x + (box.width * (time - start)) / (end - start), y: box.y + 30 }, "the spike");
	await addressHas(v.page, { from: String(time - INTERVAL_S), to: String(time) });
	assert.match(await textOf(v.page.locator(".opened").getByRole("status")), /^One scrape: .* \(10s\)$/);
	const { data, args } = await v.answer("that time", (a) => a.args.max_nodes && Number(a.args.end) === time);
	assert.equal(Number(args.start), time - INTERVAL_S);
	const [{ total }] = data.result;
	assert.ok(total > 0);
	await drawnTotal(v.page, total);
	v.done();
	await shot(v.page, "task-8-spike");
});

test("9. an export that go tool pprof reads", async (t) => {
	const v = await visit(t);
	await v.click(service(v.page));
	await v.click(v.page.getByRole("button", { name: "Export", exact: true }));
	const link = v.page.getByRole("link", { name: /^pprof/ });
	const asked = new URL(await link.evaluate((a) => a.href)).searchParams;
	await complete(Number(asked.get("end")));
	const [download] = await Promise.all([v.page.waitForEvent("download"), v.click(link)]);
	assert.match(download.suggestedFilename(), /^shop-cpu-\d{4}-\d\d-\d\dT\d\d-\d\dZ-\d+[mh]\.pb\.gz$/);
	const top = execFileSync("go", ["tool", "pprof", "-top", "-unit=nanoseconds", await download.path()], {
		encoding: "utf8",
		stdio: "pipe",
	});
	const [, total] = / of (\d+)ns total/.exec(top) ?? assert.fail(top);
	const { query, start, end } = Object.fromEntries(asked);
	const { result } = await fleetApi("query", { query, start, end });
	assert.equal(Number(total), result[0].total);
	assert.match(top, new RegExp(` ${escaped(REGRESSED)}$`, "m"));
	v.done();
});

test("10. why a target is down", async (t) => {
	const config = `
global: {scrape_interval: 2s, scrape_timeout: 1s}
scrape_configs:
  - job_name: shop
    static_configs: [{targets: ["127.0.0.1:1"], labels: {service: shop}}]
`;
	const server = await startServer({ files: { "e.yml": config } });
	t.after(() => server.stop());
	const v = await visit(t, server.base);
	await v.click(pageLink(v.page, "Targets"));
	const pool = v.page.getByRole("region", { name: "shop" });
	await pool.getByText("Nothing listens on 1.").waitFor();
	// On a busy machine some other error may come between; the page says what the newest answer does.
	await comes(async () => {
		const { data } = await v.answer("targets", (a) => a.name === "targets");
		const text = await textOf(pool);
		const down = data.activeTargets.filter((x) => x.health === "down");
		const said = [/0 \/ 1 up .*\bdown\b/.test(text), down.length > 0, down.every((x) => text.includes(x.lastError))];
		return said.every(Boolean) || text;
	}, true, "the errors of the answer");
	v.done();
	await shot(v.page, "task-10-down");
});

test("11. either side of a difference", async (t) => {
	const { v, data } = await regression(t);
	const [{ left_total: base, right_total: next }] = data.result;
	await drawnTotal(v.page, base + next);
	await v.click(v.page.getByRole("button", { name: "Base alone" }));
	await drawnTotal(v.page, base);
	v.done();
	await shot(v.page, "task-11-side");
});

test("12. the graph of a service in full screen", async (t) => {
	const v = await visit(t);
	await v.click(service(v.page));
	await v.page.getByRole("img", { name: /Flame graph/ }).waitFor();
	await v.click(v.page.getByRole("button", { name: "Full screen" }));
	await comes(
		() => v.page.locator(".results").evaluate((e) => [e.clientWidth === innerWidth, e.clientHeight === innerHeight]),
		[true, true],
		"the result fills the window",
	);
	v.done();
	await shot(v.page, "task-12-full");
});

/** What is pressed is noticed a moment later. */
async function noticed(v, message) {
	for (let i = 0; i < WAIT_MS / 50; i++) {
		try {
			v.done();
		} catch (e) {
			return assert.match(e.message, message);
		}
		await v.page.waitForTimeout(50);
	}
	assert.fail("nothing is noticed");
}

test("the count is kept: a fourth click, a key, and a click beside the count fail", async (t) => {
	const v = await visit(t);
	for (const name of ["Targets", "Compare", "Services"]) await v.click(pageLink(v.page, name));
	v.done();
	await assert.rejects(v.click(pageLink(v.page, "Rules")), /takes click 4, 3 must do/);
	const typist = await visit(t);
	await typist.page.keyboard.press("g");
	await noticed(typist, /'g'/);
	const hasty = await visit(t);
	await hasty.page.mouse.click(5, 5);
	await noticed(hasty, /1 presses, 0 of them counted/);
});

test("a click that something moves away from is one press", async (t) => {
	const v = await visit(t);
	await v.page.evaluate(() => {
		const cover = document.createElement("div");
		cover.style = "position: fixed; inset: 0; z-index: 1000000";
		const over = () => {
			document.body.append(cover);
			setTimeout(() => cover.remove(), 200);
		};
		addEventListener("mousemove", over, { once: true });
	});
	await v.click(pageLink(v.page, "Targets"));
	await v.page.locator(".pool").first().waitFor();
	v.done();
});
