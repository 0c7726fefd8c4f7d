// The table of pages. The first one comes with the frame; the others are in two scripts, which are
// loaded when a page in them is opened, else soon after the first page is shown.
import { Services } from "./fleet/servicespage";
import type { Load } from "./lazypage";

export interface Page {
	path: string;
	title: string;
	/** The letter that opens it, after `g`. */
	key: string;
	/** The page that the navigation marks instead. */
	under?: string;
	load: Load;
}

type Graphs = typeof import("./graphs");
type Lists = typeof import("./lists");

const graphs =
	(name: keyof Graphs): Load =>
	async () =>
		(await import("./graphs"))[name];
const lists =
	(name: keyof Lists): Load =>
	async () =>
		(await import("./lists"))[name];

/** The first one is home. */
export const PAGES: Page[] = [
	{ path: "services", title: "Services", key: "s", load: async () => Services },
	{ path: "explore", title: "Explore", key: "e", load: graphs("Explore") },
	{ path: "compare", title: "Compare", key: "c", load: graphs("Compare") },
	{ path: "alerts", title: "Alerts", key: "a", load: graphs("AlertsPage") },
	{ path: "rules", title: "Rules", key: "r", load: graphs("RulesPage") },
	{ path: "targets", title: "Targets", key: "t", load: lists("TargetsPage") },
	{
		path: "service-discovery",
		title: "Service discovery",
		key: "d",
		under: "targets",
		load: lists("DiscoveryPage"),
	},
	{ path: "senders", title: "Senders", key: "n", under: "targets", load: lists("SendersPage") },
	{ path: "status", title: "Status", key: "u", load: lists("StatusPage") },
	{ path: "tsdb-status", title: "TSDB", key: "b", under: "status", load: lists("TsdbPage") },
	{ path: "cluster", title: "Cluster", key: "l", under: "status", load: lists("ClusterPage") },
	{ path: "symbols", title: "Symbols", key: "y", under: "status", load: lists("SymbolsPage") },
	{ path: "config", title: "Configuration", key: "o", under: "status", load: lists("ConfigPage") },
	{ path: "flags", title: "Flags", key: "f", under: "status", load: lists("FlagsPage") },
];

/** Loads both scripts, so that all pages can be opened while the server is away. */
export function loadAll(): void {
	for (const script of [import("./graphs"), import("./lists")])
		script.catch(() => {}); // whoever opens a page of it is told
}

/** The drawer that makes a rule, over any page. */
export const DRAWER = graphs("AlertDrawer");
