// About the running round of questions of Services: how far it is, what failed, what its answers lack.
import { useNow } from "../shared/hooks";
import { Notices } from "../shared/notices";
import { unreachable } from "../shared/outage";
import type { Ask } from "./fleet";
import type { Many } from "./parallel";

const LATE_MS = 500;

/** How many answers have arrived; shown only if it takes long. */
export function Waiting({ many, total }: { many: Many & { cancel(): void }; total: number }) {
	const now = useNow(many.since !== null);
	if (many.since === null || now - many.since < LATE_MS) return null;
	return (
		<span class="waiting" role="status">
			<span class="faint">
				{total - many.waiting.length} of {total} answers
			</span>
			<button type="button" class="small" onClick={many.cancel}>
				Cancel
			</button>
		</span>
	);
}

export function RoundErrors({ asks, many }: { asks: Ask[]; many: Many }) {
	const failed = asks.filter((a) => {
		const error = many.errors[a.key];
		return error && !unreachable(error);
	});
	if (failed.length === 0) return null;
	const messages = new Map<string, string[]>();
	for (const a of failed) {
		const text = many.errors[a.key].message;
		messages.set(text, [...(messages.get(text) ?? []), a.title]);
	}
	const refused = failed.every((a) => many.errors[a.key].status === 403);
	return (
		<div class={refused ? "notice" : "notice error"} role={refused ? "note" : "alert"}>
			{[...messages].map(([text, titles]) => (
				<div key={text}>
					No data for {titles.join(", ")}: {text}
				</div>
			))}
		</div>
	);
}

/** Each once: most questions of a window lack the same. */
export function RoundWarnings({ many }: { many: Many }) {
	return <Notices warnings={[...new Set(Object.values(many.warnings).flat())]} infos={[]} />;
}
