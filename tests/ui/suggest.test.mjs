// "Did you mean": what the server says, put into the query.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { suggested } = page.suggest;

test("the name that is near takes the place of the one that was written", () => {
	for (const [query, message, want] of [
		["cpuu[5m]", 'no type or series is named "cpuu" in this time range; did you mean "cpu"?', "cpu[5m]"],
		['cpu:sampels{job="a"}', 'no type or series is named "cpu:sampels" in this time range; did you mean "cpu:samples"?', 'cpu:samples{job="a"}'],
		['merge(cpu{jb="a"}) - merge(memory{jb="a"})', 'no series of "cpu" has a label "jb" in this time range; did you mean "job"?', 'merge(cpu{job="a"}) - merge(memory{job="a"})'],
		['cpu{job="dmo",zone=~"dmo"} offset 1h', 'no series of "cpu" has job="dmo" in this time range; did you mean "demo"?', 'cpu{job="demo",zone=~"dmo"} offset 1h'],
		['{job="a\\"c"}', 'no series has job="a\\"c" in this time range; did you mean "a\\"b"?', '{job="a\\"b"}'],
		["mrge by (job) (cpu)", 'unknown function "mrge"; did you mean "merge"?', "merge by (job) (cpu)"],
		["sum(flt(merge(cpu)))", 'unknown function "flt"; did you mean "flat"?', "sum(flat(merge(cpu)))"],
		// Nothing is near, or it is about another query.
		["cpuu", 'no type or series is named "cpuu" in this time range', null],
		["cpu", 'no type or series is named "cpuu" in this time range; did you mean "cpu"?', null],
		["cpu", "samples have no names", null],
	])
		assert.equal(suggested(query, message), want, query);
});
