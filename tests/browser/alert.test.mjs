// The alert drawer on the fleet's server: opened from a function and from the query, its limit by
// pointer and keyboard, its link, and both texts as epitool reads them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
	addressHas,
	clickNode,
	closeBrowser,
	comes,
	countComes,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	fleetApi,
	openFleet as open,
	params,
	QUERY,
	shot,
} from "./page.mjs";

// The drawer shows a day in whole minutes. Of a fleet that just began, none has a value yet.
before(() =>
	comes(async () => {
		const time = Math.floor(Date.now() / 60000) * 60 - 60;
		return (await fleetApi("query", { query: "count(count_over_time(cpu{job=\"demo\"}[5m]))", time })).result.length;
	}, 1, "a minute of the fleet"),
);
after(closeBrowser);

const drawer = (page) => page.getByRole("dialog", { name: "New alert" });
const limit = (page) => drawer(page).getByRole("slider", { name: "Limit" });
const ruleText = (page) => drawer(page).getByRole("region", { name: "Rule", exact: true }).locator("pre").textContent();
const testText = (page) => drawer(page).getByRole("region", { name: "Rule test" }).locator("pre").textContent();
const sentence = (page) => drawer(page).locator(".alert-says").textContent();

/** Waits until the past day is read, its limit stands in the address, and the texts are final. */
async function ready(page) {
	await drawer(page).locator(".alert-texts[aria-busy=false]").waitFor();
	await page.waitForFunction(() => window.__epi.chart("chart-alert")?.columns.length > 0);
	await page.waitForFunction(() => new URLSearchParams(location.search).has("aover"));
}

/** Runs both commands on the texts as files; throws with what they say if they fail. */
function check(t, rule, tested) {
	const dir = mkdtempSync(join(tmpdir(), "epi-alert-"));
	t.after(() => rmSync(dir, { recursive: true, force: true }));
	const [, file] = /^rule_files: \[\.\.\/([A-Za-z0-9_]+\.yml)\]$/m.exec(tested);
	mkdirSync(join(dir, "tests"));
	writeFileSync(join(dir, file), rule);
	writeFileSync(join(dir, "tests/test.yml"), tested);
	for (const args of [["check", "rules", file], ["test", "rules", "tests/test.yml"]])
		try {
			execFileSync(join(process.env.EPI_BUILD ?? "build", "epitool"), args, { cwd: dir, encoding: "utf8", stdio: "pipe" });
		} catch (e) {
			assert.fail(`epitool ${args.join(" ")}: ${e.stdout}${e.stderr}\n${rule}\n${tested}`);
		}
}

/** A wide node that is not the root. */
async function someFunction(page) {
	const nodes = (await drawn(page)).filter((n) => n.level > 0 && n.w > 60 && n.x >= 0 && /^[a-z]/.test(n.name));
	return nodes.sort((a, b) => b.level - a.level)[0];
}

test("from a flame graph to the rule in two clicks, and its texts pass epitool", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "flame" }));
	await flameReady(page);
	const node = await someFunction(page);
	// Two clicks, no key.
	await clickNode(page, node, { button: "right" });
	await page.getByRole("menuitem", { name: "Alert when it costs more" }).click();
	await ready(page);
	const rule = await ruleText(page);
	const name = node.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
	assert.match(rule, new RegExp(`cum\\(merge by \\(job\\) \\(rate\\(cpu\\{job="demo"\\}\\[5m\\]\\)\\), \\{function="${name}"\\}\\) / 1e9 > [0-9.]+\n`));
	assert.match(rule, /^ {8}for: 5m$/m);
	check(t, rule, await testText(page));
	assert.equal(params(page).view, "flame", "the view is below");
	assert.equal(await page.evaluate(() => document.activeElement.id), "alert-title");
	await shot(page, "alert-light");
	// The line is what query_range says, in steps of a minute. A late profile may have come after the page asked.
	let tries = 0;
	await comes(async () => {
		if (tries++) {
			await page.reload();
			await ready(page);
		}
		const chart = await page.evaluate(() => window.__epi.chart("chart-alert"));
		const asked = { query: params(page).alert, start: chart.window.start, end: chart.window.end, step: 60 };
		const { result } = await fleetApi("query_range", asked);
		const points = chart.columns[0].flatMap((v, i) => (v === null ? [] : [[chart.times[i], v]]));
		const want = result[0].values.map(([time, v]) => [time, Number(v)]);
		return isDeepStrictEqual(points, want) || { points, want };
	}, true, "the line");
	await page.keyboard.press("Escape");
	await drawer(page).waitFor({ state: "detached" });
	assert.equal(params(page).alert, undefined);
	assert.deepEqual(problems, []);
});

test("the limit by pointer, keys and text; the sentence and both texts follow", async (t) => {
	// A busy server names the types late; without them nobody knows that this one has a rate.
	const { page, problems } = await open(t, explore({ query: QUERY, range: "15m" }), {
		before: (p) =>
			p.route("**/api/v1/profile_types*", async (route) => {
				await p.waitForTimeout(1000);
				await route.continue();
			}),
	});
	await page.getByRole("button", { name: "Alert", exact: true }).click();
	await ready(page);
	assert.match(params(page).alert, /^total\(merge by \(job\) \(rate\(cpu\{job="demo"\}\[5m\]\)\)\) \/ 1e9$/);
	const wait = drawer(page).getByLabel("For", { exact: true });
	await wait.fill("0s");
	await addressHas(page, { afor: "0s" });
	const far = Number(params(page).aover);
	const box = await limit(page).boundingBox();
	const plot = await drawer(page).locator(".u-over").boundingBox();
	// High above all values it never fires; close to 0 it does.
	const drag = async (y) => {
		const from = await limit(page).boundingBox();
		await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
		await page.mouse.down();
		await page.mouse.move(from.x + from.width / 2, y, { steps: 5 });
		await page.mouse.up();
	};
	await drag(plot.y - 30);
	await page.waitForFunction((was) => Number(new URLSearchParams(location.search).get("aover")) > was, far);
	assert.match(await sentence(page), /^No firing in /);
	const high = await ruleText(page);
	assert.ok(high.includes(`/ 1e9 > ${params(page).aover}\n`), high);
	await drag(plot.y + plot.height - 2);
	await page.waitForFunction((was) => Number(new URLSearchParams(location.search).get("aover")) < was / 10, far);
	assert.match(await sentence(page), /^Would have fired (once|twice|\d+ times) in .*: .*\d\d:\d\d/);
	assert.ok((await drawer(page).locator(".fired").count()) > 0);
	const low = await ruleText(page);
	assert.notEqual(low, high);
	check(t, low, await testText(page));
	// Keys: one step up, and the value says so.
	const before = Number(await limit(page).getAttribute("aria-valuenow"));
	await limit(page).focus();
	await page.keyboard.press("ArrowUp");
	await page.waitForFunction((was) => Number(new URLSearchParams(location.search).get("aover")) > was, before);
	assert.ok(Number(await limit(page).getAttribute("aria-valuenow")) > before);
	assert.match(await limit(page).getAttribute("aria-valuetext"), / cores$/);
	assert.ok(box.height > 10, "the line is not hard to hit");
	// Typed, with other fields.
	await drawer(page).getByLabel(/^Above/).fill("1500m");
	await drawer(page).getByText("not a number").waitFor();
	await drawer(page).getByLabel(/^Above/).fill("2.5");
	await wait.fill("10m");
	await drawer(page).getByLabel("Severity").fill("page");
	await drawer(page).getByLabel("Name").fill("TooExpensive");
	await drawer(page).getByLabel("More labels").fill('team=shop, note="a: b"');
	await addressHas(page, { aover: "2.5", afor: "10m", aseverity: "page", aname: "TooExpensive" });
	const rule = await ruleText(page);
	for (const line of ["- alert: TooExpensive", "/ 1e9 > 2.5", "for: 10m", "severity: page", "team: shop", "note: 'a: b'"])
		assert.ok(rule.includes(line), `${line}\n${rule}`);
	check(t, rule, await testText(page));
	// The link has all of it.
	const second = await open(t, page.url().replace(/^https?:\/\/[^/]*\//, ""));
	await ready(second.page);
	assert.equal(await ruleText(second.page), rule);
	assert.equal(await testText(second.page), await testText(page));
	assert.deepEqual([problems, second.problems], [[], []]);
});

test("from a row of the table and from a sandwich; as a share; another expression", async (t) => {
	const w = await fixedWindow(300);
	const { page, problems } = await open(t, explore({ query: QUERY, ...w, view: "table" }));
	const row = page.locator(".split-table .vtable-body > div").first();
	await row.waitFor();
	const [first] = await page.evaluate(() => window.__epi.table());
	await row.hover();
	await row.getByRole("button", { name: "Alert when it costs more" }).click();
	await ready(page);
	const fn = `{function="${first.function ?? first}"}`;
	assert.ok(params(page).alert.includes(fn), `${params(page).alert} has not ${fn}`);
	await drawer(page).getByRole("button", { name: "Share" }).click();
	await page.waitForFunction(() => /^cum_share/.test(new URLSearchParams(location.search).get("alert")));
	await ready(page);
	check(t, await ruleText(page), await testText(page));
	await drawer(page).getByRole("button", { name: "Close" }).click();
	await drawer(page).waitFor({ state: "detached" });
	await row.click();
	await page.locator(".sandwich-acts").getByRole("button", { name: "Alert when it costs more" }).click();
	await ready(page);
	const field = drawer(page).getByLabel("Expression of the alert");
	await field.fill("total(merge by (job) (goroutine[5m]))");
	await drawer(page).getByRole("button", { name: "Run" }).click();
	await addressHas(page, { alert: "total(merge by (job) (goroutine[5m]))" });
	await ready(page);
	check(t, await ruleText(page), await testText(page));
	assert.deepEqual(problems, []);
});

test("at 390 pixels and in both themes nothing is cut off", async (t) => {
	for (const [width, theme] of [[1440, "dark"], [1440, "light"], [390, "dark"], [390, "light"]]) {
		const { page, problems } = await open(t, explore({ query: QUERY, range: "15m" }), {
			viewport: { width, height: 900 },
			colorScheme: theme,
		});
		await page.getByRole("button", { name: "Alert", exact: true }).click();
		await ready(page);
		await shot(page, `alert-${width}-${theme}`);
		const wide = await drawer(page).evaluate((e) => {
			const scrolls = (x) => x !== e && (getComputedStyle(x).overflowX !== "visible" || (x.parentElement && scrolls(x.parentElement)));
			return [...e.querySelectorAll("*")]
				.filter((x) => !x.closest("pre, .uplot, .query-field, .visually-hidden, .chart-tip, .limit-line"))
				.filter((x) => x.getBoundingClientRect().right > innerWidth + 1)
				.map((x) => `${x.tagName}.${x.className}`);
		});
		assert.deepEqual(wide, [], `${width}`);
		const copies = drawer(page).getByRole("button", { name: /^Copy/ });
		await countComes(copies, 2);
		await copies.first().click();
		await drawer(page).getByText("Copied").waitFor();
		assert.deepEqual(problems, []);
	}
});

test("the drawer is a dialog that keeps the focus, gives it back, and ends with Escape", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, range: "15m" }));
	const opener = page.getByRole("button", { name: "Alert", exact: true });
	await opener.click();
	await ready(page);
	assert.equal(await drawer(page).evaluate((d) => d.tagName), "DIV");
	const inside = () => drawer(page).evaluate((d) => d.contains(document.activeElement));
	const title = drawer(page).getByRole("heading", { name: "New alert" });
	assert.ok(await title.evaluate((h) => h === document.activeElement));
	// With Shift from the first place to the last one, and back.
	await page.keyboard.press("Shift+Tab");
	assert.ok(await inside(), "the last place");
	await page.keyboard.press("Tab");
	const first = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
	const begin = await first();
	let places = 0;
	do {
		await page.keyboard.press("Tab");
		assert.ok(await inside(), `after ${++places} times Tab`);
	} while ((await first()) !== begin && places < 100);
	assert.ok(places > 5 && places < 100, `${places} places`);
	await page.keyboard.press("Escape");
	await drawer(page).waitFor({ state: "detached" });
	assert.ok(await opener.evaluate((b) => b === document.activeElement));
	assert.deepEqual(problems, []);
});
