// Above the profiles of a level: how it grows, when it reaches a limit, which value of the window is
// shown, and who holds it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { FunctionName } from "../flame/functionname";
import { buildFlame } from "../flame/layout";
import { flameQuery } from "../query/query";
import type { MatrixElement, ProfileElement } from "../shared/api";
import { publish } from "../shared/debug";
import { Segmented } from "../shared/fields";
import { useApi } from "../shared/hooks";
import { Scroll } from "../shared/layout";
import { alignWindow, trimMs, type Window } from "../shared/timerange";
import { formatPercent, formatValue, share } from "../shared/units";
import type { Patch } from "../shared/urlstate";
import {
	goroutines,
	grownIn,
	growth,
	growthWords,
	type Holder,
	holders,
	type LevelOf,
	LEVELS,
	limitWords,
	parseAmount,
	type Point,
} from "./levels";
import "./levelpanel.css";

export interface LevelPanelProps {
	/** The profiles, without a window. */
	query: string;
	window: Window;
	/** The scrape interval in seconds. */
	interval: number;
	element: ProfileElement;
	level: LevelOf;
	/** Whether the query lets choose it. */
	choosable: boolean;
	limit: string;
	/** The address that compares the end of a window with its beginning. */
	compare(w: Window): string;
	tick: number;
	patch(p: Patch): void;
	onOpen(name: string): void;
}

const POINTS = 120;
const ROWS = 6;

const stepOf = ({ window: win, interval }: LevelPanelProps): number =>
	Math.max(1, interval) * Math.max(1, Math.ceil((win.end - win.start) / POINTS / interval));

function usePoints(props: LevelPanelProps): Point[] | null {
	const { query, window: win, tick } = props;
	const step = stepOf(props);
	const { start, end } = alignWindow(win, step);
	const asks = start + step <= end; // a window of one scrape has no points
	const args = {
		query: `total(${flameQuery(query)})`,
		start: trimMs(start + step),
		end: trimMs(end),
		step: String(step),
	};
	const { answer } = useApi<{ result: MatrixElement[] }>(
		asks ? JSON.stringify([args, tick]) : null,
		"query_range",
		args,
	);
	return useMemo(() => {
		if (!asks) return [];
		if (!answer) return null;
		const at = new Map<number, number>();
		for (const m of answer.data.result)
			for (const [t, v] of m.values) at.set(t, (at.get(t) ?? 0) + Number(v));
		return [...at].sort((a, b) => a[0] - b[0]);
	}, [asks, answer]);
}

function LimitField({ limit, patch }: Pick<LevelPanelProps, "limit" | "patch">) {
	const wrong = limit !== "" && parseAmount(limit) === null;
	return (
		<label class="select limit" title="For example 512MiB, 2Gi, 10k">
			<span class="faint">Limit</span>
			<input
				key={limit}
				type="text"
				aria-label="Limit"
				placeholder="none"
				value={limit}
				aria-invalid={wrong}
				onChange={(e) => patch({ limit: (e.target as HTMLInputElement).value.trim() || null })}
			/>
			{wrong && <span class="worse">not an amount: try 512MiB or 10k</span>}
		</label>
	);
}

function Holders(props: {
	rows: Holder[];
	unit: string;
	total: number;
	goroutine: boolean;
	onOpen(name: string): void;
}) {
	const { rows, unit, total, goroutine, onOpen } = props;
	const [all, setAll] = useState(false);
	const shown = all ? rows : rows.slice(0, ROWS);
	return (
		<Scroll label="Holders">
			<table class="plain holders">
				<thead>
					<tr>
						<th title="Function of the program nearest to the leaf">
							{goroutine ? "Waits in" : "Held by"}
						</th>
						{goroutine && <th>Waits for</th>}
						{goroutine && <th title="Entry function of the goroutine">Started as</th>}
						<th class="num">{goroutine ? "Goroutines" : "Holds"}</th>
						<th class="num">Share</th>
					</tr>
				</thead>
				<tbody>
					{shown.map((h) => (
						<tr key={h.name + h.started + h.waits}>
							<td>
								<button type="button" class="fn-link" onClick={() => onOpen(h.name)}>
									<FunctionName name={h.name} />
								</button>
							</td>
							{goroutine && <td>{h.waits}</td>}
							{goroutine && (
								<td>
									<FunctionName name={h.started} />
								</td>
							)}
							<td class="num">{formatValue(h.value, unit)}</td>
							<td class="num">{formatPercent(share(h.value, total))}</td>
						</tr>
					))}
				</tbody>
			</table>
			{rows.length > ROWS && (
				<button type="button" class="quiet small" onClick={() => setAll(!all)}>
					{all ? "Show fewer" : `${rows.length - ROWS} more`}
				</button>
			)}
		</Scroll>
	);
}

function useHolders(element: ProfileElement): { rows: Holder[]; goroutine: boolean } {
	const goroutine = /^goroutine(leak)?:/.test(element.type ?? "");
	const rows = useMemo(() => {
		try {
			const flame = buildFlame(element.flamebearer);
			return goroutine ? goroutines(flame) : holders(flame);
		} catch {
			return []; // the flame graph says why
		}
	}, [element, goroutine]);
	return { rows, goroutine };
}

export function LevelPanel(props: LevelPanelProps) {
	const { element, level, limit, patch } = props;
	const { unit } = element;
	const points = usePoints(props);
	const grown = useMemo(() => points && growth(points), [points]);
	const { rows, goroutine } = useHolders(element);
	useEffect(() => {
		publish("level", () => points && { growth: grown, rows, points });
		return () => publish("level", null);
	}, [points, grown, rows]);
	const amount = parseAmount(limit);
	return (
		<section class="panel levels" aria-label="Level">
			<div class="row wrap">
				<p role="status">
					{points ? (
						<>
							<b>{growthWords(grown, unit)}</b> {amount && limitWords(grown, amount, unit)}
						</>
					) : (
						<span class="faint">Computing the trend…</span>
					)}
				</p>
				<LimitField limit={limit} patch={patch} />
				{props.choosable ? (
					<span class="row level-of">
						<span class="faint">Value of the window</span>
						<Segmented
							label="Value of the window"
							value={level}
							options={LEVELS}
							onChange={(v) => patch({ level: v === "mean" ? null : v, zoom: null })}
						/>
					</span>
				) : (
					<span class="faint">The query sets the value of the window</span>
				)}
				<a
					href={props.compare(grownIn(props.window, points, grown, stepOf(props)))}
					title="End of the window as new, start of the growth as base"
				>
					What grew?
				</a>
			</div>
			{rows.length > 0 && (
				<Holders
					{...{ rows, unit, goroutine }}
					total={element.total}
					onOpen={props.onOpen}
				/>
			)}
		</section>
	);
}
