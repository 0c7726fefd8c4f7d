import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { color, functionfiles, keys, layout, names, search } = page;

// total 100: a 60 (self 10: b 30, a 20), c 40 (self 15: b 25)
const single = {
	format: "single",
	names: ["total", "a", "b", "c"],
	levels: [
		[0, 100, 0, 0],
		[0, 60, 10, 1, 0, 40, 15, 3],
		[10, 30, 30, 2, 0, 20, 20, 1, 15, 25, 25, 2],
	],
	numTicks: 100,
	maxSelf: 30,
};

// base: a 50, b 50; new: a 100 (with d 60, self 40), b gone, c 20
const double = {
	format: "double",
	names: ["total", "a", "b", "c", "d"],
	levels: [
		[0, 100, 0, 0, 120, 0, 0],
		[0, 50, 50, 0, 100, 40, 1, 0, 50, 50, 0, 0, 0, 2, 0, 0, 0, 0, 20, 20, 3],
		[50, 0, 0, 40, 60, 60, 4],
	],
	numTicks: 220,
	leftTicks: 100,
	rightTicks: 120,
	maxSelf: 60,
};

test("a tree is decoded into columns", () => {
	const f = layout.buildFlame(single);
	assert.deepEqual([f.count, f.levels, f.width], [6, 3, 100]);
	assert.deepEqual([...f.start], [0, 1, 3, 6]);
	assert.deepEqual([...f.x], [0, 0, 60, 10, 40, 75]);
	assert.deepEqual([...f.total], [100, 60, 40, 30, 20, 25]);
	assert.deepEqual([...f.self], [0, 10, 15, 30, 20, 25]);
	assert.deepEqual([...f.parent], [-1, 0, 0, 1, 1, 2]);
	assert.deepEqual(
		[...f.name].map((n) => f.names[n]),
		["total", "a", "c", "b", "a", "b"],
	);
});

test("nodes are found by place, and their family", () => {
	const f = layout.buildFlame(single);
	assert.equal(layout.nodeAt(f, 0, 99.9), 0);
	assert.equal(layout.nodeAt(f, 1, 59.9), 1);
	assert.equal(layout.nodeAt(f, 1, 60), 2);
	assert.equal(layout.nodeAt(f, 2, 5), -1);
	assert.equal(layout.nodeAt(f, 2, 70), -1);
	assert.equal(layout.nodeAt(f, 2, 75), 5);
	assert.equal(layout.nodeAt(f, 3, 1), -1);
	assert.equal(layout.nodeAt(f, -1, 1), -1);
	assert.deepEqual(layout.flameChildren(f, 0), [1, 3]);
	assert.deepEqual(layout.flameChildren(f, 1), [3, 5]);
	assert.deepEqual(layout.flameChildren(f, 2), [5, 6]);
	assert.deepEqual(layout.ancestry(f, 4), [0, 1, 4]);
	assert.deepEqual(
		[0, 1, 2, 3, 4, 5].map((i) => layout.levelOf(f, i)),
		[0, 1, 1, 2, 2, 2],
	);
});

test("a call path keeps its hash where the tree around it changes", () => {
	const f = layout.buildFlame(single);
	const other = layout.buildFlame({
		format: "single",
		names: ["total", "z", "b", "a"],
		levels: [
			[0, 9, 0, 0],
			[0, 5, 5, 1, 0, 4, 1, 3],
			[6, 3, 3, 2],
		],
		numTicks: 9,
		maxSelf: 5,
	});
	assert.equal(layout.findPath(other, parseInt(layout.pathId(f, 3), 16)), 3); // total, a, b
	assert.equal(layout.findPath(other, f.path[5]), -1); // total, c, b
	assert.equal(new Set(f.path).size, f.count);
});

test("a difference keeps both sides and lays out their sum", () => {
	const f = layout.buildFlame(double);
	assert.deepEqual([...f.diff.base.x], [0, 0, 50, 100, 50]);
	assert.deepEqual([...f.diff.next.x], [0, 0, 100, 100, 40]);
	assert.deepEqual([...f.x], [0, 0, 150, 200, 90]);
	assert.deepEqual([...f.total], [220, 150, 50, 20, 60]);
	assert.deepEqual([...f.parent], [-1, 0, 0, 0, 1]);
	assert.deepEqual([f.diff.baseTotal, f.diff.nextTotal, f.width], [100, 120, 220]);
	layout.setWidthMode(f, "new");
	assert.deepEqual([[...f.total], f.width], [[120, 100, 0, 20, 60], 120]);
	layout.setWidthMode(f, "base");
	assert.deepEqual([[...f.total], f.width], [[100, 50, 50, 0, 0], 100]);
	assert.deepEqual([...f.parent], [-1, 0, 0, 0, 1]);
});

test("the change of cost runs from -1 to 1", () => {
	const f = layout.buildFlame(double);
	assert.ok(Math.abs(layout.costChange(f, 0) - 1 / 6) < 1e-12); // 100 to 120
	assert.equal(layout.costChange(f, 1), 0.5); // 50 to 100
	assert.equal(layout.costChange(f, 2), -1);
	assert.equal(layout.costChange(f, 3), 1);
	assert.equal(layout.costChange(layout.buildFlame(single), 1), 0);
});

/** A difference of flat functions below the root: `[name, base, new]`. */
const sides = (...rows) => {
	const at = (side) => rows.reduce((n, r) => n + r[side], 0);
	return layout.buildFlame({
		format: "double",
		names: ["total", ...rows.map((r) => r[0])],
		levels: [
			[0, at(1), 0, 0, at(2), 0, 0],
			rows.flatMap(([, b, n], i) => [0, b, b, 0, n, n, i + 1]),
		],
		numTicks: at(1) + at(2),
		maxSelf: 0,
		leftTicks: at(1),
		rightTicks: at(2),
	});
};
const drawnColors = (f, p) =>
	[...color.nodePixels(f, p, null, color.namePixels(f, p, "package"))].map(color.pixelColor);

test("where one function costs more, the unchanged ones are grey", () => {
	for (const theme of ["light", "dark"]) {
		const p = color.makePalette(theme);
		const f = sides(["a.calm", 1000, 1000], ["a.hot", 100, 900], ["a.noise", 500, 490]);
		const grey = color.diffColor(0, p);
		const [, calm, hot, noise] = drawnColors(f, p);
		assert.deepEqual([calm, noise], [grey, grey], "not the colour of less");
		assert.notEqual(hot, grey);
	}
});

test("tiny functions that come and go do not shine", () => {
	const f = sides(["a.calm", 1e6, 1e6], ["a.tiny", 0, 100]);
	assert.ok(layout.costChange(f, 2) < 0.05, String(layout.costChange(f, 2)));
	assert.equal(layout.costChange(sides(["a.calm", 1e6, 1e6], ["a.new", 0, 1e5]), 2), 1);
});

test("an empty side: the colours of packages, and no wall of one colour", () => {
	const p = color.makePalette("light");
	for (const rows of [
		[["a.F", 0, 10], ["b.G", 0, 90]],
		[["a.F", 10, 0], ["b.G", 90, 0]],
	]) {
		const f = sides(...rows);
		assert.equal(layout.comparable(f), false);
		assert.deepEqual(drawnColors(f, p), color.nameColors(f.names, p));
	}
});

test("what is not a flame graph is refused", () => {
	for (const [fb, message] of [
		[{ ...single, format: "triple" }, "flame graph: unknown format triple"],
		[
			{ ...single, levels: [[0, 100, 0]] },
			"flame graph: level 0 holds 3 numbers, not groups of 4",
		],
		[{ ...single, levels: [[0, 100, 0, 9]] }, "flame graph: level 0 names function 9 of 4"],
	])
		assert.throws(() => layout.buildFlame(fb), { message });
	assert.equal(layout.buildFlame({ ...single, levels: [] }).count, 0);
});

/** Fifty levels of `per` nodes below the root. */
function wide(per) {
	const levels = [[0, 1e9, 0, 0]];
	for (let l = 0; l < 50; l++) {
		const row = [];
		for (let i = 0; i < per; i++) row.push(0, 1e9 / per, 0, 1 + ((i + l) % 3));
		levels.push(row);
	}
	return { ...single, levels, numTicks: 1e9 };
}

/** How many numbers of its columns fn() reads and writes; a function of the columns touches all. */
function touched(fn) {
	let n = 0;
	const counted = (column) =>
		new Proxy(column, {
			get(of, key) {
				const v = of[key];
				n += typeof v === "function" ? of.length : 1;
				return typeof v === "function" ? v.bind(of) : v;
			},
			set(of, key, v) {
				n++;
				of[key] = v;
				return true;
			},
		});
	const kinds = { Float64Array, Uint32Array, Int32Array };
	for (const [name, kind] of Object.entries(kinds))
		globalThis[name] = new Proxy(kind, {
			construct: (of, args) => counted(new of(...args)),
			get: (of, key) => (key === "from" ? of.from.bind(of) : of[key]),
		});
	try {
		fn();
	} finally {
		Object.assign(globalThis, kinds);
	}
	return n;
}

test("100,000 nodes are laid out, each touched a few times however many there are", () => {
	const f = layout.buildFlame(wide(2000));
	assert.equal(f.count, 100001);
	assert.equal(f.parent[f.count - 1], f.count - 1 - 2000);
	for (const per of [20, 200]) {
		const n = touched(() => layout.buildFlame(wide(per)));
		const each = n / (50 * per + 1);
		assert.ok(each > 5 && each < 40, `${each} numbers for each of ${per} a level`);
	}
});

test("search counts each stack once", () => {
	const f = layout.buildFlame(single);
	const hit = (re) => {
		const m = search.search(f, re);
		return [m.total, m.names, m.nodes];
	};
	assert.deepEqual(hit(/^a$/), [60, 1, 2]);
	assert.deepEqual(hit(/^b$/), [55, 1, 2]);
	assert.deepEqual(hit(/^[ab]$/), [85, 2, 4]);
	assert.deepEqual(hit(/total/), [0, 1, 0]);
	assert.deepEqual(hit(/nothing/), [0, 0, 0]);
	assert.equal(search.searchName(f, "b").total, 55);
	assert.equal(search.searchName(f, "").total, 0);
});

test("case matters once the pattern has upper case", () => {
	assert.ok(search.compilePattern("json").test("encoding/JSON"));
	assert.ok(!search.compilePattern("Json").test("encoding/json"));
	assert.ok(search.compilePattern("\\Wjson").test("/JSON"));
	assert.throws(() => search.compilePattern("("));
});

test("packages", () => {
	for (const [name, want] of [
		["main.work", "main"],
		["encoding/json.(*decodeState).object", "encoding/json"],
		["github.com/a/b/v2.(*T).M", "github.com/a/b/v2"],
		["slices.SortFunc[go.shape.[]github.com/x/y.T,go.shape.int]", "slices"],
		["gopkg.in/yaml%2ev3.Unmarshal", "gopkg.in/yaml%2ev3"],
		["runtime.main.func1", "runtime"],
		["leveldb::DBImpl::Write(leveldb::WriteOptions const&)", "leveldb"],
		["core::fmt::write", "core"],
		["head_append", "head"],
		["memcpy", "memcpy"],
		["/usr/lib/libc.so.6", "libc.so.6"],
		["[kernel]", "[kernel]"],
	])
		assert.equal(names.packageOf(name), want, name);
});

test("a package keeps its colour, the frame around it stays neutral", () => {
	const p = color.makePalette("light");
	const names = ["total", "a/b.F", "a/b.G", "other", "runtime.mallocgc"];
	const got = color.nameColors(names, p);
	assert.deepEqual(color.nameColors(["total", "a/b.F"], p), got.slice(0, 2));
	const hue = p.hues.find((shades) => shades.includes(got[1]));
	assert.ok(hue.includes(got[2]));
	assert.deepEqual([got[0], got[3]], [p.neutral, p.neutral]);
	assert.ok(p.runtime.includes(got[4]));
});

test("more is orange, less is blue, no change is grey", () => {
	for (const theme of ["light", "dark"]) {
		const p = color.makePalette(theme);
		const rgb = (change) => color.diffColor(change, p).match(/\d+/g).map(Number);
		const [grey, more, less] = [rgb(0), rgb(1), rgb(-1)];
		assert.ok(Math.max(...grey) - Math.min(...grey) <= 2, theme);
		assert.ok(more[0] > more[1] + 30 && more[1] > more[2] + 20, theme);
		assert.ok(less[2] > less[1] + 20 && less[1] > less[0] + 20, theme);
		// Without the third kind of cone red and green are one: blue tells them apart.
		assert.ok(less[2] > more[2] + 70, theme);
		assert.deepEqual(rgb(7), more);
		assert.ok(rgb(0.1)[0] - rgb(0.1)[1] > 5, "a small change shows");
	}
});

test("text on every colour can be read", () => {
	const lum = (s) => {
		const v = s.startsWith("#")
			? s
					.slice(1)
					.match(/../g)
					.map((h) => parseInt(h, 16))
			: s.match(/\d+/g).map(Number);
		const [r, g, b] = v
			.map((c) => c / 255)
			.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	for (const theme of ["light", "dark"]) {
		const p = color.makePalette(theme);
		const grounds = [...p.hues.flat(), ...p.runtime, ...p.diff, ...p.heat, p.neutral, p.match];
		for (const [text, c] of [...grounds.map((g) => [p.text, g]), [p.textDim, p.dim]]) {
			const [a, b] = [lum(c), lum(text)].sort((x, y) => y - x);
			assert.ok((a + 0.05) / (b + 0.05) >= 4.5, `${theme} ${text} on ${c}`);
		}
	}
});

test("a share is warmer the larger it is", () => {
	const p = color.makePalette("light");
	const steps = [0, 0.0005, 0.005, 0.05, 0.5, 1].map((s) => p.heat.indexOf(color.heatColor(s, p)));
	assert.deepEqual(
		steps,
		[...steps].sort((a, b) => a - b),
	);
	assert.deepEqual([steps[0], steps[1], steps[5]], [0, 0, p.heat.length - 1]);
});

test("colours by file, and by package where no file is known", () => {
	const p = color.makePalette("dark");
	const f = layout.buildFlame({
		...single,
		names: ["total", "p.F", "p.G", "p.H"],
		files: ["", "/a.go", "/b.go"],
		nameFiles: [0, 1, 2, 0],
		nameLines: [0, 7, 8, 0],
	});
	const row = (c) => p.hues.findIndex((shades) => shades.includes(c));
	const rows = color.fileColors(f, p).map(row);
	assert.equal(rows[0], -1);
	assert.equal(new Set(rows.slice(1)).size, 3);
	assert.equal(rows[3], row(color.nameColors(f.names, p)[3]));
	assert.deepEqual([1, 3].map((n) => layout.fileOf(f, n)), ["/a.go", ""]);
	assert.equal(layout.fileOf(layout.buildFlame(single), 1), "", "an answer without files");
});

test("a pixel is its colour", () => {
	for (const c of ["rgb(1,20,255)", "rgb(0,0,0)", "rgb(255,254,253)"])
		assert.equal(color.pixelColor(color.pixel(c)), c);
	assert.equal(color.pixel("#0114ff"), color.pixel("rgb(1,20,255)"));
});

test("files go with names into another tree", () => {
	const from = { ...single, files: ["", "/a.go"], nameFiles: [0, 1, 0, 1], nameLines: [0, 4, 0, 9] };
	const to = functionfiles.withFunctionFiles({ ...single, names: ["c", "z", "b"] }, single, from);
	assert.deepEqual([to.files, to.nameFiles, to.nameLines], [["", "/a.go"], [1, 0, 0], [9, 0, 0]]);
	assert.equal(functionfiles.withFunctionFiles(single, single), single);
});

test("arrows go up and down as on the screen", () => {
	const f = layout.buildFlame(single);
	for (const [orientation, out, back] of [
		["icicle", "ArrowDown", "ArrowUp"],
		["flame", "ArrowUp", "ArrowDown"],
	]) {
		const go = (i, key) => keys.neighbour(f, i, key, orientation);
		assert.deepEqual([go(0, out), go(1, out), go(3, out)], [1, 3, -1]);
		assert.deepEqual([go(3, back), go(1, back), go(0, back)], [1, 0, -1]);
		assert.deepEqual([go(1, "ArrowRight"), go(2, "ArrowRight"), go(5, "ArrowLeft")], [2, -1, 4]);
	}
});
