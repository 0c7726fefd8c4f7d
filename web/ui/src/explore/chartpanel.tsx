// Cost over time above the results of Explore. A click opens one scrape, a drag opens a window; the
// chart keeps its own range, so that one sees where in time the open part is.
import { Chart } from "../chart/chart";
import type { CostChart } from "../chart/costchart";
import { comparableQuery, compareBefore, comparePoint, compareRange } from "../compare/sides";
import { ungrouped } from "../query/edit";
import { BY_FUNCTION } from "../query/groupby";
import { withMatcher } from "../query/query";
import type { ShownMarks } from "../marks/usemarks";
import type { QueryKind } from "../query/types";
import type { Labels } from "../shared/api";
import { Segmented } from "../shared/fields";
import { FoldButton } from "../shared/layout";
import { useUrl } from "../shared/hooks";
import { IconLeft, IconRight } from "../shared/icons";
import { QueryError } from "../shared/notices";
import {
	absolute,
	type ChartContext,
	contextToParams,
	describeRange,
	formatClock,
	formatDuration,
	NO_CONTEXT,
	rangeToParams,
	type TimeRange,
	trimMs,
	type Window,
	zoomOut,
} from "../shared/timerange";

/** What the lines and the heatmap have in common. */
export interface TimeProps {
	query: string;
	kind: QueryKind;
	range: TimeRange;
	/** The window of the results; also that of the chart while nothing is open. */
	window: Window;
	/** The chart's own window, while a part of it is open. */
	context: ChartContext | null;
	/** The time at which a rule's expression is evaluated; null if a range is asked for. */
	at: number | null;
	interval: number;
	/** The chart is folded. */
	folded: boolean;
	patch(p: Record<string, string | null>, replace?: boolean): void;
	run(query: string): void;
}

export interface ChartPanelProps extends TimeProps {
	chart: CostChart;
	marks: ShownMarks;
	stacked: boolean;
}

export type Drawing = "lines" | "heatmap";

const DRAWINGS: [Drawing, string, string][] = [
	["lines", "Lines", "Cost over time as lines"],
	["heatmap", "Heatmap", "One cell per profile: series by time"],
];

/** Lines or a heatmap. */
export function ChartTools({ patch, drawing }: Pick<TimeProps, "patch"> & { drawing: Drawing }) {
	return (
		<Segmented
			label="Chart"
			value={drawing}
			options={DRAWINGS}
			onChange={(v) => patch({ chart: v === "lines" ? null : v })}
		/>
	);
}

/** Moves in time, as patches of the address. */
export function moves(p: TimeProps) {
	const { range, at, window: win, interval, patch } = p;
	const context = p.context ?? { window: win, back: range };
	const open = (part: TimeRange) =>
		patch({ ...rangeToParams(part), ...contextToParams(context), at: null });
	return {
		open,
		/** Evaluates a rule's expression at `t`; else opens the scrape that ends there. */
		point: (t: number) =>
			at === null
				? open(absolute(t - interval, t))
				: patch({ at: trimMs(t), ...contextToParams(context) }),
		back: () =>
			at === null
				? patch(rangeToParams(context.back))
				: patch({ at: trimMs(context.window.end), ...NO_CONTEXT }),
		zoom: (part: TimeRange) => patch({ ...rangeToParams(part), at: null }),
		// The first click of a double click has opened a scrape: replace that in the history.
		out: () =>
			patch(
				{ ...rangeToParams(zoomOut(context.back, Date.now() / 1000)), at: null },
				p.context !== null,
			),
	};
}

function CompareLinks({ query, window: win, context }: TimeProps) {
	const { store } = useUrl();
	const href = (p: Record<string, string>) => store.href("compare", new URLSearchParams(p));
	if (!context)
		return <a href={href(compareBefore(query, win))}>Compare with the window before</a>;
	return (
		<>
			<span class="faint">Compare</span>
			<a href={href(compareBefore(query, win))}>with the window before</a>
			<a
				href={href(compareRange(query, context.window, win))}
				title="The whole range as new, this window as base, normalized"
			>
				the range with this point
			</a>
			<a
				href={href(comparePoint(query, win.end))}
				title="The window after this point as new, the window before as base"
			>
				before against after this point
			</a>
		</>
	);
}

/** The open part of the chart, which ends at `end`: buttons to move, zoom, compare and go back. */
export function OpenedPart(p: TimeProps & { context: ChartContext; end: number }) {
	const { window: win, context, at, interval } = p;
	const { open, zoom, back } = moves(p);
	const width = win.end - win.start;
	const step = (by: number) => open(absolute(win.start + by * width, win.end + by * width));
	const one = Math.abs(width - interval) < 0.001;
	const range = describeRange({ kind: "absolute", ...win });
	return (
		<div class="opened">
			<strong role="status">
				{at !== null
					? `One time: ${formatClock(at)}`
					: `${one ? "One scrape" : "A window"}: ${range} (${formatDuration(width)})`}
			</strong>
			{at === null && (
				<div class="group">
					<button
						type="button"
						aria-label="The one before"
						disabled={win.start <= context.window.start}
						onClick={() => step(-1)}
					>
						<IconLeft />
					</button>
					<button
						type="button"
						aria-label="The next one"
						disabled={win.end >= p.end}
						onClick={() => step(1)}
					>
						<IconRight />
					</button>
				</div>
			)}
			<button type="button" class="back" onClick={back}>
				Back to {context.back.kind === "relative" ? "the last " : ""}
				{context.back.kind === "relative"
					? formatDuration(context.back.seconds)
					: "the range"}
			</button>
			{at === null && (
				<button
					type="button"
					title="Also by shift and drag"
					onClick={() => zoom({ kind: "absolute", ...win })}
				>
					Zoom the chart here
				</button>
			)}
			{at === null && comparableQuery(p.query, p.kind) && <CompareLinks {...p} />}
		</div>
	);
}

const HOW =
	"Click to open one scrape, drag to open a window, Shift and drag to zoom, double " +
	"click to zoom out. Keyboard: arrows move, Enter opens.";

function Head(p: ChartPanelProps) {
	const { chart, kind, stacked, patch } = p;
	const rates = chart.mean;
	const mean = rates?.of({}) ?? null;
	return (
		<div class="panel-head">
			<h2>Cost over time</h2>
			{mean !== null && (
				<b class="mean" title="Mean over the window, since the first profile">
					{rates?.unit.format(mean)}
				</b>
			)}
			<span class="faint">{chart.unit.label}</span>
			<span class="spacer" />
			{!p.context && p.at === null && comparableQuery(p.query, kind) && <CompareLinks {...p} />}
			{kind !== "costs" && chart.matrix.length > 1 && (
				<label class="toggle">
					<input
						type="checkbox"
						checked={stacked}
						onChange={() => patch({ stack: stacked ? null : "1" })}
					/>
					Stacked
				</label>
			)}
			{kind !== "costs" && p.at === null && <ChartTools patch={patch} drawing="lines" />}
			<span class="faint" title={HOW}>
				step {formatDuration(chart.step)} · click or drag to open
			</span>
			<FoldButton name="Chart" on={p.folded} patch={patch} />
		</div>
	);
}

/** A press on a line's name narrows the query to it, or highlights the function. */
function picks({ query, kind, patch, run }: ChartPanelProps) {
	const labels = (metric: Labels) => Object.entries(metric).filter(([l]) => l !== BY_FUNCTION);
	return {
		pickHint: (metric: Labels) =>
			kind === "costs" || Object.keys(metric).length === 0
				? ""
				: metric.function
					? "Highlight this function below"
					: "Narrow the query to this line",
		onPick: (metric: Labels) => {
			if (metric.function) return patch({ pick: metric.function }, true);
			const narrow = (q: string, [l, v]: [string, string]) => withMatcher(q, l, v);
			run(ungrouped(labels(metric).reduce(narrow, query)));
		},
	};
}

/** A step is drawn when it is over, so data younger than one step is not drawn yet. */
const NOTHING_DRAWN = "No data at this resolution. Zoom in.";

export function ChartPanel(p: ChartPanelProps) {
	const { chart, at, interval, window: win } = p;
	const { open, point, zoom, out } = moves(p);
	const mark = at === null ? win : { start: at - interval, end: at };
	const { loaded } = chart;
	const state = loaded.loading ? " busy" : loaded.error ? " stale" : "";
	return (
		<section class={`panel chart-panel${state}`}>
			<Head {...p} />
			{loaded.error && <QueryError error={loaded.error} sent={chart.sent} />}
			{!p.folded && (!loaded.error || loaded.answer) && (
				<Chart
					matrix={chart.matrix}
					unit={chart.unit}
					window={chart.window}
					step={chart.step}
					stacked={p.stacked && p.kind !== "costs"}
					mark={p.context ? mark : undefined}
					marks={p.marks}
					label={`Cost over time, ${chart.unit.label}`}
					empty={loaded.answer ? NOTHING_DRAWN : ""}
					meanOf={chart.rates?.words}
					{...picks(p)}
					onSelect={(a, b, zooms) =>
						(zooms ? zoom : open)(absolute(Math.floor(a), Math.ceil(b)))
					}
					onPoint={point}
					onOut={out}
				/>
			)}
			{/* Below the chart: it must not move away under the pointer. */}
			{p.context && <OpenedPart {...p} context={p.context} end={chart.window.end} />}
		</section>
	);
}
