// The trees of a sandwich, and elements of a group as one tree.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { group, invert, layout } = page;

/** Nodes as `level name x total self`, one side after the other. */
function nodes(fb) {
	const f = layout.buildFlame(fb);
	const sides = f.diff ? [f.diff.base, f.diff.next] : [f];
	return Array.from({ length: f.count }, (_, i) =>
		[
			layout.levelOf(f, i),
			layout.nameOf(f, i),
			...sides.flatMap((s) => [s.x[i], s.total[i], s.self[i]]),
		].join(" "),
	);
}

// main 100: a 60 (f 60), b 40 (a 25 (f 25), other 15)
const callers = {
	format: "single",
	names: ["total", "main", "a", "b", "f", "other"],
	levels: [
		[0, 100, 0, 0],
		[0, 100, 0, 1],
		[0, 60, 0, 2, 0, 40, 0, 3],
		[0, 60, 60, 4, 0, 25, 0, 2, 0, 15, 15, 5],
		[60, 25, 25, 4],
	],
	numTicks: 100,
	maxSelf: 60,
};

test("callers are turned around: each level adds up to what passes through", () => {
	const got = invert.invertCallers(layout.buildFlame(callers), "f");
	assert.deepEqual(nodes(got), [
		"0 f 0 100 0",
		"1 a 0 85 0",
		"1 other 85 15 0",
		"2 b 0 25 0",
		"2 main 25 60 60",
		"2 b 85 15 0",
		"3 main 0 25 25",
		"3 main 85 15 15",
	]);
	const f = layout.buildFlame(got);
	for (let l = 0; l < f.levels; l++) {
		let sum = 0;
		for (let i = f.start[l]; i < f.start[l + 1]; i++) sum += f.total[i];
		for (let i = 0; i < f.start[l]; i++) sum += f.self[i]; // stacks that began before
		assert.equal(sum, 100, `level ${l}`);
	}
	assert.deepEqual(invert.neighbours(f), [
		{ name: "a", cost: 85 },
		{ name: "other", cost: 15 },
	]);
});

test("a difference is turned around on both sides", () => {
	const got = invert.invertCallers(
		layout.buildFlame({
			format: "double",
			names: ["total", "a", "b", "f"],
			levels: [
				[0, 30, 0, 0, 50, 0, 0],
				[0, 30, 0, 0, 10, 0, 1, 0, 0, 0, 0, 40, 0, 2],
				[0, 30, 30, 0, 10, 10, 3, 0, 0, 0, 0, 40, 40, 3],
			],
			numTicks: 80,
			leftTicks: 30,
			rightTicks: 50,
			maxSelf: 40,
		}),
		"f",
	);
	assert.deepEqual(nodes(got), [
		"0 f 0 30 0 0 50 0",
		"1 a 0 30 30 0 10 10",
		"1 b 30 0 0 10 40 40",
	]);
	assert.deepEqual([got.leftTicks, got.rightTicks], [30, 50]);
	assert.deepEqual(invert.neighbours(layout.buildFlame(got)), [
		{ name: "b", cost: 40, base: 0, next: 40 },
		{ name: "a", cost: -20, base: 30, next: 10 },
	]);
});

test("a function that nothing calls stands alone", () => {
	const fb = { ...callers, levels: [[0, 7, 0, 0], [0, 7, 7, 4]] };
	assert.deepEqual(nodes(invert.invertCallers(layout.buildFlame(fb), "f")), ["0 f 0 7 7"]);
	assert.deepEqual(nodes(invert.withoutRoot(fb)), ["0 f 0 7 7"]);
	const two = { ...callers, levels: [[0, 7, 0, 0], [0, 3, 3, 1, 0, 4, 4, 4]] };
	assert.equal(invert.withoutRoot(two), two);
});

const flame = (names, levels) => ({ format: "single", names, levels, numTicks: 0, maxSelf: 9 });

test("elements together: their values are the first level, as wide as their totals", () => {
	const v1 = flame(["total", "main", "x"], [[0, 10, 0, 0], [0, 10, 1, 1], [1, 9, 9, 2]]);
	const v2 = flame(["total", "x", "y"], [[0, 30, 0, 0], [0, 20, 20, 1, 0, 10, 10, 2]]);
	const element = (version, flamebearer, total) => ({
		metric: version ? { version } : {},
		unit: "count",
		total,
		profiles: 4,
		flamebearer,
	});
	const all = group.together([element("v1", v1, 10), element("v2", v2, 30)]);
	assert.equal(all.total, 40);
	assert.deepEqual(nodes(all.flamebearer), [
		"0 total 0 40 0",
		"1 v2 0 30 0",
		"1 v1 30 10 0",
		"2 x 0 20 20",
		"2 y 20 10 10",
		"2 main 30 10 1",
		"3 x 31 9 9",
	]);
	assert.equal(group.elementName({}, ["version"]), "no version");
	assert.equal(group.elementName({ a: "1", b: "2" }, ["a", "b"]), 'a="1", b="2"');
});

test("differences together keep both sides apart", () => {
	const one = (base, next) => ({
		format: "double",
		names: ["total", "f"],
		levels: [
			[0, base, 0, 0, next, 0, 0],
			[0, base, base, 0, next, next, 1],
		],
		numTicks: base + next,
		leftTicks: base,
		rightTicks: next,
		maxSelf: 1,
	});
	const all = group.combineFlames([
		{ title: "v1", flame: one(5, 1) },
		{ title: "v2", flame: one(2, 20) },
	]);
	assert.deepEqual(nodes(all), [
		"0 total 0 7 0 0 21 0",
		"1 v2 0 2 0 0 20 0",
		"1 v1 2 5 0 20 1 0",
		"2 f 0 2 2 0 20 20",
		"2 f 2 5 5 20 1 1",
	]);
	assert.deepEqual([all.leftTicks, all.rightTicks], [7, 21]);
});
