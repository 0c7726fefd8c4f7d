// The chapters for contributors name files, functions, targets and rooms of the tree: each of them is there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const TREE = fileURLToPath(new URL("../..", import.meta.url));
const FOLDER = "web/book/contributors";
const CODE = ["base", "proto", "discovery", "scrape", "tsdb", "promql", "web", "cmd"];

const chapters = readdirSync(join(TREE, FOLDER))
	.filter((name) => name.endsWith(".md"))
	.map((name) => ({ name, text: readFileSync(join(TREE, FOLDER, name), "utf8") }));
const read = (name) => readFileSync(join(TREE, name), "utf8");

/** Each code span with its chapter and line, and the folder of the file that was named before it in its paragraph, item or row. */
function* spans() {
	for (const { name, text } of chapters) {
		let fence = false;
		let folder;
		for (const [i, line] of text.split("\n").entries()) {
			if (line.startsWith("```")) fence = !fence;
			if (/^(|#.*|- .*|\|.*|\d+\. .*)$/.test(line)) folder = undefined;
			for (const [, code] of fence ? [] : line.matchAll(/`([^`]+)`/g)) {
				yield { at: `${name}:${i + 1}`, code, folder };
				folder = /^([a-z_/]+)\/[a-z_]+\.[ch]$/.exec(code)?.[1] ?? folder;
			}
		}
	}
}

/** All C files below a folder. */
function* sources(folder) {
	for (const entry of readdirSync(join(TREE, folder), { withFileTypes: true })) {
		if (entry.isDirectory()) yield* sources(join(folder, entry.name));
		else if (/\.[ch]$/.test(entry.name)) yield join(folder, entry.name);
	}
}

// Paths with a folder are looked for by tests/e2e/readme.test.mjs.
test("a file that is named without a folder is beside the one before it", () => {
	const files = [...spans()].filter(({ code }) => /^[a-z_]+\.[ch]$/.test(code));
	assert.ok(files.length > 10, `${files.length} files are named so`);
	for (const { at, code, folder } of files) assert.ok(existsSync(join(TREE, `${folder}/${code}`)), `${at}: ${folder}/${code}`);
});

test("each function that is named is there", () => {
	const known = new Set();
	for (const folder of CODE)
		for (const file of sources(folder)) for (const m of read(file).matchAll(/\b([a-z][a-z0-9]*(?:_[a-z0-9]+)*)\(/g)) known.add(m[1]);
	const named = [...spans()].flatMap(({ at, code }) => [...code.matchAll(/^([a-z][a-z0-9_]*)\(\)$/g)].map((m) => ({ at, name: m[1] })));
	assert.ok(named.length > 30, `${named.length} functions are named`);
	assert.deepEqual(named.filter((f) => !known.has(f.name)), []);
});

test("each target of make that is named is there", () => {
	const makefiles = read("Makefile") + read("tests/tests.mk");
	const wrong = [];
	for (const { name, text } of chapters)
		for (const m of text.matchAll(/(?:`|^)make ((?:[A-Z_]+=\S+ )*)([a-z][a-z/-]*)/gm)) {
			const target = m[2].replace(/^unit-[a-z/]+$/, "unit");
			if (!new RegExp(`^${target}:|^\\.PHONY:.* ${target}( |$)`, "m").test(makefiles)) wrong.push(`${name}: make ${m[2]}`);
		}
	assert.deepEqual(wrong, []);
});

test("the table of rooms is that of the Makefile", () => {
	const env = { ...process.env, MAKEFLAGS: "" };
	const uses = new Map();
	for (const line of execFileSync("make", ["--no-print-directory", "-s", "rooms"], { cwd: TREE, env, encoding: "utf8" }).trim().split("\n")) {
		const [room, list] = line.split(":");
		const [top] = room.split("/");
		const all = uses.get(top) ?? uses.set(top, new Set()).get(top);
		for (const use of list.trim().split(" ")) if (use && use.split("/")[0] !== top) all.add(use.split("/")[0]);
	}
	const said = new Map();
	const { text } = chapters.find((c) => c.name === "architecture.md");
	for (const m of text.matchAll(/^\| `([a-z]+)` \| [^|]+ \|([^|]*)\|$/gm)) {
		const list = m[2].trim() === "all" ? CODE.filter((c) => c !== m[1]) : [...m[2].matchAll(/`([a-z]+)`/g)].map((u) => u[1]);
		said.set(m[1], new Set(list));
	}
	assert.deepEqual([...said.keys()].sort(), [...uses.keys()].sort());
	for (const [room, list] of uses) assert.deepEqual([...said.get(room)].sort(), [...list].sort(), room);
});

test("the rules of the lint are those that the chapter has", () => {
	const rules = /^for name in \$\{2:-([a-z0-9_ ]+)\}/m.exec(read("tests/lint/run.sh"))[1].split(" ");
	const { text } = chapters.find((c) => c.name === "style.md");
	const table = text.slice(text.indexOf("| rule | says |"), text.indexOf("\n## Names"));
	const said = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap((m) => [...m[1].matchAll(/`([a-z0-9_]+)`/g)].map((r) => r[1]));
	assert.deepEqual(said.sort(), rules.sort());
});
