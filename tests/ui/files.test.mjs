// Files in queries, and what the page makes of what is in them.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { api, filecontents, queryfiles } = page;
const query = queryfiles;

const CPU = {
	name: "process_cpu",
	time: 1700000000,
	duration: 9,
	samples: 3,
	types: [
		{ type: "samples", unit: "count", default: false },
		{ type: "cpu", unit: "nanoseconds", default: true },
	],
};
const HEAP = {
	name: "memory",
	samples: 3,
	types: [
		{ type: "alloc_space", unit: "bytes", default: false },
		{ type: "inuse_space", unit: "bytes", default: true },
	],
};
const contents = (...profiles) => ({ name: "x", format: "JFR", bytes: 1, keepMax: 0, profiles });
const stored = (name, sample_type, sample_unit, delta = true) => ({
	type: `${name}:${sample_type}:${sample_unit}:a:b${delta ? ":delta" : ""}`,
	name,
	sample_type,
	sample_unit,
	period_type: "a",
	period_unit: "b",
	delta,
});
const STORED = [
	stored("process_cpu", "samples", "count"),
	stored("process_cpu", "cpu", "nanoseconds"),
	stored("memory", "inuse_space", "bytes", false),
	stored("odd", "cpu", "count"),
];

test("files are found in queries, not in strings", () => {
	const text = 'diff(merge(file("a.pb")), focus(file("b", "memory:alloc_space"), "file(\\"c\\")")) # file("d")';
	assert.deepEqual(
		query.filesOf(text).map((f) => [f.name, f.type, text.slice(f.start, f.end)]),
		[
			["a.pb", "", 'file("a.pb")'],
			["b", "memory:alloc_space", 'file("b", "memory:alloc_space")'],
		],
	);
	assert.equal(query.hasFiles("cpu", 'cpu{file="x"}'), false);
	assert.equal(query.hasFiles("cpu", 'total(file("x"))'), true);
	assert.equal(query.fileQuery("a", "cpu"), 'file("a", "cpu")');
	assert.equal(query.isFileId("0123456789abcdef0123456789abcdef"), true);
	assert.equal(query.isFileId("0123456789abcdef0123456789abcde"), false);
});

test("a file is exchanged wherever it is", () => {
	const text = 'diff(file("a", "cpu"), file("a"))';
	assert.equal(
		query.withFile(text, "a", (f) => query.fileQuery("b", f.type)),
		'diff(file("b", "cpu"), file("b"))',
	);
	assert.equal(query.withFile(text, "c", () => "x"), text);
});

test("names of files need no escape, and are given once", () => {
	const taken = new Set(["heap.pb.gz", "heap-2.pb.gz"]);
	for (const [file, want] of [
		["cpu.pb.gz", "cpu.pb.gz"],
		["heap.pb.gz", "heap-3.pb.gz"],
		['my "best" profile (1).pb', "my-best-profile-1-.pb"],
		["日本", "profile"],
		["", "profile"],
	])
		assert.equal(filecontents.droppedName(file, (n) => taken.has(n)), want, file);
	assert.equal(filecontents.droppedName("x".repeat(200) + ".pb", () => false).length, 80);
});

test("types of a file are options, the default is not named", () => {
	const c = contents(HEAP, CPU);
	assert.deepEqual(filecontents.typeOptions(c), [
		["memory:alloc_space", "memory · alloc_space (bytes)"],
		["memory:inuse_space", "memory · inuse_space (bytes)"],
		["process_cpu:samples", "process_cpu · samples (count)"],
		["", "process_cpu · cpu (nanoseconds)"],
	]);
	for (const [type, want] of [
		["", ""],
		["cpu", ""],
		["samples", "process_cpu:samples"],
		["alloc_space", "memory:alloc_space"],
		["memory:alloc_space", "memory:alloc_space"],
		["nonsense", ""],
	])
		assert.equal(filecontents.chosenType(c, type), want, type);
});

test("a file is compared with what is stored of its type and unit", () => {
	for (const [c, type, want] of [
		[contents(CPU), "", "cpu"],
		[contents(CPU), "samples", "cpu:samples"],
		[contents(HEAP), "", "memory"],
		[contents(HEAP), "alloc_space", ""],
		[contents({ ...CPU, name: "odd" }), "", ""],
	])
		assert.equal(filecontents.productionQuery(c, type, STORED), want, JSON.stringify([c, type]));
});

test("two files: the older one is the base", () => {
	const old = { name: "a", contents: contents({ ...CPU, time: 100 }) };
	const young = { name: "b", contents: contents({ ...CPU, time: 200 }) };
	const timeless = { name: "c", contents: contents(HEAP) };
	const sides = (...o) => filecontents.compareFiles(o);
	assert.deepEqual(sides(old, young), { new: 'file("b")', base: 'file("a")' });
	assert.deepEqual(sides(young, old), { new: 'file("b")', base: 'file("a")' });
	assert.deepEqual(sides(young, timeless), { new: 'file("c")', base: 'file("b")' });
});

test("on Compare a file is the new side", () => {
	const opened = [{ name: "a", contents: contents(CPU) }];
	for (const [next, base, want] of [
		// Against what is stored: the base's query if it is of the file's type, else all of the type.
		["cpu", 'cpu{job="x"}', { new: 'file("a")', base: 'cpu{job="x"}', norm: "1" }],
		["memory", "memory", { new: 'file("a")', base: "cpu", shift: "0", norm: "1" }],
		// Against the file that was there.
		['file("b")', "cpu", { new: 'file("a")', base: 'file("b")', norm: null }],
		["cpu", 'file("b", "cpu")', { new: 'file("a")', base: 'file("b", "cpu")', norm: null }],
	])
		assert.deepEqual(filecontents.openedSides(opened, { next, base }, STORED), want);
});

test("a query that names a file carries it along", async (t) => {
	const sent = [];
	const before = { fetch: globalThis.fetch, document: globalThis.document };
	t.after(() => {
		Object.assign(globalThis, before);
		api.droppedFiles.clear();
	});
	globalThis.document = { baseURI: "http://epi.example/" };
	globalThis.fetch = async (url, init) => {
		sent.push([String(url), init]);
		return new Response('{"status":"success","data":null}');
	};
	api.droppedFiles.set("a.pb", new Blob(["main 1"]));
	await api.call("query", { query: "cpu", time: 1 });
	await api.call("query", { query: 'file("a.pb")', "call_site[]": ["x", "y"], time: undefined });
	await api.call("parse_query", { query: 'file("a.pb")' });
	assert.deepEqual(
		sent.map(([url, init]) => [url, init.method]),
		[
			["http://epi.example/api/v1/query?query=cpu&time=1", undefined],
			["http://epi.example/api/v1/query", "POST"],
			["http://epi.example/api/v1/parse_query?query=file%28%22a.pb%22%29", undefined],
		],
	);
	const form = [...sent[1][1].body];
	assert.deepEqual(form.slice(0, 3), [
		["query", 'file("a.pb")'],
		["call_site[]", "x"],
		["call_site[]", "y"],
	]);
	assert.equal(form[3][0], "file");
	assert.equal(form[3][1].name, "a.pb");
	assert.equal(await form[3][1].text(), "main 1");
});
