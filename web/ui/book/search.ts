// The search of the book. Whoever pastes a message has a host and numbers in it that the book cannot have, so the parts with
// every word are found, and if there are none, those with most words, where rare words count more. Words are compared by
// their stems; the beginning of a word counts half. Places count too: headings before text, one row or paragraph with all
// words before a part that has them far apart, chapters before the tables of the API.

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

/** A text as words between blanks: as they are written, and the stems of those that say something. */
interface Words {
	written: string;
	stems: string;
}

interface Entry {
	chapter: BookChapter;
	part: BookPart;
	title: Words;
	heading: Words;
	texts: Words[];
	/** The first cell of a row, which names it; null: no row of a table. */
	leads: (Words | null)[];
	/** All of the part. */
	whole: Words;
}

/** A word of the query; `weight` is more for rare ones, 0 for one that no part has. */
interface Term {
	written: string;
	stem: string;
	weight: number;
}

const FOUND_MAX = 20;
const EXCERPT_MAX = 160;
const WORD = /[\p{L}\p{N}]+/gu;
const IDLE = new Set("a an and are as at be by can do does for from get how i in is it its mean means my of on or the this to what which with".split(" "));
/** Numbers in a message are the reader's. */
const NUMBER = 0.3;
const BEGINNING = 0.5;
const PLACE = { title: 2.5, heading: 2, text: 1, apart: 0.6, above: 0.8 };
/** A word of one part alone weighs no more than one of a few: it may be in an example by chance. */
const FEW = 4;
const PAIRS = 0.8;
const FILLS = { heading: 0.5, row: 0.15 };
/** The query is the heading, of a chapter or within one. */
const SAME = { title: 20, heading: 10 };
/** Where none has all words: the least part of the best one's words. */
const ENOUGH = 0.5;
/** Guides answer questions; routes, types of answers (the other headings of the API) and old news seldom do. */
const SECTIONS: [RegExp, number][] = [
	[/^guides\//, 1.2],
	[/^api\/[^#]*#(?!get|post|put|delete)/, 0.4],
	[/^(api|changes)\//, 0.55],
];
const CELL = " · ";

const wordsOf = (text: string): string[] => text.toLowerCase().match(WORD) ?? [];

/** Without a plural's s, -ing, -ed and a last e: sizes, sizing and size are one word. */
export function stemOf(word: string): string {
	let stem = word;
	if (stem.length > 4 && /ie[sd]$/.test(stem)) stem = `${stem.slice(0, -3)}y`;
	else if (stem.length > 3 && /[^su]s$/.test(stem)) stem = stem.slice(0, -1);
	const [, short] = /^(.*[aeiouy].*?)(?:ing|ed)$/.exec(stem) ?? [];
	if (short && short.length > 2) stem = short.replace(/([bdgmnprt])\1$/, "$1");
	return stem.length > 3 && stem.endsWith("e") ? stem.slice(0, -1) : stem;
}

function makeWords(text: string): Words {
	const all = wordsOf(text);
	const stems = all.filter((w) => !IDLE.has(w)).map(stemOf);
	return { written: ` ${all.join(" ")} `, stems: ` ${stems.join(" ")} ` };
}

/** Splits all texts into words, once. */
export function prepareIndex(chapters: BookChapter[]): Entry[] {
	return chapters.flatMap((chapter) =>
		chapter.parts.map((part) => {
			const texts = part[2].map(makeWords);
			const heading = makeWords(part[0]);
			const all = [heading, ...texts];
			const whole = { written: all.map((w) => w.written).join(""), stems: all.map((w) => w.stems).join("") };
			const leads = part[2].map((t) => (t.includes(CELL) ? makeWords(t.split(CELL)[0]) : null));
			return { chapter, part, title: makeWords(chapter.parts[0][0]), heading, texts, leads, whole };
		}),
	);
}

/** 1: the word is there; less: the beginning of a word is; 0: neither. */
function matchWord(term: Term, among: Words): number {
	if (among.stems.includes(` ${term.stem} `)) return 1;
	return among.written.includes(` ${term.written}`) ? BEGINNING : 0;
}

/** The words of the query with their weights. Idle words count if there are no others. */
function makeTerms(entries: Entry[], words: string[]): Term[] {
	const telling = words.filter((w) => !IDLE.has(w));
	return [...new Set(telling.length ? telling : words)].map((written) => {
		const term = { written, stem: stemOf(written), weight: 0 };
		const n = entries.filter((e) => matchWord(term, e.whole)).length;
		const rare = Math.log(1 + entries.length / Math.max(n, FEW));
		return { ...term, weight: n ? rare * (/^\d+$/.test(written) ? NUMBER : 1) : 0 };
	});
}

const weigh = (terms: Term[], of: (t: Term) => number): number => terms.reduce((n, t) => n + t.weight * of(t), 0);

/** The part of the query's neighbours that are neighbours in the text too. */
function matchPairs(terms: Term[], among: Words): number {
	const pairs = terms.slice(1).map((t, i) => ` ${terms[i].stem} ${t.stem} `);
	return pairs.length ? pairs.filter((p) => among.stems.includes(p)).length / pairs.length : 0;
}

/** The part of a name that the query's words are. */
function fillName(terms: Term[], name: Words): number {
	const all = name.stems.trim().split(" ");
	return all.filter((w) => terms.some((t) => t.stem === w)).length / all.length;
}

/** The place of the text that fits best, and how well: its words, its neighbours, its name. -1: there is no text. */
function bestText(e: Entry, terms: Term[], total: number): { at: number; more: number } {
	let best = { at: -1, rank: -1, more: 0 };
	for (const [at, text] of e.texts.entries()) {
		const words = weigh(terms, (t) => matchWord(t, text)) / total;
		if (!words) continue;
		const lead = e.leads[at];
		const more = PAIRS * matchPairs(terms, text) + (lead ? FILLS.row * fillName(terms, lead) : 0);
		if (words + more > best.rank) best = { at, rank: words + more, more };
	}
	return best;
}

interface Ranked {
	e: Entry;
	terms: Term[];
	rank: number;
	/** The place of the text to show. */
	at: number;
}

const urlOf = (e: Entry): string => e.chapter.url + (e.part[1] && `#${e.part[1]}`);

/** A title counts as such in its chapter's first part alone. */
function rankEntry(e: Entry, terms: Term[]): Ranked {
	const total = weigh(terms, () => 1);
	const { at, more } = bestText(e, terms, total);
	const own = e.part === e.chapter.parts[0] ? "title" : "heading";
	const sum = weigh(terms, (t) =>
		Math.max(
			matchWord(t, e.heading) * PLACE[own],
			at < 0 ? 0 : matchWord(t, e.texts[at]) * PLACE.text,
			matchWord(t, e.whole) * PLACE.apart,
			matchWord(t, e.title) * PLACE.above,
		),
	);
	const heading = PAIRS * matchPairs(terms, e.heading) + FILLS.heading * fillName(terms, e.heading);
	const section = SECTIONS.find(([url]) => url.test(urlOf(e)))?.[1] ?? 1;
	const same = section >= 1 && e.heading.stems === ` ${terms.map((t) => t.stem).join(" ")} `;
	return { e, terms, at, rank: (sum / total + Math.max(more, heading)) * section + (same ? SAME[own] : 0) };
}

/** The parts with all words, which may be in the chapter's title too; if there are none, those with enough of them. */
function findEntries(entries: Entry[], terms: Term[]): { all: boolean; found: Entry[] } {
	const some = entries.flatMap((e) => {
		const here = terms.map((t) => matchWord(t, e.whole) > 0);
		if (!here.includes(true)) return [];
		const all = terms.every((t, i) => here[i] || matchWord(t, e.title) > 0);
		return [{ e, all, part: terms.reduce((n, t, i) => n + (here[i] ? t.weight : 0), 0) }];
	});
	const whole = some.filter((s) => s.all);
	if (whole.length) return { all: true, found: whole.map((s) => s.e) };
	const least = ENOUGH * some.reduce((n, s) => Math.max(n, s.part), 0);
	return { all: false, found: some.filter((s) => s.part >= least).map((s) => s.e) };
}

/** The words, then the same with two neighbours as one: "back up" is "backup". */
function spellings(entries: Entry[], words: string[]): string[][] {
	const joined = words.slice(1).map((w, i) => [...words.slice(0, i), words[i] + w, ...words.slice(i + 2)]);
	return [words, ...joined.filter((list, i) => entries.some((e) => e.whole.written.includes(` ${list[i]} `)))];
}

/** The text in pieces, those marked that begin with one of the words. */
export function markWords(text: string, words: string[]): Piece[] {
	const out: Piece[] = [];
	const stems = words.map(stemOf);
	let at = 0;
	for (const m of text.matchAll(WORD)) {
		const lower = m[0].toLowerCase();
		const beginning = Math.max(0, ...words.filter((w) => lower.startsWith(w)).map((w) => w.length));
		const length = beginning || (stems.includes(stemOf(lower)) ? lower.length : 0);
		if (!length) continue;
		if (m.index > at) out.push({ text: text.slice(at, m.index), marked: false });
		at = m.index + length;
		out.push({ text: text.slice(m.index, at), marked: true });
	}
	if (at < text.length) out.push({ text: text.slice(at), marked: false });
	return out;
}

/** The text, cut around the first of the words. */
function excerptOf(text: string, words: string[]): Piece[] {
	const pieces = markWords(text, words);
	const before = pieces.slice(0, Math.max(0, pieces.findIndex((p) => p.marked)));
	let from = Math.max(0, before.reduce((n, p) => n + p.text.length, 0) - EXCERPT_MAX / 4);
	if (from) from = text.indexOf(" ", from) + 1 || from;
	let to = Math.min(text.length, from + EXCERPT_MAX);
	if (to < text.length) to = Math.max(text.lastIndexOf(" ", to), from + EXCERPT_MAX / 2);
	const cut = (from ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
	return markWords(cut, words);
}

function showEntry({ e, terms, at }: Ranked): Found {
	const words = terms.map((t) => t.written);
	return {
		section: e.chapter.section,
		title: markWords(e.chapter.parts[0][0], words),
		heading: e.part === e.chapter.parts[0] ? [] : markWords(e.part[0], words),
		excerpt: excerptOf(e.part[2][Math.max(at, 0)] ?? "", words),
		url: urlOf(e),
	};
}

/** The best entries, the best first; the order of the book decides between equals. */
export function searchBook(entries: Entry[], query: string): Found[] {
	const asked = spellings(entries, wordsOf(query)).map((words) => {
		const terms = makeTerms(entries, words);
		return { terms, ...findEntries(entries, terms) };
	});
	const best = new Map<Entry, Ranked>();
	for (const { terms, found } of asked.some((a) => a.all) ? asked.filter((a) => a.all) : asked)
		for (const e of found) {
			const now = rankEntry(e, terms);
			if (now.rank > (best.get(e)?.rank ?? 0)) best.set(e, now);
		}
	return [...best.values()]
		.sort((a, b) => b.rank - a.rank || entries.indexOf(a.e) - entries.indexOf(b.e))
		.slice(0, FOUND_MAX)
		.map(showEntry);
}
