// The search of the book: what is found, in which order, what is marked.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { page } from "./page.mjs";

const { markWords, prepareIndex, searchBook, stemOf } = page.booksearch;
const TREE = fileURLToPath(new URL("../..", import.meta.url));

const chapter = (section, url, ...parts) => ({ section, url, parts });
const INDEX = prepareIndex([
	chapter("Start", "start/install.html", ["Install the server", "", ["Two programs. Limits of memory come later."]], ["Build", "build", ["Run make; it prints limits too."]]),
	chapter("Operate", "operate/disk.html", ["Disk", "", ["What is kept."]], ["Limits of the disk", "limits-of-the-disk", ["The flag --storage.tsdb.retention.size bounds scrape_configs."]]),
	chapter("Operate", "operate/limits.html", ["Limits", "", ["Every limit with its error."]], ["Memory", "memory", ["A query over its limit ends."]]),
]);
const urls = (query) => searchBook(INDEX, query).map((f) => f.url);
const shown = (pieces) => pieces.map((p) => (p.marked ? `[${p.text}]` : p.text)).join("");

test("titles come before headings, headings before text", () => {
	assert.deepEqual(urls("limits"), [
		"operate/limits.html",
		"operate/disk.html#limits-of-the-disk",
		"start/install.html",
		"start/install.html#build",
		"operate/limits.html#memory",
	]);
});

test("each word is the beginning of a word, in any case; parts with all of them are found", () => {
	assert.deepEqual(urls("LIM mem"), ["operate/limits.html#memory", "start/install.html"]);
	assert.deepEqual(urls("imits"), []);
	assert.deepEqual(urls("install server"), ["start/install.html"]);
});

test("a word of the title alone does not find the chapter's other parts", () => {
	assert.deepEqual(urls("disk"), ["operate/disk.html", "operate/disk.html#limits-of-the-disk"]);
	assert.deepEqual(urls("server"), ["start/install.html"]);
	assert.deepEqual(urls("server make"), ["start/install.html#build"]);
});

test("flags and keys are found by their words", () => {
	const flag = ["operate/disk.html#limits-of-the-disk"];
	for (const query of ["--storage.tsdb.retention.size", "retention.size", "scrape_configs", "configs"]) assert.deepEqual(urls(query), flag, query);
});

test("where no part has all words, those with most are found, and rare words count more", () => {
	assert.deepEqual(urls("limits nothing"), urls("limits"));
	assert.equal(urls("make memory retention scrape_configs")[0], "operate/disk.html#limits-of-the-disk");
	assert.deepEqual(urls("nothing of that"), []);
});

test("idle words do not count, unless there are no others", () => {
	assert.deepEqual(urls("how do I install the server?"), ["start/install.html"]);
	assert.ok(urls("is").length > 0);
});

test("plurals, -ing, -ed and a last e are no other words", () => {
	for (const list of ["size sizes sized sizing", "stop stops stopped stopping", "query queries queried", "backup backups", "fill filled filling"])
		assert.equal(new Set(list.split(" ").map(stemOf)).size, 1, `${list}: ${list.split(" ").map(stemOf)}`);
	for (const word of ["loss", "status", "string", "need", "pods1"]) assert.equal(stemOf(word), word);
	assert.deepEqual(urls("installed servers"), ["start/install.html"]);
});

test("a heading with all words comes before a title with one, the heading itself before all", () => {
	const both = prepareIndex([
		chapter("A", "a.html", ["Alerts", "", ["They are sent by rules."]], ["Send", "send", ["text"]]),
		chapter("A", "b.html", ["Other", "", ["text"]], ["Send alerts by mail", "mail", ["text"]], ["Alerts to send", "to-send", ["text"]]),
		chapter("A", "api/c.html", ["Answers", "", ["text"]], ["Alerts", "alerts", ["alerts"]], ["Send", "send", ["send alerts"]]),
	]);
	const found = (query) => searchBook(both, query).map((f) => f.url);
	assert.deepEqual(found("send alerts").slice(0, 2), ["b.html#mail", "b.html#to-send"]);
	assert.equal(found("alerts to send")[0], "b.html#to-send");
	assert.equal(found("alerts")[0], "a.html");
	assert.equal(found("alerts").at(-1), "api/c.html#send", "answers of the API are last");
});

test("two words that are one elsewhere, one that is two", () => {
	const one = prepareIndex([chapter("A", "a.html", ["Backup", "", []]), chapter("A", "b.html", ["Backs", "", ["what is up"]])]);
	assert.deepEqual(searchBook(one, "back up").map((f) => f.url), ["a.html", "b.html"]);
});

/** What people paste or ask, and the part that answers; it has to be the first or the second. */
const ASKED = [
	["disk is full: 12345678 bytes free in data, reserve 268435456", "operate/troubleshooting.html#full-disk"],
	["connect 10.1.2.3:8080: Connection refused", "operate/troubleshooting.html#connect-100016060-connection-refused"],
	["lookup api.internal: Domain name not found", "operate/troubleshooting.html#lookup-shopexample-domain-name-not-found"],
	["Could not enable CPU profiling: cpu profiling already in use", "operate/troubleshooting.html#cpu-profiling-already-in-use"],
	["how do I size 300 pods", "operate/sizing.html#example-300-pods-at-15-s-for-15-days"],
	["what does cum_share mean", "query/glossary.html#share"],
	["payments team only its namespace", "operate/passwords.html#rights-by-namespace"],
	["which labels does a target get", "configure/jobs.html#labels-of-a-target"],
	["labels of a target", "configure/jobs.html#labels-of-a-target"],
	["move from Pyroscope with Alloy", "guides/from-pyroscope.html"],
	["back up", "operate/backup.html"],
	["backups", "operate/backup.html"],
	["Alertmanager", "guides/alerts.html#put-it-in-force"],
	["memory", "operate/memory.html"],
	["external-url", "guides/alerts.html#put-it-in-force"],
];

/** What somebody asks who wants to change the server: the first part that is found answers, and says this. */
const NEWCOMERS = [
	["what happens on kill -9", "contributors/architecture.html#what-happens-on-kill--9", /Nothing that was acknowledged is lost.*torn batch/s],
	["who frees this", "contributors/architecture.html#who-frees-this", /all of one query.*query_close\(\)/s],
	["where do I add a column coding", "contributors/contributing.html#where-do-i-add-a-column-coding-a-flag-a-route", /coding_NAME\.c and a row of codings\[\]/],
	["order of locks", "contributors/architecture.html#the-order-of-locks", /db->lock/],
	["change a format", "contributors/releases.html#to-change-a-format", /Raise the version/],
	["gdb", "contributors/debugging.html#gdb", /epimetheus\.debug/],
];

/** The index of the tree's book; undefined: its generated parts are not built. */
async function treeIndex() {
	const part = (name) => import(pathToFileURL(join(process.env.EPI_UI_DIR, "book", name)).href);
	const [{ readBook }, { searchIndex }] = [await part("read.mjs"), await part("index.mjs")];
	const parts = join(process.env.EPI_BUILD ?? join(TREE, "build"), "gen/book");
	if (!existsSync(parts)) return undefined;
	const book = readBook({ tree: TREE, parts });
	assert.deepEqual(book.findings, []);
	return JSON.parse(/^bookIndex\((.*)\);\n$/s.exec(searchIndex(book))[1]);
}

test("what people ask finds its part first or second, in the book of the tree", async (t) => {
	const index = await treeIndex();
	if (!index) return t.skip("the generated parts are not built");
	const entries = prepareIndex(index);
	for (const [query, url] of ASKED) {
		const found = searchBook(entries, query).map((f) => f.url);
		assert.ok(found.slice(0, 2).includes(url), `${query}: ${url} is not in ${found.slice(0, 4).join(", ")}`);
	}
});

test("a newcomer's question is answered by the first part that is found", async (t) => {
	const index = await treeIndex();
	if (!index) return t.skip("the generated parts are not built");
	const entries = prepareIndex(index);
	for (const [query, url, says] of NEWCOMERS) {
		assert.equal(searchBook(entries, query)[0]?.url, url, query);
		const [page, anchor] = url.split("#");
		const chapter = index.find((c) => c.url === page);
		assert.match(chapter.parts.find((p) => p[1] === anchor)[2].join("\n"), says, query);
	}
});

test("nothing asked, nothing found", () => {
	for (const query of ["", "  ", "--", "/"]) assert.deepEqual(urls(query), [], query);
});

test("a whole word is better than a beginning", () => {
	const two = prepareIndex([chapter("A", "a.html", ["Files kept", "", []]), chapter("A", "b.html", ["File", "", []])]);
	assert.deepEqual(searchBook(two, "file").map((f) => f.url), ["b.html", "a.html"]);
});

test("section, title, heading and a marked excerpt are shown", () => {
	const [found] = searchBook(INDEX, "ret siz");
	assert.equal(found.section, "Operate");
	assert.equal(shown(found.title), "Disk");
	assert.equal(shown(found.heading), "Limits of the disk");
	assert.equal(shown(found.excerpt), "The flag --storage.tsdb.[ret]ention.[siz]e bounds scrape_configs.");
});

test("a long text is cut around what was found", () => {
	const text = `${"before it ".repeat(40)}the needle is here ${"after it ".repeat(40)}`.trim();
	const [found] = searchBook(prepareIndex([chapter("A", "a.html", ["T", "", ["short", text]])]), "needle");
	const cut = shown(found.excerpt);
	assert.match(cut, /^… (before|it) .*the \[needle\] is here after.* …$/);
	assert.ok(cut.length < 180, `${cut.length}`);
});

test("at most twenty are shown", () => {
	const many = Array.from({ length: 30 }, (_, i) => chapter("A", `${i}.html`, ["Same", "", []]));
	assert.equal(searchBook(prepareIndex(many), "same").length, 20);
});

test("the longest word marks", () => {
	assert.equal(shown(markWords("Profiling a profile", ["pro", "profil"])), "[Profil]ing a [profil]e");
});
