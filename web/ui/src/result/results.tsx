// The result of a query: a toolbar, and below it flame graph, table, costs or a number.
import "./results.css"; // first: the CSS of its parts overrides it
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Times } from "../query/questions";
import type { Answer, QueryData, TopElement } from "../shared/api";
import { formatValue } from "../shared/units";
import type { Patch } from "../shared/urlstate";
import { type QueryEdit, FilterChips } from "./filters";
import type { GroupColors } from "./group";
import { ProfileResult } from "./profileresult";
import { ShareButton } from "./share";
import type { Significance } from "../verdict/significance";
import { ElementSelect, SearchBox, useSearch } from "./toolbar";
import { CostTable, TopTable } from "./toptable";

export interface ResultsProps {
	/** The query as asked, and its times; the table and downloads ask with the same. */
	query: string;
	times: Times;
	/** The type that the query names if none such is stored, else "". */
	unknownType?: string;
	/** Whether costs are only as high as their rows, because more follows below. */
	compact?: boolean;
	/** Identifies the question; `answered` is the one that `answer` belongs to. */
	asked: string;
	answered: string | null;
	answer: Answer<QueryData>;
	loading: boolean;
	params: URLSearchParams;
	patch(p: Record<string, string | null>, replace?: boolean): void;
	/** Edits the query of the page; if not given, nothing here edits it. */
	edit?: QueryEdit;
	/** The queries that `edit` changes; their filters are shown. */
	edited?: string[];
	/** The verdict on a difference that the page shows itself; undefined: the result asks for it. */
	significance?: Significance | null;
	/** Colours of groups, if a chart above has them. */
	colors?: GroupColors;
	/** Whether Group by is in the toolbar; else it is above. */
	grouping?: boolean;
	/** The changes of the address that make it show this forever. */
	fixed?: Patch;
	/** Whether the graph has the whole width, and the table is below it. */
	wide?: boolean;
	/** At the beginning of the toolbar. */
	lead?: ComponentChildren;
}

export const NODE_LIMITS = [512, 2048, 8192, 32768, 100000];
export const DEFAULT_NODES = 2048;
const COMPACT_ROWS = 8;

function TopResult({ elements, params, patch, fixed }: ResultsProps & { elements: TopElement[] }) {
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
					onChange={(el) => patch({ el })}
				/>
				<SearchBox text={text} error={error} onChange={(s) => patch({ search: s }, true)} />
				<span class="spacer" />
				<span class="faint">total {formatValue(element.total, element.unit)}</span>
				{fixed && <ShareButton fixed={fixed} />}
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
				{props.fixed && <ShareButton fixed={props.fixed} />}
			</div>
			<div class="split table">
				<div class="split-table">{children(pattern)}</div>
			</div>
		</section>
	);
}

/**
 * The answered question. While a newer one is running, the older answer stays, and so must all
 * questions that depend on it.
 */
export function useAnswered(
	props: Pick<ResultsProps, "query" | "times" | "asked" | "answered">,
): Pick<ResultsProps, "query" | "times" | "asked"> {
	const { query, times, asked } = props;
	const last = useRef({ query, times, asked });
	if (props.answered === asked) last.current = { query, times, asked };
	return last.current;
}

export function Results(props: ResultsProps) {
	const { edit, edited } = props;
	const answered = useAnswered(props);
	return (
		<>
			{edit && edited && <FilterChips queries={edited} edit={edit} />}
			<Result {...props} {...answered} />
		</>
	);
}

function Result(props: ResultsProps) {
	const { data } = props.answer;
	const nothing = (
		<section class="panel">
			<div class="empty">
				{props.unknownType
					? `No profiles. No stored type is named ${props.unknownType}.`
					: "No profiles. Widen the time range, or loosen the label matchers."}
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
						<div class="empty">No values at this time.</div>
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
