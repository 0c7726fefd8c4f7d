// The chapter of the book that belongs to each view. The book is served below docs/.

/** By the path of a page, and by what else is a view of its own. */
export const CHAPTERS: Record<string, string> = {
	services: "start/services",
	explore: "start/flame-graph",
	compare: "guides/regression",
	alerts: "guides/alerts",
	rules: "guides/alerts",
	targets: "operate/troubleshooting",
	"service-discovery": "configure/relabelling",
	senders: "configure/senders",
	status: "operate/disk",
	"tsdb-status": "operate/disk",
	cluster: "operate/cluster",
	symbols: "guides/native",
	config: "configure/overview",
	flags: "reference/flags",
	source: "guides/source",
	files: "guides/files",
	levels: "guides/leaks",
};

const FILE = /\bfile\s*\(/;
/** Memory in use and goroutines, as selectors name them. */
const LEVEL = /\b(memory:inuse_\w+|inuse_\w+|goroutine\w*)\b/;

/** The view that the address shows: a page, or a part of Explore and Compare that has its own chapter. */
export function viewOf(path: string, params: URLSearchParams): string {
	const queries = ["query", "new", "base"].map((name) => params.get(name) ?? "");
	if (path !== "explore" && path !== "compare") return path;
	if (params.has("src")) return "source";
	if (queries.some((q) => FILE.test(q))) return "files";
	if (path === "explore" && queries.some((q) => LEVEL.test(q))) return "levels";
	return path;
}

/** Relative to the page's base. */
export const chapterUrl = (path: string, params: URLSearchParams): string =>
	`docs/${CHAPTERS[viewOf(path, params)]}.html`;
