// Explore: one query, its cost over time, its flame graph and its table.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { resolveType, shortTypeName, type ProfileType, type QueryData } from "../lib/api";
import { useCostChart } from "../lib/costchart";
import { useInterval, useUrl } from "../lib/hooks";
import { parseMatch } from "../lib/measured";
import {
	findSelectors,
	flameQuery,
	guessKind,
	parseSelector,
	callArgument,
	type Kind,
} from "../lib/query";
import {
	useProfileTypes,
	useQuestion,
	useScrapeInterval,
	windowTimes,
} from "../lib/questions";
import {
	contextFromParams,
	instantFromParams,
	parseDuration,
	rangeFromParams,
	resolve,
	trimMs,
	type TimeRange,
} from "../lib/timerange";
import type { Patch } from "../lib/urlstate";
import { ChartPanel } from "../parts/chartpanel";
import { Controls, labelsFromParams } from "../parts/controls";
import { MeasuredProfiles } from "../parts/measured";
import { NothingStored } from "../parts/nothingstored";
import { DEFAULT_NODES, Results } from "../parts/results";

/** The query a first visit asks: the CPU of everything, or the first type there is. */
function firstQuery(types: ProfileType[]): string {
	const cpu = types.find((t) => t.name === "process_cpu" && t.sample_type === "cpu");
	const t = cpu ?? types[0];
	return t ? shortTypeName(t, types) : "";
}

/** What the answer turned out to be, where the text did not tell. */
function kindOf(guess: Kind, resultType: string | undefined): Kind {
	if (guess === "selector" || !resultType) return guess;
	if (resultType === "profiles") return "profiles";
	return resultType === "top" ? "top" : "costs";
}

function useResolved(range: TimeRange, tick: number) {
	const key = JSON.stringify([range, tick]);
	return useMemo(() => resolve(range, Date.now() / 1000), [key]);
}

export function Explore() {
	const { store, location } = useUrl();
	const { params } = location;
	const types = useProfileTypes();
	const known = types.answer?.data ?? [];
	const interval = useScrapeInterval();
	const [tick, setTick] = useState(0);

	const query = params.get("query") ?? "";
	const by = params.get("by") ?? "";
	const refresh = params.get("refresh") ?? "off";
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const at = instantFromParams((k) => params.get(k));
	const match = params.get("match") ?? "";
	const range = rangeFromParams((k) => params.get(k));
	const win = useResolved(range, tick);
	const patch = useCallback(
		(p: Record<string, string | null>, replace = false) => store.patch(p, replace),
		[store],
	);

	useEffect(() => {
		if (!query && types.answer) {
			const q = firstQuery(types.answer.data);
			if (q) patch({ query: q }, true);
		}
	}, [query, types.answer]);
	useInterval(parseDuration(refresh) ?? 0, () => setTick((t) => t + 1));

	const sent = query ? flameQuery(query) : "";
	const times = at === null ? windowTimes(win) : { time: trimMs(at) };
	const { loaded, asked } = useQuestion(sent, times, nodes, tick);
	const data = loaded.answer?.data;
	// What this very query gave, also while it is asked again; never what another one gave.
	const settled = useRef<{ query: string; data?: QueryData }>({ query: "" });
	if (loaded.key === asked && data) settled.current = { query, data };
	const own = settled.current.query === query ? settled.current.data : undefined;
	const kind = kindOf(guessKind(query), own?.resultType);

	const element = own?.resultType === "profiles" ? own.result[0] : undefined;
	const named = findSelectors(query)[0]?.name ?? "";
	const type = element?.type ?? resolveType(named, known)?.type ?? "";
	const isDiff = element?.flamebearer.format === "double";
	const drawn = kind !== "unknown" && !isDiff && own?.resultType !== "scalar";
	const context = contextFromParams((k) => params.get(k));
	const chart = useCostChart({
		query: drawn ? query : "",
		by,
		kind,
		window: context?.window ?? win,
		interval,
		type,
		tick,
	});

	const run = (q: string) => {
		setTick((t) => t + 1);
		const same = q === query;
		const fn = same ? params.get("fn") : null;
		patch({ query: q, zoom: null, el: null, fn, match: same ? match : null });
	};
	const edit = useCallback(
		(change: (q: string) => string, also: Patch = {}) =>
			patch({ query: change(query), zoom: null, el: null, match: null, ...also }),
		[patch, query],
	);
	const { from, to } = { from: trimMs(win.start), to: trimMs(win.end) };
	// The chart of an instant has its window from there.
	const fixed = { refresh: null, ...(at === null ? { range: null, from, to } : {}) };
	const selector = useMemo(
		() =>
			query
				? parseSelector(callArgument(query, "merge") ?? query)
				: { name: "", matchers: [] },
		[query],
	);

	return (
		<main class="explore">
			<h1 class="visually-hidden">Explore</h1>
			<Controls
				query={query}
				sent={sent}
				selector={selector}
				types={types}
				loaded={loaded}
				beside={[chart.loaded]}
				range={range}
				refresh={refresh}
				times={times}
				at={at}
				match={match}
				labels={labelsFromParams(params)}
				run={run}
				patch={patch}
			/>

			{types.answer && known.length === 0 && <NothingStored />}
			{chart.sent && !loaded.error && (
				<ChartPanel
					chart={chart}
					query={query}
					kind={kind}
					by={by}
					stacked={params.get("stack") === "1"}
					range={range}
					window={win}
					context={context}
					at={at}
					interval={interval ?? 15}
					patch={patch}
					run={run}
				/>
			)}

			{loaded.answer && (
				<Results
					query={sent}
					unknownType={
						types.answer && named && named !== "up" && !resolveType(named, known)
							? named
							: ""
					}
					times={times}
					compact={at !== null}
					asked={asked}
					answered={loaded.key}
					answer={loaded.answer}
					loading={loaded.loading}
					params={params}
					patch={patch}
					edit={at === null ? edit : undefined}
					edited={[query]}
					fixed={fixed}
				/>
			)}
			{kind === "costs" && at !== null && (
				<MeasuredProfiles expr={query} at={at} labels={parseMatch(match)} />
			)}
			{kind === "costs" && at === null && own?.resultType === "vector" && (
				<div class="asked">
					<button
						type="button"
						class="small"
						title="Evaluates at the end of the range, and shows the profiles"
						onClick={() => patch({ at: trimMs(Math.floor(win.end)) })}
					>
						Flame graph behind these costs
					</button>
				</div>
			)}
			{!loaded.answer && loaded.loading && (
				<section class="panel">
					<div class="empty">Loading…</div>
				</section>
			)}
		</main>
	);
}
