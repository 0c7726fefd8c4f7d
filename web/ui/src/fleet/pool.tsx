// A page of pools: a bar with a filter, and a panel per pool that opens and closes. What such pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Answer, ApiError } from "../shared/api";
import { Segmented, TextFilter } from "../shared/fields";
import { useApi, useInterval, useUrl } from "../shared/hooks";
import { IconDown } from "../shared/icons";
import { Scroll } from "../shared/layout";
import { Notices, QueryError } from "../shared/notices";
import { Paged } from "../shared/paged";
import { formatTime } from "../shared/timerange";
import { listParam, openAtFirst, type Pool } from "./targets";
import "./targets.css";
import "./pool.css";

const REFRESH_S = 5;

/** The last answers and when they came, in seconds since 1970: a page that is opened in an outage shows them. */
const lastAnswers = new Map<string, { answer: Answer<unknown>; at: number }>();

export interface Refreshed<T> {
	answer: Answer<T> | null;
	error: ApiError | null;
	/** When `answer` came, if newer questions have failed since, in seconds since 1970; else null. */
	asOf: number | null;
}

/** An answer that is asked for again every few seconds; a large one less often. */
export function useRefreshed<T>(name: string): Refreshed<T> {
	const [tick, setTick] = useState(0);
	const { answer, error } = useApi<T>(String(tick), name);
	const pace = Math.ceil((answer?.tookMs ?? 0) / 50);
	useInterval(Math.max(REFRESH_S, pace), () => setTick((t) => t + 1));
	useEffect(() => {
		if (answer && !error) lastAnswers.set(name, { answer, at: Date.now() / 1000 });
	}, [name, answer, error]);
	const last = error ? lastAnswers.get(name) : undefined;
	return {
		answer: answer ?? (last ? (last.answer as Answer<T>) : null),
		error,
		asOf: last ? last.at : null,
	};
}

/** Beside rows that are old because the server cannot be asked. */
export function AsOf({ at }: { at: number | null }) {
	if (at === null) return null;
	return <b class="as-of">as of {formatTime(at)}</b>;
}

/**
 * Which pools are open. The address has the pools that the user opened and closed; a filter may
 * change the defaults, but not these.
 */
function usePools<T>(pools: Pool<T>[]) {
	const { store, location } = useUrl();
	const opened = location.params.get("opened");
	const closed = location.params.get("closed");
	const first = openAtFirst(pools);
	const isOpen = (name: string) =>
		first ? !listParam.read(closed).includes(name) : listParam.read(opened).includes(name);
	const toggle = (name: string) => {
		const key = first ? "closed" : "opened";
		store.patch({ [key]: listParam.toggle(first ? closed : opened, name) }, true);
	};
	const setAll = (open: boolean) => {
		const names = listParam.write(pools.map((p) => p.name));
		if (first) store.patch({ closed: open ? null : names }, true);
		else store.patch({ opened: open ? names : null }, true);
	};
	const allOpen = pools.every((p) => isOpen(p.name));
	return { isOpen, toggle, setAll, allOpen };
}

type Pools = ReturnType<typeof usePools>;

function OpenAll({ pools, count }: { pools: Pools; count: number }) {
	if (count < 2) return null;
	return (
		<button type="button" onClick={() => pools.setAll(!pools.allOpen)}>
			{pools.allOpen ? "Collapse all" : "Expand all"}
		</button>
	);
}

interface PoolPanelProps {
	pool: { name: string; error: string };
	pools: Pools;
	/** Shown beside the name. */
	counts: ComponentChildren;
	children(): ComponentChildren;
}

function PoolPanel({ pool, pools, counts, children }: PoolPanelProps) {
	const open = pools.isOpen(pool.name);
	return (
		<section class="panel pool" aria-label={pool.name}>
			<button
				type="button"
				class="panel-head"
				aria-expanded={open}
				onClick={() => pools.toggle(pool.name)}
			>
				<h2 class="ellipsis">{pool.name}</h2>
				{counts}
				<span class="spacer" />
				<IconDown />
			</button>
			{pool.error && <div class="notice error">{pool.error}</div>}
			{open && children()}
		</section>
	);
}

/** How many of a pool's targets are up, or active. */
export function Count(props: { some: number; all: number; word: string; mark: string }) {
	return (
		<span class={`count ${props.mark}`}>
			{props.some.toLocaleString("en")} / {props.all.toLocaleString("en")} {props.word}
		</span>
	);
}

interface PoolColumn {
	title: string;
	/** Class of the `<col>`, and of the `<th>`. */
	col?: string;
	head?: string;
}

/** A table shown a page at a time; `children` makes one item's rows. */
export function PagedTable<T>(props: {
	kind: string;
	columns: PoolColumn[];
	items: T[];
	what: string;
	children(item: T, index: number): ComponentChildren;
}) {
	return (
		<Paged items={props.items} what={props.what}>
			{(items) => (
				<Scroll label={props.what}>
					<table class={`plain ${props.kind}`}>
						<colgroup>
							{props.columns.map((c) => (
								<col key={c.title} class={c.col} />
							))}
						</colgroup>
						<thead>
							<tr>
								{props.columns.map((c) => (
									<th key={c.title} class={c.head}>
										{c.title}
									</th>
								))}
							</tr>
						</thead>
						<tbody>{items.map(props.children)}</tbody>
					</table>
				</Scroll>
			)}
		</Paged>
	);
}

export interface PoolsPageProps<S extends string, P extends Pool<unknown>> {
	/** The class of `<main>`. */
	kind: string;
	title: string;
	/** The choice that the address has as `state`; "all" is left out there. */
	choice: { label: string; value: S; options: [S, string, string?][] };
	filter: { label: string; hint: string };
	/** At the right end of the bar. */
	aside: ComponentChildren;
	error: ApiError | null;
	/** Of the answer. */
	warnings: string[];
	infos: string[];
	pools: P[];
	counts(pool: P): ComponentChildren;
	table(pool: P): ComponentChildren;
	/** Shown if there are no pools; null for nothing. */
	empty: string | null;
	/** Shown below the pools. */
	children?: ComponentChildren;
}

export function PoolsPage<S extends string, P extends Pool<unknown>>(props: PoolsPageProps<S, P>) {
	const { store } = useUrl();
	const { choice, filter, error } = props;
	const pools = usePools(props.pools);
	return (
		<main id="main" class={props.kind}>
			<div class="toolbar page-bar">
				<h1>{props.title}</h1>
				<Segmented
					label={choice.label}
					value={choice.value}
					options={choice.options}
					onChange={(v) => store.patch({ state: v === "all" ? null : v })}
				/>
				<TextFilter label={filter.label} hint={filter.hint} />
				<OpenAll pools={pools} count={props.pools.length} />
				<span class="spacer" />
				{props.aside}
			</div>
			{error && <QueryError error={error} sent="" />}
			<Notices warnings={props.warnings} infos={props.infos} />
			{props.pools.map((p) => (
				<PoolPanel key={p.name} pool={p} pools={pools} counts={props.counts(p)}>
					{() => props.table(p)}
				</PoolPanel>
			))}
			{props.pools.length === 0 && props.empty !== null && (
				<section class="panel">
					<div class="empty">{props.empty}</div>
				</section>
			)}
			{props.children}
		</main>
	);
}
