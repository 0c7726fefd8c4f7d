// The pages of the book as HTML. All links are relative, so the book works below any prefix and from files.
import { pageOf } from "./check.mjs";
import { anchorOf, markdown } from "./read.mjs";

const NAMES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escapeHtml = (text) => text.replace(/[&<>"]/g, (c) => NAMES[c]);

const rules = markdown.renderer.rules;
rules.heading_open = (tokens, i) => `<${tokens[i].tag} id="${escapeHtml(tokens[i].meta.anchor)}">`;
/** A phone shows the last column of a table of many below the others. */
const MANY = 4;
rules.table_open = (tokens, i) => {
	const columns = tokens.slice(i, tokens.findIndex((t, k) => k > i && t.type === "tr_close")).filter((t) => t.type === "th_open").length;
	const many = columns >= MANY ? " many" : "";
	return `<div class="wide${many}" role="group" aria-label="Table" tabindex="0"><table>\n`;
};
rules.table_close = () => "</table></div>\n";
rules.html_block = () => "";
rules.html_inline = (tokens, i) => (/^<(\/?a|br)\b/.test(tokens[i].content) ? tokens[i].content : "");
const LONG = 24;
const FLAG = /^(--?(?:\[no-\])?[A-Za-z0-9]+)(.*)$/s;
/** Long names may break behind _, . and -, in a table all names; a flag never behind its --. */
function breakWord(word, inTable) {
	const [, flag, rest] = FLAG.exec(word) ?? [null, "", word];
	const name = escapeHtml(rest);
	const joint = flag ? /(^|[\p{L}\p{N}])([_.-])(?=[\p{L}\p{N}])/gu : /([\p{L}\p{N}])([_.-])(?=[\p{L}\p{N}])/gu;
	const broken = inTable || word.length > LONG ? name.replace(joint, "$1$2<wbr>") : name;
	return flag ? `<span class="whole">${escapeHtml(flag)}</span>${broken}` : broken;
}
for (const cell of ["th", "td"]) {
	rules[`${cell}_open`] = (tokens, i, options, env, self) => {
		env.inTable = true;
		// An empty cell heads nothing.
		if (!tokens[i + 1].content) tokens[i].tag = tokens[i + 2].tag = "td";
		return self.renderToken(tokens, i, options);
	};
	rules[`${cell}_close`] = (tokens, i, options, env, self) => {
		env.inTable = false;
		return self.renderToken(tokens, i, options);
	};
}
rules.code_inline = (tokens, i, _options, env) => `<code>${tokens[i].content.split(/(\s+)/).map((w) => breakWord(w, env.inTable)).join("")}</code>`;
rules.fence = (tokens, i) => {
	const { language, file, part } = tokens[i].meta;
	// The texts of generated parts are prose, such as what a command says of itself.
	const prose = part && language === "text" ? ' class="prose"' : "";
	const name = file ? `<div class="file">${escapeHtml(file)}</div>` : "";
	return `<div class="code">${name}<pre${prose} tabindex="0"><code class="${escapeHtml(language)}">${escapeHtml(tokens[i].content)}</code></pre></div>\n`;
};
const image = rules.image;
rules.image = (tokens, i, ...rest) => {
	tokens[i].attrSet("loading", "lazy");
	return image(tokens, i, ...rest);
};

/**
 * The sections, with the chapters of the current one. The others lead to the first page, and the script puts their
 * chapters there: all chapters in each page were an eighth of the book.
 */
function chapterList(book, current, root) {
	return book.sections
		.map((s) => {
			const title = escapeHtml(s.title);
			if (!s.chapters.includes(current))
				return `<a class="section" href="${root}index.html#${escapeHtml(anchorOf(s.title))}">${title}</a>`;
			const links = s.chapters.map((c) => {
				const here = c === current ? ' aria-current="page"' : "";
				return `<li><a href="${root}${pageOf(c)}"${here}>${escapeHtml(c.title)}</a></li>`;
			});
			return `<details open><summary>${title}</summary><ul>\n${links.join("\n")}\n</ul></details>`;
		})
		.join("\n");
}

function contents(chapter) {
	const shown = chapter.headings.filter((h) => h.level === 2 || h.level === 3);
	if (shown.length < 2) return "";
	const links = shown.map((h) => `<li class="level${h.level}"><a href="#${escapeHtml(h.anchor)}">${escapeHtml(h.text)}</a></li>`);
	return `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>\n${links.join("\n")}\n</ul></nav>`;
}

function chapterTurn(book, chapter) {
	const at = book.chapters.indexOf(chapter);
	const link = (other, word, cls) =>
		other ? `<a class="${cls}" href="../${pageOf(other)}"><span>${word}</span> ${escapeHtml(other.title)}</a>` : "";
	const links = link(book.chapters[at - 1], "Previous", "before") + link(book.chapters[at + 1], "Next", "after");
	return `<nav class="turn" aria-label="Previous and next chapter">${links}</nav>`;
}

/** Leads to the server's page, which is above the book. The book in files has none: withoutServer. */
const serverLink = (root) => `<a class="server" href="${root}../" title="The server's page">← <span>Server</span></a>\n`;
export const withoutServer = (html) => html.replace(/<a class="server" .*\n/, "");

/** One page. `root` leads from it to the book's root; `files` has the names of style, script, index and icon. */
function layout({ book, chapter, title, description, root, base = "", main, aside = "", files }) {
	const skip = base ? "" : '<a class="skip" href="#main">Skip to the content</a>\n';
	return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${base}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escapeHtml(description)}">
<title>${escapeHtml(title)} · Epimetheus</title>
<link rel="icon" type="image/svg+xml" href="${root}${files.icon}">
<link rel="stylesheet" href="${root}${files.style}">
<script src="${root}${files.script}" data-root="${root}" data-index="${root}${files.index}"></script>
</head>
<body>
${skip}<header>
${serverLink(root)}<button type="button" class="fold" aria-expanded="false" aria-controls="chapters" hidden>Chapters</button>
<a class="brand" href="${root}index.html">Epimetheus <span>docs</span></a>
<div class="search" role="search" hidden>
<input type="search" role="combobox" aria-label="Search the docs" aria-expanded="false" aria-controls="found" aria-autocomplete="list" placeholder="Search ( / )" autocomplete="off" spellcheck="false">
<div id="found" role="listbox" aria-label="Found" hidden></div>
<p class="hidden" role="status"></p>
</div>
<button type="button" class="theme" hidden></button>
</header>
<div class="columns">
<nav id="chapters" aria-label="Chapters">
${chapterList(book, chapter, root)}
</nav>
<main id="main" tabindex="-1">
${main}</main>
${aside}
</div>
</body>
</html>
`;
}

export function chapterPage(book, chapter, files) {
	const main = markdown.renderer.render(chapter.tokens, markdown.options, {}) + chapterTurn(book, chapter);
	return layout({
		book,
		chapter,
		title: chapter.title,
		description: chapter.lead,
		root: "../",
		main,
		aside: contents(chapter),
		files,
	});
}

const ABOUT = "A continuous profiling server: scrapes pprof targets, keeps every profile, answers queries.";

export function firstPage(book, files) {
	const sections = book.sections.map((s) => {
		const chapters = s.chapters.map(
			(c) => `<dt><a href="${pageOf(c)}">${escapeHtml(c.title)}</a></dt><dd>${escapeHtml(c.lead)}</dd>`,
		);
		return `<h2 id="${escapeHtml(anchorOf(s.title))}">${escapeHtml(s.title)}</h2>\n<dl class="chapters">\n${chapters.join("\n")}\n</dl>\n`;
	});
	const main = `<h1>Epimetheus</h1>\n<p>${ABOUT}</p>\n${sections.join("")}`;
	return layout({ book, chapter: null, title: "Docs", description: ABOUT, root: "", main, files });
}

/** The answer for an unknown chapter. It may come at any depth, so the server fills in its base. */
export function missingPage(book, files) {
	const main = "<h1>No such chapter</h1>\n<p>The list of chapters and the search lead on.</p>\n";
	return layout({
		book,
		chapter: null,
		title: "No such chapter",
		description: ABOUT,
		root: "",
		base: '<base href="%BASE%docs/">\n',
		main,
		files,
	});
}
