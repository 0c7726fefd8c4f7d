// The page and the server read queries alike: every function and operator of the running server
// goes through every edit of the page, and the test asks the server what the results mean.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { LANGUAGE, page } from "./page.mjs";
import { startServer } from "./server.mjs";

const { candidates, complete, costchart, edit, labels, language, measured, query, read, types } =
	page;

let server;
before(async () => {
	server = await startServer();
});
after(() => server?.stop());

const answers = new Map();

/** The server's tree of a query; null if the query is invalid. */
async function tree(text) {
	if (!answers.has(text))
		answers.set(
			text,
			server.ask("parse_query", { query: text }).then((a) => a.data ?? null),
		);
	return answers.get(text);
}

async function parsed(text, from) {
	const found = await tree(text);
	assert.ok(found, `the server does not take ${text}, made of ${from}`);
	return found;
}

/* ---- queries with every function and operator ---- */

function argument(types) {
	const is = (t) => types.includes(t);
	if (is("frames")) return '{function="f"}';
	if (is("window")) return is("profiles") ? 'cpu{job="a"}[5m]' : "up[5m] offset 1m";
	if (is("profiles")) return 'cpu{job=~"a|b"}';
	if (is("costs")) return "total(cpu)";
	if (is("label")) return '"job"';
	return is("scalar") ? "2" : '"x"';
}

/** A function with few and with all arguments, with each modifier, aggregations in capitals. */
function callsOf(f) {
	const all = f.argumentTypes.map(argument);
	const few = all.slice(0, all.length - Math.max(0, f.variadic));
	const name = LANGUAGE.aggregations.includes(f) ? f.name.toUpperCase() : f.name;
	const calls = [`${f.name}(${few.join(", ")})`, `${name}(${all.join(", ")})`];
	for (const m of f.modifiers) {
		calls.push(`${name} ${m.toUpperCase()} (job, pod) (${all.join(", ")})`);
		if (m === "by" || m === "without") calls.push(`${f.name}(${few.join(", ")}) ${m} (job)`);
	}
	return calls;
}

const AROUND = {
	profiles: [
		(q) => q,
		(q) => `merge(${q})`,
		(q) => `merge by (pod) (focus(${q}, "x"))`,
		(q) => `top(5, ${q})`,
		(q) => `sum(total(${q}))`,
		(q) => `(${q}) - cpu{job="b"} offset 1h`,
		(q) => `cpu - on (job) ${q}`,
		(q) => `focus(${q} - cpu, "^x$") * 2`,
		(q) => `diff(merge(${q}), cpu<job="b">)`,
		(q) => `${q} # with a comment)`,
	],
	costs: [
		(q) => q,
		(q) => `ceil(${q})`,
		(q) => `sum BY (job) (${q}) > bool 1e-3`,
		(q) => `-(${q})`,
		(q) => `max_over_time((${q})[1h:5m] offset 1d)`,
		(q) => `cpu * scalar(${q})`,
		(q) => `total(cpu{job!="b"}) / ON (job) Group_Left ${q}`,
	],
	scalar: [(q) => q, (q) => `cpu * ${q}`, (q) => `vector(${q})`],
	table: [(q) => q],
};

function operatorQueries() {
	const out = [];
	for (const { name, kind } of LANGUAGE.operators) {
		const written = [name, name.toUpperCase()];
		if (kind === "comparison") written.push(`${name} bool`);
		if (kind !== "set") written.push(`${name} on (job) group_left (pod)`);
		written.push(`${name} ignoring (pod)`);
		for (const op of written)
			for (const [a, b] of [
				["cpu", "heap{job='b'} offset 2m"],
				["cpu", "2"],
				["2", "cpu"],
				["1", "inf"],
				["total(cpu)", "up @ end()"],
				["merge(cpu)", "merge(heap[5m])"],
			])
				out.push(`${a} ${op} ${b}`, `focus(${a} ${op} ${b}, "x")`);
		for (const { name: other } of LANGUAGE.operators)
			for (const x of ["total(cpu)", "cpu", "2"]) out.push(`-${x} ${name} ${x} ${other} 3`);
	}
	return out;
}

let all;

/** The valid queries with the server's trees. They have every function and operator. */
async function queries() {
	if (all) return all;
	const texts = [...LANGUAGE.functions, ...LANGUAGE.aggregations].flatMap((f) =>
		f.returns
			.split(" or ")
			.flatMap((type) => AROUND[type].flatMap((around) => callsOf(f).map(around))),
	);
	texts.push("cpu", "cpu[5m]", 'cpu<job="a">[5m] @ 100 offset 1m', "by{a='}'} - offset");
	texts.push(
		...["total(cpu)[1h:5m]", "up[30m:] @ end()", "cpu[300] offset 60", "cpu offset +1.5", "up > 5m * 2"],
		...['{"http.cpu", "host.name"="a"}[5m]', '{"cpu"}', 'merge by ("host.name") (cpu{"k.v"=~"x"})'],
		...['sum by ("a.b", job) (total(cpu))', "rate(sum(total(cpu))[10m:1m]) * 2", "up[5m:1m] offset 5m"],
		...['total(cpu) * on ("a.b") group_left ("c d") up', "merge(rate(cpu[5m])) - merge(rate(cpu[5m] offset 1h))"],
	);
	const found = [];
	for (const text of new Set([...texts, ...operatorQueries()])) {
		const root = await tree(text);
		if (root) found.push({ text, root });
	}
	all = found;
	return all;
}

/* ---- the server's trees ---- */

const children = (n) =>
	[n.lhs, n.rhs, n.expr, n.param, ...(n.args ?? [])].filter((c) => c && c.type);
const nodes = (n) => [n, ...children(n).flatMap(nodes)];
const isSelector = (n) => n.type === "matrixSelector" || n.type === "vectorSelector";
const selectors = (n) =>
	nodes(n)
		.filter(isSelector)
		.sort((a, b) => a.position.start - b.position.start);
const nameOf = (n) => n.func?.name ?? n.op ?? "";

/** The meaning of a tree, as text; `change` may replace nodes. */
function meaning(root, change = (n) => n) {
	const walk = (n) => {
		if (!n || !n.type) return n;
		const m = change(n);
		if (m.type === "parenExpr") return walk(m.expr);
		const { position: _, valueTypes: __, type, ...rest } = m;
		const out = { type: isSelector(m) ? "selector" : type };
		for (const [k, v] of Object.entries(rest).sort())
			out[k] = Array.isArray(v) ? v.map(walk) : k === "func" ? v.name : walk(v);
		return out;
	};
	return JSON.stringify(walk(root));
}

const GIVES = { vector: "costs", matrix: "range" };
const typesOf = (root) => root.valueTypes.split("|").map((t) => GIVES[t] ?? t);
const isProfiles = (root) => typesOf(root).includes("profiles");
/** The profiles that a query is about: the query itself, or the argument of `top`. */
const subject = (root) => (nameOf(root) === "top" ? root.args[1] : root);

/* ---- the tests ---- */

test("language.json is what the server says", async () => {
	assert.deepEqual((await server.ask("language")).data, LANGUAGE);
});

test("trees.json is what the server says", async () => {
	const trees = JSON.parse(readFileSync(new URL("trees.json", import.meta.url), "utf8"));
	const part = (of, whole) =>
		of && typeof of === "object"
			? Object.fromEntries(Object.entries(of).map(([k, v]) => [k, part(v, whole?.[k])]))
			: whole;
	const plain = (x) => JSON.parse(JSON.stringify(x), (_, v) => (Array.isArray(v) ? { ...v } : v));
	for (const [text, want] of Object.entries(trees)) {
		const got = plain(await parsed(text, "trees.json"));
		assert.deepEqual(part(plain(want), got), plain(want), text);
	}
});

test("each function and operator is among the queries", async () => {
	const seen = new Set((await queries()).flatMap(({ root }) => nodes(root).map(nameOf)));
	for (const f of [...LANGUAGE.functions, ...LANGUAGE.aggregations, ...LANGUAGE.operators])
		assert.ok(seen.has(f.name), f.name);
});

test("the reader finds what the server finds", async () => {
	for (const { text, root } of await queries()) {
		const q = read.readQuery(text);
		assert.ok(q.tree, `not read: ${text}`);
		const ours = q.selectors.map((s) => ({
			name: s.name,
			start: s.start,
			end: s.end,
			range: (s.range ?? 0) * 1000,
			offset: s.offset * 1000,
			matchers: s.matchers.map((m) => `${m.label}${m.op}${m.value}`),
		}));
		const theirs = selectors(root).map((s) => ({
			name: s.name,
			...s.position,
			range: s.range ?? 0,
			offset: s.offset,
			matchers: s.matchers
				.filter((m) => m.name !== "__name__" || !s.name)
				.map((m) => `${m.name}${m.type}${m.value}`),
		}));
		assert.deepEqual(ours, theirs, text);
		const calls = nodes(root).filter((n) => n.func || n.type === "aggregation");
		assert.equal(q.calls.length, calls.length, text);
		const binary = (n) =>
			n.type === "binary" || n.type === "binaryExpr"
				? [n.start ?? n.position.start, n.end ?? n.position.end, n.op.name ?? n.op]
				: [];
		const below = (n) => [n, ...read.queryChildren(n).flatMap(below)];
		const spans = (list) => list.map(binary).filter((b) => b.length).sort();
		assert.deepEqual(spans(below(q.tree)), spans(nodes(root)), text);
	}
});

test("the page knows what a query gives", async () => {
	for (const { text, root } of await queries()) {
		const ours = [...types.typesOf(read.readQuery(text).tree)];
		for (const type of typesOf(root)) assert.ok(ours.includes(type), `${text}: ${type}`);
		const kind = types.guessKind(text);
		if (kind === "costs")
			assert.ok(!isProfiles(root) && nameOf(root) !== "top", `${text}: ${kind}`);
		if (kind === "profiles") assert.ok(isProfiles(root), `${text}: ${kind}`);
		assert.equal(kind === "top", nameOf(root) === "top", text);
	}
});

test("windows and offsets", async () => {
	for (const { text, root } of await queries()) {
		const plain = (n) => (isSelector(n) ? { ...n, range: 0, offset: 0 } : n);
		for (const offset of [0, 3600]) {
			const got = await parsed(query.withWindow(text, 60, offset), text);
			assert.equal(meaning(got, plain), meaning(root, plain), text);
			const was = selectors(root);
			selectors(got).forEach((s, i) => {
				if (was[i].range) assert.equal(s.range, was[i].range, text);
				else if (s.valueTypes === "profiles") assert.equal(s.range, 60000, text);
				const moved = was[i].timestamp == null ? offset * 1000 : 0;
				assert.equal(s.offset, was[i].offset + moved, text);
			});
		}
		const windowed = await parsed(query.withWindow(text, 60, 0), text);
		for (const n of nodes(windowed))
			(n.args ?? [n.expr]).forEach((a, i) => {
				const wants = language.argumentTypes(nameOf(n), i);
				if (a && isSelector(a) && wants.includes("profiles") && !wants.includes("costs"))
					assert.ok(a.range, `${text}: a selector of profiles without a window`);
			});
	}
});

test("rates", async () => {
	for (const { text, root } of await queries()) {
		const got = query.withRate(text, 20);
		const timed = (s) => s.range || s.offset || s.timestamp != null || s.startOrEnd;
		if (selectors(root).some(timed) || nodes(root).some((n) => n.type === "subquery")) {
			assert.equal(got, text);
			continue;
		}
		const rate = (n) =>
			nameOf(n) === "rate" ? { ...n.args[0], range: undefined } : n;
		assert.equal(meaning(await parsed(got, text), rate), meaning(root), text);
	}
});

test("matchers", async () => {
	const without = (n) =>
		isSelector(n) ? { ...n, matchers: n.matchers.filter((m) => m.name !== "job") } : n;
	for (const { text, root } of await queries()) {
		for (const edited of [
			query.withMatcher(text, "job", 'x"y'),
			labels.pickValue(text, "job", 'x"y', false),
		]) {
			const got = await parsed(edited, text);
			assert.equal(meaning(got, without), meaning(root, without), text);
			for (const s of selectors(got))
				assert.ok(
					s.matchers.some((m) => m.name === "job" && m.type === "=" && m.value === 'x"y'),
					edited,
				);
		}
	}
});

test("what the views ask", async () => {
	for (const { text, root } of await queries()) {
		const kind = types.guessKind(text);
		if (kind === "costs")
			assert.equal(meaning(await parsed(query.chartQuery(text, "job", kind), text)), meaning(root));
		if (!isProfiles(subject(root))) continue;
		const bare = (n) => (nameOf(n) === "merge" ? n.expr : n);
		const flame = await parsed(query.flameQuery(text), text);
		assert.equal(meaning(flame, bare), meaning(root, bare), text);
		if (nameOf(root) !== "top") {
			const table = await parsed(query.tableQuery(text, 5), text);
			assert.equal(meaning(table.args[1]), meaning(flame), text);
		}
		const profiles = query.profilesOf(query.clean(text));
		for (const by of ["", "job"]) {
			const chart = await parsed(query.chartQuery(text, by, kind), text);
			assert.equal(nameOf(chart), "total", text);
			assert.ok(isProfiles(chart.args[0]), text);
		}
		const functions = await parsed(costchart.functionsQuery(profiles, ["f"]), text);
		assert.deepEqual([nameOf(functions), nameOf(functions.lhs)], ["or", "flat"], text);
	}
});

test("filters on and off", async () => {
	const merged = (n) => (nameOf(n) === "merge" && !n.grouping.length && isSelector(n.expr) ? n.expr : n);
	for (const { text, root } of await queries()) {
		if (!isProfiles(subject(root))) {
			assert.equal(edit.wrapFilter(text, "focus", "main.f"), text);
			assert.equal(edit.halfOf(text, "callers", "main.f"), text);
			assert.equal(edit.linesOf(text, "flat", "main.f", []), text);
			continue;
		}
		for (const f of LANGUAGE.functions.filter((f) => language.filterKind(f.name) === "frames")) {
			const edited = edit.wrapFilter(text, f.name, "main.f");
			const got = subject(await parsed(edited, text));
			assert.equal(nameOf(got), f.name, edited);
			assert.equal(got.args[1].val, "^\\Qmain.f\\E$", edited);
			assert.equal(meaning(got.args[0], merged), meaning(subject(root), merged), edited);
			const off = edit.removeFilter(edited, { filter: f.name, pattern: got.args[1].val });
			assert.equal(meaning(await parsed(off, edited), merged), meaning(root, merged), off);
		}
		const lines = await parsed(edit.linesOf(text, "cum", 'f"g', ["job"]), text);
		assert.equal(nameOf(subject(lines)), "cum", text);
	}
});

test("the filters of a query are found and come off", async () => {
	for (const { text, root } of await queries()) {
		const there = nodes(root).filter((n) => language.filterKind(nameOf(n)));
		const found = edit.activeFilters([text]);
		const pairs = new Set(there.map((n) => `${nameOf(n)} ${n.args[1].val}`));
		assert.deepEqual(new Set(found.map((f) => `${f.filter} ${f.pattern}`)), pairs, text);
		const bare = (n) => (language.filterKind(nameOf(n)) ? bare(n.args[0]) : n);
		const off = found.reduce(edit.removeFilter, text);
		assert.equal(meaning(await parsed(off, text)), meaning(root, bare), off);
		assert.equal(query.hasFilter(text), there.length > 0, text);
	}
});

test("groups", async () => {
	for (const { text, root } of await queries()) {
		if (!isProfiles(subject(root))) {
			assert.equal(edit.groupBy(text, "pod"), text);
			continue;
		}
		const edited = edit.groupBy(text, "zone");
		const got = subject(await parsed(edited, text));
		assert.ok(isProfiles(got), edited);
		assert.deepEqual(edit.groupLabels(edited), ["zone"], edited);
		// Nothing between a merge by the label and the answer takes the label away.
		const outer = (n) => {
			if (nameOf(n) === "merge") return [n];
			if (language.filterKind(nameOf(n))) return outer(n.args[0]);
			if (n.type === "parenExpr") return outer(n.expr);
			if (n.type === "binaryExpr") return [n.lhs, n.rhs].filter(isProfiles).flatMap(outer);
			return /^diff/.test(nameOf(n)) ? n.args.flatMap(outer) : [null];
		};
		for (const m of outer(got)) {
			assert.deepEqual(m?.grouping, ["zone"], edited);
			assert.ok(!m.without, edited);
			// A merge inside would have dropped the label before.
			const lost = nodes(m.expr).some((n) => nameOf(n) === "merge");
			assert.ok(!lost, `${edited}: merged before`);
		}
		const none = subject(await parsed(edit.groupBy(edited, ""), edited));
		for (const m of outer(none)) assert.deepEqual(m?.grouping, [], edited);
	}
});

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta";
/** The type of the profiles, and the function of the alert. Each query is asked with one of them. */
const KINDS = [[CPU, 'f"g'], ["memory:inuse_space:bytes:space:bytes", "f"], ["", "f"], [CPU, null]];

test("alerts, significance and differences", async () => {
	let n = 0;
	for (const { text, root } of await queries()) {
		if (!isProfiles(subject(root))) {
			assert.equal(edit.alertOn(text, "f", CPU), query.clean(text));
			assert.equal(edit.changedQuery(text, 60), null);
			continue;
		}
		const [type, name] = KINDS[n++ % KINDS.length];
		const expr = edit.alertOn(text, name, type);
		const alert = await parsed(edit.overLimit(expr, "2"), text);
		const cost = nameOf(alert.lhs) === "/" ? alert.lhs.lhs : alert.lhs;
		const want = name === null ? "total" : type ? "cum" : "cum_share";
		assert.equal(`${nameOf(alert)} ${nameOf(cost)}`, `> ${want}`, text);
		for (const s of selectors(alert))
			if (s.valueTypes === "profiles") assert.ok(s.range, expr);
		if (name) await parsed(edit.alertAs(expr, type ? "share" : "cost", CPU), text);
		const changed = edit.changedQuery(text, 60);
		if (changed) assert.equal(nameOf(await parsed(changed, text)), "changed_interval");
		if (nameOf(root) === "top") continue;
		const side = (query, start, end) => ({ query, start, end });
		for (const normalized of [false, true]) {
			const d = query.diffQuery(side(text, 3600, 3660), side("merge(cpu)", 0, 60), normalized);
			const got = await parsed(d.query, text);
			assert.equal(nameOf(got), normalized ? "diff_normalized" : "diff", text);
			await parsed(d.next, text);
			const back = await parsed(query.diffQuery(side("cpu", 3600, 3660), side(text, 0, 60)).base, text);
			const was = selectors(root);
			selectors(back).forEach((s, i) =>
				assert.equal(s.offset - was[i].offset, was[i].timestamp == null ? 3600000 : 0, text),
			);
		}
	}
});

test("what an expression measures", async () => {
	for (const { text, root } of await queries()) {
		const found = measured.measured(text, root, { at: 1000, labels: { job: 'x"y' } }, () => "t");
		if (!found) continue;
		for (const q of [found.exact, found.next.query, found.base.query])
			assert.ok(isProfiles(await parsed(q, text)), q);
	}
});

test("each function and keyword is offered and written", async () => {
	const known = { ...candidates.NOTHING_KNOWN, language: LANGUAGE };
	const offered = (text) => {
		const c = complete.contextAt(text, text.length);
		return { c, all: candidates.candidates(c, known) };
	};
	for (const f of [...LANGUAGE.functions, ...LANGUAGE.aggregations]) {
		const { c, all } = offered(f.name);
		const one = all.find((x) => x.text === f.name);
		assert.equal(one?.usage, f.usage, f.name);
		const e = candidates.accept(f.name, c, one);
		assert.equal(e.insert, `${f.name}()`);
		assert.equal(e.caret, e.insert.length - (f.argumentTypes.length ? 1 : 0), f.name);
		f.argumentTypes.forEach((types, i) => {
			const text = `${f.name}(${"1, ".repeat(i)}`;
			const wanted = (end) => complete.contextAt(text + end, (text + end).length)?.wanted;
			if (types.includes("label")) assert.equal(wanted('"'), "label", text);
			if (types.includes("functions")) assert.equal(wanted('"'), "code", text);
			if (types.includes("frames")) assert.equal(wanted('{function="'), "code", text);
		});
	}
	for (const o of LANGUAGE.operators) {
		if (LANGUAGE.keywords.includes(o.name))
			assert.ok(offered(`cpu ${o.name.slice(0, 1)}`).all.some((x) => x.text === o.name), o.name);
		const behind = complete.contextAt(`cpu ${o.name} `, o.name.length + 5);
		assert.equal(behind.wanted, "operand", o.name);
	}
});
