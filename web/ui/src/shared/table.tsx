// A table of many rows: sortable, filtered, and only the rows in view are in the document.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { publish } from "./debug";
import { ROW_H, rowByKey, useRowsInView } from "./rows";
import "./table.css";

export interface Column<Row> {
	key: string;
	title: string;
	/** The tooltip of the header. */
	hint?: string;
	numeric?: boolean;
	width?: string;
	sort(row: Row): number | string;
	cell(row: Row): ComponentChildren;
	/** A share 0..1 as a bar behind the cell; a negative one has the colour of "less". */
	bar?(row: Row): number;
}

export interface TableProps<Row> {
	columns: Column<Row>[];
	rows: Row[];
	rowKey(row: Row): string;
	/** The initial sort column; "-key" is descending. */
	initialSort: string;
	filter?: RegExp | null;
	filterText?(row: Row): string;
	selected?(row: Row): boolean;
	/** A click, or Enter. */
	onPick?(row: Row): void;
	/** The space bar. */
	onMark?(row: Row): void;
	/** Called when the user sorts, with a value like `initialSort`. */
	onSort?(sort: string): void;
	empty?: string;
	/** Its name in window.__epi; "table" if not given. */
	debugName?: string;
}

const collator = new Intl.Collator(); // many times faster than localeCompare

/** NaN sorts before all numbers. */
function compareCells(a: number | string, b: number | string): number {
	if (typeof a === "number" && typeof b === "number") {
		const [x, y] = [a, b].map((v) => (Number.isNaN(v) ? -Infinity : v));
		return x === y ? 0 : x - y;
	}
	return collator.compare(String(a), String(b));
}

/** Descending if the sort begins with a minus. */
function useSorted<Row>(props: TableProps<Row>, sort: string): Row[] {
	const { columns, rows, filter, filterText } = props;
	// biome-ignore lint/correctness/useExhaustiveDependencies: what a row is filtered by stays the same
	return useMemo(() => {
		const key = sort.replace(/^-/, "");
		const column = columns.find((c) => c.key === key) ?? columns[0];
		const kept =
			filter && filterText ? rows.filter((r) => filter.test(filterText(r))) : rows.slice();
		const sign = sort.startsWith("-") ? -1 : 1;
		return kept.sort((a, b) => sign * compareCells(column.sort(a), column.sort(b)));
	}, [rows, columns, sort, filter]);
}

/** Where the row of a key is; -1: nowhere. */
function useRowPlace<Row>(sorted: Row[], { rowKey }: TableProps<Row>, key?: string): number {
	// biome-ignore lint/correctness/useExhaustiveDependencies: what a row is called stays the same
	return useMemo(
		() => (key === undefined ? -1 : sorted.findIndex((r) => rowKey(r) === key)),
		[sorted, key],
	);
}

export function Table<Row>(props: TableProps<Row>) {
	const { columns, onPick, onMark } = props;
	const [sort, setSort] = useState(props.initialSort);
	// A row, not a place: new answers and another order leave it where it is.
	const [activeKey, setActiveKey] = useState<string>();
	const id = useId();
	const debugName = props.debugName ?? "table";
	const sorted = useSorted(props, sort);
	const active = useRowPlace(sorted, props, activeKey);
	const view = useRowsInView(sorted.length);

	useEffect(() => {
		publish(debugName, () => sorted);
		return () => publish(debugName, null);
	}, [sorted, debugName]);

	const onKey = (e: KeyboardEvent) => {
		if (e.target !== view.box.current || e.altKey || e.ctrlKey || e.metaKey) return;
		const to = rowByKey(e.key, active, sorted.length, view.page);
		if (to >= 0) {
			setActiveKey(props.rowKey(sorted[to]));
			view.reveal(to);
		} else if (e.key === "Enter" && active >= 0 && onPick) onPick(sorted[active]);
		else if (e.key === " " && active >= 0 && onMark) onMark(sorted[active]);
		else return;
		e.preventDefault();
	};
	const template = columns.map((c) => c.width ?? "minmax(180px, 1fr)").join(" ");

	return (
		<div class="vtable">
			<div
				class="vtable-scroll"
				ref={view.box}
				tabIndex={0}
				role={onPick ? "grid" : "table"}
				aria-rowcount={sorted.length + 1}
				aria-label={onPick && "Rows. Arrow keys walk, Enter opens."}
				aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
				onKeyDown={onKey}
				onScroll={view.onScroll}
			>
				<div class="vtable-wide">
					<Header
						columns={columns}
						sort={sort}
						template={template}
						onSort={(to) => {
							setSort(to);
							props.onSort?.(to);
						}}
					/>
					<div class="vtable-body" style={{ height: `${sorted.length * ROW_H}px` }}>
						{sorted.slice(view.from, view.to).map((row, i) => (
							<TableRow
								key={props.rowKey(row)}
								id={`${id}-${view.from + i}`}
								table={props}
								row={row}
								index={view.from + i}
								active={view.from + i === active}
								template={template}
							/>
						))}
					</div>
				</div>
				{sorted.length === 0 && (
					<div class="empty">{props.empty ?? "Nothing matches."}</div>
				)}
			</div>
		</div>
	);
}

function Header<Row>(props: {
	columns: Column<Row>[];
	sort: string;
	template: string;
	onSort(sort: string): void;
}) {
	const { columns, sort, template } = props;
	const onSort = (c: Column<Row>) => {
		if (sort === `-${c.key}`) props.onSort(c.key);
		else if (sort === c.key) props.onSort(`-${c.key}`);
		else props.onSort(c.numeric ? `-${c.key}` : c.key);
	};
	return (
		<div class="vtable-head" role="row" style={{ gridTemplateColumns: template }}>
			{columns.map((c) => {
				const up = sort === c.key;
				const down = sort === `-${c.key}`;
				return (
					<div
						key={c.key}
						role="columnheader"
						aria-sort={up ? "ascending" : down ? "descending" : "none"}
					>
						<button
							type="button"
							title={c.hint}
							class={(c.numeric ? "num " : "") + (up || down ? "sorted" : "")}
							onClick={() => onSort(c)}
						>
							{c.title}
							<span class="arrow">{up ? "▲" : down ? "▼" : ""}</span>
						</button>
					</div>
				);
			})}
		</div>
	);
}

function TableRow<Row>(props: {
	id: string;
	table: TableProps<Row>;
	row: Row;
	index: number;
	active: boolean;
	template: string;
}) {
	const { table, row, index, active, template } = props;
	const { onPick } = table;
	const selected = table.selected?.(row) ?? false;
	const classes = [onPick && "pick", selected && "selected", active && "active"];
	return (
		<div
			id={props.id}
			role="row"
			aria-rowindex={index + 2}
			aria-selected={onPick ? selected : undefined}
			onClick={onPick && (() => onPick(row))}
			class={classes.filter(Boolean).join(" ")}
			style={{
				gridTemplateColumns: template,
				transform: `translateY(${index * ROW_H}px)`,
			}}
		>
			{table.columns.map((c) => {
				const bar = c.bar?.(row);
				return (
					<div
						key={c.key}
						role={onPick ? "gridcell" : "cell"}
						class={c.numeric ? "num" : "ellipsis"}
					>
						{bar !== undefined && bar !== 0 && (
							<span
								class={bar < 0 ? "bar less" : "bar"}
								style={{ width: `${Math.min(100, Math.abs(bar) * 100)}%` }}
							/>
						)}
						{c.cell(row)}
					</div>
				);
			})}
		</div>
	);
}
