// Parts that the pages of status share: tabs, notifications, and sections of names and values.
import type { ComponentChildren } from "preact";
import { type Loaded, useApi, useInterval } from "../shared/hooks";
import { QueryError } from "../shared/notices";
import { formatClock } from "../shared/timerange";
import { formatAgo, formatBytes } from "../shared/units";
import "./frame.css";

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type Status = { [key: string]: Json };

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** A local time, how long ago it is, and the exact time as tooltip. */
function Time({ text }: { text: string }) {
	const t = Date.parse(text) / 1000;
	const ago = Date.now() / 1000 - t;
	return (
		<span title={text}>
			{formatClock(t)} {ago >= 5 && <span class="faint">{formatAgo(ago)}</span>}
		</span>
	);
}

/**
 * `storageRetention` to `Storage retention`, but `reloadURL` to `Reload URL`; names with dots or
 * dashes stay.
 */
function spaced(key: string): string {
	if (/[.\-_ ]/.test(key)) return key;
	return key
		.replace(/([a-z])([A-Z])/g, "$1 $2")
		.replace(/ [A-Z](?=[a-z])/g, (c) => c.toLowerCase())
		.replace(/^(.)/, (c) => c.toUpperCase());
}

function Value({ name = "", value }: { name?: string; value: Json }) {
	if (value === null || value === "") return <span class="faint">–</span>;
	if (typeof value === "number" && /bytes$/i.test(name))
		return <span title={value.toLocaleString("en")}>{formatBytes(value)}</span>;
	if (typeof value === "number") return <>{value.toLocaleString("en")}</>;
	if (typeof value === "object") return <code>{JSON.stringify(value)}</code>;
	if (typeof value === "string" && RFC3339.test(value)) return <Time text={value} />;
	return <>{String(value)}</>;
}

/** `verbatim`: show the keys as they are, for example flags. */
export function Pairs({ object, verbatim }: { object: Status; verbatim?: boolean }) {
	const flat = Object.entries(object).filter(([, v]) => !Array.isArray(v));
	return (
		<table class="plain pairs">
			<tbody>
				{flat.map(([k, v]) => (
					<tr key={k}>
						<th>{verbatim ? k : spaced(k)}</th>
						<td>
							<Value name={k} value={v} />
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

/** The answer of `status/NAME`; null asks nothing. */
export const useStatus = (name: string | null): Loaded<Status> =>
	useApi<Status>(name, `status/${name}`);

export function Section({
	title,
	name,
	loaded,
	render,
	tools,
}: {
	title: string;
	name: string;
	/** The answer, if several sections share it. */
	loaded?: Loaded<Status>;
	render?(data: never): ComponentChildren;
	/** Shown at the right of the title. */
	tools?(data: never): ComponentChildren;
}) {
	const own = useStatus(loaded ? null : name);
	const { answer, error } = loaded ?? own;
	return (
		<section class={`panel status-${name}`}>
			<div class="panel-head">
				<h2>{title}</h2>
				<span class="spacer" />
				{answer && tools?.(answer.data as never)}
			</div>
			{error && <QueryError error={error} sent="" />}
			{answer && (render ? render(answer.data as never) : <Pairs object={answer.data} />)}
		</section>
	);
}

const TABS: [string, string][] = [
	["status", "Runtime"],
	["tsdb-status", "TSDB"],
	["cluster", "Cluster"],
	["symbols", "Symbols"],
	["config", "Configuration"],
	["flags", "Flags"],
];

/** As the last page knew it, so that the tab does not come and go. */
let hadBucket = false;

/** Whether the server has a bucket; the page Cluster, which asks itself, is always in its tabs. */
function useHasBucket(at: string): boolean {
	const { answer } = useStatus(at === "cluster" ? null : "cluster");
	if (answer) hadBucket = typeof answer.data.bucket === "string";
	return hadBucket || at === "cluster";
}

const REFRESH_S = 10;

interface Notification {
	text: string;
	date: string;
}

/**
 * What is wrong with the server now; not for users who see a part of it only. The region is there
 * before its content, so that changes are read aloud.
 */
function Notifications() {
	const { answer, error, again } = useApi<Notification[]>("notifications", "notifications");
	useInterval(REFRESH_S, again);
	return (
		<>
			{error && error.status !== 403 && <QueryError error={error} sent="" />}
			<div class="notifications" role="status" aria-label="Notifications">
				{answer?.data.map((n) => (
					<div key={n.text} class="notice warning">
						{n.text}{" "}
						<span class="since">
							Since <Time text={n.date} />
						</span>
					</div>
				))}
			</div>
		</>
	);
}

export function StatusFrame({ at, children }: { at: string; children: ComponentChildren }) {
	const hasBucket = useHasBucket(at);
	return (
		<main id="main" class="status-page">
			<div class="toolbar page-bar">
				<h1>Status</h1>
				<nav class="segmented" aria-label="Status pages">
					{TABS.filter(([path]) => path !== "cluster" || hasBucket).map(([path, title]) => (
						<a key={path} href={path} aria-current={path === at ? "page" : undefined}>
							{title}
						</a>
					))}
				</nav>
			</div>
			<Notifications />
			{children}
		</main>
	);
}
