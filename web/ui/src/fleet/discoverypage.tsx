// The page Service discovery: targets before and after relabelling, and the dropped ones.
import { useMemo, useState } from "preact/hooks";
import type { Targets } from "../shared/api";
import { Chips } from "../shared/chips";
import { useApi, useUrl } from "../shared/hooks";
import { oneOf } from "../shared/urlstate";
import { Count, PagedTable, PoolsPage } from "./pool";
import { Relabelling, WhyButton } from "./relabelling";
import { type Fate, type Found, type FoundPool, foundPools, foundTargets } from "./targets";

const COLUMNS = [
	{ title: "Discovered labels" },
	{ title: "Target labels" },
	{ title: "Relabelling", col: "c-fate" },
];
const FATES: [Fate, string, string][] = [
	["all", "All", "All discovered targets"],
	["active", "Active", "Scraped targets"],
	["dropped", "Dropped", "Dropped by relabelling, or scraped by other shards"],
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
						<span class="badge">{f.reason ?? "dropped"}</span>
					)}
				</td>
				<td>
					<WhyButton hint="The relabelling rules, step by step" open={open} onOpen={setOpen} />
				</td>
			</tr>
			{open && (
				<tr class="discovered">
					<td colSpan={COLUMNS.length}>
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
					? "Labels of dropped targets are not kept (keep_dropped_targets)."
					: "No targets found for this job."}
			</div>
		);
	return (
		<PagedTable kind="found" columns={COLUMNS} items={pool.shown} what="targets">
			{(f, i) => (
				<Row
					key={JSON.stringify([f.discovered, f.labels, f.labels ? 0 : i])}
					found={f}
				/>
			)}
		</PagedTable>
	);
}

export function DiscoveryPage() {
	const { location } = useUrl();
	const [tick, setTick] = useState(0);
	const { answer, error, loading } = useApi<Targets>(`any ${tick}`, "targets", { state: "any" });
	const filter = location.params.get("filter") ?? "";
	const fate = oneOf(location.params.get("state"), STATES);
	const found = useMemo(() => (answer ? foundTargets(answer.data) : []), [answer]);
	const list = useMemo(
		() => (answer ? foundPools(answer.data, found, filter, fate) : []),
		[answer, found, filter, fate],
	);
	return (
		<PoolsPage
			kind="discovery-page"
			title="Service discovery"
			choice={{ label: "Targets", value: fate, options: FATES }}
			filter={{ label: "Filter discovered targets", hint: "Filter by labels, name=value" }}
			aside={
				<>
					<button type="button" disabled={loading} onClick={() => setTick(tick + 1)}>
						Refresh
					</button>
					<a href="targets">Targets</a>
				</>
			}
			error={error}
			warnings={answer?.warnings ?? []}
			infos={answer?.infos ?? []}
			pools={list}
			counts={(p) => <Count some={p.active} all={p.all} word="active" mark="faint" />}
			table={(p) => <FoundTable pool={p} />}
			empty={
				!answer
					? "Loading…"
					: found.length
						? "No matching target. Clear the filter, or show all."
						: "No targets: the configuration has no scrape_configs."
			}
		/>
	);
}
