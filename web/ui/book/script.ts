// What the book's pages do beyond HTML: the theme, the folded list of chapters, copy buttons, the search. It runs before the
// page is drawn, so that a chosen theme does not flash.
import { type BookChapter, type Found, type Piece, prepareIndex, searchBook } from "./search";

/** All sections, by the build; html.mjs puts the same ones into the pages. */
declare const BOOK_SECTIONS: { title: string; chapters: { title: string; url: string }[] }[];

const { root = "", index = "" } = document.currentScript?.dataset ?? {};

/* ---- the theme: the page of the server keeps its choice under the same key ---- */

const KEY = "epimetheus.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
let chosen: string | null = null;
try {
	chosen = localStorage.getItem(KEY);
} catch {
	/* storage may be blocked; the choice then lasts until the page is left */
}

const isDark = () => (chosen === "dark" || chosen === "light" ? chosen === "dark" : system.matches);

function showTheme(): void {
	document.documentElement.dataset.theme = isDark() ? "dark" : "light";
	const button = document.querySelector(".theme");
	if (button) button.textContent = isDark() ? "Light" : "Dark";
	button?.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
}

function toggleBookTheme(): void {
	chosen = isDark() ? "light" : "dark";
	try {
		localStorage.setItem(KEY, chosen);
	} catch {
		/* as above */
	}
	showTheme();
}

/* ---- elements ---- */

function element(tag: string, className: string, ...children: (Node | string)[]): HTMLElement {
	const e = document.createElement(tag);
	e.className = className;
	e.append(...children);
	return e;
}

const pieces = (list: Piece[]): (Node | string)[] =>
	list.map((p) => (p.marked ? element("mark", "", p.text) : p.text));

function addCopyButtons(): void {
	for (const code of document.querySelectorAll<HTMLElement>(".code")) {
		const button = element("button", "copy", "Copy");
		button.setAttribute("type", "button");
		button.addEventListener("click", () => {
			const text = code.querySelector("code")?.textContent ?? "";
			const say = (word: string) => {
				button.textContent = word;
				setTimeout(() => (button.textContent = "Copy"), 2000);
			};
			// Over plain HTTP there is no clipboard.
			const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
			written.then(
				() => say("Copied"),
				() => {
					getSelection()?.selectAllChildren(code.querySelector("code") ?? code);
					say("Selected");
				},
			);
		});
		code.append(button);
	}
}

/** Sections that are not this page's are links without the script; here they open where they are. */
function fillSections(): void {
	for (const link of document.querySelectorAll<HTMLElement>("#chapters > .section")) {
		const section = BOOK_SECTIONS.find((s) => s.title === link.textContent);
		if (!section) continue;
		const chapters = section.chapters.map((c) => {
			const a = element("a", "", c.title);
			a.setAttribute("href", root + c.url);
			return element("li", "", a);
		});
		link.replaceWith(element("details", "", element("summary", "", section.title), element("ul", "", ...chapters)));
	}
}

function foldChapters(): void {
	const fold = document.querySelector<HTMLElement>(".fold");
	const list = document.querySelector<HTMLElement>("#chapters");
	if (!fold || !list) return;
	const show = (open: boolean) => {
		fold.setAttribute("aria-expanded", String(open));
		list.classList.toggle("open", open);
	};
	fold.hidden = false;
	fold.addEventListener("click", () => show(!list.classList.contains("open")));
	document.addEventListener("keydown", (e) => {
		if (e.key !== "Escape" || !list.classList.contains("open")) return;
		show(false);
		fold.focus();
	});
	const current = list.querySelector<HTMLElement>("[aria-current]");
	if (current) list.scrollTop = current.offsetTop - list.clientHeight / 2;
}

/* ---- the search ---- */

let entries: Promise<ReturnType<typeof prepareIndex>> | undefined;

/** Loads the index, once: it is a script that calls bookIndex. */
function loadIndex(): NonNullable<typeof entries> {
	entries ??= new Promise((done, fail) => {
		Object.assign(window, { bookIndex: (all: BookChapter[]) => done(prepareIndex(all)) });
		const script = document.createElement("script");
		script.src = index;
		script.addEventListener("error", () => fail(new Error("no index")));
		document.head.append(script);
	});
	return entries;
}

function option(found: Found, i: number): HTMLElement {
	const where = element("span", "where", found.section, " › ", ...pieces(found.title));
	const name = found.heading.length ? found.heading : found.title;
	const a = element("a", "", element("span", "name", ...pieces(name)), where, element("span", "excerpt", ...pieces(found.excerpt)));
	a.id = `found-${i}`;
	a.setAttribute("role", "option");
	a.setAttribute("aria-selected", "false");
	a.setAttribute("href", root + found.url);
	a.tabIndex = -1;
	return a;
}

function installSearch(box: HTMLElement, input: HTMLInputElement, list: HTMLElement): void {
	const status = box.querySelector("[role=status]");
	let at = -1;
	const options = () => [...list.querySelectorAll<HTMLElement>("[role=option]")];
	const open = (is: boolean) => {
		list.hidden = !is;
		input.setAttribute("aria-expanded", String(is));
		if (!is) choose(-1);
	};
	const choose = (to: number) => {
		at = to;
		for (const [i, o] of options().entries()) o.setAttribute("aria-selected", String(i === to));
		const chosen = options()[to];
		if (chosen) input.setAttribute("aria-activedescendant", chosen.id);
		else input.removeAttribute("aria-activedescendant");
		chosen?.scrollIntoView({ block: "nearest" });
	};
	const search = async () => {
		const query = input.value;
		let found: Found[] = [];
		let failed = false;
		try {
			found = searchBook(await loadIndex(), query);
		} catch {
			failed = true;
		}
		if (query !== input.value) return; // something else was typed meanwhile
		const words = failed ? "The index cannot be loaded." : found.length ? "" : "Nothing found.";
		list.replaceChildren(...found.map(option));
		if (words) list.append(element("p", "none", words));
		if (status) status.textContent = query.trim() ? words || `${found.length} found` : "";
		open(query.trim() !== "");
		choose(found.length ? 0 : -1);
	};
	input.addEventListener("focus", () => void loadIndex().catch(() => {}));
	input.addEventListener("input", () => void search());
	input.addEventListener("keydown", (e) => {
		const n = options().length;
		if (e.key === "Escape") {
			if (!list.hidden) open(false);
			else if (input.value) input.value = "";
			else input.blur();
		} else if (e.key === "ArrowDown" && n) choose((at + 1) % n);
		else if (e.key === "ArrowUp" && n) choose((at + n - 1) % n);
		else if (e.key === "Enter" && at >= 0) options()[at].click();
		else return;
		e.preventDefault();
	});
	list.addEventListener("click", () => open(false)); // a heading of this page
	document.addEventListener("click", (e) => {
		if (!box.contains(e.target as Node)) open(false);
	});
	document.addEventListener("keydown", (e) => {
		if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || e.target === input) return;
		input.focus();
		input.select();
		e.preventDefault();
	});
	box.hidden = false;
}

showTheme();
document.documentElement.classList.add("scripted");
system.addEventListener("change", showTheme);
document.addEventListener("DOMContentLoaded", () => {
	const theme = document.querySelector<HTMLElement>(".theme");
	const box = document.querySelector<HTMLElement>(".search");
	const input = box?.querySelector("input");
	const list = box?.querySelector<HTMLElement>("#found");
	theme?.addEventListener("click", toggleBookTheme);
	if (theme) theme.hidden = false;
	showTheme();
	fillSections();
	foldChapters();
	addCopyButtons();
	if (box && input && list) installSearch(box, input, list);
});
