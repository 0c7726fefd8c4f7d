// Levels on Explore: growth and limit, the value of the window, goroutines by what they wait for. The test
// pushes an hour of profiles into a server that it starts.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
	addressHas,
	api,
	closeBrowser,
	cutOff,
	explore,
	flameReady,
	openPage,
	shot,
	startServer,
} from "./page.mjs";
import { levelProfile, push } from "./pprof.mjs";

const MIB = 2 ** 20;
const STEPS = 60;
/** The end of the pushed hour, in seconds. */
const END = Math.floor(Date.now() / 1000) - 60;
const at = (i) => END - 60 * (STEPS - 1 - i);
const WINDOW = { from: String(END - 3600), to: String(END) };
const LEAK = 4 * MIB; // a minute

let server;
before(async () => {
	server = await startServer({ files: { "e.yml": "{}\n" }, flags: ["--web.enable-ingest"] });
	const stacks = [
		["main.main", "main.(*cache).fill", "bytes.growSlice"],
		["main.main", "main.load"],
	];
	const waits = [
		["main.(*pool).worker", "main.(*pool).next", "runtime.chanrecv1", "runtime.gopark"],
		["net/http.(*conn).serve", "main.(*shop).search", "runtime.selectgo", "runtime.gopark"],
	];
	for (let i = 0; i < STEPS; i++) {
		await pushStacks("memory", ["inuse_space", "bytes"], i, stacks, [
			100 * MIB + i * LEAK,
			// Once as much as never else: the maximum is not at the end.
			i === 30 ? 900 * MIB : 50 * MIB,
		]);
		await pushStacks("goroutine", ["goroutine", "count"], i, waits, [900 + i, 40]);
	}
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

function pushStacks(name, [type, unit], i, stacks, values) {
	const names = [...new Set(stacks.flat())];
	const body = levelProfile(type, unit, {
		functions: names.map((n) => ({ name: n })),
		samples: stacks.map((s, k) => ({ stack: s.map((n) => names.indexOf(n)), value: values[k] })),
		time: 1000 * at(i),
	});
	return push(server.base, { name, job: "leaky", instance: "a:1" }, body);
}

const open = (t, args, options) => openPage(t, server.base + explore({ ...WINDOW, ...args }), options);
const panel = (page) => page.getByRole("region", { name: "Level" });
const total = (page) => page.evaluate(() => window.__epi.drawn().find((n) => n.level === 0)?.total);

test("a leak: its pace, when it reaches the limit, and who holds it", async (t) => {
	const { page, problems } = await open(t, { query: 'heap{job="leaky"}' });
	await panel(page).getByText(/Growing 2[34]\d MiB\/h/).waitFor();
	await page.waitForFunction(() => window.__epi.level());
	const { growth, points } = await page.evaluate(() => window.__epi.level());
	assert.ok(Math.abs(growth.slope * 60 - LEAK) < 0.05 * LEAK, `${growth.slope * 60} a minute`);
	assert.ok(points.length > 50);
	await panel(page).getByLabel("Limit").fill("1GiB");
	await page.keyboard.press("Enter");
	await addressHas(page, { limit: "1GiB" });
	await panel(page).getByText(/Reaches 1 GiB in 2\.\d+ h, at \d{4}-/).waitFor();
	const first = panel(page).locator("tbody tr").first();
	assert.match((await first.innerText()).replace(/\s+/g, " "), /^main\.\(\*cache\)\.fill 2\d\d MiB /);
	await panel(page).getByLabel("Limit").fill("12 apples");
	await page.keyboard.press("Enter");
	await panel(page).getByText("not an amount").waitFor();
	assert.deepEqual(problems, []);
	await shot(page, "level-heap");
});

test("mean, end or maximum of the window, in the address", async (t) => {
	const { page, problems } = await open(t, { query: 'heap{job="leaky"}' });
	const want = async (query, args) =>
		(await api(server.base, "query", { query, ...args })).result[0].total;
	await flameReady(page);
	const mean = await want('merge(heap{job="leaky"})', { start: WINDOW.from, end: WINDOW.to });
	assert.equal(await total(page), mean);
	const end = 100 * MIB + (STEPS - 1) * LEAK + 50 * MIB;
	const most = 100 * MIB + 30 * LEAK + 900 * MIB;
	for (const [name, level, value] of [
		["End", "end", end],
		["Maximum", "max", most],
		["Mean", undefined, mean],
	]) {
		await panel(page).getByRole("button", { name, exact: true }).click();
		await addressHas(page, { level });
		await page.waitForFunction(
			(v) => window.__epi.drawn().find((n) => n.level === 0)?.total === v,
			value,
		);
	}
	await panel(page).getByRole("button", { name: "End", exact: true }).click();
	await page.reload();
	await flameReady(page);
	assert.equal(await total(page), end, "the address says it");
	await page.goto(server.base + explore({ ...WINDOW, query: 'merge(max_over_time(heap{job="leaky"}[1h]))' }));
	await panel(page).getByText("The query sets the value").waitFor();
	assert.deepEqual(problems, []);
});

test("goroutines: by the program's function and the wait, not by runtime.gopark", async (t) => {
	for (const [colorScheme, width] of [
		["light", 1440],
		["dark", 390],
	]) {
		const { page, problems } = await open(
			t,
			{ query: 'goroutine{job="leaky"}', level: "end" },
			{ viewport: { width, height: 900 }, colorScheme },
		);
		await panel(page).locator("tbody tr").first().waitFor();
		await page.waitForFunction(() => window.__epi.level());
		const { rows } = await page.evaluate(() => window.__epi.level());
		assert.deepEqual(
			rows.map((r) => [r.name, r.waits, r.started, r.value]),
			[
				["main.(*pool).next", "receives from a channel", "main.(*pool).worker", 900 + STEPS - 1],
				["main.(*shop).search", "select", "net/http.(*conn).serve", 40],
			],
		);
		await panel(page).getByText(/Growing \d+\/h/).waitFor();
		assert.deepEqual(await page.evaluate(cutOff), []);
		await shot(page, `level-goroutines-${width}`);
		await panel(page).getByRole("button", { name: "next" }).click();
		await page.waitForURL(/[?&]fn=main/);
		assert.deepEqual(problems, []);
	}
});

test("what grew: the end of the window against its beginning", async (t) => {
	const { page, problems } = await open(t, { query: 'heap{job="leaky"}' });
	await panel(page).getByRole("link", { name: "What grew?" }).click();
	await page.waitForURL(/\/compare\?/);
	const verdict = page.getByRole("region", { name: "Verdict" });
	await verdict.getByText("fill").first().waitFor();
	const text = (await verdict.getByRole("status").innerText()).replace(/\s+/g, " ");
	assert.match(
		text,
		/^main\.\(\*cache\)\.fill 1\d\d MiB → 3\d\d MiB \([\d.]+×, \+1\d\d MiB\), called only by main\.main$/,
	);
	assert.deepEqual(problems, []);
	await shot(page, "level-grew");
});
