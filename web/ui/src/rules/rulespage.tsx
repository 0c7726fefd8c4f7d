// The page Rules: all groups with their rules, health and evaluation times.
import { Segmented, TextFilter } from "../shared/fields";
import { useUrl } from "../shared/hooks";
import { Scroll } from "../shared/layout";
import { Notices, QueryError } from "../shared/notices";
import { Evaluated, EvaluatedBy, GroupHead, NoRules, RuleDetails, useRules } from "./group";
import { filterGroups, type Rule } from "./rules";
import { counted } from "../shared/units";
import { LastChange, SavedActions, useSaving } from "./saved";

type Kind = "all" | "alerting" | "recording" | "failing";

const KEEP: Record<Kind, (r: Rule) => boolean> = {
	all: () => true,
	alerting: (r) => r.type === "alerting",
	recording: (r) => r.type === "recording",
	failing: (r) => r.health === "err",
};

function RuleRow({ rule: r, now }: { rule: Rule; now: number }) {
	const badge = r.health === "ok" ? "up" : r.health === "err" ? "down" : "";
	return (
		<tr>
			<td>
				<span class="faint">{r.type === "alerting" ? "alert" : "record"}</span>{" "}
				<span class="rule-name">{r.name}</span>
				<RuleDetails rule={r} />
				{r.lastError && <div class="rule-error">{r.lastError}</div>}
			</td>
			<td>
				<span class={`badge ${badge}`}>{r.health === "err" ? "error" : r.health}</span>
			</td>
			<td class="num">
				<Evaluated at={r.lastEvaluation} took={r.evaluationTime} now={now} />
			</td>
		</tr>
	);
}

export function RulesPage() {
	const { store, location } = useUrl();
	const { groups, answer, error, now, tick, refresh } = useRules({});
	const saving = useSaving(tick, refresh);
	const kind = (location.params.get("type") ?? "all") as Kind;
	const shown = filterGroups(groups, location.params.get("filter") ?? "", KEEP[kind] ?? KEEP.all);
	const rules = groups.flatMap((g) => g.rules);
	const failing = rules.filter(KEEP.failing).length;
	return (
		<main id="main" class="rules-page">
			<div class="toolbar page-bar">
				<h1>Rules</h1>
				<Segmented<Kind>
					label="Type"
					value={kind}
					options={[
						["all", "All"],
						["alerting", "Alerting"],
						["recording", "Recording"],
						["failing", `Failing ${failing}`],
					]}
					onChange={(v) => store.patch({ type: v === "all" ? null : v })}
				/>
				<TextFilter label="Filter by name, label or expression" />
				<span class="spacer" />
				<span class="faint">
					{counted(rules.length, "rule")} in {counted(groups.length, "group")}
				</span>
			</div>
			{error && <QueryError error={error} sent="" />}
			<Notices warnings={answer?.warnings ?? []} infos={[]} />
			<EvaluatedBy data={answer?.data} now={now} />
			<LastChange of={saving} now={now} />
			{shown.map((g) => (
				<section key={`${g.file} ${g.name}`} class="panel group-panel">
					<GroupHead group={g} now={now} />
					<SavedActions group={g} of={saving} now={now} />
					<Scroll label={`Rules of ${g.name}`}>
						<table class="plain rules">
							<thead>
								<tr>
									<th>Rule</th>
									<th class="c-state">Health</th>
									<th class="num c-time">Evaluated</th>
								</tr>
							</thead>
							<tbody>
								{g.rules.map((r, i) => (
									<RuleRow key={`${r.name} ${i}`} rule={r} now={now} />
								))}
							</tbody>
						</table>
					</Scroll>
				</section>
			))}
			{answer && groups.length === 0 && !answer.warnings.length && <NoRules kind="rules" />}
			{groups.length > 0 && shown.length === 0 && (
				<section class="panel">
					<div class="empty">No matching rule. Clear the filter, or show all.</div>
				</section>
			)}
		</main>
	);
}
