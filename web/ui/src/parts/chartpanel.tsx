// Cost over time above the results of Explore: what it is split by, and the chart itself.
import type { ChartData } from "../lib/questions";
import type { Kind } from "../lib/query";
import { useApi } from "../lib/hooks";
import { absolute, type TimeRange } from "../lib/timerange";
import { Chart } from "./chart";
import { QueryError } from "./querybar";

export interface ChartPanelProps {
	chart: ChartData;
	kind: Kind;
	/** The label each line is a value of, "" for one line. */
	by: string;
	patch(p: Record<string, string | null>, replace?: boolean): void;
	setRange(range: TimeRange): void;
}

const EMPTY: never[] = [];

function BySelect({ by, patch }: Pick<ChartPanelProps, "by" | "patch">) {
	const labels = useApi<string[]>("labels", "labels");
	const names = [...new Set([...(by ? [by] : []), ...(labels.answer?.data ?? [])])];
	return (
		<label class="select">
			<span class="faint">By label</span>
			<select
				value={by}
				aria-label="One line per value of"
				onChange={(e) => patch({ by: (e.target as HTMLSelectElement).value })}
			>
				<option value="">none</option>
				{names
					.filter((l) => !l.startsWith("__"))
					.map((l) => (
						<option key={l} value={l}>
							{l}
						</option>
					))}
			</select>
		</label>
	);
}

export function ChartPanel({ chart, kind, by, patch, setRange }: ChartPanelProps) {
	return (
		<section class={chart.loaded.loading ? "panel chart-panel busy" : "panel chart-panel"}>
			<div class="panel-head">
				<h2>Cost over time</h2>
				<span class="faint">{chart.unit.label}</span>
				<span class="spacer" />
				{kind !== "costs" && <BySelect by={by} patch={patch} />}
				<span class="faint">step {chart.step} s · drag to zoom</span>
			</div>
			{chart.loaded.error ? (
				<QueryError error={chart.loaded.error} sent={chart.sent} />
			) : (
				<Chart
					matrix={chart.loaded.answer?.data.result ?? EMPTY}
					unit={chart.unit}
					window={chart.window}
					step={chart.step}
					onSelect={(a, b) => setRange(absolute(Math.floor(a), Math.ceil(b)))}
				/>
			)}
		</section>
	);
}
