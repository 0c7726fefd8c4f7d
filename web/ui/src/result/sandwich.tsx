// One function between its callers and callees: the inverted tree of callers above, the tree of
// callees below, both as tables beside them, and the cost of its lines.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { withFunctionFiles } from "../flame/functionfiles";
import { FunctionName } from "../flame/functionname";
import { invertCallers, type Neighbour, neighbours, withoutRoot } from "../flame/invert";
import {
	buildFlame,
	findPath,
	type Flame,
	nameOf,
	setWidthMode,
	type WidthMode,
} from "../flame/layout";
import type { FlameLook } from "../flame/look";
import type { FlameAction } from "../flame/menu";
import { search, searchName } from "../flame/search";
import { FlameView } from "../flame/view";
import { halfOf, linesOf } from "../query/edit";
import type { Times } from "../query/questions";
import {
	type Flamebearer,
	type ProfileElement,
	type QueryData,
	sameLabels,
	type TopElement,
} from "../shared/api";
import { type Loaded, useApi, useOwnAnswer } from "../shared/hooks";
import { IconX } from "../shared/icons";
import { attached } from "../shared/must";
import { QueryError } from "../shared/notices";
import { type Column, Table } from "../shared/table";
import {
	formatPercent,
	formatSigned,
	formatValue,
	share,
	signedPercent,
	trend,
} from "../shared/units";
import { isFolded } from "./filters";
import "./sandwich.css";

export interface SandwichProps {
	fn: string;
	/** The query and times of the element, and the identity of the question. */
	query: string;
	times: Times;
	asked: string;
	nodes: string;
	element: ProfileElement;
	/** All labels of the query's elements, also those that this one lacks. */
	labels: string[];
	top: TopElement | undefined;
	look: FlameLook;
	widthMode: WidthMode;
	pattern: RegExp | null;
	pick: string;
	actions: FlameAction[];
	onPick(name: string): void;
	/** Another function's sandwich. */
	onMove(fn: string): void;
	/** A line of the function, in its file. */
	onLine(file: string, line: number): void;
	onClose(): void;
}

const NODES_LEAST = 8192; // the tables are computed from the trees, so little should be folded

interface Half {
	loaded: Loaded<QueryData>;
	/** Whether the answer belongs to this very question. */
	known: boolean;
	sent: string;
	flame: Flame | null;
}

function useHalf(props: SandwichProps, half: "callers" | "callees"): Half {
	const { query, times, fn, element, widthMode } = props;
	const sent = halfOf(query, half, fn);
	const nodes = String(Math.max(NODES_LEAST, Number(props.nodes)));
	const key = JSON.stringify([props.asked, sent, nodes]);
	const loaded = useApi<QueryData>(key, "query", {
		query: sent,
		...times,
		max_nodes: nodes,
		files: "true",
	});
	const data = useOwnAnswer(loaded, key, sent)?.data;
	const flame = useMemo(() => {
		if (data?.resultType !== "profiles") return null;
		const own = data.result.find((e) => sameLabels(e.metric, element.metric));
		const found = own ?? (data.result.length === 1 ? data.result[0] : null);
		if (!found || found.flamebearer.levels.length < 2) return null;
		return buildFlame(rooted(found.flamebearer, half, fn));
	}, [data, element, half, fn]);
	useMemo(() => flame && setWidthMode(flame, widthMode), [flame, widthMode]);
	return { loaded, known: !!data, sent, flame };
}

function rooted(fb: Flamebearer, half: "callers" | "callees", fn: string): Flamebearer {
	return half === "callers" ? withFunctionFiles(invertCallers(buildFlame(fb), fn), fb) : withoutRoot(fb);
}

function HalfView({
	half,
	of,
	props,
}: {
	half: "callers" | "callees";
	of: Half;
	props: SandwichProps;
}) {
	const { flame, loaded, sent } = of;
	const { pattern, pick, widthMode, onMove } = props;
	const matches = useMemo(() => {
		if (!flame) return null;
		if (pick) return searchName(flame, pick);
		// The search that led here is no longer needed.
		return pattern && !pattern.test(props.fn) ? search(flame, pattern) : null;
	}, [flame, pattern, pick, widthMode, props.fn]);
	const move = (path: string) => {
		const node = flame && path ? findPath(flame, parseInt(path, 16)) : -1;
		if (flame && node > 0 && !isFolded(nameOf(flame, node))) onMove(nameOf(flame, node));
	};
	return (
		<div class={`half ${half}`}>
			<h3>{half === "callers" ? "Callers: call paths to the function" : "Callees: calls of the function"}</h3>
			{loaded.error ? (
				<QueryError error={loaded.error} sent={sent} />
			) : flame ? (
				<FlameView
					flame={flame}
					unit={props.element.unit}
					matches={matches}
					zoom=""
					widthMode={widthMode}
					onZoom={move}
					onPick={props.onPick}
					look={{
						...props.look,
						orientation: half === "callers" ? "flame" : "icicle",
					}}
					actions={props.actions}
					debugName={half}
				/>
			) : (
				<div class="empty">{of.known ? "No stacks." : "Loading…"}</div>
			)}
		</div>
	);
}

function neighbourColumns(unit: string, cum: number, diff: boolean): Column<Neighbour>[] {
	const name: Column<Neighbour> = {
		key: "function",
		title: "Function",
		sort: (r) => r.name,
		cell: (r) => <FunctionName name={r.name} />,
	};
	const cost: Column<Neighbour> = {
		key: "cost",
		title: diff ? "Change" : "Cost",
		numeric: true,
		width: "84px",
		sort: (r) => r.cost,
		cell: (r) =>
			diff ? (
				<span class={trend(r.cost)}>{formatSigned(r.cost, unit)}</span>
			) : (
				formatValue(r.cost, unit)
			),
	};
	const part: Column<Neighbour> = {
		key: "share",
		title: "Share",
		hint: "Share of the function's cum cost",
		numeric: true,
		width: "76px",
		sort: (r) => r.cost,
		cell: (r) => formatPercent(share(r.cost, cum)),
		bar: (r) => (cum ? r.cost / cum : 0),
	};
	const side = (key: "base" | "next", title: string): Column<Neighbour> => ({
		key,
		title,
		numeric: true,
		width: "76px",
		sort: (r) => r[key] ?? 0,
		cell: (r) => formatValue(r[key] ?? 0, unit),
	});
	return diff ? [name, side("base", "Base"), side("next", "New"), cost] : [name, cost, part];
}

const ROWS_SHOWN = 8;
const tableHeight = (rows: number) => `${Math.min(ROWS_SHOWN, rows) * 25 + 33}px`;

function NeighbourTable({ title, none, of, props }: {
	title: "callers" | "callees";
	none: string;
	of: Half;
	props: SandwichProps;
}) {
	const { flame } = of;
	const rows = useMemo(() => (flame ? neighbours(flame) : []), [flame]);
	const columns = useMemo(
		() => neighbourColumns(props.element.unit, flame?.total[0] ?? 0, !!flame?.diff),
		[flame, props.element],
	);
	return (
		<section aria-label={title === "callers" ? "Callers" : "Callees"}>
			<h3>{title === "callers" ? "Callers" : "Callees"}</h3>
			{rows.length ? (
				<div class="vtable-box" style={{ height: tableHeight(rows.length) }}>
					<Table
						columns={columns}
						rows={rows}
						rowKey={(r) => r.name}
						initialSort="-cost"
						selected={(r) => r.name === props.pick}
						onPick={(r) => {
							if (!isFolded(r.name)) props.onMove(r.name);
						}}
						debugName={`${title}Table`}
					/>
				</div>
			) : (
				flame && <div class="none">{none}</div>
			)}
		</section>
	);
}

interface Line {
	file: string;
	line: number;
	flat: number;
	cum: number;
}

/** The costs of a function by line; null before they are known. */
function useLineCosts(props: SandwichProps, cost: "flat" | "cum") {
	const { query, times, fn, labels, asked } = props;
	const sent = linesOf(query, cost, fn, labels);
	const key = JSON.stringify([asked, sent]);
	const loaded = useApi<QueryData>(key, "query", { query: sent, ...times });
	return useOwnAnswer(loaded, key, sent);
}

/** The lines of a function with their costs, without those of unknown place; none before both costs are known. */
function useLines(props: SandwichProps): { lines: Line[]; ready: boolean } {
	const { element } = props;
	const flat = useLineCosts(props, "flat");
	const cum = useLineCosts(props, "cum");
	const ready = !!flat && !!cum;
	const lines = useMemo(() => {
		const out = new Map<string, Line>();
		if (!ready) return [];
		for (const [kind, answer] of [["flat", flat], ["cum", cum]] as const) {
			if (answer?.data.resultType !== "vector") continue;
			for (const { metric, value } of answer.data.result) {
				const { filename = "", line = "", ...rest } = metric;
				if (!Number(line) || !sameLabels(rest, element.metric)) continue;
				const key = `${filename}:${line}`;
				const row = out.get(key) ?? { file: filename, line: Number(line), flat: 0, cum: 0 };
				row[kind] = Number(value[1]);
				out.set(key, row);
			}
		}
		return [...out.values()].filter((l) => l.flat !== 0 || l.cum !== 0);
	}, [flat, cum, ready, element]);
	return { lines, ready };
}

function LineTable({ props, diff }: { props: SandwichProps; diff: boolean }) {
	const { lines, ready } = useLines(props);
	const { unit } = props.element;
	const columns = useMemo((): Column<Line>[] => {
		const most = lines.reduce((m, l) => Math.max(m, Math.abs(l.cum)), 0) || 1;
		const value = (key: "flat" | "cum", title: string, hint: string): Column<Line> => ({
			key,
			title,
			hint,
			numeric: true,
			width: "84px",
			sort: (l) => l[key],
			cell: (l) => (diff ? formatSigned(l[key], unit) : formatValue(l[key], unit)),
			...(key === "cum" ? { bar: (l: Line) => l.cum / most } : {}),
		});
		return [
			{
				key: "line",
				title: "Line",
				sort: (l) => l.line,
				cell: (l) => (
					<span class="line-at" title={`${l.file}:${l.line}`}>
						{l.file.slice(l.file.lastIndexOf("/") + 1)}:{l.line}
					</span>
				),
			},
			value("flat", "Flat", "Cost on this line itself"),
			value("cum", "Cum", "Cost on this line and in its callees"),
		];
	}, [lines, unit, diff]);
	return (
		<section aria-label="Lines">
			<h3>Lines</h3>
			{lines.length ? (
				<div class="vtable-box" style={{ height: tableHeight(lines.length) }}>
					<Table
						columns={columns}
						rows={lines}
						rowKey={(l) => `${l.file}:${l.line}`}
						initialSort="-cum"
						onPick={(l) => props.onLine(l.file, l.line)}
						debugName="lines"
					/>
				</div>
			) : (
				ready && <div class="none">No line numbers for this function.</div>
			)}
		</section>
	);
}

function Head({ props, diff }: { props: SandwichProps; diff: boolean }) {
	const { fn, top, element, actions } = props;
	const row = top?.rows.find((r) => r.function === fn);
	const title = useRef<HTMLHeadingElement>(null);
	// The element that had the focus is gone, or in a graph that changed.
	useEffect(() => attached(title).focus({ preventScroll: true }), [fn]);
	const cost = (of: "flat" | "cum") => {
		if (!row) return null;
		const value = diff ? formatSigned(row[of], element.unit) : formatValue(row[of], element.unit);
		const part = diff ? signedPercent(row, of) : row[`${of}_percent`];
		return (
			<div>
				<dt>{of}</dt>
				<dd class={diff ? trend(row[of]) : ""}>
					{value}
					<span class="faint"> {formatPercent(part)} of {diff ? "the base" : "total"}</span>
				</dd>
			</div>
		);
	};
	return (
		<div class="sandwich-head">
			<h2 ref={title} tabIndex={-1}>
				{fn}
			</h2>
			<dl class="summary">
				{cost("flat")}
				{cost("cum")}
			</dl>
			<span class="spacer" />
			<button type="button" class="close" onClick={props.onClose}>
				<IconX />
				Close
			</button>
			<div class="sandwich-acts">
				{actions
					.filter((a) => a.when?.(fn, [fn]) ?? true)
					.map((a) => (
						<button key={a.label} type="button" title={a.hint} onClick={() => a.run(fn, [fn])}>
							{a.label}
						</button>
					))}
			</div>
		</div>
	);
}

export function Sandwich(props: SandwichProps) {
	const callers = useHalf(props, "callers");
	const callees = useHalf(props, "callees");
	const diff = props.element.flamebearer.format === "double";
	const absent = callers.known && callees.known && !callers.flame && !callees.flame;
	const onKey = (e: KeyboardEvent) => {
		if (e.key !== "Escape" || e.defaultPrevented) return;
		if (!(e.target as HTMLElement).closest(".popup")) props.onClose();
	};
	return (
		<div class="sandwich" onKeyDown={onKey}>
			<Head props={props} diff={diff} />
			{absent ? (
				<div class="empty">
					No stack of this query has this function. Remove a filter, widen the time range, or close this view.
				</div>
			) : (
				<div class={diff ? "sandwich-body is-diff" : "sandwich-body"}>
					<div class="halves">
						<HalfView half="callers" of={callers} props={props} />
						<HalfView half="callees" of={callees} props={props} />
					</div>
					<div class="sandwich-side">
						<NeighbourTable
							title="callers"
							none="No callers: the stacks begin here."
							of={callers}
							props={props}
						/>
						<NeighbourTable
							title="callees"
							none="No callees with a cost."
							of={callees}
							props={props}
						/>
						<LineTable props={props} diff={diff} />
					</div>
				</div>
			)}
		</div>
	);
}
