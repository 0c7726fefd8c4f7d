// The flame graph of the profiles that an expression measured, alone or as a comparison.
import { useCallback, useState } from "preact/hooks";
import { alertOn } from "../query/edit";
import {
	type AskedElement,
	compareParams,
	type ExprNode,
	type Measured,
	measured,
	type MeasuredSide,
} from "../query/measured";
import { diffQuery, type DiffQuery } from "../query/query";
import { type Times, useProfileTypes, useQuestion } from "../query/questions";
import { type ProfileElement, resolveType } from "../shared/api";
import { type Loaded, useApi, useKeyed, useUrl } from "../shared/hooks";
import { Notices, QueryError } from "../shared/notices";
import { Progress } from "../shared/progress";
import { formatDuration, formatSpan, trimMs, type Window } from "../shared/timerange";
import { newAlert, patchParams } from "../shared/urlstate";
import { DEFAULT_NODES, Results, useAnswered } from "./results";
import { type Significance, useSignificance } from "../verdict/significance";
import { useElement } from "./useprofile";
import { VerdictPanel } from "../verdict/verdictpanel";

const NONE: ProfileElement[] = [];

export interface Behind {
	/** null until it is known, and if the expression selects no profiles. */
	found: Measured | null;
	known: boolean;
	tree: Loaded<ExprNode>;
}

/** Finds what an expression measures; "" asks nothing. */
export function useMeasured(
	expr: string,
	{ at, labels, since = null }: Omit<AskedElement, "at"> & { at: number | null },
): Behind {
	const types = useProfileTypes();
	const tree = useApi<ExprNode>(expr || null, "parse_query", { query: expr });
	const key = JSON.stringify([expr, at, labels, since]);
	const parsed = expr !== "" && tree.key === expr ? tree.answer : null;
	const known = parsed !== null && at !== null && types.answer !== null;
	const found = useKeyed(known ? key : null, () => {
		const stored = types.answer?.data;
		if (!parsed || at === null || !stored) return null;
		const typeOf = (name: string) => resolveType(name, stored)?.type ?? "";
		return measured(expr, parsed.data, { at, labels, since }, typeOf);
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

type GraphProps = ReturnType<typeof useGraph> & { significance?: Significance | null };

function Graph({ loaded, ...rest }: GraphProps) {
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

/** What tells the sides apart where the windows do not. */
function SideName({ found, side }: { found: Measured; side: MeasuredSide }) {
	if (found.next.query === found.base.query) return null;
	return <code>{side.query}</code>;
}

function MeasuredSides({ found }: { found: Measured }) {
	const { next, base } = found;
	return (
		<div class="asked">
			<span class="side new">
				<i class="side-mark" />
				New <SideName found={found} side={next} /> {span(next)}
			</span>
			<span class="side base">
				<i class="side-mark" />
				Base <SideName found={found} side={base} /> {span(base)}
				{found.against === "alert" && <span class="faint"> before the alert began</span>}
			</span>
			<span class="spacer" />
			<CompareLink found={found} text="Open in Compare" />
		</div>
	);
}

interface JudgedProps {
	found: Measured;
	ask: DiffQuery;
	graph: ReturnType<typeof useGraph>;
}

/** The verdict on the function that the expression is about, and the graph of the difference. */
function JudgedGraph({ found, ask, graph }: JudgedProps) {
	const { params, patch, loaded, query, times, asked } = graph;
	const data = loaded.answer?.data;
	const elements = data?.resultType === "profiles" ? data.result : NONE;
	const { element, all } = useElement({ elements, params });
	const known = useAnswered({ query, times, asked, answered: loaded.key });
	const significance = useSignificance(known, element, !all);
	const { next, base, about } = found;
	return (
		<>
			{element && (
				<VerdictPanel
					element={element}
					significance={significance}
					infos={loaded.answer?.infos}
					seconds={next.end - next.start}
					sides={{
						base: { query: base.query, window: base },
						next: { query: next.query, window: next },
					}}
					about={about && { function: about, ask, all, tick: 0 }}
					onOpen={(fn) => patch({ fn })}
					onAlert={(fn) => patch(newAlert(alertOn(next.query, fn, element.type ?? "")))}
				/>
			)}
			<Graph {...graph} significance={significance} />
		</>
	);
}

/** The measured profiles, compared as the expression does, else with the time before the alert. */
export function MeasuredDiff(props: AskedElement & { expr: string }) {
	const { found, known, tree } = useMeasured(props.expr, props);
	const ask = found && diffQuery(found.next, found.base, found.normalized);
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const graph = useGraph(found, ask?.query ?? "", times);
	const { loaded } = graph;
	return (
		<div class="measured">
			{tree.error && <QueryError error={tree.error} sent={props.expr} />}
			{known && !found && <NothingMeasured />}
			{found && <MeasuredSides found={found} />}
			<Progress loaded={loaded} />
			{loaded.error && ask && <QueryError error={loaded.error} sent={ask.query} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			{ask && <JudgedGraph found={found} ask={ask} graph={graph} />}
			{loaded.loading && !loaded.answer && <div class="empty">Loading…</div>}
		</div>
	);
}

const COMPARE_TEXT: Record<Measured["against"], string> = {
	own: "Compare as the expression does",
	alert: "Compare with the time before the alert",
	window: "Compare with the window before",
};

/** Below an expression's costs: the profiles that they were computed from. */
export function MeasuredProfiles(props: AskedElement & { expr: string }) {
	const { found, known } = useMeasured(props.expr, props);
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
				<CompareLink found={found} text={COMPARE_TEXT[found.against]} />
			</div>
			<Progress loaded={loaded} />
			{loaded.error && <QueryError error={loaded.error} sent={found.exact} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			<Graph {...graph} />
		</>
	);
}
