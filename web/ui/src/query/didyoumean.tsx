// Buttons that run the query with the names that the server suggests.
import { suggested } from "./suggest";

interface DidYouMeanProps {
	query: string;
	/** Errors or infos about it. */
	messages: string[];
	run(query: string): void;
}

export function DidYouMean({ query, messages, run }: DidYouMeanProps) {
	const queries = new Set(messages.flatMap((m) => suggested(query, m) ?? []));
	if (queries.size === 0) return null;
	return (
		<div class="row did-you-mean">
			{[...queries].map((q) => (
				<button key={q} type="button" class="small" onClick={() => run(q)}>
					Ask <code>{q}</code> instead
				</button>
			))}
		</div>
	);
}
