// The pages Status, Configuration and Flags.
import { CopyButton } from "../shared/copybutton";
import { TextFilter } from "../shared/fields";
import { useApi, useUrl } from "../shared/hooks";
import { holds, filterWords } from "../shared/listfilter";
import { QueryError } from "../shared/notices";
import { type Json, Pairs, Section, StatusFrame, useStatus } from "./frame";

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
					No Alertmanager configured: alerts are not sent. Add one in{" "}
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

interface Library {
	name: string;
	package: string;
	version: string;
}

/** The libraries that are linked into the server. */
function Libraries({ libraries }: { libraries: Library[] }) {
	return (
		<table class="plain pairs">
			<tbody>
				{libraries.map((l) => (
					<tr key={l.name}>
						<th>{l.name}</th>
						<td title={`Debian's package ${l.package}`}>{l.version}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}

export function StatusPage() {
	const build = { name: "buildinfo", loaded: useStatus("buildinfo") };
	return (
		<StatusFrame at="status">
			<div class="columns">
				<div>
					<Section title="Runtime" name="runtimeinfo" />
				</div>
				<div>
					<Section
						title="Build"
						{...build}
						render={(d: { [key: string]: Json }) => (
							// Prometheus's fields; those that this build does not know are left out.
							<Pairs
								object={Object.fromEntries(
									Object.entries(d).filter(([, v]) => v !== ""),
								)}
							/>
						)}
					/>
					<AlertmanagersSection />
					<Section
						title="Libraries"
						{...build}
						render={(d: { libraries: Library[] }) => <Libraries libraries={d.libraries} />}
					/>
				</div>
			</div>
			<p class="faint footer">
				This page uses preact and uPlot;{" "}
				<a href="licenses.txt" target="_blank" rel="noopener">
					their licences
				</a>
				.
			</p>
		</StatusFrame>
	);
}

export function ConfigPage() {
	return (
		<StatusFrame at="config">
			<Section
				title="Active configuration"
				name="config"
				tools={(d: { yaml: string }) => <CopyButton text={d.yaml} />}
				render={(d: { yaml: string }) => (
					<pre class="yaml" tabIndex={0}>
						{d.yaml}
					</pre>
				)}
			/>
		</StatusFrame>
	);
}

type Flags = { [key: string]: Json };

function FlagsTable({ flags, filter }: { flags: Flags; filter: string }) {
	const wanted = filterWords(filter);
	const kept = Object.entries(flags).filter(([k, v]) =>
		holds(`--${k}=${v}`.toLowerCase(), wanted),
	);
	if (kept.length === 0) return <div class="empty">No matching flag.</div>;
	return <Pairs object={Object.fromEntries(kept)} verbatim />;
}

export function FlagsPage() {
	const { location } = useUrl();
	const filter = location.params.get("filter") ?? "";
	return (
		<StatusFrame at="flags">
			<Section
				title="Command line flags"
				name="flags"
				tools={() => (
					<TextFilter label="Filter flags" hint="Filter by name or value" />
				)}
				render={(d: Flags) => <FlagsTable flags={d} filter={filter} />}
			/>
		</StatusFrame>
	);
}
