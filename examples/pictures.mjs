// Takes the pictures of the book from a server that `GOFLAGS=-trimpath make run` started ten minutes ago (so no path of this
// machine is in them): node examples/pictures.mjs [NAME...]
//
//   EPI_URL       the server, http://127.0.0.1:7272/ unless given
//   EPI_NODE      has playwright-core installed, build/node-tests unless given (make test-ui installs it)
//   EPI_PICTURES  where they go, web/book/pictures unless given
//   EPI_CHROMIUM  the browser, /usr/bin/chromium unless given
//   names         of the pictures to take, all of them unless given
//
// cwebp (Debian's package webp) makes WebP of them: of quality 75 or of fewer colours, whichever is smaller. A picture above
// 40 kB is an error: show less in it.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const URL_BASE = (process.env.EPI_URL ?? "http://127.0.0.1:7272").replace(/\/*$/, "/");
const PICTURES = process.env.EPI_PICTURES ?? "web/book/pictures";
const SIZE_MAX = 40000;
const WAIT_MS = 300000; // of a busy machine
const LOOK_MS = 700;
const QUIET_LOOKS = 3; // what follows from one answer is asked after it
const CODINGS = [["-q", "75", "-m", "6"], ["-near_lossless", "0", "-z", "9"]];
const { chromium } = createRequire(join(resolve(process.env.EPI_NODE ?? "build/node-tests"), "/"))("playwright-core");

const explore = (args) => `explore?${new URLSearchParams({ range: "10m", ...args })}`;

/** name: the view's address; `ready` is there when all is drawn; `then` brings the page into the picture's state. */
const VIEWS = {
	services: { path: "services" },
	explore: { path: explore({ query: 'merge by (version) (cpu{job="demo"})', view: "flame" }) },
	flame: { path: explore({ query: 'merge(cpu{job="demo"})', search: "encoding/json" }), then: showResult },
	sandwich: { path: explore({ query: 'merge(cpu{job="demo"})', fn: "main.scoreItems" }), then: showResult },
	heatmap: { path: explore({ query: 'cpu{job="demo"}', chart: "heatmap", view: "table" }), ready: ".heat canvas" },
	source: { path: explore({ query: 'merge(cpu{job="demo"})', src: "main.scoreItems" }), then: showSource },
	levels: { path: explore({ query: 'merge(goroutine{job="demo"})', range: "30m" }) },
	compare: {
		path: `compare?${new URLSearchParams({
			new: 'merge(cpu{job="demo",version="v2"})',
			base: 'merge(cpu{job="demo",version="v1"})',
			range: "10m",
			shift: "0",
			view: "table",
		})}`,
	},
	alerts: { path: "alerts", then: showAlert },
	targets: { path: "targets?opened=demo" },
};

/** Scrolls the flame graph, the table or the source to the top of the window. */
async function showResult(page) {
	await page.evaluate(() => {
		const at = document.querySelector("main canvas, main table, main .source");
		at?.closest("section")?.scrollIntoView({ block: "start" });
	});
}

/** Gives the page the demo's code. */
async function showSource(page) {
	await page.locator('input[aria-label="Source files"]').setInputFiles("examples/demo/work.go");
	await page.waitForTimeout(LOOK_MS);
	await showResult(page);
}

/** Opens the flame graph of the alert that fires. */
async function showAlert(page) {
	const graph = page.getByRole("button", { name: "Flame graph" }).first();
	await graph.click();
	await page.locator(".measured").getByRole("button", { name: "Flame", exact: true }).click();
	await page.locator(".measured canvas").first().waitFor();
	await settle(page);
	await graph.evaluate((button) => button.closest("tr, [role=row], li")?.scrollIntoView({ block: "start" }));
}

/** Answers are on their way: something spins, or is shown dimmed or as being loaded. */
async function isLoading(page) {
	await page.waitForLoadState("networkidle");
	return page.evaluate(() => {
		const main = document.querySelector("main");
		return !main || main.querySelector(".busy, .spin, [aria-busy=true]") !== null || /Loading…/.test(main.innerText);
	});
}

/** Waits until nothing is loaded any more. */
async function settle(page) {
	for (let quiet = 0; quiet < QUIET_LOOKS; quiet = (await isLoading(page)) ? 0 : quiet + 1)
		await page.waitForTimeout(LOOK_MS);
}

async function takePicture(browser, name, { path, ready = "main", then }, scratch) {
	const context = await browser.newContext({ viewport: { width: 1200, height: 750 }, colorScheme: "light" });
	const page = await context.newPage();
	page.setDefaultTimeout(WAIT_MS);
	await page.goto(URL_BASE + path);
	await page.locator(ready).first().waitFor();
	await settle(page);
	await then?.(page);
	await page.waitForTimeout(LOOK_MS);
	const png = join(scratch, `${name}.png`);
	const webp = join(PICTURES, `${name}.webp`);
	await page.screenshot({ path: png });
	await context.close();
	const coded = CODINGS.map((options, i) => {
		const file = join(scratch, `${name}-${i}.webp`);
		execFileSync("cwebp", ["-quiet", ...options, png, "-o", file]);
		return { file, size: statSync(file).size };
	});
	const { file, size } = coded.reduce((a, b) => (b.size < a.size ? b : a));
	copyFileSync(file, webp);
	console.log(`${webp}: ${size} bytes`);
	return size <= SIZE_MAX;
}

const wanted = process.argv.slice(2);
for (const name of wanted)
	if (!VIEWS[name]) throw new Error(`no picture is called ${name}; there are ${Object.keys(VIEWS).join(", ")}`);
const scratch = mkdtempSync(join(tmpdir(), "epi-pictures-"));
mkdirSync(PICTURES, { recursive: true });
const browser = await chromium.launch({
	executablePath: process.env.EPI_CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox", "--headless", "--disable-gpu"],
});
let small = true;
for (const [name, view] of Object.entries(VIEWS))
	if (!wanted.length || wanted.includes(name)) small = (await takePicture(browser, name, view, scratch)) && small;
await browser.close();
rmSync(scratch, { recursive: true });
if (!small) throw new Error(`a picture is larger than ${SIZE_MAX} bytes`);
