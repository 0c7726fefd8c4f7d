// The controls of Compare: one line that says what is compared, and the editor that it opens.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { selectorsOf } from "../query/labels";
import { Segmented, Select } from "../shared/fields";
import { useApi, useOutside } from "../shared/hooks";
import { IconDown, IconSwap } from "../shared/icons";
import { FoldButton } from "../shared/layout";
import { TimePicker } from "../shared/timepicker";
import { describeRange, formatClock, formatDuration, formatSpan, type TimeRange, trimMs } from "../shared/timerange";
import type { Patch } from "../shared/urlstate";
import { type QueriesDraft, LabelFields, Queries, useQueriesDraft } from "./queries";
import {
	chooseRange,
	chooseShift,
	labelPair,
	pairOfTwo,
	COMPARE_PRESETS,
	SHIFTS,
	type Sides,
	swapped,
	withLabels,
} from "./sides";
import { sidesText } from "./sidestext";
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
	/** The charts are folded: more room for the graph. */
	folded: boolean;
	/** Folds without asking anew. */
	patch(p: Patch): void;
	/** The question, below the queries. */
	asked: ComponentChildren;
	/** Behind the presets. */
	children?: ComponentChildren;
}

/** More than two values are not compared, so more need not be asked for. */
const VALUES_MAX = 3;

/** Two versions at the same time, or the two values of another label, where the new side has two. */
function TwoValues({ sides, next, base, label, changed }: CompareBarProps & { label: string }) {
	const args = {
		"match[]": selectorsOf(next, label),
		start: trimMs(sides.next.start),
		end: trimMs(sides.next.end),
		limit: VALUES_MAX,
	};
	const values = useApi<string[]>(
		next && label ? JSON.stringify([args, label]) : null,
		`label/${encodeURIComponent(label)}/values`,
		args,
	);
	const pair = pairOfTwo(label, values.answer?.data ?? []);
	if (!pair) return null;
	const present = labelPair(next, base);
	const both = withLabels(next, next, pair);
	const on = present.label === label && present.base === pair.base && present.next === pair.next;
	return (
		<button
			type="button"
			title={`The profiles with ${label} ${pair.next} against those with ${pair.base}, at the same time`}
			aria-pressed={on && sides.shift === "0"}
			onClick={() => changed({ ...chooseShift(sides, "0"), new: both.next, base: both.base })}
		>
			{label} {pair.next} against {pair.base}
		</button>
	);
}

/** Common windows; a preset of times gives both sides the new side's query. */
function Presets(props: CompareBarProps & { label: string }) {
	const { sides, params, next, picking, onPicking, changed } = props;
	const get = (k: string) => params.get(k);
	const now = () => Math.floor(Date.now() / 1000);
	return (
		<div class="presets" role="group" aria-label="Presets">
			{COMPARE_PRESETS.map((p) => (
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
				title="Click a point on a chart below, or move with the arrow keys and press Enter"
				aria-pressed={picking || sides.point !== null}
				onClick={() => onPicking(!picking)}
			>
				Before against after a point
			</button>
			{props.children}
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

interface ChoicesProps extends CompareBarProps {
	draft: QueriesDraft;
}

/** The choices beside the window and the queries. */
function Choices(props: ChoicesProps) {
	const { sides, next, base, normalized, draft, changed } = props;
	return (
		<>
			<div class="row wrap">
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
						["absolute", "Absolute", "Measured costs"],
						[
							"norm",
							"Normalized",
							"New scaled to the total of base: compares shares",
						],
					]}
					onChange={(v) => changed({ norm: v === "norm" ? "1" : null })}
				/>
				<span class="spacer" />
				<LabelFields {...{ sides, next }} pair={draft.pair} onPair={draft.setPair} />
			</div>
			<Presets {...props} label={draft.pair.label} />
		</>
	);
}

function Mark({ kind, text }: { kind: "base" | "new"; text: string }) {
	return (
		<span class={`line-side ${kind}`}>
			<i class="side-mark" />
			{kind === "base" ? "Base" : "New"} <code>{text}</code>
		</span>
	);
}

/** What is compared. A press opens the editor. */
function LineText({ props, open, onOpen }: { props: CompareBarProps; open: boolean; onOpen(): void }) {
	const { sides, range, next, base, normalized } = props;
	const text = sidesText(next, base, sides, range.kind === "relative");
	return (
		<button
			type="button"
			class="line-text"
			aria-expanded={open}
			title={`New: ${next}, ${formatSpan(sides.next)}\nBase: ${base}, ${formatSpan(sides.base)}`}
			onClick={onOpen}
		>
			<span class="visually-hidden">Edit the comparison: </span>
			{text.both && <code class="line-both">{text.both}</code>}
			<Mark kind="new" text={text.next} />
			<span class="faint">against</span>
			<Mark kind="base" text={text.base} />
			{normalized && <span class="faint">normalized</span>}
			{range.kind === "relative" && <span class="faint line-time">{describeRange(range)}</span>}
			<IconDown />
		</button>
	);
}

export function CompareBar(props: CompareBarProps) {
	const { sides, range, next, base, params, picking, changed, folded, patch } = props;
	const [open, setOpen] = useState(false);
	const text = useRef<HTMLDivElement>(null);
	const close = () => {
		// The focus returns to the line, unless a press moved it elsewhere.
		if (box.current?.querySelector(".choices")?.contains(document.activeElement))
			text.current?.querySelector("button")?.focus();
		setOpen(false);
	};
	const box = useOutside(open, close);
	// A point is chosen on the charts, which the editor would cover.
	useEffect(() => setOpen(false), [picking]);
	const draft = useQueriesDraft({ next, base }, params.get("by"));
	const aside = formatDuration(Math.round(sides.next.end - sides.next.start));
	/** Whoever chose something wants to see the comparison. */
	const chosen = (p: Patch) => {
		close();
		changed(p);
	};
	const onCompare = (n: string, b: string, labelled: boolean) =>
		chosen({ ...(labelled ? chooseShift(sides, "0") : {}), base: b, new: n });
	const label = draft.pair.label;
	return (
		<section class="panel compare-line" aria-label="What is compared" ref={box}>
			<div class="line" ref={text}>
				<LineText props={props} open={open} onOpen={() => (open ? close() : setOpen(true))} />
				{picking ? (
					<span class="faint" role="status">
						Click a point on a chart below. Escape cancels.
					</span>
				) : (
					<TwoValues {...props} label={label} />
				)}
				<span class="spacer" />
				<TimePicker
					range={range}
					text={sides.point === null ? undefined : `${aside} on each side`}
					onChange={(r) => changed(chooseRange(sides, r))}
				/>
				<FoldButton name="Charts" on={folded} patch={patch} />
			</div>
			<div class={open ? "choices open" : "choices"}>
				<Choices {...props} changed={chosen} draft={draft} />
				<Queries {...{ sides, next, base, draft, onCompare }} />
				{props.asked}
			</div>
		</section>
	);
}
