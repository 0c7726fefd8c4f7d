// The page Symbols: which binaries have names, and how the others get them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { CopyButton } from "../shared/copybutton";
import { optionsOf, Select, TextFilter } from "../shared/fields";
import { useApi, useClock, useInterval, useOwnAnswer, useSame, useUrl } from "../shared/hooks";
import { holds, filterWords } from "../shared/listfilter";
import { Notices, QueryError } from "../shared/notices";
import { SEEN } from "../shared/symbols";
import { type Column, Table } from "../shared/table";
import { durationSeconds, trimMs } from "../shared/timerange";
import { formatAgo, formatBytes } from "../shared/units";
import { oneOf } from "../shared/urlstate";
import { StatusFrame } from "../status/frame";
import { Details } from "./details";
import { DropArea, useUploads } from "./droparea";
import {
	baseName,
	type Binary,
	stateChip,
	dirOf,
	filterOf,
	filterText,
	isNamed,
	binaryKey,
	originOf,
	shortId,
	type Symbols,
	symbolTotals,
	underWay,
	weightOf,
} from "./symbols";
import "./symbols.css";

const REFRESH_S = 30;
/** While something is uploaded, queued or extracted. */
const REFRESH_BUSY_S = 2;

const DASH = <span class="faint">–</span>;

function Path({ binary: b }: { binary: Binary }) {
	if (!b.path) return <span class="faint">not known</span>;
	return (
		<span class="symbol-path" title={b.path}>
			<b>{baseName(b.path)}</b>
			<span class="faint">{dirOf(b.path)}</span>
		</span>
	);
}

function BuildId({ binary: b }: { binary: Binary }) {
	if (!b.id) return <span class="faint">none</span>;
	return (
		<span class="symbol-id" onClick={(e) => e.stopPropagation()}>
			<code title={b.id}>{shortId(b.id)}</code>
			<CopyButton text={b.id} label={`Copy the build id ${b.id}`} tabIndex={-1} />
		</span>
	);
}

function StateCell({ binary: b }: { binary: Binary }) {
	const chip = stateChip(b);
	return (
		<span class="symbol-state" title={chip.hint}>
			<span class={`badge ${chip.mark}`}>{chip.text}</span>
			{b.why && <span class="faint ellipsis">{b.why}</span>}
		</span>
	);
}

const parsedTime = (text: string | undefined): number => (text ? Date.parse(text) / 1000 : NaN);

function ago(key: "addedAt" | "usedAt", title: string, now: number): Column<Binary> {
	return {
		key,
		title,
		numeric: true,
		width: "104px",
		sort: (b) => parsedTime(b[key]),
		cell: (b) => (b[key] ? <span title={b[key]}>{formatAgo(now - parsedTime(b[key]))}</span> : DASH),
	};
}

function size(key: "indexBytes" | "sourceBytes", title: string, hint: string): Column<Binary> {
	return {
		key,
		title,
		hint,
		numeric: true,
		width: "84px",
		sort: (b) => b[key] ?? NaN,
		cell: (b) => {
			const n = b[key];
			if (n === undefined) return DASH;
			return <span title={`${n.toLocaleString("en")} bytes`}>{formatBytes(n)}</span>;
		},
	};
}

function columnsOf(binaries: Binary[], now: number): Column<Binary>[] {
	const most = binaries.reduce((m, b) => Math.max(m, weightOf(b)), 0) || 1;
	return [
		{
			key: "path",
			title: "Binary",
			width: "minmax(190px, 1.6fr)",
			sort: (b) => baseName(b.path ?? "") + "\0" + b.path,
			cell: (b) => <Path binary={b} />,
		},
		{
			key: "id",
			title: "Build id",
			width: "212px",
			sort: (b) => b.id ?? "",
			cell: (b) => <BuildId binary={b} />,
		},
		{
			key: "addresses",
			title: "Addresses",
			hint: "Distinct addresses in the profiles of this time; sorting puts those without names first",
			numeric: true,
			width: "96px",
			sort: weightOf,
			cell: (b) =>
				b.addresses ? (
					<span class={isNamed(b) ? "faint" : ""}>{b.addresses.toLocaleString("en")}</span>
				) : (
					DASH
				),
			bar: (b) => Math.max(0, weightOf(b)) / most,
		},
		{
			key: "state",
			title: "State",
			hint: "Sorting puts those without names first",
			width: "minmax(150px, 1fr)",
			sort: (b) => stateChip(b).rank,
			cell: (b) => <StateCell binary={b} />,
		},
		{
			key: "origin",
			title: "From",
			width: "108px",
			sort: originOf,
			cell: (b) => originOf(b) || DASH,
		},
		{
			key: "jobs",
			title: "Jobs",
			width: "minmax(90px, 0.6fr)",
			sort: (b) => (b.jobs ?? []).join(", "),
			cell: (b) =>
				b.jobs?.length ? <span title={b.jobs.join(", ")}>{b.jobs.join(", ")}</span> : DASH,
		},
		size("sourceBytes", "File", "Size of the file with the names"),
		size("indexBytes", "Index", "Size of the names in the store"),
		ago("addedAt", "Added", now),
		ago("usedAt", "Used", now),
	];
}

function Totals({ symbols }: { symbols: Symbols }) {
	const t = symbolTotals(symbols.binaries);
	const number = (n: number) => n.toLocaleString("en");
	const { bytes, bytesMax } = symbols;
	return (
		<section class="panel" aria-label="Totals">
			<dl class="symbol-totals">
				<div>
					<dt>Binaries seen</dt>
					<dd>{number(t.seen)}</dd>
				</div>
				<div>
					<dt>With names</dt>
					<dd>{number(t.named)}</dd>
				</div>
				<div>
					<dt>Without names</dt>
					<dd class={t.unnamed ? "worse" : ""}>{number(t.unnamed)}</dd>
				</div>
				<div>
					<dt>Addresses without names</dt>
					<dd>{number(t.addresses)}</dd>
				</div>
				<div>
					<dt>Size of the store</dt>
					<dd title={`${number(bytes)} bytes`}>
						{formatBytes(bytes)}{" "}
						<span class="faint">{bytesMax > 0 ? `of ${formatBytes(bytesMax)}` : "no limit"}</span>
						{bytesMax > 0 && (
							<meter
								min={0}
								max={bytesMax}
								high={0.9 * bytesMax}
								value={bytes}
								aria-label="Size of the store, of its limit"
							/>
						)}
					</dd>
				</div>
			</dl>
		</section>
	);
}

function Empty() {
	return (
		<div class="empty">
			No binaries yet. Binaries whose functions were sent as addresses appear here with their
			debug data.
		</div>
	);
}

/** How far back profiles are looked at. */
function Seen() {
	const { store, location } = useUrl();
	return (
		<Select
			name="Seen in the last"
			label="Binaries of profiles of the last"
			value={oneOf(location.params.get("seen"), SEEN)}
			hint="Binaries with stored symbols are always listed"
			onChange={(seen) => store.patch({ seen: seen === SEEN[0] ? null : seen })}
		>
			{optionsOf(SEEN)}
		</Select>
	);
}

function Binaries({ symbols }: { symbols: Symbols }) {
	const { store, location } = useUrl();
	const filter = location.params.get("filter") ?? "";
	const seen = oneOf(location.params.get("seen"), SEEN);
	const now = useClock();
	const all = useSame(symbols.binaries);
	const rows = useMemo(() => {
		const wanted = filterWords(filterOf(filter));
		return all.filter((b) => holds(filterText(b), wanted));
	}, [all, filter]);
	const minute = Math.floor(now / 15); // times are shown with about that precision
	// biome-ignore lint/correctness/useExhaustiveDependencies: the minute stands for now
	const columns = useMemo(() => columnsOf(rows, now), [rows, minute]);
	const open = location.params.get("open");
	// A link to one binary opens it.
	const shown =
		rows.find((b) => binaryKey(b) === open) ??
		(filter && rows.length === 1 && open === null ? rows[0] : undefined);
	return (
		<>
			<section class="panel symbol-table" aria-labelledby="symbols-binaries">
				<div class="panel-head">
					<h2 id="symbols-binaries">Binaries</h2>
					<span class="faint">
						{rows.length < all.length &&
							`${rows.length.toLocaleString("en")} of ${all.length.toLocaleString("en")}`}
					</span>
					<span class="spacer" />
					<Seen />
					<TextFilter label="Filter binaries" hint="Filter by path, build id, job or state" />
				</div>
				{all.length === 0 ? (
					<Empty />
				) : (
					<div class="vtable-box" style={{ height: `${Math.min(16, Math.max(3, rows.length)) * 25 + 48}px` }}>
						<Table
							columns={columns}
							rows={rows}
							rowKey={binaryKey}
							initialSort={location.params.get("sort") ?? "-addresses"}
							onSort={(sort) => store.patch({ sort }, true)}
							selected={(b) => b === shown}
							onPick={(b) => store.patch({ open: b === shown ? "-" : binaryKey(b) }, true)}
							empty={`No binary of the last ${seen} matches the filter.`}
							debugName="symbols"
						/>
					</div>
				)}
			</section>
			{shown && (
				<Details
					key={binaryKey(shown)}
					binary={shown}
					symbols={symbols}
					onClose={() => store.patch({ open: "-" }, true)}
				/>
			)}
		</>
	);
}

export function SymbolsPage() {
	const [tick, setTick] = useState(0);
	const { location } = useUrl();
	const seen = oneOf(location.params.get("seen"), SEEN);
	const key = `${seen} ${tick}`;
	const start = trimMs(Date.now() / 1000 - durationSeconds(seen));
	const loaded = useApi<Symbols>(key, "symbols", { start });
	const answer = useOwnAnswer(loaded, key, "symbols");
	const { list, active } = useUploads();
	const data = answer?.data ?? null;
	const taken = list.filter((u) => u.stage === "taken").length;
	useEffect(() => {
		if (taken > 0) setTick((t) => t + 1); // what was taken is in the next answer
	}, [taken]);
	useInterval(active || underWay(data) ? REFRESH_BUSY_S : REFRESH_S, () => setTick((t) => t + 1));
	return (
		<StatusFrame at="symbols">
			{loaded.error && <QueryError error={loaded.error} sent="" />}
			{answer && data && (
				<>
					<Notices {...answer} />
					<Totals symbols={data} />
					<Binaries symbols={data} />
					<DropArea symbols={data} />
				</>
			)}
		</StatusFrame>
	);
}
