// Targets: what is scraped, how it goes, and what relabelling made of it.
import { useMemo, useState } from "preact/hooks";
import type { Dropped, Target, Targets } from "../lib/api";
import { useApi, useInterval, useUrl } from "../lib/hooks";
import { formatAgo, formatNanoseconds } from "../lib/units";
import { Chips } from "../parts/chips";
import { IconDown, IconSearch } from "../parts/icons";
import { QueryError } from "../parts/querybar";
import { ProfileNow } from "../parts/profilenow";
import { Relabelling } from "../parts/relabel";
import { Segmented } from "../parts/toolbar";

const REFRESH_S = 5;
const COLUMNS = 6;

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
					<button
						type="button"
						class="quiet small"
						title="Discovered labels, and what relabelling made of them"
						aria-expanded={open}
						onClick={() => setOpen(!open)}
					>
						why
						<IconDown />
					</button>
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
					<td colSpan={COLUMNS} class="err">
						{t.lastError}
					</td>
				</tr>
			)}
			{open && (
				<tr class="discovered">
					<td colSpan={COLUMNS}>
						<Relabelling pool={t.scrapePool} labels={t.discoveredLabels} />
					</td>
				</tr>
			)}
		</>
	);
}

function Pool({
	name,
	targets,
	...rest
}: RowProps & { name: string; targets: Target[] }) {
	const [open, setOpen] = useState(true);
	const up = targets.filter((t) => t.health === "up").length;
	return (
		<section class="panel pool">
			<button
				type="button"
				class="panel-head"
				aria-expanded={open}
				onClick={() => setOpen(!open)}
			>
				<h2>{name}</h2>
				<span class={up === targets.length ? "count up" : "count down"}>
					{up} / {targets.length} up
				</span>
				<span class="spacer" />
				<IconDown />
			</button>
			{open && (
				<div class="scroll-x">
					<table class="plain targets">
						<colgroup>
							<col class="c-url" />
							<col class="c-state" />
							<col class="c-labels" />
							<col class="c-num" />
							<col class="c-num" />
							<col class="c-num" />
						</colgroup>
						<thead>
							<tr>
								<th>Endpoint</th>
								<th>State</th>
								<th>Labels</th>
								<th class="num">Last scrape</th>
								<th class="num">Duration</th>
								<th class="num">Interval</th>
							</tr>
						</thead>
						<tbody>
							{targets.map((t, i) => (
								<Row key={t.scrapeUrl + i} target={t} {...rest} />
							))}
						</tbody>
					</table>
				</div>
			)}
		</section>
	);
}

function DroppedRow({ target: t }: { target: Dropped }) {
	const [open, setOpen] = useState(false);
	return (
		<li>
			<Chips labels={t.discoveredLabels} />
			<button
				type="button"
				class="quiet small"
				title="Which rule dropped it"
				aria-expanded={open}
				onClick={() => setOpen(!open)}
			>
				why
				<IconDown />
			</button>
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

export function TargetsPage() {
	const { store, location } = useUrl();
	const [tick, setTick] = useState(0);
	const [now, setNow] = useState(Date.now() / 1000);
	useInterval(1, () => setNow(Date.now() / 1000));
	useInterval(REFRESH_S, () => setTick((t) => t + 1));
	const { answer, error } = useApi<Targets>(String(tick), "targets");
	const flags = useApi<Record<string, string>>("flags", "status/flags");
	const orders = flags.answer?.data["web.enable-admin-api"] === "true";
	const state = (location.params.get("state") ?? "all") as "all" | "down";
	const filter = (location.params.get("filter") ?? "").toLowerCase();

	const pools = useMemo(() => {
		const out = new Map<string, Target[]>();
		for (const t of answer?.data.activeTargets ?? []) {
			if (state === "down" && t.health === "up") continue;
			if (
				filter &&
				!`${t.scrapeUrl} ${Object.values(t.labels).join(" ")}`
					.toLowerCase()
					.includes(filter)
			)
				continue;
			out.set(t.scrapePool, [...(out.get(t.scrapePool) ?? []), t]);
		}
		return [...out].sort(([a], [b]) => a.localeCompare(b));
	}, [answer, state, filter]);
	const dropped = answer?.data.droppedTargets ?? [];

	return (
		<main class="targets-page">
			<div class="toolbar page-bar">
				<h1>Targets</h1>
				<Segmented
					label="State"
					value={state}
					options={[
						["all", "All"],
						["down", "Not up"],
					]}
					onChange={(v) => store.patch({ state: v === "all" ? null : v })}
				/>
				<div class="search">
					<IconSearch />
					<input
						type="text"
						placeholder="Filter by address or label"
						aria-label="Filter targets"
						value={location.params.get("filter") ?? ""}
						onInput={(e) =>
							store.patch({ filter: (e.target as HTMLInputElement).value }, true)
						}
					/>
				</div>
				<span class="spacer" />
				<span class="faint">
					{answer?.data.activeTargets?.length ?? 0} active, {dropped.length} dropped
				</span>
			</div>
			{error && <QueryError error={error} sent="" />}
			{pools.map(([name, targets]) => (
				<Pool key={name} name={name} targets={targets} now={now} orders={orders} />
			))}
			{answer && pools.length === 0 && (
				<section class="panel">
					<div class="empty">
						{answer.data.activeTargets?.length
							? "No target is as you ask: clear the filter, or show all."
							: "Nothing is scraped: no targets are configured, or none were found."}
					</div>
				</section>
			)}
			{dropped.length > 0 && (
				<section class="panel pool">
					<div class="panel-head">
						<h2>Dropped by relabelling</h2>
					</div>
					<ul class="dropped">
						{dropped.map((d, i) => (
							<DroppedRow key={`${d.scrapePool} ${i}`} target={d} />
						))}
					</ul>
				</section>
			)}
		</main>
	);
}
