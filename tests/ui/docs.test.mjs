// Each view of the page has a chapter of the book, and the chapter is there.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { page } from "./page.mjs";

const { CHAPTERS, chapterUrl, viewOf } = page.docs;
const TREE = fileURLToPath(new URL("../..", import.meta.url));
const table = readFileSync(join(TREE, "web/ui/src/pages.ts"), "utf8");
const paths = [...table.matchAll(/\bpath: "([^"]+)",\s+title:/g)].map((m) => m[1]);

test("each page of the table has a chapter, and so do parts of pages", () => {
	assert.ok(paths.length >= 14, `${paths}`);
	assert.deepEqual(Object.keys(CHAPTERS).sort(), [...paths, "source", "files", "levels"].sort());
});

test("each of these chapters is in the book", () => {
	const missing = [];
	for (const [view, chapter] of Object.entries(CHAPTERS)) {
		const [folder, name] = chapter.split("/");
		const list = join(TREE, "web/book", folder, "chapters.json");
		const listed = existsSync(list) ? JSON.parse(readFileSync(list, "utf8")).map((c) => c.name ?? c) : [];
		if (!listed.includes(name)) missing.push(`${view}: ${chapter}`);
	}
	assert.deepEqual(missing, []);
});

test("the address says which view is shown", () => {
	for (const [path, args, view] of [
		["services", {}, "services"],
		["explore", {}, "explore"],
		["explore", { query: 'cpu{job="api"}' }, "explore"],
		["explore", { query: "cpu", src: "main.work" }, "source"],
		["compare", { new: "cpu", base: "cpu", src: "main.work" }, "source"],
		["explore", { query: 'file("a.pb.gz")' }, "files"],
		["compare", { new: "cpu", base: 'file("a.pb.gz")' }, "files"],
		["explore", { query: 'memory:inuse_space{job="api"}' }, "levels"],
		["explore", { query: "goroutine" }, "levels"],
		["explore", { query: "goroutineleak" }, "levels"],
		["explore", { query: "memory:alloc_space" }, "explore"],
		["compare", { new: "goroutine", base: "goroutine" }, "compare"],
		["targets", { query: "goroutine" }, "targets"],
	])
		assert.equal(viewOf(path, new URLSearchParams(args)), view, `${path} ${JSON.stringify(args)}`);
	assert.equal(chapterUrl("explore", new URLSearchParams()), "docs/start/flame-graph.html");
});
