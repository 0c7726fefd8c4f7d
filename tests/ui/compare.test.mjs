import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { compare, urlstate } = page;

const NOW = 1_800_000_000;
const get = (p) => (k) => p.get(k);
const sides = (text, now = NOW) => compare.sidesFromParams(get(new URLSearchParams(text)), now);
/** The sides after a patch of the address. */
const after = (text, patch, now = NOW) =>
	compare.sidesFromParams(get(urlstate.patchParams(new URLSearchParams(text), patch)), now);
const w = (start, end) => ({ start, end });

test("both windows are what the address says", () => {
	for (const [text, next, base, shift] of [
		["", w(NOW - 900, NOW), w(NOW - 1800, NOW - 900), "prev"],
		["range=1h&shift=1d", w(NOW - 3600, NOW), w(NOW - 90000, NOW - 86400), "1d"],
		["from=1000&to=1060&shift=0", w(1000, 1060), w(1000, 1060), "0"],
		["from=1000&to=1060&bfrom=5&bto=25", w(1000, 1060), w(5, 25), "own"],
	])
		assert.deepEqual(sides(text), { next, base, point: null, shift }, text);
});

test("around a point both windows are equally long, and none lies in the future", () => {
	assert.deepEqual(sides("point=1000&range=1m"), {
		next: w(1000, 1060),
		base: w(940, 1000),
		point: 1000,
		shift: "point",
	});
	const late = sides(`point=${NOW - 30}&range=1h`);
	assert.deepEqual(late.next, w(NOW - 30, NOW));
	assert.deepEqual(late.base, w(NOW - 60, NOW - 30));
	// The address has the length of the windows, so it shows the same later.
	const patch = compare.choosePoint(sides("range=1h"), NOW - 30, NOW);
	assert.equal(patch.range, "30s");
	assert.deepEqual(after("range=1h&shift=1d", patch, NOW + 5000).next, w(NOW - 30, NOW));
});

test("one side's window changes, the other stays", () => {
	for (const text of ["point=1000&range=1m", "from=1000&to=1060&shift=1m"]) {
		const was = sides(text);
		const base = after(text, compare.chooseBase(was, w(5, 9)));
		assert.deepEqual([base.next, base.base], [was.next, w(5, 9)], text);
		const next = after(text, compare.chooseNew(was, w(5, 9)));
		assert.deepEqual(next.next, w(5, 9), text);
		assert.equal(next.point, null);
	}
	const kept = after(
		"point=1000&range=1m",
		compare.chooseRange(sides("point=1000&range=1m"), { kind: "relative", seconds: 20 }),
	);
	assert.deepEqual([kept.point, kept.next], [1000, w(1000, 1020)]);
	const swapped = after("point=1000&range=1m", compare.swapped(sides("point=1000&range=1m")));
	assert.deepEqual([swapped.next, swapped.base], [w(940, 1000), w(1000, 1060)]);
});

test("presets say so, and only where they are", () => {
	const midnight = new Date(NOW * 1000).setHours(0, 0, 0, 0) / 1000;
	const want = [
		[w(NOW - 3600, NOW), 86400],
		[w(NOW - 3600, NOW), 3600],
		[w(midnight, NOW), 7 * 86400],
	];
	for (const [i, preset] of compare.COMPARE_PRESETS.entries()) {
		const p = urlstate.patchParams(new URLSearchParams("point=7&bfrom=1&bto=2"), preset.patch(NOW));
		const got = compare.sidesFromParams(get(p), NOW);
		const [next, away] = want[i];
		assert.deepEqual(got.next, next, preset.text);
		assert.deepEqual(got.base, w(next.start - away, next.end - away), preset.text);
		assert.deepEqual(
			compare.COMPARE_PRESETS.map((other) => other.on(get(p))),
			compare.COMPARE_PRESETS.map((other) => other === preset),
			preset.text,
		);
	}
});

test("what surrounds a window ends now; unequal windows are told", () => {
	assert.deepEqual(compare.surroundings(w(100, 200), 1000), w(0, 300));
	assert.deepEqual(compare.surroundings(w(100, 200), 220), w(0, 220));
	assert.deepEqual(compare.surroundings(w(100, 200), 150), w(0, 200));
	assert.equal(compare.unequalLengths(sides("range=1m")), "");
	assert.match(
		compare.unequalLengths(sides("from=0&to=60&bfrom=0&bto=10")),
		/^The windows are 10s \(base\) and 1m \(new\) long/,
	);
	assert.equal(compare.scale(50, 100), 2);
	assert.equal(compare.scale(0, 100), 1);
});

test("links from Explore", () => {
	const q = "top(3, merge(cpu))";
	const back = (p) => compare.sidesFromParams(get(new URLSearchParams(p)), NOW);
	const before = compare.compareBefore(q, w(100, 160));
	assert.deepEqual([before.new, before.base], ["merge(cpu)", "merge(cpu)"]);
	assert.deepEqual(back(before).base, w(40, 100));
	const range = compare.compareRange("cpu", w(0, 3600), w(100, 110));
	assert.deepEqual([back(range).next, back(range).base], [w(0, 3600), w(100, 110)]);
	assert.equal(range.norm, "1");
	assert.equal(back(compare.comparePoint("cpu", 500)).next.start, 500);
	assert.equal(compare.comparableQuery("diff(cpu, cpu offset 1h)", "profiles"), false);
	assert.equal(compare.comparableQuery("cpu", "selector"), true);
	assert.equal(compare.comparableQuery("flat(cpu)", "costs"), false);
});

test("two values of a label are a pair, the one that sorts last as new", () => {
	for (const [values, base, next] of [
		[["v1", "v2"], "v1", "v2"],
		[["v10", "v9"], "v9", "v10"],
		[["1.10.0", "1.9.2"], "1.9.2", "1.10.0"],
	])
		assert.deepEqual(compare.pairOfTwo("version", values), { label: "version", base, next });
	for (const values of [[], ["v1"], ["v1", "v2", "v3"]])
		assert.equal(compare.pairOfTwo("version", values), null);
});

test("the fields of a label show the link's own values", () => {
	const pair = (next, base, by) => compare.labelPair(next, base, by);
	assert.deepEqual(pair('cpu{job="a",env="x"}', 'cpu{job="a",env="y"}'), {
		label: "env",
		base: "y",
		next: "x",
	});
	assert.deepEqual(pair('cpu{job="a"}', 'cpu{job="a"}'), { label: "version", base: "", next: "" });
	assert.deepEqual(pair('cpu{job="a"}', 'cpu{job="a"}', "job"), {
		label: "job",
		base: "a",
		next: "a",
	});
	const chosen = { label: "env", base: "y", next: "x" };
	assert.deepEqual(compare.withLabels('cpu{job="a"}', "heap", chosen), {
		next: 'cpu{job="a",env="x"}',
		base: 'cpu{job="a",env="y"}',
		labelled: true,
	});
	for (const no of [null, { ...chosen, base: "" }, { ...chosen, base: "x" }])
		assert.deepEqual(compare.withLabels("cpu", "heap", no), {
			next: "cpu",
			base: "heap",
			labelled: false,
		});
});

test("a comparison in one line: what both sides have once, what differs twice", () => {
	const { sidesText } = page.sidestext;
	const at = (n, b, more = {}) => ({
		next: { start: n[0], end: n[1] },
		base: { start: b[0], end: b[1] },
		...{ point: null, shift: "0", ...more },
	});
	const same = at([1000, 1300], [1000, 1300]);
	const before = at([1000, 1300], [700, 1000], { shift: "prev" });
	for (const [next, base, sides, both, n, b] of [
		['cpu{job="a",version="v2"}', 'cpu{version="v1",job="a"}', same, 'cpu{job="a"}', 'version="v2"', 'version="v1"'],
		['merge(cpu{job="a"})', "cpu", same, "cpu", 'job="a"', "all"],
		["cpu", "memory", same, "", "cpu", "memory"],
		['cpu{job="a"}', 'memory{job="a",pod="b"}', same, '{job="a"}', "cpu", 'memory pod="b"'],
		['cpu{job=~"a"}', 'cpu{job="a"}', same, "cpu", 'job=~"a"', 'job="a"'],
		['focus(cpu, "f")', "cpu", same, "", 'focus(cpu, "f")', "cpu"],
		['file("a.pb")', "cpu", same, "", 'file("a.pb")', "cpu"],
		["cpu", "cpu", same, "cpu", "all", "the same"],
		['cpu{job="a"}', 'cpu{job="a"}', before, 'cpu{job="a"}', "last 5m", "the 5m before"],
		["cpu", "cpu", at([90000, 90300], [3600, 3900], { shift: "1d" }), "cpu", "last 5m", "1d before"],
		['cpu{version="v2"}', 'cpu{version="v1"}', before, "cpu", 'version="v2" last 5m', 'version="v1" the 5m before'],
	])
		assert.deepEqual(sidesText(next, base, sides, true), { both, next: n, base: b }, `${next} | ${base}`);
	const free = sidesText("cpu", "cpu", at([1000, 1300], [100, 200], { shift: "own" }), false);
	assert.match(free.next, /^1970-01-01 .*:16:40 – .*:21:40/);
	assert.match(free.base, /^1970-01-01 .*:01:40 – .*:03:20/);
	const point = sidesText("cpu", "cpu", at([1000, 1300], [700, 1000], { shift: "point", point: 1000 }), false);
	assert.match(point.next, /^5m after 1970-01-01 .*:16:40/);
	assert.equal(point.base, "5m before");
});
