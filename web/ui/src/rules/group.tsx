// Parts that the pages Alerts and Rules share.
import { useState } from "preact/hooks";
import { expressionParams } from "../query/measured";
import { Chips } from "../shared/chips";
import { useApi, useClock, useInterval, useUrl } from "../shared/hooks";
import { formatDuration } from "../shared/timerange";
import { formatAgo, formatNanoseconds } from "../shared/units";
import { type Rule, type RuleGroup, type RuleGroups, timeOf } from "./rules";
import "./rules.css";

const REFRESH_S = 5;

const EXAMPLE_CONFIG = `rule_files:
  - "rules/*.yml"`;
const EXAMPLE_RULES = `groups:
  - name: costs
    rules:
      - alert: FunctionTooExpensive
        expr: cum_share(merge by (job) (cpu[5m]), {function="encoding/json.Marshal"}) > 0.10
        for: 10m
        labels: {severity: page}
        annotations:
          summary: "{{ $labels.job }}: {{ $value | humanizePercentage }} of its CPU is JSON"
      - record: job:cpu_cores:5m
        expr: sum by (job) (total(merge by (job) (cpu[5m]))) / 300e9`;

/** The groups, reloaded every few seconds; `now` is updated every second. */
export function useRules(args: Record<string, string>) {
	const [tick, setTick] = useState(0);
	const now = useClock();
	useInterval(REFRESH_S, () => setTick((t) => t + 1));
	const loaded = useApi<RuleGroups>(`${JSON.stringify(args)} ${tick}`, "rules", args);
	return { ...loaded, groups: loaded.answer?.data.groups ?? [], now, tick, refresh: () => setTick((t) => t + 1) };
}

/** When a rule was evaluated, and how long it took. */
export function Evaluated({ at, took, now }: { at: string; took: number; now: number }) {
	const t = timeOf(at);
	if (t === null) return <>not evaluated yet</>;
	return (
		<span title={at}>
			{formatAgo(now - t)} · {formatNanoseconds(took * 1e9)}
		</span>
	);
}

/** On a query node that does not evaluate the rules: which host does, and how old its answer is. */
export function EvaluatedBy({ data, now }: { data: RuleGroups | undefined; now: number }) {
	const at = timeOf(data?.evaluatedAt);
	if (!data?.evaluatedBy || at === null) return null;
	return (
		<div class="notice info">
			Evaluated by {data.evaluatedBy}, as of <span title={data.evaluatedAt}>{formatAgo(now - at)}</span>
		</div>
	);
}

function ExprLink({ expr, at = null }: { expr: string; at?: number | null }) {
	const { store } = useUrl();
	return (
		<a class="expr" href={store.href("explore", expressionParams("query", expr, { at }))}>
			<code>{expr}</code>
		</a>
	);
}

export function GroupHead({ group: g, now }: { group: RuleGroup; now: number }) {
	return (
		<div class="panel-head">
			<h2>{g.name}</h2>
			<span class="faint ellipsis" title={g.file}>
				{g.file}
			</span>
			<span class="spacer" />
			<span class="faint">
				every {formatDuration(g.interval)} ·{" "}
				<Evaluated at={g.lastEvaluation} took={g.evaluationTime} now={now} />
			</span>
		</div>
	);
}

/** The rule itself: expression, times, labels, annotations. */
export function RuleDetails({ rule: r }: { rule: Rule }) {
	const labels = r.labels ?? {};
	return (
		<dl class="rule-details">
			<dt>Expression</dt>
			<dd>
				<ExprLink expr={r.query} />
			</dd>
			{!!r.duration && <dt>For</dt>}
			{!!r.duration && <dd>{formatDuration(r.duration)}</dd>}
			{!!r.keepFiringFor && <dt>Keep firing for</dt>}
			{!!r.keepFiringFor && <dd>{formatDuration(r.keepFiringFor)}</dd>}
			{Object.keys(labels).length > 0 && <dt>Labels</dt>}
			{Object.keys(labels).length > 0 && (
				<dd>
					<Chips labels={labels} />
				</dd>
			)}
			{Object.entries(r.annotations ?? {}).map(([k, v]) => [
				<dt key={`${k} name`}>{k}</dt>,
				<dd key={k}>{v}</dd>,
			])}
		</dl>
	);
}

export function NoRules({ kind }: { kind: string }) {
	return (
		<section class="panel no-rules">
			<div class="empty">
				No {kind} configured. Add rule files to the configuration, then reload:
			</div>
			<pre class="yaml">{EXAMPLE_CONFIG}</pre>
			<div class="empty">Rule files have Prometheus's format, with queries over profiles:</div>
			<pre class="yaml" tabIndex={0}>
				{EXAMPLE_RULES}
			</pre>
		</section>
	);
}
