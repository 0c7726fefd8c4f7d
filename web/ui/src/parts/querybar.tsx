// The query as text, and what the server said is wrong with it, where.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../lib/api";
import { IconPlay } from "./icons";

export interface QueryBarProps {
	query: string;
	label: string;
	loading?: boolean;
	placeholder?: string;
	onRun(query: string): void;
}

const LINES_MAX = 8;

export function QueryBar({ query, label, loading, placeholder, onRun }: QueryBarProps) {
	const [text, setText] = useState(query);
	const area = useRef<HTMLTextAreaElement>(null);
	useEffect(() => setText(query), [query]);
	const lines = Math.min(LINES_MAX, text.split("\n").length);
	return (
		<form
			class="query-bar"
			onSubmit={(e) => {
				e.preventDefault();
				onRun(text.trim());
			}}
		>
			<textarea
				ref={area}
				rows={lines}
				value={text}
				aria-label={label}
				spellcheck={false}
				autocomplete="off"
				autocapitalize="off"
				placeholder={placeholder}
				title="Enter runs, Shift+Enter starts a new line"
				onInput={(e) => setText((e.target as HTMLTextAreaElement).value)}
				onKeyDown={(e) => {
					if (e.key === "Enter" && !e.shiftKey) {
						e.preventDefault();
						onRun(text.trim());
					}
				}}
			/>
			<button type="submit" class="primary run">
				{loading ? <span class="spinner" /> : <IconPlay />}Run
			</button>
		</form>
	);
}

/** A message, and under the line it speaks of a caret. `sent` is the query as it was asked. */
export function QueryError({ error, sent }: { error: ApiError; sent: string }) {
	const line = error.line > 0 ? sent.split("\n")[error.line - 1] : undefined;
	return (
		<div class="notice error" role="alert">
			<div>
				<b>{error.errorType.replace(/_/g, " ")}</b> {error.detail}
			</div>
			{line !== undefined && (
				<pre>
					{line}
					{"\n"}
					<b>{" ".repeat(Math.max(0, error.column - 1)) + "^"}</b>
				</pre>
			)}
		</div>
	);
}

export function Notices({ warnings, infos }: { warnings: string[]; infos: string[] }) {
	if (warnings.length + infos.length === 0) return null;
	return (
		<>
			{warnings.map((w) => (
				<div key={w} class="notice warning">
					{w}
				</div>
			))}
			{infos.map((w) => (
				<div key={w} class="notice">
					{w}
				</div>
			))}
		</>
	);
}
