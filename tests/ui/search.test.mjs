// Search: the server's answer as paths of the graph, and the place of a path in a graph that was cut.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { found, layout, place, search, subtree } = page;

/** total: a (b, other), other. A function may be called "other" too. */
const CUT = {
	format: "single",
	names: ["total", "a", "b", "other", "other"],
	levels: [
		[0, 100, 0, 0],
		[0, 60, 0, 1, 0, 15, 15, 3, 0, 25, 25, 4],
		[0, 20, 20, 2, 0, 40, 40, 4],
	],
	numTicks: 100,
	maxSelf: 40,
	other: 4,
};
/** What is left out below a, beside b. */
const PART = {
	format: "single",
	names: ["total", "a", "c", "d", "other"],
	levels: [
		[0, 40, 0, 0],
		[0, 40, 0, 1],
		[0, 30, 0, 2, 0, 10, 10, 4],
		[0, 30, 30, 3],
	],
	numTicks: 40,
	maxSelf: 30,
	other: 4,
};

const nameAt = (f, p) => p && ("node" in p ? layout.nameOf(f, p.node) : ["read", layout.nameOf(f, p.unread)]);

test("a path has a node, or a node that has to be read first", () => {
	const f = layout.buildFlame(CUT);
	const at = (path) => nameAt(f, place.pathPlace(f, path));
	assert.equal(at(["a"]), "a");
	assert.equal(at(["a", "b"]), "b");
	assert.equal(f.total[place.pathPlace(f, ["other"]).node], 15, "the function that is called so");
	assert.deepEqual(at(["a", "c"]), ["read", "other"]);
	assert.equal(f.total[place.pathPlace(f, ["a", "c", "d"]).unread], 40, "the one below a");
	assert.equal(f.total[place.pathPlace(f, ["x"]).unread], 25, "the one beside a");
	assert.equal(at(["a", "b", "x"]), null, "b has no callee");
	assert.equal(place.pathPlace(layout.buildFlame({ ...CUT, levels: [] }), ["a"]), null);
});

test("what was read is below other, and so is what is still left out there", () => {
	const f = layout.buildFlame(CUT);
	const { unread } = place.pathPlace(f, ["a", "c"]);
	const joined = subtree.withPart(f, unread, layout.buildFlame(PART), subtree.partAsk(f, unread));
	assert.equal(nameAt(joined, place.pathPlace(joined, ["a", "c", "d"])), "d");
	const next = place.pathPlace(joined, ["a", "x"]);
	assert.equal(joined.total[next.unread], 10);
});

test("folded nodes match no search", () => {
	const f = layout.buildFlame(CUT);
	const m = search.search(f, /other/);
	assert.deepEqual([m.total, m.nodes, m.names], [15, 1, 1]);
});

const matched = (names, paths) => ({ names, paths, rows: [], functions: 1, stacks: 1 });

test("paths of all elements by cost, below their names if they are together", () => {
	const elements = [
		{ metric: { pod: "a" }, matched: matched(["m", "f"], [{ total: 5, frames: [0, 1] }, { total: 1, frames: [1] }]) },
		{ metric: { pod: "b" }, matched: matched(["f", "m"], [{ left_total: 2, right_total: 1, frames: [1, 0] }]) },
		{ metric: { pod: "c" } },
	];
	assert.deepEqual(found.pathsOf(elements, true), [["a", "m", "f"], ["b", "m", "f"], ["a", "f"]]);
	assert.deepEqual(found.pathsOf(elements.slice(0, 1), false), [["m", "f"], ["f"]]);
	assert.deepEqual(found.pathsOf([], true), []);
});

test("a highlighted function is searched by its exact name, in its case", () => {
	assert.equal(found.searchText("json", ""), "json");
	assert.equal(found.searchText("json", "main.f"), "(?-i)^\\Qmain.f\\E$");
	assert.equal(found.searchText("", "main"), "(?-i)^main$");
});
