// The two queries of a comparison and two values of a label, in one form with one button.
import { useEffect, useRef, useState } from "preact/hooks";
import { selectorsOf } from "../query/labels";
import { useMenu } from "../query/menus";
import { Combo } from "../query/picker";
import { QueryBar } from "../query/querybar";
import { windowTimes } from "../query/questions";
import type { Window } from "../shared/timerange";
import { type LabelPair, labelPair, type Sides, withLabels } from "./sides";

export interface QueriesProps {
	sides: Sides;
	next: string;
	base: string;
	/** `labelled`: the sides differ by values of a label, so they are compared at the same time. */
	onCompare(next: string, base: string, labelled: boolean): void;
}

interface LabelFieldsProps extends Pick<QueriesProps, "sides" | "next"> {
	pair: LabelPair;
	onPair(p: LabelPair): void;
}

/** The values of a label in a side's window that the query selects, whatever its matchers of that label. */
function useValues(label: string, query: string, window: Window): string[] {
	const name = `label/${encodeURIComponent(label)}/values`;
	return useMenu<string>(name, selectorsOf(query, label), windowTimes(window), label !== "");
}

/** Two values of a label, side by side: v1 against v2. Both sides get New's query with a value. */
export function LabelFields({ sides, next: query, pair, onPair }: LabelFieldsProps) {
	const { label, base, next } = pair;
	const labels = useMenu<string>("labels", selectorsOf(query), windowTimes(sides.next));
	const values = { base: useValues(label, query, sides.base), next: useValues(label, query, sides.next) };
	// With two values, the other side has the other one.
	const other = (v: string) => {
		const all = new Set([...values.base, ...values.next]);
		return all.size === 2 ? [...all].find((o) => o !== v) : undefined;
	};
	const field = (name: string, options: string[], value: string, onCommit: (v: string) => void) => (
		<Combo
			value={value}
			options={options}
			label={name}
			placeholder="value"
			onCommit={onCommit}
		/>
	);
	return (
		<div class="preset" role="group" aria-label="Two values of a label">
			<span class="faint">Label</span>
			<Combo
				value={label}
				options={labels.filter((l) => !l.startsWith("__"))}
				label="Label to compare by"
				placeholder="label"
				onCommit={(v) => onPair(v === label ? pair : { label: v, base: "", next: "" })}
			/>
			<span class="faint">base</span>
			{field("Base value", values.base, base, (v) => onPair({ ...pair, base: v, next: next || other(v) || "" }))}
			<span class="faint">new</span>
			{field("New value", values.next, next, (v) => onPair({ ...pair, next: v, base: base || other(v) || "" }))}
		</div>
	);
}

/** The fields of the form, until they are compared: typed queries, and a pair that was chosen. */
export function useQueriesDraft({ next, base }: Pick<QueriesProps, "next" | "base">, by: string | null) {
	const own = labelPair(next, base, by);
	const [chosen, setPair] = useState<LabelPair | null>(null);
	const typed = useRef({ next, base });
	useEffect(() => {
		typed.current = { next, base };
		setPair(null);
	}, [next, base]);
	return { typed, pair: chosen ?? own, chosen, setPair };
}

export type QueriesDraft = ReturnType<typeof useQueriesDraft>;

export function Queries(props: QueriesProps & { draft: QueriesDraft }) {
	const { sides, next, base, draft, onCompare } = props;
	const compare = () => {
		const { typed, chosen } = draft;
		const of = (q: string) => q.trim();
		const both = withLabels(of(typed.current.next), of(typed.current.base), chosen);
		onCompare(both.next, both.base, chosen !== null && both.labelled);
	};
	const bar = (kind: "base" | "new", query: string) => (
		<div class={`side ${kind}`}>
			<span class="faint">
				<i class="side-mark" />
				{kind === "base" ? "Base" : "New"}
			</span>
			<QueryBar
				query={query}
				label={kind === "base" ? "Base query" : "New query"}
				times={windowTimes(kind === "base" ? sides.base : sides.next)}
				onText={(t) => (draft.typed.current[kind === "base" ? "base" : "next"] = t)}
				onRun={compare}
			/>
		</div>
	);
	return (
		<div class="queries">
			{bar("base", base)}
			{bar("new", next)}
			<button type="button" class="primary" onClick={compare}>
				Compare
			</button>
		</div>
	);
}
