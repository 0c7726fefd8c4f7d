// A button that profiles a target now and then opens the profile.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, call, type OrderedProfile, type Target } from "../shared/api";

/** The address of one profile: a window of a second or two around it. */
function profileUrl(p: OrderedProfile): string {
	const to = Math.ceil(p.time);
	const query = p.query.replace(/ @ [0-9.]+$/, "");
	return "explore?" + new URLSearchParams({ query, from: String(to - 1), to: String(to) });
}

export function ProfileNow({ target: t }: { target: Target }) {
	const [state, set] = useState<"idle" | "busy" | OrderedProfile | ApiError>("idle");
	const abort = useRef<AbortController | null>(null);
	useEffect(() => () => abort.current?.abort(), []);

	function begin() {
		abort.current = new AbortController();
		set("busy");
		const args = {
			scrapePool: t.scrapePool,
			scrapeUrl: t.scrapeUrl,
			...(t.scrapeUnixSocket && { scrapeUnixSocket: t.scrapeUnixSocket }),
		};
		call<OrderedProfile>("targets/profile", args, abort.current.signal, true).then(
			(answer) => set(answer.data),
			(error) => set(error.name === "AbortError" ? "idle" : error),
		);
	}

	const done = typeof state === "object" && "query" in state ? state : null;
	const error = typeof state === "object" && !done ? (state as ApiError) : null;
	return (
		<span class="profile-now">
			{state === "busy" ? (
				<button type="button" class="quiet small" onClick={() => abort.current?.abort()}>
					profiling… cancel
				</button>
			) : (
				<button
					type="button"
					class="quiet small"
					title="Take one profile now"
					onClick={begin}
				>
					profile now
				</button>
			)}
			{done && <a href={profileUrl(done)}>show</a>}
			{error && <span class="err">{error.message}</span>}
		</span>
	);
}
