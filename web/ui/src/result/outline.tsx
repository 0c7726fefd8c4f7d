// The call tree as rows: the same as the flame graph, for keyboards and screen readers. Only the rows
// in view are in the document.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { FunctionName } from "../flame/functionname";
import { ancestry, diffOf, findPath, type Flame, nameOf, type WidthMode } from "../flame/layout";
import type { Matches } from "../flame/search";
import type { Goal } from "../flame/view";
import { IconDown } from "../shared/icons";
import { ROW_H, useRowsInView } from "../shared/rows";
import {
	formatPercent,
	formatPoints,
	formatSigned,
	formatValue,
	share,
	trend,
} from "../shared/units";
import { expandedTo, heaviestPath, outlineKey, type OutlineRow, outlineRows } from "./outlinerows";
import "./outline.css";

const INDENT_PX = 14;
const INDENT_MAX = 24; // levels; deeper ones are not indented further

export interface OutlineProps {
	flame: Flame;
	unit: string;
	matches: Matches | null;
	/** The mode of the flame's totals, which change in place with it. */
	widthMode: WidthMode;
	/** The hash of the call path that is expanded at first; the heaviest path if it is not there. */
	zoom: string;
	/** A highlighted function. */
	pick: string;
	onPick(name: string): void;
	/** A node to go to. */
	goal?: Goal | null;
}

interface OutlineColumn {
	title: string;
	hint: string;
	width: string;
	/** The text, its exact value on hover, and a class. */
	cell(f: Flame, node: number, unit: string): [text: string, title: string, cls?: string];
}

const exact = (v: number, unit: string) => `${v} ${unit}`.trim();

const cost = (title: string, hint: string, of: (f: Flame) => Float64Array): OutlineColumn[] => [
	{
		title,
		hint,
		width: "84px",
		cell: (f, i, unit) => [formatValue(of(f)[i], unit), exact(of(f)[i], unit)],
	},
	{
		title: `${title} %`,
		hint: "Share of the total",
		width: "78px",
		cell: (f, i) => {
			const s = share(of(f)[i], f.width);
			return [formatPercent(s), `${s}%`];
		},
	},
];

const PLAIN: OutlineColumn[] = [
	...cost("Flat", "Cost in the function itself, on this path", (f) => f.self),
	...cost("Cum", "Cost in the function and its callees, on this path", (f) => f.total),
];

const side = (title: string, key: "base" | "next"): OutlineColumn => ({
	title,
	hint: `Cost in the function and its callees, on this path: ${title.toLowerCase()}`,
	width: "88px",
	cell: (f, i, unit) => {
		const v = diffOf(f)[key].total[i];
		return [formatValue(v, unit), exact(v, unit)];
	},
});

const DIFF: OutlineColumn[] = [
	side("Base", "base"),
	side("New", "next"),
	{
		title: "Δ Cum",
		hint: "New minus base",
		width: "92px",
		cell: (f, i, unit) => {
			const { base, next } = diffOf(f);
			const v = next.total[i] - base.total[i];
			return [formatSigned(v, unit), exact(v, unit), trend(v)];
		},
	},
	{
		title: "Δ share",
		hint: "Change of the share of the total, in percentage points",
		width: "92px",
		cell: (f, i) => {
			const d = diffOf(f);
			const v =
				share(d.next.total[i], d.nextTotal) - share(d.base.total[i], d.baseTotal);
			return [formatPoints(v), `${v}`, trend(Math.abs(v) < 0.005 ? 0 : v)];
		},
	},
];

/** The expanded nodes: as the user left them, while the answer has their paths. */
function useExpanded(flame: Flame, zoom: string) {
	const at = useMemo(
		() => (zoom ? findPath(flame, parseInt(zoom, 16)) : -1),
		[flame, zoom],
	);
	const first = at > 0 ? ancestry(flame, at) : heaviestPath(flame);
	const [set, change] = useState(() => expandedTo(flame, first));
	const known = useRef(flame);
	// biome-ignore lint/correctness/useExhaustiveDependencies: what the user opened is kept until the next answer
	useEffect(() => {
		if (known.current === flame) return;
		known.current = flame;
		const here = new Set(flame.path);
		const left = [...set].filter((p) => here.has(p));
		if (left.length < 2) change(expandedTo(flame, first));
	}, [flame]);
	return { expanded: set, change, begin: Math.max(0, at) };
}

/** The state of the tree: its rows, the row of the keyboard, and the functions that change them. */
function useTree({ flame, zoom, widthMode, onPick, goal }: OutlineProps) {
	const { expanded, change, begin } = useExpanded(flame, zoom);
	const rows = useMemo(() => outlineRows(flame, expanded), [flame, expanded, widthMode]);
	// By path, because the number of a node changes with the next answer.
	const [active, setActive] = useState(flame.path[begin]);
	const view = useRowsInView(rows.length);
	const at = Math.max(
		0,
		rows.findIndex((r) => flame.path[r.node] === active),
	);
	// biome-ignore lint/correctness/useExhaustiveDependencies: only at first
	useEffect(() => view.reveal(at), []);
	const select = (node: number) => setActive(flame.path[node]);
	const gone = useRef(0);
	const unseen = useRef(false);
	// biome-ignore lint/correctness/useExhaustiveDependencies: a goal is gone to once
	useEffect(() => {
		const node = goal && goal.turn !== gone.current ? findPath(flame, goal.path) : -1;
		if (!goal || node < 0) return;
		gone.current = goal.turn;
		unseen.current = true;
		change(new Set([...expanded, ...expandedTo(flame, ancestry(flame, node))]));
		select(node);
	}, [goal, flame]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: it is seen once it is among the rows
	useEffect(() => {
		if (unseen.current) view.reveal(at);
		unseen.current = false;
	}, [rows, at]);
	const open = (nodes: number[]) =>
		change(new Set([...expanded, ...nodes.map((n) => flame.path[n])]));
	const close = (node: number) =>
		change(new Set([...expanded].filter((p) => p !== flame.path[node])));
	const onKey = (e: KeyboardEvent) => {
		if (e.altKey || e.ctrlKey || e.metaKey) return;
		const move = outlineKey(e.key, rows, at, view.page);
		if (!move) return;
		e.preventDefault();
		if ("to" in move) {
			select(rows[move.to].node);
			view.reveal(move.to);
		} else if ("open" in move) open(move.open);
		else if ("close" in move) close(move.close);
		else if (move.pick > 0) onPick(nameOf(flame, move.pick));
	};
	const toggle = (row: OutlineRow) => {
		select(row.node);
		if (row.expanded) close(row.node);
		else if (row.expanded === false) open([row.node]);
	};
	return { rows, at, view, select, toggle, onKey };
}

export function Outline(props: OutlineProps) {
	const { flame, unit, matches, pick } = props;
	const { rows, at, view, select, toggle, onKey } = useTree(props);
	const id = useId();
	const columns = flame.diff ? DIFF : PLAIN;
	const template = ["minmax(240px, 1fr)", ...columns.map((c) => c.width)].join(" ");
	return (
		<div class="vtable outline">
			<div
				class="vtable-scroll"
				ref={view.box}
				role="treegrid"
				tabIndex={0}
				aria-label="Call tree. Arrow keys walk, expand and collapse."
				aria-rowcount={rows.length + 1}
				aria-colcount={columns.length + 1}
				aria-activedescendant={`${id}-${at}`}
				onKeyDown={onKey}
				onScroll={view.onScroll}
			>
				<div class="vtable-wide">
					<Head columns={columns} template={template} />
					<div
						class="vtable-body"
						role="rowgroup"
						style={{ height: `${rows.length * ROW_H}px` }}
					>
						{rows.slice(view.from, view.to).map((row, i) => (
							<Row
								key={flame.path[row.node]}
								id={`${id}-${view.from + i}`}
								row={row}
								index={view.from + i}
								active={view.from + i === at}
								columns={columns}
								template={template}
								flame={flame}
								unit={unit}
								matched={!!matches?.byName[flame.name[row.node]] && row.node > 0}
								picked={pick !== "" && nameOf(flame, row.node) === pick}
								onToggle={toggle}
								onSelect={() => select(row.node)}
							/>
						))}
					</div>
				</div>
			</div>
		</div>
	);
}

function Head({ columns, template }: { columns: OutlineColumn[]; template: string }) {
	return (
		<div class="vtable-head" role="row" style={{ gridTemplateColumns: template }}>
			<span role="columnheader">Function</span>
			{columns.map((c) => (
				<span key={c.title} class="num" role="columnheader" title={c.hint}>
					{c.title}
				</span>
			))}
		</div>
	);
}

interface RowProps {
	id: string;
	row: OutlineRow;
	index: number;
	active: boolean;
	columns: OutlineColumn[];
	template: string;
	flame: Flame;
	unit: string;
	matched: boolean;
	picked: boolean;
	onToggle(row: OutlineRow): void;
	onSelect(): void;
}

function Row({ row, index, active, columns, template, flame, unit, ...rest }: RowProps) {
	const indent = INDENT_PX * Math.min(INDENT_MAX, row.level - 1);
	const cls = [active && "active", rest.picked && "selected", rest.matched && "matched"];
	const name = nameOf(flame, row.node);
	return (
		<div
			id={rest.id}
			role="row"
			aria-level={row.level}
			aria-posinset={row.position}
			aria-setsize={row.siblings}
			aria-rowindex={index + 2}
			aria-expanded={row.expanded}
			aria-selected={active}
			class={cls.filter(Boolean).join(" ")}
			style={{ gridTemplateColumns: template, transform: `translateY(${index * ROW_H}px)` }}
			onClick={rest.onSelect}
			onDblClick={() => rest.onToggle(row)}
		>
			<div role="gridcell" class="outline-name" style={{ paddingLeft: `${8 + indent}px` }}>
				{row.expanded === undefined ? (
					<i class="outline-leaf" />
				) : (
					// Screen readers learn this from the row, and keyboards use the arrow keys.
					<button
						type="button"
						class="quiet"
						tabIndex={-1}
						aria-hidden="true"
						onClick={(e) => {
							e.stopPropagation();
							rest.onToggle(row);
						}}
					>
						<IconDown />
					</button>
				)}
				<FunctionName name={name} />
			</div>
			{columns.map((c) => {
				const [text, title, more] = c.cell(flame, row.node, unit);
				return (
					<div key={c.title} role="gridcell" class="num" title={title}>
						{more ? <span class={more}>{text}</span> : text}
					</div>
				);
			})}
		</div>
	);
}
