// The label browser: the labels and values of the selected series with their counts. A press selects
// a value.
import { useMemo, useState } from "preact/hooks";
import type { ApiError } from "../shared/api";
import { useApi } from "../shared/hooks";
import { IconX } from "../shared/icons";
import { pickedValues, pickValue, selectorsOf } from "./labels";
import { findSelectors } from "./read";
import type { Times } from "./questions";
import { counted } from "../shared/units";
import "./labelbrowser.css";

export interface LabelsProps {
	query: string;
	times: Times;
	/** The label whose values are shown, "" for none. */
	label: string;
	onLabel(label: string): void;
	onQuery(query: string): void;
	onClose(): void;
}

interface Row {
	name: string;
	/** Unknown for labels of samples. */
	values?: number;
	series?: number;
}

const SHOWN_MAX = 100;
const ASKED_MAX = 20_000;

type Counts = { name?: string; value?: string; values?: number; series: number }[];

/**
 * Labels with their counts, or the values of one label. Labels of samples have no counts; they come
 * from the lists of names and follow the others.
 */
function useRows(props: LabelsProps, label: string) {
	const { time: _, ...window } = props.times;
	const args = { "match[]": selectorsOf(props.query, label), ...window };
	const key = JSON.stringify([args, label]);
	const counts = useApi<Counts>(key, "label_counts", {
		...args,
		limit: ASKED_MAX,
		label: label || undefined,
	});
	const list = label ? `label/${encodeURIComponent(label)}/values` : "labels";
	const names = useApi<string[]>(key, list, { ...args, limit: ASKED_MAX });
	// biome-ignore lint/correctness/useExhaustiveDependencies: rows change with the answers, which are of that label
	const rows = useMemo(() => {
		const counted: Row[] = (counts.answer?.data ?? []).map((c) => ({
			name: (label ? c.value : c.name) ?? "",
			values: c.values,
			series: c.series,
		}));
		const seen = new Set(counted.map((r) => r.name));
		const more = (names.answer?.data ?? []).filter((n) => !seen.has(n));
		return [...counted, ...more.map((name): Row => ({ name }))].filter(
			(r) => label || !r.name.startsWith("__"),
		);
	}, [counts.answer, names.answer]);
	const ready = names.key === key && counts.key === key;
	return { rows, error: names.error as ApiError | null, ready };
}

/** A list with a filter above it; a long list shows its first part and how many more there are. */
function Filtered(props: {
	rows: Row[];
	label: string;
	empty: string;
	row(row: Row): preact.JSX.Element;
}) {
	const [text, setText] = useState("");
	const wanted = text.toLowerCase();
	const found = props.rows.filter((r) => r.name.toLowerCase().includes(wanted));
	return (
		<>
			<input
				type="search"
				value={text}
				placeholder={props.label}
				aria-label={props.label}
				spellcheck={false}
				autocomplete="off"
				onInput={(e) => setText((e.target as HTMLInputElement).value)}
			/>
			<ul>
				{found.slice(0, SHOWN_MAX).map((r) => (
					<li key={r.name}>{props.row(r)}</li>
				))}
				{found.length > SHOWN_MAX && (
					<li class="faint">
						and {(found.length - SHOWN_MAX).toLocaleString("en")} more; type to narrow
					</li>
				)}
				{found.length === 0 && <li class="faint">{props.empty}</li>}
			</ul>
		</>
	);
}

function Names(props: LabelsProps) {
	const { rows, error, ready } = useRows(props, "");
	if (error) return <p class="faint">{error.detail}</p>;
	return (
		<Filtered
			rows={rows}
			label="Filter labels"
			empty={ready ? "No matching label." : "Loading…"}
			row={(r) => (
				<button
					type="button"
					aria-expanded={r.name === props.label}
					class={pickedValues(props.query, r.name).length ? "asked-for" : ""}
					onClick={() => props.onLabel(r.name === props.label ? "" : r.name)}
				>
					<span class="label-name">{r.name}</span>
					<span class="faint">
						{r.values === undefined
							? "of samples"
							: `${counted(r.values, "value")} · ${counted(r.series ?? 0, "series")}`}
					</span>
				</button>
			)}
		/>
	);
}

function Values(props: LabelsProps) {
	const { query, label, onQuery } = props;
	const { rows, error, ready } = useRows(props, label);
	const picked = pickedValues(query, label);
	const pick = (value: string, also: boolean) => onQuery(pickValue(query, label, value, also));
	if (error) return <p class="faint">{error.detail}</p>;
	return (
		<Filtered
			rows={rows}
			label={`Filter values of ${label}`}
			empty={ready ? "No matching value." : "Loading…"}
			row={(r) => (
				<>
					<button
						type="button"
						aria-pressed={picked.includes(r.name)}
						title="Select this value; Shift+click to add one"
						onClick={(e) => pick(r.name, e.shiftKey)}
					>
						<span class="label-name">{r.name || <i>empty</i>}</span>
						{r.series !== undefined && (
							<span class="faint">{counted(r.series, "series")}</span>
						)}
					</button>
					{picked.length > 0 && (
						<button
							type="button"
							class="quiet also"
							aria-label={
								picked.includes(r.name)
									? `Without ${r.name || "empty"}`
									: `Also ${r.name || "empty"}`
							}
							onClick={() => pick(r.name, true)}
						>
							{picked.includes(r.name) ? "−" : "+"}
						</button>
					)}
				</>
			)}
		/>
	);
}

export function LabelBrowser(props: LabelsProps) {
	const { query, label, onClose } = props;
	const selectors = selectorsOf(query);
	const none = query !== "" && findSelectors(query).length === 0;
	return (
		<section
			class="label-browser"
			aria-label="Labels"
			onKeyDown={(e) => {
				if (e.key === "Escape") onClose();
			}}
		>
			<div class="label-head">
				<h2>Labels</h2>
				{!none && (
					<span class="faint">
						of {selectors.length ? <code>{selectors.join(", ")}</code> : "all series"} in
						this window
					</span>
				)}
				<span class="spacer" />
				<button type="button" class="quiet" aria-label="Close labels" onClick={onClose}>
					<IconX />
				</button>
			</div>
			{none ? (
				<p class="faint">The query selects no stored series.</p>
			) : (
				<div class="label-columns">
					<div class="label-column" role="group" aria-label="Label names">
						<Names {...props} />
					</div>
					{label ? (
						<div class="label-column" role="group" aria-label={`Values of ${label}`}>
							<Values key={label} {...props} />
						</div>
					) : (
						<p class="faint">Press a label to see its values.</p>
					)}
				</div>
			)}
		</section>
	);
}
