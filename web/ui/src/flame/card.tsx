// The card beside the pointer or the selected frame: the cost of a node, alone and with all it calls,
// and where it is defined.
import type { ComponentChildren } from "preact";
import { formatPercent, formatPoints, formatSigned, formatValue, share } from "../shared/units";
import { type Unnamed, unnamedOf } from "../shared/symbols";
import { diffOf, fileOf, type Flame, FOLDED, nameOf } from "./layout";
import { packageOf } from "./names";
import { aboutUnnamed, WHAT_TO_DO } from "./unnamed";

export interface CardProps {
	flame: Flame;
	node: number;
	unit: string;
	/** Whether zooming reads what was folded. */
	reads?: boolean;
	/** The anchor: a point, or the upper and lower edge of a frame. */
	x: number;
	y: number;
	top?: number;
}

const CARD_W = 420;
const GAP = 14;
/** Higher than any card. */
const CARD_H = 230;

function Single({ flame: f, node, unit }: CardProps) {
	const parent = f.parent[node];
	const row = (label: string, v: number) => (
		<tr>
			<th>{label}</th>
			<td>{formatValue(v, unit)}</td>
			<td>{formatPercent(share(v, f.width))} of total</td>
		</tr>
	);
	return (
		<table>
			<tbody>
				{row("Flat", f.self[node])}
				{row("Cum", f.total[node])}
				{parent >= 0 && (
					<tr>
						<th>Of parent</th>
						<td>{formatPercent(share(f.total[node], f.total[parent]))}</td>
						<td class="faint ellipsis">{nameOf(f, parent)}</td>
					</tr>
				)}
			</tbody>
		</table>
	);
}

/** Base, new and change of one amount; percentages of each side's total. */
function DoubleRow(props: {
	label: string;
	base: ComponentChildren[];
	children: ComponentChildren;
}) {
	return (
		<tr>
			<th>{props.label}</th>
			{props.base.map((c, i) => (
				<td key={i}>{c}</td>
			))}
			<td>{props.children}</td>
		</tr>
	);
}

const judged = (points: number) => (points >= 0.005 ? "more" : points <= -0.005 ? "less" : "");

function Double({ flame: f, node, unit }: CardProps) {
	const { base, next, baseTotal, nextTotal } = diffOf(f);
	const parent = f.parent[node];
	const row = (label: string, of: "total" | "self") => {
		const b = share(base[of][node], baseTotal);
		const n = share(next[of][node], nextTotal);
		const both = [
			[base[of][node], b],
			[next[of][node], n],
		];
		return (
			<DoubleRow
				label={label}
				base={both.map(([v, percent]) => (
					<>
						{formatValue(v, unit)}
						<i>{formatPercent(percent)}</i>
					</>
				))}
			>
				{formatSigned(next[of][node] - base[of][node], unit)}
				<i class={judged(n - b)}>{formatPoints(n - b)}</i>
			</DoubleRow>
		);
	};
	const within = [base, next].map((s) =>
		parent < 0 ? 0 : share(s.total[node], s.total[parent]),
	);
	return (
		<table class="diff">
			<thead>
				<tr>
					<td />
					<th>Base</th>
					<th>New</th>
					<th>Change</th>
				</tr>
			</thead>
			<tbody>
				{row("Flat", "self")}
				{row("Cum", "total")}
				{parent >= 0 && (
					<DoubleRow label="Of parent" base={within.map(formatPercent)}>
						{formatPoints(within[1] - within[0])}
					</DoubleRow>
				)}
			</tbody>
		</table>
	);
}

/** What a frame without a name is, and where help is. */
function Nameless({ unnamed }: { unnamed: Unnamed }) {
	return (
		<div class="faint">
			{aboutUnnamed(unnamed)} {unnamed.file && WHAT_TO_DO}
		</div>
	);
}

/** File and line of a function, or its package if no file is known. */
function whereOf(f: Flame, node: number): string {
	const name = f.name[node];
	const file = fileOf(f, name);
	const line = f.nameLines[name] ?? 0;
	return file ? (line > 0 ? `${file}:${line}` : file) : packageOf(f.names[name]);
}

export function Card(props: CardProps) {
	const { flame, node, x, y } = props;
	const name = nameOf(flame, node);
	const unnamed = unnamedOf(name);
	const folded = name === FOLDED && flame.parent[node] >= 0;
	const left = Math.max(8, Math.min(x + GAP, window.innerWidth - CARD_W - 12));
	const top = props.top ?? y;
	const below = y + CARD_H < window.innerHeight || top < CARD_H;
	return (
		<div
			class="card"
			role="tooltip"
			style={{
				left: `${left}px`,
				top: below ? `${y + GAP}px` : "auto",
				bottom: below ? "auto" : `${window.innerHeight - top + GAP}px`,
			}}
		>
			<div class="card-name">{name}</div>
			{folded ? (
				<div class="faint">
					Nodes below the node limit, folded into one.
					{props.reads && " Zoom in to load them."}
				</div>
			) : unnamed ? (
				<Nameless unnamed={unnamed} />
			) : (
				node > 0 && <div class="card-where faint">{whereOf(flame, node)}</div>
			)}
			{flame.diff ? <Double {...props} /> : <Single {...props} />}
		</div>
	);
}
