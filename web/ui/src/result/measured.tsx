// The flame graph of the profiles that an expression measured, alone or as a comparison.
import { useCallback, useState } from "preact/hooks";
import { compareParams, measured, type Measured, type ExprNode } from "../query/measured";
import { diffQuery } from "../query/query";
import { type Times, useProfileTypes, useQuestion } from "../query/questions";
import { type Labels, resolveType } from "../shared/api";
import { type Loaded, useApi, useKeyed, useUrl } from "../shared/hooks";
import { Notices, QueryError } from "../shared/notices";
import { Progress } from "../shared/progress";
import { formatDuration, formatSpan, trimMs, type Window } from "../shared/timerange";
import { patchParams } from "../shared/urlstate";
import { DEFAULT_NODES, Results } from "./results";

export interface Behind {
	/** null until it is known, and if the expression selects no profiles. */
	found: Measured | null;
	known: boolean;
	tree: Loaded<ExprNode>;
}

/** Finds what an expression measures; "" asks nothing. */
export function useMeasured(expr: string, at: number | null, labels: Labels): Behind {
	const types = useProfileTypes();
	const tree = useApi<ExprNode>(expr || null, "parse_query", { query: expr });
	const key = JSON.stringify([expr, at, labels]);
	const parsed = expr !== "" && tree.key === expr ? tree.answer : null;
	const known = parsed !== null && at !== null && types.answer !== null;
	const found = useKeyed(known ? key : null, () => {
		const stored = types.answer?.data;
		if (!parsed || at === null || !stored) return null;
		return measured(expr, parsed.data, at, labels, (name) => Boolean(resolveType(name, stored)));
	});
	return { found, known, tree };
}

/** `patch` and `params` for a graph in which a function is highlighted until the user changes it. */
function usePicked(found: Measured | null) {
	const { store, location } = useUrl();
	const [touched, setTouched] = useState(false);
	const patch = useCallback(
		(p: Record<string, string | null>, replace = false) => {
			if ("pick" in p || "search" in p) setTouched(true);
			store.patch(p, replace);
		},
		[store],
	);
	const { params } = location;
	const own = touched || params.has("pick") || params.has("search") || !found;
	return {
		params: own
			? params
			: patchParams(params, { pick: found.pick || null, search: found.search || null }),
		patch,
	};
}

/** Asks for a graph of what was found; the query "" asks nothing. */
function useGraph(found: Measured | null, query: string, times: Times) {
	const { params, patch } = usePicked(found);
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const { loaded, asked } = useQuestion(query, times, nodes, 0);
	return { query, times, params, patch, asked, loaded };
}

function Graph({ loaded, ...rest }: ReturnType<typeof useGraph>) {
	if (!loaded.answer) return null;
	return (
		<Results
			{...rest}
			answered={loaded.key}
			answer={loaded.answer}
			loading={loaded.loading}
		/>
	);
}

function span(w: Window): string {
	return `${formatSpan(w)} · ${formatDuration(Math.round(w.end - w.start))}`;
}

function NothingMeasured() {
	return (
		<div class="notice">
			No flame graph: the expression selects no profiles.
		</div>
	);
}

/** A link to Compare for the measured profiles. */
function CompareLink({ found, text }: { found: Measured; text: string }) {
	const { store } = useUrl();
	const to = patchParams(new URLSearchParams(), compareParams(found));
	return <a href={store.href("compare", to)}>{text}</a>;
}

/** The measured profiles, compared with the window before or as the expression compares them. */
export function MeasuredDiff(props: { expr: string; at: number; labels: Labels }) {
	const { found, known, tree } = useMeasured(props.expr, props.at, props.labels);
	const ask = found && diffQuery(found.next, found.base);
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const graph = useGraph(found, ask?.query ?? "", times);
	const { loaded } = graph;
	return (
		<div class="measured">
			{tree.error && <QueryError error={tree.error} sent={props.expr} />}
			{known && !found && <NothingMeasured />}
			{found && (
				<div class="asked">
					<span class="side new">
						<i class="side-mark" />
						{span(found.next)}
					</span>
					<span class="side base">
						<i class="side-mark" />
						against {span(found.base)}
					</span>
					<span class="spacer" />
					<CompareLink found={found} text="Open in Compare" />
				</div>
			)}
			<Progress loaded={loaded} />
			{loaded.error && ask && <QueryError error={loaded.error} sent={ask.query} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			{ask && <Graph {...graph} />}
			{loaded.loading && !loaded.answer && <div class="empty">Loading…</div>}
		</div>
	);
}

/** Below an expression's costs: the profiles that they were computed from. */
export function MeasuredProfiles(props: { expr: string; at: number; labels: Labels }) {
	const { found, known } = useMeasured(props.expr, props.at, props.labels);
	const graph = useGraph(found, found?.exact ?? "", { time: trimMs(props.at) });
	const { loaded } = graph;
	if (known && !found) return <NothingMeasured />;
	if (!found) return null;
	return (
		<>
			<div class="asked">
				<h2>Measured profiles</h2>
				<span class="faint">{span(found.next)}</span>
				<code>{found.exact}</code>
				<span class="spacer" />
				<CompareLink found={found} text="Compare with the window before" />
			</div>
			<Progress loaded={loaded} />
			{loaded.error && <QueryError error={loaded.error} sent={found.exact} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			<Graph {...graph} />
		</>
	);
}
