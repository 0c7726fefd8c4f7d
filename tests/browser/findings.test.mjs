// The first page says what is wrong: one line each, and each line leads to what explains it.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser, countComes, flameReady, openPage, params, shot, startServer } from "./page.mjs";
import { cpuProfile, levelProfile, push } from "./pprof.mjs";

after(closeBrowser);

const STEP_S = 10;
const STEPS = 60;
const DEAD = `
  - job_name: billing
    scrape_interval: 10s
    static_configs: [{targets: ["127.0.0.1:1"]}]
`;

/** Ten minutes of two versions and a heap, and what the configuration scrapes. */
async function sceneOf(t, { scrape, scoring, leak }) {
	const server = await startServer({
		files: { "e.yml": scrape ? `scrape_configs:${scrape}` : "scrape_configs: []\n" },
		flags: ["--web.enable-ingest"],
	});
	t.after(() => server.stop());
	const now = Math.floor(Date.now() / 1000);
	for (let i = 0; i < STEPS; i++) {
		const time = String(now - STEP_S * (STEPS - i));
		const args = { time, interval: `${STEP_S}s` };
		const wobble = 3e7 * ((i * 7) % 5);
		for (const [version, cost] of [["v1", 5e8], ["v2", scoring]])
			await push(
				server.base,
				{ ...args, name: "process_cpu", job: "shop", version },
				cpuProfile({
					functions: [{ name: "main.main" }, { name: "main.rest" }, { name: "main.scoreItems" }],
					samples: [
						{ stack: [0, 1], value: 5e9 + wobble },
						{ stack: [0, 2], value: cost + wobble },
					],
				}),
			);
		await push(
			server.base,
			{ ...args, name: "memory", job: "leaky" },
			levelProfile("inuse_space", "bytes", {
				functions: [{ name: "main.main" }, { name: "main.keep" }],
				samples: [{ stack: [0, 1], value: 2 ** 27 + leak * i }],
			}),
		);
	}
	return server;
}

const findings = (page) => page.getByRole("region", { name: "Findings" });
const rows = (page) => page.locator(".fleet .vtable-body > [role=row]");

test("a leak, a slower version, a dead target: three lines, each leads to what explains it", async (t) => {
	const server = await sceneOf(t, { scrape: DEAD, scoring: 3e9, leak: 4 * 2 ** 20 });
	const { page, problems } = await openPage(t, server.base);
	const lines = findings(page).locator("li");
	await lines.nth(2).waitFor();
	const said = (await lines.allInnerTexts()).map((x) => x.replace(/\s+/g, " "));
	assert.match(said[0], /^Down billing down: nothing listens on 1$/);
	assert.match(said[1], /^Growth leaky grows 1\.4\d? GiB\/h$/);
	assert.match(said[2], /^CPU shop v2 main\.\s?scoreItems [34]\.\dx of v1$/);
	assert.equal(said.length, 3);
	await shot(page, "findings");
	// The red number leads there too.
	const dead = rows(page).filter({ hasText: "billing" }).getByRole("link", { name: /^0 \/ \d+$/ });
	assert.match(await dead.getAttribute("href"), /^targets\?state=down&filter=job%3Dbilling$/);

	await lines.nth(0).getByRole("link").click();
	await page.waitForURL(/targets\?/);
	await page.getByText("nothing listens on 1").first().waitFor();
	await page.goBack();
	await lines.nth(1).getByRole("link").click();
	await page.waitForURL(/explore\?/);
	assert.equal(params(page).query, 'memory{job="leaky"}');
	await page.getByText(/Growing 1\.4\d? GiB\/h/).waitFor();
	await page.goBack();
	await lines.nth(2).getByRole("link").click();
	await page.waitForURL(/compare\?/);
	await flameReady(page);
	const { new: next, base: old, pick } = params(page);
	assert.deepEqual([next, old, pick], [
		'cpu{job="shop",version="v2"}',
		'cpu{job="shop",version="v1"}',
		"main.scoreItems",
	]);
	assert.ok((await page.evaluate(() => window.__epi.search())).drawn > 0, "the function is highlighted");
	assert.deepEqual(problems, []);
	// A telephone shows them too.
	const small = await openPage(t, server.base, { viewport: { width: 390, height: 800 } });
	await findings(small.page).locator("li").nth(2).waitFor();
	assert.equal(await small.page.evaluate(() => document.documentElement.scrollWidth), 390);
	await shot(small.page, "findings-390");
});

test("a quiet fleet says nothing, and its questions are few, once a refresh, at any range", async (t) => {
	const server = await sceneOf(t, { scrape: "", scoring: 5e8, leak: 0 });
	const asked = [];
	const { page, problems } = await openPage(t, `${server.base}?range=15m`, {
		before: (p) => p.on("request", (r) => asked.push(new URL(r.url()))),
	});
	const downs = () => asked.filter((u) => u.searchParams.get("health") === "down").length;
	const tests = () => asked.filter((u) => /^changed\(|^flat_share\(/.test(u.searchParams.get("query") ?? "")).length;
	await rows(page).first().waitFor();
	// The range was chosen, and the page is asked again by itself.
	while (downs() < 2) await page.waitForEvent("request");
	await page.waitForLoadState("networkidle");
	await countComes(findings(page), 0);
	assert.equal(tests(), 0, "nothing to test");
	const refresh = page.getByLabel(/refresh/i).first();
	for (const [range, every] of [["15m", "10s"], ["1h", "30s"], ["6h", "1m"], ["30d", "5m"]]) {
		await page.goto(`${server.base}?range=${range}`);
		await rows(page).first().waitFor();
		assert.equal(await refresh.inputValue(), every, range);
	}
	await page.goto(`${server.base}?range=1h&refresh=off`);
	await rows(page).first().waitFor();
	assert.equal(await refresh.inputValue(), "off", "what was chosen stays");
	assert.deepEqual(problems, []);
});

test("a press keeps its row: a finding that comes before the release moves nothing", async (t) => {
	const server = await sceneOf(t, { scrape: DEAD, scoring: 5e8, leak: 0 });
	const { page, problems } = await openPage(t, `${server.base}?refresh=off`);
	await findings(page).getByText("nothing listens on 1").waitFor();
	// Once more, and the answer to which targets are down comes while the pointer is pressed.
	let answer;
	const held = new Promise((begun) =>
		page.route(/\/targets\?.*health=down/, async (route) => {
			await new Promise((done) => begun((answer = done)));
			await route.continue();
		}),
	);
	await page.goto(`${server.base}?refresh=off`);
	const link = rows(page).getByRole("link", { name: "shop", exact: true });
	await link.hover();
	await held;
	await countComes(findings(page), 0);
	const { y } = await link.boundingBox();
	await page.mouse.down();
	const answered = page.waitForResponse(/\/targets\?.*health=down/);
	answer();
	await (await answered).finished();
	// What a page does with an answer, it does before a question that is asked later is answered.
	await page.evaluate(async () => {
		await (await fetch("api/v1/status/runtimeinfo")).json();
		await new Promise((done) => setTimeout(done, 100));
	});
	assert.equal((await link.boundingBox()).y, y, "the row stays below the pointer");
	await page.mouse.up();
	await page.waitForURL(/explore\?/);
	assert.equal(params(page).query, 'cpu{job="shop"}');
	assert.deepEqual(problems, []);
});
