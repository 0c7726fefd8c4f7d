import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { query, read, text, types } = page;

const sel = (name, ...matchers) => ({
	name,
	matchers: matchers.map(([label, op, value]) => ({ label, op, value })),
});

test("a lone selector is read, in each spelling", () => {
	for (const [text, want] of [
		["cpu", sel("cpu")],
		["cpu:samples", sel("cpu:samples")],
		[
			'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="demo"}',
			sel("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", ["job", "=", "demo"]),
		],
		[
			"cpu { job =~ \"a|b\" , version != 'v1', }",
			sel("cpu", ["job", "=~", "a|b"], ["version", "!=", "v1"]),
		],
		['cpu:samples<job="parca">', sel("cpu:samples", ["job", "=", "parca"])],
		['{__name__="process_cpu"}', sel("", ["__name__", "=", "process_cpu"])],
		['cpu{a="x\\"y\\\\"}', sel("cpu", ["a", "=", 'x"y\\'])],
		["cpu{a=`b\\c`}", sel("cpu", ["a", "=", "b\\c"])],
	])
		assert.deepEqual(read.parseSelector(text), want, text);
});

test("what is more than a selector is not one", () => {
	for (const text of [
		"cpu[5m]",
		"cpu offset 1h",
		"merge(cpu)",
		"cpu - cpu",
		"cpu{job=}",
		'cpu{job="a"',
		"",
		"1",
		"cpu < 5",
	])
		assert.equal(read.parseSelector(text), null, text);
});

test("names that are no words are in quotes", () => {
	for (const [text_, want, printed] of [
		['{"http.cpu"}', sel("http.cpu"), '{"http.cpu"}'],
		['{"cpu", a="b"}', sel("cpu", ["a", "=", "b"]), 'cpu{a="b"}'],
		['{"on"}', sel("on"), '{"on"}'],
		['cpu{"k.v"!="x", \'a\'="b"}', sel("cpu", ["k.v", "!=", "x"], ["a", "=", "b"]), 'cpu{"k.v"!="x",a="b"}'],
	]) {
		assert.deepEqual(read.parseSelector(text_), want, text_);
		assert.equal(text.formatSelector(want), printed);
	}
	assert.equal(text.formatLabel("job"), "job");
	assert.equal(text.formatLabel("without"), '"without"');
	assert.equal(text.formatLabel("a.b"), '"a.b"');
});

test("a subquery is a node, whose selectors are no windows of the query", () => {
	for (const query_ of ["max_over_time(total(cpu)[1h:5m])", "cpu[30m:] @ end() offset 1d", "rate(up[5m])[1h:60] * 2"]) {
		const { tree, selectors } = read.readQuery(query_);
		assert.ok(tree && read.hasSubquery(tree), query_);
		assert.equal(selectors.length, 1, query_);
		assert.equal(query.withRate(query_, 60), query_);
	}
	assert.equal(read.hasSubquery(read.readQuery("rate(cpu[5m])").tree), false);
	assert.equal(read.readQuery("cpu[5m:1m:1m]").tree, null);
});

test("a selector prints back", () => {
	assert.equal(text.formatSelector(sel("cpu")), "cpu");
	assert.equal(
		text.formatSelector(sel("cpu", ["a", "=~", 'x"\\.y'], ["b", "!=", ""])),
		'cpu{a=~"x\\"\\\\.y",b!=""}',
	);
	assert.equal(text.formatSelector(sel("")), "{}");
});

test("selectors are found inside expressions, and only they", () => {
	const names = (text) => read.findSelectors(text).map((s) => s.name + (s.range ?? ""));
	assert.deepEqual(names('diff(merge(cpu{version="v2"}[1m]), merge(cpu[5m] offset 1h))'), [
		"cpu60",
		"cpu300",
	]);
	assert.deepEqual(names("merge by (job, version) (heap)"), ["heap"]);
	assert.deepEqual(
		names('cum_share(merge(cpu[5m]), {function="encoding/json.Marshal"}) > 0.10'),
		["cpu300"],
	);
	assert.deepEqual(names("sum by (function) (flat(cpu)) / on (job) group_left total(cpu)"), [
		"cpu",
		"cpu",
	]);
	assert.deepEqual(names("cpu # merge(heap)"), ["cpu"]);
});

test("the kind is guessed from the outermost call", () => {
	for (const [text, want] of [
		['cpu{job="a"}', "selector"],
		["merge(cpu)", "profiles"],
		["merge by (version) (cpu[5m])", "profiles"],
		["top(10, cpu)", "top"],
		["flat(cpu)", "costs"],
		["sum by (job) (total(cpu))", "costs"],
		["merge(cpu) - merge(cpu offset 1h)", "unknown"],
		["12", "unknown"],
	])
		assert.equal(types.guessKind(text), want, text);
});

test("what the views ask", () => {
	assert.equal(query.flameQuery(' cpu{job="a"} '), 'merge(cpu{job="a"})');
	assert.equal(query.flameQuery('focus(cpu, "x")'), 'focus(cpu, "x")');
	assert.equal(query.tableQuery("cpu", 500), "top(500, merge(cpu))");
	assert.equal(query.chartQuery("cpu", "", "selector"), "total(merge(cpu))");
	assert.equal(query.chartQuery("cpu", "version", "selector"), "total(merge by (version) (cpu))");
	assert.equal(
		query.chartQuery("merge(cpu[5m])", "version", "profiles"),
		"total(merge by (version) (cpu[5m]))",
	);
	assert.equal(query.chartQuery("merge(cpu)", "", "profiles"), "total(merge(cpu))");
	assert.equal(query.chartQuery("flat(cpu)", "version", "costs"), "flat(cpu)");
	assert.equal(query.chartQuery("top(5, merge(cpu))", "", "top"), "total(merge(cpu))");
});

test("the argument of a call that spans the whole query", () => {
	assert.equal(read.callArgument("merge(cpu)", "merge"), "cpu");
	assert.equal(read.callArgument('merge (cpu{a=")"})', "merge"), 'cpu{a=")"}');
	assert.equal(read.callArgument("merge(cpu) - merge(cpu)", "merge"), null);
	assert.equal(read.callArgument("merge by (a) (cpu)", "merge"), null);
});

test("a point covers the query's own range, else a step", () => {
	assert.equal(query.chartWindow("cpu", 20), 20);
	assert.equal(query.chartWindow("merge(cpu[5m])", 20), 300);
	assert.equal(query.chartWindow("merge(rate(cpu[5m]))", 20), 1, "of a rate a second");
	assert.equal(query.chartWindow('cpu{rate="("}', 20), 20);
});

test("what adds up is drawn per second", () => {
	for (const [text, want] of [
		["total(merge(cpu))", "total(merge(rate(cpu[20s])))"],
		['total(merge by (v) (cpu{a="b"}))', 'total(merge by (v) (rate(cpu{a="b"}[20s])))'],
		['total(focus(merge(cpu), "x"))', 'total(focus(merge(rate(cpu[20s])), "x"))'],
		["total(merge({job=\"a\"}))", "total(merge(rate({job=\"a\"}[20s])))"],
		[
			'flat by (function) (cpu, {function=~"a|b"}) or total(merge(cpu))',
			'flat by (function) (rate(cpu[20s]), {function=~"a|b"}) or total(merge(rate(cpu[20s])))',
		],
		// Queries with a time or window are not changed.
		["total(merge(cpu[5m]))", "total(merge(cpu[5m]))"],
		["total(rate(cpu[5m]))", "total(rate(cpu[5m]))"],
		["total(merge(cpu offset 1h))", "total(merge(cpu offset 1h))"],
		["total(merge(cpu @ 100))", "total(merge(cpu @ 100))"],
	])
		assert.equal(query.withRate(text, 20), want);
});

test("mean rates: the windows of a query, else one that is given", () => {
	for (const [text, want] of [
		["total(merge(cpu))", "total(merge(mean_rate(cpu[15m])))"],
		['total(merge by (v) (cpu{a="b"}))', 'total(merge by (v) (mean_rate(cpu{a="b"}[15m])))'],
		['total(focus(merge(cpu), "x"))', 'total(focus(merge(mean_rate(cpu[15m])), "x"))'],
		["total(merge(cpu[5m] offset 1h))", "total(merge(mean_rate(cpu[5m] offset 1h)))"],
		["total(merge(cpu offset 1h))", "total(merge(mean_rate(cpu[15m] offset 1h)))"],
		// A function over the windows says itself what is taken.
		["total(merge(rate(cpu[5m])))", null],
		["total(mean_rate(cpu[5m]))", null],
		["sum(up)", null],
		["vector(1)", null],
		["total(merge(", null],
	])
		assert.equal(query.meanRateQuery(text, 900), want, text);
	assert.equal(query.chartWindow("merge(mean_rate(cpu[5m]))", 20), 1);
});

test("a difference of windows never looks into the future", () => {
	const cpu = (q, start, end) => ({ query: q, start, end });
	assert.deepEqual(query.diffQuery(cpu("cpu", 900, 1800), cpu("cpu", 0, 900)), {
		query: "diff(merge(cpu[15m]), merge(cpu[15m] offset 15m))",
		time: 1800,
		next: "merge(cpu[15m])",
		base: "merge(cpu[15m] offset 15m)",
	});
	assert.deepEqual(query.diffQuery(cpu('merge(cpu{v="2"})', 0, 60), cpu('cpu{v="1"}', 60, 150)), {
		query: 'diff(merge(cpu{v="2"}[1m] offset 1m30s), merge(cpu{v="1"}[1m30s]))',
		time: 150,
		next: 'merge(cpu{v="2"}[1m] offset 1m30s)',
		base: 'merge(cpu{v="1"}[1m30s])',
	});
	assert.equal(
		query.diffQuery(cpu("cpu", 0, 60), cpu("cpu", 0, 60), true).query,
		"diff_normalized(merge(cpu[1m]), merge(cpu[1m]))",
	);
	assert.equal(
		query.diffQuery(cpu('focus(cpu, "x")', 0, 60), cpu("cpu[5m]", 0, 60)).query,
		'diff(merge(focus(cpu[1m], "x")), merge(cpu[5m]))',
	);
});

test("a difference of groups keeps its groups", () => {
	const side = (query) => ({ query, start: 0, end: 60 });
	assert.equal(
		query.diffQuery(side("merge by (a) (cpu)"), side('focus(merge by (a) (cpu), "x")')).query,
		'diff(merge by (a) (cpu[1m]), focus(merge by (a) (cpu[1m]), "x"))',
	);
});

test("one matcher is set in every selector", () => {
	assert.equal(query.withMatcher("cpu", "version", "v2"), 'cpu{version="v2"}');
	assert.equal(
		query.withMatcher('focus(cpu{job="a",version=~"v."}, "x")', "version", "v1"),
		'focus(cpu{job="a",version="v1"}, "x")',
	);
});

test("filters are found by their calls", () => {
	assert.equal(query.hasFilter('merge(focus(cpu, "x"))'), true);
	assert.equal(query.hasFilter('cpu{job="focus("}'), false);
	assert.equal(query.hasFilter("merge(cpu)"), false);
});

test("keywords and aggregations are read in any case", () => {
	const names = (q) => read.findSelectors(q).map((s) => s.name);
	assert.deepEqual(names("sum BY (job) (up)"), ["up"]);
	assert.deepEqual(names("a AND b Unless ON (job) c"), ["a", "b", "c"]);
	assert.deepEqual(names("a atan2 b"), ["a", "b"]);
	assert.deepEqual(names("cpu OFFSET 1h + inf"), ["cpu"]);
	assert.deepEqual(names("SUM(up) BY (job) / time()"), ["up"]);
	assert.equal(query.withWindow("merge BY (job) (cpu)", 60, 0), "merge BY (job) (cpu[1m])");
	// Only profiles get a window.
	assert.equal(query.withWindow("sum BY (job) (up)", 60, 0), "sum BY (job) (up)");
	assert.equal(query.withMatcher("a ATAN2 b", "x", "y"), 'a{x="y"} ATAN2 b{x="y"}');
});

test("what the server's table says that functions give", () => {
	for (const [text, want] of [
		["ceil(flat(cpu))", "costs"],
		["stdvar by (job) (up)", "costs"],
		["Count_Values(\"v\", up)", "costs"],
		["quantile_over_time(0.5, up[5m])", "costs"],
		["absent(cpu)", "costs"],
		["flat(cpu) > 5", "costs"],
		["total(cpu) AND total(heap)", "costs"],
		["total(cpu) atan2 total(heap)", "costs"],
		["callees(cpu, \"x\")", "profiles"],
		["max_over_time(cpu[5m])", "profiles"],
		["cpu * 2", "unknown"],
		["nosuch(cpu)", "unknown"],
	])
		assert.equal(types.guessKind(text), want, text);
});

test("numbers, strings and comments are the server's", () => {
	const at = (q) => read.findSelectors(q).map((s) => q.slice(s.start, s.end));
	assert.deepEqual(at("a > 1e-5 + .5e+3 - b[1h30m] offset -5m @ end()"), [
		"a",
		"b[1h30m] offset -5m @ end()",
	]);
	assert.deepEqual(at('cpu<a="b">==0x1f'), ['cpu<a="b">']);
	assert.deepEqual(at("by{a='}'} and offset"), ["by{a='}'}", "offset"]);
	assert.equal(text.unquote('"\\u00e4\\xc3\\xa4\\303\\244\\U0001f600\\t\\"\\\\"'), 'äää😀\t"\\');
	assert.equal(text.unquote("`\\n`"), "\\n");
});

test("a window is moved with all that is asked", () => {
	for (const [text, want] of [
		["cpu", "cpu[1m] offset 1h"],
		["cpu[5m]", "cpu[5m] offset 1h"],
		["cpu offset 30m", "cpu[1m] offset 1h30m"],
		["cpu offset -2h", "cpu[1m] offset -1h"],
		["cpu @ 100", "cpu[1m] @ 100"],
		["cpu @ end()", "cpu[1m] offset 1h @ end()"],
		["cpu * scalar(sum(up))", "cpu[1m] offset 1h * scalar(sum(up offset 1h))"],
		['focus(cpu{a="b"}, "cpu")', 'focus(cpu{a="b"}[1m] offset 1h, "cpu")'],
	])
		assert.equal(query.withWindow(text, 60, 3600), want);
});

test("a comment hides nothing that is written behind it", () => {
	const cpu = "cpu # all of it";
	assert.equal(query.tableQuery(cpu, 5), "top(5, merge(cpu))");
	assert.equal(query.chartQuery(`merge(${cpu}\n)`, "job", "profiles"), "total(merge by (job) (cpu))");
	const side = { query: cpu, start: 0, end: 60 };
	assert.equal(query.diffQuery(side, side).query, "diff(merge(cpu[1m]), merge(cpu[1m]))");
});
