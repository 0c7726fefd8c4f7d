// The page TSDB: head, disk, labels with the most series, windows and blocks.
import { useApi, useFlags } from "../shared/hooks";
import { Scroll } from "../shared/layout";
import { must } from "../shared/must";
import { formatClock, formatDuration } from "../shared/timerange";
import { formatBytes } from "../shared/units";
import { type Json, Pairs, Section, type Status, StatusFrame } from "./frame";

type Tsdb = Status & { losses?: Loss[] };

interface Block {
	ulid: string;
	level: number;
	minTime: number;
	maxTime: number;
	numSeries: number;
	numRows: number;
	numSamples: number;
	bytes: number;
	raw: boolean;
	damaged: boolean;
}

type Loss = {
	number: number;
	what: string;
	where: string;
	minTime: number;
	maxTime: number;
	found: number;
	text: string;
	accepted: boolean;
};

/** Lost data, the losses that nobody accepted first. */
function Losses({ losses }: { losses: Loss[] }) {
	const sorted = losses.slice().sort((a, b) => Number(a.accepted) - Number(b.accepted));
	return (
		<section class="panel">
			<div class="panel-head">
				<h2>Losses</h2>
				<span class="spacer" />
				<span class="faint">
					Queries carry a warning until <code>epitool tsdb repair --accept</code>
				</span>
			</div>
			<Scroll label="Losses">
				<table class="plain losses">
					<thead>
						<tr>
							<th>Loss</th>
							<th>Found</th>
							<th>Lost data</th>
							<th>State</th>
						</tr>
					</thead>
					<tbody>
						{sorted.map((l) => (
							<tr key={l.number}>
								<td class="num">{l.number}</td>
								<td>{formatClock(l.found / 1000)}</td>
								<td>{l.text.replace(/^loss \d+: /, "")}</td>
								<td>
									{l.accepted ? (
										"accepted"
									) : (
										<span class="badge down">open</span>
									)}
								</td>
							</tr>
						))}
					</tbody>
				</table>
			</Scroll>
		</section>
	);
}

function Blocks({ blocks }: { blocks: Block[] }) {
	const latest = blocks.slice().sort((a, b) => b.maxTime - a.maxTime);
	return (
		<Scroll label="Windows and blocks">
			<table class="plain blocks">
				<thead>
					<tr>
						<th>Block</th>
						<th>From</th>
						<th class="num">Duration</th>
						<th class="num">Level</th>
						<th class="num">Series</th>
						<th class="num">Profiles</th>
						<th class="num">Samples</th>
						<th class="num">Size</th>
						<th>State</th>
					</tr>
				</thead>
				<tbody>
					{latest.map((b) => (
						<tr key={b.ulid || b.minTime}>
							<td>{b.ulid ? <code>{b.ulid}</code> : "open window"}</td>
							<td>{formatClock(b.minTime / 1000)}</td>
							<td class="num">
								{formatDuration(Math.round((b.maxTime - b.minTime) / 1000))}
							</td>
							<td class="num">{b.level}</td>
							<td class="num">{b.numSeries.toLocaleString("en")}</td>
							<td class="num">{b.numRows.toLocaleString("en")}</td>
							<td class="num">{b.numSamples.toLocaleString("en")}</td>
							<td class="num" title={b.bytes.toLocaleString("en")}>
								{formatBytes(b.bytes)}
							</td>
							<td>
								{b.damaged ? (
									<span class="badge down">damaged</span>
								) : b.raw ? (
									"raw"
								) : (
									"rollups only"
								)}
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</Scroll>
	);
}

/** Labels for known keys; other keys are shown as the server names them. */
const NAMES: Record<string, string> = {
	numSeries: "Series",
	maxSeries: "Limit of series",
	largestJob: "Largest job",
	largestJobSeries: "Series of the largest job",
	maxSeriesPerJob: "Limit of series of one job",
	minTime: "First profile",
	maxTime: "Last profile",
	rowsAppended: "Profiles appended",
	samplesAppended: "Samples appended",
	numBlocks: "Blocks",
	diskBytes: "Size",
	symbolBytes: "Symbols",
	deltaBytes: "Last values of counters",
	indexBytes: "Index in memory",
	openLosses: "Unacknowledged losses",
};
const OF_HEAD = ["rowsAppended", "samplesAppended"];

function named(key: string, value: Json): [string, Json] {
	if (/Time$/.test(key) && typeof value === "number")
		return [NAMES[key] ?? key, value ? formatClock(value / 1000) : ""];
	if (/Bytes$/.test(key) && typeof value === "number")
		return [NAMES[key] ?? key, formatBytes(value)];
	return [NAMES[key] ?? key, value];
}

const plain = (data: Tsdb, keep: (key: string) => boolean): [string, Json][] =>
	Object.entries(data)
		.filter(([k, v]) => typeof v !== "object" && keep(k))
		.map(([k, v]) => named(k, v));

function Head({ data }: { data: Tsdb }) {
	const head = Object.entries((data.headStats ?? {}) as Status).map(([k, v]) => named(k, v));
	const appended = plain(data, (k) => OF_HEAD.includes(k));
	return <Pairs object={Object.fromEntries([...head, ...appended])} />;
}

/** How long and how much is kept, as the flags say; none of it is a limit. */
function retention(flags: Record<string, string>): [string, Json][] {
	const rows: [string, string][] = [
		["Retention time", "storage.tsdb.retention.time"],
		["Retention size", "storage.tsdb.retention.size"],
		["Retention time of single profiles", "storage.tsdb.retention.raw-time"],
	];
	return rows
		.filter(([, flag]) => flags[flag])
		.map(([name, flag]) => [name, /^0[A-Za-z]*$/.test(flags[flag]) ? "no limit" : flags[flag]]);
}

function Disk({ data }: { data: Tsdb }) {
	const flags = useFlags();
	const rows = plain(data, (k) => !OF_HEAD.includes(k));
	return (
		<Pairs object={Object.fromEntries([...rows, ...retention(flags.answer?.data ?? {})])} />
	);
}

const MOST = 10;

interface LabelCount {
	name?: string;
	value?: string;
	values?: number;
	series: number;
}

/** The labels, or values of a label, with the most series; nothing if the server does not say. */
function Counts({ title, label }: { title: string; label?: string }) {
	const { answer } = useApi<LabelCount[]>(`counts ${label}`, "label_counts", { label });
	if (!answer || answer.data.length === 0) return null;
	const by = (c: LabelCount) => c.values ?? c.series;
	const most = answer.data.slice().sort((a, b) => by(b) - by(a)).slice(0, MOST);
	return (
		<section class="panel counts">
			<div class="panel-head">
				<h2>{title}</h2>
				<span class="spacer" />
				{answer.data.length > MOST && (
					<span class="faint">
						{MOST} of {answer.data.length.toLocaleString("en")}
					</span>
				)}
			</div>
			<table class="plain">
				<thead>
					<tr>
						<th>{label ? "Name" : "Label"}</th>
						{!label && <th class="num">Values</th>}
						<th class="num">Series</th>
					</tr>
				</thead>
				<tbody>
					{most.map((c) => (
						<tr key={c.name ?? c.value}>
							<td>{c.name ?? c.value}</td>
							{!label && <td class="num">{must(c.values, "how many values").toLocaleString("en")}</td>}
							<td class="num">{c.series.toLocaleString("en")}</td>
						</tr>
					))}
				</tbody>
			</table>
		</section>
	);
}

export function TsdbPage() {
	const loaded = useApi<Tsdb>("tsdb", "status/tsdb");
	const tsdb = { name: "tsdb", loaded };
	const losses = loaded.answer?.data.losses ?? [];
	return (
		<StatusFrame at="tsdb-status">
			<div class="columns">
				<div>
					<Section title="Head" {...tsdb} render={(d: Tsdb) => <Head data={d} />} />
					<Counts title="Labels with the most values" />
				</div>
				<div>
					<Section title="Storage" {...tsdb} render={(d: Tsdb) => <Disk data={d} />} />
					<Counts title="Names with the most series" label="__name__" />
				</div>
			</div>
			{losses.length > 0 && <Losses losses={losses} />}
			<Section
				title="Windows and blocks"
				{...tsdb}
				render={(d: { blocks: Block[] }) =>
					d.blocks.length ? (
						<Blocks blocks={d.blocks} />
					) : (
						<div class="empty">
							No data stored yet. Check the <a href="targets">targets page</a>.
						</div>
					)
				}
			/>
		</StatusFrame>
	);
}
