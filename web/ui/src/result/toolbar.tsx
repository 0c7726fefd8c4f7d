// The parts of the toolbar above a result: which view, which element, search.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../flame/layout";
import { compilePattern } from "../flame/search";
import {
	type Answer,
	labelsAmong,
	type ProfileElement,
	type QueryData,
	tellingLabels,
} from "../shared/api";
import { IconSearch, IconX } from "../shared/icons";
import { counted, formatPercent, formatSigned, formatValue, trend } from "../shared/units";
import type { SearchAnswer, SearchSteps } from "./usefound";

const SEARCH_DELAY_MS = 140;

interface SearchState {
	text: string;
	pattern: RegExp | null;
	error: string;
}

export function useSearch(text: string): SearchState {
	return useMemo(() => {
		if (!text) return { text, pattern: null, error: "" };
		try {
			return { text, pattern: compilePattern(text), error: "" };
		} catch (e) {
			return {
				text,
				pattern: null,
				error: (e as Error).message.replace(/^Invalid regular expression: /, ""),
			};
		}
	}, [text]);
}

export function SearchBox({
	text,
	error,
	found,
	steps,
	placeholder,
	onChange,
}: {
	text: string;
	error: string;
	/** What the server finds; null: nothing is asked. */
	found?: SearchAnswer | null;
	/** Enter and Shift+Enter go from match to match. */
	steps?: SearchSteps;
	placeholder?: string;
	onChange(text: string): void;
}) {
	const [draft, setDraft] = useState(text);
	const pending = useRef<1 | -1 | 0>(0);
	useEffect(() => setDraft(text), [text]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: only a letter begins the wait anew
	useEffect(() => {
		if (draft === text) return;
		const id = setTimeout(() => onChange(draft), SEARCH_DELAY_MS);
		return () => clearTimeout(id);
	}, [draft]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the step waits for its text
	useEffect(() => {
		const by = pending.current;
		pending.current = 0;
		if (by) steps?.onStep(by);
	}, [text]);
	const step = (by: 1 | -1) => {
		if (draft === text) return steps?.onStep(by);
		pending.current = by;
		onChange(draft);
	};
	const clear = () => {
		setDraft(""); // also text that is not in the address yet
		onChange("");
	};
	return (
		<div class={error ? "search bad" : "search"}>
			<IconSearch />
			<input
				type="text"
				placeholder={placeholder ?? "Search functions (regexp)"}
				aria-label="Search"
				spellcheck={false}
				value={draft}
				title={error}
				onInput={(e) => setDraft((e.target as HTMLInputElement).value)}
				onKeyDown={(e) => {
					if (e.key === "Escape") clear();
					if (e.key === "Enter" && !e.isComposing) step(e.shiftKey ? -1 : 1);
				}}
			/>
			{draft && (
				<button
					type="button"
					class="quiet"
					aria-label="Clear the search"
					onClick={clear}
				>
					<IconX />
				</button>
			)}
			{error ? (
				<span class="search-info worse">not a regexp</span>
			) : (
				found && <FoundShare found={found} at={steps?.at ?? 0} />
			)}
		</div>
	);
}

/** The share of what matches; on both sides of a difference. */
function FoundShare({ found, at }: { found: SearchAnswer; at: number }) {
	const { matched, error, old, paths } = found;
	if (error)
		return (
			<span class="search-info worse" title={error.message}>
				{error.errorType === "bad_data" ? "not a regexp" : "no answer"}
			</span>
		);
	if (!matched) return <span class="search-info faint">…</span>;
	const sides = matched.left_percent !== undefined;
	const shares = sides ? [matched.left_percent, matched.right_percent] : [matched.percent];
	return (
		<span
			class={old ? "search-info old" : "search-info"}
			title={
				`${counted(matched.functions, "function")} in ${counted(matched.stacks, "stack")}` +
				`${sides ? ". Share of Base and New" : ""}. Enter: next, Shift+Enter: previous`
			}
		>
			<b>{shares.map((p) => formatPercent(p ?? 0)).join(" → ")}</b> matched
			{at > 0 && ` ${at}/${paths.length}`}
		</span>
	);
}

/** The change of the total; against nothing there is none. */
function changeOf({ cost, unit, left_total, right_total }: ProfileElement): [string, string, string][] {
	if (!left_total || !right_total) return [];
	return [["change", formatSigned(cost, unit), cost ? trend(cost) : ""]];
}

export function Summary({
	element,
	answer,
	flame,
}: {
	element: ProfileElement;
	answer: Answer<QueryData>;
	flame: Flame | null;
}) {
	const { unit } = element;
	const items: [string, string, string?][] =
		element.left_total !== undefined
			? [
					["base", formatValue(element.left_total, unit)],
					["new", formatValue(element.right_total ?? 0, unit)],
					...changeOf(element),
				]
			: element.cost === element.total
				? [["total", formatValue(element.total, unit)]]
				: [
						["cost", formatValue(element.cost, unit)],
						["of", formatValue(element.total, unit)],
					];
	items.push(["profiles", element.profiles.toLocaleString("en")]);
	const hint =
		`${flame ? flame.count.toLocaleString("en") : 0} nodes, answered in ` +
		`${Math.round(answer.tookMs)} ms`;
	return (
		<dl class="summary" title={hint}>
			{items.map(([k, v, cls]) => (
				<div key={k}>
					<dt>{k}</dt>
					<dd class={cls}>{v}</dd>
				</div>
			))}
		</dl>
	);
}

export function ElementSelect({
	elements,
	index,
	all,
	onChange,
}: {
	elements: {
		metric: Record<string, string>;
		cost?: number;
		total?: number;
		unit?: string;
	}[];
	index: number;
	/** Whether all together is chosen; not offered if not given. */
	all?: boolean;
	/** The parameter `el`: null for the first. */
	onChange(el: string | null): void;
}) {
	if (elements.length < 2) return null;
	const telling = tellingLabels(elements.map((e) => e.metric));
	return (
		<select
			class="element"
			value={all ? "all" : String(index)}
			aria-label="Which result"
			title={`${elements.length} results`}
			onChange={(e) => {
				const el = (e.target as HTMLSelectElement).value;
				onChange(el === "0" ? null : el);
			}}
		>
			{all !== undefined && <option value="all">all {elements.length} together</option>}
			{elements.map((e, i) => (
				<option key={i} value={String(i)}>
					{labelsAmong(e.metric, telling)}
					{e.total !== undefined
						? ` · ${formatValue(e.cost ?? e.total, e.unit ?? "")}`
						: ""}
				</option>
			))}
		</select>
	);
}

export function DiffLegend() {
	return (
		<span class="diff-legend" title="Colour: how the cost changed; grey is no change">
			<span class="faint">less</span>
			<i />
			<span class="faint">more</span>
		</span>
	);
}
