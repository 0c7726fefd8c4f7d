// The search of the book: every word has to be the beginning of a word in a title, a heading or the text below it.
// Titles rank before headings, headings before text.

/** A heading, its anchor ("": the chapter itself), the texts below it. The first part has the chapter's title. */
export type BookPart = [heading: string, anchor: string, texts: string[]];
export interface BookChapter {
	section: string;
	url: string;
	parts: BookPart[];
}

/** A piece of text, marked where it was found. */
export interface Piece {
	text: string;
	marked: boolean;
}

export interface Found {
	section: string;
	title: Piece[];
	/** Empty for the chapter itself. */
	heading: Piece[];
	excerpt: Piece[];
	url: string;
}

interface Entry {
	chapter: BookChapter;
	part: BookPart;
	title: string[];
	heading: string[];
	texts: string[][];
}

const FOUND_MAX = 20;
const EXCERPT_MAX = 160;
const TITLE = 100;
const HEADING = 10;
const TEXT = 1;
const WHOLE = 0.5;
const WORD = /[\p{L}\p{N}]+/gu;

const wordsOf = (text: string): string[] => text.toLowerCase().match(WORD) ?? [];

/** Splits all texts into words, once. */
export function prepareIndex(chapters: BookChapter[]): Entry[] {
	return chapters.flatMap((chapter) =>
		chapter.parts.map((part) => ({
			chapter,
			part,
			title: wordsOf(chapter.parts[0][0]),
			heading: part === chapter.parts[0] ? [] : wordsOf(part[0]),
			texts: part[2].map(wordsOf),
		})),
	);
}

/** How well `word` fits: a whole word is better than a beginning; 0: not at all. */
function rankWord(word: string, among: string[], rank: number): number {
	if (among.includes(word)) return rank + WHOLE;
	return among.some((w) => w.startsWith(word)) ? rank : 0;
}

/** 0: the entry lacks a word. A title counts as such in its chapter's first part alone. */
function rankEntry(e: Entry, words: string[]): number {
	const first = e.part === e.chapter.parts[0];
	let sum = 0;
	let own = false;
	for (const word of words) {
		const here =
			rankWord(word, first ? e.title : e.heading, first ? TITLE : HEADING) ||
			Math.max(0, ...e.texts.map((t) => rankWord(word, t, TEXT)));
		const rank = here || rankWord(word, e.title, TEXT);
		if (!rank) return 0;
		own ||= here > 0;
		sum += rank;
	}
	return own ? sum : 0;
}

/** The text in pieces, those marked that begin with one of the words. */
export function markWords(text: string, words: string[]): Piece[] {
	const out: Piece[] = [];
	let at = 0;
	for (const m of text.matchAll(WORD)) {
		const lower = m[0].toLowerCase();
		const length = Math.max(0, ...words.filter((w) => lower.startsWith(w)).map((w) => w.length));
		if (!length) continue;
		if (m.index > at) out.push({ text: text.slice(at, m.index), marked: false });
		at = m.index + length;
		out.push({ text: text.slice(m.index, at), marked: true });
	}
	if (at < text.length) out.push({ text: text.slice(at), marked: false });
	return out;
}

/** The text that has most of the words, cut around the first of them. */
function excerptOf(e: Entry, words: string[]): Piece[] {
	const hits = e.texts.map((t) => words.filter((w) => rankWord(w, t, TEXT)).length);
	const text = e.part[2][hits.indexOf(Math.max(...hits))] ?? "";
	const first = [...text.matchAll(WORD)].find((m) => words.some((w) => m[0].toLowerCase().startsWith(w)));
	let from = Math.max(0, (first?.index ?? 0) - EXCERPT_MAX / 4);
	if (from) from = text.indexOf(" ", from) + 1 || from;
	let to = Math.min(text.length, from + EXCERPT_MAX);
	if (to < text.length) to = Math.max(text.lastIndexOf(" ", to), from + EXCERPT_MAX / 2);
	const cut = (from ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
	return markWords(cut, words);
}

/** The best entries, the best first; the order of the book decides between equals. */
export function searchBook(entries: Entry[], query: string): Found[] {
	const words = wordsOf(query);
	if (!words.length) return [];
	return entries
		.map((e) => ({ e, rank: rankEntry(e, words) }))
		.filter(({ rank }) => rank > 0)
		.sort((a, b) => b.rank - a.rank)
		.slice(0, FOUND_MAX)
		.map(({ e }) => ({
			section: e.chapter.section,
			title: markWords(e.chapter.parts[0][0], words),
			heading: e.part === e.chapter.parts[0] ? [] : markWords(e.part[0], words),
			excerpt: excerptOf(e, words),
			url: e.chapter.url + (e.part[1] && `#${e.part[1]}`),
		}));
}
