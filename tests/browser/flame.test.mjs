// The flame graph: looks, colours, the card, the menu by keyboard, exports, and its speed with
// more than 100,000 nodes. The tests make the profiles and push them into a server that they start.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import {
	addressHas,
	api,
	clickNode,
	closeBrowser,
	decode,
	drawn,
	flameReady,
	nodePoint,
	openPage,
	settled,
	shot,
	startServer,
	timed,
} from "./page.mjs";
import { cpuProfile, push } from "./pprof.mjs";

const FRAME_MS = 8;
/** The best round counts, because the machine may do other things. */
const ROUNDS = 15;

let server;

before(async () => {
	server = await startServer({
		files: { "e.yml": "scrape_configs: []\n" },
		flags: ["--web.enable-ingest"],
	});
	await pushJob("small", small());
	await pushJob("large", large());
});
after(async () => {
	await closeBrowser();
	await server?.stop();
});

const pushJob = (job, profile) => push(server.base, { name: "process_cpu", job }, cpuProfile(profile));

/** A small tree: recursion, two files, names of three languages. */
function small() {
	const functions = [
		{ name: "main.main", file: "/src/main.go", line: 10 },
		{ name: "app/tree.walk", file: "/src/tree.go", line: 20 },
		{ name: "app/tree.leaf", file: "/src/leaf.go", line: 30 },
		{ name: "leveldb::DBImpl::Get(leveldb::ReadOptions const&)", file: "/src/db.cc", line: 40 },
		{ name: "<demo::Set<T> as demo::Has>::has::h0123456789abcdef" },
	];
	const [MAIN, WALK, LEAF, GET, HAS] = [0, 1, 2, 3, 4];
	const samples = [
		{ stack: [MAIN, WALK, WALK, WALK, LEAF], value: 300e6 },
		{ stack: [MAIN, WALK, LEAF], value: 100e6 },
		{ stack: [MAIN, WALK, WALK], value: 50e6 },
		{ stack: [MAIN, GET, HAS], value: 500e6 },
		{ stack: [MAIN], value: 50e6 },
	];
	return { functions, samples };
}

/** 120,000 call paths of 3 to 60 frames. */
function large() {
	let seed = 11;
	const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
	const functions = Array.from({ length: 4000 }, (_, i) => ({
		name:
			i % 3
				? `example.com/service${i % 41}/module${i % 173}.(*Worker${i % 97}).Handle${i}`
				: `engine${i % 29}::detail::Node<int, std::allocator<int>>::visit${i}(int) const`,
		file: `/src/part${i % 211}/file${i % 997}.go`,
		line: 1 + (i % 500),
	}));
	const samples = [];
	const grow = (stack, paths) => {
		if (stack.length < 60 && (paths > 1 || (stack.length && random(5)))) {
			const kids = paths > 1 ? Math.min(paths, 1 + random(4)) : 1;
			const first = random(functions.length);
			for (let k = 0; k < kids; k++) {
				const share = Math.floor(paths / kids) + (k < paths % kids ? 1 : 0);
				grow([...stack, (first + 17 * k) % functions.length], share);
			}
			return;
		}
		// At the greatest depth the remaining paths become siblings.
		for (let k = 0; k < paths; k++) {
			const leaf = (stack[stack.length - 1] + 1 + k) % functions.length;
			samples.push({ stack: [...stack, leaf], value: (1 + random(9)) * 10e6 });
		}
	};
	grow([], 120000);
	return { functions, samples };
}

const address = (args) => "explore?" + new URLSearchParams({ range: "1h", view: "flame", ...args });
const SMALL = 'cpu{job="small"}';
const LARGE = 'cpu{job="large"}';

async function open(t, args, options) {
	const opened = await openPage(t, server.base + address(args), options);
	await flameReady(opened.page);
	return opened;
}

const names = (nodes) => nodes.map((n) => n.name.split(/[.:<(]+/).filter(Boolean)[1] ?? n.name);
/** The names of each level as drawn, from left to right. */
async function levels(page) {
	const out = [];
	for (const n of (await drawn(page)).sort((a, b) => a.level - b.level || a.x - b.x))
		(out[n.level] ??= []).push(n);
	return out.map(names);
}

timed("the frames of 100,000 nodes take 8 ms of script at most", async (t) => {
	const data = await api(server.base, "query", {
		query: `merge(${LARGE}[1h])`,
		max_nodes: 100000,
	});
	const nodes = decode(data.result[0].flamebearer);
	assert.ok(nodes.length >= 100000, `${nodes.length} nodes`);
	const { page, problems } = await open(t, { query: LARGE, nodes: "100000" });
	const mark = () => page.evaluate(() => window.__epi.flame().framesDrawn);
	const since = (n) =>
		page.evaluate((n) => {
			const { frames, framesDrawn } = window.__epi.flame();
			return frames.slice(n - framesDrawn);
		}, n);
	const at = (times, q) => times.sort((a, b) => a - b)[Math.floor(q * (times.length - 1))];
	// All script between two frames, in time of its thread, so that other programs do not count.
	const cdp = await page.context().newCDPSession(page);
	await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
	const script = async () =>
		(await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === "ScriptDuration")
			.value * 1000;
	const measure = async (what, act) => {
		let best = Infinity, said;
		for (let i = 0; i < ROUNDS && best > FRAME_MS; i++) {
			const from = await mark();
			const began = await script();
			for (let k = 0; k < 40 && (await mark()) - from < 60; k++) await act();
			const mean = ((await script()) - began) / ((await mark()) - from);
			const times = await since(from);
			assert.ok(times.length >= 60, `${what}: ${times.length} frames`);
			const [median, p95] = [at(times, 0.5), at(times, 0.95)];
			const worse = Math.max(mean, median);
			if (worse > best) continue;
			best = worse;
			said =
				`${what}: ${mean.toFixed(2)} ms a frame; ` +
				`by the clock, median ${median.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`;
		}
		t.diagnostic(said);
		assert.ok(best <= FRAME_MS, said);
	};
	const canvas = page.getByRole("img", { name: /Flame graph/ });
	await canvas.focus();
	const quiet = async () => {
		// Waits for the animation's last frame.
		for (let last = -1, now = await mark(); now !== last; now = await mark()) {
			last = now;
			await page.waitForTimeout(60);
		}
	};
	await measure("zoom", async () => {
		for (const key of ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"])
			await page.keyboard.press(key);
		await page.waitForFunction(() => location.search.includes("zoom="));
		await quiet();
		await page.keyboard.press("Escape");
		await page.waitForFunction(() => !location.search.includes("zoom="));
		await quiet();
	});
	const box = await canvas.boundingBox();
	let step = 0;
	await measure("pointer", async () => {
		for (let k = 0; k < 12; k++, step++) {
			const x = box.x + ((step * 37) % Math.floor(box.width));
			await page.mouse.move(x, box.y + 10 + ((step * 23) % 300));
			await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
		}
	});
	let down = 1;
	await measure("scroll", async () => {
		for (let k = 0; k < 12; k++) {
			await page.mouse.wheel(0, 30 * down);
			await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
		}
		down = -down;
	});
	assert.deepEqual(problems, []);
	await shot(page, "large");
});

test("orientation, order and recursion change what is drawn", async (t) => {
	const { page, problems } = await open(t, { query: SMALL });
	const before = await drawn(page);
	assert.deepEqual(await levels(page), [
		["total"],
		["main"],
		["walk", "DBImpl"],
		["leaf", "walk", "Set"],
		["walk"],
		["leaf"],
	]);
	const view = page.getByRole("button", { name: "View", exact: true });
	await view.click();
	await page.getByRole("radio", { name: /^Cost/ }).check();
	await page.waitForURL(/[?&]order=cost/);
	await settled(page);
	assert.deepEqual((await levels(page))[2], ["DBImpl", "walk"]);
	await page.getByRole("checkbox", { name: "As one frame" }).check();
	await page.waitForURL(/[?&]collapse=1/);
	await settled(page);
	assert.deepEqual(await levels(page), [
		["total"],
		["main"],
		["DBImpl", "walk"],
		["Set", "leaf"],
	]);
	const leaf = (await drawn(page)).find((n) => n.name === "app/tree.leaf");
	assert.equal(leaf.total, 400e6);
	await page.getByRole("radio", { name: /^Flame/ }).check();
	await page.waitForURL(/[?&]dir=flame/);
	await settled(page);
	const flame = await drawn(page);
	const root = flame.find((n) => n.level === 0);
	assert.ok(
		flame.every((n) => n.level === 0 || n.y < root.y),
		"the root is at the bottom",
	);
	const canvas = page.getByRole("img", { name: /Flame graph/ });
	const height = (await canvas.boundingBox()).height;
	assert.ok(Math.abs(root.y + 19 - height) < 1, `${root.y} of ${height}`);
	await page.keyboard.press("Escape");
	await page.getByRole("dialog").waitFor({ state: "detached" });
	await shot(page, "flame");
	// A click finds the node that is drawn there, and the up key moves up on the screen.
	await clickNode(page, flame.find((n) => n.name === "app/tree.walk"));
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	const { zoomed, width } = await page.evaluate(() => window.__epi.flame());
	assert.equal(zoomed, "app/tree.walk");
	const walk = (await drawn(page)).find((n) => n.name === "app/tree.walk");
	assert.ok(Math.abs(walk.w - width) < 0.5);
	await canvas.focus();
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("ArrowUp");
	await page.getByText(/^app\/tree\.leaf, 400 ms, 40\.00% of total$/).waitFor({ state: "attached" });
	await page.keyboard.press("ArrowDown");
	await page.getByText(/^app\/tree\.walk, 450 ms/).waitFor({ state: "attached" });
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !location.search.includes("zoom="));
	// A reload gives the same picture; without the parameters it is the first one again.
	await page.reload();
	await flameReady(page);
	assert.deepEqual(await drawn(page), flame);
	await page.goto(server.base + address({ query: SMALL }));
	await flameReady(page);
	assert.deepEqual(await drawn(page), before);
	assert.deepEqual(problems, []);
});

test("colours say package, file or share", async (t) => {
	const { page } = await open(t, { query: SMALL });
	const colors = async () =>
		Object.fromEntries((await drawn(page)).map((n) => [`${n.level} ${n.name}`, n.color]));
	const byPackage = await colors();
	const hue = (c) => {
		const [r, g, b] = c.match(/\d+/g).map(Number);
		return Math.round((Math.atan2(Math.sqrt(3) * (g - b), 2 * r - g - b) * 18) / Math.PI);
	};
	const WALK = "2 app/tree.walk";
	const LEAF = "3 app/tree.leaf";
	assert.ok(Math.abs(hue(byPackage[WALK]) - hue(byPackage[LEAF])) <= 1, "one package, one hue");
	await page.getByRole("button", { name: "View", exact: true }).click();
	await page.getByRole("radio", { name: "Share of total" }).check();
	await page.waitForURL(/[?&]color=share/);
	await settled(page);
	const byShare = await colors();
	assert.notDeepEqual(byShare, byPackage);
	assert.equal(byShare["0 total"], byShare["1 main.main"], "both are all of it");
	assert.notEqual(byShare[WALK], byShare["1 main.main"]);
	// If the answer has files, the hue is the file's. The canvas has the colours that were asked for.
	const data = await api(server.base, "query", { query: `merge(${SMALL}[1h])`, files: "true" });
	await page.getByRole("radio", { name: "File" }).check();
	await page.waitForURL(/[?&]color=file/);
	await settled(page);
	const byFile = await colors();
	if (data.result[0].flamebearer.files)
		assert.notEqual(hue(byFile[WALK]), hue(byFile[LEAF]), "two files, two hues");
	const node = (await drawn(page)).find((n) => n.name === "main.main");
	const pixel = await page.evaluate(({ x, y, w }) => {
		const c = document.querySelector(".flame canvas");
		const k = c.width / c.clientWidth;
		const d = c.getContext("2d").getImageData((x + w - 8) * k, (y + 9) * k, 1, 1).data;
		return `rgb(${d[0]},${d[1]},${d[2]})`;
	}, node);
	assert.equal(pixel, byFile["1 main.main"]);
});

test("the card says what a node costs, and where it is defined", async (t) => {
	const { page } = await open(t, { query: SMALL });
	const files = (await api(server.base, "query", { query: `merge(${SMALL}[1h])`, files: "true" }))
		.result[0].flamebearer.files;
	const get = (await drawn(page)).find((n) => n.name.startsWith("leveldb"));
	const p = await nodePoint(page, get);
	await page.mouse.move(p.x, p.y);
	const card = page.getByRole("tooltip");
	await card.waitFor();
	const text = (await card.innerText()).replace(/\s+/g, " ");
	assert.ok(text.startsWith(`leveldb::DBImpl::Get ${files ? "/src/db.cc:40" : "leveldb"} `), text);
	assert.match(text, /Flat 0 s 0\.00% of total Cum 500 ms 50\.00% of total/);
	assert.match(text, /Of parent 50\.00% main\.main/);
	await shot(page, "card");
});

test("the menu opens, walks and closes by keyboard", async (t) => {
	const { page, problems } = await open(t, { query: SMALL });
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	const canvas = page.getByRole("img", { name: /Flame graph/ });
	const focused = () => page.evaluate(() => document.activeElement.textContent);
	await canvas.focus();
	// total, main, the heaviest of main, the heaviest of that
	for (const key of ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "Shift+F10"])
		await page.keyboard.press(key);
	await page.getByRole("menu").waitFor();
	assert.equal(await focused(), "Zoom to this call");
	await page.keyboard.press("ArrowDown");
	assert.equal(await focused(), "Highlight everywhere");
	await page.keyboard.press("Escape");
	await page.getByRole("menu").waitFor({ state: "detached" });
	assert.ok(await canvas.evaluate((c) => c === document.activeElement), "the focus is back");
	await page.keyboard.press("ContextMenu");
	await page.getByRole("menu").waitFor();
	for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"])
		await page.keyboard.press(key);
	await page.getByRole("menu").waitFor({ state: "detached" });
	const copied = () => page.evaluate(() => navigator.clipboard.readText());
	const want =
		"main.main\nleveldb::DBImpl::Get\n" + // without parameters, as pprof shows it
		"<demo::Set<T> as demo::Has>::has::h0123456789abcdef";
	for (let i = 0; i < 1200 && (await copied()) !== want; i++) await page.waitForTimeout(50);
	assert.equal(await copied(), want);
	await page.keyboard.press("Shift+F10");
	await page.keyboard.press("Enter");
	await page.waitForURL(/[?&]zoom=/);
	await canvas.focus();
	await page.keyboard.press("/");
	assert.ok(
		await page.evaluate(() => document.activeElement.getAttribute("aria-label") === "Search"),
		"a slash goes to the search",
	);
	assert.deepEqual(problems, []);
});

test("keys lead to the query, the graph and the table", async (t) => {
	const { page, problems } = await openPage(t, server.base + address({ query: SMALL, view: "table" }));
	const at = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? "");
	const goes = (name) => page.waitForFunction((n) => (document.activeElement.getAttribute("aria-label") ?? "").startsWith(n), name);
	await page.locator(".vtable-body > div").first().waitFor();
	await page.keyboard.press("q");
	assert.equal(await at(), "Query");
	await page.keyboard.press("Control+A");
	await page.keyboard.type("gt");
	assert.equal(await page.getByRole("textbox", { name: "Query", exact: true }).inputValue(), "gt", "text in a field");
	await page.evaluate(() => document.activeElement.blur());
	await page.keyboard.press("t");
	await page.waitForFunction(() => document.activeElement.matches(".vtable-scroll"));
	// The view has no graph: it is shown first.
	await page.keyboard.press("g");
	await page.keyboard.press("g");
	await goes("Flame graph");
	await addressHas(page, { view: undefined });
	await page.keyboard.press("t");
	await page.waitForFunction(() => document.activeElement.matches(".vtable-scroll"));
	await page.keyboard.press("g");
	await page.keyboard.press("t");
	await page.waitForURL(/targets/);
	assert.deepEqual(problems, []);
});

test("SVG and PNG are the graph as seen", async (t) => {
	const look = { order: "cost", collapse: "1", dir: "flame" };
	const { page, problems } = await open(t, { query: SMALL, ...look });
	await clickNode(page, (await drawn(page)).find((n) => n.name === "app/tree.walk"));
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	const download = async (name, pixels) => {
		await page.getByRole("button", { name: "Export" }).click();
		if (pixels) await page.getByRole("combobox", { name: "Width of the picture" }).selectOption(`${pixels} px`);
		const [file] = await Promise.all([
			page.waitForEvent("download"),
			page.getByRole("button", { name }).click(),
		]);
		return { name: file.suggestedFilename(), data: readFileSync(await file.path()) };
	};
	const shown = await drawn(page);
	const { width } = await page.evaluate(() => window.__epi.flame());

	const svg = await download(/^SVG/);
	const saved = /^small-cpu-\d{4}-\d\d-\d\dT\d\d-\d\dZ-\w+\.(svg|png|pb\.gz|folded\.txt|speedscope\.json)$/;
	assert.match(svg.name, saved);
	const nodes = await page.evaluate((text) => {
		const doc = new DOMParser().parseFromString(text, "image/svg+xml");
		if (doc.querySelector("parsererror")) throw new Error(doc.documentElement.textContent);
		return [...doc.querySelectorAll("g > rect")].map((r) => ({
			name: r.parentNode.querySelector("title").textContent.split("\n")[0],
			x: Number(r.getAttribute("x")),
			y: Number(r.getAttribute("y")),
			w: Number(r.getAttribute("width")),
			text: r.parentNode.querySelector("text")?.textContent ?? "",
		}));
	}, svg.data.toString());
	assert.deepEqual(
		nodes.map((n) => n.name),
		["total", "main.main", "app/tree.walk", "app/tree.leaf"],
	);
	const walk = shown.find((n) => n.name === "app/tree.walk");
	const leaf = shown.find((n) => n.name === "app/tree.leaf");
	assert.ok(Math.abs(nodes[2].w - width) < 0.01);
	assert.ok(Math.abs(nodes[3].w / nodes[2].w - leaf.total / walk.total) < 1e-4);
	assert.deepEqual(
		nodes.map((n) => n.y),
		[57, 38, 19, 0],
		"the root is at the bottom",
	);
	assert.equal(nodes[3].text, "app/tree.leaf");

	const png = await download(/^PNG/);
	for (const pixels of [3840, 800]) {
		const { data } = await download(/^SVG/, pixels);
		const [, wide, root] = /^<svg[^>]* width="(\d+)"[\s\S]*?<title>[\s\S]*?<rect (?:[^>]*?) width="([\d.]+)"/.exec(data) ?? [];
		assert.deepEqual([Number(wide), Number(root)], [pixels, pixels], "as wide as asked");
	}
	assert.equal(png.name, svg.name.replace(/svg$/, "png"));
	// What the server sends has the same name.
	for (const [format, suffix] of [["pprof", "pb.gz"], ["folded", "folded.txt"], ["speedscope", "speedscope.json"]]) {
		await page.getByRole("button", { name: "Export" }).click();
		const [file] = await Promise.all([
			page.waitForEvent("download"),
			page.getByRole("link", { name: new RegExp(`^${format}`) }).click(),
		]);
		assert.equal(file.suggestedFilename(), svg.name.replace(/svg$/, suffix));
	}
	assert.equal(png.data.subarray(1, 4).toString(), "PNG");
	assert.deepEqual([png.data.readUInt32BE(16), png.data.readUInt32BE(20)], [2 * width, 2 * 4 * 19]);
	const pixel = await page.evaluate(
		async ({ base64, x, y }) => {
			const image = new Image();
			image.src = `data:image/png;base64,${base64}`;
			await image.decode();
			const c = document.createElement("canvas");
			[c.width, c.height] = [image.width, image.height];
			const ctx = c.getContext("2d");
			ctx.drawImage(image, 0, 0);
			const d = ctx.getImageData(x, y, 1, 1).data;
			return `rgb(${d[0]},${d[1]},${d[2]})`;
		},
		{ base64: png.data.toString("base64"), x: 2 * leaf.w - 12, y: 12 },
	);
	assert.equal(pixel, leaf.color);
	assert.deepEqual(problems, []);
});

test("a selected frame outlives a new answer; without motion a zoom jumps", async (t) => {
	const { page, problems } = await open(t, { query: SMALL }, { reducedMotion: "reduce" });
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	for (const key of ["Home", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
	const spoken = page.locator(".flame [aria-live]").getByText(/^leveldb::.*, 500 ms, 50\.00%/);
	await spoken.waitFor({ state: "attached" });
	const [answer] = await Promise.all([
		page.waitForResponse((r) => r.url().includes("max_nodes=")),
		page.getByRole("button", { name: "Run" }).click(),
	]);
	await answer.finished();
	await settled(page);
	await spoken.waitFor({ state: "attached" });
	await page.getByRole("img", { name: /Flame graph/ }).focus();
	const frames = () => page.evaluate(() => window.__epi.flame().framesDrawn);
	const before = await frames();
	await page.keyboard.press("Enter");
	await page.waitForURL(/[?&]zoom=/);
	await settled(page);
	assert.ok((await frames()) - before <= 3, "no animation");
	assert.deepEqual(problems, []);
});
