// A function's lines with their cost: without the code, beside a file that is dropped, beside what a debuginfod server
// has, with links.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test, { after } from "node:test";
import {
	addressHas,
	api,
	clickNode,
	closeBrowser,
	countComes,
	cutOff,
	drawn,
	explore,
	fixedWindow,
	flameReady,
	fleetApi,
	openFleet,
	openPage,
	params,
	QUERY,
	shot,
	startServer,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

after(closeBrowser);

const DEMO = ["examples/demo", "../../examples/demo"].find((d) => existsSync(d));
const demoText = (name) => readFileSync(join(DEMO, name), "utf8");
const linesOf = (text) => text.replace(/\n$/, "").split("\n");

const listing = (page) => page.getByRole("table", { name: /^Lines of / });
const rows = (page) => page.evaluate(() => window.__epi.source());
/** Waits until there are rows, with or without code. */
const rowsAre = (page, withCode) =>
	page.waitForFunction((want) => {
		const all = window.__epi?.source?.();
		return all?.length > 0 && all.some((r) => r.text !== null) === want;
	}, withCode);

/** Drops files on the page, as a file manager does: [name, text]. */
const drop = (page, files) =>
	page.evaluate((files) => {
		const dataTransfer = new DataTransfer();
		for (const [name, text] of files) dataTransfer.items.add(new File([text], name));
		for (const type of ["dragover", "drop"])
			document.querySelector("main").dispatchEvent(
				new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }),
			);
	}, files);

/** Costs by line, as the API has them. */
async function costsOf(query, w) {
	const { result } = await fleetApi("query", { query, start: w.from, end: w.to });
	return new Map(result.map((e) => [Number(e.metric.line), Number(e.value[1])]));
}

/** The costliest drawn function of the demo's work.go, which profiles name by its whole path. */
async function someWork(page) {
	const names = [...demoText("work.go").matchAll(/^func (\w+)/gm)].map((m) => `main.${m[1]}`);
	const node = (await drawn(page))
		.filter((n) => names.includes(n.name) && n.w > 12)
		.sort((a, b) => b.total - a.total)[0];
	assert.ok(node, "a function of work.go is drawn");
	return node;
}

test("from the flame graph to the lines, and a dropped file beside them", async (t) => {
	const w = await fixedWindow(120);
	const asked = [];
	const { page, problems } = await openFleet(t, explore({ query: QUERY, ...w, view: "flame" }), {
		before: (p) => p.on("request", (r) => asked.push(`${r.method()} ${new URL(r.url()).pathname.split("/").pop()}`)),
	});
	await flameReady(page);
	const { name } = await someWork(page).then(async (node) => {
		await clickNode(page, node, { button: "right" });
		return node;
	});
	await page.getByRole("menuitem", { name: "Source" }).click();
	await addressHas(page, { src: name });
	await rowsAre(page, false);
	// Without the code: lines, costs, and what to do.
	const frames = `{function="${name}"}`;
	const places = await fleetApi("query", { query: `cum by (filename, line) (merge(${QUERY}), ${frames})`, start: w.from, end: w.to });
	const file = places.result[0].metric.filename;
	assert.match(file, /\/examples\/demo\/work\.go$/);
	const [flat, cum] = await Promise.all(
		["flat", "cum"].map((cost) => costsOf(`${cost} by (filename, line) (merge(${QUERY}), {filename="${file}"})`, w)),
	);
	const check = (all) => {
		const costly = all.filter((r) => r.cum || r.flat);
		assert.deepEqual(
			costly.map((r) => [r.line, r.flat, r.cum]),
			[...cum].sort(([a], [b]) => a - b).map(([line, cost]) => [line, flat.get(line) ?? 0, cost]),
		);
		const own = new Set(places.result.map((e) => Number(e.metric.line)));
		assert.deepEqual(costly.filter((r) => r.own).map((r) => r.line), [...own].sort((a, b) => a - b));
	};
	check(await rows(page));
	await page.getByText("To see the code").waitFor();
	await page.getByText("in the configuration adds links to your repository").waitFor();
	await shot(page, "source-lines");
	// Another file is said, and not shown.
	await drop(page, [["rework.go", "package rework\n"]]);
	await page.getByText(`rework.go does not match the path ${file}.`).waitFor();
	// The file itself.
	const before = asked.length;
	await drop(page, [["work.go", demoText("work.go")]]);
	await rowsAre(page, true);
	const all = await rows(page);
	check(all);
	assert.deepEqual(all.map((r) => r.text), linesOf(demoText("work.go")));
	await countComes(page.getByText("Another version?"), 0);
	// It begins at the costliest line of the function, whose code and costs are beside each other.
	const most = all.filter((r) => r.own).sort((a, b) => b.cum - a.cum)[0];
	const line = listing(page).getByRole("row").filter({ has: page.getByRole("rowheader", { name: String(most.line), exact: true }) });
	await line.waitFor();
	assert.ok(await line.isVisible());
	const cells = (await line.getByRole("cell").allInnerTexts()).map((s) => s.trim());
	assert.equal(cells[2], most.text.trim());
	assert.notEqual(cells[1], "");
	const body = linesOf(demoText("work.go"));
	const begin = body.findIndex((l) => l.startsWith(`func ${name.slice("main.".length)}(`)) + 1;
	const end = body.indexOf("}", begin) + 1;
	for (const r of all.filter((r) => r.own)) assert.ok(r.line >= begin && r.line <= end, `line ${r.line}`);
	await shot(page, "source-code");
	// The file stays here: nothing is asked of the server for it.
	assert.deepEqual(asked.slice(before), []);
	// A link shows the costs, and no code: the file was in memory.
	await page.getByText("Code from work.go, dropped here").waitFor();
	await page.getByRole("button", { name: "Forget" }).click();
	await rowsAre(page, false);
	check(await rows(page));
	// Callers and callees, and from one of its lines back here.
	await page.getByRole("button", { name: "Callers and callees" }).click();
	await addressHas(page, { src: undefined, fn: name });
	await page.waitForFunction(() => window.__epi.table("lines")?.length > 0);
	const first = (await page.evaluate(() => window.__epi.table("lines")))[0];
	await page.getByRole("region", { name: "Lines" }).locator(".vtable-body > div").first().click();
	await addressHas(page, { src: name, file, line: String(first.line) });
	await page.locator(".listing .marked").waitFor();
	// Escape closes it: the sandwich is below.
	await page.locator(".source h2").press("Escape");
	await addressHas(page, { src: undefined, file: undefined, line: undefined, fn: name });
	assert.deepEqual(problems, []);
});

test("from the table, in a comparison, and on a phone", async (t) => {
	const w = await fixedWindow(120);
	const [next, base] = ["v2", "v1"].map((v) => `cpu{job="demo",version="${v}"}`);
	const path = `compare?${new URLSearchParams({ new: next, base, ...w, shift: "0", view: "table" })}`;
	const { page, problems } = await openFleet(t, path, { viewport: { width: 1480, height: 1400 } });
	const row = page.locator(".split-table .vtable-body > div", { hasText: /main\.|^work/ }).first();
	await row.hover();
	await row.getByRole("button", { name: "Source: lines with their cost" }).click();
	await page.waitForURL(/[?&]src=/);
	await page.waitForFunction(() => window.__epi?.source()?.length > 0);
	// Costs are differences.
	const { src } = params(page);
	const top = (q) => fleetApi("query", { query: `flat(merge(${q}), {function="${src}"})`, start: w.from, end: w.to });
	const [a, b] = (await Promise.all([top(next), top(base)])).map((d) => Number(d.result[0]?.value[1] ?? 0));
	const own = (await rows(page)).filter((r) => r.own).reduce((s, r) => s + r.flat, 0);
	assert.equal(own, a - b);
	await page.setViewportSize({ width: 390, height: 900 });
	await listing(page).waitFor();
	assert.deepEqual(await page.evaluate(cutOff), []);
	await page.locator(".source").scrollIntoViewIfNeeded();
	await shot(page, "source-phone");
	assert.deepEqual(problems, []);
});

/* ---- debuginfod and links ---- */

const BUILDS = ["aa00000000000000000000000000000000000001", "bb00000000000000000000000000000000000002"];
const FILE = "/usr/src/shop/cart.c";
const CODE = 'int main(void)\n{\n\treturn cart("a < b");\n}\n';

/** A debuginfod server that has FILE of the first build alone. */
async function startDebuginfod(t) {
	const asked = [];
	const http = createServer((req, res) => {
		asked.push(req.url);
		if (req.url === `/buildid/${BUILDS[0]}/source${FILE}`) res.writeHead(200).end(CODE);
		else res.writeHead(404).end("not found");
	});
	await new Promise((done) => http.listen(0, "127.0.0.1", done));
	t.after(() => http.close());
	return { url: `http://127.0.0.1:${http.address().port}`, asked };
}

function pushBuild(base, i, value) {
	const functions = [
		{ name: "main", file: FILE, line: 1, at: 3 },
		{ name: "cart", file: "/usr/src/shop/other.c", line: 1, at: 2 },
	];
	const profile = {
		functions,
		samples: [{ stack: [0, 1], value }, { stack: [0], value: value / 2 }],
		binary: { path: "/usr/bin/shop", id: BUILDS[i] },
	};
	const args = { name: "process_cpu", job: "shop", pod: `p${i}`, service_git_ref: `v${i}` };
	return push(base, args, cpuProfile(profile));
}

test("code from a debuginfod server, a build of several, and a link to each line", async (t) => {
	const debuginfod = await startDebuginfod(t);
	const server = await startServer({
		files: {
			"e.yml":
				`debuginfod: [{url: "${debuginfod.url}", source: true, allow_paths: ["/usr/bin/.*"]}]\n` +
				"source_links: [{path: '/usr/src/(?P<file>.+)', " +
				"template: 'https://git.example/${service_git_ref}/${file}#L${line}'}]\n",
		},
		flags: ["--web.enable-ingest"],
	});
	t.after(() => server.stop());
	await pushBuild(server.base, 0, 4e9);
	await pushBuild(server.base, 1, 1e9);
	const path = explore({ query: 'cpu{job="shop"}', range: "1h", src: "main" });
	const { page, problems } = await openPage(t, server.base + path);
	await rowsAre(page, true);
	const all = await rows(page);
	assert.deepEqual(all.map((r) => r.text), linesOf(CODE));
	assert.deepEqual(all.filter((r) => r.cum).map((r) => [r.line, r.flat, r.cum, r.own]), [[3, 2.5e9, 7.5e9, true]]);
	assert.deepEqual(debuginfod.asked.filter((u) => /\/source\//.test(u)), [`/buildid/${BUILDS[0]}/source${FILE}`]);
	await page.getByText("Code from http://127.0.0.1:").waitFor();
	await page.getByText("Sum of 2 builds").waitFor();
	const link = listing(page).getByRole("link", { name: "3", exact: true });
	assert.equal(await link.getAttribute("href"), "https://git.example/v0/shop/cart.c#L3");
	const open = page.getByRole("link", { name: "Open at git.example" });
	assert.equal(await open.getAttribute("href"), "https://git.example/v0/shop/cart.c#L3");
	await shot(page, "source-debuginfod");
	// The other build alone: its costs, its link, and no code.
	await page.getByRole("combobox", { name: "Build" }).selectOption(BUILDS[1]);
	await addressHas(page, { build: BUILDS[1] });
	await rowsAre(page, false);
	await page.waitForFunction(() => window.__epi.source()?.[0]?.cum === 1.5e9);
	await page.getByText("debuginfod: no debuginfod server has the file").waitFor();
	await page.waitForFunction(() =>
		document.querySelector(".source-file a")?.getAttribute("href") === "https://git.example/v1/shop/cart.c#L3");
	await countComes(page.getByText("Sum of 2 builds"), 0);
	// Where a text is dropped, the server is not asked.
	const { length } = debuginfod.asked;
	await page.getByLabel("Source files", { exact: true }).setInputFiles({ name: "cart.c", mimeType: "text/plain", buffer: Buffer.from(CODE) });
	await rowsAre(page, true);
	assert.equal(debuginfod.asked.length, length);
	// The browser reports the 404 itself.
	assert.deepEqual(problems.filter((p) => !/404/.test(p)), []);
	const settings = await api(server.base, "source_links");
	assert.deepEqual(settings, { debuginfod: true, links: 1, labels: ["service_git_ref"] });
});
