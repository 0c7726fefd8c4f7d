// The groups of a result: order, colours, shares; and the edit that groups.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { color, edit, group, query } = page;

const element = (metric, cost, format = "single") => ({
	metric,
	cost,
	total: Math.abs(cost),
	unit: "nanoseconds",
	profiles: 1,
	flamebearer: { format, names: ["total"], levels: [], numTicks: 0, maxSelf: 0 },
});
const told = (groups) => groups.map((g) => [g.name, g.index, g.share]);

test("groups have shares of all, the greatest first", () => {
	const elements = [element({ v: "a" }, 100), element({ v: "b" }, 300), element({}, 0)];
	const groups = group.groupsOf(elements, undefined, "light");
	assert.deepEqual(told(groups), [["b", 1, 75], ["a", 0, 25], ["no v", 2, 0]]);
	assert.deepEqual(
		groups.map((g) => g.color),
		[0, 1, 2].map((i) => color.seriesColor(i, "light")),
	);
	assert.equal(groups[0].title, 'v="b"');
});

test("the colours are those of the chart, whatever the order here", () => {
	const elements = ["a", "b", "c"].map((v, i) => element({ __name__: "process_cpu", v }, [100, 300, 1][i]));
	const key = (v) => JSON.stringify([["v", v]]);
	const colors = new Map([[key("a"), "red"], [key("b"), "blue"]]);
	assert.deepEqual(
		group.groupsOf(elements, colors, "dark").map((g) => [g.name, g.color]),
		[["b", "blue"], ["a", "red"], ["c", color.seriesColor(-1, "dark")]],
	);
});

test("differences and costs below 0 have no share", () => {
	const diff = [element({ v: "a" }, -100, "double"), element({ v: "b" }, 30, "double")];
	assert.deepEqual(told(group.groupsOf(diff, undefined, "light")), [["a", 0, null], ["b", 1, null]]);
	const mixed = [element({ v: "a" }, -100), element({ v: "b" }, 30)];
	assert.deepEqual(told(group.groupsOf(mixed, undefined, "light")), [["a", 0, null], ["b", 1, null]]);
});

test("the chart of a grouped query has a line per group", () => {
	const q = edit.groupBy('cpu{job="demo"}', "version");
	assert.equal(q, 'merge by (version) (cpu{job="demo"})');
	assert.equal(query.chartQuery(q, "", "profiles"), `total(${q})`);
	assert.equal(edit.regrouped(q, ""), 'merge(cpu{job="demo"})');
	assert.equal(edit.regrouped(q, "job"), 'merge by (job) (cpu{job="demo"})');
	assert.equal(edit.ungrouped(q), 'cpu{job="demo"}');
	assert.equal(edit.ungrouped("merge(cpu)"), "merge(cpu)");
	assert.equal(edit.ungrouped('focus(merge by (a) (cpu), "x")'), 'focus(merge(cpu), "x")');
	assert.equal(edit.regrouped("cpu", ""), "cpu", "what has no group stays as it is typed");
});
