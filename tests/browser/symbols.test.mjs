// The page Symbols, and frames without names. The server of this test is real; the answers about
// symbols are recorded (symbols_answer.mjs), so that each state occurs.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import {
	addressHas,
	clickNode,
	closeBrowser,
	comes,
	countComes,
	drawn,
	flameReady,
	nodePoint,
	openPage,
	shot,
	startServer,
} from "./page.mjs";
import { SYMBOLS, UPLOADED } from "./symbols_answer.mjs";

let server;
let dir;
before(async () => {
	server = await startServer({ files: { "e.yml": "scrape_configs: []\n" } });
	dir = mkdtempSync(join(tmpdir(), "epi-symbols-"));
});
after(async () => {
	await closeBrowser();
	await server?.stop();
	if (dir) rmSync(dir, { recursive: true, force: true });
});

const ASKED = /\/api\/v1\/symbols(\?|$)/;
const success = (route, data) => route.fulfill({ json: { status: "success", data } });

/** Opens the page; `answer()` gives the data of each answer, `upload` replies to uploads. */
const open = (t, { path = "symbols", answer = () => SYMBOLS, upload, ...options } = {}) =>
	openPage(t, server.base + path, {
		...options,
		before: async (p) => {
			await p.route(ASKED, (route) => success(route, answer()));
			if (upload) await p.route("**/api/v1/symbols/upload?*", upload);
		},
	});

const rows = (page) => page.locator(".symbol-table .vtable-body > [role=row]");
const shown = (page) =>
	page.evaluate(() => window.__epi.table("symbols").map((b) => b.path.split("/").pop()));
const details = (page) => page.locator(".symbol-details");
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());
const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };
const { binaries } = SYMBOLS;
const find = (base) => binaries.find((b) => b.path.endsWith(`/${base}`));

test("the table: what is without names comes first, and each state is said", async (t) => {
	const { page, problems } = await open(t);
	await rows(page).first().waitFor();
	await comes(async () => (await shown(page)).slice(0, 3), ["c_fp", "libssl.so.3", "worker"]);
	await comes(async () => (await shown(page)).slice(-3), ["db", "libc.so.6", "prometheus"]);
	await countComes(rows(page), binaries.length);
	const first = await rows(page).first().innerText();
	assert.match(first, /^c_fp\s*\/usr\/bin\/\s+1e3e09b3d2c4…\s+Copy\s+1,234\s+unknown/);
	assert.match(await rows(page).nth(2).innerText(), /failed\s+not an ELF file: HTML/);
	assert.match(await rows(page).nth(3).innerText(), /agent[^]*\snone\s+64/);
	const totals = (await page.getByRole("region", { name: "Totals" }).innerText()).replace(/\s+/g, " ");
	assert.match(totals, /Binaries seen 11 With names 3 Without names 8 Addresses without names 1,815/);
	assert.match(totals, /Size of the store 16.1 MiB of 64 MiB/);
	await shot(page, "symbols-light");

	await page.getByRole("columnheader", { name: "Binary" }).click();
	await addressHas(page, { sort: "path" });
	await comes(async () => (await shown(page))[0], "agent");
	await page.getByRole("columnheader", { name: "State" }).click();
	await addressHas(page, { sort: "state" });
	await comes(async () => (await shown(page)).slice(0, 2), ["worker", "c_stripped"]);
	await page.reload();
	await rows(page).first().waitFor();
	await comes(async () => (await shown(page))[0], "worker");
	assert.deepEqual(problems, []);
});

test("the filter finds paths, build ids, jobs, states and frames", async (t) => {
	const { page, problems } = await open(t);
	const field = page.getByLabel("Filter binaries");
	for (const [text, want] of [
		["etl", ["python3.11", "perl", "libc.so.6"]],
		["c0ffee", ["worker"]],
		["stripped usr", ["c_stripped"]],
		["dwarf", ["db"]],
		["[c_fp+0x1f2e]", ["c_fp"]],
	]) {
		await field.fill(text);
		await comes(() => shown(page), want, text);
	}
	await details(page).getByRole("heading", { name: "c_fp" }).waitFor(); // the only one is open
	await field.fill("no such binary");
	await page.getByText("No binary of the last 1h matches the filter.").waitFor();
	const asked = page.waitForRequest((r) => {
		const start = new URL(r.url()).searchParams.get("start");
		return ASKED.test(r.url()) && Math.abs(Date.now() / 1000 - 86400 - Number(start)) < 600;
	});
	await page.getByLabel("Binaries of profiles of the last").selectOption("1d");
	await asked;
	await addressHas(page, { seen: "1d" });
	await page.getByText("No binary of the last 1d matches the filter.").waitFor();
	assert.deepEqual(problems, []);
});

test("a binary by keyboard: what is known, and what to do", async (t) => {
	const { page, problems } = await open(t, clipboard);
	const grid = page.locator(".symbol-table [role=grid]");
	await rows(page).first().waitFor();
	await grid.focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await details(page).waitFor();
	const [b] = binaries;
	await addressHas(page, { open: `gnu:${b.id}` });
	const text = await details(page).innerText();
	assert.match(text, /GNU build id\s+1e3e09b3d2c4a7f01be5c33c0f0a7b0a3d8e5f11/);
	assert.match(text, /shop, billing/);
	await details(page).getByRole("button", { name: "Copy the command" }).click();
	await details(page).getByText("Copied").waitFor();
	assert.equal(
		await copied(page),
		`epitool debuginfo upload /usr/bin/c_fp --server ${server.base.replace(/\/$/, "")}`,
	);
	await details(page).getByRole("button", { name: "Copy the lines of the configuration" }).click();
	await page.waitForFunction(async () => /^debuginfod:\n  - url: /.test(await navigator.clipboard.readText()));
	await rows(page).first().getByRole("button", { name: "Copy the build id" }).click();
	await page.waitForFunction(async (id) => (await navigator.clipboard.readText()) === id, b.id);
	assert.ok(await details(page).isVisible(), "a copied id does not close the row");

	await rows(page).nth(2).click({ position: { x: 20, y: 10 } });
	await details(page).getByText("File not readable: not an ELF file: HTML").waitFor();
	assert.ok((await details(page).innerText()).includes(`upload '/opt/it'\\''s here/worker' --server`));
	await rows(page).filter({ hasText: "DWARF" }).click({ position: { x: 20, y: 10 } });
	await details(page).getByRole("heading", { name: "db" }).waitFor();
	await countComes(details(page).getByText("What to do"), 0, "nothing is to do");
	await details(page).getByRole("button", { name: "Close" }).click();
	await details(page).waitFor({ state: "detached" });
	assert.deepEqual(problems, []);
});

/** Files of this test: name and content. */
function files(list) {
	return Object.entries(list).map(([name, content]) => {
		const path = join(dir, name);
		writeFileSync(path, content);
		return path;
	});
}
const elf = (n) => Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(n)]);
const uploadRows = (page) => page.getByRole("list", { name: "Uploads" }).getByRole("listitem");

/**
 * A server before the real one, which answers about symbols itself: `symbols()` is its data, and
 * `take(name, bytes)` gives status and envelope for the whole body of an upload.
 */
async function standIn(t, symbols, take) {
	const { port } = new URL(server.base);
	const front = createServer(async (req, res) => {
		const url = new URL(req.url, server.base);
		const json = (status, body) => {
			res.writeHead(status, { "Content-Type": "application/json" });
			res.end(JSON.stringify(body));
		};
		if (url.pathname === "/api/v1/symbols") return json(200, { status: "success", data: symbols() });
		if (url.pathname === "/api/v1/symbols/upload") {
			const parts = [];
			for await (const part of req) parts.push(part);
			return json(...take(url.searchParams.get("name"), Buffer.concat(parts)));
		}
		const { method, headers } = req;
		const behind = request({ host: "127.0.0.1", port, path: req.url, method, headers }, (answer) => {
			res.writeHead(answer.statusCode, answer.headers);
			answer.pipe(res);
		});
		req.pipe(behind);
	});
	await new Promise((done) => front.listen(0, "127.0.0.1", done));
	t.after(() => {
		front.closeAllConnections();
		front.close();
	});
	return `http://127.0.0.1:${front.address().port}/`;
}

test("files are chosen, sent in turn, and followed until they have names", async (t) => {
	const sent = [];
	let state = "unknown";
	const base = await standIn(
		t,
		() => ({
			...SYMBOLS,
			binaries: [{ ...binaries[0], state, ...(state === "named" ? { quality: "dwarf" } : {}) }],
		}),
		(name, bytes) => {
			sent.push([name, bytes]);
			if (sent.length === 2)
				return [409, { status: "error", errorType: "conflict", error: "better data is here" }];
			state = "queued";
			return [200, { status: "success", data: UPLOADED }];
		},
	);
	const { page, problems } = await openPage(t, `${base}symbols`);
	await page.getByText("Drop files with debug data here").waitFor();
	const choose = page.waitForEvent("filechooser");
	await page.getByRole("button", { name: "Choose files" }).click();
	const contents = { "c_fp.debug": elf(3e6), "it's old.so": elf(10), "page.html": "<html>" };
	await (await choose).setFiles(files(contents));
	await uploadRows(page).nth(2).getByText("Not an ELF file").waitFor();
	assert.deepEqual(sent.map(([name]) => name), ["c_fp.debug", "it's old.so"]);
	for (const [name, bytes] of sent) assert.ok(bytes.equals(contents[name]), name);
	assert.match(
		await uploadRows(page).nth(1).innerText(),
		/not needed\s+it's old\.so\s+Not needed: better data is here\./,
	);
	assert.match(await uploadRows(page).nth(2).innerText(), /^refused\s+page\.html/);
	// The answers to later questions say how it goes on.
	await uploadRows(page).first().getByText("queued").waitFor();
	await shot(page, "symbols-upload");
	state = "extracting";
	await uploadRows(page).first().getByText("extracting").waitFor();
	state = "named";
	await uploadRows(page).first().getByText("DWARF").waitFor();
	await rows(page).first().getByText("DWARF").waitFor();
	await page.getByRole("link", { name: "1e3e09b3d2c4…" }).click();
	await addressHas(page, { filter: UPLOADED.id });
	await page.getByRole("button", { name: "Clear the list" }).click();
	await countComes(uploadRows(page), 0);
	// The browser reports the refusal itself.
	assert.deepEqual(problems.filter((p) => !/409/.test(p)), []);
});

/** Drags files over the page and drops them, as a file manager does. */
const drag = (page, names, end = "drop") =>
	page.evaluate(
		([names, end]) => {
			const dataTransfer = new DataTransfer();
			for (const name of names)
				dataTransfer.items.add(new File(["\x7fELF", "x".repeat(100)], name));
			const at = document.querySelector("main h1");
			const over = new DragEvent("dragover", { dataTransfer, bubbles: true, cancelable: true });
			at.dispatchEvent(over);
			if (end) at.dispatchEvent(new DragEvent(end, { dataTransfer, bubbles: true, cancelable: true }));
			return over.defaultPrevented;
		},
		[names, end],
	);

test("files are dropped anywhere; a busy server is asked again", async (t) => {
	let n = 0;
	const { page, problems } = await open(t, {
		upload: (route) =>
			++n === 1
				? route.fulfill({
						status: 429,
						headers: { "Retry-After": "1" },
						json: { status: "error", error: "10 uploads at once" },
					})
				: success(route, UPLOADED),
	});
	await page.getByText("Drop files with debug data here").waitFor();
	assert.ok(await drag(page, ["a.debug"], ""));
	await page.locator(".drop.over").waitFor();
	await drag(page, ["a.debug", "b.debug"]);
	await uploadRows(page).first().getByText("Server busy: 10 uploads at once").waitFor();
	await countComes(page.locator(".drop.over"), 0);
	await uploadRows(page).nth(1).getByText("taken").or(uploadRows(page).nth(1).getByText("unknown")).first().waitFor();
	assert.equal(n, 3);
	assert.deepEqual(problems.filter((p) => !/429/.test(p)), []);
});

test("an upload is cancelled, and goes on while another page is shown", async (t) => {
	let release;
	const held = new Promise((done) => (release = done));
	const { page } = await open(t, {
		upload: async (route) => {
			await held;
			await success(route, UPLOADED).catch(() => {}); // the cancelled one is gone
		},
	});
	await page.getByText("Drop files with debug data here").waitFor();
	await drag(page, ["a.debug", "b.debug"]);
	await page.getByRole("button", { name: "Cancel the upload of a.debug" }).click();
	await uploadRows(page).first().getByText("cancelled").waitFor();
	await page.getByRole("link", { name: "Flags" }).click();
	await page.getByRole("heading", { name: "Command line flags" }).waitFor();
	release();
	await page.getByRole("link", { name: "Symbols" }).click();
	await uploadRows(page).nth(1).getByRole("link", { name: "1e3e09b3d2c4…" }).waitFor();
});

test("without uploads the page says which flag; without binaries, what belongs here", async (t) => {
	const { page, problems } = await open(t, {
		answer: () => ({ ...SYMBOLS, uploadEnabled: false, bytes: 0, bytesMax: 0, binaries: [] }),
	});
	await page.getByText("Uploads are off: start the server with --web.enable-ingest.").waitFor();
	await page.getByText("No binaries yet").waitFor();
	assert.match(await page.getByRole("region", { name: "Totals" }).innerText(), /0 B\s+no limit/);
	await countComes(page.getByRole("button", { name: "Choose files" }), 0);
	assert.ok(await drag(page, ["a.debug"]), "a drop does not leave the page");
	await countComes(uploadRows(page), 0);
	assert.deepEqual(problems, []);
});

test("the page is refreshed while a file is read, and an error leaves what was there", async (t) => {
	let n = 0;
	const { page } = await openPage(t, `${server.base}symbols`, {
		before: (p) =>
			p.route(ASKED, (route) => {
				n++;
				return n === 2
					? route.fulfill({ status: 503, json: { status: "error", errorType: "unavailable", error: "too many requests" } })
					: success(route, SYMBOLS);
			}),
	});
	await rows(page).first().waitFor();
	await page.getByRole("alert").getByText("too many requests").waitFor();
	await countComes(rows(page), binaries.length);
	await page.getByRole("alert").waitFor({ state: "detached" });
	assert.ok(n >= 3);
});

test("both themes and a narrow screen", async (t) => {
	const open0 = `symbols?open=${encodeURIComponent(`gnu:${binaries[0].id}`)}`;
	for (const [name, options] of [
		["symbols-dark", { colorScheme: "dark" }],
		["symbols-details", {}],
		["symbols-narrow", { viewport: { width: 400, height: 1600 } }],
	]) {
		const { page, problems } = await open(t, { path: open0, ...options });
		await details(page).waitFor();
		const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		assert.equal(wide, 0, name);
		await shot(page, name);
		assert.deepEqual(problems, []);
	}
});

/* ---- frames without names ---- */

const INFO =
	"40% of the cost is in addresses without names: 40% in /usr/bin/c_fp (build id 1e3e09b3d2c4a7f01be5c33c0f0a7b0a3d8e5f11)";
const PROFILE = {
	metric: {},
	type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
	unit: "nanoseconds",
	total: 1e9,
	cost: 1e9,
	profiles: 1,
	flamebearer: {
		format: "single",
		names: ["total", "main", "[c_fp+0x1f2e]", "[c_fp+0x2000]", "read_input", "[0x7f00aa]"],
		levels: [
			[0, 1e9, 0, 0],
			[0, 9e8, 0, 1, 0, 1e8, 1e8, 5],
			[0, 4e8, 1e8, 2, 0, 5e8, 5e8, 4],
			[0, 3e8, 3e8, 3],
		],
		numTicks: 1e9,
		maxSelf: 5e8,
	},
};
const row = (name, flat, cum) => ({
	...{ function: name, flat, cum },
	...{ flat_percent: flat / 1e7, sum_percent: 0, cum_percent: cum / 1e7 },
});
const TOP = {
	metric: {},
	unit: "nanoseconds",
	total: 1e9,
	functions: 3,
	rows: [row("read_input", 5e8, 5e8), row("[c_fp+0x2000]", 3e8, 3e8), row("[c_fp+0x1f2e]", 1e8, 4e8)],
};

/** Explore, whose answers have frames without names. */
const openFlame = (t, options = {}) =>
	openPage(t, `${server.base}explore?query=cpu&range=5m`, {
		...options,
		before: async (p) => {
			await p.route(ASKED, (route) => success(route, SYMBOLS));
			await p.route("**/api/v1/query?*", (route) => {
				const query = new URL(route.request().url()).searchParams.get("query");
				const data = /^(flat|cum|top|sum)\b/.test(query)
					? { resultType: "top", result: [TOP] }
					: { resultType: "profiles", result: [PROFILE] };
				return route.fulfill({ json: { status: "success", data, infos: [INFO] } });
			});
		},
	});

test("frames without names are hatched, said in the legend, and lead to what to do", async (t) => {
	const { page, problems } = await openFlame(t, clipboard);
	await flameReady(page);
	const nodes = await drawn(page);
	const node = (name) => nodes.find((n) => n.name === name);
	const grey = node("[c_fp+0x1f2e]").color;
	assert.equal(node("[c_fp+0x2000]").color, grey);
	assert.equal(node("[0x7f00aa]").color, grey);
	assert.notEqual(node("main").color, grey);
	assert.notEqual(node("read_input").color, grey);
	const [lines, plain] = await page.evaluate(
		(nodes) => {
			const { width, height } = document.querySelector(".flame-stage canvas");
			const ctx = document.querySelector(".flame-stage canvas").getContext("2d");
			const { data } = ctx.getImageData(0, 0, width, height);
			const at = (x, y) => data.slice(4 * (y * width + x), 4 * (y * width + x) + 3).join();
			return nodes.map(({ x, y, w }) => {
				const colors = new Set();
				for (let k = 0; k < 600; k++)
					colors.add(at(Math.round(x + w / 2) + (k % 60), y + 3 + Math.floor(k / 60)));
				return colors.size;
			});
		},
		[node("[c_fp+0x2000]"), node("read_input")],
	);
	assert.ok(lines > 2, "lines across");
	assert.equal(plain, 1);
	const legend = page.getByRole("link", { name: "without names" });
	assert.match(await legend.getAttribute("href"), /^symbols$/);
	await shot(page, "unnamed-light");

	// The infos of the answer link to the binary.
	const info = page.locator(".notice", { hasText: "addresses without names" });
	assert.equal(
		await info.getByRole("link").first().getAttribute("href"),
		`symbols?filter=${binaries[0].id}`,
	);
	assert.equal(await info.getByRole("link", { name: "Symbols" }).getAttribute("href"), "symbols");

	// The card says what it is; selecting it offers what to do.
	const { x, y } = await nodePoint(page, node("[c_fp+0x2000]"));
	await page.mouse.move(x, y);
	await page.getByRole("tooltip").getByText("An address in c_fp without a name").waitFor();
	await clickNode(page, node("[c_fp+0x2000]"));
	const note = page.getByRole("note");
	await note.getByText("An address in c_fp without a name").waitFor();
	await note.getByRole("button", { name: "Copy the command" }).click();
	await note.getByText("Copied").waitFor();
	assert.match(await copied(page), /^epitool debuginfo upload \/usr\/bin\/c_fp --server http/);
	await shot(page, "unnamed-note");
	await note.getByRole("link", { name: "Symbols of c_fp" }).click();
	await page.waitForURL(/symbols\?filter=1e3e09b3/);
	await details(page).getByRole("heading", { name: "c_fp" }).waitFor();
	assert.deepEqual(problems, []);
});

test("the menu by keyboard, the table and the sandwich of a frame without a name", async (t) => {
	const { page, problems } = await openFlame(t, { ...clipboard, colorScheme: "dark" });
	await flameReady(page);
	await shot(page, "unnamed-dark");
	const marks = page.locator(".split-table .fn .hatch");
	await countComes(marks, 2);
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "Shift+F10"]) await page.keyboard.press(key);
	const menu = page.getByRole("menu", { name: "Actions on [c_fp+0x1f2e]" });
	await menu.getByRole("menuitem", { name: "Copy the command to upload symbols" }).click();
	await page.waitForFunction(async () => /^epitool debuginfo upload/.test(await navigator.clipboard.readText()));

	await page.locator(".split-table [role=row]", { hasText: "[c_fp+0x2000]" }).click();
	await page.getByRole("heading", { name: "[c_fp+0x2000]" }).waitFor();
	await page.getByRole("note").getByRole("link", { name: "Symbols of c_fp" }).waitFor();
	await page.locator(".sandwich-acts").getByRole("button", { name: "Symbols of this binary" }).click();
	await page.waitForURL(/symbols\?filter=1e3e09b3/);
	assert.deepEqual(problems, []);
});
