// Reads the book: sections, chapters, generated parts. Whatever breaks the format is a finding, "FILE:LINE: what".
// The tests that run the book's examples read it here too.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import MarkdownIt from "markdown-it";
import { readInfo } from "./fences.mjs";

const BOOK = "web/book";
const PART = /^\{\{([A-Za-z0-9_-]+)\}\}$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ANCHOR = /^<a id="([A-Za-z0-9_.:-]+)">$/;

const markdown = new MarkdownIt({ html: true });

function readJson(tree, file, findings) {
	try {
		return JSON.parse(readFileSync(join(tree, file), "utf8"));
	} catch (e) {
		findings.push(`${file}:1: ${e.message}`);
		return [];
	}
}

/** The lines of a chapter, with its parts in their places; each line knows where it is from. */
function joinLines(chapter, { tree, parts, used, findings }) {
	const out = [];
	let fence = null;
	for (const [i, text] of readFileSync(join(tree, chapter.file), "utf8").split("\n").entries()) {
		const at = `${chapter.file}:${i + 1}`;
		const [, marks] = FENCE.exec(text) ?? [];
		if (!fence && marks) fence = marks;
		else if (fence && marks?.startsWith(fence)) fence = null;
		const name = fence ? undefined : PART.exec(text)?.[1];
		if (name === undefined) {
			out.push({ text, at });
			continue;
		}
		used.add(name);
		const file = join(parts, `${name}.md`);
		if (!existsSync(file)) {
			findings.push(`${at}: no part is called ${name}`);
			continue;
		}
		for (const [k, line] of readFileSync(file, "utf8").trimEnd().split("\n").entries())
			out.push({ text: line, at: `{{${name}}}:${k + 1}` });
	}
	return out;
}

/** The text that readers see of an inline token. */
export const plainText = (inline) =>
	(inline.children ?? [])
		.map((t) => (t.type === "softbreak" || t.type === "hardbreak" ? " " : t.type === "image" ? "" : t.type === "html_inline" ? "" : t.content))
		.join("");

/** As GitHub makes them. */
export const anchorOf = (text) =>
	text
		.trim()
		.toLowerCase()
		.replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
		.replace(/ /g, "-");

/** Each inline child with the place of its line. Cells of a table have that of their row. */
export function* inlineChildren(chapter) {
	let line = 0;
	for (const token of chapter.tokens) {
		if (token.map) line = token.map[0];
		if (token.type !== "inline") continue;
		for (const child of token.children) {
			yield { child, at: chapter.lines[line].at };
			if (child.type === "softbreak" || child.type === "hardbreak") line++;
		}
	}
}

function addAnchor(chapter, anchor, at, findings) {
	if (chapter.anchors.has(anchor)) findings.push(`${at}: a second anchor #${anchor}`);
	chapter.anchors.add(anchor);
}

/** Headings: one title in the first line, no level skipped; a paragraph follows the title. */
function readHeadings(chapter, findings) {
	const first = `${chapter.file}:1`;
	let level = 0;
	for (const [i, token] of chapter.tokens.entries()) {
		if (token.type !== "heading_open") continue;
		const at = chapter.lines[token.map[0]].at;
		const text = plainText(chapter.tokens[i + 1]);
		const now = Number(token.tag.slice(1));
		if (now === 1 && level) findings.push(`${at}: a second title`);
		else if (now > level + 1) findings.push(`${at}: a heading of level ${now} below one of level ${level}`);
		level = now;
		token.meta = { anchor: anchorOf(text) };
		addAnchor(chapter, token.meta.anchor, at, findings);
		chapter.headings.push({ level: now, text, anchor: token.meta.anchor, at });
	}
	const [open, title, , paragraph, lead] = chapter.tokens;
	if (open?.type !== "heading_open" || open.tag !== "h1" || open.map[0] !== 0)
		findings.push(`${first}: the first line is no title`);
	else if (paragraph?.type !== "paragraph_open")
		findings.push(`${first}: no paragraph after the title says what the reader gets`);
	else {
		chapter.title = plainText(title);
		chapter.lead = plainText(lead);
	}
}

function readFences(chapter, findings) {
	for (const token of chapter.tokens) {
		if (token.type === "code_block") findings.push(`${chapter.lines[token.map[0]].at}: indented code; put it into a fence`);
		if (token.type !== "fence") continue;
		const { at } = chapter.lines[token.map[0]];
		const info = readInfo(token.info);
		if (info.error) findings.push(`${at}: ${info.error}`);
		token.meta = { ...info, part: at.startsWith("{{") };
		chapter.fences.push({ ...info, text: token.content, at, begin: token.map[0], end: token.map[1] });
	}
	// A text that directly follows commands is what they print.
	for (const [i, fence] of chapter.fences.entries()) {
		const next = chapter.fences[i + 1];
		const between = next && chapter.lines.slice(fence.end, next.begin).every((l) => !l.text.trim());
		if (between && next.language === "text" && fence.language === "sh") fence.prints = next;
	}
}

/** HTML is not in the format; comments, a break in a cell, and anchors for what has no heading are. */
function readHtml(chapter, findings) {
	for (const token of chapter.tokens)
		if (token.type === "html_block" && !/^<!--[\s\S]*-->\s*$/.test(token.content))
			findings.push(`${chapter.lines[token.map[0]].at}: HTML; write Markdown`);
	for (const { child, at } of inlineChildren(chapter)) {
		if (child.type !== "html_inline" || /^(<\/a>|<br>|<!--.*)$/s.test(child.content)) continue;
		const [, id] = ANCHOR.exec(child.content) ?? [];
		if (id) addAnchor(chapter, id, at, findings);
		else findings.push(`${at}: HTML; write Markdown`);
	}
}

function readChapter(chapter, context) {
	chapter.lines = joinLines(chapter, context);
	chapter.tokens = markdown.parse(chapter.lines.map((l) => l.text).join("\n"), {});
	chapter.headings = [];
	chapter.fences = [];
	chapter.anchors = new Set();
	chapter.title = chapter.id;
	chapter.lead = "";
	readHeadings(chapter, context.findings);
	readFences(chapter, context.findings);
	readHtml(chapter, context.findings);
}

function readSection({ title, folder }, context) {
	const { tree, findings } = context;
	const dir = `${BOOK}/${folder}`;
	if (!existsSync(join(tree, dir))) return null;
	const list = `${dir}/chapters.json`;
	const chapters = [];
	for (const entry of readJson(tree, list, findings)) {
		const name = entry.name ?? entry;
		const chapter = { id: `${folder}/${name}`, name, folder, file: entry.file ?? `${dir}/${name}.md`, section: title };
		if (!existsSync(join(tree, chapter.file))) {
			findings.push(`${list}:1: ${chapter.file} is not there`);
			continue;
		}
		readChapter(chapter, context);
		chapters.push(chapter);
	}
	for (const name of readdirSync(join(tree, dir)).sort())
		if (name.endsWith(".md") && !chapters.some((c) => c.file === `${dir}/${name}`))
			findings.push(`${dir}/${name}:1: ${list} does not list this chapter`);
	return { title, folder, chapters };
}

/**
 * The book below `tree`; `parts` is the folder of generated parts. `missing` are sections that have no folder.
 * `findings` says what is not as it should be.
 */
export function readBook({ tree, parts }) {
	const context = { tree, parts, used: new Set(), findings: [] };
	const plan = readJson(tree, `${BOOK}/book.json`, context.findings).sections ?? [];
	const all = plan.map((s) => readSection(s, context));
	for (const entry of readdirSync(join(tree, BOOK), { withFileTypes: true }))
		if (entry.isDirectory() && entry.name !== "pictures" && !plan.some((s) => s.folder === entry.name))
			context.findings.push(`${BOOK}/${entry.name}:1: no section of book.json`);
	const written = existsSync(parts) ? readdirSync(parts).filter((f) => f.endsWith(".md")).sort() : [];
	for (const file of written)
		if (!context.used.has(file.slice(0, -3))) context.findings.push(`{{${file.slice(0, -3)}}}:1: no chapter uses this part`);
	const sections = all.filter((s) => s !== null);
	return {
		tree,
		sections,
		chapters: sections.flatMap((s) => s.chapters),
		missing: plan.filter((_, i) => all[i] === null).map((s) => s.title),
		findings: context.findings,
	};
}

/** A page that is in no book, such as the README, read as a chapter is; `findings` as above. */
export function readPage(tree, file) {
	const context = { tree, parts: tree, used: new Set(), findings: [] };
	const page = { id: file, name: file, folder: "", file };
	readChapter(page, context);
	return { ...page, findings: context.findings };
}

export { markdown };
