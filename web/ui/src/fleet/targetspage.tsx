// The page Targets: which processes are scraped, whether they answer, why not, and how relabelling made it.
import { useMemo, useState } from "preact/hooks";
import type { DroppedTarget, MatrixElement, Target, Targets } from "../shared/api";
import { Chips } from "../shared/chips";
import { useApi, useClock, useFlags, useInterval, useUrl } from "../shared/hooks";
import { Paged } from "../shared/paged";
import { counted, formatAgo, formatNanoseconds, formatPercent } from "../shared/units";
import { oneOf } from "../shared/urlstate";
import { causeOf } from "./causes";
import { AsOf, Count, PagedTable, PoolsPage, useRefreshed } from "./pool";
import { ProfileNow } from "./profilenow";
import { Relabelling, WhyButton } from "./relabelling";
import {
	type Health,
	labelKey,
	notFor,
	lastUp,
	listedSince,
	type Process,
	type ProcessError,
	processes,
	processPools,
	UPTIME_S,
	UPTIME_STEP_S,
	uptimeQuery,
	uptimes,
	upShare,
} from "./targets";

const COLUMNS = [
	{ title: "Process", col: "c-url" },
	{ title: "State", col: "c-state" },
	{ title: "Profiles" },
	{ title: "Last hour", col: "c-uptime" },
	{ title: "Last success", col: "c-num", head: "num" },
	{ title: "Interval", col: "c-num", head: "num" },
];
/** On a query node. */
const SHARD_COLUMN = { title: "Shard", col: "c-num" };

const STATE_WORDS = { up: "up", down: "down", part: "in part", unknown: "unknown" };
const STATE_CLASS = { up: "up", down: "down", part: "wait", unknown: "" };

function State({ of }: { of: Process }) {
	const failing = of.targets.filter((t) => t.health === "down").length;
	const hint = of.state === "part" ? `${failing} of ${of.targets.length} profiles fail` : undefined;
	return (
		<span class={`badge ${STATE_CLASS[of.state]}`} title={hint}>
			{STATE_WORDS[of.state]}
		</span>
	);
}

/** Another server profiles the same process. */
const SHARED = {
	halves: "shared with another profiler: half of the time each",
	turns: "shared with another profiler: in turns of one interval",
};

/** One profile type of a process; a link to what is scraped. */
function ProfileChip({ target: t, now }: { target: Target; now: number }) {
	const at = Date.parse(t.lastScrape) / 1000;
	const scraped = at > 0;
	const hint = [
		`${t.profile}: ${t.health}`,
		scraped ? `scraped ${formatAgo(now - at)}` : "never scraped",
		...(scraped ? [`took ${formatNanoseconds(t.lastScrapeDuration * 1e9)}`] : []),
		`every ${t.scrapeInterval}`,
		...(t.profilerShared ? [SHARED[t.profilerShared]] : []),
		...(t.lastError ? [t.lastError] : []),
		...(t.warning ? [t.warning] : []),
	].join(", ");
	return (
		<a
			class={`chip profile ${t.health}`}
			href={t.scrapeUnixSocket ? undefined : t.scrapeUrl}
			target="_blank"
			rel="noreferrer"
			title={hint}
		>
			{t.profile}
			{t.profilerShared && " ½"}
			{t.warning && " ⚠"}
			{t.health === "down" && <span class="visually-hidden"> (down)</span>}
		</a>
	);
}

/** Up and down over the last hour, from the numbers of `up`. */
function Uptime({ line }: { line: (number | null)[] | undefined }) {
	const part = upShare(line);
	if (!line || part === null) return <span class="faint">–</span>;
	const text = `up ${formatPercent(100 * part).replace(/\.00%/, "%")} of the last hour`;
	return (
		<svg class="uptime" viewBox={`0 0 ${line.length} 10`} preserveAspectRatio="none" role="img">
			<title>{text}</title>
			{line.map((v, i) => (
				<rect
					key={i}
					class={v === null ? "none" : v >= 1 ? "up" : v > 0 ? "part" : "down"}
					x={i}
					width={0.8}
					y={v === null ? 4.5 : 0}
					height={v === null ? 1 : 10}
				/>
			))}
		</svg>
	);
}

/** An error once, whose profiles it is, and its likely cause. */
function ErrorLine({ error, of }: { error: ProcessError; of: Process }) {
	const cause = causeOf(error.text, error.url);
	const some = error.profiles.length < of.targets.length;
	const end = cause.endsWith("?") ? "" : ".";
	return (
		<div>
			{some && <b>{error.profiles.join(", ")}: </b>}
			{cause && <b>{some ? cause : cause.charAt(0).toUpperCase() + cause.slice(1)}{end} </b>}
			<span class={cause ? "faint" : undefined}>{error.text}</span>
		</div>
	);
}

interface RowProps {
	now: number;
	/** Whether the server profiles targets on demand. */
	orders: boolean;
	/** Whether the column Shard is shown. */
	shard: boolean;
	uptime: Map<string, (number | null)[]>;
	/** The end of the uptime lines, seconds. */
	end: number;
}

/** The profile that an order takes: the CPU's if it is scraped. */
const ordered = (p: Process) => p.targets.find((t) => t.profile === "process_cpu") ?? p.targets[0];

function Row({ of, now, orders, shard, uptime, end }: RowProps & { of: Process }) {
	const [open, setOpen] = useState(false);
	const columns = COLUMNS.length + Number(shard);
	const line = uptime.get(labelKey(of.labels));
	const success = of.lastSuccess || lastUp(line, end);
	const intervals = [...new Set(of.targets.map((t) => t.scrapeInterval))];
	return (
		<>
			<tr>
				<td class="url">
					<div>{of.address}</div>
					<Chips labels={of.labels} />
					<WhyButton
						hint="Discovered labels and relabelling steps"
						open={open}
						onOpen={setOpen}
					/>
					{orders && of.shard === undefined && <ProfileNow target={ordered(of)} />}
				</td>
				<td>
					<State of={of} />
				</td>
				<td>
					<span class="chips">
						{of.targets.map((t) => (
							<ProfileChip key={t.scrapeUrl + t.profile} target={t} now={now} />
						))}
					</span>
				</td>
				<td>
					<Uptime line={line} />
				</td>
				<td class="num" data-title="Last success">
					{success
						? formatAgo(now - success)
						: of.state === "unknown"
							? "not yet"
							: notFor(line)}
				</td>
				<td class="num" data-title="Interval">
					{intervals.join(", ")}
				</td>
				{shard && <td data-title="Shard">{of.shard ?? "–"}</td>}
			</tr>
			{of.errors.length > 0 && (
				<tr class="error-row">
					<td colSpan={columns} class="err">
						{of.errors.map((e) => (
							<ErrorLine key={e.text} error={e} of={of} />
						))}
					</td>
				</tr>
			)}
			{of.warnings.length > 0 && (
				<tr class="error-row">
					<td colSpan={columns} class="warning">
						{of.warnings.map((w) => (
							<div key={w.text}>
								<b>{w.profiles.join(", ")}: </b>
								{w.text}
							</div>
						))}
					</td>
				</tr>
			)}
			{open && (
				<tr class="discovered">
					<td colSpan={columns}>
						<Relabelling pool={of.scrapePool} labels={of.targets[0].discoveredLabels} />
					</td>
				</tr>
			)}
		</>
	);
}

const NO_LINES: MatrixElement[] = [];

/** The uptime lines of a pool, asked again once per step. */
function useUptime(shown: Process[]) {
	const [end, setEnd] = useState(() => Math.floor(Date.now() / 1000));
	useInterval(UPTIME_STEP_S / 2, () => setEnd(Math.floor(Date.now() / 1000)));
	const query = uptimeQuery(shown);
	const args = {
		query: query ?? "",
		start: String(end - UPTIME_S + UPTIME_STEP_S),
		end: String(end),
		step: String(UPTIME_STEP_S),
	};
	const { answer, key } = useApi<{ result: MatrixElement[] }>(
		query && JSON.stringify(args),
		"query_range",
		args,
	);
	const asked = key ? Number((JSON.parse(key) as typeof args).end) : end;
	const uptime = useMemo(() => uptimes(answer?.data.result ?? NO_LINES, asked), [answer, asked]);
	return { uptime, end: asked };
}

function ProcessTable({
	shown,
	...rest
}: Pick<RowProps, "now" | "orders" | "shard"> & { shown: Process[] }) {
	const lines = useUptime(shown);
	const columns = rest.shard ? [...COLUMNS, SHARD_COLUMN] : COLUMNS;
	return (
		<PagedTable kind="targets" columns={columns} items={shown} what="processes">
			{(p, i) => <Row key={p.address + i} of={p} {...rest} {...lines} />}
		</PagedTable>
	);
}

function DroppedRow({ target: t }: { target: DroppedTarget }) {
	const [open, setOpen] = useState(false);
	return (
		<li>
			<Chips labels={t.discoveredLabels} />
			{t.reason && <span class="badge">{t.reason}</span>}
			<WhyButton hint="Rule that dropped the target" open={open} onOpen={setOpen} />
			{open && (
				<Relabelling
					pool={t.scrapePool}
					labels={t.discoveredLabels}
					discovered={false}
				/>
			)}
		</li>
	);
}

const HEALTHS: [Health, string, string][] = [
	["all", "All", "All targets"],
	["up", "Up", "The last scrape of each profile succeeded"],
	["down", "Not up", "The last scrape of a profile failed, or there was none yet"],
];

const STATES = HEALTHS.map(([v]) => v);

function Droppeds({ dropped }: { dropped: DroppedTarget[] }) {
	return (
		<section class="panel pool">
			<div class="panel-head">
				<h2>
					{dropped.some((d) => d.reason)
						? "Dropped by relabelling, or scraped by other shards"
						: "Dropped by relabelling"}
				</h2>
			</div>
			<Paged items={dropped} what="dropped">
				{(items) => (
					<ul class="dropped">
						{items.map((d, i) => (
							<DroppedRow key={`${d.scrapePool} ${i}`} target={d} />
						))}
					</ul>
				)}
			</Paged>
		</section>
	);
}

export function TargetsPage() {
	const { location } = useUrl();
	const now = useClock();
	const { answer, error, asOf } = useRefreshed<Targets>("targets");
	const flags = useFlags();
	const orders = flags.answer?.data["web.enable-admin-api"] === "true";
	const state = oneOf(location.params.get("state"), STATES);
	const filter = location.params.get("filter") ?? "";
	const all = useMemo(() => (answer ? processes(answer.data.activeTargets ?? []) : []), [answer]);
	const list = useMemo(
		() => (answer ? processPools(all, answer.data, filter, state) : []),
		[answer, all, state, filter],
	);
	const dropped = answer?.data.droppedTargets ?? [];
	const shards = answer?.data.shards;
	const droppedCount = Object.values(answer?.data.droppedTargetCounts ?? {}).reduce(
		(a, b) => a + b,
		0,
	);
	return (
		<PoolsPage
			kind="targets-page"
			title="Targets"
			choice={{ label: "State", value: state, options: HEALTHS }}
			filter={{ label: "Filter targets", hint: "Filter by address, label or error" }}
			aside={
				<>
					<AsOf at={asOf} />
					<span class="faint">
						{counted(all.length, "process")},{" "}
						{counted(answer?.data.activeTargets?.length ?? 0, "profile")},{" "}
						{Math.max(droppedCount, dropped.length).toLocaleString("en")} dropped
						{answer && shards &&
							`, of ${counted(shards.length, "shard")} as they were ${formatAgo(now - listedSince(answer.data))}`}
					</span>
					<a href="service-discovery">Service discovery</a>
					<a href="senders">Senders</a>
				</>
			}
			error={error}
			warnings={answer?.warnings ?? []}
			infos={answer?.infos ?? []}
			pools={list}
			counts={(p) => (
				<Count some={p.up} all={p.all} word="up" mark={p.up === p.all ? "up" : "down"} />
			)}
			table={(p) => <ProcessTable shown={p.shown} now={now} orders={orders} shard={shards !== undefined} />}
			empty={
				!answer
					? null
					: answer.data.activeTargets?.length
						? "No matching target. Clear the filter, or show all."
						: "No targets configured, or none found."
			}
		>
			{dropped.length > 0 && <Droppeds dropped={dropped} />}
		</PoolsPage>
	);
}
