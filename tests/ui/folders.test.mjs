// The folders of web/ui/src: which may import which, their size, their READMEs, and the names they export.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const SRC = fileURLToPath(new URL("../../web/ui/src", import.meta.url));
const FILES_MAX = 35;

/** From the bottom up: a folder may import those named here, and its own files. "": src itself. */
const MAY_IMPORT = {
	shared: [],
	first: ["shared"],
	query: ["shared"],
	files: ["shared", "query"],
	flame: ["shared"],
	marks: ["shared", "query"],
	chart: ["shared", "query", "flame", "marks"],
	source: ["shared", "query"],
	verdict: ["shared", "query", "flame"],
	result: ["shared", "query", "flame", "source", "verdict"],
	alert: ["shared", "query", "flame", "marks", "chart"],
	compare: ["shared", "first", "query", "files", "marks", "chart", "verdict", "result"],
	rules: ["shared", "query", "flame", "result", "alert"],
	fleet: ["shared", "first", "query", "flame", "chart", "result", "rules"],
	status: ["shared"],
	symbols: ["shared", "status"],
	cluster: ["shared", "status"],
	heat: ["shared", "query", "flame", "marks"],
	explore: ["shared", "first", "query", "files", "marks", "chart", "heat", "result", "compare"],
	"": ["shared", "query", "files", "alert", "compare", "rules", "fleet", "status", "symbols", "cluster", "explore"],
};
/** Only the unit tests use it. */
const LEFT_OUT = ["testing.ts"];

const filesOf = (folder) =>
	readdirSync(join(SRC, folder), { withFileTypes: true })
		.filter((e) => e.isFile())
		.map((e) => e.name);

/** `[folder, folder imported, "FILE imports PATH"]`, for each import of one of our own files. */
function imports() {
	const out = [];
	for (const folder of Object.keys(MAY_IMPORT))
		for (const name of filesOf(folder)) {
			if (!/\.tsx?$/.test(name) || LEFT_OUT.includes(name)) continue;
			const text = readFileSync(join(SRC, folder, name), "utf8");
			for (const [, path] of text.matchAll(/(?:from|import|import\() ?"(\.[^"]+)"/g)) {
				const to = relative(SRC, dirname(join(SRC, folder, path)));
				out.push([folder, to, `${join(folder, name)} imports ${path}`]);
			}
		}
	return out;
}

test("every folder is in the table", () => {
	const folders = readdirSync(SRC, { withFileTypes: true }).filter((e) => e.isDirectory());
	assert.deepEqual(
		folders.map((e) => e.name).sort(),
		Object.keys(MAY_IMPORT).filter(Boolean).sort(),
	);
});

test("a folder is imported only by those above it, so there is no cycle", () => {
	const below = new Set();
	for (const [folder, allowed] of Object.entries(MAY_IMPORT)) {
		for (const a of allowed) assert.ok(below.has(a), `${folder} comes before ${a}`);
		below.add(folder);
	}
});

test("imports follow the table, and the table has no more than is used", () => {
	const used = new Set();
	for (const [folder, to, what] of imports()) {
		used.add(`${folder} ${to}`);
		assert.ok(to === folder || MAY_IMPORT[folder].includes(to), what);
	}
	for (const [folder, allowed] of Object.entries(MAY_IMPORT))
		for (const a of allowed) assert.ok(used.has(`${folder} ${a}`), `${folder} never uses ${a}`);
});

test("no folder is large, and its README names each file and each folder that it may import", () => {
	for (const [folder, allowed] of Object.entries(MAY_IMPORT)) {
		if (!folder) continue;
		const files = filesOf(folder);
		assert.ok(files.length <= FILES_MAX, `${folder} has ${files.length} files`);
		const readme = readFileSync(join(SRC, folder, "README.md"), "utf8");
		for (const f of files)
			if (/\.tsx?$/.test(f)) assert.ok(readme.includes(`\`${f}\``), `${folder}: ${f}`);
		const [line] = /^May import: .*$/m.exec(readme) ?? [""];
		const named = [...line.matchAll(/`([^`]*)`/g)].map((m) => m[1]);
		assert.deepEqual(named.sort(), allowed.slice().sort(), `${folder}/README.md: "May import"`);
	}
});

test("an exported name is declared once, so that a search finds it", () => {
	const declared = new Map();
	const exported = new Set();
	for (const folder of Object.keys(MAY_IMPORT))
		for (const name of filesOf(folder)) {
			if (!/\.tsx?$/.test(name) || LEFT_OUT.includes(name)) continue;
			const text = readFileSync(join(SRC, folder, name), "utf8");
			const declaration =
				/^(export )?(?:async )?(?:function|const|let|class|interface|type) (\w+)/gm;
			for (const [, is, what] of text.matchAll(declaration)) {
				declared.set(what, [...(declared.get(what) ?? []), join(folder, name)]);
				if (is) exported.add(what);
			}
		}
	for (const what of exported)
		assert.equal(declared.get(what).length, 1, `${what} is in ${declared.get(what).join(", ")}`);
});
