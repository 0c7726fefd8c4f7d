// The functions of a profile by cost, as the server's top() gives them; and costs as a table.
import { useMemo } from "preact/hooks";
import { FunctionName } from "../flame/functionname";
import type { TopElement, TopRow, VectorElement } from "../shared/api";
import { IconBell, IconCode, IconMark } from "../shared/icons";
import { unnamedOf } from "../shared/symbols";
import { type Column, Table } from "../shared/table";
import {
	formatPercent,
	formatSigned,
	formatValue,
	parseSample,
	trend,
} from "../shared/units";
import { timesText } from "../verdict/blame";
import { isFolded } from "./filters";
import type { Bases } from "./bases";
import { boundsOf, type Change, isProved, middleOf, rankOf, wordsOf } from "../verdict/verdict";

export interface TopTableProps {
	element: TopElement;
	diff: boolean;
	filter: RegExp | null;
	/** The function highlighted in the flame graph. */
	picked?: string;
	/** A click on a row: shows the function between callers and callees. */
	onOpen?(name: string): void;
	/** Highlights a function in the flame graph beside the table. */
	onPick?(name: string): void;
	/** Begins an alert on a function. */
	onAlert?(name: string): void;
	/** Shows a function's file with the cost of each line. */
	onSource?(name: string): void;
	/** In a difference: how each function's share changed. */
	changes?: Map<string, Change>;
	/** In a difference: the base's costs, null while unknown. */
	bases?: Bases | null;
	/** In a difference: which rows are shown; the chips above the table choose. */
	kind?: RowKind;
	onKind?(kind: RowKind): void;
}

export const ROW_KINDS = ["all", "new", "gone", "changed", "significant"] as const;
export type RowKind = (typeof ROW_KINDS)[number];

const KIND_TEXTS: Record<RowKind, [string, string]> = {
	all: ["All", "Every function of both sides"],
	new: ["New", "Functions that Base does not have"],
	gone: ["Gone", "Functions that New does not have"],
	changed: ["Changed", "Functions of both sides whose cost differs"],
	significant: ["Significant", "Functions whose change is more than chance"],
};

/** What became of a function, by its cost with all that it calls; "all": nothing. null: Base's cost is not known. */
function kindOfRow(r: TopRow, bases: Bases): RowKind | null {
	const own = bases.rows.get(r.function);
	if (!own && !bases.whole) return null;
	const base = own?.cum ?? 0;
	const next = base + r.cum;
	if (!base !== !next) return next ? "new" : "gone";
	return r.cum || r.flat ? "changed" : "all";
}

/** The rows of each kind; null while the base is not known. */
function rowsByKind(
	rows: TopRow[],
	bases: Bases | null,
	changes: Map<string, Change> | undefined,
): Map<RowKind, TopRow[]> | null {
	if (!bases) return null;
	const kinds = rows.map((r) => kindOfRow(r, bases));
	const of = (kind: RowKind): [RowKind, TopRow[]] => [kind, rows.filter((_, i) => kinds[i] === kind)];
	const out = new Map([["all", rows] as [RowKind, TopRow[]], of("new"), of("gone"), of("changed")]);
	if (changes) out.set("significant", rows.filter((r) => isProved(changes.get(r.function))));
	return out;
}

/** Chips that choose rows by what became of the function, with how many there are. */
function RowKinds(props: { kinds: Map<RowKind, TopRow[]> | null; kind: RowKind; onKind(kind: RowKind): void }) {
	const { kinds, kind, onKind } = props;
	const offered = ROW_KINDS.filter((k) => k !== "significant" || kinds?.has(k) || k === kind);
	return (
		<div class="row-kinds" role="group" aria-label="Rows by what became of the function">
			{offered.map((k) => (
				<button
					key={k}
					type="button"
					title={KIND_TEXTS[k][1]}
					aria-pressed={k === kind}
					onClick={() => onKind(k === kind ? "all" : k)}
				>
					{KIND_TEXTS[k][0]} <b>{kinds?.get(k)?.length.toLocaleString("en") ?? ""}</b>
				</button>
			))}
		</div>
	);
}

type Highlight = Pick<TopTableProps, "picked" | "onPick" | "onAlert" | "onSource">;

function nameColumn({ picked, onPick, onAlert, onSource }: Highlight): Column<TopRow> {
	/** A button in the row, which is a button of its own. */
	const does = (run: (name: string) => void, name: string) => (e: Event) => {
		e.stopPropagation();
		run(name);
	};
	const mark = (name: string, run: (name: string) => void) => (
		<button
			type="button"
			class="quiet"
			tabIndex={-1}
			title="Highlight in the flame graph (space bar)"
			aria-label="Highlight in the flame graph"
			aria-pressed={name === picked}
			onClick={does(run, name)}
		>
			<IconMark />
		</button>
	);
	const alert = (name: string, run: (name: string) => void) => (
		<button
			type="button"
			class="quiet"
			tabIndex={-1}
			title="Alert when it costs more"
			aria-label="Alert when it costs more"
			onClick={does(run, name)}
		>
			<IconBell />
		</button>
	);
	const source = (name: string, run: (name: string) => void) => (
		<button
			type="button"
			class="quiet"
			tabIndex={-1}
			title="Source: lines with their cost"
			aria-label="Source: lines with their cost"
			onClick={does(run, name)}
		>
			<IconCode />
		</button>
	);
	return {
		key: "function",
		title: "Function",
		width: "minmax(220px, 1fr)",
		sort: (r) => r.function,
		cell: (r) => (
			<span class="fn-cell">
				<FunctionName name={r.function} />
				{onSource && !isFolded(r.function) && !unnamedOf(r.function) && source(r.function, onSource)}
				{onAlert && r.function && !isFolded(r.function) && alert(r.function, onAlert)}
				{onPick && mark(r.function, onPick)}
			</span>
		),
	};
}

function plainColumns(unit: string, highlight: Highlight): Column<TopRow>[] {
	const value = (key: "flat" | "cum", title: string, hint: string): Column<TopRow> => ({
		key,
		title,
		hint,
		numeric: true,
		width: "74px",
		sort: (r) => Math.abs(r[key]), // as pprof: costs below 0 count as much
		cell: (r) => formatValue(r[key], unit),
	});
	const percent = (
		key: "flat_percent" | "sum_percent" | "cum_percent",
		title: string,
		hint: string,
		bar: boolean,
	): Column<TopRow> => ({
		key,
		title,
		hint,
		numeric: true,
		width: "72px",
		sort: (r) => r[key],
		cell: (r) => formatPercent(r[key]),
		...(bar ? { bar: (r: TopRow) => r[key] / 100 } : {}),
	});
	return [
		nameColumn(highlight),
		value("flat", "Flat", "Cost in the function itself"),
		percent("flat_percent", "Flat %", "Share of the total", true),
		percent(
			"sum_percent",
			"Sum %",
			"Flat % of this function and all with a larger flat cost",
			false,
		),
		value("cum", "Cum", "Cost in the function and its callees"),
		percent("cum_percent", "Cum %", "Share of the total", true),
	];
}

function diffColumns(
	unit: string,
	rows: TopRow[],
	highlight: Highlight,
	changes: Map<string, Change> | undefined,
	bases: Bases | null,
): Column<TopRow>[] {
	const baseOf = (r: TopRow): number | null =>
		bases ? (bases.rows.get(r.function)?.flat ?? (bases.whole ? 0 : null)) : null;
	const side = (key: string, title: string, hint: string, of: (r: TopRow, base: number) => number) => ({
		key,
		title,
		hint,
		numeric: true,
		width: "78px",
		sort: (r: TopRow) => of(r, baseOf(r) ?? 0),
		cell: (r: TopRow) => {
			const base = baseOf(r);
			return base === null ? <span class="faint">–</span> : formatValue(of(r, base), unit);
		},
	});

	const largest = (key: "flat" | "cum") =>
		rows.reduce((m, r) => Math.max(m, Math.abs(r[key])), 0) || 1;
	const value = (key: "flat" | "cum", title: string, hint: string): Column<TopRow> => {
		const most = largest(key);
		return {
			key,
			title,
			hint,
			numeric: true,
			width: "88px",
			sort: (r) => r[key],
			cell: (r) => <span class={trend(r[key])}>{formatSigned(r[key], unit)}</span>,
			bar: (r) => r[key] / most,
		};
	};
	const ratio = (r: TopRow): number => {
		const base = baseOf(r);
		return base ? (base + r.flat) / base : r.flat > 0 ? Infinity : 1;
	};
	const by: Column<TopRow> = {
		key: "times",
		title: "Times",
		hint: "New divided by base, flat cost",
		numeric: true,
		width: "64px",
		sort: ratio,
		cell: (r) => {
			const base = baseOf(r);
			return (
				base !== null && <span class={trend(r.flat)}>{timesText(base, base + r.flat)}</span>
			);
		},
	};
	return [
		nameColumn(highlight),
		side("base", "Base", "Flat cost in base", (_, base) => base),
		side("new", "New", "Flat cost in new", (r, base) => base + r.flat),
		value("flat", "Difference", "New minus base, flat cost"),
		by,
		value("cum", "Δ Cum", "New minus base, cum cost"),
		...(changes ? [significance(changes)] : []),
	];
}

function significance(changes: Map<string, Change>): Column<TopRow> {
	return {
		key: "changed",
		title: "Significance",
		hint:
			"Change of the flat share if significant, else the largest change that is possible, " +
			"or \"not enough data yet\". If nothing changed, at most " +
			"1 % of comparisons mark any function",
		numeric: true,
		width: "156px",
		sort: (r) => rankOf(changes.get(r.function)),
		cell: (r) => {
			const change = changes.get(r.function);
			if (!change) return false;
			const bounds = `Between ${boundsOf(change)}`;
			return isProved(change) ? (
				<b class={trend(middleOf(change))} title={bounds}>
					{wordsOf(change)}
				</b>
			) : (
				<span class="faint" title={bounds}>
					{wordsOf(change)}
				</span>
			);
		},
	};
}

export function TopTable(props: TopTableProps) {
	const { element, diff, filter, picked, onOpen, changes, bases = null } = props;
	const { onPick, onAlert, onSource, kind = "all", onKind } = props;
	const chosen = diff && onKind !== undefined;
	const kinds = useMemo(
		() => (chosen ? rowsByKind(element.rows, bases, changes) : null),
		[chosen, element, bases, changes],
	);
	const rows = kinds?.get(kind) ?? element.rows;
	const columns = useMemo(
		() =>
			diff
				? diffColumns(element.unit, element.rows, { picked, onPick, onAlert, onSource }, changes, bases)
				: plainColumns(element.unit, { picked, onPick, onAlert, onSource }),
		[element, diff, picked, onPick, onAlert, onSource, changes, bases],
	);
	const table = (
		<Table
			columns={columns}
			rows={rows}
			rowKey={(r) => r.function}
			// If nothing costs more, show the greatest fall first.
			initialSort={diff && !element.rows.some((r) => r.flat > 0) ? "flat" : "-flat"}
			filter={filter}
			filterText={(r) => r.function}
			selected={(r) => r.function === picked}
			onPick={onOpen && ((r) => onOpen(r.function))}
			onMark={onPick && ((r) => onPick(r.function))}
			empty={element.rows.length ? "No matching function." : "No samples."}
		/>
	);
	if (!chosen) return table;
	return (
		<>
			<RowKinds {...{ kinds, kind, onKind }} />
			{table}
		</>
	);
}

/** Groups the digits of whole numbers; keeps every digit that the server sent. */
function grouped(value: string): string {
	return /^-?\d{5,}$/.test(value) ? value.replace(/\B(?=(\d{3})+$)/g, "\u202f") : value;
}

/** The length of its bar; 0 if the value is not finite. */
function size(v: VectorElement): number {
	const n = Number(v.value[1]);
	return Number.isFinite(n) ? Math.abs(n) : 0;
}

/** An instant vector: a column per label, and the value in its unit; "" for no unit. */
export function CostTable({
	vector,
	unit,
	filter,
}: {
	vector: VectorElement[];
	unit: string;
	filter: RegExp | null;
}) {
	const columns = useMemo(() => {
		const labels = [...new Set(vector.flatMap((v) => Object.keys(v.metric)))].sort(
			(a, b) => Number(b === "function") - Number(a === "function") || a.localeCompare(b),
		);
		const out: Column<VectorElement>[] = labels.map((l) => ({
			key: l,
			title: l,
			sort: (v) => v.metric[l] ?? "",
			cell: (v) => <FunctionName name={v.metric[l] ?? ""} />,
		}));
		const largest =
			vector.reduce((m, v) => Math.max(m, size(v)), 0) || 1;
		out.push({
			key: "\0value",
			title: "Value",
			numeric: true,
			width: "180px",
			sort: (v) => parseSample(v.value[1]),
			cell: (v) =>
				unit ? (
					<span title={`${grouped(v.value[1])} ${unit}`}>
						{formatValue(parseSample(v.value[1]), unit)}
					</span>
				) : (
					grouped(v.value[1])
				),
			bar: (v) => (Math.sign(Number(v.value[1])) * size(v)) / largest || 0,
		});
		return out;
	}, [vector, unit]);
	return (
		<Table
			columns={columns}
			rows={vector}
			rowKey={(v) => JSON.stringify(v.metric)}
			initialSort={"-\0value"}
			filter={filter}
			filterText={(v) => Object.values(v.metric).join(" ")}
			empty="No costs."
		/>
	);
}
