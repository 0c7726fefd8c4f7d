// Rearranged flame graphs: order and recursion, against trees written by hand.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { arrange: { arrange }, layout, look, search } = page;

/** A flamebearer of `[name, self, ...children]`; a self of a difference is `[base, next]`. */
function flamebearer(root) {
	const names = [];
	const id = (n) => (names.includes(n) ? names.indexOf(n) : names.push(n) - 1);
	const sides = Array.isArray(root[1]) ? [0, 1] : [0];
	const self = (n, s) => (sides.length > 1 ? n[1][s] : n[1]);
	const total = (n, s) => self(n, s) + n.slice(2).reduce((t, c) => t + total(c, s), 0);
	const levels = [];
	const end = [];
	const place = (n, level, x) => {
		const row = (levels[level] ??= []);
		const ends = (end[level] ??= sides.map(() => 0));
		for (const s of sides) {
			row.push(x[s] - ends[s], total(n, s), self(n, s));
			ends[s] = x[s] + total(n, s);
		}
		row.push(id(n[0]));
		const at = sides.map((s) => x[s] + self(n, s));
		for (const c of n.slice(2)) {
			place(c, level + 1, at);
			for (const s of sides) at[s] += total(c, s);
		}
	};
	place(root, 0, sides.map(() => 0));
	return {
		format: sides.length > 1 ? "double" : "single",
		names,
		levels,
		numTicks: 0,
		maxSelf: 0,
		leftTicks: total(root, 0),
		rightTicks: sides.length > 1 ? total(root, 1) : 0,
	};
}

/** Back to `[name, self, ...children]`. */
function tree(f, i = 0) {
	const [from, to] = layout.flameChildren(f, i);
	const kids = [];
	for (let c = from; c < to; c++) kids.push(tree(f, c));
	const self = f.diff ? [f.diff.base.self[i], f.diff.next.self[i]] : f.self[i];
	return [layout.nameOf(f, i), self, ...kids];
}

const COST = { order: "cost", collapse: false };
const ONE = { order: "name", collapse: true };

/** Every node lies in its parent. Its self is its total without its children. */
function sound(f) {
	for (const c of f.diff ? [f, f.diff.base, f.diff.next] : [f]) {
		const inside = new Float64Array(f.count);
		for (let i = 1; i < f.count; i++) {
			const p = f.parent[i];
			assert.ok(c.x[i] >= c.x[p] && c.x[i] + c.total[i] <= c.x[p] + c.total[p], `${i}`);
			inside[p] += c.total[i];
		}
		for (let i = 0; i < f.count; i++) assert.equal(c.total[i] - inside[i], c.self[i], `${i}`);
		for (let l = 0; l < f.levels; l++)
			for (let i = f.start[l] + 1; i < f.start[l + 1]; i++)
				assert.ok(c.x[i] >= c.x[i - 1] + c.total[i - 1], `level ${l}`);
	}
}

test("what the look leaves alone is the same graph", () => {
	const f = layout.buildFlame(flamebearer(["total", 0, ["a", 1], ["b", 2]]));
	assert.equal(arrange(f, { order: "name", collapse: false }), f);
	const none = layout.buildFlame({ ...flamebearer(["total", 0]), levels: [] });
	assert.equal(arrange(none, COST), none);
});

test("siblings by cost, what is folded last, ties by name", () => {
	const f = layout.buildFlame(
		flamebearer([
			"total",
			5,
			["a", 1, ["x", 1], ["y", 7]],
			["b", 30],
			["c", 1],
			["d", 1],
			["other", 40],
		]),
	);
	const got = arrange(f, COST);
	sound(got);
	assert.deepEqual(tree(got), [
		"total",
		5,
		["b", 30],
		["a", 1, ["y", 7], ["x", 1]],
		["c", 1],
		["d", 1],
		["other", 40],
	]);
	assert.deepEqual([...got.x.subarray(0, 3)], [0, 0, 30], "children begin at the left edge");
	// The path of a node does not depend on its position.
	for (let i = 0; i < f.count; i++) {
		const k = layout.findPath(got, f.path[i]);
		assert.equal(layout.nameOf(got, k), layout.nameOf(f, i));
		assert.equal(got.total[k], f.total[i]);
	}
});

test("consecutive frames of a function become one, and their callees meet", () => {
	for (const [before, after] of [
		[
			["total", 0, ["a", 1, ["a", 2, ["a", 3]]]],
			["total", 0, ["a", 6]],
		],
		[
			["total", 0, ["a", 1, ["a", 2, ["b", 3], ["z", 1]], ["b", 4]]],
			["total", 0, ["a", 3, ["b", 7], ["z", 1]]],
		],
		[
			// Mutual recursion stays.
			["total", 0, ["a", 1, ["b", 1, ["a", 1, ["b", 5]]]]],
			["total", 0, ["a", 1, ["b", 1, ["a", 1, ["b", 5]]]]],
		],
		[
			// Callees that meet may be recursive themselves.
			["total", 0, ["a", 0, ["a", 0, ["b", 1, ["b", 2]]], ["b", 4, ["c", 8]]]],
			["total", 0, ["a", 0, ["b", 7, ["c", 8]]]],
		],
		[
			// The folded node is not a function, and neither is the root.
			["other", 0, ["other", 1, ["x", 1]], ["total", 2]],
			["other", 0, ["total", 2], ["other", 1, ["x", 1]]],
		],
	]) {
		const got = arrange(layout.buildFlame(flamebearer(before)), ONE);
		sound(got);
		assert.deepEqual(tree(got), after);
	}
});

test("both sides of a difference are collapsed and ordered alike", () => {
	const f = layout.buildFlame(
		flamebearer([
			"total",
			[0, 0],
			["a", [1, 0], ["a", [0, 5], ["b", [2, 2]]], ["b", [0, 1]]],
			["c", [9, 90]],
		]),
	);
	const one = arrange(f, ONE);
	sound(one);
	assert.deepEqual(tree(one), [
		"total",
		[0, 0],
		["a", [1, 5], ["b", [2, 3]]],
		["c", [9, 90]],
	]);
	assert.deepEqual([one.diff.baseTotal, one.diff.nextTotal], [12, 98]);
	const both = arrange(f, { order: "cost", collapse: true });
	sound(both);
	assert.deepEqual(tree(both).slice(2).map((n) => n[0]), ["c", "a"]);
	layout.setWidthMode(f, "base");
	assert.deepEqual(arrange(f, COST).width, 12);
});

test("a zoom survives collapsing", () => {
	const f = layout.buildFlame(
		flamebearer(["total", 0, ["a", 1, ["a", 2, ["b", 3, ["c", 1]]]], ["d", 1]]),
	);
	const got = arrange(f, ONE);
	for (let i = 0; i < f.count; i++) {
		const k = layout.findPath(got, f.path[i]);
		assert.equal(layout.nameOf(got, k), layout.nameOf(f, i), `${i}`);
	}
	assert.equal(layout.findPath(got, 12345), -1);
});

test("totals of functions are exact on random trees", () => {
	let seed = 7;
	const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
	const grow = (name, depth) => {
		const kids = [];
		if (depth < 9)
			for (const n of ["a", "b", "c", "d"]) if (random(5) < 2) kids.push(grow(n, depth + 1));
		return [name, random(4), ...kids];
	};
	for (let round = 0; round < 50; round++) {
		const f = layout.buildFlame(flamebearer(grow("total", 0)));
		for (const how of [COST, ONE, { order: "cost", collapse: true }]) {
			const got = arrange(f, how);
			sound(got);
			assert.equal(got.width, f.width);
			for (const n of ["a", "b", "c", "d"]) {
				assert.equal(search.searchName(got, n).total, search.searchName(f, n).total);
				const flat = (g) =>
					[...g.self].reduce((s, v, i) => (layout.nameOf(g, i) === n ? s + v : s), 0);
				assert.equal(flat(got), flat(f));
			}
			if (how.collapse)
				for (let i = 1; i < got.count; i++)
					assert.notEqual(got.name[i], got.parent[i] ? got.name[got.parent[i]] : -1);
		}
	}
});

test("a look is its address", () => {
	const read = (s) => look.lookFromParams(new URLSearchParams(s));
	assert.deepEqual(read(""), look.DEFAULT_LOOK);
	assert.deepEqual(read("dir=up&order=size&color=red&collapse=yes"), look.DEFAULT_LOOK);
	const other = { orientation: "flame", order: "cost", color: "file", collapse: true };
	assert.deepEqual(read("dir=flame&order=cost&color=file&collapse=1"), other);
	assert.deepEqual(look.lookPatch(other), {
		dir: "flame",
		order: "cost",
		color: "file",
		collapse: "1",
	});
	assert.deepEqual(look.lookPatch(look.DEFAULT_LOOK), {
		dir: null,
		order: null,
		color: null,
		collapse: null,
	});
});
