// The panel of the heatmap on Explore: its head, the errors of its questions, why it is empty, the
// hottest cell, and the query of the cells.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { ShownMarks } from "../marks/usemarks";
import { useUrl } from "../shared/hooks";
import { LastGood } from "../shared/lastgood";
import { attached } from "../shared/must";
import { QueryError } from "../shared/notices";
import { describeRange, formatDuration, type Window } from "../shared/timerange";
import { cellWords, restWords } from "./cells";
import { Heatmap } from "./heatmap";
import { type HeatState, type CellOpening, openingOf, type ShownHeat } from "./useheat";

export interface HeatPanelProps {
	state: HeatState;
	/** The window that was asked for, in which there may be nothing. */
	window: Window;
	/** An open part of the window. */
	mark: Window | null;
	/** Deploys in the window. */
	marks: ShownMarks;
	/** At the right of the head. */
	tools: ComponentChildren;
	/** Below the heatmap. */
	children: ComponentChildren;
	onOpen(opening: CellOpening): void;
	/** A drag over a part of the window; `zoom` if Shift is held. */
	onSelect(start: number, end: number, zoom: boolean): void;
}

/** The most expensive profile, one press away: its cell may be a pixel wide. */
function Hottest({ shown, onOpen }: { shown: ShownHeat; onOpen(cell: number): void }) {
	const { heat, unit } = shown;
	if (heat.hottest < 0) return null;
	if (heat.max === 0) return <span>All profiles in this window have zero cost.</span>;
	const { row, time, value } = cellWords(heat, unit, heat.hottest);
	return (
		<span class="heat-hottest">
			Hottest:{" "}
			<button
				type="button"
				class="small"
				title="Flame graph of this profile"
				onClick={() => onOpen(heat.hottest)}
			>
				{value}, {row}, {time}
			</button>
		</span>
	);
}

function Foot({ shown, onOpen }: { shown: ShownHeat; onOpen(cell: number): void }) {
	const { store, location } = useUrl();
	const { sent, rows } = shown;
	const params = new URLSearchParams({ query: sent });
	for (const name of ["range", "from", "to"]) {
		const value = location.params.get(name);
		if (value !== null) params.set(name, value);
	}
	const rest = restWords(rows);
	return (
		<div class="heat-foot">
			<Hottest shown={shown} onOpen={onOpen} />
			{rest && <span>{rest}</span>}
			<span class="heat-query">
				Cells: <code>{sent}</code>{" "}
				<a href={store.href("explore", params)} title="Edit the query of the cells">
					Edit
				</a>
			</span>
		</div>
	);
}

function whyEmpty({ shown, empty, loading }: HeatState, window: Window): string {
	if (loading && !shown) return "Loading…";
	if (empty)
		return (
			`No profiles of this query in this window, ` +
			`${describeRange({ kind: "absolute", ...window })}.`
		);
	if (shown && shown.heat.hottest < 0)
		return "No data at this resolution. Zoom in.";
	return "";
}

/** As in heat.css. */
const PAD_PX = 12;

export function HeatPanel(p: HeatPanelProps) {
	const { state } = p;
	const { shown, error, loading, step } = state;
	const box = useRef<HTMLElement>(null);
	// The first question needs the width, before there is a canvas.
	// biome-ignore lint/correctness/useExhaustiveDependencies: later the canvas measures
	useLayoutEffect(() => {
		if (!shown) state.measure(attached(box).clientWidth - 2 * PAD_PX);
	}, []);
	const open = (cell: number) => {
		const opening = shown && openingOf(shown, cell);
		if (opening) p.onOpen(opening);
	};
	const why = whyEmpty(state, p.window);
	const busy = loading ? " busy" : error ? " stale" : "";
	return (
		<section class={`panel heat-panel${busy}`} ref={box} aria-label="Heatmap">
			<div class="panel-head">
				<h2>Single profiles over time</h2>
				{shown && <span class="faint">{shown.unit.label}</span>}
				<span class="spacer" />
				{p.tools}
				<span
					class="faint"
					title="Click to open one profile, drag to open a window, Shift and drag to zoom."
				>
					columns of {formatDuration(step)}
					{shown?.largest ? ", the largest of each" : ""} · click or drag to open
				</span>
			</div>
			{error && <QueryError error={error} sent={state.failed} />}
			<LastGood failed={error !== null} good={state.fresh || state.empty}>
				{why && <div class="empty">{why}</div>}
				{shown && shown.heat.hottest >= 0 && (
					<>
						<Heatmap
							heat={shown.heat}
							unit={shown.unit}
							sent={shown.sent}
							mark={p.mark}
							marks={p.marks}
							onOpen={open}
							onSelect={p.onSelect}
							onWidth={state.measure}
						/>
						<Foot shown={shown} onOpen={open} />
					</>
				)}
			</LastGood>
			{p.children}
		</section>
	);
}
