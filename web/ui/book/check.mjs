// Links, anchors and pictures of the book: where they lead, and that it is there. Resolved places are left in the
// tokens, for the HTML.
import { existsSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { TYPES } from "../assets.mjs";
import { inlineChildren } from "./read.mjs";

const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** The address of a chapter's page, from the book's root. */
export const pageOf = (chapter) => `${chapter.id}.html`;

/** What is wrong with the link, or undefined; the token gets its address as a page's. */
function resolveLink(token, chapter, byId) {
	const to = token.attrGet("href");
	if (SCHEME.test(to)) return to.startsWith("https://") ? undefined : `a link to ${to}; only https leads out of the book`;
	const [path, anchor] = to.split("#", 2);
	const id = path ? posix.join(chapter.folder, path).replace(/\.md$/, "") : chapter.id;
	const target = path && !path.endsWith(".md") ? undefined : byId.get(id);
	if (!target) return `a dead link: ${to}`;
	if (anchor !== undefined && !target.anchors.has(decodeURIComponent(anchor))) return `a dead anchor: ${to}`;
	if (path) token.attrSet("href", path.replace(/\.md$/, ".html") + (anchor === undefined ? "" : `#${anchor}`));
	return undefined;
}

function resolvePicture(token, chapter, tree, pictures) {
	const to = token.attrGet("src");
	const path = posix.join(chapter.folder, to);
	if (SCHEME.test(to) || !path.startsWith("pictures/")) return `a picture outside web/book/pictures: ${to}`;
	if (!existsSync(join(tree, "web/book", path))) return `no such picture: ${to}`;
	if (!(extname(path).slice(1) in TYPES)) return `a picture of an unknown kind: ${to}`;
	pictures.add(path);
	return token.content.trim() ? undefined : `a picture without a text for those who cannot see it: ${to}`;
}

/** Checks and resolves; gives the pictures that chapters show, as paths below web/book. */
export function resolveBook(book) {
	const byId = new Map(book.chapters.map((c) => [c.id, c]));
	const pictures = new Set();
	for (const chapter of book.chapters)
		for (const { child, at } of inlineChildren(chapter)) {
			let wrong;
			if (child.type === "link_open") wrong = resolveLink(child, chapter, byId);
			else if (child.type === "image") wrong = resolvePicture(child, chapter, book.tree, pictures);
			if (wrong) book.findings.push(`${at}: ${wrong}`);
		}
	return [...pictures].sort();
}
