import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { edit } = page;

const NAME = "net/http.(*conn).serve";
const EXACT = "`^\\Qnet/http.(*conn).serve\\E$`";

test("a name becomes the expression that matches it alone", () => {
	for (const [name, want] of [
		["main", "^main$"],
		[NAME, "^\\Qnet/http.(*conn).serve\\E$"],
		["a\\Eb", "^a\\\\Eb$"],
		["std::vector<int, std::allocator<int> >::push_back", null],
		["operator()", "^\\Qoperator()\\E$"],
		["", "^$"],
	]) {
		const got = edit.exactPattern(name);
		if (want !== null) assert.equal(got, want);
		assert.equal(edit.exactName(got), name);
	}
	for (const pattern of ["main", "^main", "^ma.n$", "^a|b$", "^\\Qa\\E|b$", "^\\Qa\\E.\\Qb\\E$"])
		assert.equal(edit.exactName(pattern), null, pattern);
});

test("a filter goes around the profiles", () => {
	for (const [query, filter, name, want] of [
		['cpu{job="a"}', "focus", "main", 'focus(merge(cpu{job="a"}), "^main$")'],
		["cpu", "ignore", NAME, `ignore(merge(cpu), ${EXACT})`],
		["cpu[5m]", "focus", "x", 'focus(cpu[5m], "^x$")'],
		["merge by (job) (cpu)", "hide", "x", 'hide(merge by (job) (cpu), "^x$")'],
		['focus(merge(cpu), "^a$")', "hide", "b", 'hide(focus(merge(cpu), "^a$"), "^b$")'],
		['focus(merge(cpu), "^a$")', "focus", "a", 'focus(merge(cpu), "^a$")'],
		["top(20, cpu)", "show_from", "x", 'top(20, show_from(merge(cpu), "^x$"))'],
		[
			"diff(merge(cpu), merge(cpu offset 1h))",
			"focus",
			"x",
			'focus(diff(merge(cpu), merge(cpu offset 1h)), "^x$")',
		],
		["merge(cpu) - merge(heap)", "show", "x", 'show(merge(cpu) - merge(heap), "^x$")'],
		["merge(cpu) # of all", "focus", "x", 'focus(merge(cpu), "^x$")'],
		["cpu # of all", "prune_from", "x", 'prune_from(merge(cpu), "^x$")'],
		["cpu", "focus", "a`b.c", 'focus(merge(cpu), "^\\\\Qa`b.c\\\\E$")'],
		["cpu", "focus", 'say "hi"', 'focus(merge(cpu), "^say \\"hi\\"$")'],
		["flat(cpu)", "focus", "x", "flat(cpu)"],
	])
		assert.equal(edit.wrapFilter(query, filter, name), want);
});

test("the halves of a sandwich", () => {
	assert.equal(edit.halfOf("merge(cpu)", "callers", "x"), 'callers(merge(cpu), "^x$")');
	assert.equal(edit.halfOf("merge(cpu)", "callees", NAME), `callees(merge(cpu), ${EXACT})`);
});

test("filters are read back in the order they apply, and removed", () => {
	const query = `hide(focus(merge(cpu{job="a"}), ${EXACT}), "x|y")`;
	assert.deepEqual(edit.activeFilters([query]), [
		{ filter: "focus", pattern: "^\\Qnet/http.(*conn).serve\\E$", name: NAME },
		{ filter: "hide", pattern: "x|y", name: null },
	]);
	const [first, second] = edit.activeFilters([query]);
	assert.equal(edit.removeFilter(query, first), 'hide(merge(cpu{job="a"}), "x|y")');
	assert.equal(edit.removeFilter(query, second), `focus(merge(cpu{job="a"}), ${EXACT})`);
	assert.equal(edit.removeFilter("merge(cpu)", first), "merge(cpu)");
});

test("a filter of both sides is one", () => {
	const side = (v) => `focus(merge(cpu<version="${v}",job="a">), "^x$")`;
	const both = `diff(${side("v2")}, ${side("v1")})`;
	const want = [{ filter: "focus", pattern: "^x$", name: "x" }];
	assert.deepEqual(edit.activeFilters([both]), want);
	assert.deepEqual(edit.activeFilters([side("v2"), side("v1")]), want);
	assert.equal(
		edit.removeFilter(both, want[0]),
		'diff(merge(cpu<version="v2",job="a">), merge(cpu<version="v1",job="a">))',
	);
	assert.deepEqual(edit.activeFilters(['tagfocus(cpu, "page=/home")', 'cpu{a="focus(b, c)"}']), [
		{ filter: "tagfocus", pattern: "page=/home", name: null },
	]);
});

test("grouping reaches the merge below filters and differences", () => {
	for (const [query, label, want] of [
		['cpu{job="a"}', "pod", 'merge by (pod) (cpu{job="a"})'],
		["merge(cpu[5m])", "pod", "merge by (pod) (cpu[5m])"],
		["merge by (job) (cpu)", "pod", "merge by (pod) (cpu)"],
		["merge without (pod) (cpu)", "", "merge(cpu)"],
		["merge by (job) (cpu)", "", "merge(cpu)"],
		['focus(merge(cpu), "^x$")', "pod", 'focus(merge by (pod) (cpu), "^x$")'],
		["top(5, merge(cpu))", "pod", "top(5, merge by (pod) (cpu))"],
		[
			"diff on (job) (merge by (job) (cpu), cpu offset 1h)",
			"pod",
			"diff(merge by (pod) (cpu), merge by (pod) (cpu offset 1h))",
		],
		[
			'merge(cpu<v="2">) - merge(cpu offset 1h)',
			"pod",
			'merge by (pod) (cpu<v="2">) - merge by (pod) (cpu offset 1h)',
		],
		["rate(cpu[5m])", "pod", "merge by (pod) (rate(cpu[5m]))"],
		["cpu offset -5m", "pod", "merge by (pod) (cpu offset -5m)"],
	])
		assert.equal(edit.groupBy(query, label), want);
	assert.deepEqual(edit.groupLabels('focus(merge by (a, b) (cpu), "x")'), ["a", "b"]);
	assert.deepEqual(edit.groupLabels("merge(cpu)"), []);
});

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
const ALLOCATED = "memory:alloc_space:bytes:space:bytes:delta";
const HEAP = "memory:inuse_space:bytes:space:bytes";

test("what an alert on a function or on all compares with its limit", () => {
	const F = ', {function="f\\"g"})';
	for (const [query, type, want] of [
		["cpu", CPU, `cum(merge by (job) (rate(cpu[5m]))${F} / 1e9`],
		['cpu{a="b"} # all', CPU, `cum(merge by (job) (rate(cpu{a="b"}[5m]))${F} / 1e9`],
		["merge by (pod) (cpu[1h])", CPU, `cum(merge by (pod) (rate(cpu[1h]))${F} / 1e9`],
		["merge by (pod) (rate(cpu[2m] offset 1h))", CPU, `cum(merge by (pod) (rate(cpu[2m] offset 1h))${F} / 1e9`],
		['top(9, focus(merge(cpu), "x"))', CPU, `cum(focus(merge by (job) (rate(cpu[5m])), "x")${F} / 1e9`],
		["diff(merge(cpu), merge(cpu offset 1h))", CPU, `cum(merge by (job) (rate(cpu[5m]))${F} / 1e9`],
		["merge(cpu) - merge(heap)", CPU, `cum(merge by (job) (rate(cpu[5m]))${F} / 1e9`],
		["cpu", ALLOCATED, `cum(merge by (job) (rate(cpu[5m]))${F}`],
		["heap", HEAP, `cum(merge by (job) (heap[5m])${F}`],
		["merge(cpu)", "", `cum_share(merge by (job) (cpu[5m])${F}`],
		["sum_over_time(cpu[5m])", CPU, `cum(merge by (job) (sum_over_time(cpu[5m]))${F} / 1e9`],
		["flat(cpu[5m])", CPU, "flat(cpu[5m])"],
	])
		assert.equal(edit.alertOn(query, 'f"g', type), want);
	assert.equal(edit.alertOn("cpu", null, CPU), "total(merge by (job) (rate(cpu[5m]))) / 1e9");
	assert.equal(edit.alertOn("heap", null, HEAP), "total(merge by (job) (heap[5m]))");
	assert.equal(edit.alertOn("cpu", null, ""), "total(merge by (job) (cpu[5m]))");
});

test("an alert's expression as a share and as a cost, with and without its limit", () => {
	const cost = 'cum(merge by (job) (rate(cpu[5m])), {function="f"}) / 1e9';
	const share = 'cum_share(merge by (job) (rate(cpu[5m])), {function="f"})';
	assert.equal(edit.alertAs(cost, "share", CPU), share);
	assert.equal(edit.alertAs(share, "cost", CPU), cost);
	const plain = 'cum_share(merge(cpu[5m]), {function="f"})';
	assert.equal(edit.alertAs(plain, "cost", CPU), 'cum(merge(rate(cpu[5m])), {function="f"}) / 1e9');
	assert.equal(edit.alertAs("total(cpu[5m]) / 1e9", "share", CPU), null);
	for (const [text, expr, over] of [
		["total(cpu[5m]) > 5", "total(cpu[5m])", "5"],
		["a + b > 1e9", "a + b", "1e9"],
		["a > b", "a > b", null],
		["a > bool 1", "a > bool 1", null],
		["a < 1", "a < 1", null],
		["a", "a", null],
	])
		assert.deepEqual(edit.splitLimit(text), { expr, over }, text);
	for (const [expr, want] of [
		[cost, `${cost} > 2`],
		["a + b # both", "a + b > 2"],
		["a or b", "(a or b) > 2"],
		["a > 1", "(a > 1) > 2"],
	])
		assert.equal(edit.overLimit(expr, "2"), want);
});

test("what changed asks of differences of selectors", () => {
	for (const [query, want] of [
		[
			'diff(merge(cpu{v="2"}[5m]), merge(cpu{v="1"}[5m] offset 1h))',
			'changed_interval(cpu{v="2"}[5m], cpu{v="1"}[5m] offset 1h)',
		],
		["diff_normalized(cpu[5m], cpu[1h])", "changed_interval(cpu[5m], cpu[1h])"],
		["merge(cpu[5m]) - cpu[5m] offset 5m", "changed_interval(cpu[5m], cpu[5m] offset 5m)"],
		['diff(merge(focus(cpu[5m], "x")), merge(cpu[5m]))', null],
		["diff(merge(cpu), merge(cpu[5m]))", null],
		["diff on (job) (cpu[5m], cpu[5m])", null],
		["diff(merge by (job) (cpu[5m]), merge by (job) (cpu[5m]))", null],
		["merge(cpu[5m])", null],
	])
		assert.equal(edit.changedQuery(query), want);
	assert.equal(
		edit.changedQuery("diff(merge(cpu), merge(cpu offset 1h))", 300),
		"changed_interval(cpu[5m], cpu[5m] offset 1h)",
	);
});

test("the base of a difference", () => {
	assert.equal(edit.baseSide('diff(merge(cpu[5m]), merge(cpu[5m] offset 1h))'), "merge(cpu[5m] offset 1h)");
	assert.equal(edit.baseSide("cpu - cpu offset 1h"), "cpu offset 1h");
	assert.equal(edit.baseSide("merge(cpu)"), null);
});
