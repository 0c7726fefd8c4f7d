// The rendering of the book: the fixture's pages, and that each breach of the format is found, with its file and line.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const FIXTURE = fileURLToPath(new URL("../web/book_fixture", import.meta.url));
const INSTALL = "web/book/start/install.md";

/** Builds a copy of the fixture that `change` has changed; `edit(file, from, to)` replaces once. */
function build(t, change = () => {}) {
	const dir = mkdtempSync(join(tmpdir(), "epi-book-"));
	t.after(() => rmSync(dir, { recursive: true }));
	const tree = join(dir, "tree");
	cpSync(FIXTURE, tree, { recursive: true });
	change({
		edit(file, from, to) {
			const text = readFileSync(join(tree, file), "utf8");
			assert.ok(text.includes(from), `${file} has ${from}`);
			writeFileSync(join(tree, file), text.replace(from, () => to));
		},
		write: (file, text) => writeFileSync(join(tree, file), text),
		remove: (file) => rmSync(join(tree, file)),
	});
	const out = join(dir, "out");
	const builder = join(process.env.EPI_UI_DIR, "book/build.mjs");
	const run = spawnSync(process.execPath, [builder, `--tree=${tree}`, `--parts=${join(tree, "parts")}`, out], { encoding: "utf8" });
	return { run, out, read: (file) => readFileSync(join(out, file), "utf8") };
}

test("the fixture is built: pages, list, contents, turns, parts", (t) => {
	const { run, out, read } = build(t);
	assert.equal(run.status, 0, run.stderr);
	assert.match(run.stdout, /sections without chapters: Design/);
	assert.match(run.stdout, /the book +\d+ B +\d+ B gz/);
	const page = read("site/start/install.html");
	for (const has of [
		"<title>Install the server · Epimetheus</title>",
		'<h2 id="build--run">Build &amp; run</h2>',
		'<h3 id="files-name">Files: <code>name</code></h3>',
		'<a href="../operate/limits.html#memory-in-use">memory</a>',
		'<a href="language.html">language</a>',
		'<a href="#files-name">files</a>',
		'<a href="https://go.dev/">',
		'<img src="../pictures/graph.svg" alt="A flame graph of two functions" loading="lazy">',
		'<div class="file">epimetheus.yml</div>',
		'<code class="sh">echo &quot;a &amp; b&quot; &lt;in &gt;out\n</code>',
		'<li><a href="../start/install.html" aria-current="page">Install the server</a></li>',
		'<a class="section" href="../index.html#operate">Operate</a>',
		'<li class="level3"><a href="#files-name">Files: name</a></li>',
		'<a class="after" href="../start/language.html"><span>Next</span> The query language</a>',
	])
		assert.ok(page.includes(has), `${has}\n${page}`);
	assert.ok(!page.includes('class="before"'), "nothing is before the first chapter");
	assert.ok(read("site/index.html").includes('<h2 id="operate">Operate</h2>'), "a section has its place on the first page");
	const limits = read("site/operate/limits.html");
	assert.ok(limits.includes('<h2 id="memory-in-use">Memory in use</h2>'), "the part is in its place");
	assert.ok(limits.includes('<a id="query-memory"></a>an anchor'));
	assert.ok(limits.includes("<td>1 GiB<br>of all</td>"));
	assert.ok(limits.includes("{{not_a_part}}"), "in a fence it is text");
	assert.match(read("site/index.html"), /<dt><a href="operate\/limits.html">Limits<\/a><\/dt><dd>Each limit, its default and its error\.<\/dd>/);
	assert.ok(!existsSync(join(out, "site/missing.html")), "only a server fills in its base");
	assert.equal(read("book_assets.c").match(/%BASE%/g), null, "bytes, no text");
	assert.match(read("book_assets.c"), /"missing\.html", "text\/html; charset=utf-8",\n.*false, true }/);
});

test("long names break behind _, . and -, flags not behind --, texts of generated parts are prose", (t) => {
	const page = build(t).read("site/operate/limits.html");
	for (const has of [
		"<td><code>epimetheus_<wbr>bucket_<wbr>cache_<wbr>damaged_<wbr>pages_<wbr>of_<wbr>a_<wbr>long_<wbr>name_<wbr>total</code></td>",
		'<td><code><span class="whole">--storage</span>.<wbr>tsdb.<wbr>retention-<wbr>size</code></td>',
		'<code>epimetheus <span class="whole">--help</span></code>',
		'<div class="wide many" role="group"',
		'<div class="wide" role="group"',
		'<pre class="prose" tabindex="0"><code class="text">epitool limits',
		'<pre tabindex="0"><code class="text">{{not_a_part}}',
	])
		assert.ok(page.includes(has), `${has}\n${page}`);
});

test("the server's book leads to the server, the book in files does not", (t) => {
	const { read } = build(t);
	for (const [i, [page, to]] of [["index.html", "../"], ["start/install.html", "../../"]].entries()) {
		assert.ok(!read(`site/${page}`).includes('class="server"'), page);
		const [, bytes] = new RegExp(`asset_${i}\\[\\] = \\{([^}]*)\\}`).exec(read("book_assets.c"));
		const served = gunzipSync(Buffer.from(bytes.split(",").map(Number).slice(0, -1))).toString();
		assert.ok(served.includes(`<a class="server" href="${to}"`), served);
	}
});

test("the index of the search has paragraphs, rows, and code in fences and in lines", (t) => {
	const { out, read } = build(t);
	const index = readdirSync(join(out, "site")).find((f) => /^index\.\w+\.js$/.test(f));
	const [, json] = /^bookIndex\((.*)\);\n$/s.exec(read(`site/${index}`));
	const texts = JSON.parse(json).flatMap((c) => c.parts.flatMap((p) => p[2]));
	for (const text of [
		"Run make, then look at the language, the next heading (files) and https://go.dev/.",
		"scrape_interval · how often a target is scraped, unless its job has an interval of its own",
		'echo "a & b" <in >out',
		"scrape_configs: []",
	])
		assert.ok(texts.includes(text), `${text}\n${texts.join("\n")}`);
});

test("the same input gives the same bytes", (t) => {
	const [a, b] = [build(t), build(t)];
	const files = readdirSync(a.out, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => e.name);
	assert.ok(files.length >= 9, `${files}`);
	assert.equal(a.read("book_assets.c"), b.read("book_assets.c"));
});

test("pages have no script or style of their own, and lead nowhere else by themselves", (t) => {
	const { read } = build(t);
	for (const page of ["index.html", "start/install.html", "start/language.html", "operate/limits.html"]) {
		const text = read(`site/${page}`);
		assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/, page);
		for (const [, to] of text.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g))
			assert.doesNotMatch(to, /^([a-z]+:|\/)/, `${page}: ${to}`);
	}
});

/** What is done to the fixture, and the one finding. */
const BREACHES = {
	"an unknown part": [(f) => f.edit("web/book/operate/limits.md", "{{limits}}", "{{limit}}\n\n{{limits}}"), "web/book/operate/limits.md:5: no part is called limit"],
	"an unused part": [(f) => f.write("parts/more.md", "text\n"), "{{more}}:1: no chapter uses this part"],
	"a dead link": [(f) => f.edit(INSTALL, "(language.md)", "(languages.md)"), `${INSTALL}:7: a dead link: languages.md`],
	"a link that leaves the book": [(f) => f.edit(INSTALL, "(language.md)", "(../../../README.md)"), `${INSTALL}:7: a dead link: ../../../README.md`],
	"a link to a file": [(f) => f.edit(INSTALL, "(language.md)", "(language.html)"), `${INSTALL}:7: a dead link: language.html`],
	"plain http": [(f) => f.edit(INSTALL, "<https://go.dev/>", "<http://go.dev/>"), `${INSTALL}:7: a link to http://go.dev/; only https leads out of the book`],
	"a dead anchor": [(f) => f.edit(INSTALL, "#memory-in-use", "#memory"), `${INSTALL}:3: a dead anchor: ../operate/limits.md#memory`],
	"a dead anchor of the page": [(f) => f.edit(INSTALL, "(#files-name)", "(#files)"), `${INSTALL}:7: a dead anchor: #files`],
	"a missing picture": [(f) => f.edit(INSTALL, "graph.svg", "graphs.svg"), `${INSTALL}:9: no such picture: ../pictures/graphs.svg`],
	"a picture elsewhere": [(f) => f.edit(INSTALL, "../pictures/graph.svg", "https://go.dev/a.svg"), `${INSTALL}:9: a picture outside web/book/pictures: https://go.dev/a.svg`],
	"no alt": [(f) => f.edit(INSTALL, "![A flame graph of two functions]", "![]"), `${INSTALL}:9: a picture without a text for those who cannot see it: ../pictures/graph.svg`],
	"a chapter that is not listed": [(f) => f.write("web/book/operate/disk.md", "# Disk\n\nText.\n"), "web/book/operate/disk.md:1: web/book/operate/chapters.json does not list this chapter"],
	"a chapter that is not there": [(f) => f.write("web/book/operate/chapters.json", '["limits", "disk"]'), "web/book/operate/chapters.json:1: web/book/operate/disk.md is not there"],
	"a level skipped": [(f) => f.edit(INSTALL, "### Files: `name`", "#### Files: `name`"), `${INSTALL}:19: a heading of level 4 below one of level 2`],
	"a second title": [(f) => f.edit("promql/LANGUAGE.md", "## Values", "# Values"), "promql/LANGUAGE.md:5: a second title"],
	"no title": [(f) => f.edit("promql/LANGUAGE.md", "# The query language", "The query language"), ["promql/LANGUAGE.md:5: a heading of level 2 below one of level 0", "promql/LANGUAGE.md:1: the first line is no title"]],
	"no first paragraph": [(f) => f.edit("promql/LANGUAGE.md", "A file of the tree that is a chapter as it is.\n", ""), "promql/LANGUAGE.md:1: no paragraph after the title says what the reader gets"],
	"a duplicate anchor": [(f) => f.edit("web/book/operate/limits.md", "## Disk", "## Memory, in use"), "web/book/operate/limits.md:7: a second anchor #memory-in-use"],
	"a fence without info": [(f) => f.edit(INSTALL, "```sh", "```"), `${INSTALL}:11: a fence without an info string`],
	"yaml of no kind": [(f) => f.edit(INSTALL, "```yaml config", "```yaml"), `${INSTALL}:21: a fence of yaml; it may be yaml config, yaml job, yaml rules, yaml web, yaml other`],
	"an unknown kind": [(f) => f.edit("promql/LANGUAGE.md", "```promql", "```promql instant"), "promql/LANGUAGE.md:7: a fence of promql instant; it may be promql, promql range, promql parse"],
	"an unknown language": [(f) => f.edit("promql/LANGUAGE.md", "```promql", "```perl"), "promql/LANGUAGE.md:7: a fence of perl, which the format does not know"],
	"a file outside": [(f) => f.edit(INSTALL, "file=epimetheus.yml", "file=../e.yml"), `${INSTALL}:21: a fence for a file that cannot be: file=../e.yml`],
	"HTML": [(f) => f.edit(INSTALL, "> A quoted remark.", "A <b>bold</b> remark."), [`${INSTALL}:29: HTML; write Markdown`, `${INSTALL}:29: HTML; write Markdown`]],
	"a block of HTML": [(f) => f.edit(INSTALL, "> A quoted remark.", "<div>A remark.</div>"), `${INSTALL}:29: HTML; write Markdown`],
	"indented code": [(f) => f.edit(INSTALL, "> A quoted remark.", "    indented"), `${INSTALL}:29: indented code; put it into a fence`],
	"a fault in a part": [(f) => f.edit("parts/limits.md", "A generated part", "A [generated](nowhere.md) part"), "{{limits}}:3: a dead link: nowhere.md"],
};

for (const [name, [change, findings]] of Object.entries(BREACHES))
	test(`found: ${name}`, (t) => {
		const { run, out } = build(t, change);
		assert.deepEqual(run.stderr.trim().split("\n"), [findings].flat());
		assert.equal(run.status, 1);
		assert.ok(!existsSync(join(out, "book_assets.c")), "nothing is written");
	});

test("a broken list of chapters is named", (t) => {
	const { run } = build(t, (f) => f.write("web/book/operate/chapters.json", "[limits]"));
	assert.equal(run.status, 1);
	assert.match(run.stderr, /^web\/book\/operate\/chapters\.json:1: .*JSON/m);
});

test("more than 1 MB is too much", (t) => {
	const noise = Array.from({ length: 1 << 21 }, (_, i) => Math.imul(i + 1, 2654435761) >>> 24);
	const { run } = build(t, (f) => {
		f.write("web/book/pictures/large.png", Buffer.from(noise.map((v, i) => v ^ ((i * i * 7919) >>> 9))));
		f.edit(INSTALL, "../pictures/graph.svg", "../pictures/large.png");
	});
	assert.equal(run.status, 1);
	assert.match(run.stderr, /^the book is \d{7} bytes gzipped, limit 1048576$/m);
});
