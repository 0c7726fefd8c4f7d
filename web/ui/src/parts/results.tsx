// What a query gave: the toolbar, and below it flame graph, table, costs or a number.
import { useCallback, useEffect, useMemo } from "preact/hooks";
import {
	sameLabels,
	type Answer,
	type ProfileElement,
	type QueryData,
	type TopElement,
} from "../lib/api";
import { publish } from "../lib/debug";
import { useApi } from "../lib/hooks";
import { hasFilter, tableQuery } from "../lib/query";
import type { Times } from "../lib/questions";
import { formatValue, nothingCounted, share } from "../lib/units";
import { shortName } from "../flame/color";
import { buildFlame, setWidthMode, type Flame, type WidthMode } from "../flame/layout";
import { lookFromParams, lookPatch } from "../flame/look";
import { search, searchName } from "../flame/search";
import { FlameView } from "../flame/view";
import { IconX } from "./icons";
import { QueryError } from "./querybar";
import { ExportMenu } from "./export";
import {
	DiffLegend,
	ElementSelect,
	SearchBox,
	Segmented,
	Summary,
	useSearch,
} from "./toolbar";
import { CostTable, TopTable } from "./toptable";

export interface ResultsProps {
	/** The query as asked, and when; what the table and the downloads ask again. */
	query: string;
	times: Times;
	/** What the query names though no such type is stored, "" for none. */
	unknownType?: string;
	/** Costs take no more room than their rows: there is more below. */
	compact?: boolean;
	/** Changes with every new question. */
	asked: string;
	answer: Answer<QueryData>;
	loading: boolean;
	params: URLSearchParams;
	patch(p: Record<string, string | null>, replace?: boolean): void;
}

export const NODE_LIMITS = [512, 2048, 8192, 32768, 100000];
export const DEFAULT_NODES = 2048;
const TABLE_ROWS = 500;
const COMPACT_ROWS = 8;

type View = "both" | "flame" | "table";
const VIEWS: [View, string][] = [
	["both", "Both"],
	["flame", "Flame"],
	["table", "Table"],
];
const WIDTHS: [WidthMode, string, string][] = [
	["both", "Base + new", "A node is as wide as its cost in both windows together"],
	["new", "New", "A node is as wide as its cost in the new window; what vanished has no width"],
	["base", "Base", "A node is as wide as its cost in the base window; what is new has no width"],
];

function ProfileResult(props: ResultsProps & { elements: ProfileElement[] }) {
	const { query, times, asked, answer, loading, params, patch, elements } = props;
	const index = Math.min(elements.length - 1, Math.max(0, Number(params.get("el") ?? 0) || 0));
	const element = elements[index];
	const view = (params.get("view") ?? "both") as View;
	const widthMode = (params.get("width") ?? "both") as WidthMode;
	const { text, pattern, error } = useSearch(params.get("search") ?? "");
	const [flame, broken] = useMemo((): [Flame | null, string] => {
		try {
			return [buildFlame(element.flamebearer), ""];
		} catch (e) {
			return [null, (e as Error).message];
		}
	}, [element]);
	const diff = element.flamebearer.format === "double";
	const idle = element.total === 0 && element.flamebearer.levels.length < 2;
	// The widths change in place, so everything that reads them depends on the mode.
	useMemo(() => flame && setWidthMode(flame, widthMode), [flame, widthMode]);
	const pick = params.get("pick") ?? "";
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

	const top = useApi<QueryData>(view === "flame" ? null : asked, "query", {
		query: tableQuery(query, TABLE_ROWS),
		...times,
	});
	const topElements: TopElement[] =
		top.answer?.data.resultType === "top" ? top.answer.data.result : [];
	const topElement =
		topElements.find((t) => sameLabels(t.metric, element.metric)) ??
		(topElements.length === 1 ? topElements[0] : undefined);

	const onZoom = useCallback((zoom: string) => patch({ zoom }), [patch]);
	const onSearch = useCallback((s: string) => patch({ search: s, pick: null }, true), [patch]);
	const onPick = useCallback(
		(name: string) => patch({ pick: name === pick ? null : name }, true),
		[patch, pick],
	);

	return (
		<section class={loading ? "panel results busy" : "panel results"}>
			<div class="toolbar">
				<Segmented
					label="View"
					value={view}
					options={VIEWS}
					onChange={(v) => patch({ view: v === "both" ? null : v })}
				/>
				<ElementSelect
					elements={elements}
					index={index}
					onChange={(i) => patch({ el: i ? String(i) : null, zoom: null })}
				/>
				<SearchBox
					text={text}
					error={error}
					matches={matches}
					flame={flame}
					onChange={onSearch}
				/>
				{pick && (
					<button
						type="button"
						class="picked"
						title={`${pick}: highlighted, press to end`}
						onClick={() => onPick(pick)}
					>
						<span class="ellipsis">{shortName(pick)}</span>
						<IconX />
					</button>
				)}
				<span class="spacer" />
				<Summary element={element} answer={answer} flame={flame} />
				<label
					class="select"
					title="How many nodes the server sends; smaller ones are folded"
				>
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
				<ExportMenu query={query} times={times} />
			</div>
			{broken && <div class="notice error">{broken}</div>}
			{idle && (
				<div class="empty">
					{hasFilter(query)
						? "The filters of this query leave nothing of its profiles."
						: nothingCounted(element.type ?? "", element.unit, element.profiles)}
				</div>
			)}
			{!idle && (
				<div class={`split ${view}${diff ? " is-diff" : ""}`}>
					{view !== "flame" && (
						<div class="split-table">
							{top.error ? (
								<QueryError error={top.error} sent={tableQuery(query, TABLE_ROWS)} />
							) : topElement ? (
								<TopTable
									element={topElement}
									diff={diff}
									filter={pattern}
									picked={pick}
									onPick={onPick}
								/>
							) : (
								<div class="empty">
									{top.loading ? "Loading…" : "No table for this result."}
								</div>
							)}
						</div>
					)}
					{view !== "table" && flame && (
						<FlameView
							flame={flame}
							unit={element.unit}
							matches={matches}
							zoom={params.get("zoom") ?? ""}
							widthMode={widthMode}
							onZoom={onZoom}
							onPick={onPick}
							look={lookFromParams(params)}
							onLook={(look) => patch(lookPatch(look))}
							tools={
								diff && (
									<>
										<DiffLegend />
										<Segmented
											label="Width"
											value={widthMode}
											options={WIDTHS}
											onChange={(v) =>
												patch({ width: v === "both" ? null : v })
											}
										/>
									</>
								)
							}
						/>
					)}
				</div>
			)}
		</section>
	);
}

function TopResult({ elements, params, patch }: ResultsProps & { elements: TopElement[] }) {
	const index = Math.min(elements.length - 1, Math.max(0, Number(params.get("el") ?? 0) || 0));
	const { text, pattern, error } = useSearch(params.get("search") ?? "");
	const element = elements[index];
	const diff = element.rows.some((r) => r.flat < 0 || r.cum < 0);
	return (
		<section class="panel results">
			<div class="toolbar">
				<ElementSelect
					elements={elements}
					index={index}
					onChange={(i) => patch({ el: String(i) })}
				/>
				<SearchBox text={text} error={error} onChange={(s) => patch({ search: s }, true)} />
				<span class="spacer" />
				<span class="faint">total {formatValue(element.total, element.unit)}</span>
			</div>
			<div class={`split table${diff ? " is-diff" : ""}`}>
				<div class="split-table">
					<TopTable element={element} diff={diff} filter={pattern} />
				</div>
			</div>
		</section>
	);
}

function CostResult({
	props,
	rows,
	children,
}: {
	props: ResultsProps;
	rows: number;
	children: (p: RegExp | null) => preact.JSX.Element;
}) {
	const { text, pattern, error } = useSearch(props.params.get("search") ?? "");
	const height = `${Math.min(rows, COMPACT_ROWS) * 25 + 96}px`;
	return (
		<section
			class={`panel results${props.loading ? " busy" : ""}${props.compact ? " compact" : ""}`}
			style={props.compact ? { height } : undefined}
		>
			<div class="toolbar">
				<SearchBox
					text={text}
					error={error}
					placeholder="Filter (regexp)"
					onChange={(s) => props.patch({ search: s }, true)}
				/>
				<span class="spacer" />
				<span class="faint">took {Math.round(props.answer.tookMs)} ms</span>
			</div>
			<div class="split table">
				<div class="split-table">{children(pattern)}</div>
			</div>
		</section>
	);
}

export function Results(props: ResultsProps) {
	const { data } = props.answer;
	const nothing = (
		<section class="panel">
			<div class="empty">
				{props.unknownType
					? `No profiles here, and no stored type is called ${props.unknownType}.`
					: "No profiles here. Widen the time range, or loosen the label matchers."}
			</div>
		</section>
	);
	switch (data.resultType) {
		case "profiles":
			return data.result.length ? (
				<ProfileResult {...props} elements={data.result} />
			) : (
				nothing
			);
		case "top":
			return data.result.length ? <TopResult {...props} elements={data.result} /> : nothing;
		case "vector":
			return data.result.length === 0 ? (
				props.compact ? (
					<section class="panel">
						<div class="empty">The expression gives nothing at this time.</div>
					</section>
				) : (
					nothing
				)
			) : (
				<CostResult props={props} rows={data.result.length}>
					{(p) => <CostTable vector={data.result} unit={data.unit ?? ""} filter={p} />}
				</CostResult>
			);
		case "matrix":
			return nothing;
		default:
			return (
				<section class="panel">
					<div class="scalar">{data.result[1]}</div>
				</section>
			);
	}
}
