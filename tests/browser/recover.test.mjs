// Errors and a server that cannot be reached leave the last good view, and go away by themselves.
import assert from "node:assert/strict";
import test, { after } from "node:test";
import {
	closeBrowser,
	countComes,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	FLEET,
	HEAP_ALONE,
	openFleet as open,
	openPage,
	QUERY,
	settled,
	shot,
	startServer,
	takeApi,
	WAIT_MS,
} from "./page.mjs";

after(closeBrowser);

const banner = (page) => page.locator(".outage");

/** Opens a page whose questions are answered by `answer` from the first one on. */
async function openTaken(t, path, answer) {
	let giveBack;
	const before = async (p) => {
		giveBack = await takeApi(p, answer);
	};
	return { ...(await open(t, path, { before })), giveBack };
}

const opacity = (page, selector) =>
	page.locator(selector).first().evaluate((e) => {
		let all = 1;
		for (let p = e; p; p = p.parentElement) all *= Number(getComputedStyle(p).opacity);
		return all;
	});
const query = (page) => page.getByRole("textbox", { name: "Query", exact: true });
const run = async (page, text) => {
	await query(page).fill(text);
	await page.keyboard.press("Escape");
	await page.keyboard.press("Enter");
};

test("a server that cannot be reached: the view stays, dimmed, with a countdown, and returns", async (t) => {
	for (const colorScheme of ["light", "dark"])
		for (const width of [1440, 390]) {
			const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(120)), view: "flame" }), {
				colorScheme,
				viewport: { width, height: 900 },
			});
			await flameReady(page);
			await settled(page);
			const before = (await drawn(page)).slice(0, 5);
			const giveBack = await takeApi(page, (route) => route.abort());
			await page.getByRole("button", { name: "Run", exact: true }).click();
			await banner(page).getByText("The server cannot be reached.").waitFor();
			await banner(page).getByText(/The last answer came at \d\d:\d\d:\d\d/).waitFor();
			await banner(page).getByText(/Trying again in \d+ s/).waitFor();
			await countComes(page.locator(".notice.error"), 1, "it is said once");
			// The lowest rows are out of sight: the banner needs room.
			assert.deepEqual((await drawn(page)).slice(0, 5), before, "the graph is still there");
			assert.ok((await opacity(page, ".results")) < 0.6, "and dimmed");
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
			await shot(page, `outage-${colorScheme}-${width}`);
			giveBack();
			// By itself, or at once by the button.
			if (width === 390) await banner(page).getByRole("button", { name: "Try now" }).click();
			await banner(page).waitFor({ state: "detached" });
			await flameReady(page);
			await page.waitForFunction(() => !document.querySelector(".failed-view"));
			assert.equal(await opacity(page, ".results"), 1);
		}
});

test("a server that is not ready yet says what it waits for, and the page fills by itself", async (t) => {
	const why = "waiting for the lease of shard shard-1, which vm had since 2026-11-29T11:45:39Z: 45 s of 90 s";
	const answer = { status: "error", errorType: "unavailable", error: `not ready: ${why}` };
	const refuse = (route) =>
		route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify(answer) });
	const { page, giveBack } = await openTaken(t, "explore", refuse);
	await banner(page).getByText("The server is not ready.").waitFor();
	await banner(page).getByText(`W${why.slice(1)}.`).waitFor();
	await banner(page).getByText(/Trying again in \d+ s/).waitFor();
	await countComes(page.locator(".notice.error"), 1, "it is said once");
	giveBack();
	await banner(page).waitFor({ state: "detached" });
	await page.locator(".results").first().waitFor();
});

test("without any view yet the page fills when the server is back", async (t) => {
	for (const name of ["explore", "services", "targets", "compare"]) {
		const { page, giveBack } = await openTaken(t, name, (route) => route.abort());
		await banner(page).waitFor();
		giveBack();
		await banner(page).waitFor({ state: "detached" });
		await page
			.locator({ explore: ".results", services: ".fleet [role=row]", targets: ".pool", compare: ".results" }[name])
			.first()
			.waitFor();
	}
});

test("a server that ends leaves its targets on the screen", async (t) => {
	const config = `
global: {scrape_interval: 1h}
scrape_configs:
  - job_name: few
    profiling_config: {pprof_config: ${HEAP_ALONE}}
    static_configs: [{targets: ["127.0.0.1:1"]}]
`;
	const server = await startServer({ files: { "e.yml": config } });
	let stopped = false;
	t.after(() => stopped || server.stop());
	let others; // the scripts of the pages that are not open
	const { page } = await openPage(t, `${server.base}targets`, {
		before: (p) => {
			others = p.waitForResponse(/\/graphs\.\w+\.js$/, { timeout: WAIT_MS });
		},
	});
	await page.locator(".pool h2").getByText("few").waitFor();
	await (await others).finished();
	stopped = true;
	await server.stop();
	await banner(page).waitFor();
	await page.locator(".pool h2").getByText("few").waitFor();
	assert.ok((await opacity(page, ".pool")) < 0.6);
	// Also after another page was looked at, with the time that the rows are from.
	await page.getByRole("link", { name: "Alerts", exact: true }).click();
	await page.locator("main h1").getByText("Alerts").waitFor();
	await page.getByRole("link", { name: "Targets", exact: true }).click();
	await page.locator(".pool h2").getByText("few").waitFor();
	await page.getByText(/^as of \d\d:\d\d:\d\d/).waitFor();
	await page.getByText("1 process, 1 profile, 0 dropped").waitFor();
});

test("a wrong query says what is wrong above the last good view", async (t) => {
	const { page, problems } = await open(t, explore({ query: QUERY, ...(await fixedWindow(120)), view: "flame" }));
	await flameReady(page);
	await page.locator(".chart canvas").waitFor();
	const before = (await drawn(page)).slice(0, 5);
	await run(page, "mrge(cpu)");
	await page.locator(".notice.error").waitFor();
	assert.match(await page.locator(".notice.error").innerText(), /unknown function "mrge"/);
	assert.deepEqual((await drawn(page)).slice(0, 5), before);
	await countComes(page.locator(".chart canvas"), 1, "the chart stays too");
	assert.ok((await opacity(page, ".results")) < 0.6);
	await shot(page, "wrong-query");
	// The error ends with its question, not with the answer to the next one.
	let answer;
	const asked = new Promise((done) => {
		void page.route("**/api/v1/query?*", async (route) => {
			done();
			await new Promise((go) => (answer = go));
			await route.continue();
		});
	});
	await run(page, QUERY);
	await asked;
	await page.locator(".notice.error").waitFor({ state: "detached" });
	answer();
	await page.unrouteAll({ behavior: "ignoreErrors" });
	await flameReady(page);
	assert.equal(await opacity(page, ".results"), 1);
	// The browser itself says that a request failed.
	assert.deepEqual(problems.filter((p) => !/status of 400/.test(p)), []);
});

test("the server's own failure is asked again by itself; a query that is wrong is not", async (t) => {
	let failing = true;
	let question; // the first one; that it fails is said once
	const { page } = await open(t, explore({ query: QUERY, ...(await fixedWindow(120)), view: "flame" }), {
		before: (p) =>
			p.route("**/api/v1/query?*", (route) => {
				question ??= route.request().url();
				return failing && route.request().url() === question
					? route.fulfill({
							status: 500,
							json: { status: "error", errorType: "internal", error: "out of luck" },
						})
					: route.fallback();
			}),
	});
	await page.getByText(/out of luck/).waitFor();
	await page.locator(".notice.error").getByText(/Trying again in \d+ s/).waitFor();
	failing = false;
	await flameReady(page);
	await countComes(page.locator(".notice.error"), 0);
	await run(page, "mrge(cpu)");
	await page.locator(".notice.error").waitFor();
	assert.doesNotMatch(await page.locator(".notice.error").innerText(), /Trying/);
});
