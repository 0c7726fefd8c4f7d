import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { layout, outline } = page;

// total 100: a 40 (self 15: b 25), c 60 (self 10: d 30, a 20)
const flame = layout.buildFlame({
	format: "single",
	names: ["total", "a", "b", "c", "d"],
	levels: [
		[0, 100, 0, 0],
		[0, 40, 15, 1, 0, 60, 10, 3],
		[15, 25, 25, 2, 10, 30, 30, 4, 0, 20, 20, 1],
	],
	numTicks: 100,
	maxSelf: 30,
});
const name = (node) => layout.nameOf(flame, node);
const at = (...names) => {
	let node = 0;
	for (const n of names) node = outline.callees(flame, node).find((c) => name(c) === n);
	return node;
};
const open = (...nodes) => new Set(nodes.map((n) => flame.path[n]));
const text = (rows) =>
	rows.map((r) => {
		const mark = { true: "-", false: "+", undefined: " " }[r.expanded];
		return `${"  ".repeat(r.level - 1)}${mark}${name(r.node)} ${r.position}/${r.siblings}`;
	});

test("rows of what is expanded, the most expensive first", () => {
	assert.deepEqual(text(outline.outlineRows(flame, new Set())), ["+total 1/1"]);
	assert.deepEqual(text(outline.outlineRows(flame, open(0))), [
		"-total 1/1",
		"  +c 1/2",
		"  +a 2/2",
	]);
	// A row below a collapsed one is hidden, but stays expanded.
	assert.deepEqual(text(outline.outlineRows(flame, open(at("c")))), ["+total 1/1"]);
	assert.deepEqual(text(outline.outlineRows(flame, open(0, at("c"), at("a")))), [
		"-total 1/1",
		"  -c 1/2",
		"     d 1/2",
		"     a 2/2",
		"  -a 2/2",
		"     b 1/1",
	]);
	const none = layout.buildFlame({ format: "single", names: [], levels: [], numTicks: 0, maxSelf: 0 });
	assert.deepEqual(outline.outlineRows(none, new Set()), []);
});

test("the heaviest path", () => {
	assert.deepEqual(outline.heaviestPath(flame).map(name), ["total", "c", "d"]);
	assert.deepEqual(outline.expandedTo(flame, outline.heaviestPath(flame)), open(0, at("c")));
});

test("keys", () => {
	const rows = outline.outlineRows(flame, open(0, at("c")));
	// 0 total, 1 c, 2 c/d, 3 c/a, 4 a
	for (const [key, from, want] of [
		["ArrowDown", 0, { to: 1 }],
		["ArrowDown", 4, { to: 4 }],
		["ArrowUp", 0, { to: 0 }],
		["PageDown", 0, { to: 3 }],
		["PageDown", 3, { to: 4 }],
		["PageUp", 4, { to: 1 }],
		["Home", 3, { to: 0 }],
		["End", 0, { to: 4 }],
		["ArrowRight", 0, { to: 1 }],
		["ArrowRight", 2, null],
		["ArrowRight", 4, { open: [at("a")] }],
		["ArrowLeft", 1, { close: at("c") }],
		["ArrowLeft", 3, { to: 1 }],
		["ArrowLeft", 4, { to: 0 }],
		["*", 1, { open: [at("a")] }],
		["*", 2, { open: [] }],
		["Enter", 2, { pick: at("c", "d") }],
		["x", 2, null],
		["ArrowDown", 9, null],
	])
		assert.deepEqual(outline.outlineKey(key, rows, from, 3), want, `${key} at ${from}`);
});
