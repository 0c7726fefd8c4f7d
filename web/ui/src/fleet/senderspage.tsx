// The page Senders: who pushes profiles, how much, what is refused and why, and what has stopped coming.
import { useMemo } from "preact/hooks";
import type { ProfileType } from "../shared/api";
import { Chips } from "../shared/chips";
import { Segmented, TextFilter } from "../shared/fields";
import { useApi, useClock, useFlags, useUrl } from "../shared/hooks";
import { IsOff, Notices, QueryError } from "../shared/notices";
import { formatClock } from "../shared/timerange";
import { counted, digits, formatAgo, formatBytes, formatCount, formatNanoseconds } from "../shared/units";
import { oneOf } from "../shared/urlstate";
import type { PushCause } from "./causes";
import { AsOf, PagedTable, useRefreshed } from "./pool";
import {
	countViews,
	dataOf,
	notesOf,
	profilesPerMinute,
	SENDER_STATES,
	type Sender,
	type SenderNote,
	type Senders,
	type SenderView,
	shownSenders,
	sortedSenders,
} from "./senders";

const COLUMNS = [
	{ title: "Sender", col: "c-url" },
	{ title: "State", col: "c-state" },
	{ title: "Types" },
	{ title: "Profiles", col: "c-num", head: "num" },
	{ title: "Sent", col: "c-num", head: "num" },
	{ title: "Last stored", col: "c-num", head: "num" },
	{ title: "Interval", col: "c-num", head: "num" },
];
const SHARD_COLUMN = { title: "Shard", col: "c-num" };

const DASH = <span class="faint">–</span>;

interface RowProps {
	now: number;
	/** What is stored, for the links. */
	types: ProfileType[];
	/** Whether there is a column for it. */
	shard: boolean;
}

/** A link to the profiles that it sent, or text where none are stored. */
function DataLink(props: { of: Sender; type?: string; text: string; kind?: string } & RowProps) {
	const { of, type, text, kind, types, now } = props;
	const { store } = useUrl();
	const params = dataOf(of, types, now, type);
	if (!params) return <span class={kind}>{text}</span>;
	return (
		<a
			class={kind}
			href={store.href("explore", new URLSearchParams(params))}
			title="Explore these profiles"
		>
			{text}
		</a>
	);
}

function Who(props: RowProps & { of: Sender }) {
	const { of } = props;
	const said = { path: of.path, client: of.client, user: of.user };
	const known = Object.entries(said).filter((e): e is [string, string] => e[1] !== undefined);
	return (
		<>
			<div class="sender-name">
				{of.job === undefined ? (
					<span class="faint" title="Refused before the profiles were read">
						job not known
					</span>
				) : (
					<DataLink {...props} text={of.job} />
				)}
				<span>{of.address}</span>
			</div>
			<Chips labels={Object.fromEntries(known)} />
		</>
	);
}

function Amount({ of }: { of: Sender }) {
	const pace = profilesPerMinute(of);
	const whole = `${counted(of.profiles, "profile")}, ${counted(of.samples, "sample")}`;
	return (
		<>
			<span title={`${whole} stored since ${formatClock(Date.parse(of.firstSeen) / 1000)}`}>
				{formatCount(of.profiles)}
			</span>
			{pace !== null && (
				<span class="pace" title="Mean since then">
					{digits(pace)} / min
				</span>
			)}
		</>
	);
}

const sentence = ({ cause, cure }: PushCause) => {
	const text = `${cause}: ${cure}`;
	return text.endsWith("?") ? text : `${text}.`;
};

function Note({ note: n, columns }: { note: SenderNote; columns: number }) {
	const cause = n.cause && sentence(n.cause);
	const rest = [n.when, n.counts].filter(Boolean).join(" · ");
	return (
		<tr class="error-row">
			{n.now ? (
				<td colSpan={columns} class="err">
					{cause && <b>{cause}</b>}
					{n.message && <div class={cause ? "faint" : undefined}>{n.message}</div>}
					{rest && <div class="faint">{rest}</div>}
				</td>
			) : (
				<td colSpan={columns} class="past">
					{n.message && `Last error: ${n.message}. ${cause ?? ""}`}
					<div class="faint">{rest}</div>
				</td>
			)}
		</tr>
	);
}

function SenderRow(props: RowProps & { of: Sender }) {
	const { of, now, shard } = props;
	const look = SENDER_STATES[of.state];
	const stored = of.lastStored && Date.parse(of.lastStored) / 1000;
	return (
		<>
			<tr>
				<td class="url">
					<Who {...props} />
				</td>
				<td>
					<span class={`badge ${look.badge}`} title={look.hint}>
						{of.state}
					</span>
				</td>
				<td>
					<span class="chips">
						{of.types.map((t) => (
							<DataLink key={t} {...props} type={t} text={t} kind="chip profile" />
						))}
					</span>
				</td>
				<td class="num" data-title="Profiles">
					<Amount of={of} />
				</td>
				<td class="num" data-title="Sent" title={`${of.bytes.toLocaleString("en")} bytes of bodies`}>
					{formatBytes(of.bytes)}
				</td>
				<td class="num" data-title="Last stored" title={of.lastStored}>
					{stored ? formatAgo(now - stored) : "never"}
				</td>
				<td class="num" data-title="Interval">
					{of.intervalSeconds ? formatNanoseconds(1e9 * of.intervalSeconds) : DASH}
				</td>
				{shard && <td data-title="Shard">{of.shard ?? DASH}</td>}
			</tr>
			{notesOf(of, now).map((n, i) => (
				<Note key={i} note={n} columns={COLUMNS.length + Number(shard)} />
			))}
		</>
	);
}

const VIEWS: [SenderView, string, string][] = [
	["all", "All", "All senders"],
	["trouble", "Trouble", "Last profiles refused, all or some"],
	["stopped", "Stopped", "Was regular, now silent"],
	["sending", "Sending", "Last profiles stored"],
	["idle", "Idle", "Silent, but never regular, like CI jobs"],
];
const VIEW_NAMES = VIEWS.map(([v]) => v);

/** Nothing was pushed: whether the server takes it, and where to send. */
function Nothing({ since }: { since: string }) {
	const flags = useFlags();
	const off = flags.answer?.data["web.enable-ingest"] === "false";
	return (
		<div class="empty">
			No pushes since {formatClock(Date.parse(since) / 1000)}.{" "}
			{off ? (
				<IsOff what="Pushes" flag="--web.enable-ingest" />
			) : (
				<>
					SDKs and collectors send to <code>{document.baseURI.replace(/\/$/, "")}</code>, scripts to
					its <code>/api/v1/ingest?name=process_cpu&amp;job=NAME</code>.
				</>
			)}
		</div>
	);
}

function SenderTable(props: { all: Sender[]; shown: Sender[]; shard: boolean }) {
	const { all, shown, shard } = props;
	const now = useClock();
	// Asked again when a type is new: it may be stored now.
	const sent = useMemo(() => [...new Set(all.flatMap((s) => s.types))].sort().join(" "), [all]);
	const types = useApi<ProfileType[]>(sent, "profile_types").answer?.data ?? [];
	const columns = shard ? [...COLUMNS, SHARD_COLUMN] : COLUMNS;
	return (
		<PagedTable kind="targets" columns={columns} items={shown} what="senders">
			{(s, i) => <SenderRow key={s.address + i} of={s} now={now} types={types} shard={shard} />}
		</PagedTable>
	);
}

export function SendersPage() {
	const { store, location } = useUrl();
	const { answer, error, asOf } = useRefreshed<Senders>("senders");
	const view = oneOf(location.params.get("state"), VIEW_NAMES);
	const filter = location.params.get("filter") ?? "";
	const data = answer?.data;
	const all = useMemo(() => sortedSenders(data?.senders ?? []), [data]);
	const counts = useMemo(() => countViews(all), [all]);
	const shard = useMemo(() => all.some((s) => s.shard !== undefined), [all]);
	const shown = useMemo(() => shownSenders(all, filter, view), [all, filter, view]);
	const since = data && formatClock(Date.parse(data.since) / 1000);
	return (
		<main id="main" class="senders-page">
			<div class="toolbar page-bar">
				<h1>Senders</h1>
				<Segmented
					label="State"
					value={view}
					options={VIEWS.map(([v, text, hint]) => [
						v,
						v === "all" ? text : `${text} ${counts[v].toLocaleString("en")}`,
						hint,
					])}
					onChange={(v) => store.patch({ state: v === "all" ? null : v })}
				/>
				<TextFilter label="Filter senders" hint="Filter by job, address, user or error" />
				<span class="spacer" />
				<AsOf at={asOf} />
				{data && (
					<span class="faint">
						{counted(all.length, "sender")} since {since}
					</span>
				)}
				<a href="targets">Targets</a>
			</div>
			{error && <QueryError error={error} sent="" />}
			<Notices
				warnings={answer?.warnings ?? []}
				infos={
					data?.forgotten
						? [
								`${counted(data.forgotten, "sender")} dropped from the list: ` +
									`the server keeps the last ${data.max.toLocaleString("en")}.`,
							]
						: []
				}
			/>
			{data && (
				<section class="panel" aria-label="Senders">
					{shown.length > 0 ? (
						<SenderTable all={all} shown={shown} shard={shard} />
					) : all.length > 0 ? (
						<div class="empty">No matching sender. Clear the filter, or show all.</div>
					) : (
						<Nothing since={data.since} />
					)}
				</section>
			)}
		</main>
	);
}
