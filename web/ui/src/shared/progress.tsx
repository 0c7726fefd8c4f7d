// Shows how long a slow question has taken, and lets the user cancel and repeat it.
import { type Loaded, useNow } from "./hooks";

const SHOWN_AFTER_MS = 1000; // quick answers need no message

/** The questions of one view are cancelled and repeated together. */
export function Progress({ loaded }: { loaded: Loaded<unknown> | Loaded<unknown>[] }) {
	const all = Array.isArray(loaded) ? loaded : [loaded];
	const begun = all.flatMap((l) => (l.loading && l.since !== null ? [l.since] : []));
	const now = useNow(begun.length > 0);
	const gone = begun.length ? now - Math.min(...begun) : 0;
	if (gone >= SHOWN_AFTER_MS)
		return (
			<div class="notice progress" role="status">
				<span class="spinner" />
				<span>
					Running
					<span class="progress-time" aria-hidden="true">
						{" "}
						for {Math.floor(gone / 1000)} s
					</span>
				</span>
				<button
					type="button"
					class="small"
					onClick={() => {
						for (const l of all) if (l.loading) l.cancel();
					}}
				>
					Cancel
				</button>
			</div>
		);
	const given = all.filter((l) => l.cancelled);
	if (begun.length || !given.length) return null;
	return (
		<div class="notice progress" role="status">
			<span>
				Cancelled.
				{given.some((l) => l.answer) && " The result below is the previous one."}
			</span>
			<button
				type="button"
				class="small"
				onClick={() => {
					for (const l of given) l.again();
				}}
			>
				Run again
			</button>
		</div>
	);
}
