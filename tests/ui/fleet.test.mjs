import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { fleet } = page;

const type = (text) => {
	const [name, sample_type, sample_unit, period_type, period_unit, delta] = text.split(":");
	return { type: text, name, sample_type, sample_unit, period_type, period_unit, delta: delta === "delta" };
};
const ALL = [
	"goroutine:goroutine:count:goroutine:count",
	"memory:alloc_space:bytes:space:bytes:delta",
	"memory:inuse_space:bytes:space:bytes",
	"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
	"process_cpu:samples:count:cpu:nanoseconds:delta",
].map(type);

test("types: what is there, and one name per kind of profile", () => {
	const t = fleet.fleetTypes(ALL);
	assert.equal(t.cpu.sample_type, "cpu");
	assert.equal(t.memory, "memory");
	assert.equal(t.tasks, "goroutine");
	assert.deepEqual(t.kinds, ["goroutine", "memory", "process_cpu"]);
	const none = fleet.fleetTypes([]);
	assert.deepEqual(none, { cpu: null, memory: "", tasks: "", leaked: "", kinds: [] });
	const leaks = fleet.fleetTypes([...ALL, type("goroutineleak:goroutineleak:count:goroutineleak:count")]);
	assert.equal(leaks.tasks, "goroutine");
	assert.equal(leaks.leaked, "goroutineleak");
});

test("types: one odd sender does not make the fleet's names its own", () => {
	const odd = [
		"cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
		"memory:inuse_space:KiB:space:bytes",
		"memory:inuse_space:bytes:space:bytes",
		"memory:inuse_space:seconds:space:bytes",
		"process_cpu:cpu:microseconds:cpu:microseconds:delta",
		"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
		"process_cpu:samples:count:cpu:nanoseconds:delta",
	].map(type);
	const t = fleet.fleetTypes(odd);
	assert.equal(t.memory, "memory");
	assert.deepEqual(t.kinds, ["cpu", "memory", "process_cpu"]);
	const cores = fleet.coresUnit(t, { cores: { unit: "nanoseconds" } });
	assert.deepEqual([cores.label, cores.factor], ["cores", 1e-9]);
	const micro = fleet.fleetTypes(odd.filter((x) => x.sample_unit === "microseconds"));
	assert.equal(micro.cpu.sample_unit, "microseconds");
	assert.equal(fleet.coresUnit(micro, { cores: { unit: "nanoseconds" } }).factor, 1e-9);
	// Memory of C++ is called otherwise, what has another unit is no memory.
	assert.equal(fleet.fleetTypes(["memory:space:bytes:space:bytes"].map(type)).memory, "memory");
	assert.equal(fleet.fleetTypes(["memory:live:count:space:bytes"].map(type)).memory, "");
});

test("questions: only of what is there; one window for all", () => {
	const times = fleet.fleetTimes({ start: 1000, end: 1600 }, 10);
	assert.equal(times.step, 10);
	assert.deepEqual(times.grid, { start: 1000, end: 1600 });
	const queries = (types) =>
		fleet.fleetQuestions("job", types, times).map((a) => [a.key, a.name, a.args.query]);
	assert.deepEqual(queries(fleet.fleetTypes([])), [
		["up", "query", "sum by (job) (min without (profile) (up))"],
		["targets", "query", "count by (job) (min without (profile) (up))"],
		["alerts", "alerts", undefined],
	]);
	assert.deepEqual(queries(fleet.fleetTypes(ALL)), [
		["cores", "query", "total(merge by (job) (mean_rate(cpu[10m])))"],
		["all cores", "query", "total(merge(mean_rate(cpu[10m])))"],
		["cores over time", "query_range", "total(merge by (job) (rate(cpu[10s])))"],
		["top", "query", "top(1, merge by (job) (cpu))"],
		["memory", "query", "total(merge by (job) (memory))"],
		["memory over time", "query_range", "total(merge by (job) (memory[10s]))"],
		["tasks", "query", "total(merge by (job) (goroutine))"],
		["tasks over time", "query_range", "total(merge by (job) (goroutine[10s]))"],
		["up", "query", "sum by (job) (min without (profile) (up))"],
		["targets", "query", "count by (job) (min without (profile) (up))"],
		["count goroutine", "query", 'sum by (job) (count_over_time({__name__="goroutine"}[10m]))'],
		["count memory", "query", 'sum by (job) (count_over_time({__name__="memory"}[10m]))'],
		["count process_cpu", "query", 'sum by (job) (count_over_time({__name__="process_cpu"}[10m]))'],
		["alerts", "alerts", undefined],
	]);
	const leaks = [type("goroutineleak:goroutineleak:count:goroutineleak:count")];
	assert.deepEqual(queries(fleet.fleetTypes(leaks))[0],
		["leaked", "query", "total(merge by (job) (goroutineleak))"]);
});

const times = { window: { start: 100, end: 200 }, step: 20, grid: { start: 100, end: 200 } };
const points = (...values) => ({
	metric: {},
	values: values.flatMap((v, i) => (v === null ? [] : [[100 + 20 * i, String(v)]])),
});

test("a sparkline: late scrapes and gaps are minded", () => {
	for (const [values, spark] of [
		[[2, 4, 6, 4, 2, 0], [2, 4, 6, 4, 2, 0]],
		[[null, null, null, 4, 4, 4], [null, null, null, 4, 4, 4]],
		// A late scrape: its step covers two intervals.
		[[2, null, 4, 2, 2, 2], [2, undefined, 4, 2, 2, 2]],
		// Down for two steps: a gap.
		[[3, null, null, 3, 3, 3], [3, null, null, 3, 3, 3]],
		[[null, null, null, null, null, null], [null, null, null, null, null, null]],
	])
		assert.deepEqual(fleet.sparkOf(points(...values), times, 1), spark);
	assert.equal(fleet.sparkOf(points(5e9), times, 1e-9 / 20)[0], 0.25);
});

test("cores are those that the server says, of a row and of all", () => {
	const value = (metric, v) => ({ metric, value: [200, String(v)] });
	const answers = {
		// A job that pushed one profile: in one step it is more than over the window.
		"cores over time": { result: [{ metric: { job: "a" }, values: [[120, "484e6"]] }] },
		cores: { unit: "nanoseconds", result: [value({ job: "a" }, 32e6), value({ job: "b" }, 100e6)] },
		"all cores": { unit: "nanoseconds", result: [value({}, 116e6)] },
	};
	const unit = fleet.coresUnit(fleet.fleetTypes(ALL), answers);
	const rows = fleet.fleetRows("job", times, unit, answers);
	assert.deepEqual(rows.map((r) => [r.service, unit.format(r.cores)]), [["a", "0.032"], ["b", "0.1"]]);
	assert.equal(unit.format(fleet.allCores(unit, answers)), "0.116");
	assert.equal(fleet.allCores(unit, {}), null);
});

test("rows: what no answer tells stays unknown; kinds of profiles add up", () => {
	const value = (job, v) => ({ metric: job ? { job } : {}, value: [200, String(v)] });
	const row = { function: "main.f", flat: 5, flat_percent: 50 };
	const answers = {
		cores: { result: [value("a", 20)] },
		top: { result: [{ metric: { job: "a" }, rows: [row] }, { metric: { job: "b" }, rows: [] }] },
		up: { result: [value("a", 1), value("b", 0)] },
		targets: { result: [value("a", 1), value("b", 2), value("", 3)] },
		leaked: { result: [value("a", 2)] },
		"count x": { result: [value("a", 3)] },
		"count y": { result: [value("a", 4)] },
		alerts: {
			alerts: [
				{ labels: { job: "b" }, state: "firing" },
				{ labels: { job: "b" }, state: "pending" },
				{ labels: { other: "x" }, state: "firing" },
			],
		},
	};
	const unit = { factor: 1 / 20 };
	const rows = Object.fromEntries(
		fleet.fleetRows("job", times, unit, answers).map((r) => [r.service, r]),
	);
	assert.deepEqual(Object.keys(rows).sort(), ["", "a", "b"]);
	assert.equal(rows.a.cores, 1);
	assert.equal(rows.a.top, row);
	assert.equal(rows.a.profiles, 7);
	assert.equal(rows.a.memory, null);
	assert.deepEqual([rows.a.leaked, rows.b.leaked], [2, null]);
	assert.deepEqual([rows.a.up, rows.a.targets, rows.a.firing], [1, 1, 0]);
	assert.equal(rows.b.top, null);
	assert.deepEqual([rows.b.up, rows.b.targets, rows.b.firing], [0, 2, 1]);
	assert.deepEqual([rows[""].up, rows[""].targets, rows[""].firing], [null, 3, 1]);
	const without = fleet.fleetRows("job", times, unit, { up: answers.up });
	assert.equal(without[0].firing, null, "alerts were not answered");
});

test("what selects a service", () => {
	assert.equal(fleet.serviceQuery("cpu", "job", 'a"b'), 'cpu{job="a\\"b"}');
	assert.equal(fleet.serviceQuery("cpu", "job", ""), 'cpu{job=""}');
	assert.equal(fleet.defaultLabel(["job", "service"]), "service");
	assert.equal(fleet.defaultLabel(["instance", "job"]), "job");
});

test("a sparkline draws over holes, not over gaps, and a lone point as a dash", () => {
	const path = (values) => fleet.sparkPath(values, 40, 10).replace(/ -?[\d.]+(?=[LMh]|$)/g, "");
	assert.equal(path([1, 1, 1]), "M2.0L22.0L42.0");
	assert.equal(path([1, undefined, 1]), "M2.0L42.0");
	assert.equal(path([1, null, 1]), "M2.0h1.5M42.0h1.5");
	assert.equal(path([null, 1, null, 1, 1]), "M12.0h1.5M32.0L42.0");
	assert.equal(path([]), "");
});
