// The filters of a query as chips above its results, and the menu entries that add one. Both edit the
// query, so that the view is always a query that can be shared.
import { FOLDED } from "../flame/layout";
import type { FlameAction } from "../flame/menu";
import { shortName } from "../flame/names";
import {
	type ActiveFilter,
	activeFilters,
	type Filter,
	removeFilter,
	wrapFilter,
} from "../query/edit";
import { IconX } from "../shared/icons";
import type { Patch } from "../shared/urlstate";
import "./filters.css";

/** Changes the query of the page (in Compare both), and other parameters of the address. */
export type QueryEdit = (change: (query: string) => string, also?: Patch) => void;

/** The meaning of each filter, for the tooltip of its chip. */
const MEANING: Record<string, string> = {
	focus: "Only stacks with a match",
	ignore: "No stacks with a match",
	hide: "Frames hidden",
	show: "Only these frames",
	show_from: "Stacks from here, callers removed",
	prune_from: "Stacks up to here, callees removed",
	callers: "Stacks down to here",
	callees: "Stacks from here",
	tagfocus: "Only samples with a matching label",
	tagignore: "No samples with a matching label",
};

function FilterChip({ f, onRemove }: { f: ActiveFilter; onRemove(): void }) {
	const what = f.name ?? f.pattern;
	return (
		<span class="filter" title={`${MEANING[f.filter] ?? f.filter}: ${what}`}>
			<b>{f.filter}</b>
			<span class="ellipsis">{f.name ? shortName(f.name) : f.pattern}</span>
			<button
				type="button"
				class="quiet"
				aria-label={`Remove the filter ${f.filter} ${what}`}
				onClick={onRemove}
			>
				<IconX />
			</button>
		</span>
	);
}

/** The filters of the queries, each with a button to remove it. */
export function FilterChips({ queries, edit }: { queries: string[]; edit: QueryEdit }) {
	const filters = activeFilters(queries);
	if (!filters.length) return null;
	return (
		<div class="filters" role="group" aria-label="Filters of the query">
			<span class="faint">Filters</span>
			{filters.map((f) => (
				<FilterChip
					key={`${f.filter} ${f.pattern}`}
					f={f}
					onRemove={() => edit((q) => removeFilter(q, f))}
				/>
			))}
			{filters.length > 1 && (
				<button
					type="button"
					class="quiet small"
					onClick={() => edit((q) => filters.reduce(removeFilter, q))}
				>
					Remove all
				</button>
			)}
		</div>
	);
}

const FILTER_ACTIONS: [Filter, string, string][] = [
	["focus", "Focus on stacks through here", "Keeps the stacks with this function"],
	["ignore", "Hide stacks through here (ignore)", "Removes the stacks with this function"],
	["hide", "Hide the function", "Removes the frames; callees move up to the callers"],
	["show_from", "Start stacks here (show_from)", "Removes the callers above the function"],
];

/** The menu entries of a function that edit the query; `isFunction` excludes other nodes. */
export function queryActions(
	edit: QueryEdit,
	isFunction: (name: string, stack: string[]) => boolean = () => true,
): FlameAction[] {
	return FILTER_ACTIONS.map(([filter, label, hint]) => ({
		label,
		hint,
		when: (name, stack) => name !== FOLDED && isFunction(name, stack),
		run: (name) => edit((q) => wrapFilter(q, filter, name)),
	}));
}

export const isFolded = (name: string): boolean => name === FOLDED;
