// The lines of a file with what they cost. Only those in view are in the document.
import { useEffect, useImperativeHandle, useMemo, useRef } from "preact/hooks";
import type { Ref } from "preact";
import { publish } from "../shared/debug";
import { useRowsInView } from "../shared/rows";
import { formatSigned, formatValue, trend } from "../shared/units";
import { firstRow, lineUrl, nextCost, type SourceRow, TAB_WIDTH, widthOf } from "./source";

const LISTING_ROW_H = 24; // as high as a target of a press must be

export interface ListingHandle {
	/** Moves to the next line that costs something. */
	next(step: 1 | -1): void;
}

export interface ListingProps {
	rows: SourceRow[];
	unit: string;
	diff: boolean;
	/** The line that is marked; 0: none. */
	line: number;
	/** Whenever it changes, the listing goes to its first row; a refresh leaves it where it is. */
	begin: string;
	/** The address of a line's code; "": none. */
	url: string;
	/** Names it for screen readers. */
	label: string;
	handle: Ref<ListingHandle>;
}

function Cost({ value, most, of }: { value: number; most: number; of: ListingProps }) {
	if (value === 0) return null;
	const { unit, diff } = of;
	return (
		<>
			<span
				class={value < 0 ? "bar less" : "bar"}
				style={{ width: `${Math.min(100, (100 * Math.abs(value)) / most)}%` }}
			/>
			<span class={diff ? trend(value) : ""}>
				{diff ? formatSigned(value, unit) : formatValue(value, unit)}
			</span>
		</>
	);
}

function Line({ row, index, of, most }: {
	row: SourceRow;
	index: number;
	of: ListingProps;
	most: { flat: number; cum: number };
}) {
	const marked = row.line === of.line;
	const classes = [row.own && "own", marked && "marked", (row.flat || row.cum) && "costs"];
	return (
		<div
			role="row"
			aria-rowindex={index + 2}
			aria-current={marked ? "true" : undefined}
			class={classes.filter(Boolean).join(" ")}
			style={{ transform: `translateY(${index * LISTING_ROW_H}px)` }}
		>
			<div role="rowheader" class="num">
				{of.url ? (
					<a
						href={lineUrl(of.url, row.line)}
						target="_blank"
						rel="noopener noreferrer"
						tabIndex={-1}
						title="This line in the repository, in a new tab"
					>
						{row.line}
					</a>
				) : (
					row.line
				)}
			</div>
			<div role="cell" class="num">
				<Cost value={row.flat} most={most.flat} of={of} />
			</div>
			<div role="cell" class="num">
				<Cost value={row.cum} most={most.cum} of={of} />
			</div>
			<div role="cell" class="code">
				{row.text ?? <span class="faint">…</span>}
			</div>
		</div>
	);
}

const mostOf = (rows: SourceRow[], key: "flat" | "cum"): number =>
	rows.reduce((m, r) => Math.max(m, Math.abs(r[key])), 0) || 1;

export function Listing(props: ListingProps) {
	const { rows, line } = props;
	const view = useRowsInView(rows.length, LISTING_ROW_H);
	const at = useRef(-1);
	const most = useMemo(() => ({ flat: mostOf(rows, "flat"), cum: mostOf(rows, "cum") }), [rows]);
	const width = useMemo(() => widthOf(rows.map((r) => r.text ?? "")), [rows]);
	const toRow = (index: number) => {
		at.current = index;
		if (index >= 0) view.center(index);
	};
	// biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls only where the view begins anew
	useEffect(() => toRow(firstRow(rows, line)), [props.begin]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: toRow reads nothing that changes
	useImperativeHandle(props.handle, () => ({ next: (step) => toRow(nextCost(rows, at.current, step)) }), [rows]);
	useEffect(() => {
		publish("source", () => rows);
		return () => publish("source", null);
	}, [rows]);
	return (
		<div
			class={props.diff ? "listing is-diff" : "listing"}
			ref={view.box}
			tabIndex={0}
			role="table"
			aria-label={props.label}
			aria-rowcount={rows.length + 1}
			onScroll={view.onScroll}
		>
			<div style={{ minWidth: `calc(var(--costs) + ${width + TAB_WIDTH}ch)` }}>
				<div class="listing-head" role="row">
					<div role="columnheader" class="num">
						Line
					</div>
					<div role="columnheader" class="num" title="Cost on this line itself">
						Flat
					</div>
					<div role="columnheader" class="num" title="Cost on this line and in its callees">
						Cum
					</div>
					<div role="columnheader">Code</div>
				</div>
				<div class="listing-body" role="rowgroup" style={{ height: `${rows.length * LISTING_ROW_H}px` }}>
					{rows.slice(view.from, view.to).map((row, i) => (
						<Line key={row.line} row={row} index={view.from + i} of={props} most={most} />
					))}
				</div>
			</div>
		</div>
	);
}
