// The frame: header, navigation, and the table of pages. The path chooses the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { AlertDrawer } from "./alert/drawer";
import { ClusterPage } from "./cluster/clusterpage";
import { Compare } from "./compare/comparepage";
import { Explore } from "./explore/explorepage";
import { DiscoveryPage } from "./fleet/discoverypage";
import { SendersPage } from "./fleet/senderspage";
import { Services } from "./fleet/servicespage";
import { TargetsPage } from "./fleet/targetspage";
import { chapterUrl } from "./docs";
import { Help, usePageKeys } from "./help";
import { useLanguage } from "./query/questions";
import { AlertsPage } from "./rules/alertspage";
import { RulesPage } from "./rules/rulespage";
import { useOutside, useUrl } from "./shared/hooks";
import { IconMenu, IconMoon, IconSun, Logo } from "./shared/icons";
import { OutageBanner, useOutage } from "./shared/outagebanner";
import { toggleTheme, useTheme, useZone } from "./shared/theme";
import { zoneAt } from "./shared/timerange";
import { ConfigPage, FlagsPage, StatusPage } from "./status/statuspage";
import { TsdbPage } from "./status/tsdbpage";
import { SymbolsPage } from "./symbols/symbolspage";
import "./app.css";

interface Page {
	path: string;
	title: string;
	view(): preact.JSX.Element;
	/** The letter that opens it, after `g`. */
	key: string;
	/** The page that the navigation marks instead. */
	under?: string;
}

/** The first one is home. */
const PAGES: Page[] = [
	{ path: "services", title: "Services", view: Services, key: "s" },
	{ path: "explore", title: "Explore", view: Explore, key: "e" },
	{ path: "compare", title: "Compare", view: Compare, key: "c" },
	{ path: "alerts", title: "Alerts", view: AlertsPage, key: "a" },
	{ path: "rules", title: "Rules", view: RulesPage, key: "r" },
	{ path: "targets", title: "Targets", view: TargetsPage, key: "t" },
	{
		path: "service-discovery",
		title: "Service discovery",
		view: DiscoveryPage,
		key: "d",
		under: "targets",
	},
	{ path: "senders", title: "Senders", view: SendersPage, key: "n", under: "targets" },
	{ path: "status", title: "Status", view: StatusPage, key: "u" },
	{ path: "tsdb-status", title: "TSDB", view: TsdbPage, key: "b", under: "status" },
	{ path: "cluster", title: "Cluster", view: ClusterPage, key: "l", under: "status" },
	{ path: "symbols", title: "Symbols", view: SymbolsPage, key: "y", under: "status" },
	{ path: "config", title: "Configuration", view: ConfigPage, key: "o", under: "status" },
	{ path: "flags", title: "Flags", view: FlagsPage, key: "f", under: "status" },
];

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

/** Sets the title of the document, and the focus when the page changes. */
function useArrival(page: Page, query: string | null): void {
	const shown = useRef(page);
	useEffect(() => {
		document.title = `${query || page.title} · Epimetheus`;
	}, [page, query]);
	useEffect(() => {
		if (shown.current !== page) focusPage();
		shown.current = page;
	}, [page]);
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
	useArrival(page, page.path === "explore" ? params.get("query") : null);
	usePageKeys({
		jumps: JUMPS,
		go: (path) => store.go(path, new URLSearchParams()),
		list: () => setHelp(true),
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
	const View = page.view;
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
					title="Docs of this view (?)"
					aria-label="Docs of this view"
				>
					?
				</a>
				<button
					type="button"
					class="quiet keys"
					title="Keys (k)"
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
			{ready && <View key={page.path} />}
			{ready && params.get("alert") && <AlertDrawer />}
			{help && <Help jumps={JUMP_KEYS} onClose={() => setHelp(false)} />}
		</div>
	);
}
