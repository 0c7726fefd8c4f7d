// The page Compare: two selections in two windows, and what changed between them.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type OpenedFile, openedSides } from "../files/contents";
import { FilesPanel } from "../files/filespanel";
import { OpenAround, OpenButton, useOpening } from "../files/openfile";
import { useMarks } from "../marks/usemarks";
import { alertOn } from "../query/edit";
import {
	aboutFromParams,
	aboutParams,
	compareParams,
	expressionParams,
	parseMatch,
	sinceFromParams,
} from "../query/measured";
import { hasFiles } from "../query/files";
import { diffQuery, type DiffQuery } from "../query/query";
import { useProfileTypes, useQuestion, useScrapeInterval } from "../query/questions";
import { useMeasured } from "../result/measured";
import { DEFAULT_NODES, Results, useAnswered } from "../result/results";
import { useSignificance } from "../verdict/significance";
import { useElement } from "../result/useprofile";
import { VerdictPanel } from "../verdict/verdictpanel";
import { firstQuery, type ProfileElement, type ProfileType, type QueryData } from "../shared/api";
import { FirstMinutePanel, useFirstMinute } from "../first/firstminute";
import { Segmented } from "../shared/fields";
import { type Loaded, useKeyed, useUrl } from "../shared/hooks";
import { LastGood } from "../shared/lastgood";
import { Notices, QueryError } from "../shared/notices";
import { Progress } from "../shared/progress";
import { instantFromParams, trimMs, type Window } from "../shared/timerange";
import { newAlert, oneOf, type Patch } from "../shared/urlstate";
import { CompareBar } from "./bar";
import { sharedScale, SidePanel, useSideChart } from "./side";
import {
	chooseBase,
	chooseNew,
	choosePoint,
	chooseRange,
	newRange,
	pinned,
	type Sides,
	sidesFromParams,
} from "./sides";
import { SideTotals } from "./totals";

type Patched = (p: Patch, replace?: boolean) => void;
const now = () => Math.floor(Date.now() / 1000);

/** The windows of the address, resolved once per question, so that "now" is fixed. */
function useSides(params: URLSearchParams, tick: number): Sides {
	const said = ["from", "to", "range", "shift", "bfrom", "bto", "point", "at"];
	const key = JSON.stringify([said.map((k) => params.get(k)), tick]);
	return useKeyed(key, () => sidesFromParams((k) => params.get(k), now()));
}

/** A first visit compares all CPU with the window before. */
function useFirstQuery(params: URLSearchParams, types: Loaded<ProfileType[]>, patch: Patched) {
	const [expr, next, base] = ["expr", "new", "base"].map((k) => params.get(k) ?? "");
	useEffect(() => {
		if (expr || (next && base) || !types.answer) return;
		const q = next || base || firstQuery(types.answer.data);
		if (q) patch({ new: next || q, base: base || q }, true);
	}, [expr, next, base, types.answer, patch]);
}

/** Replaces `expr` in the address by the comparison that it measures. */
function Expression({ params, patch }: { params: URLSearchParams; patch: Patched }) {
	const { store } = useUrl();
	const expr = params.get("expr") ?? "";
	const opened = useMemo(now, [expr]);
	const at = instantFromParams((k) => params.get(k)) ?? opened;
	const labels = parseMatch(params.get("match") ?? "");
	const since = sinceFromParams((k) => params.get(k));
	const behind = useMeasured(expr, { at, labels, since });
	useEffect(() => {
		if (expr && behind.found) patch(compareParams(behind.found), true);
	}, [expr, behind.found, patch]);
	if (behind.tree.error) return <QueryError error={behind.tree.error} sent={expr} />;
	if (!behind.known || behind.found) return null;
	return (
		<div class="notice">
			Nothing to compare: the expression selects no profiles.{" "}
			<a href={store.href("explore", expressionParams("query", expr, { at, labels, since }))}>
				Open it in Explore
			</a>
		</div>
	);
}

/** The difference as a query, to copy or to open in Explore. */
function AskedDiff({ ask, start }: { ask: DiffQuery; start: number }) {
	const { store } = useUrl();
	const args = { query: ask.query, from: trimMs(start), to: trimMs(ask.time) };
	return (
		<div class="asked">
			<code>{ask.query}</code>
			<a href={store.href("explore", new URLSearchParams(args))}>Open in Explore</a>
		</div>
	);
}

interface BothProps {
	sides: Sides;
	next: string;
	base: string;
	types: Loaded<ProfileType[]>;
	tick: number;
	picking: boolean;
	changed(p: Patch): void;
	onPicked(): void;
}

/** The charts of both sides; a file has no cost over time, so it has none. */
function Both({ sides, next, base, types, tick, picking, changed, onPicked }: BothProps) {
	const scraped = useScrapeInterval();
	// Amounts are drawn as a rate, so the types must be known first.
	const interval = types.answer || types.error ? scraped : null;
	const known = types.answer?.data ?? [];
	const drawn = (query: string) => (hasFiles(query) ? "" : query);
	const charts = {
		base: useSideChart(drawn(base), sides.base, known, interval, tick),
		new: useSideChart(drawn(next), sides.next, known, interval, tick),
	};
	// With the same window and selection both sides have the same marks.
	const marks = useMarks(drawn(base), charts.base.window, tick);
	const { start, end } = charts.new.window;
	const same = base === next && start === charts.base.window.start && end === charts.base.window.end;
	const newMarks = useMarks(same ? "" : drawn(next), charts.new.window, tick);
	const yMax = sharedScale(charts.base, charts.new);
	// The next press moves a chosen point.
	const takes = picking || sides.point !== null;
	const onPoint = (t: number) => {
		changed(choosePoint(sides, t, now()));
		onPicked();
	};
	const side = (
		kind: "base" | "new",
		win: Window,
		choose: (s: Sides, w: Window) => Patch,
	) => ({
		kind,
		yMax,
		chart: charts[kind],
		marks: kind === "base" || same ? marks : newMarks,
		window: win,
		onWindow: (w: Window) => changed(choose(sides, w)),
		onPoint: takes ? onPoint : undefined,
	});
	return (
		<div class="sides">
			{!hasFiles(base) && <SidePanel title="Base" {...side("base", sides.base, chooseBase)} />}
			{!hasFiles(next) && <SidePanel title="New" {...side("new", sides.next, chooseNew)} />}
		</div>
	);
}

/** The state of choosing a point; Escape cancels it. */
function usePicking(): [boolean, (on: boolean) => void] {
	const [picking, setPicking] = useState(false);
	useEffect(() => {
		if (!picking) return;
		const end = (e: KeyboardEvent) => e.key === "Escape" && setPicking(false);
		document.addEventListener("keydown", end);
		return () => document.removeEventListener("keydown", end);
	}, [picking]);
	return [picking, setPicking];
}

interface DifferenceProps {
	sides: Sides;
	next: string;
	base: string;
	normalized: boolean;
	tick: number;
	params: URLSearchParams;
	patch: Patched;
	changed(p: Patch): void;
	folded: boolean;
	/** The line that says what is compared; folded, the verdict stands beside it. */
	line: ComponentChildren;
	ask: DiffQuery | null;
	/** Between the verdict and the result: the charts unless they are folded. */
	children: ComponentChildren;
}

const NONE: ProfileElement[] = [];

const elementsOf = (data: QueryData | undefined): ProfileElement[] =>
	data?.resultType === "profiles" ? data.result : NONE;

interface JudgedProps extends Omit<DifferenceProps, "ask"> {
	ask: DiffQuery;
	element: ProfileElement;
	/** The element is all together. */
	all: boolean;
	significance: ReturnType<typeof useSignificance>;
	/** Whether the answer is to the present question. */
	present: boolean;
	data: QueryData;
	infos: string[];
}

/** The sentence, and below it what both sides cost. */
function Judged(p: JudgedProps) {
	const { sides, next, base, normalized, tick, patch, changed } = p;
	const files = { base: hasFiles(base), next: hasFiles(next) };
	const anyFile = files.base || files.next;
	const about = aboutFromParams((k) => p.params.get(k));
	return (
		<VerdictPanel
			about={about && { function: about, ask: p.ask, all: p.all, tick }}
			onAll={() => patch({ ...aboutParams(null), pick: null }, true)}
			element={p.element}
			significance={p.significance}
			infos={p.infos}
			files={anyFile}
			seconds={anyFile ? 0 : sides.next.end - sides.next.start}
			sides={
				anyFile
					? undefined
					: {
							base: { query: base, window: sides.base },
							next: { query: next, window: sides.next },
						}
			}
			tick={tick}
			brief={p.folded}
			onOpen={(fn) => patch({ fn })}
			onAlert={(fn) => patch(newAlert(alertOn(next, fn, p.element.type ?? "")))}
			onLonger={(s) =>
				changed(chooseRange(sides, { kind: "relative", seconds: Math.ceil(s / 60) * 60 }))
			}
		>
			{p.present && !p.folded && (
				<SideTotals
					data={p.data}
					ask={p.ask}
					sides={sides}
					normalized={normalized}
					tick={tick}
					files={files}
				/>
			)}
		</VerdictPanel>
	);
}

const GRAPHS: [GraphOf, string, string][] = [
	["diff", "Difference", "New against Base"],
	["new", "New alone", "The graph of New, of all that it has"],
	["base", "Base alone", "The graph of Base, of all that it has"],
];
type GraphOf = "diff" | "new" | "base";
const GRAPHS_OF = GRAPHS.map(([v]) => v);

/** The question for one side's own graph, if that is chosen; the difference stays until its answer is there. */
function useAlone(ask: DiffQuery | null, of: GraphOf, nodes: string, tick: number) {
	const query = !ask || of === "diff" ? "" : of === "new" ? ask.next : ask.base;
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const { loaded, asked } = useQuestion(query, times, nodes, tick);
	/** The side of the answer. */
	const answered = useRef<GraphOf>("diff");
	if (query && loaded.key === asked && loaded.answer) answered.current = of;
	return { query, loaded, asked, there: query !== "" && loaded.answer !== null && answered.current === of };
}

function Difference(p: DifferenceProps) {
	const { sides, next, base, ask, tick, params, patch } = p;
	const times = { time: ask ? trimMs(ask.time) : undefined };
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const { loaded, asked } = useQuestion(ask?.query ?? "", times, nodes, tick);
	const edit = useCallback(
		(change: (q: string) => string, also: Patch = {}) =>
			patch({ new: change(next), base: change(base), zoom: null, el: null, ...also }),
		[patch, next, base],
	);
	const { answer } = loaded;
	const elements = elementsOf(answer?.data);
	const { element, all } = useElement({ elements, params });
	const known = useAnswered({ query: ask?.query ?? "", times, asked, answered: loaded.key });
	const significance = useSignificance(known, element, !all);
	const of = oneOf(params.get("side"), GRAPHS_OF);
	const alone = useAlone(ask, of, nodes, tick);
	const shown = alone.there ? alone : { query: ask?.query ?? "", loaded, asked };
	const shownAnswer = shown.loaded.answer;
	return (
		<>
			<div class={p.folded ? "compare-top folded" : "compare-top"}>
				{p.line}
				{answer && ask && element && (
					<Judged
						{...p}
						{...{ ask, element, all, significance }}
						present={loaded.key === asked}
						data={answer.data}
						infos={answer.infos}
					/>
				)}
			</div>
			{p.children}
			<Progress loaded={[loaded, alone.loaded]} />
			{loaded.error && ask && <QueryError error={loaded.error} sent={ask.query} />}
			{alone.loaded.error && <QueryError error={alone.loaded.error} sent={alone.query} />}
			<LastGood
				failed={loaded.error !== null}
				good={answer !== null && loaded.key === asked}
			>
				{shownAnswer && <Notices {...shownAnswer} />}
				{shownAnswer && ask && (
					<Results
						query={shown.query}
						times={times}
						asked={shown.asked}
						answered={shown.loaded.key}
						answer={shownAnswer}
						loading={loaded.loading || alone.loaded.loading}
						wide
						lead={
							<Segmented
								label="Graph of"
								value={of}
								options={GRAPHS}
								onChange={(v) => patch({ side: v === "diff" ? null : v })}
							/>
						}
						params={params}
						patch={patch}
						edit={edit}
						edited={[next, base]}
						grouping
						significance={alone.there ? null : significance}
						fixed={pinned(sides)}
					/>
				)}
				{!answer && loaded.loading && (
					<section class="panel">
						<div class="empty">Loading…</div>
					</section>
				)}
			</LastGood>
		</>
	);
}

/** The files of both sides. */
function FilesOfBoth(props: Pick<BothProps, "next" | "base" | "types" | "changed">) {
	const { next, base, types, changed } = props;
	if (!hasFiles(next, base)) return null;
	return (
		<section class="panel controls" aria-label="Files of this comparison">
			<FilesPanel
				queries={[base, next]}
				stored={types.answer?.data ?? []}
				edit={(change) => changed({ new: change(next), base: change(base) })}
			/>
		</section>
	);
}

export function Compare() {
	const { store, location } = useUrl();
	const { params } = location;
	const types = useProfileTypes();
	const [tick, setTick] = useState(0);
	const [picking, setPicking] = usePicking();
	const next = params.get("new") ?? "";
	const base = params.get("base") ?? "";
	const sides = useSides(params, tick);
	const normalized = params.get("norm") === "1";
	const first = useFirstMinute(types, false);
	const patch: Patched = useCallback((p, replace = false) => store.patch(p, replace), [store]);
	useFirstQuery(params, types, patch);
	const changed = (p: Patch) => {
		setTick((t) => t + 1);
		patch({ zoom: null, el: null, ...p });
	};
	const both = { sides, next, base };
	const folded = params.get("fold") === "1";
	// A point is chosen on a chart.
	const pick = (on: boolean) => {
		if (on && folded) patch({ fold: null });
		setPicking(on);
	};
	const ask = useMemo(
		() =>
			next && base
				? diffQuery(
						{ query: next, ...sides.next },
						{ query: base, ...sides.base },
						normalized,
					)
				: null,
		[next, base, sides, normalized],
	);
	const opening = useOpening((opened: OpenedFile[]) =>
		changed(openedSides(opened, { next, base }, types.answer?.data ?? [])),
	);
	return (
		<main id="main" class={`compare${picking ? " picking" : ""}${folded ? " folded" : ""}`}>
			<h1 class="visually-hidden">Compare</h1>
			<Difference
				{...both}
				{...{ ask, normalized, tick, params, patch, changed, folded }}
				line={
					<CompareBar
						{...both}
						range={newRange((k) => params.get(k))}
						{...{ params, normalized, picking, changed, folded, patch }}
						onPicking={pick}
						asked={ask && <AskedDiff ask={ask} start={sides.next.start} />}
					>
						<OpenButton of={opening} />
					</CompareBar>
				}
			>
				<OpenAround of={opening} />
				<FilesOfBoth {...{ next, base, types, changed }} />
				<Expression params={params} patch={patch} />
				{types.error && !(next && base) && <QueryError error={types.error} sent="" />}
				{first.waiting && !hasFiles(next, base) && <FirstMinutePanel first={first} />}
				{!folded && !(hasFiles(next) && hasFiles(base)) && (
					<Both
						{...both}
						types={types}
						tick={tick}
						picking={picking}
						changed={changed}
						onPicked={() => setPicking(false)}
					/>
				)}
			</Difference>
		</main>
	);
}
