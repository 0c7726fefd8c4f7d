// A table of many rows: sortable, filtered, and only the rows in view are in the document.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { publish } from "../lib/debug";

export interface Column<Row> {
	key: string;
	title: string;
	/** What the header means, on hover. */
	hint?: string;
	numeric?: boolean;
	width?: string;
	sort(row: Row): number | string;
	cell(row: Row): ComponentChildren;
	/** Share 0..1 drawn as a bar behind the cell; negative draws it in the colour of less. */
	bar?(row: Row): number;
}

export interface TableProps<Row> {
	columns: Column<Row>[];
	rows: Row[];
	rowKey(row: Row): string;
	/** The column sorted by at first; "-key" for descending. */
	initialSort: string;
	filter?: RegExp | null;
	filterText?(row: Row): string;
	selected?(row: Row): boolean;
	onPick?(row: Row): void;
	/** Told of what the user sorts by, as `initialSort`. */
	onSort?(sort: string): void;
	empty?: string;
}

const ROW_H = 25;
const OVERSCAN = 8;

export function compareCells(a: number | string, b: number | string): number {
	if (typeof a === "number" && typeof b === "number") return a - b;
	return String(a).localeCompare(String(b));
}

export function Table<Row>(props: TableProps<Row>) {
	const { columns, rows, rowKey, filter, filterText, selected, onPick } = props;
	const [sort, setSort] = useState(props.initialSort);
	const [top, setTop] = useState(0);
	const [height, setHeight] = useState(600);
	const box = useRef<HTMLDivElement>(null);

	const sorted = useMemo(() => {
		const key = sort.replace(/^-/, "");
		const column = columns.find((c) => c.key === key) ?? columns[0];
		const kept =
			filter && filterText ? rows.filter((r) => filter.test(filterText(r))) : rows.slice();
		const sign = sort.startsWith("-") ? -1 : 1;
		return kept.sort((a, b) => sign * compareCells(column.sort(a), column.sort(b)));
	}, [rows, columns, sort, filter]);

	useEffect(() => {
		const observer = new ResizeObserver(() => setHeight(box.current!.clientHeight));
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);
	useEffect(() => {
		publish("table", () => sorted);
		return () => publish("table", null);
	}, [sorted]);

	const onSort = (c: Column<Row>) => {
		const first = c.numeric ? `-${c.key}` : c.key;
		const turned = sort === c.key ? `-${c.key}` : c.key;
		const next = sort.replace(/^-/, "") === c.key ? turned : first;
		setSort(next);
		props.onSort?.(next);
	};
	const from = Math.max(0, Math.floor(top / ROW_H) - OVERSCAN);
	const to = Math.min(sorted.length, Math.ceil((top + height) / ROW_H) + OVERSCAN);
	const template = columns.map((c) => c.width ?? "minmax(180px, 1fr)").join(" ");

	return (
		<div class="vtable" role="table" aria-rowcount={sorted.length}>
			<div
				class="vtable-scroll"
				ref={box}
				onScroll={(e) => setTop((e.target as HTMLElement).scrollTop)}
			>
				<div class="vtable-head" role="row" style={{ gridTemplateColumns: template }}>
					{columns.map((c) => (
						<button
							key={c.key}
							type="button"
							role="columnheader"
							title={c.hint}
							class={
								(c.numeric ? "num " : "") +
								(sort.replace(/^-/, "") === c.key ? "sorted" : "")
							}
							aria-sort={
								sort === c.key
									? "ascending"
									: sort === `-${c.key}`
										? "descending"
										: "none"
							}
							onClick={() => onSort(c)}
						>
							{c.title}
							<span class="arrow">
								{sort === c.key ? "▲" : sort === `-${c.key}` ? "▼" : ""}
							</span>
						</button>
					))}
				</div>
				<div class="vtable-body" style={{ height: `${sorted.length * ROW_H}px` }}>
					{sorted.slice(from, to).map((row, i) => (
						<div
							key={rowKey(row)}
							role="row"
							onClick={onPick && (() => onPick(row))}
							class={(onPick ? "pick " : "") + (selected?.(row) ? "selected" : "")}
							style={{
								gridTemplateColumns: template,
								transform: `translateY(${(from + i) * ROW_H}px)`,
							}}
						>
							{columns.map((c) => {
								const bar = c.bar?.(row);
								return (
									<div
										key={c.key}
										role="cell"
										class={c.numeric ? "num" : "ellipsis"}
									>
										{bar !== undefined && bar !== 0 && (
											<span
												class={bar < 0 ? "bar less" : "bar"}
												style={{
													width: `${Math.min(100, Math.abs(bar) * 100)}%`,
												}}
											/>
										)}
										{c.cell(row)}
									</div>
								);
							})}
						</div>
					))}
				</div>
				{sorted.length === 0 && (
					<div class="empty">{props.empty ?? "Nothing matches."}</div>
				)}
			</div>
		</div>
	);
}
