// Status: what runs here, what is stored, with which configuration and flags.
import type { ComponentChildren } from "preact";
import { useApi } from "../lib/hooks";
import { formatClock, formatDuration } from "../lib/timerange";
import { formatBytes } from "../lib/units";
import { QueryError } from "../parts/querybar";

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** `storageRetention` to `storage retention`; names with dots or dashes stay. */
function spaced(key: string): string {
	if (/[.\-_ ]/.test(key)) return key;
	return key.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/^(.)/, (c) => c.toUpperCase());
}

function Value({ name = "", value }: { name?: string; value: Json }) {
	if (value === null || value === "") return <span class="faint">–</span>;
	if (typeof value === "number" && /bytes$/i.test(name))
		return <span title={value.toLocaleString("en")}>{formatBytes(value)}</span>;
	if (typeof value === "number") return <>{value.toLocaleString("en")}</>;
	if (typeof value === "object") return <code>{JSON.stringify(value)}</code>;
	return <>{String(value)}</>;
}

/** `verbatim`: the keys are names of their own, such as flags. */
function Pairs({ object, verbatim }: { object: { [key: string]: Json }; verbatim?: boolean }) {
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

function Section({
	title,
	name,
	render,
}: {
	title: string;
	name: string;
	render?(data: never): ComponentChildren;
}) {
	const { answer, error } = useApi<{ [key: string]: Json }>(name, `status/${name}`);
	return (
		<section class={`panel status-${name}`}>
			<div class="panel-head">
				<h2>{title}</h2>
			</div>
			{error && <QueryError error={error} sent="" />}
			{answer && (render ? render(answer.data as never) : <Pairs object={answer.data} />)}
		</section>
	);
}

interface Tsdb {
	[key: string]: Json;
}

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

function Blocks({ blocks }: { blocks: Block[] }) {
	const latest = blocks.slice().sort((a, b) => b.maxTime - a.maxTime);
	return (
		<div class="scroll-x">
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
									"sums only"
								)}
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

function TsdbView({ data }: { data: Tsdb }) {
	const groups = Object.values(data).filter(
		(v) => v !== null && typeof v === "object" && !Array.isArray(v),
	) as Tsdb[];
	const plain = Object.fromEntries(Object.entries(data).filter(([, v]) => typeof v !== "object"));
	const head = Object.assign({}, ...groups) as Tsdb;
	for (const k of ["minTime", "maxTime"])
		if (typeof head[k] === "number") head[k] = head[k] ? formatClock(head[k] / 1000) : "";
	return <Pairs object={{ ...plain, ...head }} />;
}

const TABS: [string, string][] = [
	["status", "Runtime"],
	["tsdb-status", "TSDB"],
	["config", "Configuration"],
	["flags", "Flags"],
];

function Frame({ at, children }: { at: string; children: ComponentChildren }) {
	return (
		<main class="status-page">
			<div class="toolbar page-bar">
				<h1>Status</h1>
				<nav class="segmented" aria-label="Status pages">
					{TABS.map(([path, title]) => (
						<a key={path} href={path} aria-current={path === at ? "page" : undefined}>
							{title}
						</a>
					))}
				</nav>
			</div>
			{children}
		</main>
	);
}

interface Alertmanagers {
	activeAlertmanagers?: { url: string }[];
	droppedAlertmanagers?: { url: string }[];
}

function AlertmanagersSection() {
	const { answer, error } = useApi<Alertmanagers>("alertmanagers", "alertmanagers");
	const active = answer?.data.activeAlertmanagers ?? [];
	const dropped = answer?.data.droppedAlertmanagers ?? [];
	return (
		<section class="panel">
			<div class="panel-head">
				<h2>Alertmanagers</h2>
				<span class="spacer" />
				<span class="faint">
					{active.length} active, {dropped.length} dropped by relabelling
				</span>
			</div>
			{error && <QueryError error={error} sent="" />}
			{answer && active.length === 0 && (
				<div class="empty">
					None: alerts are shown here and sent nowhere. Name some in{" "}
					<code>alerting: {"{alertmanagers: [...]}"}</code>.
				</div>
			)}
			{active.length > 0 && (
				<table class="plain pairs">
					<tbody>
						{active.map((a) => (
							<tr key={a.url}>
								<td>{a.url}</td>
							</tr>
						))}
					</tbody>
				</table>
			)}
		</section>
	);
}

export function StatusPage() {
	return (
		<Frame at="status">
			<div class="columns">
				<div>
					<Section title="Runtime" name="runtimeinfo" />
				</div>
				<div>
					<Section
						title="Build"
						name="buildinfo"
						render={(d: { [key: string]: Json }) => (
							// Prometheus's fields; what this build does not know says nothing here.
							<Pairs
								object={Object.fromEntries(
									Object.entries(d).filter(([, v]) => v !== ""),
								)}
							/>
						)}
					/>
					<AlertmanagersSection />
				</div>
			</div>
			<p class="faint footer">
				This page uses preact and uPlot;{" "}
				<a href="licenses.txt" target="_blank">
					their licences
				</a>
				.
			</p>
		</Frame>
	);
}

export function TsdbPage() {
	return (
		<Frame at="tsdb-status">
			<Section title="Storage" name="tsdb" render={(d: Tsdb) => <TsdbView data={d} />} />
			<Section
				title="Windows and blocks"
				name="tsdb"
				render={(d: { blocks: Block[] }) =>
					d.blocks.length ? (
						<Blocks blocks={d.blocks} />
					) : (
						<div class="empty">
							Nothing is stored yet. The <a href="targets">targets page</a> shows what is
							being scraped.
						</div>
					)
				}
			/>
		</Frame>
	);
}

export function ConfigPage() {
	return (
		<Frame at="config">
			<Section
				title="Configuration in force"
				name="config"
				render={(d: { yaml: string }) => <pre class="yaml">{d.yaml}</pre>}
			/>
		</Frame>
	);
}

export function FlagsPage() {
	return (
		<Frame at="flags">
			<Section
				title="Command line flags"
				name="flags"
				render={(d: { [key: string]: Json }) => <Pairs object={d} verbatim />}
			/>
		</Frame>
	);
}
