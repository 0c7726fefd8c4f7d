// The frame of the page: header, navigation, and the page the path names.
import { useEffect } from "preact/hooks";
import { useUrl } from "./lib/hooks";
import { toggleTheme, useTheme } from "./lib/theme";
import { Compare } from "./pages/compare";
import { Explore } from "./pages/explore";
import { StatusPage } from "./pages/status";
import { TargetsPage } from "./pages/targets";
import { IconMoon, IconSun, Logo } from "./parts/icons";

const PAGES = [
	{ path: "explore", title: "Explore", view: Explore },
	{ path: "compare", title: "Compare", view: Compare },
	{ path: "targets", title: "Targets", view: TargetsPage },
	{ path: "status", title: "Status", view: StatusPage },
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
					{PAGES.map((p) => (
						<a
							key={p.path}
							href={p.path}
							aria-current={p === page ? "page" : undefined}
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
