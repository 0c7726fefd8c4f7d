// The flame graph behind an expression: what it measured at a time, alone or against what it is
// best compared with.
import { useCallback, useMemo, useState } from "preact/hooks";
import { compareParams, measured, type Measured, type Node } from "../query/measured";
import { diffQuery } from "../query/query";
import { useProfileTypes, useQuestion } from "../query/questions";
import { type Labels, resolveType } from "../shared/api";
import { type Loaded, useApi, useUrl } from "../shared/hooks";
import { Notices, QueryError } from "../shared/notices";
import { Progress } from "../shared/progress";
import { formatClock, formatDuration, trimMs, type Window } from "../shared/timerange";
import { patchParams } from "../shared/urlstate";
import { DEFAULT_NODES, Results } from "./results";

export interface Behind {
	/** null while it is worked out, and where the expression looks at no profiles. */
	found: Measured | null;
	known: boolean;
	tree: Loaded<Node>;
}

/** Works out what an expression measures; "" for none asks nothing. */
export function useMeasured(expr: string, at: number | null, labels: Labels): Behind {
	const types = useProfileTypes();
	const tree = useApi<Node>(expr || null, "parse_query", { query: expr });
	const key = JSON.stringify([expr, at, labels]);
	const known = !!expr && at !== null && tree.key === expr && !!tree.answer && !!types.answer;
	const found = useMemo(
		() =>
			known
				? measured(expr, tree.answer!.data, at!, labels, (name) =>
						Boolean(resolveType(name, types.answer!.data)),
					)
				: null,
		[key, known],
	);
	return { found, known, tree };
}

/** `patch` and `params` for a graph in which a function is highlighted until one says otherwise. */
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
		store,
	};
}

function span(w: Window): string {
	return (
		`${formatClock(w.start)} – ${formatClock(w.end).slice(11)} · ` +
		formatDuration(Math.round(w.end - w.start))
	);
}

function NothingMeasured() {
	return (
		<div class="notice">
			This expression looks at no stored profiles, so there is no flame graph of it.
		</div>
	);
}

/** What was measured, against the window before or what the expression compares it with. */
export function MeasuredDiff(props: { expr: string; at: number; labels: Labels }) {
	const { found, known, tree } = useMeasured(props.expr, props.at, props.labels);
	const { params, patch, store } = usePicked(found);
	const ask = found && diffQuery(found.next, found.base);
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const { loaded, asked } = useQuestion(ask?.query ?? "", times, nodes, 0);
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
					<a
						href={store.href(
							"compare",
							patchParams(new URLSearchParams(), compareParams(found)),
						)}
					>
						Open in Compare
					</a>
				</div>
			)}
			<Progress loaded={loaded} />
			{loaded.error && ask && <QueryError error={loaded.error} sent={ask.query} />}
			{loaded.answer && <Notices {...loaded.answer} />}
			{loaded.answer && ask && (
				<Results
					query={ask.query}
					times={times}
					asked={asked}
					answered={loaded.key}
					answer={loaded.answer}
					loading={loaded.loading}
					params={params}
					patch={patch}
				/>
			)}
			{loaded.loading && !loaded.answer && <div class="empty">Loading…</div>}
		</div>
	);
}

/** Under an expression's costs: the profiles they were counted from, at that time. */
export function MeasuredProfiles(props: { expr: string; at: number; labels: Labels }) {
	const { found, known } = useMeasured(props.expr, props.at, props.labels);
	const { params, patch, store } = usePicked(found);
	const times = { time: trimMs(props.at) };
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const { loaded, asked } = useQuestion(found?.exact ?? "", times, nodes, 0);
	if (known && !found) return <NothingMeasured />;
	if (!found) return null;
	return (
		<>
			<div class="asked">
				<h2>What was measured</h2>
				<span class="faint">{span(found.next)}</span>
				<code>{found.exact}</code>
				<span class="spacer" />
				<a
					href={store.href(
						"compare",
						patchParams(new URLSearchParams(), compareParams(found)),
					)}
				>
					Compare with before
				</a>
			</div>
			<Progress loaded={loaded} />
			{loaded.error && <QueryError error={loaded.error} sent={found.exact} />}
			{loaded.answer && (
				<Results
					query={found.exact}
					times={times}
					asked={asked}
					answered={loaded.key}
					answer={loaded.answer}
					loading={loaded.loading}
					params={params}
					patch={patch}
				/>
			)}
		</>
	);
}
