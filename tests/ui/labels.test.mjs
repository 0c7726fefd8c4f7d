import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { labels } = page;

test("the values a query asks of a label", () => {
	for (const [query, want] of [
		["cpu", []],
		['cpu{job="a"}', ["a"]],
		['cpu{job=~"a|b"}', ["a", "b"]],
		['cpu{job=~"a\\\\.b|c"}', ["a.b", "c"]],
		['cpu{job=~"a.*"}', []],
		['cpu{job=~"\\\\d"}', []],
		['cpu{job!="a"}', []],
		['diff(cpu{job="a"}, cpu{job="b"})', ["a"]],
		['cpu{job=""}', [""]],
	])
		assert.deepEqual(labels.pickedValues(query, "job"), want, query);
});

test("a value is asked for, and no longer", () => {
	for (const [query, value, also, want] of [
		["cpu", "a", false, 'cpu{job="a"}'],
		['cpu{job="a"}', "a", false, "cpu"],
		['cpu{job="a"}', "b", false, 'cpu{job="b"}'],
		['cpu{job="a"}', "b", true, 'cpu{job=~"a|b"}'],
		['cpu{job=~"a|b"}', "a", true, 'cpu{job="b"}'],
		['cpu{job=~"a|b"}', "a", false, 'cpu{job="a"}'],
		['cpu{job="a"}', "a", true, "cpu"],
		['cpu{job="a.b"}', "c", true, 'cpu{job=~"a\\\\.b|c"}'],
		['cpu{job="a",pod="p"}', "b", false, 'cpu{job="b",pod="p"}'],
		['cpu{pod="p",job!="x"}', "b", false, 'cpu{pod="p",job!="x",job="b"}'],
		['cpu{job=~"x.*"}', "b", false, 'cpu{job="b"}'],
		["merge by (job) (cpu[5m] offset 1h)", "a", false, 'merge by (job) (cpu{job="a"}[5m] offset 1h)'],
		["diff(cpu, cpu offset 1h)", "a", false, 'diff(cpu{job="a"}, cpu{job="a"} offset 1h)'],
		['flat(cpu, {function="f"})', "a", false, 'flat(cpu{job="a"}, {function="f"})'],
		['{job="a"}', "a", false, '{job="a"}'],
		["cpu", 'a"b', false, 'cpu{job="a\\"b"}'],
	])
		assert.equal(labels.pickValue(query, "job", value, also), want, `${query} ${value}`);
});

test("the selectors that are counted", () => {
	for (const [query, without, want] of [
		["cpu", "", ["cpu"]],
		['diff(cpu{a="b"}[5m], cpu{a="b"} offset 1h)', "", ['cpu{a="b"}']],
		['cpu{a="b",c="d"} + memory', "a", ['cpu{c="d"}', "memory"]],
		['{a="b"}', "a", []],
		["1 + 2", "", []],
	])
		assert.deepEqual(labels.selectorsOf(query, without), want, query);
});

test("what a query can group by", () => {
	const all = ["job", "__name__", "http.method", "thread id", "_x", "1st", "Pod2"];
	assert.deepEqual(labels.groupable(all), ["job", "_x", "Pod2"]);
});

test("a question for a menu has selectors that the server takes", () => {
	for (const [query, want] of [
		['cpu{job="a"}', ['cpu{job="a"}']],
		['{job="a"}', ['{job="a"}']],
		['{job=""}', []],
		['{job!="a"}', []],
		['{job!=""}', ['{job!=""}']],
		['{job=~"a|b"}', ['{job=~"a|b"}']],
		['{job=~".*"}', []],
		['{job!~".*"}', ['{job!~".*"}']],
		['cpu{job=~".*"}', ['cpu{job=~".*"}']],
		['diff(cpu{job="a"}, {job=""})', []],
	])
		assert.deepEqual(labels.selectorsOf(query), want, query);
});

test("the window of a menu changes in whole steps", () => {
	const menu = (start, end) => labels.wholeWindow({ start, end });
	assert.deepEqual(menu("1200.5", "4799.25"), { start: "1200", end: "4800" });
	assert.deepEqual(menu("1799", "4201"), menu("1200.5", "4799.25"));
	assert.deepEqual(labels.wholeWindow({}), {});
});
