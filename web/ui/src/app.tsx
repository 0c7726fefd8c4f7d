// The frame of the page: header, navigation, and the page the path names.
import { useEffect } from "preact/hooks";
import { useUrl } from "./lib/hooks";
import { toggleTheme, useTheme } from "./lib/theme";
import { AlertsPage } from "./pages/alerts";
import { Compare } from "./pages/compare";
import { DiscoveryPage } from "./pages/discovery";
import { Explore } from "./pages/explore";
import { RulesPage } from "./pages/rules";
import { Services } from "./pages/services";
import { ConfigPage, FlagsPage, StatusPage, TsdbPage } from "./pages/status";
import { TargetsPage } from "./pages/targets";
import { IconMoon, IconSun, Logo } from "./parts/icons";

interface Page {
	path: string;
	title: string;
	view(): preact.JSX.Element;
	/** The page it belongs to, which the navigation marks instead. */
	under?: string;
}

const PAGES: Page[] = [
	{ path: "explore", title: "Explore", view: Explore },
	{ path: "services", title: "Services", view: Services },
	{ path: "compare", title: "Compare", view: Compare },
	{ path: "alerts", title: "Alerts", view: AlertsPage },
	{ path: "rules", title: "Rules", view: RulesPage },
	{ path: "targets", title: "Targets", view: TargetsPage },
	{
		path: "service-discovery",
		title: "Service discovery",
		view: DiscoveryPage,
		under: "targets",
	},
	{ path: "status", title: "Status", view: StatusPage },
	{ path: "tsdb-status", title: "TSDB", view: TsdbPage, under: "status" },
	{ path: "config", title: "Configuration", view: ConfigPage, under: "status" },
	{ path: "flags", title: "Flags", view: FlagsPage, under: "status" },
];

export function App() {
	const { store, location } = useUrl();
	const theme = useTheme();
	const page = PAGES.find((p) => p.path === location.path) ?? PAGES[0];
	useEffect(() => {
		const query = page.path === "explore" ? location.params.get("query") : null;
		document.title = `${query ?? page.title} · Epimetheus`;
	}, [page, location]);

	/** Links inside the page move without loading it again; with a modifier they are links. */
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
			<header>
				<a class="brand" href="explore">
					<Logo />
					Epimetheus
				</a>
				<nav aria-label="Pages">
					{PAGES.filter((p) => !p.under).map((p) => (
						<a
							key={p.path}
							href={p.path}
							aria-current={p.path === (page.under ?? page.path) ? "page" : undefined}
						>
							{p.title}
						</a>
					))}
				</nav>
				<span class="spacer" />
				<button
					type="button"
					class="quiet theme"
					onClick={toggleTheme}
					aria-label={theme === "dark" ? "Switch to light" : "Switch to dark"}
					title={theme === "dark" ? "Light" : "Dark"}
				>
					{theme === "dark" ? <IconSun /> : <IconMoon />}
				</button>
			</header>
			<View key={page.path} />
		</div>
	);
}
