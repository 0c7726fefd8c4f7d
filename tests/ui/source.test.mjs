// The source view: files of a function, costs of lines, dropped files, signs of another version.
import assert from "node:assert/strict";
import { File } from "node:buffer"; // Node 18 has it there alone
import test from "node:test";
import { page } from "./page.mjs";

const { dropped, edit, source } = page;

const el = (metric, value) => ({ metric, value: [0, String(value)] });
const at = (filename, line, value, more = {}) => el({ filename, line: String(line), ...more }, value);

/* ---- the questions ---- */

test("the query of a file's lines: frames that match, by the labels of the element", () => {
	const match = { filename: 'a"b.go', build_id: "ab12" };
	assert.equal(
		edit.framesOf('cpu{job="x"}', "cum", match, ["job", "filename", "line", "job"]),
		'cum by (job, filename, line) (merge(cpu{job="x"}), {filename="a\\"b.go", build_id="ab12"})',
	);
	assert.equal(
		edit.framesOf("top(10, merge by (job) (cpu))", "flat", { function: "f" }, ["job", "line"]),
		'flat by (job, line) (merge by (job) (cpu), {function="f"})',
	);
	assert.equal(edit.linesOf("cpu", "flat", "f", []), 'flat by (filename, line) (merge(cpu), {function="f"})');
});

test("the query of a function's files keeps the labels that links need", () => {
	assert.equal(
		source.placesQuery("merge by (job) (cpu)", "f", ["job"], []),
		'cum by (job, filename, line, build_id, mapping) (merge by (job) (cpu), {function="f"})',
	);
	assert.equal(
		source.placesQuery('cpu{job="x"}', "f", [], ["ref", "repo"]),
		'cum by (ref, repo, filename, line, build_id, mapping) (merge by (ref, repo) (cpu{job="x"}), {function="f"})',
	);
	assert.equal(
		source.placesQuery("focus(merge by (job) (cpu), `a`) - merge by (job) (cpu offset 1h)", "f", ["job"], ["job", "ref"]),
		"cum by (job, ref, filename, line, build_id, mapping) (focus(merge by (job, ref) (cpu), `a`) - " +
			'merge by (job, ref) (cpu offset 1h), {function="f"})',
	);
});

/* ---- places ---- */

test("the files of a function, the costliest first, with their builds and labels", () => {
	const a = { build_id: "aa", mapping: "/bin/a", repo: "r1" };
	const b = { build_id: "bb", mapping: "/bin/a", repo: "r2" };
	const places = source.placesOf(
		[
			at("/src/x.go", 10, 5, a),
			at("/src/x.go", 11, 7, b),
			at("/src/x.go", 10, 4, b),
			at("/src/y.go", 3, -40, a),
			at("/src/x.go", 0, 1, a),
			el({ line: "5" }, 1000), // no file
		],
		{},
		["repo"],
	);
	assert.deepEqual(
		places.map((p) => [p.file, p.cum, [...p.lines]]),
		[
			["/src/y.go", 40, [[3, 40]]],
			["/src/x.go", 17, [[10, 9], [11, 7]]],
		],
	);
	assert.deepEqual(places[1].builds, [
		{ id: "bb", mapping: "/bin/a", cum: 11, labels: { repo: "r2" } },
		{ id: "aa", mapping: "/bin/a", cum: 6, labels: { repo: "r1" } },
	]);
});

test("only the costs of the element that is shown count", () => {
	const vector = [
		at("/x.go", 1, 3, { job: "a", repo: "r" }),
		at("/x.go", 2, 4, { job: "b", repo: "r" }),
		at("/x.go", 5, 6),
	];
	const lines = (element, labels) => source.placesOf(vector, element, labels).map((p) => [...p.lines.keys()]);
	assert.deepEqual(lines({ job: "a" }, ["repo"]), [[1]]);
	assert.deepEqual(lines({}, ["repo"]), [[5]]);
	// A label of the links by which the element is grouped, too.
	assert.deepEqual(lines({ job: "b", repo: "r" }, ["repo"]), [[2]]);
	assert.deepEqual(lines({ job: "a", repo: "s" }, ["repo"]), []);
	const costs = source.lineCosts([at("/x.go", 1, 3, { job: "a" })], vector.slice(0, 2).map((v) => el({ ...v.metric, repo: undefined }, v.value[1])), { job: "a" });
	assert.deepEqual([...costs.keys()], [1]);
});

test("which files debuginfod is asked for", () => {
	const is = (file, id) => source.isServed({ file }, { id });
	assert.ok(is("/usr/src/a.c", "0123456789abcdef0123456789ABCDEF01234567"));
	assert.ok(!is("github.com/x/a.go", "abcd"), "a path without its beginning");
	assert.ok(!is("/a.go", ""));
	assert.ok(!is("/a.go", "Xk3/abc/def"), "Go's own id");
	assert.ok(!is("/a.go", "abc"));
	assert.ok(!source.isServed(undefined, undefined));
});

/* ---- rows ---- */

const COSTS = source.lineCosts(
	[at("/x.go", 2, 5), at("/x.go", 4, 0)],
	[at("/x.go", 2, 9), at("/x.go", 4, 20), at("/x.go", 0, 7)],
	{},
);
const OWN = new Map([[2, 9]]);

test("rows: every line of the text, with its costs", () => {
	assert.deepEqual([...COSTS.values()], [
		{ line: 2, flat: 5, cum: 9 },
		{ line: 4, flat: 0, cum: 20 },
	]);
	assert.deepEqual(source.sourceRows(COSTS, OWN, ["a", "b", "c", "d"]), [
		{ line: 1, flat: 0, cum: 0, text: "a", own: false },
		{ line: 2, flat: 5, cum: 9, text: "b", own: true },
		{ line: 3, flat: 0, cum: 0, text: "c", own: false },
		{ line: 4, flat: 0, cum: 20, text: "d", own: false },
	]);
});

test("rows without a text: the lines that cost something; behind the end of one too", () => {
	const numbers = (lines) => source.sourceRows(COSTS, OWN, lines).map((r) => [r.line, r.text]);
	assert.deepEqual(numbers(null), [[2, null], [4, null]]);
	assert.deepEqual(numbers(["a", "b"]), [[1, "a"], [2, "b"], [4, null]]);
	assert.deepEqual(source.sourceRows(new Map(), OWN, null), []);
});

test("the view begins at the line asked for, else where the function costs most", () => {
	const rows = source.sourceRows(COSTS, OWN, ["a", "b", "c", "d"]);
	assert.equal(source.firstRow(rows, 3), 2);
	assert.equal(source.firstRow(rows, 0), 1, "line 4 costs more, but is another function's");
	assert.equal(source.firstRow(rows, 99), 1);
	assert.equal(source.firstRow(source.sourceRows(COSTS, new Map(), null), 0), 1);
	assert.equal(source.firstRow(source.sourceRows(new Map(), OWN, ["a"]), 0), -1);
	assert.deepEqual([0, 1, 2, 3].map((i) => source.nextCost(rows, i, 1)), [1, 3, 3, 1]);
	assert.deepEqual([0, 1, 2, 3].map((i) => source.nextCost(rows, i, -1)), [3, 3, 1, 1]);
	assert.equal(source.nextCost(rows, -1, 1), 1);
	assert.equal(source.nextCost(source.sourceRows(new Map(), OWN, ["a"]), 0, 1), -1);
	assert.equal(source.nextCost([], 0, 1), -1);
});

test("a text of another version is told by its end and by empty lines", () => {
	const of = (lines) => source.otherVersion(source.sourceRows(COSTS, OWN, lines), lines);
	assert.equal(of(["a", "b", "c", "d"]), "");
	assert.equal(of(null), "");
	assert.match(of(["a", "b", "c"]), /^Another version\? The file ends at line 3, .* up to line 4\.$/);
	assert.match(of(["a", "  \t", "c", "d"]), /Line 2 of the file is empty but has costs/);
	assert.match(of(["a", "", "c", ""]), /Lines 2, 4 of the file are empty but have costs/);
});

/* ---- links ---- */

test("links: arguments, lines", () => {
	assert.deepEqual(source.linkArgs("/a.go", { service_git_ref: "v1" }), {
		path: "/a.go",
		"label.service_git_ref": "v1",
	});
	assert.equal(source.lineUrl("https://h/a#L${line}-L${line}", 7), "https://h/a#L7-L7");
	assert.equal(source.hostOf("https://git.example:8443/a#L${line}"), "git.example:8443");
	assert.equal(source.hostOf("https://a%20b/c"), "");
});

test("the parameters of the view", () => {
	assert.deepEqual(source.openSource("f", "/a.go", 3), { src: "f", file: "/a.go", line: "3", build: null });
	assert.deepEqual(source.openSource(""), { src: null, file: null, line: null, build: null });
	const b = (id, mapping) => ({ id, mapping, cum: 0, labels: {} });
	assert.equal(source.shortBuild(b("0123456789abcdef", "/bin/a")), "0123456789ab");
	assert.equal(source.shortBuild(b("", "/bin/a")), "a");
	assert.equal(source.shortBuild(b("", "")), "no build id");
	assert.equal(source.buildKey(b("", "")), "-");
});

test("the width of lines counts tabs as they are shown", () => {
	assert.equal(source.widthOf(["\tab", "abc\td", "x"]), 6);
	assert.equal(source.widthOf([]), 0);
});

/* ---- dropped files ---- */

const file = (path, text = "x\n", size = text.length) => ({ path, size, text: () => Promise.resolve(text) });

test("a dropped file is known by the end of its path", () => {
	const of = (paths, path) => dropped.matching(paths.map((p) => file(p)), path).map((f) => f.path);
	const GO = "/build/examples/demo/work.go";
	assert.deepEqual(of(["work.go"], GO), ["work.go"], "one file");
	assert.deepEqual(of(["demo/work.go"], GO), ["demo/work.go"], "a folder");
	assert.deepEqual(of(["checkout/work.go"], GO), ["checkout/work.go"], "a folder by any name");
	assert.deepEqual(of(["checkout/other/work.go"], GO), [], "another folder below it");
	assert.deepEqual(of(["x/demo/work.go", "x/y/examples/demo/work.go", "work.go"], GO), ["x/y/examples/demo/work.go"]);
	assert.deepEqual(of(["a/work.go", "b/work.go"], GO), ["b/work.go", "a/work.go"], "the last one first");
	assert.deepEqual(of(["shop.go", "rework.go"], GO), []);
	assert.deepEqual(of(["src\\demo\\work.go"], "C:\\src\\demo\\work.go"), ["src\\demo\\work.go"]);
	assert.deepEqual(of(["a.go"], ""), []);
	assert.equal(dropped.commonEnd("/a/./b//c.go", "x/b/c.go"), 2);
});

test("dropped files: the newest of a path counts, there is a limit, all can be forgotten", () => {
	const files = new dropped.DroppedFiles();
	let told = 0;
	const off = files.subscribe(() => told++);
	assert.equal(files.add([file("a.go", "1"), file("b.go")]), 0);
	const before = files.list;
	const again = file("a.go", "2");
	files.add([again]);
	assert.notEqual(files.list, before);
	assert.deepEqual(files.list.map((f) => f.path), ["b.go", "a.go"]);
	assert.equal(files.list[1], again);
	assert.equal(told, 2);
	const many = Array.from({ length: dropped.FILES_MAX }, (_, i) => file(`d/${i}`));
	assert.equal(files.add(many), 2);
	assert.equal(files.list.length, dropped.FILES_MAX);
	files.clear();
	assert.deepEqual(files.list, []);
	off();
	files.add([again]);
	assert.equal(told, 4);
});

test("a text is read when it is shown, and only if it is one", async () => {
	assert.deepEqual(await dropped.readLines(file("a.go", "a\r\nb\n\nc")), ["a", "b", "", "c"]);
	assert.deepEqual(dropped.linesOfText(""), []);
	assert.deepEqual(dropped.linesOfText("a\n"), ["a"]);
	await assert.rejects(dropped.readLines(file("a.bin", "a\0b")), { message: "a.bin is not a text file." });
	await assert.rejects(dropped.readLines(file("a.go", "x", 9 << 20)), {
		message: "a.go is 9 MiB, more than 8 MiB.",
	});
	const gone = { ...file("a.go"), text: () => Promise.reject(new Error("gone")) };
	await assert.rejects(dropped.readLines(gone), { message: "a.go is no longer readable. Drop the file again." });
});

/** Entries of a dropped folder, as a browser gives them: two at a time, and none at the end. */
function entry(name, content) {
	if (typeof content === "string")
		return { name, isFile: true, isDirectory: false, file: (ok) => ok(new File([content], name)) };
	const inside = Object.entries(content).map(([n, c]) => entry(n, c));
	const createReader = () => {
		const left = inside.slice();
		return { readEntries: (ok) => ok(left.splice(0, 2)) };
	};
	return { name, isFile: false, isDirectory: true, createReader };
}

test("a dropped folder is walked, without what holds no sources", async () => {
	const tree = { "a.go": "a", "b.go": "b", "c.go": "c", sub: { "d.go": "d" }, ".git": { x: "x" }, node_modules: { y: "y" } };
	const items = [{ kind: "file", webkitGetAsEntry: () => entry("shop", tree) }, { kind: "string" }];
	const files = await dropped.ofDrop({ items, files: [] });
	assert.deepEqual(files.map((f) => f.path).sort(), ["shop/a.go", "shop/b.go", "shop/c.go", "shop/sub/d.go"]);
	assert.equal(await files.find((f) => f.path === "shop/sub/d.go").text(), "d");
	const one = [new File(["x"], "x.go")];
	const plain = [{ kind: "file", webkitGetAsEntry: () => entry("x.go", "x") }];
	assert.deepEqual((await dropped.ofDrop({ items: plain, files: one })).map((f) => f.path), ["x.go"]);
});
