// One side of a comparison: its query, its window, and a chart around the window.
import { Chart } from "../chart/chart";
import { largestValue } from "../chart/series";
import { type ChartData, useChart } from "../chart/usechart";
import type { ShownMarks } from "../marks/usemarks";
import { chartQuery, withRate } from "../query/query";
import { findSelectors } from "../query/read";
import { type ProfileType, resolveType } from "../shared/api";
import { QueryError } from "../shared/notices";
import { useTheme } from "../shared/theme";
import { chooseStep, formatDuration, formatSpan, type Window } from "../shared/timerange";
import { surroundings } from "./sides";

const EMPTY: never[] = [];

/** Cost over time around the window of a side. */
export function useSideChart(
	query: string,
	win: Window,
	types: ProfileType[],
	interval: number | null,
	tick: number,
): ChartData {
	const type = resolveType(findSelectors(query)[0]?.name ?? "", types);
	const around = surroundings(win, Date.now() / 1000);
	const asked = query ? chartQuery(query, "", "profiles") : "";
	return useChart(
		type?.delta ? withRate(asked, chooseStep(around, interval ?? 15)) : asked,
		around,
		interval,
		type?.type ?? "",
		tick,
	);
}

/** The common scale of both charts, if they have the same unit. */
export function sharedScale(a: ChartData, b: ChartData): number | undefined {
	const top = (c: ChartData) =>
		largestValue(c.loaded.answer?.data.result ?? EMPTY, c.unit.factor);
	return a.unit.label === b.unit.label ? Math.max(top(a), top(b)) : undefined;
}

export type SideKind = "base" | "new";

/** The colours of both sides, as `--faint` and `--accent` of style.css. */
const SIDE_COLORS = {
	light: { base: "rgb(100,109,123)", new: "rgb(181,74,26)" },
	dark: { base: "rgb(138,147,162)", new: "rgb(240,138,75)" },
};

export interface SideProps {
	title: string;
	kind: SideKind;
	window: Window;
	chart: ChartData;
	marks: ShownMarks;
	yMax: number | undefined;
	onWindow(w: Window): void;
	/** A press on the chart chooses a point, if given. */
	onPoint?(t: number): void;
}

export function SidePanel(props: SideProps) {
	const { title, kind, window: win, chart } = props;
	const theme = useTheme();
	return (
		<section class={`panel side ${kind}`} aria-label={title}>
			<div class="panel-head">
				<h2>
					<i class="side-mark" />
					{title}
				</h2>
				<span class="faint">
					{formatSpan(win)}
					{" · "}
					{formatDuration(Math.round(win.end - win.start))}
				</span>
				<span class="spacer" />
				<span class="faint" title="Drag on the chart to choose another window">
					{chart.unit.label} · step {formatDuration(chart.step)}
				</span>
			</div>
			{chart.loaded.error && <QueryError error={chart.loaded.error} sent={chart.sent} />}
			{(!chart.loaded.error || chart.loaded.answer) && (
				<Chart
					matrix={chart.loaded.answer?.data.result ?? EMPTY}
					unit={chart.unit}
					window={chart.window}
					step={chart.step}
					mark={win}
					marks={props.marks}
					height={62}
					color={SIDE_COLORS[theme][kind]}
					yMax={props.yMax}
					label={`Cost over time, ${title.toLowerCase()}, ${chart.unit.label}`}
					debugName={`chart-${kind}`}
					onSelect={(a, b) => props.onWindow({ start: Math.floor(a), end: Math.ceil(b) })}
					onPoint={props.onPoint}
				/>
			)}
		</section>
	);
}
