// The verdict on a difference: whose function is named, its shares, its callers, how certain it is.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { blame, layout, owncode } = page;

/** A difference from folded stacks: `"a;b;c": [base, new]`. */
function diff(stacks) {
	const root = { name: "total", cost: [0, 0], self: [0, 0], below: new Map() };
	for (const [stack, cost] of Object.entries(stacks)) {
		let node = root;
		const add = () => cost.forEach((c, s) => (node.cost[s] += c));
		add();
		for (const name of stack.split(";")) {
			if (!node.below.has(name))
				node.below.set(name, { name, cost: [0, 0], self: [0, 0], below: new Map() });
			node = node.below.get(name);
			add();
		}
		cost.forEach((c, s) => (node.self[s] += c));
	}
	const names = [];
	const levels = [];
	const ends = [];
	const write = (n, level, at) => {
		if (!names.includes(n.name)) names.push(n.name);
		const row = (levels[level] ??= []);
		const end = (ends[level] ??= [0, 0]);
		for (const s of [0, 1]) row.push(at[s] - end[s], n.cost[s], n.self[s]);
		row.push(names.indexOf(n.name));
		ends[level] = [at[0] + n.cost[0], at[1] + n.cost[1]];
		let x = at;
		for (const c of n.below.values()) {
			write(c, level + 1, x);
			x = [x[0] + c.cost[0], x[1] + c.cost[1]];
		}
	};
	write(root, 0, [0, 0]);
	const [leftTicks, rightTicks] = root.cost;
	return layout.buildFlame({
		...{ format: "double", names, levels, leftTicks, rightTicks },
		...{ numTicks: leftTicks + rightTicks, maxSelf: 0 },
	});
}

const SHOP = {
	"net/http.(*conn).serve;main.(*shop).search;main.scoreItems;runtime.mapaccess2": [40, 240],
	"net/http.(*conn).serve;main.(*shop).search;main.scoreItems": [19, 90],
	"net/http.(*conn).serve;main.(*shop).cart;main.renderCart;fmt.Sprintf": [500, 510],
	"net/http.(*conn).serve;main.(*shop).cart;main.renderCart": [341, 140],
	"runtime.gcBgMarkWorker": [100, 20],
};
const judged = (name, verdict) => new Map([[name, { verdict, low: 0.1, high: 0.2 }]]);

test("own functions by their names", () => {
	for (const name of [
		"main.work",
		"example.com/shop/cart.(*Cart).Add",
		"shop/internal/cart.Add",
		"com.example.Cart.add",
		"my::cart::add",
		"cart_add",
	])
		assert.equal(owncode.isOwn(name), true, name);
	for (const name of [
		"runtime.gopark",
		"net/http.(*conn).serve",
		"encoding/json.Marshal",
		"java.util.HashMap.put",
		"std::vector<int>::push_back",
		"core::fmt::write",
		"[kernel]",
		"malloc",
		"__libc_start_main",
		"start_thread",
		"",
	])
		assert.equal(owncode.isOwn(name), false, name);
});

test("costs are told by the program's function nearest to them", () => {
	const got = owncode.ownCosts(diff(SHOP));
	assert.deepEqual(Object.fromEntries(got), {
		"main.scoreItems": { base: 59, next: 330 },
		"main.renderCart": { base: 841, next: 650 },
		"runtime.gcBgMarkWorker": { base: 100, next: 20 },
	});
	assert.deepEqual(owncode.callersOf(diff(SHOP), "main.scoreItems"), [["main.(*shop).search", 1]]);
});

test("recursion counts once, and is no caller of itself", () => {
	const f = diff({ "main.a;main.a;main.a": [10, 20], "main.b;main.a": [0, 60] });
	assert.deepEqual(owncode.costsOf(f, "main.a").cum, { base: 10, next: 80 });
	assert.deepEqual(owncode.callersOf(f, "main.a"), [["main.b", 1]]);
});

test("the sentence: from, to, times, callers, certainty", () => {
	const f = diff(SHOP);
	const cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
	const b = blame.blame(f, judged("main.scoreItems", "changed"));
	assert.equal(b.name, "main.scoreItems");
	assert.deepEqual([b.of, b.certainty, b.also], ["cum", "certain", []]);
	assert.deepEqual(blame.fromTo(b, f, cpu, "nanoseconds"), ["5.9%", "33%", "5.6×"]);
	assert.deepEqual(blame.calledBy(b.callers), { word: "only by", named: 1 });
	assert.equal(blame.blame(f, judged("main.scoreItems", "cannot tell")).certainty, "open");
	assert.equal(blame.blame(f, judged("main.scoreItems", "rises")).certainty, "certain");
	assert.equal(blame.blame(f, null).certainty, "unjudged");
	// What changed for certain comes before what only looks larger.
	const cart = blame.blame(f, judged("main.renderCart", "changed"));
	assert.deepEqual([cart.name, cart.certainty], ["main.renderCart", "certain"]);
	const level = "memory:inuse_space:bytes:space:bytes";
	assert.deepEqual(blame.fromTo(b, f, level, "bytes"), ["59 B", "330 B", "5.6×"]);
});

test("a given function is told as the rule measures it", () => {
	const f = diff(SHOP);
	const cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
	const changes = new Map([
		["main.scoreItems", { verdict: "changed", low: 0.1, high: 0.2 }],
		["main.renderCart", { verdict: "changed", low: -0.2, high: -0.1 }],
		["runtime.memmove", { verdict: "changed", low: 0.1, high: 0.3 }],
	]);
	const about = { name: "main.renderCart", of: "flat", share: true };
	const b = blame.blameOf(f, changes, about, { base: 0.341, next: 0.14 });
	assert.deepEqual([b.name, b.of, b.certainty, b.also], ["main.renderCart", "flat", "certain", ["main.scoreItems"]]);
	assert.deepEqual(b.callers, [["main.(*shop).cart", 1]]);
	assert.deepEqual(blame.fromTo(b, f, cpu, "nanoseconds"), ["34%", "14%", "0.41×"]);
	const cost = blame.blameOf(f, null, { ...about, share: false }, { base: 2e9, next: 3e9 });
	assert.equal(cost.certainty, "unjudged");
	assert.deepEqual(blame.fromTo(cost, f, cpu, "nanoseconds"), ["2 s", "3 s", "1.5×"]);
	// The graph may have folded it.
	const folded = blame.blameOf(f, new Map(), { name: "main.tiny", of: "cum", share: true }, { base: 0, next: 0.001 });
	assert.deepEqual([folded.certainty, folded.callers], ["open", []]);
	assert.deepEqual(blame.fromTo(folded, f, cpu, "nanoseconds"), ["0%", "0.1%", "new"]);
});

test("a function is not blamed for what another of the program costs", () => {
	const f = diff({
		"main.handle": [100, 150],
		"main.handle;main.slow": [100, 1000],
	});
	const all = new Map([...judged("main.handle", "changed"), ...judged("main.slow", "changed")]);
	assert.equal(blame.blame(f, all).name, "main.slow");
	assert.deepEqual(blame.blame(f, all).also, ["main.handle"]);
	const handle = blame.blame(f, judged("main.handle", "changed"));
	assert.deepEqual([handle.of, handle.costs], ["flat", { base: 100, next: 150 }]);
});

test("an empty side is not judged", () => {
	assert.equal(blame.blame(diff({ "main.a": [0, 10] }), new Map()), null);
	assert.equal(blame.blame(diff({ "main.a": [10, 0] }), new Map()), null);
	assert.equal(blame.blame(diff({ "main.a": [10, 10] }), new Map()), null, "nothing moved");
});

test("without the program's own functions the runtime's are named", () => {
	const f = diff({ "runtime.a": [10, 90], "runtime.b": [10, 10] });
	assert.equal(blame.blame(f, new Map()).name, "runtime.a");
});

test("numbers of the sentence", () => {
	assert.deepEqual(
		[0, 0.001, 0.423, 5.94, 9.96, 33.2, 100].map(blame.shortPercent),
		["0%", "<0.01%", "0.42%", "5.9%", "10%", "33%", "100%"],
	);
	for (const [b, n, want] of [
		[59, 330, "5.6×"],
		[10, 120, "12×"],
		[10, 4, "0.4×"],
		[0, 4, "new"],
		[4, 0, "gone"],
		[0, 0, ""],
		[1, 5000, ">999×"],
	])
		assert.equal(blame.timesText(b, n), want);
	assert.equal(blame.amountWord("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"), " of CPU");
	assert.equal(blame.amountWord("memory:alloc_space:bytes:space:bytes:delta"), " allocated");
	assert.equal(blame.amountWord("memory:inuse_space:bytes:space:bytes"), "");
});

test("how much longer it takes to tell", () => {
	const open = { verdict: "cannot tell", low: -0.02, high: 0.08 }; // 3 ± 5 points
	assert.equal(blame.waitFor([], open, 900), 1800, "three times as long");
	assert.equal(blame.waitFor(["cannot tell yet: ...; about 8m more"], undefined, 900), 480);
	assert.equal(blame.waitFor([], { ...open, verdict: "changed" }, 900), 0);
	assert.equal(blame.waitFor([], { verdict: "cannot tell", low: -0.95, high: 1 }, 900), 0);
	assert.deepEqual(
		[6, 60, 480, 7200, 200000].map(blame.moreTime),
		["6 more seconds", "60 more seconds", "8 more minutes", "2 more hours", "3 more days"],
	);
	assert.equal(blame.moreTime(1), "1 more second");
});

test("the share per minute: bars, their width, their order", () => {
	assert.deepEqual([60, 900, 3600, 7200, 86400, 30 * 86400].map(blame.stripStep), [
		0, 60, 60, 120, 1800, 43200,
	]);
	const matrix = [
		{ values: [[160, "0.1"], [280, "0.4"]] },
		{ values: [[220, "0"], [400, "9"]] },
	];
	assert.deepEqual(blame.bars(matrix, { start: 100, end: 340 }, 60), [0.1, 0, 0.4, null]);
	assert.equal(blame.barsApart([1, 2, 1, 2], [3, 4, null, 3, 4]), "more");
	assert.equal(blame.barsApart([3, 4, 3, 4], [1, 2, 1, 2]), "less");
	assert.equal(blame.barsApart([1, 2, 1, 3], [3, 4, 3, 4]), "");
	assert.equal(blame.barsApart([1, 2], [3, 4]), "", "two bars are chance");
	assert.equal(
		blame.stripQuery('cpu{a="b"}', 'x"y', "cum_share", 60),
		'cum_share(merge(cpu{a="b"}[1m]), {function="x\\"y"}) ' +
			'or ignoring (function) 0 * total(merge(cpu{a="b"}[1m]))',
	);
});
