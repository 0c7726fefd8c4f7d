// The keys of the page: those that work everywhere, and a dialog that lists them all.
import { useEffect, useRef } from "preact/hooks";
import { IconX } from "./shared/icons";
import { pressFullScreen } from "./shared/layout";
import { attached } from "./shared/must";
import "./help.css";

/** Keys that work unless a field has the focus. */
export interface Keys {
	/** Pages by the letter that follows `g`. */
	jumps: Record<string, string>;
	go(path: string): void;
	list(): void;
	/** Opens the chapter of the view. */
	docs(): void;
	/** Shows graph and table, if the page has both. */
	showBoth(): void;
}

const JUMP_MS = 1500;

const typing = (e: KeyboardEvent): boolean =>
	e.target instanceof Element &&
	e.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;

/** The field for `/`: the search, else the filter, else the query. */
export function focusPageSearch(): boolean {
	const all = (what: string) => document.querySelectorAll<HTMLElement>(what);
	for (const f of [...all("main .search input"), ...all("main textarea")]) {
		if (f.offsetParent === null) continue;
		f.focus();
		if (f instanceof HTMLInputElement || f instanceof HTMLTextAreaElement) f.select();
		return true;
	}
	return false;
}

/** The parts of a page that have a key, and what takes the focus there. */
const PARTS = {
	query: "main textarea",
	graph: "main .flame-stage canvas[tabindex]",
	table: "main .vtable-scroll, main .scroll-x",
};
export type PagePart = keyof typeof PARTS;
const PART_KEYS: Record<string, PagePart> = { q: "query", t: "table" };
/** After `g`, which begins the keys of pages. */
const GRAPH_KEY = "g";

function focusPart(part: PagePart): boolean {
	const found = [...document.querySelectorAll<HTMLElement>(PARTS[part])].find((e) => e.offsetParent !== null);
	found?.focus();
	return found !== undefined;
}

const LOOK_MS = 100;
const LOOKS = 50;

/** Moves the focus to a part. One that the view leaves out is shown first; a table may have to be read. */
function goToPart(part: PagePart, showBoth: () => void): void {
	if (focusPart(part) || part === "query" || !document.querySelector("main [aria-label=View]")) return;
	showBoth();
	const from = document.activeElement;
	let looks = 0;
	const timer = setInterval(() => {
		// Who went elsewhere in the meantime stays there.
		if (++looks > LOOKS || document.activeElement !== from || focusPart(part)) clearInterval(timer);
	}, LOOK_MS);
}

export function usePageKeys(keys: Keys): void {
	const last = useRef(keys);
	last.current = keys;
	useEffect(() => {
		let jumping = 0;
		const onKey = (e: KeyboardEvent) => {
			if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
			if (document.querySelector("dialog[open]")) return;
			const { jumps, go, list, docs, showBoth } = last.current;
			const afterG = performance.now() < jumping;
			const to = afterG ? jumps[e.key] : undefined;
			const inDialog = e.target instanceof Element && e.target.closest("[role=dialog]") !== null;
			const part = inDialog ? undefined : afterG && e.key === GRAPH_KEY ? "graph" : PART_KEYS[e.key];
			jumping = 0;
			if (to !== undefined) go(to);
			else if (part) goToPart(part, showBoth);
			else if (e.key === "?") list();
			else if (e.key === "d") docs();
			else if (e.key === "g") jumping = performance.now() + JUMP_MS;
			else if (e.key === "f") {
				if (!pressFullScreen()) return;
			} else if (e.key !== "/" || !focusPageSearch()) return;
			e.preventDefault();
		};
		document.addEventListener("keydown", onKey);
		return () => document.removeEventListener("keydown", onKey);
	}, []);
}

/** Keys and their meaning; " or " separates alternatives, a space keys pressed in turn. */
type Entry = [keys: string, what: string];

const PLACES: [title: string, entries: Entry[]][] = [
	[
		"Everywhere",
		[
			["?", "this list"],
			["d", "the chapter of this view, in a new tab"],
			["/", "search, filter, or the query"],
			["Enter or Shift Enter", "in the search: the next, the previous match"],
			["q", "to the query"],
			["g g", "to the flame graph"],
			["t", "to the table"],
			["Escape", "close what is open; clear the search"],
		],
	],
	[
		"Query",
		[
			["Enter", "run"],
			["Shift Enter", "a new line"],
			["Ctrl Space", "complete at the cursor"],
			["Enter or Tab", "accept the marked completion"],
			["Alt Shift F", "format"],
			["Shift click", "in Labels: ask for one more value"],
		],
	],
	[
		"Chart",
		[
			["← or →", "from step to step"],
			["Page Up or Page Down", "ten steps forward or back"],
			["Home or End", "the first, the last step"],
			["Enter", "open the scrape that ends there"],
			["Tab", "to the deploys above; Enter compares"],
			["Shift drag", "zoom to a window; a double click zooms out"],
		],
	],
	[
		"Heatmap",
		[
			["← or → or ↑ or ↓", "from cell to cell, beginning at the hottest"],
			["Page Up or Page Down", "ten columns forward or back"],
			["Home or End", "the first, the last column"],
			["Enter", "open the profile as a flame graph"],
			["Shift drag", "zoom to a window"],
		],
	],
	[
		"Flame graph",
		[
			["← or → or ↑ or ↓", "walk from frame to frame"],
			["Enter", "zoom in"],
			["Escape", "zoom out"],
			["Home", "the root"],
			["f", "full screen; Escape leaves"],
			["Shift F10", "actions on the function"],
			["Alt click", "highlight a function everywhere"],
		],
	],
	[
		"Tables",
		[
			["↑ or ↓", "the row above or below"],
			["Enter", "open the row"],
			["Space", "highlight the function"],
		],
	],
	[
		"Tree",
		[
			["↑ or ↓", "the row above or below"],
			["→", "expand, then the first child"],
			["←", "collapse, then the parent"],
			["Home or End", "the first or last row"],
			["*", "expand all siblings"],
			["Enter", "highlight the function"],
		],
	],
];

function Pressed({ keys }: { keys: string }) {
	return (
		<>
			{keys.split(" or ").map((one, i) => (
				<span key={one}>
					{i > 0 && " or "}
					{one.split(" ").map((k) => (
						<kbd key={k}>{k}</kbd>
					))}
				</span>
			))}
		</>
	);
}

function Place({ title, entries }: { title: string; entries: Entry[] }) {
	return (
		<section>
			<h3>{title}</h3>
			<dl>
				{entries.map(([keys, what]) => (
					<div key={keys}>
						<dt>
							<Pressed keys={keys} />
						</dt>
						<dd>{what}</dd>
					</div>
				))}
			</dl>
		</section>
	);
}

/** A modal dialog: the browser keeps the focus in it and restores it afterwards. */
export function Help({ jumps, chapter, onClose }: { jumps: Entry[]; chapter: string; onClose(): void }) {
	const ref = useRef<HTMLDialogElement>(null);
	useEffect(() => attached(ref).showModal(), []);
	return (
		<dialog
			class="help"
			ref={ref}
			aria-labelledby="help-title"
			onClose={onClose}
			onClick={(e) => e.target === ref.current && ref.current?.close()}
			onKeyDown={(e) => e.key === "?" && attached(ref).close()}
		>
			<div class="help-body">
				<div class="panel-head">
					<h2 id="help-title">Keys</h2>
					<a href={chapter} target="_blank" rel="noopener">
						Docs of this view
					</a>
					<span class="spacer" />
					<button
						type="button"
						class="quiet"
						aria-label="Close"
						onClick={() => attached(ref).close()}
					>
						<IconX />
					</button>
				</div>
				<div class="help-places">
					{PLACES.map(([title, entries]) => (
						<Place key={title} title={title} entries={entries} />
					))}
					<Place title="Pages" entries={jumps} />
				</div>
			</div>
		</dialog>
	);
}
