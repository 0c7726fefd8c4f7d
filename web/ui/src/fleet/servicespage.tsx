// The page Services: one row per service, with links to its profiles.
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { ChartColumn as Steps } from "../chart/series";
import { FunctionName } from "../flame/functionname";
import { groupable } from "../query/labels";
import { useMenu } from "../query/menus";
import { useLabelNames, useProfileTypes, useScrapeInterval, windowTimes } from "../query/questions";
import { escapeRegexp } from "../query/text";
import type { ProfileType } from "../shared/api";
import { optionsOf, Select, TextFilter } from "../shared/fields";
import { FirstCpuNote, FirstMinutePanel, useFirstMinute } from "../first/firstminute";
import { useInterval, useKeyed, useUrl } from "../shared/hooks";
import { QueryError } from "../shared/notices";
import { useFirstView } from "../shared/defaultrange";
import { type Column, Table } from "../shared/table";
import { TimePicker } from "../shared/timepicker";
import {
	parseDuration,
	rangeToParams,
	resolve,
	type TimeRange,
} from "../shared/timerange";
import { type ChartUnit, formatCount, formatPercent, formatValue } from "../shared/units";
import { formatParams } from "../shared/urlstate";
import {
	allCores,
	coresUnit,
	defaultLabel,
	fleetQuestions,
	fleetRows,
	fleetTimes,
	fleetTypes,
	serviceQuery,
	type ServiceRow,
} from "./fleet";
import { FindingsPanel } from "./findingspanel";
import { type Many, roundEnded, useMany } from "./parallel";
import { RoundErrors, RoundWarnings, Waiting } from "./roundnotes";
import { Spark } from "./spark";
import { useFindings } from "./usefindings";
import "./servicespage.css";

const DASH = <span class="faint">–</span>;

/** Links to other pages for one service in the shown window. */
interface Links {
	explore(service: string, type: string, more?: Record<string, string>): string;
	yesterday(service: string): string;
	alerts(service: string): string;
	down(service: string): string;
}

interface Shown {
	by: string;
	unit: ChartUnit;
	/** Names of types; "" if the server does not have one. */
	cpu: string;
	memory: string;
	tasks: string;
	leaked: string;
	links: Links;
}

function makeLinks(by: string, cpu: string, range: TimeRange): Links {
	const times: Record<string, string> = {};
	for (const [k, v] of Object.entries(rangeToParams(range))) if (v !== null) times[k] = v;
	const to = (path: string, args: Record<string, string>) =>
		path + formatParams(new URLSearchParams(args));
	return {
		explore: (service, type, more = {}) =>
			to("explore", { query: serviceQuery(type, by, service), ...times, ...more }),
		yesterday: (service) => {
			const query = serviceQuery(cpu, by, service);
			return to("compare", { new: query, base: query, ...times, shift: "1d" });
		},
		alerts: (service) => to("alerts", { state: "firing", filter: service }),
		down: (service) => to("targets", { state: "down", ...(service && { filter: `${by}=${service}` }) }),
	};
}

const serviceName = (by: string, service: string) => service || `no ${by}`;

const METRIC_WIDTH = "var(--metric)";

interface Metric {
	key: "cores" | "memory" | "tasks";
	title: string;
	hint: string;
	/** What it is a number of, in the profiles of this type. */
	type: string;
	spark(r: ServiceRow): Steps;
	format(v: number): string;
	/** Behind the number. */
	more?(r: ServiceRow): ComponentChildren;
}

/** A number, which leads to its profiles, and how it went over the window. */
const metric = (
	{ by, links }: Shown,
	{ key, title, hint, type, spark, format, more }: Metric,
): Column<ServiceRow> => ({
	key,
	title,
	hint: `${hint}. Each line runs from zero to the row's maximum`,
	numeric: true,
	width: METRIC_WIDTH,
	sort: (r) => r[key] ?? -1,
	cell: (r) => {
		const v = r[key];
		if (v === null) return DASH;
		const seen = spark(r).filter((p) => typeof p === "number");
		const range = `${format(Math.min(...seen))} to ${format(Math.max(...seen))}`;
		return (
			<span class="metric">
				{seen.length > 0 && <Spark values={spark(r)} label={range} />}
				<a
					href={links.explore(r.service, type)}
					title="Explore the profiles"
					aria-label={`${title} of ${serviceName(by, r.service)}: ${format(v)}`}
				>
					{format(v)}
				</a>
				{more?.(r)}
			</span>
		);
	},
});

function nameColumn({ by, cpu, memory, links }: Shown): Column<ServiceRow> {
	const type = cpu || memory;
	return {
		key: "service",
		title: by,
		width: "var(--name)",
		sort: (r) => r.service,
		cell: (r) => {
			const text = r.service || <span class="faint">{serviceName(by, r.service)}</span>;
			if (!type) return text;
			return (
				<a href={links.explore(r.service, type)} title="Explore the profiles">
					{text}
				</a>
			);
		},
	};
}

function topColumn({ cpu, links }: Shown): Column<ServiceRow> {
	return {
		key: "top",
		title: "Hottest function",
		hint: "The function with the largest flat CPU cost, and its share",
		width: "minmax(220px, 1.6fr)",
		sort: (r) => r.top?.function ?? "",
		cell: (r) =>
			r.top ? (
				<a
					class="top-function"
					href={links.explore(r.service, cpu, { pick: r.top.function })}
				>
					<FunctionName name={r.top.function} />
					<span class="share">{formatPercent(r.top.flat_percent)}</span>
				</a>
			) : (
				DASH
			),
	};
}

function stateColumns({ links }: Shown): Column<ServiceRow>[] {
	return [
		{
			key: "up",
			title: "Up",
			hint: "Processes whose last scrapes all succeeded, of all",
			numeric: true,
			width: "86px",
			sort: (r) => (r.targets ? (r.up ?? 0) / r.targets : 2),
			cell: (r) =>
				r.targets === null ? (
					DASH
				) : (r.up ?? 0) < r.targets ? (
					<a class="count down" href={links.down(r.service)} title="Targets that are down">
						{r.up ?? 0} / {r.targets}
					</a>
				) : (
					<span class="count up">
						{r.up ?? 0} / {r.targets}
					</span>
				),
		},
		{
			key: "firing",
			title: "Alerts",
			hint: "Firing alerts",
			numeric: true,
			width: "82px",
			sort: (r) => r.firing ?? -1,
			cell: (r) =>
				r.firing === null ? (
					DASH
				) : r.firing === 0 ? (
					<span class="faint">0</span>
				) : (
					<a class="count down" href={links.alerts(r.service)}>
						{r.firing} firing
					</a>
				),
		},
	];
}

function goColumn({ by, cpu, memory, links }: Shown): Column<ServiceRow> {
	return {
		key: "go",
		title: "Open",
		width: "184px",
		sort: (r) => r.service,
		cell: (r) => {
			const of = (what: string) => `${what} of ${serviceName(by, r.service)}`;
			return (
				<span class="go">
					{cpu && r.cores !== null && (
						<a href={links.explore(r.service, cpu)} aria-label={of("CPU")}>
							CPU
						</a>
					)}
					{memory && r.memory !== null && (
						<a href={links.explore(r.service, memory)} aria-label={of("Heap")}>
							Heap
						</a>
					)}
					{cpu && r.cores !== null && (
						<a
							href={links.yesterday(r.service)}
							aria-label={`Compare ${serviceName(by, r.service)} with yesterday`}
							title="Compare with yesterday"
						>
							Yesterday
						</a>
					)}
				</span>
			);
		},
	};
}

function columnsOf(shown: Shown): Column<ServiceRow>[] {
	const { unit, cpu, memory, tasks, leaked, links } = shown;
	const cores = unit.label === "cores";
	return [
		nameColumn(shown),
		metric(shown, {
			key: "cores",
			type: cpu,
			title: cores ? "Cores" : "CPU",
			hint: `CPU in ${unit.label}: mean over the window, since the first profile`,
			spark: (r) => r.spark,
			format: (v) => unit.format(v),
		}),
		metric(shown, {
			key: "memory",
			type: memory,
			title: "Memory",
			hint: "Heap in use: mean over the window, sum of all targets",
			spark: (r) => r.memorySpark,
			format: (v) => formatValue(v, "bytes"),
		}),
		metric(shown, {
			key: "tasks",
			type: tasks,
			title: tasks.startsWith("thread") ? "Threads" : "Goroutines",
			hint: "Mean over the window, sum of all targets",
			spark: (r) => r.tasksSpark,
			format: (v) => formatCount(v),
			more: (r) =>
				!!r.leaked && (
					<a
						class="leaked"
						href={links.explore(r.service, leaked)}
						title="Explore the leaked goroutines"
					>
						{formatCount(r.leaked)} leaked
					</a>
				),
		}),
		topColumn(shown),
		{
			key: "profiles",
			title: "Profiles",
			hint: "Profiles stored in the window, all types",
			numeric: true,
			width: "88px",
			sort: (r) => r.profiles ?? -1,
			cell: (r) =>
				r.profiles === null ? (
					DASH
				) : (
					<span title={r.profiles.toLocaleString("en")}>{formatCount(r.profiles)}</span>
				),
		},
		...stateColumns(shown),
		goColumn(shown),
	];
}

function Totals({ rows, unit, many }: { rows: ServiceRow[]; unit: ChartUnit; many: Many }) {
	const sum = (key: "memory" | "firing") => rows.reduce((s, r) => s + (r[key] ?? 0), 0);
	const cores = allCores(unit, many.data);
	const memory = rows.some((r) => r.memory !== null);
	const firing = sum("firing");
	return (
		<dl class="summary fleet-summary">
			<div>
				<dt>rows</dt>
				<dd>{rows.length.toLocaleString("en")}</dd>
			</div>
			{cores !== null && (
				<div>
					<dt>{unit.label}</dt>
					<dd>{unit.format(cores)}</dd>
				</div>
			)}
			{memory && (
				<div>
					<dt>memory</dt>
					<dd>{formatValue(sum("memory"), "bytes")}</dd>
				</div>
			)}
			{many.data.alerts !== undefined && (
				<div>
					<dt>firing</dt>
					<dd>
						{firing ? (
							<a class="worse" href="alerts?state=firing">
								{firing}
							</a>
						) : (
							0
						)}
					</dd>
				</div>
			)}
		</dl>
	);
}

/** The labels of what is stored in the range. */
function LabelSelect(props: { range: TimeRange | null; by: string; onChange(by: string): void }) {
	const { range } = props;
	const about = JSON.stringify(range);
	const times = useKeyed(about, () => (range ? windowTimes(resolve(range, Date.now() / 1000)) : {}));
	const labels = useMenu<string>("labels", [], times, range !== null);
	const options = [...new Set([props.by, ...groupable(labels)])];
	return (
		<Select
			name="One row per"
			label="One row per value of"
			value={props.by}
			onChange={props.onChange}
		>
			{optionsOf(options)}
		</Select>
	);
}

function useFleet(by: string, range: TimeRange, tick: number, types: ProfileType[] | null) {
	const interval = useScrapeInterval();
	const about = JSON.stringify([by, range]);
	// A type that comes is shown at once.
	const kinds = new Set(types?.map((t) => t.name)).size;
	const key = types && interval !== null && by ? `${about} ${tick} ${kinds}` : null;
	const asked = useKeyed(key, () => {
		const known = fleetTypes(types ?? []);
		const times = fleetTimes(resolve(range, Date.now() / 1000), interval ?? 15);
		return { known, times, asks: fleetQuestions(by, known, times) };
	});
	const many = useMany(key, about, asked.asks);
	const unit = useMemo(() => coresUnit(asked.known, many.data), [asked, many.data]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: rows change with the answers, not with a question under way
	const rows = useMemo(
		() => (many.about === about ? fleetRows(by, asked.times, unit, many.data) : []),
		[many.data, many.about, about],
	);
	return { ...asked, about, many, unit, rows, answered: roundEnded(many, key) };
}

type Fleet = ReturnType<typeof useFleet>;

function FleetTable({ fleet, shown, filter }: { fleet: Fleet; shown: Shown; filter: string }) {
	const { rows, many } = fleet;
	const { store, location } = useUrl();
	const columns = useMemo(() => columnsOf(shown), [shown]);
	const pattern = useMemo(() => (filter ? new RegExp(escapeRegexp(filter), "i") : null), [filter]);
	if (rows.length === 0)
		return (
			<div class="empty">
				{many.since !== null || many.about === "" ? (
					"Loading…"
				) : (
					<>
						No profiles in this window. Widen the time range, or check the{" "}
						<a href="targets">targets page</a>.
					</>
				)}
			</div>
		);
	return (
		<Table
			columns={columns}
			rows={rows}
			rowKey={(r) => r.service}
			initialSort={location.params.get("sort") ?? (shown.cpu ? "-cores" : "service")}
			onSort={(sort) => store.patch({ sort }, true)}
			filter={pattern}
			filterText={(r) => `${serviceName(shown.by, r.service)} ${r.top?.function ?? ""}`}
			empty="No matching service."
		/>
	);
}

const NO_ANSWERS = {};
const NO_LABELS: string[] = [];

/** How often a range is asked again, if nobody chose: the wider, the less one more minute changes. */
function usualRefresh(range: TimeRange): string {
	if (range.kind === "absolute") return "off";
	const minutes = range.seconds / 60;
	return minutes <= 15 ? "10s" : minutes <= 60 ? "30s" : minutes <= 360 ? "1m" : "5m";
}

export function Services() {
	const { store, location } = useUrl();
	const { params } = location;
	const [tick, setTick] = useState(0);
	const labels = useLabelNames();
	const types = useProfileTypes();
	const failed = types.error ?? labels.error;
	const names = labels.answer?.data ?? NO_LABELS;
	const by = params.get("by") ?? (labels.answer ? defaultLabel(names) : "");
	const all = types.answer?.data ?? [];
	const first = useFirstMinute(types, true);
	const { range, known } = useFirstView(params, all.length > 0);
	const refresh = params.get("refresh") ?? usualRefresh(range);
	const fleet = useFleet(by, range, tick, known && first.waiting === false ? all : null);
	const { rows, many, unit } = fleet;
	useInterval(parseDuration(refresh) ?? 0, () => {
		if (many.since === null) setTick((t) => t + 1);
	});
	const findings = useFindings({
		...{ by, range, tick, labels: names, known: fleet.known, times: fleet.times, rows },
		answers: many.about === fleet.about ? many.data : NO_ANSWERS,
		ready: fleet.answered,
	});
	// The checklist of the first minute stays until there is a row, so that its end comes with it.
	const opening = useRef(false);
	if (first.waiting) opening.current = true;
	else if (fleet.answered || rows.length > 0 || failed) opening.current = false;
	const filter = params.get("filter") ?? "";
	const cpu = fleet.known.cpu ? "cpu" : "";
	const { memory, tasks, leaked } = fleet.known;
	const links = useKeyed(JSON.stringify([by, cpu, range]), () => makeLinks(by, cpu, range));
	const shown = useMemo(
		() => ({ by, unit, cpu, memory, tasks, leaked, links }),
		[by, unit, cpu, memory, tasks, leaked, links],
	);
	return (
		<main id="main" class="services-page">
			<div class="toolbar page-bar">
				<h1>Services</h1>
				<LabelSelect range={known ? range : null} by={by} onChange={(v) => store.patch({ by: v })} />
				<TextFilter label="Filter services" hint="Filter by name or function" />
				<Waiting many={many} total={fleet.asks.length} />
				<span class="spacer" />
				<Totals rows={rows} unit={unit} many={many} />
				<TimePicker
					range={range}
					onChange={(r) => store.patch(rangeToParams(r))}
					refresh={refresh}
					onRefresh={(r) => store.patch({ refresh: r })}
				/>
			</div>
			{failed && <QueryError error={failed} sent="" />}
			<RoundErrors asks={fleet.asks} many={many} />
			<RoundWarnings many={many} />
			{!first.waiting && <FindingsPanel findings={findings} />}
			{first.cpuComes && <FirstCpuNote first={first} />}
			{opening.current ? (
				<FirstMinutePanel first={first} />
			) : (
				(!failed || rows.length > 0) && (
					<section class={many.since !== null ? "panel fleet busy" : "panel fleet"}>
						<FleetTable fleet={fleet} shown={shown} filter={filter} />
					</section>
				)
			)}
		</main>
	);
}
