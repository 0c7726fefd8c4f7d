// Profiles as a query gave them: which of them, under which view, with the toolbar above.
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { sameLabels, type ProfileElement, type QueryData, type TopElement } from "../lib/api";
import { publish } from "../lib/debug";
import { alertThreshold, groupBy } from "../lib/edit";
import { elementName, labelNames, together } from "../lib/group";
import { useApi, useUrl, type Loaded } from "../lib/hooks";
import { hasFilter, tableQuery, withMatcher } from "../lib/query";
import { nothingCounted, share } from "../lib/units";
import { shortName } from "../flame/color";
import { buildFlame, setWidthMode, type Flame, type WidthMode } from "../flame/layout";
import { lookFromParams, lookPatch } from "../flame/look";
import type { FlameAction } from "../flame/menu";
import { search, searchName, type Matches } from "../flame/search";
import { FlameView } from "../flame/view";
import { ExportMenu } from "./export";
import { alertParams, isFolded, queryActions, type Edit } from "./filters";
import { GroupBy } from "./groupby";
import { IconX } from "./icons";
import { Outline } from "./outline";
import { QueryError } from "./querybar";
import { DEFAULT_NODES, NODE_LIMITS, type ResultsProps } from "./results";
import { Sandwich } from "./sandwich";
import { ShareButton } from "./share";
import { SignificanceNotes, useSignificance, type Significance } from "./significance";
import { DiffLegend, ElementSelect, SearchBox, Segmented, Summary, useSearch } from "./toolbar";
import { TopTable } from "./toptable";

type View = "both" | "flame" | "table" | "tree";
const VIEWS: [View, string, string?][] = [
	["both", "Both"],
	["flame", "Flame"],
	["table", "Table"],
	["tree", "Tree", "The calls as a tree of rows"],
];
const WIDTHS: [WidthMode, string, string][] = [
	["both", "Base + new", "A node is as wide as its cost in both windows together"],
	["new", "New", "A node is as wide as its cost in the new window; what vanished has no width"],
	["base", "Base", "A node is as wide as its cost in the base window; what is new has no width"],
];
export const TABLE_ROWS = 5000;

export interface ProfileProps extends ResultsProps {
	elements: ProfileElement[];
}

/** The element that is looked at: one of the answer's, or all of them together. */
function useElement({ elements, params }: ProfileProps) {
	const all = params.get("el") === "all" && elements.length > 1;
	const index = Math.min(elements.length - 1, Math.max(0, Number(params.get("el") ?? 0) || 0));
	const element = useMemo(
		() => (all ? together(elements) : elements[index]),
		[elements, index, all],
	);
	return { element, index, all };
}

function useFlame(element: ProfileElement, widthMode: WidthMode): [Flame | null, string] {
	const [flame, broken] = useMemo((): [Flame | null, string] => {
		try {
			return [buildFlame(element.flamebearer), ""];
		} catch (e) {
			return [null, (e as Error).message];
		}
	}, [element]);
	// The widths change in place, so everything that reads them depends on the mode.
	useMemo(() => flame && setWidthMode(flame, widthMode), [flame, widthMode]);
	return [flame, broken];
}

function useMatches(
	flame: Flame | null,
	pattern: RegExp | null,
	pick: string,
	widthMode: WidthMode,
): Matches | null {
	const matches = useMemo(() => {
		if (!flame) return null;
		if (pick) return searchName(flame, pick);
		return pattern ? search(flame, pattern) : null;
	}, [flame, pattern, pick, widthMode]);
	useEffect(() => {
		publish(
			"search",
			() =>
				matches &&
				flame && {
					total: matches.total,
					whole: flame.width,
					share: share(matches.total, flame.width),
				},
		);
		return () => publish("search", null);
	}, [matches, flame]);
	return matches;
}

export interface Top {
	loaded: Loaded<QueryData>;
	/** What was asked. */
	sent: string;
	element?: TopElement;
}

/** The table of the element; of all together that of their sum. */
function useTop(props: ProfileProps, element: ProfileElement, all: boolean, wanted: boolean): Top {
	const sent = tableQuery(all ? groupBy(props.query, "") : props.query, TABLE_ROWS);
	const key = wanted ? JSON.stringify([props.asked, sent]) : null;
	const loaded = useApi<QueryData>(key, "query", { query: sent, ...props.times });
	const tables: TopElement[] =
		loaded.answer?.data.resultType === "top" ? loaded.answer.data.result : [];
	const own = tables.find((t) => sameLabels(t.metric, element.metric));
	return { loaded, sent, element: own ?? (tables.length === 1 ? tables[0] : undefined) };
}

/** What a right click on a function offers beside the view's own. */
function useActions(
	props: ProfileProps,
	all: boolean,
	shareOf: (name: string) => number,
	onOpen: (name: string) => void,
) {
	const { edit, query, times, elements } = props;
	const { store } = useUrl();
	const labels = useMemo(() => labelNames(elements), [elements]);
	return useMemo((): FlameAction[] => {
		// Of several together the first level are labels' values.
		const isFunction = (_: string, stack: string[]) => !all || stack.length !== 1;
		const when = (name: string, stack: string[]) =>
			!isFolded(name) && stack.length > 0 && isFunction(name, stack);
		const sandwich: FlameAction = {
			label: "Callers and callees (sandwich)",
			hint: "What calls it and what it calls, with their costs",
			when,
			run: onOpen,
		};
		const alert: FlameAction = {
			label: "Alert when it costs more",
			hint: "Opens an expression that fires while its share is above a limit",
			when,
			run: (name) => {
				const over = alertThreshold(shareOf(name));
				store.go("explore", alertParams(query, name, over, times.end ?? times.time));
			},
		};
		const own: FlameAction[] = edit
			? [...queryActions(edit, when), ...(all ? onlyValue(edit, labels) : [])]
			: [];
		return [sandwich, ...own, alert];
	}, [edit, query, times.end, times.time, all, labels, shareOf, onOpen]);
}

/** What a label's value offers, where the first level of the graph are such values. */
function onlyValue(edit: Edit, labels: string[]): FlameAction[] {
	const [label, ...more] = labels;
	if (more.length) return [];
	return [
		{
			label: `Only this ${label}`,
			hint: "Selects the series or samples with this value",
			when: (_, stack) => stack.length === 1,
			run: (name) => {
				const value = name === elementName({}, labels) ? "" : name;
				edit((q) => groupBy(withMatcher(q, label, value), ""));
			},
		},
	];
}

function NodesSelect({ params, patch }: Pick<ProfileProps, "params" | "patch">) {
	return (
		<label class="select" title="How many nodes the server sends; smaller ones are folded">
			<span class="faint">Nodes</span>
			<select
				value={params.get("nodes") ?? String(DEFAULT_NODES)}
				aria-label="Node limit"
				onChange={(e) => patch({ nodes: (e.target as HTMLSelectElement).value })}
			>
				{NODE_LIMITS.map((n) => (
					<option key={n} value={n}>
						{n.toLocaleString("en")}
					</option>
				))}
			</select>
		</label>
	);
}

function Picked({ pick, onPick }: { pick: string; onPick(name: string): void }) {
	return (
		<button
			type="button"
			class="picked"
			title={`${pick}: highlighted, press to end`}
			onClick={() => onPick(pick)}
		>
			<span class="ellipsis">{shortName(pick)}</span>
			<IconX />
		</button>
	);
}

function TablePart(props: {
	top: Top;
	significance: Significance | null;
	diff: boolean;
	filter: RegExp | null;
	pick: string;
	onOpen(name: string): void;
	/** Where a flame graph stands beside it. */
	onPick?(name: string): void;
}) {
	const { loaded, sent, element } = props.top;
	const { significance } = props;
	const hidden = (element?.functions ?? 0) - TABLE_ROWS;
	return (
		<div class="split-table with-notes">
			{loaded.error ? (
				<QueryError error={loaded.error} sent={sent} />
			) : element ? (
				<TopTable
					element={element}
					diff={props.diff}
					filter={props.filter}
					picked={props.pick}
					onOpen={props.onOpen}
					onPick={props.onPick}
					changes={significance?.changes}
				/>
			) : (
				<div class="empty">
					{loaded.loading ? "Loading…" : "No table for this result."}
				</div>
			)}
			{element && significance && <SignificanceNotes of={significance} />}
			{hidden > 0 && (
				<div class="table-notes faint">
					{hidden.toLocaleString("en")} more functions with a smaller flat cost are not
					shown.
				</div>
			)}
		</div>
	);
}

/** Share 0..1 of a function and what it calls: of all, or of the new side of a difference. */
function shareIn(flame: Flame | null, top: TopElement | undefined, name: string): number {
	if (!flame) return 0;
	const row = flame.diff ? undefined : top?.rows.find((r) => r.function === name);
	if (row) return row.cum_percent / 100;
	const seen = searchName(flame, name).byName;
	const { total } = flame.diff?.next ?? flame;
	const under = new Uint8Array(flame.count);
	let sum = 0;
	for (let i = 1; i < flame.count; i++) {
		const above = under[flame.parent[i]];
		under[i] = above || seen[flame.name[i]] ? 1 : 0;
		if (under[i] && !above) sum += total[i];
	}
	return share(sum, flame.diff ? flame.diff.nextTotal : flame.width) / 100;
}

export function ProfileResult(props: ProfileProps) {
	const { query, times, answer, loading, params, patch, elements } = props;
	const { element, index, all } = useElement(props);
	const view = (params.get("view") ?? "both") as View;
	const widthMode = (params.get("width") ?? "both") as WidthMode;
	const { text, pattern, error } = useSearch(params.get("search") ?? "");
	const pick = params.get("pick") ?? "";
	const [flame, broken] = useFlame(element, widthMode);
	const matches = useMatches(flame, pattern, pick, widthMode);
	const diff = element.flamebearer.format === "double";
	const idle = element.total === 0 && element.flamebearer.levels.length < 2;
	const fn = params.get("fn") ?? "";
	const tabled = view === "both" || view === "table";
	const top = useTop(props, element, all, tabled || fn !== "");
	const significance = useSignificance(props, element, tabled && !fn);
	const shareOf = useCallback(
		(name: string) => shareIn(flame, top.element, name),
		[flame, top.element],
	);
	const onOpen = useCallback((name: string) => patch({ fn: name }), [patch]);
	const actions = useActions(props, all, shareOf, onOpen);

	const onZoom = useCallback((zoom: string) => patch({ zoom }), [patch]);
	const onSearch = useCallback((s: string) => patch({ search: s, pick: null }, true), [patch]);
	const onPick = useCallback(
		(name: string) => patch({ pick: name === pick ? null : name }, true),
		[patch, pick],
	);
	const look = lookFromParams(params);
	const zoom = params.get("zoom") ?? "";
	const picture = flame && !idle ? { flame, look, zoom, matches, unit: element.unit } : null;
	const widths = diff && (
		<>
			<DiffLegend />
			<Segmented
				label="Width"
				value={widthMode}
				options={WIDTHS}
				onChange={(v) => patch({ width: v === "both" ? null : v })}
			/>
		</>
	);

	return (
		<section class={loading ? "panel results busy" : "panel results"}>
			<div class="toolbar">
				<Segmented
					label="View"
					value={fn ? ("" as View) : view}
					options={VIEWS}
					onChange={(v) => patch({ view: v === "both" ? null : v, fn: null })}
				/>
				<ElementSelect
					elements={elements}
					index={index}
					all={all}
					onChange={(el) => patch({ el, zoom: null })}
				/>
				{props.edit && <GroupBy query={props.edited?.[0] ?? query} edit={props.edit} />}
				<SearchBox
					text={text}
					error={error}
					matches={matches}
					flame={flame}
					onChange={onSearch}
				/>
				{pick && <Picked pick={pick} onPick={onPick} />}
				<span class="spacer" />
				<Summary element={element} answer={answer} flame={flame} />
				<NodesSelect params={params} patch={patch} />
				{props.fixed && <ShareButton fixed={props.fixed} />}
				<ExportMenu query={query} times={times} picture={picture} />
			</div>
			{broken && <div class="notice error">{broken}</div>}
			{idle && (
				<div class="empty">
					{hasFilter(query)
						? "The filters of this query leave nothing of its profiles."
						: nothingCounted(element.type ?? "", element.unit, element.profiles)}
				</div>
			)}
			{!idle && fn && (
				<Sandwich
					fn={fn}
					query={all ? groupBy(query, "") : query}
					times={times}
					asked={props.asked}
					nodes={params.get("nodes") ?? String(DEFAULT_NODES)}
					element={element}
					top={top.element}
					look={look}
					widthMode={widthMode}
					pattern={pattern}
					pick={pick}
					actions={actions.filter((a) => a.run !== onOpen)}
					onPick={onPick}
					onMove={onOpen}
					onClose={() => patch({ fn: null })}
				/>
			)}
			{!idle && !fn && (
				<div class={`split ${view}${diff ? " is-diff" : ""}`}>
					{tabled && (
						<TablePart
							top={top}
							significance={significance}
							diff={diff}
							filter={pattern}
							pick={pick}
							onOpen={onOpen}
							onPick={view === "both" ? onPick : undefined}
						/>
					)}
					{view === "tree" && flame && (
						<Outline
							flame={flame}
							unit={element.unit}
							matches={matches}
							widthMode={widthMode}
							zoom={params.get("zoom") ?? ""}
							pick={pick}
							onPick={onPick}
						/>
					)}
					{(view === "both" || view === "flame") && flame && (
						<FlameView
							flame={flame}
							unit={element.unit}
							matches={matches}
							zoom={zoom}
							widthMode={widthMode}
							onZoom={onZoom}
							onPick={onPick}
							look={look}
							onLook={(look) => patch(lookPatch(look))}
							actions={actions}
							tools={widths}
						/>
					)}
				</div>
			)}
		</section>
	);
}
