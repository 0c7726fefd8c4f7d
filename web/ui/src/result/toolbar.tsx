// The parts of the toolbar above a result: which view, which element, search.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Flame } from "../flame/layout";
import { compilePattern, type Matches } from "../flame/search";
import {
	type Answer,
	labelsAmong,
	type ProfileElement,
	type QueryData,
	tellingLabels,
} from "../shared/api";
import { IconSearch, IconX } from "../shared/icons";
import { formatPercent, formatSigned, formatValue, share, trend } from "../shared/units";

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
	matches,
	flame,
	placeholder,
	onChange,
}: {
	text: string;
	error: string;
	matches?: Matches | null;
	flame?: Flame | null;
	placeholder?: string;
	onChange(text: string): void;
}) {
	const [draft, setDraft] = useState(text);
	useEffect(() => setDraft(text), [text]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: only a letter begins the wait anew
	useEffect(() => {
		if (draft === text) return;
		const id = setTimeout(() => onChange(draft), SEARCH_DELAY_MS);
		return () => clearTimeout(id);
	}, [draft]);
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
				matches &&
				flame && (
					<span
						class="search-info"
						title={`${matches.names} functions in ${matches.nodes} nodes`}
					>
						<b>{formatPercent(share(matches.total, flame.width))}</b> matched
					</span>
				)
			)}
		</div>
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
