// The page Senders. The server of this test is real; the answers about senders are made (senders_answer.mjs), so that
// each state occurs.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { addressHas, closeBrowser, comes, countComes, cutOff, openPage, params, shot, startServer } from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";
import { manySenders, sendersAt } from "./senders_answer.mjs";

const NOW = Math.floor(Date.now() / 1000);
let server, closed;
before(async () => {
	[server, closed] = await Promise.all(
		[["--web.enable-ingest"], []].map((flags) =>
			startServer({ files: { "e.yml": "scrape_configs: []\n" }, flags }),
		),
	);
	const profile = { functions: [{ name: "main.main" }], samples: [{ stack: [0], value: 1e9 }], time: 1000 * (NOW - 60) };
	await push(server.base, { name: "process_cpu", job: "shop" }, cpuProfile(profile));
});
after(async () => {
	await closeBrowser();
	await Promise.all([server?.stop(), closed?.stop()]);
});

/** Opens a page; `answer()` gives the data of each answer. */
const open = (t, { base = server.base, path = "senders", answer = () => sendersAt(NOW), more = {}, ...options } = {}) =>
	openPage(t, base + path, {
		...options,
		before: (p) =>
			p.route("**/api/v1/senders", (route) =>
				route.fulfill({ json: { status: "success", data: answer(), ...more } }),
			),
	});

/** In the page: each sender's row as text, and what is said below it. */
function readRows() {
	const text = (e) => e.innerText.replace(/\s+/g, " ").trim();
	const rows = [];
	for (const tr of document.querySelectorAll(".targets tbody tr"))
		if (tr.classList.contains("error-row")) rows[rows.length - 1].notes.push(text(tr));
		else
			rows.push({
				name: text(tr.querySelector(".sender-name")),
				state: text(tr.querySelector(".badge")).toLowerCase(),
				cells: [...tr.children].map(text),
				notes: [],
			});
	return rows;
}
const read = (page) => page.evaluate(readRows);
const names = async (page) => (await read(page)).map((r) => r.name);
const row = async (page, name) => (await read(page)).find((r) => r.name === name);
const arrived = (page) => page.locator(".targets tbody tr").first().waitFor();

test("from Targets and back: each state, the worst first, with cause and cure", async (t) => {
	const { page, problems } = await open(t, { path: "targets" });
	await page.getByRole("link", { name: "Senders" }).click();
	await page.waitForURL(/senders$/);
	await arrived(page);
	assert.equal(await page.title(), "Senders · Epimetheus");
	assert.equal(await page.locator("nav [aria-current]").innerText(), "Targets");
	const rows = await read(page);
	assert.deepEqual(
		rows.map((r) => [r.state, r.name]),
		[
			["refused", "proxy 10.9.0.4"],
			["refused", "job not known 10.9.0.1"],
			["refused", "job not known 10.9.0.2"],
			["refused", "job not known 10.9.0.3"],
			["in part", "billing 10.0.0.30"],
			["in part", "search 10.0.0.31"],
			["stopped", "mail 10.0.0.40"],
			["stopped", "queue 10.0.0.41"],
			["sending", "cart 10.0.0.4"],
			["sending", "fleet/profiler 2001:db8::7"],
			["sending", "shop 10.0.0.2"],
			["sending", "shop 10.0.0.10"],
			["idle", "bench 10.1.0.9"],
		],
	);
	const of = (name) => rows.find((r) => r.name.endsWith(name));
	for (const [name, ...want] of [
		["10.9.0.4", /^A web page was sent as a profile: check the address .*\. not a pprof profile: it begins with .* ago · 60 profiles refused: 60 invalid input$/],
		["10.0.0.30", /^Profiles too late: set the sender's clock, .* refused: 37 invalid input, 2 exists already$/],
		["10.0.0.40", /^Silent for 2\d min; before, one request every 15 s: check that the program/],
		["10.0.0.41", /^Silent for 2 d;/, /^Last error: commit: I\/O error\. Disk failure on this server: .* 6 d ago · 1 profile refused: 1 i\/o error$/],
		["10.0.0.4", /^Last error: disk is full: nothing can be written\. Disk full on this server: .* 2 h ago · 4 profiles refused: 4 unavailable$/],
		["10.0.0.2"],
	]) {
		const { notes } = of(name);
		assert.equal(notes.length, want.length, name);
		notes.forEach((note, i) => assert.match(note, want[i]));
	}
	const [who, state, types, profiles, bytes, stored, interval, ...rest] = of("10.0.0.2").cells;
	assert.equal(who, "shop 10.0.0.2 path /ingest client pyroscope-go/1.2.0 user agent".replaceAll(/(path|client|user) /g, "$1"));
	assert.deepEqual([state.toLowerCase(), types, bytes, interval, rest], ["sending", "process_cpu memory", "120 MiB", "15 s", []]);
	assert.match(profiles, /^4\.8 k 8 \/ min$/);
	assert.match(stored, /^\d+(\.\d)? s ago$/);
	assert.deepEqual([of("10.9.0.1").cells[5], of("10.9.0.1").cells[6], of("10.1.0.9").cells[6]], ["never", "–", "–"]);
	await countComes(page.locator(".targets td.past"), 2, "errors of the past are no alarm");
	await shot(page, "senders-light");
	await page.locator("main").getByRole("link", { name: "Targets" }).click();
	await page.waitForURL(/targets$/);
	assert.deepEqual(problems, []);
});

test("a job leads to its data, where there is any", async (t) => {
	const { page, problems } = await open(t);
	await arrived(page);
	const link = page.locator(".sender-name", { hasText: "10.0.0.2" }).getByRole("link", { name: "shop" });
	await link.waitFor();
	await countComes(page.locator(".sender-name a", { hasText: "proxy" }), 0, "nothing of it was stored");
	await link.click();
	await page.waitForURL(/explore/);
	assert.equal(params(page).query, 'cpu{job="shop"}');
	await page.goBack();
	const stopped = page.locator(".sender-name", { hasText: "10.0.0.41" }).getByRole("link");
	await stopped.waitFor();
	const { searchParams } = new URL(await stopped.evaluate((a) => a.href));
	assert.deepEqual(Object.fromEntries(searchParams), {
		query: 'cpu{job="queue"}',
		from: String(NOW - 180000 - 3600),
		to: String(NOW - 180000 + 1),
	});
	assert.deepEqual(problems, []);
});

test("states and words are in the address", async (t) => {
	const { page, problems } = await open(t);
	await arrived(page);
	const states = page.getByRole("group", { name: "State" }).getByRole("button");
	assert.deepEqual(await states.allInnerTexts(), ["All", "Trouble 6", "Stopped 2", "Sending 4", "Idle 1"]);
	await page.getByRole("button", { name: "Stopped" }).click();
	await addressHas(page, { state: "stopped" });
	await comes(() => names(page), ["mail 10.0.0.40", "queue 10.0.0.41"]);
	await page.getByLabel("Filter senders").fill("user=agent");
	await addressHas(page, { filter: "user=agent" });
	await comes(() => names(page), ["queue 10.0.0.41"]);
	await page.reload();
	await arrived(page);
	await comes(() => names(page), ["queue 10.0.0.41"]);
	await page.getByLabel("Filter senders").fill("nobody is called so");
	await page.getByText("No matching sender").waitFor();
	assert.deepEqual(problems, []);
});

test("a query node: the shard of each sender, and a shard that does not answer", async (t) => {
	const { senders, ...rest } = sendersAt(NOW);
	const data = { ...rest, forgotten: 3, senders: senders.map((s, i) => (i ? { ...s, shard: i % 2 ? "a" : "b" } : s)) };
	const { page, problems } = await open(t, { answer: () => data, more: { warnings: ["shard c: its senders cannot be read"] } });
	await arrived(page);
	assert.equal(await page.locator(".targets thead th").last().innerText(), "Shard");
	assert.equal((await row(page, "shop 10.0.0.2")).cells[7], "a");
	assert.equal((await row(page, "shop 10.0.0.10")).cells[7], "–");
	assert.equal(await page.locator(".notice.warning").innerText(), "shard c: its senders cannot be read");
	await page.getByText("3 senders dropped from the list: the server keeps the last 10,000.").waitFor();
	assert.deepEqual(problems, []);
});

test("the page asks again by itself", async (t) => {
	let data = sendersAt(NOW);
	const { page, problems } = await open(t, { answer: () => data });
	await arrived(page);
	const back = (s) => (s.job === "mail" ? { ...s, state: "sending", lastSeen: s.firstSeen } : s);
	data = { ...data, senders: data.senders.map(back) };
	await comes(async () => (await row(page, "mail 10.0.0.40")).state, "sending");
	assert.deepEqual((await row(page, "mail 10.0.0.40")).notes, []);
	assert.deepEqual(problems, []);
});

test("nothing was pushed: since when, and what to do", async (t) => {
	const none = () => ({ ...sendersAt(NOW), since: "2026-05-01T10:00:00Z", senders: [] });
	for (const [base, want] of [
		[server.base, /SDKs and collectors send to http:\/\/127\.0\.0\.1:\d+, scripts to its \/api\/v1\/ingest\?name=process_cpu&job=NAME\.$/],
		[closed.base, /Pushes are off: start the server with --web\.enable-ingest\.$/],
	]) {
		const { page, problems } = await open(t, { base, answer: none, timezoneId: "UTC" });
		const empty = page.locator(".empty");
		await empty.getByText("No pushes since 2026-05-01 10:00:00 UTC.").waitFor();
		await comes(async () => want.test(await empty.innerText()) || (await empty.innerText()), true);
		assert.deepEqual(problems, []);
	}
});

test("10,000 senders: a page of them is drawn, all are searched", async (t) => {
	const { page, problems } = await open(t, { answer: () => manySenders(NOW, 10_000) });
	await arrived(page);
	const drawn = page.locator(".targets tbody tr:not(.error-row)");
	await countComes(drawn, 50);
	await page.getByText("50 of 10,000 senders").waitFor();
	await page.getByRole("button", { name: "Show 50 more" }).click();
	await countComes(drawn, 100);
	await page.getByLabel("Filter senders").fill("10.0.39.15 "); // the last one
	await countComes(drawn, 1);
	assert.deepEqual(problems, []);
});

test("by keyboard, dark and on a phone", async (t) => {
	const { page, problems } = await open(t, {
		path: "targets",
		colorScheme: "dark",
		viewport: { width: 390, height: 844 },
	});
	await page.locator("main .panel").first().waitFor();
	await page.keyboard.press("g");
	await page.keyboard.press("n");
	await page.waitForURL(/senders$/);
	await arrived(page);
	await page.keyboard.press("/");
	await page.keyboard.type("shop role");
	await comes(() => names(page), ["job not known 10.9.0.2"]);
	await page.getByLabel("Filter senders").fill("");
	await comes(async () => (await names(page)).length, 13);
	assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
	assert.deepEqual(await page.evaluate(cutOff), []);
	await shot(page, "senders-phone-dark");
	await page.setViewportSize({ width: 1480, height: 940 });
	await shot(page, "senders-dark");
	assert.deepEqual(problems, []);
});
