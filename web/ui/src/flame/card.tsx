// The card that follows the pointer: what a node costs, alone and with all it calls.
import { formatPercent, formatPoints, formatSigned, formatValue, share } from "../lib/units";
import { packageOf } from "./color";
import { nameOf, type Flame } from "./layout";

export interface CardProps {
	flame: Flame;
	node: number;
	unit: string;
	x: number;
	y: number;
}

const CARD_W = 380;
const GAP = 14;

function Single({ flame: f, node, unit }: CardProps) {
	const parent = f.parent[node];
	return (
		<table>
			<tbody>
				<tr>
					<th>Total</th>
					<td>{formatValue(f.total[node], unit)}</td>
					<td>{formatPercent(share(f.total[node], f.width))} of all</td>
				</tr>
				<tr>
					<th>Self</th>
					<td>{formatValue(f.self[node], unit)}</td>
					<td>{formatPercent(share(f.self[node], f.width))} of all</td>
				</tr>
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

function Double({ flame: f, node, unit }: CardProps) {
	const { base, next, baseTotal, nextTotal } = f.diff!;
	const row = (label: string, of: "total" | "self") => {
		const b = share(base[of][node], baseTotal);
		const n = share(next[of][node], nextTotal);
		const d = n - b;
		return (
			<tr>
				<th>{label}</th>
				<td>
					{formatValue(base[of][node], unit)}
					<i>{formatPercent(b)}</i>
				</td>
				<td>
					{formatValue(next[of][node], unit)}
					<i>{formatPercent(n)}</i>
				</td>
				<td>
					{formatSigned(next[of][node] - base[of][node], unit)}
					<i class={d >= 0.005 ? "worse" : d <= -0.005 ? "better" : ""}>
						{formatPoints(d)}
					</i>
				</td>
			</tr>
		);
	};
	return (
		<table class="diff">
			<thead>
				<tr>
					<th />
					<th>Base</th>
					<th>New</th>
					<th>Change</th>
				</tr>
			</thead>
			<tbody>
				{row("Total", "total")}
				{row("Self", "self")}
			</tbody>
		</table>
	);
}

export function Card(props: CardProps) {
	const { flame, node, x, y } = props;
	const name = nameOf(flame, node);
	const folded = name === "other" && flame.parent[node] >= 0;
	const left = Math.max(8, Math.min(x + GAP, window.innerWidth - CARD_W - 12));
	const below = y + 190 < window.innerHeight;
	return (
		<div
			class="card"
			role="tooltip"
			style={{
				left: `${left}px`,
				top: below ? `${y + GAP}px` : "auto",
				bottom: below ? "auto" : `${window.innerHeight - y + GAP}px`,
			}}
		>
			<div class="card-name">{node === 0 ? "total" : name}</div>
			{folded ? (
				<div class="faint">Nodes below the node limit, folded into one.</div>
			) : (
				node > 0 && <div class="faint">{packageOf(name)}</div>
			)}
			{flame.diff ? <Double {...props} /> : <Single {...props} />}
		</div>
	);
}
