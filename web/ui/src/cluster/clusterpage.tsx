// The page Cluster: the bucket, its shards as this server sees them, and what it costs.
import { useState } from "preact/hooks";
import { useApi, useInterval, useOwnAnswer, useSame, useUrl } from "../shared/hooks";
import { QueryError } from "../shared/notices";
import { type Column, Table } from "../shared/table";
import { formatClock } from "../shared/timerange";
import { counted, formatBytes } from "../shared/units";
import { StatusFrame } from "../status/frame";
import {
	type Cache,
	shardChip,
	type Cluster,
	hitRate,
	lag,
	memberState,
	money,
	type OwnShard,
	ownChipOf,
	type Requests,
	secondsOf,
	type Shard,
	clusterTotals,
	troublesOf,
} from "./cluster";
import "./cluster.css";

const REFRESH_S = 10;
const ROWS_MAX = 20;
const DASH = <span class="faint">–</span>;

const number = (n: number) => n.toLocaleString("en");
const Bytes = ({ n }: { n: number }) => <span title={`${number(n)} bytes`}>{formatBytes(n)}</span>;

function Chip({ chip }: { chip: { text: string; mark: string; hint: string } }) {
	return (
		<span class={`badge ${chip.mark}`} title={chip.hint}>
			{chip.text}
		</span>
	);
}

function Through({ of }: { of: { through?: string } }) {
	return of.through ? <span title={of.through}>{formatClock(secondsOf(of))}</span> : DASH;
}

/* ---- totals ---- */

function Totals({ cluster: c }: { cluster: Cluster }) {
	const t = clusterTotals(c);
	const hint = "In the currency of `prices` in the configuration";
	return (
		<section class="panel" aria-label="Totals">
			<dl class="cluster-totals">
				{c.shards && (
					<div>
						<dt>Shards</dt>
						<dd>
							{number(t.shards)}{" "}
							{t.late > 0 && <span class="worse">{number(t.late)} late</span>}
						</dd>
					</div>
				)}
				<div>
					<dt>Stored in the bucket</dt>
					<dd>
						<Bytes n={t.bytes} />
					</dd>
				</div>
				{c.cache && (
					<div>
						<dt>Cache hit rate</dt>
						<dd>{hitRate(c.cache)}</dd>
					</div>
				)}
				<div>
					<dt>Requests since the start</dt>
					<dd>{number(t.requests)}</dd>
				</div>
				{c.cost && (
					<>
						<div title={hint}>
							<dt>Cost of requests</dt>
							<dd>
								{money(c.cost.since_start)} <span class="faint">since the start</span>
								{c.cost.requests_per_day !== undefined && (
									<>
										{" "}
										{money(c.cost.requests_per_day)} <span class="faint">a day</span>
									</>
								)}
							</dd>
						</div>
						<div title={hint}>
							<dt>Cost of storage</dt>
							<dd>
								{money(c.cost.month)} <span class="faint">a month</span>
							</dd>
						</div>
					</>
				)}
			</dl>
			<p class="cluster-bucket">
				<code>{c.bucket}</code>
			</p>
		</section>
	);
}

/* ---- what this server publishes ---- */

function Own({ shard: s }: { shard: OwnShard }) {
	const chip = ownChipOf(s);
	return (
		<section class="panel" aria-labelledby="cluster-own">
			<div class="panel-head">
				<h2 id="cluster-own">Shard {s.name}, of this server</h2>
				<span class="spacer" />
				<Chip chip={chip} />
			</div>
			<table class="plain pairs">
				<tbody>
					<tr>
						<th>State</th>
						<td>{chip.hint}</td>
					</tr>
					<tr>
						<th>In the bucket until</th>
						<td>
							<Through of={s} />{" "}
							{s.lag_seconds !== undefined && (
								<span class="faint">{lag(s.lag_seconds)} ago</span>
							)}
						</td>
					</tr>
					<tr>
						<th>Waiting</th>
						<td>
							<Bytes n={s.waiting_bytes} />{" "}
							{s.waiting_blocks > 0 && (
								<span class="faint">{counted(s.waiting_blocks, "block")}</span>
							)}
						</td>
					</tr>
					<tr>
						<th>Stored</th>
						<td>
							<Bytes n={s.bytes} />{" "}
							<span class="faint">
								{counted(s.blocks, "block")}, {counted(s.windows, "window")} of{" "}
								{counted(s.segments, "segment")}
							</span>
						</td>
					</tr>
					{s.kept > 0 && (
						<tr>
							<th>Only in the bucket</th>
							<td>{counted(s.kept, "window or block that is", "windows or blocks that are")} not in the local directory</td>
						</tr>
					)}
					<tr>
						<th>To be removed</th>
						<td>{counted(s.gone, "object")}</td>
					</tr>
					<tr>
						<th>Generation</th>
						<td>{number(s.generation)}</td>
					</tr>
					{s.members && (
						<tr>
							<th>Assignment</th>
							<td>
								{s.assignment ? number(s.assignment) : "not known yet"}{" "}
								<span class="faint">
									{s.members.map((m) => `${m.name}: ${memberState(m, s.assignment ?? 0)}`).join(", ")}
								</span>
							</td>
						</tr>
					)}
					<tr>
						<th>Failures since the start</th>
						<td>{number(s.failures)}</td>
					</tr>
				</tbody>
			</table>
		</section>
	);
}

/* ---- shards that are queried ---- */

function count(
	key: "segments" | "windows" | "blocks" | "missing",
	title: string,
	hint: string,
): Column<Shard> {
	return {
		key,
		title,
		hint,
		numeric: true,
		width: "92px",
		sort: (s) => s[key] ?? NaN,
		cell: (s) => {
			const n = s[key];
			if (n === undefined) return DASH;
			return <span class={key === "missing" && n ? "worse" : ""}>{number(n)}</span>;
		},
	};
}

const COLUMNS: Column<Shard>[] = [
	{
		key: "name",
		title: "Shard",
		width: "minmax(120px, 1fr)",
		sort: (s) => s.name,
		cell: (s) => <span title={s.name}>{s.name}</span>,
	},
	{
		key: "state",
		title: "State",
		hint: "Sorting puts missing and late shards first",
		width: "120px",
		sort: (s) => shardChip(s).rank,
		cell: (s) => <Chip chip={shardChip(s)} />,
	},
	{
		key: "lag",
		title: "Lag",
		hint: "Age of the newest profiles that can be queried",
		numeric: true,
		width: "84px",
		sort: (s) => s.lag_seconds ?? NaN,
		cell: (s) => <span class={s.late ? "worse" : ""}>{lag(s.lag_seconds)}</span>,
	},
	{
		key: "through",
		title: "Until",
		hint: "All profiles acknowledged until then can be queried",
		width: "172px",
		sort: (s) => secondsOf(s),
		cell: (s) => <Through of={s} />,
	},
	count("windows", "Windows", "Open windows, read segment by segment"),
	count("segments", "Segments", "Parts of open windows in the bucket"),
	count("blocks", "Blocks", "Closed windows, read from the bucket"),
	{
		key: "bytes",
		title: "Size",
		numeric: true,
		width: "92px",
		sort: (s) => s.bytes ?? NaN,
		cell: (s) => (s.bytes === undefined ? DASH : <Bytes n={s.bytes} />),
	},
	count("missing", "Missing", "Objects of the manifest that are missing in the bucket"),
	{
		key: "assignment",
		title: "Assignment",
		hint: "Number of the assignment of targets that the shard follows",
		numeric: true,
		width: "104px",
		sort: (s) => s.assignment ?? NaN,
		cell: (s) =>
			s.assignment === undefined ? DASH : (
				<span class={s.behind ? "worse" : ""}>{number(s.assignment)}</span>
			),
	},
	{
		key: "host",
		title: "Host",
		width: "minmax(100px, 1fr)",
		sort: (s) => s.host ?? "",
		cell: (s) => (s.host ? <span title={s.host}>{s.host}</span> : DASH),
	},
];

function Shards({ shards }: { shards: Shard[] }) {
	const { store, location } = useUrl();
	const rows = useSame(shards);
	const height = Math.min(ROWS_MAX, Math.max(3, rows.length)) * 25 + 48;
	return (
		<section class="panel cluster-shards" aria-labelledby="cluster-shards">
			<div class="panel-head">
				<h2 id="cluster-shards">Queried shards</h2>
			</div>
			{rows.length === 0 ? (
				<div class="empty">
					No shards in the bucket yet. Start a server with <code>--shard.name</code> and this
					bucket in its configuration; a new shard appears within a minute.
				</div>
			) : (
				<div class="vtable-box" style={{ height: `${height}px` }}>
					<Table
						columns={COLUMNS}
						rows={rows}
						rowKey={(s) => s.name}
						initialSort={location.params.get("sort") ?? "state"}
						onSort={(sort) => store.patch({ sort }, true)}
						debugName="shards"
					/>
				</div>
			)}
		</section>
	);
}

/* ---- cache and requests ---- */

function CachePanel({ cache: c }: { cache: Cache }) {
	return (
		<section class="panel" aria-labelledby="cluster-cache">
			<div class="panel-head">
				<h2 id="cluster-cache">Bucket cache</h2>
			</div>
			<table class="plain pairs">
				<tbody>
					<tr>
						<th>Hit rate</th>
						<td>{hitRate(c)}</td>
					</tr>
					<tr>
						<th>Pages from memory</th>
						<td>{number(c.from_memory)}</td>
					</tr>
					<tr>
						<th>Pages from disk</th>
						<td>{number(c.from_disk)}</td>
					</tr>
					<tr>
						<th>Pages from the bucket</th>
						<td>{number(c.from_bucket)}</td>
					</tr>
					<tr>
						<th>Size on disk</th>
						<td>
							{c.max_bytes === 0 ? (
								"no disk cache"
							) : (
								<>
									<Bytes n={c.bytes} />{" "}
									<span class="faint">of {formatBytes(c.max_bytes)}</span>{" "}
									<meter
										min={0}
										max={c.max_bytes}
										value={c.bytes}
										aria-label="Size of the cache, of its limit"
									/>
								</>
							)}
						</td>
					</tr>
					<tr>
						<th>Damaged pages, read again</th>
						<td>{number(c.damaged_pages)}</td>
					</tr>
				</tbody>
			</table>
		</section>
	);
}

function RequestsPanel({ requests }: { requests: Record<string, Requests> }) {
	return (
		<section class="panel" aria-labelledby="cluster-requests">
			<div class="panel-head">
				<h2 id="cluster-requests">Requests to the bucket since the start</h2>
			</div>
			<table class="plain">
				<thead>
					<tr>
						<th>Kind</th>
						<th class="num">Requests</th>
						<th class="num">Sent</th>
						<th class="num">Received</th>
					</tr>
				</thead>
				<tbody>
					{Object.entries(requests).map(([kind, r]) => (
						<tr key={kind}>
							<td>{kind}</td>
							<td class="num">{number(r.requests)}</td>
							<td class="num">
								<Bytes n={r.sent_bytes} />
							</td>
							<td class="num">
								<Bytes n={r.received_bytes} />
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</section>
	);
}

function NoBucket() {
	return (
		<section class="panel">
			<div class="empty">
				No bucket configured: all data is in the local directory. To share a bucket between
				servers, set <code>bucket</code> in the configuration and <code>--shard.name</code>.
			</div>
		</section>
	);
}

function Content({ cluster: c }: { cluster: Cluster }) {
	return (
		<>
			{troublesOf(c).map((text) => (
				<div key={text} class="notice warning" role="status">
					{text}
				</div>
			))}
			<Totals cluster={c} />
			{c.shards && <Shards shards={c.shards} />}
			<div class="columns">
				<div>
					{c.shard && <Own shard={c.shard} />}
					{c.cache && <CachePanel cache={c.cache} />}
				</div>
				<div>{c.requests && <RequestsPanel requests={c.requests} />}</div>
			</div>
		</>
	);
}

export function ClusterPage() {
	const [tick, setTick] = useState(0);
	const key = `cluster ${tick}`;
	const loaded = useApi<Cluster>(key, "status/cluster");
	const answer = useOwnAnswer(loaded, key, "cluster");
	useInterval(REFRESH_S, () => setTick((t) => t + 1));
	const data = answer?.data;
	return (
		<StatusFrame at="cluster">
			{loaded.error && <QueryError error={loaded.error} sent="" />}
			<div class="cluster-page">
				{data && (data.bucket ? <Content cluster={data} /> : <NoBucket />)}
			</div>
		</StatusFrame>
	);
}
