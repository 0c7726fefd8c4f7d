// The messages beside an answer: errors, warnings and infos.
import type { ApiError } from "./api";
import { useFlags } from "./hooks";
import { unreachable } from "./outage";
import { Countdown } from "./outagebanner";
import { buildIdParts, saysUnnamed, seenSince, symbolsUrl } from "./symbols";

/**
 * A message, and the faulty line of the query with a caret below. `sent` is the query as asked. That
 * the server cannot be reached is said once, above the page.
 */
export function QueryError({ error, sent }: { error: ApiError; sent: string }) {
	if (unreachable(error)) return null;
	const line = error.line > 0 ? sent.split("\n")[error.line - 1] : undefined;
	return (
		<div class="notice error" role="alert">
			<div>
				<b>{error.errorType.replace(/_/g, " ")}</b> {error.detail}{" "}
				{error.retryAt !== undefined && <Countdown at={error.retryAt} />}
			</div>
			{line !== undefined && (
				<pre tabIndex={0}>
					{line}
					{"\n"}
					<b>{" ".repeat(Math.max(0, error.column - 1)) + "^"}</b>
				</pre>
			)}
		</div>
	);
}

/** An info; one about addresses without names links to the page Symbols. */
function Info({ text, since }: { text: string; since: number }) {
	if (!saysUnnamed(text)) return <>{text}</>;
	const seen = seenSince(since, Date.now() / 1000);
	return (
		<>
			{buildIdParts(text).map((p, i) =>
				p.id ? (
					<a key={i} href={symbolsUrl(p.id, seen)} title="This binary on the page Symbols">
						{p.text}
					</a>
				) : (
					p.text
				),
			)}{" "}
			<a href={symbolsUrl("", seen)}>Symbols</a>
		</>
	);
}

/** `since`: when the window of the question began, in seconds since 1970. */
export function Notices(props: { warnings: string[]; infos: string[]; since?: number }) {
	const { warnings, infos, since = NaN } = props;
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
					<Info text={w} since={since} />
				</div>
			))}
		</>
	);
}

// How something that is off is had: by a flag, or on another server that takes that flag.
const NODES: Record<string, string> = {
	query: "a query node",
	compact: "a server with --mode=compact",
};

/** What a server of this mode is called where it takes nothing in; undefined: it takes the flag. */
export const takesNothing = (mode: string | undefined): string | undefined => NODES[mode ?? ""];

/** "Pushes are off: start the server with ..."; `also`: a mode in which it takes this flag, too. */
export function IsOff({ what, flag, also }: { what: string; flag: string; also?: string }) {
	const mode = useFlags().answer?.data.mode;
	const node = mode === also ? undefined : takesNothing(mode);
	if (node)
		return (
			<>
				{what} are off on {node}: send to a shard.
			</>
		);
	return (
		<>
			{what} are off: start the server with <code>{flag}</code>.
		</>
	);
}
