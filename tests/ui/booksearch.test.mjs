// The search of the book: what is found, in which order, what is marked.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { markWords, prepareIndex, searchBook } = page.booksearch;

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
	]);
});

test("each word is the beginning of a word, in any case; all have to be there", () => {
	assert.deepEqual(urls("LIM mem"), ["operate/limits.html#memory", "start/install.html"]);
	assert.deepEqual(urls("imits"), []);
	assert.deepEqual(urls("limits nothing"), []);
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
