// What is wrong with the server: a notice on each page of Status, which comes and goes by itself.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { api, closeBrowser, countComes, openPage, shot, startServer, WAIT_MS } from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

after(closeBrowser);

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
const HOLD_S = 301;
const PAGES = ["status", "tsdb-status", "symbols", "config", "flags"];
const profile = cpuProfile({ functions: [{ name: "main.main" }], samples: [{ stack: [0], value: 1e9 }] });

/** A server whose system's clock steps, and for which time passes, as a file says. */
async function steppedServer(t) {
	const dir = mkdtempSync(join(tmpdir(), "epi-clock-"));
	t.after(() => rmSync(dir, { recursive: true, force: true }));
	const file = join(dir, "clock");
	const moved = { stepped: 0, passed: 0 };
	const write = (flag) => {
		const bytes = Buffer.alloc(16);
		bytes.writeBigInt64LE(BigInt(moved.stepped) * 10n ** 9n, 0);
		bytes.writeBigInt64LE(BigInt(moved.passed) * 10n ** 9n, 8);
		writeFileSync(file, bytes, { flag });
	};
	write("w");
	const server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-ingest"],
		program: "tests/e2e/stepped_epimetheus",
		env: { EPI_CLOCK_FILE: file },
	});
	t.after(() => server.stop());
	const move = (key) => (seconds) => {
		moved[key] += seconds;
		write("r+");
	};
	return {
		base: server.base,
		step: move("stepped"),
		pass: move("passed"),
		push: () => {
			const time = (Date.now() / 1000 + moved.stepped + moved.passed).toFixed(3);
			return push(server.base, { name: "pushed", job: "p", time }, profile);
		},
		/** The notifications of the API, once there is one that `pattern` matches. */
		notified: async (pattern) => {
			for (const end = Date.now() + WAIT_MS; ; await new Promise((done) => setTimeout(done, 100))) {
				const all = await api(server.base, "notifications");
				if (all.some((n) => pattern.test(n.text))) return all;
				assert.ok(Date.now() < end, `no notification is ${pattern}: ${JSON.stringify(all)}`);
			}
		},
	};
}

const region = (page) => page.getByRole("status", { name: "Notifications" });
const notices = (page) => region(page).locator(".notice");

test("a step of the clock, and retention that waits: notices come and go on the open page", async (t) => {
	const server = await steppedServer(t);
	await server.push();
	const { page, problems } = await openPage(t, `${server.base}status`);
	await page.getByRole("rowheader", { name: "Start time" }).waitFor();
	assert.deepEqual(await api(server.base, "notifications"), []);
	await countComes(notices(page), 0);
	assert.equal(await region(page).innerText(), "");

	server.pass(6 * HOUR_S);
	await server.push();
	server.step(20 * DAY_S);
	// The machine's clock may drift meanwhile.
	await server.notified(/^The system's clock is (20d|19d23h59m)\S* ahead of this server's own time/);
	await notices(page).getByText("ahead of this server's own time").waitFor();
	await countComes(notices(page), 1);
	assert.match(await notices(page).innerText(), /ahead of this server's own time\. Since .*\d\d:\d\d:\d\d/);

	// It is taken over; then all of the data is overdue.
	server.pass(HOLD_S);
	await notices(page).waitFor({ state: "detached" });
	await server.push();
	server.pass(61);
	const [held] = await server.notified(/became too old at once/);
	await page.getByText(held.text, { exact: false }).waitFor();
	await countComes(notices(page), 1);

	for (const path of PAGES) {
		await page.goto(server.base + path);
		await notices(page).getByText("became too old at once").waitFor();
		assert.ok((await notices(page).innerText()).startsWith(held.text), path);
		await countComes(notices(page).locator(`[title="${held.date}"]`), 1, path);
	}
	assert.deepEqual(problems, []);

	for (const colorScheme of ["light", "dark"])
		for (const width of [1440, 390]) {
			const view = await openPage(t, `${server.base}status`, { colorScheme, viewport: { width, height: 900 } });
			await notices(view.page).waitFor();
			assert.equal(await view.page.evaluate(() => document.documentElement.scrollWidth), width);
			await shot(view.page, `notifications-${colorScheme}-${width}`);
		}
});
