// Explore: one query, its cost over time, its flame graph and its table.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useCostChart } from "../chart/costchart";
import { lineColors } from "../chart/linecolors";
import { parseMatch, sinceFromParams } from "../query/measured";
import { compareParts } from "../compare/sides";
import { compareFiles, fileAlone, type OpenedFile } from "../files/contents";
import { useMarks } from "../marks/usemarks";
import { regrouped, ungrouped } from "../query/edit";
import { fileQuery, filesOf, hasFiles } from "../query/files";
import { BY_FUNCTION } from "../query/groupby";
import { flameQuery, levelQuery } from "../query/query";
import { useProfileTypes, useQuestion, useScrapeInterval, windowTimes } from "../query/questions";
import { callArgument, findSelectors, parseSelector } from "../query/read";
import type { Selector } from "../query/text";
import { guessKind, type QueryKind } from "../query/types";
import { LevelPanel } from "../result/levelpanel";
import { LEVELS } from "../result/levels";
import { MeasuredProfiles } from "../result/measured";
import { DEFAULT_NODES, Results } from "../result/results";
import { useElement } from "../result/useprofile";
import { firstQuery, type ProfileType, resolveType } from "../shared/api";
import { FirstCpuNote, FirstMinutePanel, useFirstMinute } from "../first/firstminute";
import { type Loaded, useInterval, useKeyed, useOwnAnswer, useUrl } from "../shared/hooks";
import { LastGood } from "../shared/lastgood";
import { useFirstView } from "../shared/defaultrange";
import { useTheme } from "../shared/theme";
import {
	contextFromParams,
	instantFromParams,
	parseDuration,
	resolve,
	type TimeRange,
	trimMs,
} from "../shared/timerange";
import { oneOf, type Patch } from "../shared/urlstate";
import { ChartPanel } from "./chartpanel";
import { Controls, labelsFromParams } from "./controls";
import { HeatChart, useHeatChart } from "./heatchart";

/** The kind of the answer, if the text of the query did not tell. */
function kindOf(guess: QueryKind, resultType: string | undefined): QueryKind {
	if (guess === "selector" || !resultType) return guess;
	if (resultType === "profiles") return "profiles";
	return resultType === "top" ? "top" : "costs";
}

function useResolved(range: TimeRange, tick: number) {
	const key = JSON.stringify([range, tick]);
	return useKeyed(key, () => resolve(range, Date.now() / 1000));
}

/** The query, with the label of an old link's `by` as its group; the address is changed to it. */
function useGrouping(params: URLSearchParams, patch: (p: Patch, replace?: boolean) => void) {
	const [by, text] = [params.get("by") ?? "", params.get("query") ?? ""];
	const functions = by === BY_FUNCTION;
	const label = functions || guessKind(text) === "costs" ? "" : by;
	const query = useMemo(() => (label ? regrouped(text, label) : text), [label, text]);
	const el = params.get("el") ?? "all";
	useEffect(() => {
		if (by && !functions && text) patch({ query, by: null, ...(label ? { el } : {}) }, true);
	}, [by, functions, text, query, label, el, patch]);
	return { query, functions };
}

/** The question in the URL. */
function useAsk(tick: number, stored: boolean) {
	const { store, location } = useUrl();
	const { params } = location;
	const { range, known } = useFirstView(params, stored);
	const win = useResolved(range, tick);
	const patch = useCallback(
		(p: Record<string, string | null>, replace = false) => store.patch(p, replace),
		[store],
	);
	const { query, functions } = useGrouping(params, patch);
	return {
		params,
		patch,
		query,
		/** The query, or "" until its range is known. */
		asked: known ? query : "",
		functions,
		heatmap: params.get("chart") === "heatmap",
		folded: params.get("fold") === "1",
		refresh: params.get("refresh") ?? "off",
		nodes: params.get("nodes") ?? String(DEFAULT_NODES),
		at: instantFromParams((k) => params.get(k)),
		match: params.get("match") ?? "",
		since: sinceFromParams((k) => params.get(k)),
		level: oneOf(params.get("level"), LEVEL_VALUES),
		limit: params.get("limit") ?? "",
		context: contextFromParams((k) => params.get(k)),
		range,
		win,
	};
}

type ExploreAsk = ReturnType<typeof useAsk>;

const LEVEL_VALUES = LEVELS.map(([v]) => v);

/** The type of the query's profiles if they are a level, as memory in use is; else undefined. */
function levelType(query: string, types: Loaded<ProfileType[]>): ProfileType | undefined {
	const type = resolveType(findSelectors(query)[0]?.name ?? "", types.answer?.data ?? []);
	return type && !type.delta ? type : undefined;
}

/** The question for the chosen value of the window; null for the mean, or if it cannot be chosen. */
function levelAsk({ query, level, at, win }: ExploreAsk, types: Loaded<ProfileType[]>) {
	if (level === "mean" || at !== null || !levelType(query, types)) return null;
	const sent = levelQuery(
		flameQuery(query),
		level === "max" ? "max" : "last",
		Math.round(win.end - win.start),
	);
	return sent === null ? null : { sent, times: { time: trimMs(win.end) } };
}

/** The panel of a level, if the answer is one. */
function Level(props: { ask: ExploreAsk; answer: Answered; types: Loaded<ProfileType[]>; tick: number }) {
	const { ask, answer, types, tick } = props;
	const { store } = useUrl();
	const { query, win, level, limit, params, patch } = ask;
	const { own } = answer;
	const elements = own?.resultType === "profiles" ? own.result : [];
	const { element } = useElement({ elements, params });
	if (!element || element.flamebearer.format === "double") return null;
	if (ask.at !== null || !levelType(query, types)) return null;
	return (
		<LevelPanel
			{...{ query, element, level, limit, tick, patch }}
			window={win}
			interval={answer.interval ?? 15}
			choosable={levelQuery(flameQuery(query), "last", 60) !== null}
			compare={(w) => store.href("compare", new URLSearchParams(compareParts(query, w)))}
			onOpen={(fn) => patch({ fn })}
		/>
	);
}

/** The answer, its kind, and its chart. */
function useAnswer(ask: ExploreAsk, types: Loaded<ProfileType[]>, tick: number) {
	const { asked: query, at, win, context, functions } = ask;
	const interval = useScrapeInterval();
	const chosen = levelAsk(ask, types);
	const sent = chosen?.sent ?? (query ? flameQuery(query) : "");
	const times = chosen?.times ?? (at === null ? windowTimes(win) : { time: trimMs(at) });
	const { loaded, asked } = useQuestion(sent, times, ask.nodes, tick);
	// The last answer to this very query, also while it is asked again.
	const own = useOwnAnswer(loaded, asked, query)?.data;
	const kind = kindOf(guessKind(query), own?.resultType);

	const element = own?.resultType === "profiles" ? own.result[0] : undefined;
	const named = findSelectors(query)[0]?.name ?? "";
	const type = element?.type ?? resolveType(named, types.answer?.data ?? [])?.type ?? "";
	const isDiff = element?.flamebearer.format === "double";
	// A file has no cost over time.
	const timed = kind !== "unknown" && !hasFiles(query);
	const drawn = timed && !isDiff && own?.resultType !== "scalar";
	const heatmap = drawn && ask.heatmap && at === null && kind !== "costs";
	const chart = useCostChart({
		query: drawn && !heatmap ? query : "",
		functions,
		kind,
		window: context?.window ?? win,
		// Amounts are drawn as a rate, so the type must be known first.
		interval: types.answer || types.error ? interval : null,
		type,
		tick,
	});
	const heat = useHeatChart({
		query: heatmap ? query : "",
		kind,
		window: context?.window ?? win,
		type: resolveType(type || named, types.answer?.data ?? []),
		ready: types.answer !== null || types.error !== null,
		tick,
	});
	const marks = useMarks(
		chart.sent || heatmap ? query : "",
		heatmap ? (context?.window ?? win) : chart.window,
		tick,
		kind !== "costs" || guessKind(query) !== "selector",
	);
	return { interval, sent, times, loaded, asked, own, kind, named, chart, heat, heatmap, marks };
}

type Answered = ReturnType<typeof useAnswer>;

/** The colours of the chart's lines, if they are the groups of the result. */
function useLineColors({ functions }: ExploreAsk, chart: Answered["chart"], kind: QueryKind) {
	const theme = useTheme();
	const { matrix, step } = chart;
	const { start, end } = chart.window;
	const same = !functions && kind !== "costs" && matrix.length > 1;
	return useMemo(
		() => (same ? lineColors(matrix, { start, end }, step, theme) : undefined),
		[same, matrix, start, end, step, theme],
	);
}

/** Another query has other elements and no alert. */
const NO_ELEMENT = { match: null, since: null };

/** Runs another query, or edits the present one. */
function useQueries({ params, patch, query, at, win }: ExploreAsk, again: () => void) {
	const run = (q: string) => {
		again();
		const same = q === query;
		const fn = same ? params.get("fn") : null;
		patch({ query: q, zoom: null, el: null, fn, ...(same ? {} : NO_ELEMENT) });
	};
	const edit = useCallback(
		(change: (q: string) => string, also: Patch = {}) =>
			patch({ query: change(query), zoom: null, el: null, ...NO_ELEMENT, ...also }),
		[patch, query],
	);
	const { from, to } = { from: trimMs(win.start), to: trimMs(win.end) };
	// At an instant, the chart's window follows from it.
	const fixed = { refresh: null, ...(at === null ? { range: null, from, to } : {}) };
	return { run, edit, fixed };
}

/** A file is shown; two, or one beside the one that is shown already, are compared. */
function useOpenedFiles({ query }: ExploreAsk, run: (q: string) => void) {
	const { store } = useUrl();
	return (opened: OpenedFile[]) => {
		const shown = fileAlone(query) ? filesOf(query)[0] : undefined;
		if (opened.length > 1)
			return store.go("compare", new URLSearchParams(compareFiles(opened)));
		const next = fileQuery(opened[0].name);
		if (!shown || shown.name === opened[0].name) return run(next);
		const base = fileQuery(shown.name, shown.type);
		store.go("compare", new URLSearchParams({ new: next, base }));
	};
}

/** Below costs: the profiles they were computed from, or a button that shows them. */
function BehindCosts({ ask, isVector }: { ask: ExploreAsk; isVector: boolean }) {
	const { query, at, match, since, win, patch } = ask;
	if (at !== null)
		return <MeasuredProfiles expr={query} at={at} labels={parseMatch(match)} since={since} />;
	if (!isVector) return null;
	return (
		<div class="asked">
			<button
				type="button"
				class="small"
				title="Evaluates the profiles at the end of the range"
				onClick={() => patch({ at: trimMs(Math.floor(win.end)) })}
			>
				Flame graph behind these costs
			</button>
		</div>
	);
}

/**
 * The query of a first visit. While the first CPU profile is on its way, what is there already is
 * shown, and CPU takes its place unless something was chosen meanwhile.
 */
function useFirstVisit({ params, patch, query }: ExploreAsk, types: Loaded<ProfileType[]>) {
	const chosen = useRef("");
	const untouched = query === "" || (query === chosen.current && [...params.keys()].join() === "query");
	const firstMinute = useFirstMinute(types, untouched);
	const { waiting } = firstMinute;
	useEffect(() => {
		if (!untouched || !types.answer || waiting) return;
		const first = firstQuery(types.answer.data);
		if (first === query) return;
		chosen.current = first;
		patch({ query: first || null }, true);
	}, [query, untouched, types.answer, waiting, patch]);
	return firstMinute;
}

/** The selector for the picker; null if the query is more than a selector that may be grouped. */
function pickable(text: string): Selector | null {
	const query = ungrouped(text);
	if (!query) return { name: "", matchers: [] };
	return parseSelector(callArgument(query, "merge") ?? query);
}

export function Explore() {
	const types = useProfileTypes();
	const known = types.answer?.data ?? [];
	const [tick, setTick] = useState(0);
	const again = () => setTick((t) => t + 1);
	const ask = useAsk(tick, known.length > 0);
	const { params, patch, query, at } = ask;
	const answer = useAnswer(ask, types, tick);
	const { sent, times, loaded, named, kind, chart, heat } = answer;
	const { run, edit, fixed } = useQueries(ask, again);
	const onOpened = useOpenedFiles(ask, (q) => {
		patch({ at: null });
		run(q);
	});
	const firstMinute = useFirstVisit(ask, types);
	const waits = firstMinute.waiting;
	useInterval(parseDuration(ask.refresh) ?? 0, again);
	const selector = useMemo(() => pickable(query), [query]);
	const colors = useLineColors(ask, chart, kind);
	const stored = !types.answer || !named || named === "up" || resolveType(named, known);

	return (
		<main id="main" class="explore">
			<h1 class="visually-hidden">Explore</h1>
			<Controls
				{...ask}
				sent={sent}
				selector={selector}
				types={types}
				loaded={loaded}
				beside={answer.heatmap ? heat.loaded : [chart.loaded]}
				times={times}
				labels={labelsFromParams(params)}
				run={run}
				onOpened={onOpened}
				edit={edit}
				groups={at === null && kind !== "costs"}
			/>

			{waits && !hasFiles(query) && <FirstMinutePanel first={firstMinute} />}
			{firstMinute.cpuComes && <FirstCpuNote first={firstMinute} />}
			<LastGood
				failed={loaded.error !== null}
				good={loaded.answer !== null && loaded.key === answer.asked}
			>
				{answer.heatmap && (
					<HeatChart
						{...ask}
						state={heat}
						marks={answer.marks}
						kind={kind}
						window={ask.win}
						interval={answer.interval ?? 15}
						run={run}
					/>
				)}
				{chart.sent && (
					<ChartPanel
						{...ask}
						chart={chart}
						marks={answer.marks}
						kind={kind}
						stacked={params.get("stack") === "1"}
						window={ask.win}
						interval={answer.interval ?? 15}
						run={run}
					/>
				)}

				<Level ask={ask} answer={answer} types={types} tick={tick} />
				{loaded.answer && (
					<Results
						query={sent}
						unknownType={stored ? "" : named}
						times={times}
						compact={at !== null}
						asked={answer.asked}
						answered={loaded.key}
						answer={loaded.answer}
						loading={loaded.loading}
						params={params}
						patch={patch}
						edit={at === null ? edit : undefined}
						edited={[query]}
						colors={colors}
						fixed={fixed}
					/>
				)}
				{kind === "costs" && (
					<BehindCosts ask={ask} isVector={answer.own?.resultType === "vector"} />
				)}
				{!loaded.answer && loaded.loading && (
					<section class="panel">
						<div class="empty">Loading…</div>
					</section>
				)}
			</LastGood>
		</main>
	);
}
