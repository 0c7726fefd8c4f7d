import assert from "node:assert/strict";
import test from "node:test";
import { LANGUAGE, page } from "./page.mjs";

const { candidates: cand, complete, syntax } = page;

/** `|` is the caret. */
function at(marked) {
	const caret = marked.indexOf("|");
	const text = marked.slice(0, caret) + marked.slice(caret + 1);
	return { text, caret, context: complete.contextAt(text, caret) };
}

test("what is meant at the caret", () => {
	for (const [marked, wanted, typed, more] of [
		["|", "operand", ""],
		["cp|", "operand", "cp"],
		["c|pu", "operand", "c", { end: 3 }],
		["cpu:sa|", "operand", "cpu:sa"],
		["cpu:|", "operand", "cpu:"],
		["merge(|", "operand", "", { call: "merge" }],
		["merge(c|)", "operand", "c", { call: "merge", end: 7 }],
		["diff(cpu, m|", "operand", "m", { before: "," }],
		["sum(x) + |", "operand", "", { before: "+" }],
		["a == b|", "operand", "b", { before: "==" }],
		["a and o|", "operand", "o", { before: "and" }],
		["a > bool |", "operand", "", { before: "bool" }],
		["a * on (job) g|", "operand", "g", { before: "on" }],
		["cpu |", "after", "", { before: "cpu" }],
		["cpu off|", "after", "off", { before: "cpu" }],
		["merge |", "after", "", { before: "merge" }],
		["sum(x) b|", "after", "b", { before: ")" }],
		["cpu[5m] |", "after", "", { before: "]" }],
		["merge by (job) |", null],
		["cpu{|", "label", "", { place: "matchers", selector: "cpu" }],
		["cpu{|}", "label", "", { place: "matchers", selector: "cpu" }],
		["cpu{jo|", "label", "jo", { selector: "cpu" }],
		['cpu{job="demo",ver|}', "label", "ver", { selector: 'cpu{job="demo"}' }],
		['{job="demo", |', "label", "", { selector: '{job="demo"}' }],
		['cpu<job="demo",|', "label", "", { selector: 'cpu{job="demo"}' }],
		["merge(cpu{j|})", "label", "j", { selector: "cpu", end: 11 }],
		["cpu{job |", "operator", ""],
		["cpu{job!|", "operator", "!", { start: 7 }],
		["cpu{job=|", "value", "", { label: "job", op: "=", quote: '"', selector: "cpu" }],
		["cpu{job=de|", "value", "de", { label: "job", start: 8 }],
		['cpu{job="|', "value", "", { start: 8, end: 9, label: "job" }],
		['cpu{job="de|mo"}', "value", "de", { start: 8, end: 14 }],
		['cpu{job="de|}', "value", "de", { end: 11 }],
		['cpu{job="|,version="v1"}', "value", "", { end: 9 }],
		['cpu{job=~"a|', "value", "a", { op: "=~", free: true }],
		['cpu{job=~"ab\\|c|', "value", "c", { kept: "ab|" }],
		['cpu{a="x",job!="d|', "value", "d", { op: "!=", selector: 'cpu{a="x"}' }],
		["cpu{job='d|", "value", "d", { quote: "'" }],
		['cpu{job="demo"|', null],
		['cpu{job="demo"|}', null],
		["cpu[|", "duration", ""],
		["cpu[5|", "duration", "5"],
		["cpu[5|]", "duration", "5"],
		["up[1h:|", "duration", ""],
		["up[1h:5|]", "duration", "5"],
		["up[1h:5m]|", "after", ""],
		["cpu offset |", "duration", ""],
		["cpu offset 1|", "duration", "1", { start: 11 }],
		["cpu @ |", "instant", ""],
		["merge by (|", "label", "", { place: "list", call: "merge" }],
		["merge by (job, v|) (cpu{a='b'})", "label", "v", { selector: 'cpu{a="b"}' }],
		["flat by (f|", "label", "f", { call: "flat" }],
		["sum(x) without (|)", "label", "", { place: "list" }],
		["a / on (|", "label", "", { place: "list" }],
		["flat(cpu, {|", "label", "", { place: "frames" }],
		["flat by (job) (cpu, {f|", "label", "f", { place: "frames" }],
		['flat(cpu, {function="|', "code", "", { place: "frames", op: "=", selector: "" }],
		['cum_share(cpu, {function=~"enc|', "code", "enc", { op: "=~" }],
		['flat(cpu, {line="|', null],
		['focus(cpu{job="a"}, "enc|")', "code", "enc", { op: "=~", selector: 'cpu{job="a"}' }],
		['focus(merge by (job) (cpu), "a\\|b|', "code", "b", { kept: "a|" }],
		['focus("|', null],
		['label_replace(x, "a|', "label", "a", { place: "string" }],
		['label_replace(x, "a", "|', null],
		["cpu # co|", null],
		["1 + 2|", null],
		["# words\ncp|", "operand", "cp"],
	]) {
		// `\|` in the table is a bar in the text.
		const [head, tail] = marked.replace(/\\\|/g, "\u0001").split("|");
		const text = (head + (tail ?? "")).replace(/\u0001/g, "|");
		const c = complete.contextAt(text, head.length);
		if (wanted === null) {
			assert.equal(c, null, marked);
			continue;
		}
		assert.ok(c, marked);
		const want = { wanted, typed, ...more };
		const got = Object.fromEntries(Object.keys(want).map((k) => [k, c[k]]));
		assert.deepEqual(got, want, marked);
	}
});

test("behind a whole name", () => {
	const wanted = (text) => complete.contextAt(text, text.length, true)?.wanted;
	assert.equal(wanted("cpu{job"), "operator");
	assert.equal(wanted("cpu"), "after");
	assert.equal(wanted("merge("), "operand");
});

test("where an error stands", () => {
	for (const [text, line, column, want] of [
		["nosuch(cpu)", 1, 1, [0, 6]],
		["merge(cpu", 1, 10, [9, 10]],
		["a\n+ bcd", 2, 3, [4, 7]],
		['"\u00e4\u{1f600}" + x', 1, 8, [8, 9]],
		["a\nb", 1, 2, [1, 2]],
		["a", 3, 1, null],
		["a", 0, 0, null],
		["cpu{version} + 1", 1, 12, [11, 12]],
		["`a\nb` x", 1, 1, [0, 2]],
	]) {
		const s = syntax.placeOf(text, line, column);
		assert.deepEqual(s && [s.start, s.end], want, text);
	}
	const parts = syntax.segments("ab + cd", { start: 5, end: 7 });
	assert.deepEqual(
		parts.map((s) => [s.start, s.end, s.kind, s.wrong]),
		[
			[0, 2, "name", false],
			[2, 3, "", false],
			[3, 4, "operator", false],
			[4, 5, "", false],
			[5, 7, "name", true],
		],
	);
});

const known = {
	...cand.NOTHING_KNOWN,
	types: [
		["process_cpu", "cpu", "nanoseconds"],
		["process_cpu", "samples", "count"],
		["memory", "inuse_space", "bytes"],
	].map(([name, sample_type, sample_unit]) => ({
		type: `${name}:${sample_type}:${sample_unit}:cpu:nanoseconds`,
		name,
		sample_type,
		sample_unit,
	})),
	series: ["memory", "process_cpu", "up"],
	language: {
		...LANGUAGE,
		functions: ["merge", "flat", "diff", "time", "focus"].map((name) =>
			LANGUAGE.functions.find((f) => f.name === name),
		),
		aggregations: LANGUAGE.aggregations.filter((f) => f.name === "sum"),
	},
};

const offered = (marked, names = []) => {
	const { context } = at(marked);
	return cand
		.rank(context, cand.candidates(context, { ...known, names }), 100)
		.map((c) => c.text);
};

test("what is offered, best first", () => {
	assert.deepEqual(offered("|").slice(0, 5), ["cpu", "cpu:samples", "memory", "merge", "flat"]);
	assert.deepEqual(offered("m|"), ["memory", "merge", "cpu:samples", "time", "sum"]);
	assert.deepEqual(offered("up|"), ["up"]);
	assert.deepEqual(offered("mg|"), ["merge"]);
	assert.deepEqual(offered("merge |"), ["by", "without"]);
	assert.deepEqual(offered("diff o|"), ["on", "ignoring"]);
	assert.deepEqual(offered("sum(x) w|"), ["without"]);
	assert.deepEqual(offered("a > b|"), ["bool"]);
	assert.deepEqual(offered("cpu{|", ["__name__", "job", "a.b"]), ["job", "__name__"]);
	assert.deepEqual(offered("cpu{job!|"), ["!=", "!~"]);
	assert.deepEqual(offered("cpu[5|").slice(0, 2), ["5m", "5s"]);
	assert.deepEqual(offered("flat(cpu, {fu|"), ["function"]);
	assert.deepEqual(offered("flat by (l|", ["level"]), ["line", "level", "filename", "build_id"]);
	assert.deepEqual(offered('focus(cpu, "^json\\\\.Mar|', ["json.Marshal", "main"]), [
		"json.Marshal",
	]);
	assert.deepEqual(offered('cpu{handler="/a|', ["/b", "/ab", "/a"]), ["/a", "/ab"]);
});

test("an expression does not part within groups", () => {
	const typed = '(cpu, "(a|b)|c';
	const c = complete.contextAt("focus" + typed, 5 + typed.length);
	assert.deepEqual([c.kept, c.typed], ["(a|b)|", "c"]);
});

test("what the text becomes", () => {
	const apply = (marked, kind, text, usage) => {
		const { text: whole, context } = at(marked);
		const e = cand.accept(whole, context, { kind, text, usage });
		const out = whole.slice(0, e.start) + e.insert + whole.slice(e.end);
		return out.slice(0, e.caret) + "|" + out.slice(e.caret) + (e.more ? " +" : "");
	};
	for (const [marked, kind, text, want, usage] of [
		["cp|", "type", "cpu", "cpu|"],
		["merge(c|pu)", "type", "cpu:samples", "merge(cpu:samples|)"],
		["me|", "function", "merge", "merge(|) +"],
		["me|(cpu)", "function", "merge", "merge|(cpu)"],
		["su| by (job) (x)", "aggregation", "sum", "sum| by (job) (x)"],
		["ti|", "function", "time", "time()|", "time()"],
		["cpu off|", "keyword", "offset", "cpu offset | +"],
		["merge b|", "keyword", "by", "merge by (|) +"],
		["merge b|(job)", "keyword", "by", "merge by |(job)"],
		["sum(x)|", "keyword", "by", "sum(x) by (|) +"],
		["cpu @ s|", "keyword", "start()", "cpu @ start()|"],
		["cpu{j|}", "label", "job", "cpu{job|} +"],
		['cpu{j|="a"}', "label", "job", 'cpu{job|="a"}'],
		["cpu{job|", "operator", "=~", "cpu{job=~| +", undefined],
		["cpu{job=|", "value", "demo", 'cpu{job="demo"|'],
		['cpu{job="d|}', "value", "demo", 'cpu{job="demo"|}'],
		['cpu{job="d|"}', "value", "demo", 'cpu{job="demo"|}'],
		['cpu{job="|', "value", 'a"b\\c', 'cpu{job="a\\"b\\\\c"|'],
		["cpu{job='|", "value", "it's", "cpu{job='it\\'s'|"],
		["cpu{job=`|", "value", "a\\b", "cpu{job=`a\\b`|"],
		['cpu{job=~"v.|', "value", "v1.2", 'cpu{job=~`v1\\.2`|'],
		["cpu[|", "duration", "5m", "cpu[5m]|"],
		["cpu[5|]", "duration", "5m", "cpu[5m|]"],
		["cpu offset 1|", "duration", "1h", "cpu offset 1h|"],
		["merge by (j|)", "label", "job", "merge by (job|)"],
		['focus(cpu, "enc|")', "code", "json.(*E).x", 'focus(cpu, `^\\Qjson.(*E).x\\E$`|)'],
		["focus(cpu, `enc|`)", "code", "main", "focus(cpu, `^main$`|)"],
		['focus(cpu, "a|b")', "code", "main", 'focus(cpu, "^main$"|)'],
		['flat(cpu, {function="|"})', "code", "json.(*E).x", 'flat(cpu, {function="json.(*E).x"|})'],
		['flat(cpu, {function=~"a|"})', "code", "a.b", 'flat(cpu, {function=~`a\\.b`|})'],
		['label_replace(x, "j|", "")', "label", "job", 'label_replace(x, "job"|, "")'],
	]) {
		if (kind === "operator") {
			const text1 = "cpu{job ";
			const c = complete.contextAt(text1, text1.length);
			const e = cand.accept(text1, c, { kind, text });
			assert.deepEqual([e.insert, e.more], ["=~", true]);
			continue;
		}
		assert.equal(apply(marked, kind, text, usage), want, marked);
	}
});

test("what is asked of the server", () => {
	const q = (marked) => cand.namesQuestion(at(marked).context);
	assert.deepEqual(q("cpu{j|"), { name: "labels", args: { "match[]": "cpu" } });
	assert.deepEqual(q('cpu{a="b",job="|'), {
		name: "label/job/values",
		args: { "match[]": 'cpu{a="b"}' },
	});
	assert.deepEqual(q('focus(cpu, "^json\\\\.Mar|').args, {
		substring: "json.Mar",
		limit: "300",
		"match[]": "cpu",
	});
	assert.equal(q("cp|"), null);
	assert.equal(q("flat(cpu, {|"), null);
});

test("every word has its look", () => {
	const looks = (text) => syntax.queryWords(text).map((w) => `${w.text} ${w.kind}`);
	assert.deepEqual(looks('merge by (job) (cpu:samples{job=~"a"}[5m] offset 1h) # so'), [
		"merge function",
		"by keyword",
		"( punct",
		"job label",
		") punct",
		"( punct",
		"cpu:samples name",
		"{ punct",
		"job label",
		"=~ operator",
		'"a" string',
		"} punct",
		"[ punct",
		"5m number",
		"] punct",
		"offset keyword",
		"1h number",
		") punct",
		"# so comment",
	]);
	assert.deepEqual(looks('cpu<a="b"> > 1'), [
		"cpu name",
		"< punct",
		"a label",
		"= operator",
		'"b" string',
		"> punct",
		"> operator",
		"1 number",
	]);
	assert.deepEqual(looks('cpu{a="b'), [
		"cpu name",
		"{ punct",
		"a label",
		"= operator",
		'"b string',
	]);
	for (const text of ["", "))", '"', "{{{", "a b c", "\u00e4 + \u2603"])
		assert.equal(syntax.queryWords(text).map((w) => w.text).join(""), text.replace(/ /g, ""));
	assert.ok(syntax.balanced('f(a{b="("}[5m])'));
	for (const text of ["(", ")(", "f(a]", '{"}']) assert.ok(!syntax.balanced(text), text);
});
