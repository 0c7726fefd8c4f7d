// The controls of Compare: windows, presets, two values of a label, Normalized.
import { useEffect, useState } from "preact/hooks";
import { Combo } from "../query/picker";
import { withMatcher } from "../query/query";
import { useLabelNames } from "../query/questions";
import { Segmented, Select } from "../shared/fields";
import { useApi, useUrl } from "../shared/hooks";
import { IconSwap } from "../shared/icons";
import { TimePicker } from "../shared/timepicker";
import { formatClock, formatDuration, type TimeRange } from "../shared/timerange";
import { chooseRange, chooseShift, PRESETS, SHIFTS, type Sides, swapped } from "./sides";
import "./bar.css";

export interface CompareBarProps {
	sides: Sides;
	range: TimeRange;
	params: URLSearchParams;
	next: string;
	base: string;
	normalized: boolean;
	/** Whether the next press on a chart chooses the point. */
	picking: boolean;
	onPicking(on: boolean): void;
	changed(p: Record<string, string | null>): void;
}

/** Two values of a label, side by side: v1 against v2. */
function LabelPreset({
	query,
	onApply,
}: {
	query: string;
	onApply(base: string, next: string): void;
}) {
	const { location } = useUrl();
	const [label, setLabel] = useState(location.params.get("by") ?? "version");
	const [base, setBase] = useState("");
	const [next, setNext] = useState("");
	const labels = useLabelNames();
	const values = useApi<string[]>(label || null, `label/${encodeURIComponent(label)}/values`);
	const options = values.answer?.data ?? [];
	useEffect(() => {
		// If there are just two values, suggest them.
		setBase(options.length >= 2 ? options[options.length - 2] : "");
		setNext(options.length >= 2 ? options[options.length - 1] : "");
	}, [values.answer]);
	const valueField = (name: string, value: string, set: (v: string) => void) => (
		<Combo
			value={value}
			options={options}
			label={name}
			placeholder="value"
			onCommit={set}
		/>
	);
	const apply = () => onApply(withMatcher(query, label, base), withMatcher(query, label, next));
	return (
		<div class="preset" role="group" aria-label="Two values of a label">
			<span class="faint">Label</span>
			<Combo
				value={label}
				options={(labels.answer?.data ?? []).filter((l) => !l.startsWith("__"))}
				label="Label to compare by"
				placeholder="label"
				onCommit={setLabel}
			/>
			<span class="faint">base</span>
			{valueField("Base value", base, setBase)}
			<span class="faint">new</span>
			{valueField("New value", next, setNext)}
			<button
				type="button"
				class="primary"
				disabled={!label || !base || !next || base === next}
				onClick={apply}
			>
				Compare
			</button>
		</div>
	);
}

/** Common windows; a preset gives both sides the new side's query. */
function Presets({ sides, params, next, picking, onPicking, changed }: CompareBarProps) {
	const get = (k: string) => params.get(k);
	const now = () => Math.floor(Date.now() / 1000);
	return (
		<div class="presets" role="group" aria-label="Presets">
			{PRESETS.map((p) => (
				<button
					key={p.text}
					type="button"
					title={p.hint}
					aria-pressed={p.on(get)}
					onClick={() => changed({ ...p.patch(now()), base: next })}
				>
					{p.text}
				</button>
			))}
			<button
				type="button"
				title="Click the point on a chart below, or move there with the arrows and press Enter"
				aria-pressed={picking || sides.point !== null}
				onClick={() => onPicking(!picking)}
			>
				Before against after a point
			</button>
			{picking && (
				<span class="faint" role="status">
					Click the point on a chart below. Escape cancels.
				</span>
			)}
		</div>
	);
}

function BaseWindow({ sides, changed }: Pick<CompareBarProps, "sides" | "changed">) {
	const { shift, point } = sides;
	const offered = SHIFTS.some(([v]) => v === shift);
	return (
		<Select
			name="Base window"
			label="Base window"
			value={shift}
			onChange={(v) => changed(chooseShift(sides, v))}
		>
			{SHIFTS.map(([v, text]) => (
				<option key={v} value={v}>
					{text}
				</option>
			))}
			{shift === "own" && <option value="own">as chosen on the chart</option>}
			{point !== null && <option value="point">before {formatClock(point)}</option>}
			{!offered && shift !== "own" && point === null && (
				<option value={shift}>{shift} before</option>
			)}
		</Select>
	);
}

export function CompareBar(props: CompareBarProps) {
	const { sides, range, next, base, normalized, changed } = props;
	const aside = formatDuration(Math.round(sides.next.end - sides.next.start));
	return (
		<section class="panel controls">
			<div class="row wrap">
				<TimePicker
					range={range}
					text={sides.point === null ? undefined : `${aside} on each side`}
					onChange={(r) => changed(chooseRange(sides, r))}
				/>
				<BaseWindow sides={sides} changed={changed} />
				<button
					type="button"
					title="Exchange base and new"
					onClick={() => changed({ ...swapped(sides), new: base, base: next })}
				>
					<IconSwap />
					Swap
				</button>
				<Segmented
					label="How costs are compared"
					value={normalized ? "norm" : "absolute"}
					options={[
						["absolute", "Absolute", "Costs as they are"],
						[
							"norm",
							"Normalized",
							"The new side scaled to the total of the base: what changed in proportion",
						],
					]}
					onChange={(v) => changed({ norm: v === "norm" ? "1" : null })}
				/>
				<span class="spacer" />
				<LabelPreset
					query={next}
					onApply={(b, n) => changed({ ...chooseShift(sides, "0"), base: b, new: n })}
				/>
			</div>
			<Presets {...props} />
		</section>
	);
}
