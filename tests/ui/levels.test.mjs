// Levels: growth, limits, who holds what, and what goroutines wait for.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { compare, layout, levels, query } = page;

const MIB = 2 ** 20;
const every = (n, of) => Array.from({ length: n }, (_, i) => [60 * i, of(i)]);

test("growth is told from noise, and single peaks do not move it", () => {
	const up = levels.growth(every(60, (i) => 100 * MIB + i * MIB + (i % 7 === 3 ? 500 * MIB : 0)));
	assert.ok(Math.abs(up.slope * 60 - MIB) < 0.01 * MIB, String(up.slope));
	assert.equal(levels.growthWords(up, "bytes"), "Growing 60 MiB/h: doubles in 2.65 h.");
	const still = levels.growth(every(60, (i) => 100 * MIB + ((i * 7919) % 13) * MIB));
	assert.equal(still.slope, 0);
	assert.equal(levels.growthWords(still, "bytes"), "Steady in this window.");
	const down = levels.growth(every(60, (i) => 1000 - 5 * i));
	assert.match(levels.growthWords(down, "count"), /^Falling 300\/h: halves in /);
	assert.equal(levels.growth(every(5, (i) => i)), null);
	assert.match(levels.growthWords(null, "bytes"), /^Not enough data/);
	const tiny = levels.growth(every(60, (i) => 1e9 + i));
	assert.equal(tiny.slope, 0, "a trend that changes nothing is none");
});

test("a restart begins anew", () => {
	const g = levels.growth([
		...every(30, (i) => 500 + 20 * i),
		...every(30, (i) => 100 + 10 * i).map(([t, v]) => [t + 1800, v]),
	]);
	assert.deepEqual([g.fell, g.since], [true, 1800]);
	assert.ok(Math.abs(g.slope * 60 - 10) < 1e-9);
	assert.match(levels.growthWords(g, "count"), /^Growing 600\/h since the drop at \d\d:\d\d UTC\S*: doubles in /);
});

test("what grew is looked for where the level has points, since its last fall", () => {
	const win = { start: -3600, end: 3600 };
	const young = every(60, (i) => 100 + i);
	assert.deepEqual(levels.grownIn(win, young, levels.growth(young), 60), { start: -60, end: 3600 });
	const fell = [...young, ...every(30, (i) => 10 + i).map(([t, v]) => [t + 3600, v])];
	const late = { start: 0, end: 5400 };
	assert.deepEqual(levels.grownIn(late, fell, levels.growth(fell), 60), { start: 3540, end: 5400 });
	const few = every(3, (i) => i);
	assert.deepEqual(levels.grownIn(win, few, levels.growth(few), 60), { start: -60, end: 3600 });
	for (const unknown of [[], null]) assert.equal(levels.grownIn(win, unknown, null, 60), win);
	assert.deepEqual(levels.grownIn({ start: 10, end: 3600 }, young, null, 60), { start: 10, end: 3600 });
});

test("when it reaches the limit", () => {
	const g = levels.growth(every(61, (i) => 100 * MIB + i * MIB)); // ends at 160 MiB
	assert.match(
		levels.limitWords(g, 512 * MIB, "bytes"),
		/^Reaches 512 MiB in 5\.87 h, at 1970-01-01 \d\d:52 UTC\S*\.$/,
	);
	assert.equal(levels.limitWords(g, 128 * MIB, "bytes"), "Already above 128 MiB.");
	assert.match(levels.limitWords(g, 2 ** 50, "bytes"), /more than a year/);
	const still = levels.growth(every(60, () => 5));
	assert.equal(levels.limitWords(still, 10, "count"), "Does not reach 10 at this rate.");
});

test("amounts as people type them", () => {
	for (const [text, want] of [
		["512MiB", 512 * MIB],
		["512 mib", 512 * MIB],
		["2Gi", 2 ** 31],
		["2G", 2e9],
		["1.5k", 1500],
		["10,000", 10000],
		["64MB", 64e6],
		["100", 100],
		["", null],
		["0", null],
		["12 apples", null],
		["-5", null],
	])
		assert.equal(levels.parseAmount(text), want, text);
});

/** A graph of single stacks: `[["a", "b"], value]`, each with its own branch. */
function flame(stacks) {
	const total = stacks.reduce((n, [, v]) => n + v, 0);
	const names = ["total", ...new Set(stacks.flatMap(([s]) => s))];
	const rows = [[0, total, 0, 0]];
	const depth = Math.max(...stacks.map(([s]) => s.length));
	for (let l = 0; l < depth; l++) {
		const row = [];
		let end = 0;
		let x = 0;
		for (const [stack, v] of stacks) {
			if (l < stack.length) {
				row.push(x - end, v, l === stack.length - 1 ? v : 0, names.indexOf(stack[l]));
				end = x + v;
			}
			x += v;
		}
		rows.push(row);
	}
	return layout.buildFlame({ format: "single", names, levels: rows, numTicks: total, maxSelf: 0 });
}

test("goroutines: the program's function below the runtime's, and the wait", () => {
	const chan = ["runtime.chanrecv1", "runtime.chanrecv", "runtime.gopark"];
	const got = levels.goroutines(
		flame([
			[["main.(*pool).worker", "main.(*pool).next", ...chan], 900],
			[["main.leak.func1", "runtime.selectgo", "runtime.gopark"], 50],
			[["net/http.(*conn).serve", "bufio.(*Reader).Peek", "internal/poll.(*FD).Read", "runtime.gopark"], 30],
			[["main.tick", "time.Sleep", "runtime.gopark"], 9],
			[["main.work", "sync.(*Mutex).Lock", "runtime.gopark"], 5],
			[["main.busy"], 3],
			[["runtime.gcBgMarkWorker", "runtime.gopark"], 2],
		]),
	);
	assert.deepEqual(
		got.map((h) => [h.name, h.started, h.waits, h.value]),
		[
			["main.(*pool).next", "main.(*pool).worker", "receives from a channel", 900],
			["main.leak.func1", "main.leak.func1", "select", 50],
			["bufio.(*Reader).Peek", "net/http.(*conn).serve", "network or file", 30],
			["main.tick", "main.tick", "sleeps", 9],
			["main.work", "main.work", "lock", 5],
			["main.busy", "main.busy", "runs", 3],
			["runtime.gcBgMarkWorker", "runtime.gcBgMarkWorker", "the runtime", 2],
		],
	);
	assert.ok(!got.slice(0, 6).some((h) => /^runtime\./.test(h.name)));
});

test("memory: held by the program's functions", () => {
	const got = levels.holders(
		flame([
			[["main.main", "main.fill", "bytes.growSlice"], 70],
			[["main.main", "main.fill"], 10],
			[["main.main"], 5],
		]),
	);
	assert.deepEqual(
		got.map((h) => [h.name, h.value]),
		[["main.fill", 80], ["main.main", 5]],
	);
});

test("the last or the largest profile of a window instead of the mean", () => {
	const of = (q, what = "last") => query.levelQuery(q, what, 900);
	assert.equal(of('merge(heap{job="a"})'), 'merge(last_over_time(heap{job="a"}[15m]))');
	assert.equal(of("focus(heap offset 1h, \"x\")", "max"), 'focus(max_over_time(heap[15m] offset 1h), "x")');
	assert.equal(of("merge(heap[5m])"), null, "its own window says what is taken");
	assert.equal(of("merge(max_over_time(heap[5m]))"), null);
	assert.equal(of("1 + 1"), null);
});

test("what grew: the last quarter of the window against the first", () => {
	assert.deepEqual(compare.compareParts("merge(heap)", { start: 1000, end: 1400 }), {
		new: "merge(heap)",
		base: "merge(heap)",
		from: "1300",
		to: "1400",
		bfrom: "1000",
		bto: "1100",
	});
});
