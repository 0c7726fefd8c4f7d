// Profiles in files: dropped, shown, compared with each other and with production, and kept.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { S3Fake } from "../s3_fake.mjs";
import {
	addressHas,
	closeBrowser,
	comes,
	countComes,
	cutOff,
	drawn,
	editComparison,
	fixedWindow,
	flameReady,
	FLEET,
	fleetApi,
	openPage,
	params,
	shot,
	startServer,
	verdictReady,
	WAIT_MS,
} from "./page.mjs";

const REGRESSED = "main.scoreItems"; // v2 of the demo fleet does more of it

let server;
let v1;
let v2;

/** Profiles of the demo fleet, as a colleague would send them. */
async function saved(version, span) {
	const args = { query: `merge(cpu{job="demo",version="${version}"})`, format: "pprof", ...span };
	const response = await fetch(`${FLEET}api/v1/query?${new URLSearchParams(args)}`);
	assert.equal(response.status, 200);
	return Buffer.from(await response.arrayBuffer());
}

const SECONDS = 240;

/** A window in which the regression moved most: while the fleet has hardly run, chance moves another function more. */
async function regressed() {
	let w;
	const own = (version) => `show(merge(cpu{job="demo",version="${version}"}[${SECONDS}s]), "^main\\\\.")`;
	const query = `topk(1, abs(flat by (function) (diff(${own("v2")}, ${own("v1")}))))`;
	const named = async () => {
		if (w) await new Promise((done) => setTimeout(done, 1000));
		w = await fixedWindow(SECONDS);
		return (await fleetApi("query", { query, time: w.to })).result[0]?.metric.function;
	};
	await comes(named, REGRESSED, "what moved most");
	return { start: w.from, end: w.to };
}

before(async () => {
	server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-files"],
	});
	const span = await regressed();
	[v1, v2] = [await saved("v1", span), await saved("v2", span)];
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

/** Drags files over the page and drops them, as a file manager does. `area`: what is there for them. */
async function drop(page, files, area = ".drop-here") {
	const data = await page.evaluateHandle((all) => {
		const d = new DataTransfer();
		for (const [name, base64] of all)
			d.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
		return d;
	}, Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]));
	const here = page.locator(area);
	const end = Date.now() + WAIT_MS;
	do {
		// A page that is just there may not listen yet; a hand holds files over it for longer.
		await page.dispatchEvent("main", "dragover", { dataTransfer: data });
		await page.waitForTimeout(30);
	} while (!(await here.isVisible()) && Date.now() < end);
	await here.waitFor();
	await page.dispatchEvent("main", "drop", { dataTransfer: data });
	await here.waitFor({ state: "detached" });
}

const verdict = (page) => page.getByRole("region", { name: "Verdict" });
const names = async (page) => (await drawn(page)).map((n) => n.name);
const fileRow = (page, name) => page.getByRole("list", { name: "Files" }).getByRole("listitem").filter({ hasText: name });

test("a file is shown, a second one compared, both are kept and opened by their link", async (t) => {
	const { page, problems } = await openPage(t, server.base + "explore");
	await drop(page, { "v1.pb.gz": v1 });
	await addressHas(page, { query: 'file("v1.pb.gz")' });
	await flameReady(page);
	assert.ok((await names(page)).some((n) => n.startsWith("main.")));
	await fileRow(page, "v1.pb.gz").getByText("pprof").waitFor();
	// No chart: a file has no cost over time. The table is of the file.
	await countComes(page.getByText("Cost over time"), 0);
	await page.locator(".vtable-body > div").first().waitFor();
	await shot(page, "file");

	await drop(page, { "v2.pb.gz": v2 });
	await addressHas(page, { new: 'file("v2.pb.gz")', base: 'file("v1.pb.gz")' });
	await verdict(page).getByText("scoreItems").waitFor();
	const blamed = await page.evaluate(() => window.__epi.verdict());
	assert.equal(blamed.name, REGRESSED);
	assert.ok(blamed.costs.next > blamed.costs.base);
	assert.match(await verdict(page).innerText(), /no significance test on files/);
	await page.locator(".is-diff .vtable-body > div").first().waitFor();
	await shot(page, "files-compared");

	for (const name of ["v1.pb.gz", "v2.pb.gz"]) {
		await fileRow(page, name).getByRole("button", { name: "Keep", exact: true }).click();
		await page.waitForURL((u) => !u.search.includes(name));
	}
	const link = page.url();
	const { new: next, base } = params(page);
	for (const query of [next, base]) assert.match(query, /^file\("[0-9a-f]{32}"\)$/);
	await page.getByText("On the server until").first().waitFor();
	assert.deepEqual(problems, []);

	const other = await openPage(t, link); // a page without this one's memory
	await verdict(other.page).getByText("scoreItems").waitFor();
	await fileRow(other.page, "v2.pb.gz").getByText("On the server until").waitFor();
	assert.equal((await other.page.evaluate(() => window.__epi.verdict())).name, REGRESSED);
	assert.deepEqual(other.problems, []);
});

test("two files at once are compared, and exported", async (t) => {
	const { page, problems } = await openPage(t, server.base + "compare");
	await drop(page, { "a.pb.gz": v1, "b.pb.gz": v2 });
	await page.waitForURL((u) => (u.searchParams.get("new") ?? "").startsWith("file("));
	await verdict(page).getByText("scoreItems").waitFor();
	await page.getByRole("button", { name: "Export" }).click();
	const [download] = await Promise.all([
		page.waitForEvent("download"),
		page.getByRole("button", { name: /^folded/ }).click(),
	]);
	const stream = await download.createReadStream();
	let text = "";
	for await (const piece of stream) text += piece;
	assert.match(text, /main\.scoreItems \d+ \d+/);
	assert.deepEqual(problems, []);
});

test("a file is compared with production", async (t) => {
	const { page, problems } = await openPage(t, FLEET + "explore?query=cpu");
	const input = page.getByLabel("Profiles to open");
	await input.setInputFiles({ name: "mine.pb.gz", mimeType: "application/gzip", buffer: v2 });
	await addressHas(page, { query: 'file("mine.pb.gz")' });
	await flameReady(page);
	await page.getByRole("link", { name: "Compare with cpu, as stored" }).click();
	await addressHas(page, { new: 'file("mine.pb.gz")', base: "cpu", shift: "0", norm: "1" });
	await verdict(page).waitFor();
	await page.locator(".is-diff .vtable-body > div").first().waitFor();
	// The other side is a query like any other.
	await editComparison(page);
	await page.getByLabel("Base query").fill('cpu{job="demo",version="v1"}');
	const compare = page.getByRole("button", { name: "Compare", exact: true });
	await compare.click();
	await addressHas(page, { base: 'cpu{job="demo",version="v1"}' });
	const named = async () => (await verdictReady(page)).name;
	for (let tries = 1; (await named()) !== REGRESSED; tries++) {
		// In a window in which the fleet hardly ran, chance moves another function more.
		assert.ok(tries < 12, await verdict(page).innerText());
		await page.waitForTimeout(10000);
		await editComparison(page);
		await compare.click();
	}
	assert.deepEqual(problems, []);
});

test("the query of a file is edited as any other", async (t) => {
	const { page, problems } = await openPage(t, server.base + "explore");
	await drop(page, { "a.folded": "main;f 30\nmain;g 10\n" });
	await addressHas(page, { query: 'file("a.folded")' });
	await flameReady(page);
	assert.deepEqual((await names(page)).sort(), ["f", "g", "main", "total"]);
	const text = 'ignore(file("a.folded"), "^g$")';
	await page.getByLabel("Query", { exact: true }).fill(text);
	await page.keyboard.press("Enter");
	await addressHas(page, { query: text });
	await page.waitForFunction(() => !window.__epi.drawn().some((n) => n.name === "g"));
	await flameReady(page);
	assert.deepEqual((await names(page)).sort(), ["f", "main", "total"]);
	assert.deepEqual(problems, []);
});

test("profiles are opened from every page, also where other files are taken", async (t) => {
	const { page, problems } = await openPage(t, `${server.base}services`);
	for (const path of ["services", "alerts", "rules", "targets", "service-discovery", "senders", "status", "symbols", "flags"]) {
		await page.goto(server.base + path);
		await page.locator("main h1").waitFor();
		const name = `${path}.folded`;
		// Symbols takes debug data, and leaves profiles to the page.
		await drop(page, { [name]: "main;f 30\nmain;g 10\n" }, path === "symbols" ? ".drop" : ".drop-here");
		await addressHas(page, { query: `file("${name}")` });
		await flameReady(page);
		assert.deepEqual((await names(page)).slice(0, 2), ["total", "main"], path);
	}
	await page.goto(`${server.base}status`);
	await drop(page, { "a.pb.gz": v1, "b.pb.gz": v2 });
	await page.waitForURL((u) => (u.searchParams.get("new") ?? "").startsWith("file("));
	assert.deepEqual(problems, []);
});

test("what is no profile is refused in words; a reload says what is gone", async (t) => {
	const { page } = await openPage(t, server.base + "explore");
	const refused = page.getByRole("alert").getByText("notes.txt: folded stacks: line 1");
	await drop(page, { "notes.txt": "nothing to see here\n" });
	await refused.waitFor();
	await page.getByRole("button", { name: "Close the error" }).click();
	await refused.waitFor({ state: "detached" });
	await drop(page, { "notes.txt": "nothing to see here\n" });
	await refused.waitFor();
	await page.getByRole("textbox", { name: "Query" }).fill("goroutine");
	await page.getByRole("button", { name: "Run", exact: true }).click();
	await refused.waitFor({ state: "detached" });
	await drop(page, { "a.folded": "main;f 30\n" });
	await flameReady(page);
	await page.reload();
	await page.getByText("a.folded was not uploaded, so the reload dropped the file").waitFor();
	await drop(page, { "a.folded": "main;f 30\n" });
	await flameReady(page);
});

test("a file that is dropped at a query node opens at another one", async (t) => {
	const store = await new S3Fake().listen();
	t.after(() => store.close());
	const config = `bucket: {endpoint: "${store.endpoint}", bucket: ${store.bucket}, access_key: ${store.accessKey}, secret_key: ${store.secretKey}}\n`;
	const [one, two] = await Promise.all([["--web.enable-files"], []].map(async (flags) => {
		const node = await startServer({ files: { "e.yml": config }, flags: ["--mode=query", ...flags] });
		t.after(() => node.stop());
		return node;
	}));
	const { page, problems } = await openPage(t, one.base + "explore");
	await drop(page, { "a.folded": "main;f 30\nmain;g 10\n" });
	await flameReady(page);
	await fileRow(page, "a.folded").getByRole("button", { name: "Keep", exact: true }).click();
	await page.waitForURL((u) => /^file\("[0-9a-f]{32}"\)$/.test(u.searchParams.get("query") ?? ""));
	assert.deepEqual(problems, []);

	const other = await openPage(t, two.base + page.url().slice(one.base.length));
	await flameReady(other.page);
	assert.deepEqual((await names(other.page)).sort(), ["f", "g", "main", "total"]);
	await fileRow(other.page, "a.folded").getByText("On the server until").waitFor();
	// This one was started without the flag.
	await drop(other.page, { "b.folded": "main;h 30\n" });
	await other.page.getByText("start the server with --web.enable-files").waitFor();
	assert.deepEqual(other.problems, []);
});

test("on a narrow screen everything is reached", async (t) => {
	const { page, problems } = await openPage(t, server.base + "explore", {
		viewport: { width: 390, height: 800 },
	});
	await drop(page, { "a.folded": "main;f 30\nmain;g 10\n" });
	await flameReady(page);
	assert.deepEqual(await page.evaluate(cutOff), []);
	await fileRow(page, "a.folded").getByRole("button", { name: "Keep", exact: true }).waitFor();
	assert.deepEqual(problems, []);
});

test("the type of a recording is shown whole", async (t) => {
	const { page } = await openPage(t, `${server.base}explore`, { viewport: { width: 1440, height: 900 } });
	await drop(page, { "app.jfr.gz": readFileSync("tests/proto/jfr/recordings/async.jfr.gz") });
	const select = page.getByRole("combobox", { name: "Type of app.jfr.gz" });
	await select.waitFor();
	const cut = await select.evaluate((s) => {
		const { font, paddingLeft } = getComputedStyle(s);
		const ctx = document.createElement("canvas").getContext("2d");
		ctx.font = font;
		const longest = Math.max(...[...s.options].map((o) => ctx.measureText(o.text).width));
		return { room: s.clientWidth - parseFloat(paddingLeft), longest };
	});
	assert.ok(cut.longest > 170 && cut.room >= cut.longest, JSON.stringify(cut));
});
