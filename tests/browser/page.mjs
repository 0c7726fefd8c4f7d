// The browser tests share this: Chromium and Firefox, pages that report what goes wrong on them, servers,
// and the picture that a page drew.
//
//   EPI_URL       address of a running server, with its route prefix; it scrapes the jobs demo
//                 (version v1 and v2) and epimetheus, and has done so for some intervals
//   EPI_BUILD     has the program, for tests that start a server
//   EPI_CHROMIUM  the browser, /usr/bin/chromium unless given
//   EPI_FIREFOX   the other one, /usr/bin/firefox-esr unless given
//   EPI_PAGE      a built page (OUTDIR/dist of web/ui/build.mjs) to test instead of the servers'
//   EPI_SHOTS     a directory for screenshots, none unless given
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";
import oldPlaywright from "playwright-core-bidi"; // the newest version that drives the Firefox that Debian 12 began with

export { startServer } from "../server.mjs";

export const WAIT_MS = 300000; // only what never comes fails
/** Tests of time: they run where nothing else does, in the long stage. */
export const timed = process.env.EPI_LONG ? test : () => {};
export const FLEET = (process.env.EPI_URL ?? "http://127.0.0.1:7272").replace(/\/*$/, "/");

const LAUNCH = {
	chromium: () =>
		chromium.launch({
			executablePath: process.env.EPI_CHROMIUM ?? "/usr/bin/chromium",
			args: ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"],
		}),
	// A Firefox as Mozilla and Debian ship it is driven by WebDriver BiDi; this version has no public name for that.
	firefox: () =>
		oldPlaywright._bidiFirefox.launch({
			channel: "moz-firefox",
			executablePath: process.env.EPI_FIREFOX ?? "/usr/bin/firefox-esr",
		}),
};

/** Waits until read() gives `want`, and says both where it never does. */
export async function comes(read, want, what) {
	const end = Date.now() + WAIT_MS;
	for (;;) {
		const got = await read();
		if (isDeepStrictEqual(got, want)) return;
		if (Date.now() > end) assert.deepEqual(got, want, what);
		await new Promise((done) => setTimeout(done, 20));
	}
}

/** Waits until there are `n` of a locator. What is drawn a moment later is no failure. */
export const countComes = (locator, n, what) => comes(() => locator.count(), n, what);

/** The started browsers by name. */
const browsers = new Map();

/** Opens a page; `problems` collects console errors, exceptions and outside requests. */
export async function openPage(t, url, { before, browser = "chromium", ...options } = {}) {
	if (!browsers.has(browser)) browsers.set(browser, LAUNCH[browser]());
	const context = await (await browsers.get(browser)).newContext({
		viewport: { width: 1480, height: 940 },
		...options,
	});
	const page = await context.newPage();
	page.setDefaultTimeout(WAIT_MS);
	const asked = openRequests(page);
	t.after(async () => {
		for (const [request, since] of asked)
			if (Date.now() - since > WAIT_MS / 2 && !/\/live$/.test(request.url()))
				t.diagnostic(`no answer in ${Math.round((Date.now() - since) / 1000)} s: ${request.url()}`);
		await context.close();
	});
	// Conditions are looked at by the clock. By default they are at each frame, and a page on which nothing moves may have none.
	const wait = page.waitForFunction.bind(page);
	page.waitForFunction = async (fn, arg, options) => {
		try {
			return await wait(fn, arg, { polling: 50, ...options });
		} catch (e) {
			if (e.name === "TimeoutError") e.message += ` ${await pageState(page)}`;
			throw e;
		}
	};
	const problems = [];
	page.on("console", (m) => {
		if (m.type() === "error" || m.type() === "warning") problems.push(`console: ${m.text()}`);
	});
	page.on("pageerror", (e) => problems.push(`page: ${e.message}`));
	page.on("request", (r) => {
		const asked = new URL(r.url());
		if (!["data:", "blob:"].includes(asked.protocol) && asked.origin !== new URL(url).origin)
			problems.push(`outside: ${r.url()}`);
	});
	if (process.env.EPI_PAGE) await servePage(page, new URL(url).origin);
	await before?.(page);
	await page.goto(url);
	return { page, problems };
}

/** The requests of a page that are under way, with the times of their beginning. */
function openRequests(page) {
	const asked = new Map();
	page.on("request", (r) => asked.set(r, Date.now()));
	for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => asked.delete(r));
	return asked;
}

/** Where a page is, and what it shows: for the report of what never came. */
async function pageState(page) {
	const text = await page.evaluate(() => document.querySelector("main")?.innerText ?? document.body.innerText);
	return `The page is ${page.url()} and says: ${text.replace(/\s+/g, " ").slice(0, 400)}`;
}

/** Serves the page of EPI_PAGE at the root of `origin`, as a server would. */
async function servePage(page, origin) {
	const types = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
	await page.route(`${origin}/**`, (route) => {
		const { pathname } = new URL(route.request().url());
		const file = join(process.env.EPI_PAGE, pathname);
		const ending = pathname.split(".").pop();
		if (types[ending] && existsSync(file))
			return route.fulfill({ contentType: types[ending], body: readFileSync(file) });
		if (!/^\/[a-z-]*$/.test(pathname)) return route.fallback();
		const html = readFileSync(join(process.env.EPI_PAGE, "index.html"), "utf8");
		return route.fulfill({ contentType: "text/html", body: html.replace("%BASE%", "/") });
	});
}

/** Each file that opens pages calls `after(closeBrowser)`. */
export async function closeBrowser() {
	for (const started of browsers.values()) await (await started).close();
}

export async function shot(page, name) {
	if (process.env.EPI_SHOTS)
		await page.screenshot({ path: join(process.env.EPI_SHOTS, `${name}.png`) });
}

/** The data of an answer of the API at `base`. */
export async function api(base, name, args = {}) {
	const response = await fetch(`${base}api/v1/${name}?${new URLSearchParams(args)}`);
	const body = await response.json();
	assert.equal(body.status, "success", JSON.stringify(body).slice(0, 300));
	return body.data;
}

/* ---- the fleet's server ---- */

export const QUERY = 'cpu{job="demo"}';

export const fleetApi = (name, args) => api(FLEET, name, args);
export const openFleet = (t, path, options) => openPage(t, FLEET + path, options);
export const explore = (args) => "explore?" + new URLSearchParams(args);

/** The cost of a query's profiles from `start` to `end`; 0 if there are none. */
export async function fleetTotal(query, start, end) {
	const data = await fleetApi("query", { query: `merge(${query})`, start, end });
	return data.result[0]?.total ?? 0;
}

/* ---- pages ---- */

export const params = (page) => Object.fromEntries(new URL(page.url()).searchParams);

/** Waits until the address has these parameters; undefined: it lacks one. The browser reports an address after the page set it. */
export const addressHas = (page, want) =>
	page.waitForURL((u) => Object.entries(want).every(([key, value]) => (u.searchParams.get(key) ?? undefined) === value));

/** The time, in seconds, before which no profile of any target is due: nothing more comes, also where one comes late. */
async function completeUntil() {
	const { activeTargets } = await fleetApi("targets");
	const due = activeTargets.map((target) => Date.parse(target.nextProfile)).filter((time) => time > 0);
	return (Math.min(...due) - 1000) / 1000;
}

/** A window with fixed ends, into which nothing more comes: so the page and the test ask the same. */
export async function fixedWindow(seconds) {
	const now = Date.now();
	const to = Math.floor(Math.min((now - 3000) / 1000, await completeUntil()));
	return { from: String(to - seconds), to: String(to) };
}

/** Waits until nothing more comes into a window that ends at `to`. */
export const complete = (to) => comes(async () => (await completeUntil()) >= to, true, `no profile before ${to} is due`);

/**
 * Answers all questions of the API by `answer` until what it gives is called. The browser goes on asking us then, and
 * we let it pass: if it stopped asking while scripts of the page are under way, one of them might never come.
 */
export async function takeApi(page, answer) {
	let taken = true;
	await page.route("**/api/**", (route) => (taken ? answer(route) : route.continue()));
	return () => {
		taken = false;
	};
}

/** In the page: the elements beyond the right edge that cannot be scrolled into view. */
export function cutOff() {
	const main = document.querySelector("main");
	const reached = (e) => {
		for (let p = e.parentElement; p && p !== main; p = p.parentElement)
			if (getComputedStyle(p).overflowX !== "visible") return true;
		return false;
	};
	return [...main.querySelectorAll("*")]
		.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !reached(e))
		.map((e) => `${e.tagName}.${e.className}`);
}

/** Opens the editor of Compare, unless it is open. */
export async function editComparison(page) {
	const line = page.getByRole("button", { name: /^Edit the comparison/ });
	if ((await line.getAttribute("aria-expanded")) === "false") await line.click();
}

/* ---- the flame graph ---- */

export const drawn = (page) => page.evaluate(() => window.__epi.drawn());

/** Waits until there is a flame graph that no longer changes. */
export async function flameReady(page) {
	await page.waitForFunction(() => (window.__epi?.flame()?.nodes.length ?? 0) > 1);
	await settled(page);
}

/** What the verdict on a difference names and why, once its significance is tested. */
export async function verdictReady(page) {
	await page.waitForFunction(
		() =>
			window.__epi?.verdict() &&
			document.querySelector(".results:not(.busy)") &&
			document.querySelector('.verdict [role="status"][aria-busy="false"]'),
	);
	return page.evaluate(() => window.__epi.verdict());
}

export async function settled(page) {
	let last = "";
	for (let i = 0; i < WAIT_MS / 120; i++) {
		await page.waitForTimeout(120);
		const now = JSON.stringify(await page.evaluate(() => window.__epi.flame()?.nodes));
		if (now === last) return;
		last = now;
	}
	assert.fail("the flame graph does not come to rest");
}

/** The middle of a node, or of its first 40 pixels, on the page. */
export async function nodePoint(page, node) {
	const box = await page.getByRole("img", { name: /Flame graph/ }).boundingBox();
	return {
		x: box.x + Math.max(0, node.x) + Math.min(node.w, 40) / 2,
		y: box.y + node.y + 8,
	};
}

export async function clickNode(page, node, options) {
	const { x, y } = await nodePoint(page, node);
	await page.mouse.click(x, y, options);
}

/** Decodes the flamebearer of one profile: name, level, x, total and self of every node. */
export function decode(fb) {
	const out = [];
	fb.levels.forEach((row, level) => {
		let end = 0;
		for (let k = 0; k < row.length; k += 4) {
			const x = end + row[k];
			out.push({ name: fb.names[row[k + 3]], level, x, total: row[k + 1], self: row[k + 2] });
			end = x + row[k + 1];
		}
	});
	return out;
}

/* ---- servers ---- */

/** For `pprof_config`: only the heap profile, which takes no time to measure. */
export const HEAP_ALONE =
	"{process_cpu: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, " +
	"goroutine: {enabled: false}, goroutineleak: {enabled: false}}";
