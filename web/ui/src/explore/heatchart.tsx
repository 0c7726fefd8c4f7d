// The heatmap in place of the lines: a cell opens one profile of one row as a flame graph, and the
// lines of that row take the heatmap's place until one goes back.
import { HeatPanel } from "../heat/heatpanel";
import { type HeatState, type CellOpening, useHeat } from "../heat/useheat";
import { groupLabels, ungrouped } from "../query/edit";
import type { ShownMarks } from "../marks/usemarks";
import type { QueryKind } from "../query/types";
import type { ProfileType } from "../shared/api";
import { FoldButton } from "../shared/layout";
import { absolute, contextToParams, rangeToParams } from "../shared/timerange";
import { ChartTools, moves, OpenedPart, type TimeProps } from "./chartpanel";

export interface HeatAsk {
	/** "" asks nothing. */
	query: string;
	kind: QueryKind;
	window: TimeProps["window"];
	/** Null: not known. */
	type: ProfileType | null;
	/** The types are known, or cannot be. */
	ready: boolean;
	tick: number;
}

/** The rows are series or groups: functions of one profile are in its flame graph. */
export function useHeatChart({ ready, query, ...ask }: HeatAsk): HeatState {
	const [label = "", ...more] = groupLabels(query);
	const by = more.length ? "" : label;
	return useHeat({ ...ask, query: by ? ungrouped(query) : query, by, on: ready && query !== "" });
}

/** The flame graph of what a cell shows, whatever was shown of another one. */
const opened = (params: URLSearchParams, { query, largest }: CellOpening) => ({
	query,
	chart: null,
	level: largest ? "max" : null,
	...{ match: null, since: null, zoom: null, el: null, fn: null, src: null },
	...(["table", "tree"].includes(params.get("view") ?? "") ? { view: null } : {}),
});

export function HeatChart(p: TimeProps & { state: HeatState; marks: ShownMarks; params: URLSearchParams }) {
	const { context, window: win, range, state, params, patch } = p;
	const { open, zoom } = moves(p);
	const back = context ?? { window: win, back: range };
	const fold = <FoldButton name="Chart" on={p.folded} patch={patch} />;
	if (p.folded)
		return (
			<section class="panel chart-panel">
				<div class="panel-head">
					<h2>Heatmap</h2>
					<span class="spacer" />
					<ChartTools patch={patch} drawing="heatmap" />
					{fold}
				</div>
				{context && <OpenedPart {...p} context={context} end={context.window.end} />}
			</section>
		);
	return (
		<HeatPanel
			state={state}
			window={back.window}
			mark={context ? win : null}
			marks={p.marks}
			tools={
				<>
					<ChartTools patch={patch} drawing="heatmap" />
					{fold}
				</>
			}
			onOpen={(opening) => {
				const { start, end } = opening.window;
				patch({
					...rangeToParams(absolute(start, end)),
					...contextToParams(back),
					...opened(params, opening),
				});
			}}
			onSelect={(a, b, zooms) => (zooms ? zoom : open)(absolute(Math.floor(a), Math.ceil(b)))}
		>
			{context && <OpenedPart {...p} context={context} end={context.window.end} />}
		</HeatPanel>
	);
}
