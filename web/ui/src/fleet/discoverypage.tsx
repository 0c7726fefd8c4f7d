// The page Service discovery: targets before and after relabelling, and the dropped ones.
import { useMemo, useState } from "preact/hooks";
import type { Targets } from "../shared/api";
import { Chips } from "../shared/chips";
import { Segmented, TextFilter } from "../shared/fields";
import { useApi, useUrl } from "../shared/hooks";
import { QueryError } from "../shared/notices";
import { Paged } from "../shared/paged";
import { oneOf } from "../shared/urlstate";
import { OpenAll, PoolPanel, usePools } from "./pool";
import { Relabelling, WhyButton } from "./relabelling";
import { type Fate, type Found, type FoundPool, foundPools, foundTargets } from "./targets";

const COLUMNS = 3;
const FATES: [Fate, string, string][] = [
	["all", "All", "All that was discovered"],
	["active", "Active", "What is scraped"],
	["dropped", "Dropped", "What relabelling dropped"],
];

const STATES = FATES.map(([v]) => v);

function Row({ found: f }: { found: Found }) {
	const [open, setOpen] = useState(false);
	return (
		<>
			<tr>
				<td>
					<Chips labels={f.discovered} />
				</td>
				<td>
					{f.labels ? (
						<>
							<Chips labels={f.labels} />
							<div class="profiles">{f.profiles.slice().sort().join(", ")}</div>
						</>
					) : (
						<span class="badge">dropped</span>
					)}
				</td>
				<td>
					<WhyButton hint="The relabelling rules, step by step" open={open} onOpen={setOpen} />
				</td>
			</tr>
			{open && (
				<tr class="discovered">
					<td colSpan={COLUMNS}>
						<Relabelling pool={f.scrapePool} labels={f.example} discovered={false} />
					</td>
				</tr>
			)}
		</>
	);
}

function FoundTable({ pool }: { pool: FoundPool }) {
	if (pool.shown.length === 0)
		return (
			<div class="empty">
				{pool.unseen
					? "The labels of what was dropped are not kept (keep_dropped_targets)."
					: "Discovery has found nothing for this job."}
			</div>
		);
	return (
		<Paged items={pool.shown} what="targets">
			{(items) => (
				<div class="scroll-x">
					<table class="plain found">
						<colgroup>
							<col />
							<col />
							<col class="c-fate" />
						</colgroup>
						<thead>
							<tr>
								<th>Discovered labels</th>
								<th>Target labels</th>
								<th>Relabelling</th>
							</tr>
						</thead>
						<tbody>
							{items.map((f, i) => (
								<Row
									key={JSON.stringify([f.discovered, f.labels, f.labels ? 0 : i])}
									found={f}
								/>
							))}
						</tbody>
					</table>
				</div>
			)}
		</Paged>
	);
}

export function DiscoveryPage() {
	const { store, location } = useUrl();
	const [tick, setTick] = useState(0);
	const { answer, error, loading } = useApi<Targets>(`any ${tick}`, "targets", { state: "any" });
	const filter = location.params.get("filter") ?? "";
	const fate = oneOf(location.params.get("state"), STATES);
	const found = useMemo(() => (answer ? foundTargets(answer.data) : []), [answer]);
	const list = useMemo(
		() => (answer ? foundPools(answer.data, found, filter, fate) : []),
		[answer, filter, fate],
	);
	const pools = usePools(list);
	return (
		<main class="discovery-page">
			<div class="toolbar page-bar">
				<h1>Service discovery</h1>
				<Segmented
					label="Targets"
					value={fate}
					options={FATES}
					onChange={(v) => store.patch({ state: v === "all" ? null : v })}
				/>
				<TextFilter label="Filter discovered targets" hint="Filter by labels, name=value" />
				<OpenAll pools={pools} count={list.length} />
				<span class="spacer" />
				<button type="button" disabled={loading} onClick={() => setTick(tick + 1)}>
					Refresh
				</button>
				<a href="targets">Targets</a>
			</div>
			{error && <QueryError error={error} sent="" />}
			{list.map((p) => (
				<PoolPanel
					key={p.name}
					pool={p}
					pools={pools}
					counts={
						<span class="count faint">
							{p.active.toLocaleString("en")} / {p.all.toLocaleString("en")} active
						</span>
					}
				>
					{() => <FoundTable pool={p} />}
				</PoolPanel>
			))}
			{list.length === 0 && (
				<section class="panel">
					<div class="empty">
						{!answer
							? "Loading…"
							: found.length
								? "No target matches: clear the filter, or show all."
								: "Nothing is discovered: the configuration has no scrape_configs."}
					</div>
				</section>
			)}
		</main>
	);
}
