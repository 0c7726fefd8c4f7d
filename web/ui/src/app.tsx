// The frame: header and navigation. The path chooses the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { chapterUrl } from "./docs";
import { DropAnywhere } from "./files/openfile";
import { Help, usePageKeys } from "./help";
import { LazyPage } from "./lazypage";
import { DRAWER, loadAll, PAGES, type Page } from "./pages";
import { useLanguage } from "./query/questions";
import { useOutside, useUrl } from "./shared/hooks";
import { IconMenu, IconMoon, IconSun, Logo } from "./shared/icons";
import { OutageBanner, useOutage } from "./shared/outagebanner";
import { toggleTheme, useTheme, useZone } from "./shared/theme";
import { zoneAt } from "./shared/timerange";
import "./app.css";

const JUMPS = Object.fromEntries(PAGES.map((p) => [p.key, p.path]));
const JUMP_KEYS = PAGES.map((p): [string, string] => [`g ${p.key}`, p.title]);

/** Moves the focus to the heading of the page, else to the page. */
function focusPage(): void {
	const main = document.querySelector<HTMLElement>("main");
	const at = main?.querySelector<HTMLElement>("h1") ?? main;
	if (!at) return;
	at.tabIndex = -1;
	at.focus({ preventScroll: true });
}

/** Lets keyboards and screen readers skip the navigation. */
function SkipLink() {
	return (
		// biome-ignore lint/a11y/useValidAnchor: without the handler it is a link to this place
		<a
			class="skip"
			href="#main"
			onClick={(e) => {
				e.preventDefault(); // because of <base> it would be a link to another page
				focusPage();
			}}
		>
			Skip to the content
		</a>
	);
}

function Navigation({ page }: { page: Page }) {
	const [open, setOpen] = useState(false);
	const close = () => setOpen(false);
	const ref = useOutside(open, close);
	useEffect(close, [page]);
	return (
		<div class={open ? "navigation open" : "navigation"} ref={ref}>
			<button
				type="button"
				class="quiet menu-button"
				aria-expanded={open}
				aria-controls="pages"
				onClick={() => setOpen(!open)}
			>
				<IconMenu />
				{page.title}
			</button>
			<nav id="pages" aria-label="Pages">
				{PAGES.filter((p) => !p.under).map((p) => (
					<a
						key={p.path}
						href={p.path}
						aria-current={
							p === page ? "page" : p.path === page.under ? "true" : undefined
						}
						onClick={close}
					>
						{p.title}
					</a>
				))}
				<a href="docs/" target="_blank" rel="noopener" onClick={close}>
					Docs
				</a>
			</nav>
		</div>
	);
}

function ThemeButton() {
	const theme = useTheme();
	return (
		<button
			type="button"
			class="quiet theme"
			onClick={toggleTheme}
			aria-label={theme === "dark" ? "Switch to light" : "Switch to dark"}
			title={theme === "dark" ? "Light" : "Dark"}
		>
			{theme === "dark" ? <IconSun /> : <IconMoon />}
		</button>
	);
}

/** The zone of all times; a press chooses between UTC and that of the browser. */
function ZoneButton({ utc, onToggle }: { utc: boolean; onToggle(): void }) {
	const now = Date.now() / 1000;
	const here = `the browser's time zone, ${zoneAt(now, false)}`;
	const text = zoneAt(now);
	return (
		<button
			type="button"
			class="quiet zone"
			onClick={onToggle}
			aria-label={`${text}: show times in ${utc ? here : "UTC"}`}
			title={`Times are in ${utc ? "UTC" : here}. Press for ${utc ? here : "UTC"}`}
		>
			{text}
		</button>
	);
}

/** Sets the title of the document. Gives what to call when the page is shown: it takes the focus. */
function useArrival(page: Page, query: string | null): () => void {
	const shown = useRef(page);
	useEffect(() => {
		document.title = `${query || page.title} · Epimetheus`;
	}, [page, query]);
	return () => {
		if (shown.current !== page) focusPage();
		shown.current = page;
	};
}

const LOAD_ALL_MS = 1000; // the first page asks its questions before

/** Calls loadAll() some time after the first page is shown. */
function useLoadAll(shown: boolean): void {
	useEffect(() => {
		if (!shown) return;
		const timer = setTimeout(loadAll, LOAD_ALL_MS);
		return () => clearTimeout(timer);
	}, [shown]);
}

export function App() {
	const { store, location } = useUrl();
	const [help, setHelp] = useState(false);
	const { path, params } = location;
	// Links to Explore once had no path.
	const named = path || !params.has("query") ? path : "explore";
	const page = PAGES.find((p) => p.path === named) ?? PAGES[0];
	const ready = useLanguage();
	const outage = useOutage();
	const zone = useZone(params.get("tz") === "utc");
	const toggleZone = () => {
		store.patch({ tz: null }, true);
		zone.toggle();
	};
	const chapter = chapterUrl(page.path, params);
	const arrive = useArrival(page, page.path === "explore" ? params.get("query") : null);
	const [shown, setShown] = useState(false);
	useLoadAll(shown);
	const onShown = () => {
		arrive();
		setShown(true);
	};
	usePageKeys({
		jumps: JUMPS,
		go: (path) => store.go(path, new URLSearchParams()),
		list: () => setHelp(true),
		showBoth: () => store.patch({ view: null, fn: null, src: null }, true),
		docs: () => window.open(chapter, "_blank", "noopener"),
	});

	/** Follows links to our pages without loading; with a modifier key the browser follows them. */
	const onClick = (e: MouseEvent) => {
		const a = (e.target as Element).closest("a");
		if (!a || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.defaultPrevented)
			return;
		if (a.target || a.hasAttribute("download") || a.origin !== window.location.origin) return;
		const base = new URL(document.baseURI).pathname;
		const path = a.pathname.startsWith(base) ? a.pathname.slice(base.length) : "/";
		if (!PAGES.some((p) => p.path === path)) return;
		e.preventDefault();
		store.go(path, new URLSearchParams(a.search));
	};
	return (
		<div class="app" onClick={onClick}>
			<SkipLink />
			<header>
				<a class="brand" href="services" aria-label="Epimetheus">
					<Logo />
					<span>Epimetheus</span>
				</a>
				<Navigation page={page} />
				<span class="spacer" />
				<a
					class="quiet"
					href={chapter}
					target="_blank"
					rel="noopener"
					title="Docs of this view (d)"
					aria-label="Help: docs of this view"
				>
					Help
				</a>
				<button
					type="button"
					class="quiet keys"
					title="Keys (?)"
					aria-label="Keys"
					aria-haspopup="dialog"
					onClick={() => setHelp(true)}
				>
					Keys
				</button>
				<ZoneButton utc={zone.utc} onToggle={toggleZone} />
				<ThemeButton />
			</header>
			{outage && <OutageBanner outage={outage} />}
			<DropAnywhere />
			{ready && <LazyPage key={page.path} load={page.load} onShown={onShown} />}
			{ready && params.get("alert") && <LazyPage load={DRAWER} />}
			{help && <Help jumps={JUMP_KEYS} chapter={chapter} onClose={() => setHelp(false)} />}
		</div>
	);
}
