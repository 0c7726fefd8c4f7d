// The page Alerts: the alerts of each rule, and the flame graph behind an alert.
import { useState } from "preact/hooks";
import { expressionParams } from "../query/measured";
import { MeasuredDiff } from "../result/measured";
import { Chips } from "../shared/chips";
import { Segmented, TextFilter } from "../shared/fields";
import { useUrl } from "../shared/hooks";
import { IconDown } from "../shared/icons";
import { Scroll } from "../shared/layout";
import { Notices, QueryError } from "../shared/notices";
import { PAGE_ITEMS, Paged } from "../shared/paged";
import { digits, formatAgo } from "../shared/units";
import { Evaluated, EvaluatedBy, GroupHead, NoRules, RuleDetails, useRules } from "./group";
import {
	type Alert,
	alertKey,
	type AlertState,
	countStates,
	elementLabels,
	filterGroups,
	type Rule,
	type RuleGroup,
	stateOf,
	timeOf,
} from "./rules";

const COLUMNS = 5;
const BADGE: Record<AlertState, string> = { firing: "down", pending: "wait", inactive: "up" };

function State({ state }: { state: AlertState }) {
	return <span class={`badge ${BADGE[state] ?? ""}`}>{state}</span>;
}

/** The value of an alert. Its unit is unknown. */
function number(text: string): string {
	const v = Number(text);
	if (!Number.isFinite(v)) return text;
	return Math.abs(v) < 1000 ? digits(v) : Math.round(v).toLocaleString("en");
}

interface RowProps {
	group: RuleGroup;
	rule: Rule;
	alert: Alert;
	now: number;
}

function AlertRow({ group, rule, alert: a, now }: RowProps) {
	const { store, location } = useUrl();
	const key = alertKey(group, a);
	const open = location.params.get("open") === key;
	const since = timeOf(a.activeAt);
	const at = timeOf(rule.lastEvaluation);
	const labels = elementLabels(rule, a);
	const toggle = () =>
		store.patch({ open: open ? null : key, zoom: null, pick: null, search: null, el: null });
	// The graph stays as it was opened, also after later evaluations.
	const [opened, setOpened] = useState<number | null>(null);
	if (open && opened === null && at !== null) setOpened(at);
	if (!open && opened !== null) setOpened(null);
	return (
		<>
			<tr>
				<td>
					<State state={a.state} />
				</td>
				<td>
					<Chips labels={a.labels} />
					{Object.entries(a.annotations ?? {}).map(([k, v]) => (
						<div key={k} class="annotation">
							<span class="faint">{k}</span> {v}
						</div>
					))}
				</td>
				<td class="num" title={a.activeAt}>
					{since === null ? "–" : formatAgo(now - since)}
				</td>
				<td class="num" title={a.value}>
					{number(a.value)}
				</td>
				<td class="num">
					{at !== null && (
						<>
							<button
								type="button"
								class="small"
								aria-expanded={open}
								onClick={toggle}
							>
								Flame graph
								<IconDown />
							</button>{" "}
							<a
								href={store.href(
									"explore",
									expressionParams("query", rule.query, { at, labels, since }),
								)}
							>
								Explore
							</a>
						</>
					)}
				</td>
			</tr>
			{open && opened !== null && (
				<tr class="discovered">
					<td colSpan={COLUMNS}>
						<MeasuredDiff expr={rule.query} at={opened} labels={labels} since={since} />
					</td>
				</tr>
			)}
		</>
	);
}

function RuleRow({ group, rule, now }: { group: RuleGroup; rule: Rule; now: number }) {
	const alerts = rule.alerts ?? [];
	const state = stateOf(rule);
	const [chosen, setChosen] = useState<boolean | null>(null);
	const open = chosen ?? state !== "inactive"; // pending and firing rules are open at first
	const count = (s: AlertState) => alerts.filter((a) => a.state === s).length;
	return (
		<div class="rule">
			<button
				type="button"
				class="rule-head"
				aria-expanded={open}
				onClick={() => setChosen(!open)}
			>
				<IconDown />
				<State state={state} />
				<span class="rule-name">{rule.name}</span>
				{count("firing") > 0 && <span class="count down">{count("firing")} firing</span>}
				{count("pending") > 0 && <span class="count wait">{count("pending")} pending</span>}
				<span class="spacer" />
				<span class="faint">
					<Evaluated at={rule.lastEvaluation} took={rule.evaluationTime} now={now} />
				</span>
			</button>
			{rule.lastError && <div class="rule-error">{rule.lastError}</div>}
			{open && <RuleDetails rule={rule} />}
			{open && alerts.length > 0 && <AlertTable group={group} rule={rule} now={now} />}
		</div>
	);
}

/** The alert that the address opens is moved to the first page. */
function AlertTable({ group, rule, now }: { group: RuleGroup; rule: Rule; now: number }) {
	const opened = useUrl().location.params.get("open");
	const isOpened = (a: Alert) => opened !== null && alertKey(group, a) === opened;
	const all = rule.alerts ?? [];
	const far = all.findIndex(isOpened) >= PAGE_ITEMS;
	const alerts = far ? [...all.filter(isOpened), ...all.filter((a) => !isOpened(a))] : all;
	return (
		<Paged items={alerts} what="alerts">
			{(items) => (
				<Scroll label={`Alerts of ${rule.name}`}>
					<table class="plain alerts">
						<thead>
							<tr>
								<th class="c-state">State</th>
								<th>Labels</th>
								<th class="num c-num">Active since</th>
								<th class="num c-num">Value</th>
								<th class="c-links">
									<span class="visually-hidden">Open</span>
								</th>
							</tr>
						</thead>
						<tbody>
							{items.map((a) => (
								<AlertRow
									key={alertKey(group, a)}
									group={group}
									rule={rule}
									alert={a}
									now={now}
								/>
							))}
						</tbody>
					</table>
				</Scroll>
			)}
		</Paged>
	);
}

export function AlertsPage() {
	const { store, location } = useUrl();
	const { groups, answer, error, now } = useRules({ type: "alert" });
	const state = (location.params.get("state") ?? "all") as AlertState | "all";
	const counts = countStates(groups);
	const shown = filterGroups(
		groups,
		location.params.get("filter") ?? "",
		(r) => r.type === "alerting" && (state === "all" || stateOf(r) === state),
	);
	return (
		<main id="main" class="alerts-page">
			<div class="toolbar page-bar">
				<h1>Alerts</h1>
				<Segmented
					label="State"
					value={state}
					options={[
						["all", "All"],
						["firing", `Firing ${counts.firing}`],
						["pending", `Pending ${counts.pending}`],
						["inactive", `Inactive ${counts.inactive}`],
					]}
					onChange={(v) => store.patch({ state: v === "all" ? null : v })}
				/>
				<TextFilter label="Filter by name, label or expression" />
			</div>
			{error && <QueryError error={error} sent="" />}
			<Notices warnings={answer?.warnings ?? []} infos={[]} />
			<EvaluatedBy data={answer?.data} now={now} />
			{shown.map((g) => (
				<section key={`${g.file} ${g.name}`} class="panel group-panel">
					<GroupHead group={g} now={now} />
					{g.rules.map((r, i) => (
						<RuleRow key={`${r.name} ${i}`} group={g} rule={r} now={now} />
					))}
				</section>
			))}
			{answer && groups.length === 0 && !answer.warnings.length && <NoRules kind="alerting rules" />}
			{groups.length > 0 && shown.length === 0 && (
				<section class="panel">
					<div class="empty">No matching alert. Clear the filter, or show all.</div>
				</section>
			)}
		</main>
	);
}
