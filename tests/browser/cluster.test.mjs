// The page Cluster. The server of this test has no bucket; answers about one are recorded (cluster_answer.mjs),
// so that each state occurs.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { addressHas, api, closeBrowser, comes, countComes, cutOff, openPage, shot, startServer } from "./page.mjs";
import { QUERY_NODE, SHARD } from "./cluster_answer.mjs";

let server;
before(async () => {
	server = await startServer({ files: { "e.yml": "scrape_configs: []\n" } });
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

const ASKED = "**/api/v1/status/cluster";
/** Opens a page; `answer()` gives the data of each answer, `reply` answers itself. */
const open = (t, { path = "cluster", answer = () => QUERY_NODE, reply, ...options } = {}) =>
	openPage(t, server.base + path, {
		...options,
		before: (p) =>
			p.route(ASKED, (route) =>
				reply ? reply(route) : route.fulfill({ json: { status: "success", data: answer() } }),
			),
	});

const tabs = (page) => page.getByRole("navigation", { name: "Status pages" });
const rows = (page) => page.locator(".cluster-shards .vtable-body > [role=row]");
const shown = (page) => page.evaluate(() => window.__epi.table("shards").map((s) => s.name));
const plain = async (locator) => (await locator.innerText()).replace(/\s+/g, " ").trim();

test("without a bucket there is no tab, and the page says why it is empty", async (t) => {
	assert.deepEqual(await api(server.base, "status/cluster"), { mode: "server" });
	const { page, problems } = await openPage(t, `${server.base}config`);
	const link = (name) => tabs(page).getByRole("link", { name });
	await page.locator(".yaml").waitFor();
	const answered = page.waitForResponse(/status\/cluster$/);
	await link("TSDB").click();
	await (await answered).finished();
	await page.locator(".panel .pairs").first().waitFor();
	await countComes(link("Cluster"), 0);
	await page.goto(`${server.base}cluster`);
	await page.getByText("No bucket configured").waitFor();
	await shot(page, "cluster-none");
	assert.deepEqual(problems, []);
});

test("a query node: shards, the worst first, and troubles in sentences", async (t) => {
	const { page, problems } = await open(t, { path: "status" });
	await tabs(page).getByRole("link", { name: "Cluster" }).click();
	await page.waitForURL(/cluster$/);
	await rows(page).first().waitFor();
	await comes(() => shown(page), ["shard-2", "shard-1", "shard-4", "shard-0", "shard-3", "shard-5"]);
	assert.match(await plain(rows(page).nth(1)), /^shard-1 late 12 min 2026-11-22 .* 1 80 30 1 GiB 0 – epi-1$/);
	assert.match(await plain(rows(page).nth(5)), /^shard-5 this server( –)+$/);
	const troubles = await page.locator(".notice.warning").allInnerTexts();
	assert.equal(troubles.length, 4);
	assert.match(troubles[0], /shard-2 cannot be read.*checksum does not match/);
	assert.match(troubles[2], /shard-1 is late/);
	assert.match(troubles[3], /No space left on device/);
	const totals = await plain(page.getByRole("region", { name: "Totals" }));
	assert.match(totals, /Shards 6 2 late Stored in the bucket 3.05 GiB Cache hit rate 95.00%/);
	assert.match(totals, /Requests since the start 12,408 Cost of requests 0.01 since the start 0.13 a day/);
	assert.match(totals, /Cost of storage 0.08 a month https:\/\/s3.example\/profiles\/production$/);
	assert.match(await plain(page.getByRole("region", { name: "Cache" })), /Pages from disk 2,500/);
	assert.match(await plain(page.getByRole("region", { name: "Requests" })), /get 12,345 0 B 768 MiB/);
	await shot(page, "cluster-light");

	await page.getByRole("columnheader", { name: "Size" }).click();
	await addressHas(page, { sort: "-bytes" });
	await comes(async () => (await shown(page)).slice(0, 2), ["shard-0", "shard-1"]);
	await page.reload();
	await rows(page).first().waitFor();
	await comes(async () => (await shown(page))[0], "shard-0");
	assert.deepEqual(problems, []);
});

test("a shard: its state, what waits, what is stored", async (t) => {
	let state = SHARD;
	const { page, problems } = await open(t, { answer: () => state });
	const own = page.getByRole("region", { name: "Shard shard-0, of this server" });
	await own.waitFor();
	const text = await plain(own);
	assert.match(text, /bucket away/);
	assert.match(text, /In the bucket until 2026-11-22 \S+ UTC 95.2 s ago Waiting 3 MiB 1 block Stored 2 GiB 31 blocks, 2 windows of 147 segments/);
	assert.match(text, /Only in the bucket 3 windows or blocks that are not in the local directory/);
	assert.match(await plain(page.locator(".notice.warning")), /connection refused$/);
	await countComes(page.locator(".cluster-shards"), 0);
	await shot(page, "cluster-shard");
	// The page asks again by itself, and the trouble is gone.
	state = { ...SHARD, shard: { ...SHARD.shard, state: "running", last_error: undefined } };
	await page.locator(".notice.warning").waitFor({ state: "detached" });
	assert.match(await plain(own), /publishing/);
	assert.deepEqual(problems, []);
});

test("no shard yet, and an error that leaves the last answer", async (t) => {
	let fails = false;
	const { page } = await open(t, {
		reply: (route) =>
			fails
				? route.fulfill({ status: 422, json: { status: "error", errorType: "execution", error: "shards: limit" } })
				: route.fulfill({ json: { status: "success", data: { ...QUERY_NODE, shards: [] } } }),
	});
	await page.getByText("No shards in the bucket yet").waitFor();
	fails = true;
	await page.locator(".notice.error", { hasText: "shards: limit" }).waitFor();
	assert.ok(await page.getByText("No shards in the bucket yet").isVisible());
});

test("by keyboard, dark and on a narrow screen", async (t) => {
	let asked = 0;
	const { page, problems } = await open(t, {
		path: "flags",
		answer: () => ({ ...QUERY_NODE, shards: QUERY_NODE.shards.map((s) => ({ ...s, segments: asked })), asked: asked++ }),
		colorScheme: "dark",
		viewport: { width: 400, height: 800 },
	});
	await page.locator(".status-flags th").first().waitFor();
	await page.keyboard.press("g");
	await page.keyboard.press("l");
	await page.waitForURL(/cluster$/);
	await rows(page).first().waitFor();
	await page.locator(".cluster-shards .vtable-scroll").focus();
	const active = async () => (await page.locator(".vtable-body .active").allInnerTexts()).map((row) => row.split("\n")[0]);
	for (const name of ["shard-2", "shard-1"]) {
		await page.keyboard.press("ArrowDown");
		await comes(active, [name]);
	}
	const segments = () => page.evaluate(() => window.__epi.table("shards")[0].segments);
	const was = await segments();
	await page.waitForFunction((n) => window.__epi.table("shards")[0].segments > n, was);
	assert.deepEqual(await active(), ["shard-1"], "a new answer leaves the row");
	const beyond = await page.evaluate(() => document.documentElement.scrollWidth);
	assert.equal(beyond, 400);
	assert.deepEqual(await page.evaluate(cutOff), []);
	const light = await page.evaluate(
		() =>
			[document.body, ...document.querySelectorAll("main, header, .panel")].filter((e) => {
				const m = /rgb\((\d+), (\d+), (\d+)\)/.exec(getComputedStyle(e).backgroundColor);
				return m && Math.max(+m[1], +m[2], +m[3]) > 90;
			}).length,
	);
	assert.equal(light, 0);
	await shot(page, "cluster-narrow-dark");
	assert.deepEqual(problems, []);
});
