// The result of a query for profiles: the toolbar and the chosen view.
import { useMemo } from "preact/hooks";
import type { WidthMode } from "../flame/layout";
import { lookPatch } from "../flame/look";
import { shortName } from "../flame/names";
import { FlameView } from "../flame/view";
import { groupBy } from "../query/edit";
import { GroupBy } from "../query/groupby";
import { hasFilter } from "../query/query";
import type { TopElement } from "../shared/api";
import { optionsOf, Segmented, Select } from "../shared/fields";
import { IconX } from "../shared/icons";
import { FullButton, Narrow } from "../shared/layout";
import { QueryError } from "../shared/notices";
import { counted, nothingCounted } from "../shared/units";
import { oneOf } from "../shared/urlstate";
import { openSource } from "../source/source";
import { SourceView } from "../source/view";
import type { Bases } from "./bases";
import { ExportMenu } from "./export";
import { labelNames } from "./group";
import { GroupLegend } from "./grouplegend";
import { Outline } from "./outline";
import { DEFAULT_NODES, NODE_LIMITS } from "./results";
import { Sandwich } from "./sandwich";
import { ShareButton } from "./share";
import { type Significance, SignificanceNotes } from "../verdict/significance";
import { DiffLegend, ElementSelect, SearchBox, Summary } from "./toolbar";
import { ROW_KINDS, type RowKind, TopTable } from "./toptable";
import { selectedName, UnnamedNote } from "./unnamednote";
import type { SearchAnswer } from "./usefound";
import { VerdictPanel } from "../verdict/verdictpanel";
import {
	type ProfileProps,
	type ProfileState,
	type Top,
	useProfile,
	type View,
} from "./useprofile";

const VIEWS: [View, string, string?][] = [
	["both", "Both"],
	["flame", "Flame"],
	["table", "Table"],
	["tree", "Tree", "Calls as a tree"],
];
const WIDTHS: [WidthMode, string, string][] = [
	["both", "Base + new", "Width: cost in both windows together"],
	["new", "New", "Width: cost in the new window; vanished functions have no width"],
	["base", "Base", "Width: cost in the base window; new functions have no width"],
];

function NodesSelect({ params, patch }: Pick<ProfileProps, "params" | "patch">) {
	return (
		<Select
			name="Nodes"
			label="Node limit"
			value={params.get("nodes") ?? String(DEFAULT_NODES)}
			hint="Number of nodes that the server sends; smaller nodes are folded"
			onChange={(nodes) => patch({ nodes })}
		>
			{optionsOf(NODE_LIMITS, (n) => n.toLocaleString("en"))}
		</Select>
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

/** The rows that are loaded, and behind them those of functions that match and are not. */
function useRows(element: TopElement | undefined, found: SearchAnswer | null): TopElement | undefined {
	const matched = found?.matched;
	return useMemo(() => {
		if (!element || !matched || (element.functions ?? 0) <= element.rows.length) return element;
		const known = new Set(element.rows.map((r) => r.function));
		const more = matched.rows.filter((r) => !known.has(r.function));
		return more.length ? { ...element, rows: [...element.rows, ...more] } : element;
	}, [element, matched]);
}

/** The functions that the table has no row for: of all, or of those that match. */
function missingRows(element: TopElement, found: SearchAnswer | null, filter: RegExp | null): string {
	const { rows, functions = rows.length } = element;
	const matched = filter && found?.matched;
	const shown = matched ? rows.filter((r) => filter.test(r.function)).length : rows.length;
	const n = Math.max(0, (matched ? matched.functions : functions) - shown);
	const which = matched ? "of the search" : "with a smaller flat cost";
	return functions > rows.length && n ? `${counted(n, "more function")} ${which} not shown.` : "";
}

function TablePart(props: {
	top: Top;
	found: SearchAnswer | null;
	bases: Bases | null;
	significance: Significance | null;
	diff: boolean;
	filter: RegExp | null;
	pick: string;
	onOpen(name: string): void;
	onAlert(name: string): void;
	onSource(name: string): void;
	/** Given if a flame graph is beside it. */
	onPick?(name: string): void;
	/** In a difference: which rows, as in the address. */
	kind: string;
	onKind(kind: RowKind): void;
}) {
	const { loaded, sent } = props.top;
	const { significance, found, filter } = props;
	const element = useRows(props.top.element, found);
	const missing = element ? missingRows(element, found, filter) : "";
	return (
		<div class="split-table with-notes">
			{loaded.error ? (
				<QueryError error={loaded.error} sent={sent} />
			) : element ? (
				<TopTable
					element={element}
					diff={props.diff}
					filter={filter}
					picked={props.pick}
					onOpen={props.onOpen}
					onAlert={props.onAlert}
					onSource={props.onSource}
					onPick={props.onPick}
					changes={significance?.changes}
					bases={props.bases}
					kind={oneOf(props.kind, ROW_KINDS)}
					onKind={props.onKind}
				/>
			) : (
				<div class="empty">
					{loaded.loading ? "Loading…" : "No table for this result."}
				</div>
			)}
			{element && significance && <SignificanceNotes of={significance} />}
			{missing && <div class="table-notes faint">{missing}</div>}
		</div>
	);
}

interface Part {
	props: ProfileProps;
	of: ProfileState;
}

function Toolbar({ props, of }: Part) {
	const { query, times, answer, params, patch, elements, edit } = props;
	const { element, flame, matches, fn, idle, look, zoom } = of;
	const walks = !fn && !of.src && of.view !== "table";
	const picture = flame && !idle ? { flame, look, zoom, matches, unit: element.unit } : null;
	return (
		<div class="toolbar">
			{props.lead}
			<Segmented
				label="View"
				value={fn || of.src ? ("" as View) : of.view}
				options={VIEWS}
				onChange={(v) =>
					patch({ view: v === "both" ? null : v, fn: null, ...openSource("") })
				}
			/>
			<ElementSelect
				elements={elements}
				index={of.index}
				all={of.all}
				onChange={(el) => patch({ el, zoom: null })}
			/>
			<SearchBox
				text={of.searched.text}
				error={of.searched.error}
				found={of.found}
				steps={walks ? of.steps : undefined}
				onChange={of.onSearch}
			/>
			{of.pick && <Picked pick={of.pick} onPick={of.onPick} />}
			<Narrow name="More">
				{edit && props.grouping && (
					<GroupBy query={props.edited?.[0] ?? query} times={times} onChange={edit} />
				)}
				<span class="spacer" />
				{/* Compare has the totals above. */}
				{!props.wide && <Summary element={element} answer={answer} flame={flame} />}
				{!props.wide && <NodesSelect params={params} patch={patch} />}
				{props.fixed && <ShareButton fixed={props.fixed} />}
				<ExportMenu {...{ query, times, elements, picture }} />
			</Narrow>
			<FullButton on={isFull(params)} patch={patch} />
		</div>
	);
}

const isFull = (params: URLSearchParams): boolean => params.get("full") === "1";

function Widths({ props, of }: Part) {
	return (
		<Segmented
			label="Width"
			value={of.widthMode}
			options={WIDTHS}
			onChange={(v) => props.patch({ width: v === "both" ? null : v })}
		/>
	);
}

/** Beside the path of the zoomed function. */
function FlameTools({ props, of }: Part) {
	return (
		<>
			{of.part?.reading && (
				<span class="faint" role="status">
					Reading this part…
				</span>
			)}
			{of.diff && <DiffLegend />}
			{of.diff && !props.wide && <Widths props={props} of={of} />}
		</>
	);
}

/** What the View popup has besides, where the toolbar has no room for it. */
function FlameMore({ props, of }: Part) {
	return (
		<>
			{of.diff && <Widths props={props} of={of} />}
			<NodesSelect params={props.params} patch={props.patch} />
		</>
	);
}

/** Table, tree and flame graph, depending on the view. */
function Views({ props, of }: Part) {
	const { element, flame, matches, view, widthMode, zoom, pick, diff, onPick } = of;
	const { unit } = element;
	const full = isFull(props.params);
	// The full screen is the graph's alone.
	const table = of.tabled && !(full && view === "both") && (
		<TablePart
			top={of.top}
			found={of.found}
			bases={of.bases}
			significance={of.significance}
			diff={diff}
			filter={of.searched.pattern}
			pick={pick}
			onOpen={of.onOpen}
			onAlert={of.onAlert}
			onSource={of.onSource}
			onPick={view === "both" ? onPick : undefined}
			kind={props.params.get("rows") ?? ""}
			onKind={(rows) => props.patch({ rows: rows === "all" ? null : rows })}
		/>
	);
	return (
		<div class={`split ${view}${diff ? " is-diff" : ""}`}>
			{!props.wide && table}
			{view === "tree" && flame && (
				<Outline
					{...{ flame, unit, matches, widthMode, zoom, pick, onPick }}
					goal={of.steps.goal}
				/>
			)}
			{(view === "both" || view === "flame") && flame && (
				<FlameView
					{...{ flame, unit, matches, zoom, widthMode, onPick }}
					onZoom={of.onZoom}
					goal={of.steps.goal}
					bands={of.bands}
					reads
					look={of.look}
					onLook={(look) => props.patch(lookPatch(look))}
					actions={of.actions}
					tools={<FlameTools props={props} of={of} />}
					more={props.wide && <FlameMore props={props} of={of} />}
				/>
			)}
			{props.wide && table}
		</div>
	);
}

/** The view of the function named by `fn`. */
function Between({ props, of }: Part) {
	const { query, times, asked, params, patch, elements } = props;
	const { fn, element, all, look, widthMode, pick, onPick, onOpen } = of;
	return (
		<Sandwich
			{...{ fn, times, asked, element, look, widthMode, pick, onPick }}
			query={all ? groupBy(query, "") : query}
			labels={all ? [] : labelNames(elements)}
			nodes={params.get("nodes") ?? String(DEFAULT_NODES)}
			top={of.top.element}
			pattern={of.searched.pattern}
			actions={of.actions.filter((a) => a.run !== onOpen)}
			onMove={onOpen}
			onLine={(file, line) => of.onSource(fn, file, line)}
			onClose={() => patch({ fn: null })}
		/>
	);
}

/** The file of the function named by `src`. */
function Source({ props, of }: Part) {
	const { query, times, asked, params, patch, elements } = props;
	const { src: fn, element, all } = of;
	return (
		<SourceView
			{...{ fn, times, asked, element, params, patch }}
			query={all ? groupBy(query, "") : query}
			labels={all ? [] : labelNames(elements)}
			onFunction={(name) => patch({ fn: name, ...openSource("") })}
		/>
	);
}

/** The reason why there is nothing to draw. */
function whyIdle(query: string, { element, double }: ProfileState): string {
	if (hasFilter(query)) return "No samples match the filters of the query.";
	if (double && /^\s*diff_normalized\b/.test(query) && !element.left_total)
		return "No data in the base window to scale to. Compare absolute costs.";
	return nothingCounted(element.type ?? "", element.unit, element.profiles);
}

/** `graph`: toolbar and graph share one line where there is room. */
function sectionClass(props: ProfileProps, of: ProfileState): string {
	const graph = !of.idle && !of.src && !of.fn && (of.view === "both" || of.view === "flame");
	const words = [props.loading && "busy", props.wide && "wide", graph && "graph", isFull(props.params) && "full"];
	return ["panel results", ...words].filter(Boolean).join(" ");
}

export function ProfileResult(props: ProfileProps) {
	const of = useProfile(props);
	const { idle, broken } = of;
	const result = (
		<section class={sectionClass(props, of)}>
			<Toolbar props={props} of={of} />
			<GroupLegend
				groups={of.groups}
				shown={of.all ? -1 : of.index}
				onChange={(el) => props.patch({ el, zoom: null })}
			/>
			{broken && <div class="notice error">{broken}</div>}
			{of.part?.error && <QueryError error={of.part.error} sent={props.query} />}
			{of.part?.changed && (
				<div class="notice" role="status">
					The profiles have changed since this graph was read: the zoomed part is incomplete. Run the query again.
				</div>
			)}
			<UnnamedNote
				name={selectedName(of)}
				infos={props.answer.infos}
				since={Number(props.times.start)}
			/>
			{idle ? (
				<div class="empty">{whyIdle(props.query, of)}</div>
			) : of.src ? (
				<Source props={props} of={of} />
			) : of.fn ? (
				<Between props={props} of={of} />
			) : (
				<Views props={props} of={of} />
			)}
		</section>
	);
	// Compare shows the verdict above its charts.
	if (!of.double || props.significance !== undefined) return result;
	return (
		<>
			<VerdictPanel
				element={of.element}
				significance={of.significance}
				seconds={0}
				infos={props.answer.infos}
				onOpen={of.onOpen}
				onAlert={of.onAlert}
			/>
			{result}
		</>
	);
}
