// Cores: one number for one selection and window, on Services, in Explore and in Compare. What is pushed
// here is known, so each number follows from the profiles by hand.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { closeBrowser, flameReady, openPage, shot, startServer } from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

after(closeBrowser);

const STEP_S = 15; // of the chart over the windows below, with no target on the server
/** The end of all windows, on a step of all charts. */
const END_S = Math.floor(Date.now() / 1000 / 240) * 240 - 240;
const BATCH_S = 900;
const MINUTES = { "15m": 900, "1h": 3600, "6h": 21600 };
const FUNCTIONS = [{ name: "main.main" }, { name: "main.work" }];

let server;

/** A profile that ends at `end` and took `seconds`, of so many seconds of CPU time; one of each `interval`. */
async function send(job, pod, end, { seconds, cpu, interval = seconds }) {
	const body = cpuProfile({
		functions: FUNCTIONS,
		samples: [{ stack: [0, 1], value: cpu * 1e9 }],
		...{ time: (end - seconds) * 1000, seconds },
	});
	await push(server.base, { name: "process_cpu", job, pod, time: end, interval: `${interval}s` }, body);
}

before(async () => {
	server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-ingest"],
	});
	// A job of 15 min sends one profile, in which it used 29 s.
	await send("batch", "a", END_S, { seconds: BATCH_S, cpu: 29 });
	// 9 of 10 s are profiled; half a core, and twice as much in the last minute. It begins after 10 min of 15.
	for (let ago = 0; ago < 300; ago += 10)
		await send("web", "a", END_S - ago, { seconds: 9, cpu: ago < 60 ? 9 : 4.5, interval: 10 });
	// One profile of 10 s, 5 min before the end.
	await send("lone", "a", END_S - 300, { seconds: 10, cpu: 8 });
});
after(() => server.stop());

/** By hand: CPU time, corrected, over the time since the first profile. */
const WEB = (6 * 10 + 24 * 5) / 300;
const cores = (range) => ({
	batch: 29 / BATCH_S,
	web: WEB,
	lone: 8 / 310,
	all: (29 + 180 + 8) / Math.min(MINUTES[range], BATCH_S),
});
const shown = (v) => String(Number(v.toPrecision(3)));
const windowOf = (range) => ({ from: String(END_S - MINUTES[range]), to: String(END_S) });
const at = (path, args) => `${server.base}${path}?${new URLSearchParams(args)}`;
const cpuOf = (job) => (job === "all" ? "cpu" : `cpu{job="${job}"}`);

const rowsReady = async (page) => {
	await page.locator(".fleet .vtable-body > [role=row]").first().waitFor();
	await page.locator(".fleet:not(.busy)").waitFor();
};

test("Services: one profile of 29 s in 15 min is 0.032 cores, and all together are their sum over the window", async (t) => {
	for (const range of Object.keys(MINUTES)) {
		const { page, problems } = await openPage(t, at("services", { by: "job", ...windowOf(range) }));
		await rowsReady(page);
		await page.waitForFunction(() => window.__epi.table()?.length === 3);
		const want = cores(range);
		for (const job of ["batch", "web", "lone"]) {
			const link = page.getByRole("link", { name: new RegExp(`^Cores of ${job}: `) });
			assert.equal(await link.innerText(), shown(want[job]), `${job}, ${range}`);
		}
		const total = page.locator(".fleet-summary > div", { has: page.getByText("cores", { exact: true }) });
		assert.equal(await total.locator("dd").innerText(), shown(want.all), range);
		// None of them sends samples beside CPU time.
		const rows = await page.evaluate(() => window.__epi.table());
		assert.deepEqual(Object.fromEntries(rows.map((r) => [r.service, r.profiles])), { batch: 1, web: 30, lone: 1 });
		assert.deepEqual(problems, []);
		if (range === "15m") await shot(page, "services-cores");
	}
});

test("Explore: the same number above the chart, in the legend, and as the mean of the line", async (t) => {
	for (const range of Object.keys(MINUTES))
		for (const job of ["batch", "web", "lone", "all"]) {
			const { page, problems } = await openPage(t, at("explore", { query: cpuOf(job), ...windowOf(range) }));
			await flameReady(page);
			assert.equal(await page.locator(".chart-panel .mean").innerText(), shown(cores(range)[job]), `${job}, ${range}`);
			assert.deepEqual(problems, []);
			await page.context().close();
		}
	const query = "merge by (job) (cpu)";
	const { page } = await openPage(t, at("explore", { query, el: "all", ...windowOf("15m") }));
	await flameReady(page);
	const legend = page.locator(".chart-panel .legend li");
	for (const job of ["batch", "web", "lone"])
		assert.equal(
			await legend.filter({ hasText: job }).locator(".mean").innerText(),
			`${shown(cores("15m")[job])} cores`,
		);
	const chart = await page.evaluate(() => window.__epi.chart());
	assert.equal(chart.step, STEP_S);
	for (const [job, seconds] of [["web", 300], ["lone", 310]]) {
		const line = chart.columns[chart.labels.indexOf(job)];
		// A point is the cost of the step before it.
		const sum = line.reduce((s, v, i) => s + (chart.times[i] > END_S - 900 ? (v ?? 0) : 0), 0);
		assert.equal(shown((sum * STEP_S) / seconds), shown(cores("15m")[job]), `the line of ${job}`);
	}
});

test("Compare: the same numbers on both sides", async (t) => {
	for (const [next, base] of [["batch", "web"], ["all", "lone"]]) {
		const { page, problems } = await openPage(
			t,
			at("compare", { new: cpuOf(next), base: cpuOf(base), ...windowOf("15m"), shift: "0" }),
		);
		const totals = page.getByRole("region", { name: "Totals" });
		const want = cores("15m");
		for (const [side, job] of [["new", next], ["base", base]])
			assert.equal(
				(await totals.locator(`.${side} .mean`).innerText()).trim(),
				`${shown(want[job])} cores`,
				`${side}: ${job}`,
			);
		assert.deepEqual(problems, []);
	}
});
