// The index of the search (search.ts): each chapter in parts, a heading and the texts below it, code too. It is a script, so
// that a browser reads it from a file too.
import { pageOf } from "./check.mjs";
import { plainText } from "./read.mjs";

function chapterParts(chapter) {
	const parts = [];
	let row = null;
	let heading = null;
	for (const token of chapter.tokens) {
		if (token.type === "heading_open") heading = token;
		else if (token.type === "heading_close") heading = null;
		else if (token.type === "tr_open") row = [];
		else if (token.type === "tr_close") {
			const text = row.filter(Boolean).join(" · ");
			if (text) parts.at(-1)?.[2].push(text);
			row = null;
		}
		if (token.type === "fence") parts.at(-1)?.[2].push(token.content.replace(/\s+/g, " ").trim());
		if (token.type !== "inline") continue;
		const text = plainText(token).trim();
		if (heading) parts.push([text, heading.tag === "h1" ? "" : heading.meta.anchor, []]);
		else if (row) row.push(text);
		else if (text) parts.at(-1)?.[2].push(text);
	}
	return parts;
}

export function searchIndex(book) {
	const chapters = book.chapters.map((c) => ({ section: c.section, url: pageOf(c), parts: chapterParts(c) }));
	return `bookIndex(${JSON.stringify(chapters)});\n`;
}
