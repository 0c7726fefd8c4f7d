// The page Targets: what is scraped, its state, and how relabelling made it.
import { useMemo, useState } from "preact/hooks";
import type { Dropped, Target, Targets } from "../shared/api";
import { Chips } from "../shared/chips";
import { useApi, useClock, useFlags, useInterval, useUrl } from "../shared/hooks";
import { Paged } from "../shared/paged";
import { formatAgo, formatNanoseconds } from "../shared/units";
import { oneOf } from "../shared/urlstate";
import { Count, PagedTable, PoolsPage } from "./pool";
import { ProfileNow } from "./profilenow";
import { Relabelling, WhyButton } from "./relabelling";
import { type Health, targetPools } from "./targets";

const REFRESH_S = 5;
const COLUMNS = [
	{ title: "Endpoint", col: "c-url" },
	{ title: "State", col: "c-state" },
	{ title: "Labels", col: "c-labels" },
	{ title: "Last scrape", col: "c-num", head: "num" },
	{ title: "Duration", col: "c-num", head: "num" },
	{ title: "Interval", col: "c-num", head: "num" },
];

function State({ health }: { health: string }) {
	return (
		<span class={`badge ${health === "up" ? "up" : health === "down" ? "down" : ""}`}>
			{health}
		</span>
	);
}

interface RowProps {
	now: number;
	/** Whether the server profiles targets on demand. */
	orders: boolean;
}

function Row({ target: t, now, orders }: RowProps & { target: Target }) {
	const [open, setOpen] = useState(false);
	const at = Date.parse(t.lastScrape) / 1000;
	const scraped = Number.isFinite(at) && at > 0;
	return (
		<>
			<tr>
				<td class="url">
					<a href={t.scrapeUrl} target="_blank" rel="noreferrer">
						{t.scrapeUrl}
					</a>
				</td>
				<td>
					<State health={t.health} />
				</td>
				<td>
					<Chips labels={t.labels} />
					<WhyButton
						hint="Discovered labels, and how relabelling changed them"
						open={open}
						onOpen={setOpen}
					/>
					{orders && <ProfileNow target={t} />}
				</td>
				<td class="num" title={t.lastScrape}>
					{scraped ? formatAgo(now - at) : "never"}
				</td>
				<td class="num">{scraped ? formatNanoseconds(t.lastScrapeDuration * 1e9) : "–"}</td>
				<td class="num">{t.scrapeInterval}</td>
			</tr>
			{t.lastError && (
				<tr class="error-row">
					<td colSpan={COLUMNS.length} class="err">
						{t.lastError}
					</td>
				</tr>
			)}
			{open && (
				<tr class="discovered">
					<td colSpan={COLUMNS.length}>
						<Relabelling pool={t.scrapePool} labels={t.discoveredLabels} />
					</td>
				</tr>
			)}
		</>
	);
}

function TargetTable({ targets, ...rest }: RowProps & { targets: Target[] }) {
	return (
		<PagedTable
			kind="targets"
			columns={COLUMNS}
			items={targets}
			what="profiles of targets"
		>
			{(t, i) => <Row key={t.scrapeUrl + i} target={t} {...rest} />}
		</PagedTable>
	);
}

function DroppedRow({ target: t }: { target: Dropped }) {
	const [open, setOpen] = useState(false);
	return (
		<li>
			<Chips labels={t.discoveredLabels} />
			{t.reason && <span class="badge">{t.reason}</span>}
			<WhyButton hint="Which rule dropped it" open={open} onOpen={setOpen} />
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
	["up", "Up", "The last scrape succeeded"],
	["down", "Not up", "The last scrape failed, or there was none yet"],
];

const STATES = HEALTHS.map(([v]) => v);

/** Large answers are reloaded less often. */
const paceOf = (tookMs: number) => Math.max(REFRESH_S, Math.ceil(tookMs / 50));

function Droppeds({ dropped }: { dropped: Dropped[] }) {
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
	const [tick, setTick] = useState(0);
	const now = useClock();
	const { answer, error } = useApi<Targets>(String(tick), "targets");
	useInterval(paceOf(answer?.tookMs ?? 0), () => setTick((t) => t + 1));
	const flags = useFlags();
	const orders = flags.answer?.data["web.enable-admin-api"] === "true";
	const state = oneOf(location.params.get("state"), STATES);
	const filter = location.params.get("filter") ?? "";
	const list = useMemo(
		() => (answer ? targetPools(answer.data, filter, state) : []),
		[answer, state, filter],
	);
	const dropped = answer?.data.droppedTargets ?? [];
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
					<span class="faint">
						{(answer?.data.activeTargets?.length ?? 0).toLocaleString("en")} active,{" "}
						{Math.max(droppedCount, dropped.length).toLocaleString("en")} dropped
					</span>
					<a href="service-discovery">Service discovery</a>
				</>
			}
			error={error}
			pools={list}
			counts={(p) => (
				<Count some={p.up} all={p.all} word="up" mark={p.up === p.all ? "up" : "down"} />
			)}
			table={(p) => <TargetTable targets={p.shown} now={now} orders={orders} />}
			empty={
				!answer
					? null
					: answer.data.activeTargets?.length
						? "No target matches: clear the filter, or show all."
						: "Nothing is scraped: no targets are configured, or none were found."
			}
		>
			{dropped.length > 0 && <Droppeds dropped={dropped} />}
		</PoolsPage>
	);
}
