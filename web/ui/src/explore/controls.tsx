// The controls of Explore: query, window, picker, label browser; and the error of the query.
import { useRef } from "preact/hooks";
import type { OpenedFile } from "../files/contents";
import { FilesPanel } from "../files/filespanel";
import { OpenAround, OpenButton, useOpening } from "../files/openfile";
import { DidYouMean } from "../query/didyoumean";
import { alertOn, groupLabels, regrouped, splitLimit } from "../query/edit";
import { hasFiles } from "../query/files";
import { GroupBy } from "../query/groupby";
import { LabelBrowser } from "../query/labelbrowser";
import { parseMatch } from "../query/measured";
import { Picker } from "../query/picker";
import { QueryBar } from "../query/querybar";
import type { Times } from "../query/questions";
import { findSelectors } from "../query/read";
import { formatSelector, type Selector } from "../query/text";
import { ApiError, type ProfileType, resolveType } from "../shared/api";
import { Chips } from "../shared/chips";
import type { Loaded } from "../shared/hooks";
import { IconBell, IconDown } from "../shared/icons";
import { Narrow } from "../shared/layout";
import { Notices, QueryError } from "../shared/notices";
import { Progress } from "../shared/progress";
import { TimePicker } from "../shared/timepicker";
import { formatClock, rangeToParams, type TimeRange } from "../shared/timerange";
import { newAlert, type Patch } from "../shared/urlstate";
import "./controls.css";

export interface ControlsProps {
	query: string;
	/** The query as sent; the places of errors refer to it. */
	sent: string;
	selector: Selector | null;
	types: Loaded<ProfileType[]>;
	loaded: Loaded<unknown>;
	/** Other questions that are cancelled with it. */
	beside: Loaded<unknown>[];
	range: TimeRange;
	refresh: string;
	times: Times;
	at: number | null;
	match: string;
	/** Whether the chart is by function. */
	functions: boolean;
	/** Whether the query can be grouped. */
	groups: boolean;
	/** The label browser: null if closed, else the label that it shows, "" for none. */
	labels: string | null;
	run(query: string): void;
	onOpened(files: OpenedFile[]): void;
	edit(change: (query: string) => string, also?: Patch): void;
	patch(p: Record<string, string | null>): void;
}

const ALL_LABELS = "*"; // in the URL: open, with no label's values

/** The state of the label browser in the URL. */
export function labelsFromParams(params: URLSearchParams): string | null {
	const v = params.get("labels");
	return v === ALL_LABELS ? "" : v;
}

/** Opens the alert drawer for the total of a query, or for its costs and the limit that it has. */
function alertOnAll(query: string, types: ProfileType[]): Patch {
	const named = findSelectors(query)[0]?.name ?? "";
	const { expr, over } = splitLimit(alertOn(query, null, resolveType(named, types)?.type ?? ""));
	return { ...newAlert(expr), aover: over };
}

/** The error with its place in `query`, which is a part of the text that was sent. */
function inQuery(error: ApiError | null, sent: string, query: string): ApiError | null {
	const at = sent.indexOf(query);
	if (!error || at === 0) return error;
	if (at < 0 || error.line !== 1 || error.column <= at) return null;
	const { status, errorType, column, detail } = error;
	return new ApiError(status, errorType, `1:${column - at}: ${detail}`);
}

/** A query from a rule is asked at one time, not in the range of the time picker. */
function Instant({ at, match, onRange }: { at: number; match: string; onRange(): void }) {
	return (
		<div class="notice instant">
			<span>Evaluated at {formatClock(at)}, as rules are</span>
			<Chips labels={parseMatch(match)} />
			<button type="button" class="small" onClick={onRange}>
				Over the time range instead
			</button>
		</div>
	);
}

export function Controls(props: ControlsProps) {
	const { query, sent, selector, types, loaded, range, refresh, at, match, run, patch } = props;
	const { labels } = props;
	const opening = useOpening(props.onOpened);
	const opener = useRef<HTMLButtonElement>(null);
	const known = types.answer?.data ?? [];
	const group = groupLabels(query).join(", ");
	return (
		<section class="panel controls">
			<div class="row">
				<QueryBar
					query={query}
					label="Query"
					loading={loaded.loading}
					times={props.times}
					error={loaded.loading ? null : inQuery(loaded.error, sent, query)}
					onRun={run}
					placeholder='cpu{job="api"}, or merge by (version) (cpu), or flat(cpu)'
				>
					<button
						type="button"
						class="alert-query"
						disabled={!query || hasFiles(query) || (!types.answer && !types.error)}
						title="New alert: cost of the past day, a limit, and the rule as text"
						onClick={() => patch(alertOnAll(query, known))}
					>
						<IconBell />
						Alert
					</button>
				</QueryBar>
				<TimePicker
					range={range}
					onChange={(r) => patch({ ...rangeToParams(r), at: null })}
					refresh={refresh}
					onRefresh={(r) => patch({ refresh: r === "off" ? null : r })}
				/>
				<OpenButton of={opening} />
			</div>
			<Narrow name="Type and labels">
				<div class="row picker-row">
					<Picker
						selector={selector}
						types={known}
						times={props.times}
						onChange={(s) =>
							group
								? props.edit(() => regrouped(formatSelector(s), group), { el: "all" })
								: run(formatSelector(s))
						}
					/>
					<button
						type="button"
						ref={opener}
						aria-expanded={labels !== null}
						title="Labels of the selected series, and their values"
						onClick={() => patch({ labels: labels === null ? ALL_LABELS : null })}
					>
						Labels
						<IconDown />
					</button>
					{props.groups && (
						<GroupBy
							query={query}
							times={props.times}
							functions={props.functions}
							onChange={props.edit}
						/>
					)}
				</div>
			</Narrow>
			<OpenAround of={opening} />
			<FilesPanel queries={[query]} stored={known} edit={props.edit} />
			{labels !== null && (
				<LabelBrowser
					query={query}
					times={props.times}
					label={labels}
					onLabel={(label) => patch({ labels: label || ALL_LABELS })}
					onQuery={run}
					onClose={() => {
						patch({ labels: null });
						opener.current?.focus();
					}}
				/>
			)}
			<Progress loaded={[loaded, ...props.beside]} />
			{loaded.error && <QueryError error={loaded.error} sent={sent} />}
			{types.error && types.error.message !== loaded.error?.message && (
				<QueryError error={types.error} sent="" />
			)}
			{loaded.answer && <Notices {...loaded.answer} since={Number(props.times.start)} />}
			<DidYouMean
				query={query}
				messages={loaded.error ? [loaded.error.detail] : (loaded.answer?.infos ?? [])}
				run={run}
			/>
			{at !== null && (
				<Instant
					at={at}
					match={match}
					onRange={() => patch({ ...rangeToParams(range), at: null, match: null, since: null })}
				/>
			)}
		</section>
	);
}
