// The query as text: edited, checked while one types, formatted and run.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, call } from "../shared/api";
import { IconPlay } from "../shared/icons";
import { edit, QueryInput } from "./queryinput";
import type { Times } from "./questions";
import { placeOf, queryWords } from "./syntax";
import "./querybar.css";

export interface QueryBarProps {
	query: string;
	label: string;
	loading?: boolean;
	placeholder?: string;
	/** The window that completion takes labels and values from. */
	times?: Times;
	/** The error of `query` itself. */
	error?: ApiError | null;
	onRun(query: string): void;
	/** Called with each text that is typed; there is no button to run it then. */
	onText?(text: string): void;
	/** Buttons before the one that runs the query. */
	children?: ComponentChildren;
}

const CHECK_MS = 400; // after the last key
/** An unfinished query gets a longer pause before it is called wrong. */
const UNFINISHED = /^(unexpected end|unterminated)/;
const UNFINISHED_MS = 1200;
const ANY_TIME: Times = {};

interface Checked {
	text: string;
	error: ApiError;
}

/** The error of a text that was not run yet; kept while the text up to its place stays the same. */
function useCheck(text: string, query: string) {
	const [checked, set] = useState<Checked | null>(null);
	useEffect(() => {
		if (!text.trim() || text.trim() === query) {
			set(null);
			return;
		}
		const abort = new AbortController();
		let timer = setTimeout(() => {
			call("parse_query", { query: text }, abort.signal).then(
				() => set(null),
				(error) => {
					if (abort.signal.aborted) return;
					if (error.status !== 400) set(null);
					else if (!UNFINISHED.test(error.detail)) set({ text, error });
					else timer = setTimeout(() => set({ text, error }), UNFINISHED_MS);
				},
			);
		}, CHECK_MS);
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [text, query]);
	return { error: checked && stands(checked, text) ? checked.error : null, set };
}

function stands({ text: of, error }: Checked, text: string): boolean {
	if (of === text) return true;
	const place = placeOf(of, error.line, error.column);
	return !!place && place.end <= of.length && text.startsWith(of.slice(0, place.end));
}

export function QueryBar(props: QueryBarProps) {
	const { query, label, loading, placeholder, onRun } = props;
	const [text, setText] = useState(query);
	const area = useRef<HTMLTextAreaElement>(null);
	useEffect(() => setText(query), [query]);
	const check = useCheck(text, query);
	const own = text.trim() === query;
	// The server's formatter drops comments.
	const said = queryWords(text).some((w) => w.kind === "comment");
	const format = () => {
		if (!text.trim() || said) return;
		call<string>("format_query", { query: text }).then(
			({ data }) => {
				const field = area.current;
				if (field?.value === text)
					edit(field, { start: 0, end: text.length, insert: data.trim() });
			},
			(error) => check.set({ text, error }),
		);
	};
	return (
		<form
			class="query-bar"
			onSubmit={(e) => {
				e.preventDefault();
				onRun(text.trim());
			}}
		>
			<QueryInput
				text={text}
				label={label}
				placeholder={placeholder}
				times={props.times ?? ANY_TIME}
				error={own ? (props.error ?? check.error) : check.error}
				tell={!(own && props.error)}
				area={area}
				onText={(t) => {
					setText(t);
					props.onText?.(t);
				}}
				onRun={onRun}
				onFormat={format}
			/>
			<button
				type="button"
				class="quiet format"
				title={said ? "Not formatted: comments would be lost" : "Format (Alt+Shift+F)"}
				disabled={said || !text.trim()}
				onClick={format}
			>
				Format
			</button>
			{props.children}
			{!props.onText && (
				<button type="submit" class="primary run">
					{loading ? <span class="spinner" /> : <IconPlay />}Run
				</button>
			)}
		</form>
	);
}
