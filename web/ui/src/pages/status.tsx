// Status: what runs here, with which flags and which configuration.
import type { ComponentChildren } from "preact";
import { useApi } from "../lib/hooks";
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

function Pairs({ object }: { object: { [key: string]: Json } }) {
	const flat = Object.entries(object).filter(([, v]) => !Array.isArray(v));
	return (
		<table class="plain pairs">
			<tbody>
				{flat.map(([k, v]) => (
					<tr key={k}>
						<th>{spaced(k)}</th>
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

function TsdbView({ data }: { data: Tsdb }) {
	const lists = Object.entries(data).filter(([, v]) => Array.isArray(v) && v.length > 0);
	const groups = Object.entries(data).filter(
		([, v]) => v !== null && typeof v === "object" && !Array.isArray(v),
	) as [string, Tsdb][];
	const rest = Object.fromEntries(Object.entries(data).filter(([, v]) => typeof v !== "object"));
	return (
		<>
			<Pairs object={Object.assign(rest, ...groups.map(([, g]) => g))} />
			{lists.map(([k, v]) => (
				<div key={k} class="sublist">
					<h3>{spaced(k)}</h3>
					<table class="plain pairs">
						<tbody>
							{(v as { name?: Json; value?: Json }[]).map((row, i) => (
								<tr key={i}>
									<th>{String(row.name ?? i)}</th>
									<td>
										<Value value={row.value ?? (row as Json)} />
									</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			))}
		</>
	);
}

export function StatusPage() {
	return (
		<main class="status-page">
			<div class="toolbar page-bar">
				<h1>Status</h1>
			</div>
			<div class="columns">
				<div>
					<Section title="Runtime" name="runtimeinfo" />
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
					<Section
						title="Storage"
						name="tsdb"
						render={(d: Tsdb) => <TsdbView data={d} />}
					/>
				</div>
				<div>
					<Section
						title="Configuration"
						name="config"
						render={(d: { yaml: string }) => <pre class="yaml">{d.yaml}</pre>}
					/>
					<Section title="Flags" name="flags" />
				</div>
			</div>
			<p class="faint footer">
				This page uses preact and uPlot;{" "}
				<a href="licenses.txt" target="_blank">
					their licences
				</a>
				.
			</p>
		</main>
	);
}
