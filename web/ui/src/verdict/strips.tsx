// A function's share per minute on both sides of a comparison: two strips of bars on one scale.
import { useEffect, useMemo } from "preact/hooks";
import type { MatrixElement } from "../shared/api";
import { publish } from "../shared/debug";
import { useApi } from "../shared/hooks";
import { formatDuration, formatTime, trimMs, type Window } from "../shared/timerange";
import { formatPercent, formatValue } from "../shared/units";
import { barsApart, bars, stripQuery, stripStep } from "./blame";

export interface StripSide {
	/** The profiles of the side, without the window. */
	query: string;
	window: Window;
}

export interface StripsProps {
	base: StripSide;
	next: StripSide;
	name: string;
	of: "cum" | "flat";
	/** The unit of a level, which is shown as it is; "" for shares. */
	unit: string;
	tick: number;
}

function apartText(apart: "more" | "less" | "", slice: string): string {
	const where = apart === "more" ? "above" : "below";
	return apart && `; every ${slice} of New is ${where} every ${slice} of Base`;
}

const W = 240;
const H = 36;

function useBars(side: StripSide, step: number, props: StripsProps): (number | null)[] | null {
	const { name, of, unit, tick } = props;
	const query = stripQuery(side.query, name, unit ? of : `${of}_share`, step);
	const args = {
		query,
		start: trimMs(side.window.start + step),
		end: trimMs(side.window.end),
		step: String(step),
	};
	const key = step > 0 ? JSON.stringify([args, tick]) : null;
	const { answer } = useApi<{ result: MatrixElement[] }>(key, "query_range", args);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the answer is of the window that was asked for
	return useMemo(() => (answer ? bars(answer.data.result, side.window, step) : null), [answer]);
}

function Strip(props: {
	kind: "base" | "new";
	values: (number | null)[];
	top: number;
	start: number;
	step: number;
	text(v: number): string;
}) {
	const { kind, values, top, start, step, text } = props;
	const width = W / Math.max(1, values.length);
	const known = values.filter((v): v is number => v !== null);
	const label = known.length
		? `${kind}: from ${text(Math.min(...known))} to ${text(Math.max(...known))}`
		: `${kind}: no data`;
	return (
		<div class={`strip ${kind}`}>
			<span class="faint">
				<i class="side-mark" />
				{kind === "base" ? "Base" : "New"}
			</span>
			<svg viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label={label}>
				<path class="strip-line" d={`M0 ${H - 0.5}H${W}`} />
				{values.map((v, i) => (
					<rect
						key={i}
						x={i * width + 0.5}
						width={Math.max(0.5, width - 1)}
						y={H - ((v ?? 0) / top) * (H - 2)}
						height={((v ?? 0) / top) * (H - 2)}
					>
						<title>
							{formatTime(start + (i + 1) * step)}:{" "}
							{v === null ? "no data" : text(v)}
						</title>
					</rect>
				))}
			</svg>
		</div>
	);
}

export function Strips(props: StripsProps) {
	const { base, next, unit } = props;
	const seconds = Math.max(...[base, next].map((s) => s.window.end - s.window.start));
	const step = stripStep(seconds);
	const both = { base: useBars(base, step, props), new: useBars(next, step, props) };
	const top = Math.max(0, ...[both.base, both.new].flatMap((b) => (b ?? []).map((v) => v ?? 0)));
	useEffect(() => {
		publish("strips", () => (both.base && both.new ? { ...both, step, top } : null));
		return () => publish("strips", null);
	});
	if (!step || !both.base || !both.new) return null;
	const text = (v: number) => (unit ? formatValue(v, unit) : formatPercent(100 * v));
	const shared = { top: top || 1, step, text };
	const slice = step === 60 ? "minute" : formatDuration(step);
	return (
		<div class="strips" title={`${unit ? "Cost" : "Share"}, one bar per ${formatDuration(step)}`}>
			<Strip kind="base" values={both.base} start={base.window.start} {...shared} />
			<Strip kind="new" values={both.new} start={next.window.start} {...shared} />
			<span class="faint strips-note">
				per {slice}, up to {text(top)}
				{apartText(barsApart(both.base, both.new), slice)}
			</span>
		</div>
	);
}
