// The call path of the zoomed function, from the root down; each part zooms back to it.
import { formatPercent, share } from "../shared/units";
import { ancestry, type Flame, nameOf } from "./layout";
import { shortName } from "./names";

const SHOWN = 7;

export function Crumbs({
	flame,
	zoomed,
	onZoom,
}: {
	flame: Flame;
	zoomed: number;
	onZoom(i: number): void;
}) {
	const path = ancestry(flame, zoomed);
	const shown = path.length > SHOWN ? [path[0], -1, ...path.slice(2 - SHOWN)] : path;
	return (
		<div class={zoomed > 0 ? "crumbs zoomed" : "crumbs"} role="group" aria-label="Call path of the zoomed function">
			{shown.map((n) =>
				n < 0 ? (
					<span key="gap" class="faint">
						…
					</span>
				) : (
					<button
						key={n}
						type="button"
						title={nameOf(flame, n)}
						class={n === zoomed ? "current" : ""}
						onClick={() => onZoom(n)}
					>
						{shortName(nameOf(flame, n) ?? "")}
					</button>
				),
			)}
			{zoomed > 0 && (
				<>
					<span class="faint">
						{formatPercent(share(flame.total[zoomed], flame.width))} of total
					</span>
					<button type="button" class="reset" onClick={() => onZoom(0)}>
						Reset zoom
					</button>
				</>
			)}
		</div>
	);
}
