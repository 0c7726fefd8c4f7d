// Asks for the heatmap: first the rows, which are few whatever is stored, then their cells, and beside
// them how many profiles each has; last those rows again whose profiles end at the edge of a column. A
// shown heatmap stays until the next one is complete.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { chartWindow } from "../query/query";
import { useActiveTargets } from "../query/questions";
import type { Labels, MatrixElement, ProfileType, VectorElement } from "../shared/api";
import { type Loaded, useApi, useOwnAnswer } from "../shared/hooks";
import { alignWindow, chooseStep, trimMs, type Window } from "../shared/timerange";
import { chartUnit, type ChartUnit } from "../shared/units";
import { stepsApart, countAt, endOf, type Heat, heatOf, onEdge, type HeatRows, heatRows, shifted } from "./cells";
import { columnsFor } from "./grid";
import {
	type Asked,
	cellsQuery,
	countsQuery,
	onlyRows,
	openedQuery,
	rowsQuery,
	targetsInterval,
} from "./heatqueries";

export interface HeatQuestion extends Asked {
	/** Nothing is asked while it is not. */
	on: boolean;
	window: Window;
	/** The selected type; null if it is not known. */
	type: ProfileType | null;
	tick: number;
}

/** An answer with all that is said of it. */
export interface ShownHeat {
	heat: Heat;
	unit: ChartUnit;
	rows: HeatRows;
	/** Which query it is of, as the user has it. */
	asked: Asked;
	/** The query of the cells. */
	sent: string;
	/** Of levels: each cell is the largest profile of its column. */
	largest: boolean;
}

/** What a cell opens: the query of its row, and the window of its profile. */
export interface CellOpening {
	query: string;
	window: Window;
	/** Of several profiles of a level, the flame graph shall be of the largest, as the cell is. */
	largest: boolean;
}

export interface HeatState {
	/** The last complete answer; null before the first one, and without rows. */
	shown: ShownHeat | null;
	/** It is the answer to the present question. */
	fresh: boolean;
	/** The answer has no rows. */
	empty: boolean;
	loading: boolean;
	error: Loaded<unknown>["error"];
	/** The query that failed. */
	failed: string;
	step: number;
	/** The questions, to cancel them. */
	loaded: Loaded<unknown>[];
	/** The width of the panel, on which the number of columns depends. */
	measure(width: number): void;
}

interface Vector {
	resultType: string;
	result: VectorElement[];
}
interface Matrix {
	resultType: string;
	unit?: string;
	result: MatrixElement[];
}

const UNKNOWN_S = 1;
/** Columns are made wider if profiles are at least so many steps apart. */
const SPARSE = 1.5;

/** The distance of the columns' profiles: that of the targets, else what the answers teach. */
function useDistance(q: HeatQuestion) {
	const targets = useActiveTargets(q.on);
	const [learned, setLearned] = useState({ about: "", seconds: UNKNOWN_S });
	const about = JSON.stringify([q.query, q.by]);
	const known = useMemo(
		() => targetsInterval(targets.answer?.data.activeTargets ?? [], q.type?.name ?? "", q.query),
		[targets.answer, q.type, q.query],
	);
	return {
		ready: targets.answer !== null || targets.error !== null,
		seconds: known ?? (learned.about === about ? learned.seconds : UNKNOWN_S),
		known: known !== null,
		learn: (seconds: number) => setLearned({ about, seconds }),
	};
}

/** A longer distance that the answer shows; null if there is none. */
function longerThan(heat: Heat): number | null {
	const steps = stepsApart(heat) || 1;
	return steps >= SPARSE ? Math.round(steps * heat.step) : null;
}

/** The rows that cost most. A repeated question keeps its rows until the next ones are known. */
function useRows(q: HeatQuestion, asked: Asked, window: Window, on: boolean) {
	const sent = rowsQuery(asked);
	const args = { query: sent, start: trimMs(window.start), end: trimMs(window.end) };
	const key = on ? JSON.stringify([args, q.tick]) : null;
	const loaded = useApi<Vector>(key, "query", args);
	const data = useOwnAnswer(loaded, key, JSON.stringify(asked))?.data;
	const rows = useMemo(() => data && heatRows(data.result), [data]);
	return { loaded, sent, rows };
}

function useSteps(query: string, window: Window, step: number, tick: number) {
	const args = {
		query,
		start: trimMs(window.start),
		end: trimMs(window.end),
		step: String(step),
	};
	const key = query ? JSON.stringify([args, tick]) : null;
	const loaded = useApi<Matrix>(key, "query_range", args);
	const fresh = loaded.key === key && !loaded.error ? loaded.answer : null;
	return { loaded, answer: fresh?.data ?? null };
}

/** The unit of the cells; an answer without points has none, then it is that of the type. */
function cellUnit(matrix: Matrix, type: string, sent: string, step: number): ChartUnit {
	const own = type.split(":")[2] ?? "";
	const unit = matrix.unit ?? (matrix.result.length ? "" : own);
	return chartUnit(own === unit ? type : "", unit, chartWindow(sent, step));
}

export function useHeat(q: HeatQuestion): HeatState {
	const { query, kind, by, type, tick } = q;
	const [width, measure] = useState(0);
	const interval = useDistance(q);
	const on = q.on && query !== "" && width > 0 && interval.ready;
	const step = chooseStep(q.window, interval.seconds, columnsFor(width));
	const whole = alignWindow(q.window, step);
	// The times of the columns are their ends, so that together they cover the window.
	const [start, end] = [Math.min(whole.start + step, whole.end), whole.end];
	const window = { start, end };
	const asked = useMemo((): Asked => ({ query, kind, by }), [query, kind, by]);
	const { loaded: rowsLoaded, sent: rowsSent, rows } = useRows(q, asked, whole, on);

	const some = on && rows?.rows.length ? rows : null;
	const kept = some?.rows.map((r) => r.metric) ?? [];
	const few = some ? { ...asked, query: onlyRows(query, kept, some.all) } : null;
	const delta = type ? type.delta : null;
	const sent = few ? cellsQuery(few, delta, step) : "";
	const cells = useSteps(sent, window, step, tick);
	const counts = useSteps(few ? countsQuery(few, step) : "", window, step, tick);

	const even = useMemo((): Heat | null => {
		if (!cells.answer || !some || counts.loaded.loading) return null;
		return heatOf(some.rows, cells.answer.result, counts.answer?.result ?? null, { start, end }, step);
	}, [cells.answer, counts.answer, counts.loaded.loading, some, start, end, step]);

	// Rows at the edge of the columns are asked for again, half a column earlier.
	const { known } = interval;
	const longer = useMemo(() => (even && !known ? longerThan(even) : null), [even, known]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: each distance is learned once
	useEffect(() => {
		if (longer !== null) interval.learn(longer);
	}, [longer]);
	const edge = useMemo(() => (even && longer === null ? onEdge(even) : []), [even, longer]);
	const edgeRows = edge.map((r) => kept[r]);
	const again = some && edge.length ? onlyRows(query, edgeRows, some.all) : "";
	const shift = -step / 2;
	const moved = { start: window.start + shift, end: window.end + shift };
	const shiftedSent = again ? cellsQuery({ ...asked, query: again }, delta, step) : "";
	const beside = useSteps(shiftedSent, moved, step, tick);

	const shown = useMemo((): ShownHeat | null => {
		if (!even || longer !== null || !cells.answer || !some) return null;
		if (edge.length && !beside.answer) return null;
		return {
			heat: beside.answer ? shifted(even, edge, beside.answer.result, shift) : even,
			unit: cellUnit(cells.answer, type?.type ?? "", sent, step),
			...{ rows: some, asked, sent, largest: delta === false },
		};
	}, [even, longer, edge, cells.answer, beside.answer, some, asked, sent, type, delta, step, shift]);

	const empty = on && rows?.rows.length === 0 && !rowsLoaded.loading && !rowsLoaded.error;
	const last = useRef<ShownHeat | null>(null);
	if (shown || empty || !q.on) last.current = shown;
	const questions = [cells, counts, beside].map((s) => s.loaded);
	const error = rowsLoaded.error ?? cells.loaded.error ?? beside.loaded.error;
	return {
		shown: last.current,
		fresh: shown !== null,
		empty,
		loading: rowsLoaded.loading || questions.some((l) => l.loading),
		error,
		failed: rowsLoaded.error ? rowsSent : sent,
		step,
		loaded: [rowsLoaded, ...questions],
		measure,
	};
}

/** What a click on a cell opens; null where there is no profile. */
export function openingOf({ heat, rows, asked, largest }: ShownHeat, cell: number): CellOpening | null {
	if (cell < 0 || Number.isNaN(heat.values[cell])) return null;
	const end = endOf(heat, cell);
	const metric: Labels = heat.rows[Math.floor(cell / heat.times.length)].metric;
	return {
		query: openedQuery(asked, metric, rows.all),
		window: { start: end - heat.step, end },
		largest: largest && countAt(heat, cell) !== 1,
	};
}
