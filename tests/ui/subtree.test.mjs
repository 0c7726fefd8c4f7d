// Parts of a flame graph that are read when they are zoomed, of a server in a few lines.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { arrange, group, layout, subtree } = page;

/** Numbers that repeat from a seed. */
function random(seed) {
	let x = seed;
	return (n) => {
		x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
		return Math.floor((x / 2 ** 32) * n);
	};
}

/** A tree of names, `other` among them, with more callees than a graph shows. */
function grow(rand, depth) {
	const node = { children: new Map(), self: 1 + rand(20) };
	if (depth > 0)
		for (let i = rand(7); i >= 0; i--)
			node.children.set(rand(9) === 0 ? "other" : "f" + rand(40), grow(rand, depth - 1));
	return node;
}
const sum = (n) => (n.total = n.self + [...n.children.values()].reduce((t, c) => t + sum(c), 0));
const byName = (a, b) => (a[0] < b[0] ? -1 : 1);
const heaviest = (n) => [...n.children].sort((a, b) => b[1].total - a[1].total || byName(a, b));

/** The path to a part and the `max` heaviest nodes below it, as web/render/flame.c has them. */
function answer(root, max, path = [], skip = null) {
	let end = root;
	for (const name of path) end = end.children.get(name);
	const rest = skip === null ? end : { self: 0, children: new Map(heaviest(end).slice(skip)) };
	sum(rest);
	const kept = new Set([rest]);
	const below = (n) => heaviest(n).map(([, c]) => c);
	const next = below(rest);
	for (let n = 1; n < max && next.length; n++) {
		next.sort((a, b) => b.total - a.total);
		const taken = next.shift();
		kept.add(taken);
		next.push(...below(taken)); // of equals the same come first as in `skip`
	}
	let top = rest;
	for (const name of [...path].reverse())
		top = { self: 0, total: rest.total, children: new Map([[name, top]]), way: true };
	const names = ["total"];
	const numbers = new Map();
	let other = 0;
	const number = (name) => {
		if (!numbers.has(name)) numbers.set(name, names.push(name) - 1);
		return numbers.get(name);
	};
	const levels = [];
	let row = [{ node: top, name: 0, x: 0 }];
	while (row.length) {
		const below = [];
		let end = 0;
		levels.push(
			row.flatMap(({ node, name, x }) => {
				let at = x + node.self;
				let left = 0;
				for (const [n, c] of [...node.children].sort(byName)) {
					if (node.way || kept.has(c)) {
						below.push({ node: c, name: number(n), x: at });
						at += c.total;
					} else left += c.total;
				}
				if (left) {
					other ||= names.push("other") - 1;
					below.push({ node: { self: left, total: left, children: new Map() }, name: other, x: at });
				}
				const out = [x - end, node.total, node.self, name];
				end = x + node.total;
				return out;
			}),
		);
		row = below;
	}
	return { format: "single", names, levels, numTicks: rest.total, maxSelf: 0, ...(other ? { other } : {}) };
}

/** The same as a difference whose base has half of each cost. */
function asDiff(fb) {
	const levels = fb.levels.map((row) => {
		const out = [];
		for (let k = 0; k < row.length; k += 4) out.push(...row.slice(k, k + 3).map((v) => v / 2), ...row.slice(k, k + 4));
		return out;
	});
	return { ...fb, format: "double", levels, leftTicks: fb.numTicks / 2, rightTicks: fb.numTicks };
}

const find = (f, i) => subtree.partAsk(f, i).path.join(";");

/** Opens what is cut, the outermost first, until all is there. Returns the graph and the questions. */
function openAll(root, max, shape = (fb) => fb) {
	let f = layout.buildFlame(shape(answer(root, max)));
	let asked = 0;
	for (let i = 0; i < f.count; i++) {
		const [first, end] = layout.flameChildren(f, i);
		if (subtree.isOther(f, i) && first === end) {
			const ask = subtree.partAsk(f, i);
			const part = layout.buildFlame(shape(answer(root, max, ask.path, ask.skip)));
			const id = layout.pathId(f, i);
			const joined = subtree.withPart(f, i, part, ask);
			assert.ok(joined, `${ask.path} ${ask.skip}`);
			assert.equal(layout.pathId(joined, i), id, "what is before it keeps its place");
			assert.equal(joined.total[i], f.total[i]);
			f = joined;
			asked++;
			assert.ok(asked < 3000);
		}
	}
	return { f, asked };
}

/** Each call path of the whole with its total; of a graph with the folded nodes left out. */
function pathsOf(root) {
	const out = new Map();
	const walk = (node, path) => {
		if (path) out.set(path, node.total);
		for (const [name, c] of node.children) walk(c, path ? `${path};${name}` : name);
	};
	walk(root, "");
	return [...out].sort(byName);
}
function pathsIn(f) {
	const out = [];
	for (let i = 1; i < f.count; i++) if (!subtree.isOther(f, i)) out.push([find(f, i), f.total[i]]);
	return out.sort(byName);
}

test("every node of the whole is found by zooming, each once, with its cost", () => {
	for (let seed = 1; seed <= 12; seed++) {
		const root = { ...grow(random(seed), 4), self: 0 };
		sum(root);
		const { f, asked } = openAll(root, 2 + (seed % 9));
		assert.ok(asked > 0);
		assert.deepEqual(pathsIn(f), pathsOf(root), `seed ${seed}`);
		assert.equal(f.width, root.total);
		// Children are within their parents, from left to right.
		for (let i = 1; i < f.count; i++) {
			const p = f.parent[i];
			assert.ok(f.x[i] >= f.x[p] && f.x[i] + f.total[i] <= f.x[p] + f.total[p], `seed ${seed}`);
			if (f.parent[i - 1] === p) assert.ok(f.x[i] >= f.x[i - 1] + f.total[i - 1]);
			assert.ok(!subtree.isCut(f, i));
		}
	}
});

test("differences keep both sides", () => {
	const root = { ...grow(random(5), 3), self: 0 };
	sum(root);
	const { f } = openAll(root, 4, asDiff);
	assert.deepEqual(pathsIn(f), pathsOf(root).map(([p, t]) => [p, 1.5 * t]));
	for (let i = 0; i < f.count; i++) assert.equal(f.diff.base.total[i] * 2, f.diff.next.total[i]);
	layout.setWidthMode(f, "base");
	assert.equal(f.width, root.total / 2);
});

/** main with 3 callees, of which one is shown, and of that one callee. */
function deep() {
	const leaf = (self) => ({ self, children: new Map() });
	const work = { self: 5, children: new Map([["a", leaf(30)], ["b", leaf(20)], ["c", leaf(10)]]) };
	const main = { self: 0, children: new Map([["work", work], ["idle", leaf(9)], ["other", leaf(8)]]) };
	const root = { self: 0, children: new Map([["main", main]]) };
	sum(root);
	return root;
}
const idOf = (f, path) => {
	for (let i = 0; i < f.count; i++)
		if (layout.ancestry(f, i).slice(1).map((n) => layout.nameOf(f, n)).join(";") === path) return layout.pathId(f, i);
	throw new Error(path);
};

test("a zoom in the address names the parts that it needs, and asks for them one by one", () => {
	const root = deep();
	const base = layout.buildFlame(answer(root, 4)); // main, work, a
	const asked = [];
	const known = new Map();
	const read = (ask) => known.get(JSON.stringify(ask));
	const resolve = (zoom) => subtree.resolveZoom(base, zoom, 0, read);
	const serve = (ask) => {
		asked.push([ask.path.join(";"), ask.skip]);
		known.set(JSON.stringify(ask), layout.buildFlame(answer(root, 2, ask.path, ask.skip)));
	};
	let r = resolve("");
	assert.deepEqual([r.flame, r.read, r.ask], [base, [], null], "the root asks nothing");
	// What is whole is zoomed without a question.
	const a = subtree.zoomTo(r, idOf(base, "main;work;a"));
	r = resolve(a);
	assert.deepEqual([r.flame, r.ask, a.length], [base, null, 8]);
	// The rest of work, then the rest of that.
	const first = subtree.zoomTo(r, idOf(base, "main;work;other"));
	r = resolve(first);
	assert.deepEqual(r.ask, { path: ["main", "work"], skip: 1 });
	serve(r.ask);
	r = resolve(first);
	assert.equal(r.ask, null);
	const second = subtree.zoomTo(r, idOf(r.flame, "main;work;other;other"));
	assert.equal(second, `${first}.${idOf(r.flame, "main;work;other;other")}`);
	r = resolve(second);
	assert.deepEqual(r.ask, { path: ["main", "work"], skip: 2 });
	serve(r.ask);
	r = resolve(second);
	const c = subtree.zoomTo(r, idOf(r.flame, "main;work;other;other;c"));
	assert.equal(c.split(".").length, 3);
	// Back: no question, and the parts of other nodes are left.
	assert.equal(subtree.zoomTo(r, ""), "");
	assert.equal(subtree.zoomTo(r, first.split(".")[0]), first);
	assert.equal(resolve(first).ask, null);
	assert.deepEqual(asked, [["main;work", 1], ["main;work", 2]]);
	// A fresh page asks for the same, in order, from the address alone.
	known.clear();
	asked.length = 0;
	for (let i = 0; i < 5 && (r = resolve(c)).ask; i++) serve(r.ask);
	assert.deepEqual(asked, [["main;work", 1], ["main;work", 2]]);
	assert.equal(r.read.length, 3);
	assert.equal(layout.nameOf(r.flame, layout.zoomedNode(r.flame, r.read[2].id)), "c");
});

test("a node whose callees were left out is asked as a whole; a function may be called other", () => {
	const root = deep();
	const base = layout.buildFlame(answer(root, 4));
	const r = subtree.resolveZoom(base, idOf(base, "main"), 0, () => undefined);
	assert.deepEqual(r.ask, { path: ["main"], skip: null });
	const part = layout.buildFlame(answer(root, 10, ["main"]));
	const f = subtree.resolveZoom(base, idOf(base, "main"), 0, () => part).flame;
	assert.deepEqual(pathsIn(f), pathsOf(root));
	const i = [...f.name].findIndex((n) => f.names[n] === "other");
	assert.ok(i > 0 && !subtree.isOther(f, i), "this one is a function");
	// Beside a folded node it has another hash.
	const g = layout.buildFlame({
		format: "single",
		names: ["total", "other", "other"],
		levels: [[0, 9, 0, 0], [0, 4, 4, 1, 0, 5, 5, 2]],
		numTicks: 9,
		maxSelf: 5,
		other: 2,
	});
	assert.notEqual(layout.pathId(g, 1), layout.pathId(g, 2));
	assert.deepEqual([1, 2].map((n) => subtree.partAsk(g, n)), [
		{ path: ["other"], skip: null },
		{ path: [], skip: 1 },
	]);
	// The level of groups is a whole answer each.
	assert.equal(subtree.resolveZoom(base, idOf(base, "main"), 1, () => undefined).ask, null);
});

test("a part of other profiles is not put in", () => {
	const root = deep();
	const base = layout.buildFlame(answer(root, 4));
	root.children.get("main").children.get("work").children.get("b").self += 1;
	sum(root);
	const ask = { path: ["main", "work"], skip: 1 };
	const part = layout.buildFlame(answer(root, 9, ask.path, ask.skip));
	const r = subtree.resolveZoom(base, idOf(base, "main;work;other"), 0, () => part);
	assert.deepEqual([r.changed, r.flame, r.ask], [true, base, null]);
	const gone = layout.buildFlame({ format: "single", names: ["total"], levels: [[0, 0, 0, 0]], numTicks: 0, maxSelf: 0 });
	assert.equal(subtree.resolveZoom(base, idOf(base, "main;work;other"), 0, () => gone).changed, true);
});

test("groups together keep what is folded apart from functions of that name", () => {
	const element = (v) => ({ title: v, flame: answer(deep(), 4) });
	const f = layout.buildFlame(group.combineFlames([element("v1"), element("v2")]));
	const others = [...f.name.keys()].filter((i) => subtree.isOther(f, i));
	assert.ok(others.length >= 2);
	for (const i of others) assert.ok(subtree.isCut(f, i));
	const ask = subtree.partAsk(f, others[0]);
	assert.equal(ask.path[0], "v1");
	const sorted = arrange.arrange(f, { order: "cost", collapse: false });
	assert.ok(subtree.isCut(sorted, 0));
});

test("a zoom in a collapsed graph is a path of the whole one", () => {
	const f = layout.buildFlame({
		format: "single",
		names: ["total", "walk", "leaf"],
		levels: [[0, 9, 0, 0], [0, 9, 1, 1], [1, 8, 2, 1], [3, 6, 6, 2]],
		numTicks: 9,
		maxSelf: 6,
	});
	const c = arrange.arrange(f, { order: "name", collapse: true });
	assert.deepEqual([...c.name].map((n) => c.names[n]), ["total", "walk", "leaf"]);
	const id = layout.pathIdBefore(c, 2);
	assert.equal(f.path.indexOf(parseInt(id, 16)), 3);
	assert.equal(layout.zoomedNode(c, id), 2);
});
