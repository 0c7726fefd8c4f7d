// The book below docs/: axe finds nothing, the search finds and opens, ? opens the chapter of the view, no request leaves the
// server, behind a prefix too. A fixture with all that a page may have is served with the server's policy, and read from files.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test, { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { closeBrowser, comes, countComes, openPage, shot, startServer } from "./page.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const SIZES = [1440, 1000, 360].map((width) => ({ width, height: 800 }));
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

let server;
let dir;
let fixture;
let policy;
before(async () => {
	server = await startServer({ files: { "e.yml": "scrape_configs: []\n" }, prefix: "/epi/" });
	policy = (await fetch(`${server.base}docs/`)).headers.get("content-security-policy");
	dir = mkdtempSync(join(tmpdir(), "epi-book-"));
	const tree = resolve("tests/web/book_fixture"); // run.sh runs in the tree
	const run = spawnSync(process.execPath, ["build/ui-src/book/build.mjs", `--tree=${tree}`, `--parts=${tree}/parts`, dir], { encoding: "utf8" });
	assert.equal(run.status, 0, run.stderr);
	fixture = createServer((req, res) => {
		const file = join(dir, "site", new URL(req.url, "http://x").pathname);
		res.statusCode = existsSync(file) ? 200 : 404;
		res.setHeader("Content-Security-Policy", policy);
		res.setHeader("Content-Type", TYPES[file.split(".").pop()] ?? "text/plain");
		res.end(existsSync(file) ? readFileSync(file) : "");
	});
	await new Promise((done) => fixture.listen(0, "127.0.0.1", done));
	fixture.base = `http://127.0.0.1:${fixture.address().port}/`;
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	fixture?.close();
	rmSync(dir, { recursive: true, force: true });
});

const field = (page) => page.getByRole("combobox", { name: "Search the docs" });
const options = (page) => page.getByRole("option");
const selected = (page) => page.locator("[role=option][aria-selected=true]");

async function lookedAt(page) {
	await page.evaluate(AXE);
	const { violations, passes } = await page.evaluate(
		(tags) => window.axe.run(document, { runOnly: { type: "tag", values: tags }, rules: { "target-size": { enabled: true } } }),
		TAGS,
	);
	assert.ok(passes.length > 10, `${passes.length} rules passed`);
	return violations.flatMap((v) => v.nodes.map((n) => `${v.id} ${n.target.join(" ")}: ${v.help}`));
}

const PAGES = [
	["the first page", () => `${server.base}docs/`, async () => {}],
	["a chapter", () => `${server.base}docs/start/install.html`, async () => {}],
	["no chapter", () => `${server.base}docs/no/such/chapter.html`, async () => {}],
	["all that a page may have", () => `${fixture.base}start/install.html`, async () => {}],
	["what the search found", () => `${fixture.base}start/install.html`, async (page) => {
		await field(page).fill("a");
		await options(page).first().waitFor();
	}],
];
for (const [name, url, arrive] of PAGES)
	test(`axe finds nothing: ${name}`, async (t) => {
		const wrong = [];
		for (const viewport of SIZES)
			for (const colorScheme of ["light", "dark"]) {
				const { page, problems } = await openPage(t, url(), { viewport, colorScheme });
				await field(page).waitFor();
				await arrive(page);
				await shot(page, `book-${name.replace(/\W+/g, "-")}-${viewport.width}-${colorScheme}`);
				for (const f of await lookedAt(page)) wrong.push(`${viewport.width} ${colorScheme}: ${f}`);
				const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
				if (wide > 0) wrong.push(`${viewport.width}: ${wide} px wider than the screen`);
				// The browser reports the status 404 of the page itself.
				assert.deepEqual(problems.filter((p) => name !== "no chapter" || !p.includes("404")), []);
				await page.close();
			}
		assert.deepEqual(wrong, []);
	});

test("the search finds the first chapter by its title and opens it, behind a prefix", async (t) => {
	const { page, problems } = await openPage(t, `${server.base}docs`); // leads to docs/
	assert.equal(page.url(), `${server.base}docs/`);
	const first = page.locator("dl.chapters a").first();
	const [title, to] = [await first.innerText(), await first.evaluate((a) => a.href)];
	await page.keyboard.press("/");
	await page.keyboard.type(title);
	await comes(() => selected(page).evaluate((a) => a.href), to);
	await page.keyboard.press("Enter");
	await page.waitForURL(to);
	assert.equal(await page.locator("h1").innerText(), title);
	assert.equal(await page.locator("#chapters [aria-current=page]").innerText(), title);
	assert.deepEqual(problems, []);
});

test("a section of other pages opens in the list; without scripts it leads to the first page", async (t) => {
	const scripted = await openPage(t, `${fixture.base}start/install.html`);
	const list = scripted.page.locator("#chapters");
	await list.getByText("Operate", { exact: true }).click();
	await list.getByRole("link", { name: "Limits", exact: true }).click();
	await scripted.page.waitForURL(/operate\/limits\.html$/);
	assert.equal(await list.locator("[aria-current=page]").innerText(), "Limits");
	assert.deepEqual(scripted.problems, []);
	const plain = await openPage(t, `${fixture.base}start/install.html`, { javaScriptEnabled: false });
	await plain.page.locator("#chapters").getByRole("link", { name: "Operate", exact: true }).click();
	await plain.page.waitForURL(/index\.html#operate$/);
	await plain.page.locator("dl.chapters").getByRole("link", { name: "Limits", exact: true }).click();
	await plain.page.waitForURL(/operate\/limits\.html$/);
});

test("keys of the search: arrows choose, Escape closes and clears, no hit says so", async (t) => {
	const asked = [];
	const { page, problems } = await openPage(t, `${fixture.base}operate/limits.html`, {
		before: (p) => p.on("request", (r) => asked.push(new URL(r.url()).pathname)),
	});
	await field(page).waitFor();
	assert.ok(!asked.some((path) => path.startsWith("/index.")), "the index is loaded when it is needed");
	await page.keyboard.press("/");
	await page.keyboard.type("a");
	await options(page).nth(2).waitFor();
	assert.equal(asked.filter((path) => path.startsWith("/index.")).length, 1);
	const at = () => selected(page).getAttribute("id");
	assert.equal(await at(), "found-0");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	assert.equal(await at(), "found-2");
	assert.equal(await field(page).getAttribute("aria-activedescendant"), "found-2");
	await page.keyboard.press("ArrowUp");
	assert.equal(await at(), "found-1");
	await field(page).fill("mem");
	await page.locator("#found mark", { hasText: /^Mem$/ }).first().waitFor();
	assert.match(await selected(page).innerText(), /Memory in use\s*Operate › Limits/);
	await page.keyboard.press("Enter");
	await page.waitForURL(/operate\/limits\.html#memory-in-use$/);
	await options(page).first().waitFor({ state: "hidden" });
	await field(page).fill("nothingofthis");
	await page.locator("#found", { hasText: "Nothing found." }).waitFor();
	await page.keyboard.press("Escape");
	await page.locator("#found").waitFor({ state: "hidden" });
	await page.keyboard.press("Escape");
	assert.equal(await field(page).inputValue(), "");
	assert.equal(asked.filter((path) => path.startsWith("/index.")).length, 1, "once");
	assert.deepEqual(problems, []);
});

test("d and the link beside the keys open the chapter of the view, the menu the book", async (t) => {
	const { page, problems } = await openPage(t, `${server.base}services`);
	const context = page.context();
	const opens = async (act, path) => {
		const [tab] = await Promise.all([context.waitForEvent("page"), act()]);
		await comes(() => tab.url(), server.base + path);
		await tab.close();
	};
	const key = () => page.keyboard.press("d");
	const arrive = (title) => page.waitForFunction((text) => document.title.startsWith(text), title);
	await arrive("Services");
	await opens(key, "docs/start/services.html");
	await opens(() => page.getByRole("link", { name: "Docs of this view" }).click(), "docs/start/services.html");
	await opens(() => page.getByRole("link", { name: "Docs", exact: true }).click(), "docs/");
	await page.keyboard.press("g");
	await page.keyboard.press("t");
	await arrive("Targets");
	await opens(key, "docs/operate/troubleshooting.html");
	await page.goto(`${server.base}explore?query=goroutine`);
	await arrive("goroutine");
	await opens(key, "docs/guides/leaks.html");
	assert.deepEqual(problems, []);
});

test("the theme that the page chose is the book's, and the other way round", async (t) => {
	const { page } = await openPage(t, `${server.base}services`, { colorScheme: "light" });
	const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
	await page.getByRole("button", { name: "Switch to dark" }).click();
	await page.goto(`${server.base}docs/`);
	assert.equal(await theme(), "dark");
	await page.getByRole("button", { name: "Switch to light" }).click();
	assert.equal(await theme(), "light");
	await page.goto(`${server.base}services`);
	assert.equal(await theme(), "light");
});

test("on a phone the list of chapters is behind a button", async (t) => {
	const { page, problems } = await openPage(t, `${fixture.base}start/install.html`, { viewport: SIZES[2], hasTouch: true });
	const list = page.getByRole("navigation", { name: "Chapters", exact: true });
	const fold = page.getByRole("button", { name: "Chapters" });
	await fold.waitFor();
	assert.ok(!(await list.isVisible()));
	await fold.click();
	assert.equal(await fold.getAttribute("aria-expanded"), "true");
	await list.getByText("Operate").click();
	await list.getByRole("link", { name: "Limits" }).click();
	await page.waitForURL(/operate\/limits\.html$/);
	assert.ok(!(await list.isVisible()));
	assert.deepEqual(problems, []);
});

test("the docs lead back to the server's page, behind a prefix", async (t) => {
	for (const viewport of SIZES)
		for (const path of ["docs/", "docs/start/install.html", "docs/no/such/chapter.html"]) {
			const { page } = await openPage(t, server.base + path, { viewport });
			const link = page.getByRole("link", { name: /Server$/ });
			assert.equal(await link.evaluate((a) => a.href), server.base, path);
			assert.ok((await link.boundingBox()).height >= 24);
			await page.close();
		}
});

test("a wide table: names break, the margin is used, a phone shows the last column below", async (t) => {
	const { page } = await openPage(t, `${fixture.base}operate/limits.html`, { viewport: { width: 1200, height: 800 } });
	const table = page.locator(".many");
	const size = (of) => of.evaluate((e) => ({ inner: e.scrollWidth, outer: e.clientWidth, lines: e.getClientRects().length }));
	const wide = await size(table);
	assert.ok(wide.inner <= wide.outer, `${wide.inner} of ${wide.outer} px`);
	const flag = await size(table.locator(".whole", { hasText: "--storage" }).first());
	assert.equal(flag.lines, 1, "a flag does not break behind --");
	await page.setViewportSize(SIZES[2]);
	const phone = await size(table);
	assert.ok(phone.inner <= phone.outer, `${phone.inner} of ${phone.outer} px`);
	const boxes = await table.locator("tbody tr").first().locator("td").evaluateAll((all) => all.map((td) => td.getBoundingClientRect().toJSON()));
	assert.equal(boxes.length, 4);
	assert.ok(boxes[3].top >= boxes[2].bottom && boxes[1].top >= boxes[0].bottom && boxes[1].top === boxes[2].top, JSON.stringify(boxes));
	assert.ok(boxes[3].width > 280, `${boxes[3].width} px`);
	const prose = await size(page.locator("pre.prose"));
	assert.ok(prose.inner <= prose.outer, "the text of a command wraps");
});

test("code is copied", async (t) => {
	const { page } = await openPage(t, `${fixture.base}start/install.html`, { permissions: ["clipboard-read", "clipboard-write"] });
	const code = page.locator(".code", { hasText: "scrape_configs" });
	await code.hover();
	await code.getByRole("button", { name: "Copy" }).click();
	await code.getByText("Copied").waitFor();
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "scrape_configs: []\n");
});

test("without a script the book is read and its links lead on; only search and theme are missing", async (t) => {
	const { page } = await openPage(t, `${fixture.base}index.html`, { javaScriptEnabled: false, colorScheme: "dark" });
	assert.ok(!(await field(page).isVisible()));
	await page.locator("dl.chapters a").first().click();
	await page.waitForURL(/start\/install\.html$/);
	await page.getByRole("link", { name: "Next" }).click();
	await page.waitForURL(/start\/language\.html$/);
	const { page: phone } = await openPage(t, `${fixture.base}start/install.html`, { javaScriptEnabled: false, viewport: SIZES[2] });
	assert.ok(await phone.getByRole("navigation", { name: "Chapters", exact: true }).isVisible(), "the list is below the text");
});

test("the static book works from files, search and all", async (t) => {
	const { page, problems } = await openPage(t, pathToFileURL(join(dir, "site/index.html")).href);
	await page.keyboard.press("/");
	await page.keyboard.type("generated part");
	await options(page).first().waitFor();
	await page.keyboard.press("Enter");
	await page.waitForURL(/^file:.*operate\/limits\.html#memory-in-use$/);
	await countComes(page.locator("img"), 0);
	await page.locator(".turn .before").click();
	await page.waitForURL(/^file:.*start\/language\.html$/);
	assert.deepEqual(problems, []);
});
