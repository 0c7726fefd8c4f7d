// The questions of the heatmap: which rows cost most, the cost of each of their profiles, and how many
// profiles there are. A click turns a row into matchers, so that what opens is that row alone.
import { pickValues } from "../query/labels";
import { filterKind } from "../query/language";
import { clean, flameQuery, levelQuery, profilesOf, withMatcher, withRate } from "../query/query";
import { callArgument, queryChildren, type QueryNode, readQuery, type SelectorNode } from "../query/read";
import { formatSelector } from "../query/text";
import { type QueryKind, profileSelectors } from "../query/types";
import { type Labels, type Target, tellingLabels } from "../shared/api";
import { commonInterval, formatDuration, parseDuration } from "../shared/timerange";

/** So many rows are drawn. */
export const HEAT_ROWS_MAX = 50;
/** So many are asked for, to say what the others cost. */
export const ROWS_ASKED = 500;

export interface Asked {
	query: string;
	kind: QueryKind;
	/** The label of the rows; "" for one row per series. */
	by: string;
}

/** The profiles of each row: a selector is not merged, what the query groups stays as it is. */
function profilesBy({ query, kind, by }: Asked): string {
	const profiles = profilesOf(clean(query), kind);
	const inner = callArgument(profiles, "merge") ?? profiles;
	return by ? `merge by (${by}) (${inner})` : inner;
}

/** The rows that cost most in the whole window. */
export const rowsQuery = (a: Asked): string => `topk(${ROWS_ASKED}, total(${profilesBy(a)}))`;

/**
 * The cells: of amounts the cost per second, of levels the largest profile of each column. A query
 * with windows of its own says itself what is taken.
 */
export function cellsQuery(a: Asked, delta: boolean | null, step: number): string {
	const cost = `total(${profilesBy(a)})`;
	if (delta === null) return cost;
	return delta ? withRate(cost, step) : (levelQuery(cost, "max", step) ?? cost);
}

/** The selector of a query that only filters its profiles; null if there is more to it. */
function onlySelector(n: QueryNode): SelectorNode | null {
	if (n.type === "selector") return n.range === null && !n.offset && !n.at ? n : null;
	if (n.type === "paren") return onlySelector(n.inner);
	const passes = n.type === "call" && (n.name === "merge" || filterKind(n.name) !== null);
	return passes ? onlySelector(queryChildren(n)[0]) : null;
}

/** How many profiles each cell has; "" where a query does more than select and filter. */
export function countsQuery(a: Asked, step: number): string {
	const { tree } = readQuery(profilesBy(a));
	const one = tree && profileSelectors(tree).length === 1 ? onlySelector(tree) : null;
	if (!one) return "";
	const counts = `count_over_time(${formatSelector(one)}[${formatDuration(step)}])`;
	return a.by ? `sum by (${a.by}) (${counts})` : counts;
}

/** The query for some of all rows: each label that tells rows apart may only have their values. */
export function onlyRows(query: string, rows: Labels[], all: Labels[]): string {
	if (rows.length === all.length) return query;
	return tellingLabels(all).reduce((q, label) => {
		const values = (of: Labels[]) => [...new Set(of.map((m) => m[label] ?? ""))].sort();
		const kept = values(rows);
		return kept.length < values(all).length ? pickValues(q, label, kept) : q;
	}, query);
}

/** The query for one row: its labels as matchers, and "" for those that only other rows have. */
export function rowQuery(query: string, row: Labels, all: Labels[]): string {
	const labels = new Set([...Object.keys(row), ...tellingLabels(all)]);
	return [...labels]
		.filter((l) => l !== "__name__")
		.reduce((q, l) => withMatcher(q, l, row[l] ?? ""), query);
}

/** The query of the flame graph that opens; what it takes is one row. */
export const openedQuery = (a: Asked, row: Labels, all: Labels[]): string =>
	rowQuery(profilesOf(a.query, a.kind), row, all);

/**
 * How often the targets of a query are scraped, in seconds; null if no target fits, as where profiles
 * are pushed. `profile` is the name of the type, "" if unknown.
 */
export function targetsInterval(targets: Target[], profile: string, query: string): number | null {
	const matchers = readQuery(flameQuery(query)).selectors[0]?.matchers ?? [];
	const fits = targets.filter(
		(t) =>
			(!profile || t.profile === profile) &&
			matchers.every((m) => m.op !== "=" || (t.labels[m.label] ?? m.value) === m.value),
	);
	const known = fits.map((t) => parseDuration(t.scrapeInterval ?? "") ?? 0).filter((s) => s > 0);
	return known.length ? commonInterval(known) : null;
}
