// Why a target is scraped as it is, or dropped: its discovered labels, the changes of each rule, and
// the result for each profile.
import type { Labels } from "../shared/api";
import { Chips, shortened } from "../shared/chips";
import { useApi } from "../shared/hooks";
import { IconDown } from "../shared/icons";
import { QueryError } from "../shared/notices";
import {
	type LabelChange,
	labelChanges,
	type RelabelProfile,
	type RelabelStep,
	type RelabelSteps,
	relabelText,
} from "./relabel";

/** A button that opens and closes the relabelling of a target. */
export function WhyButton(props: { hint: string; open: boolean; onOpen(open: boolean): void }) {
	return (
		<button
			type="button"
			class="quiet small"
			title={props.hint}
			aria-expanded={props.open}
			onClick={() => props.onOpen(!props.open)}
		>
			why
			<IconDown />
		</button>
	);
}

function ChangedLabel({ change: c }: { change: LabelChange }) {
	const what = c.before === undefined ? "added" : c.after === undefined ? "removed" : "changed";
	return (
		<span class={`chip ${what}`} title={what}>
			<b>{c.name}</b>
			{c.before !== undefined && <del>{shortened(c.before)}</del>}
			{c.before !== undefined && c.after !== undefined && " → "}
			{shortened(c.after ?? "")}
		</span>
	);
}

function Step({ step, before }: { step: RelabelStep; before: Labels }) {
	const changes = step.keep ? labelChanges(before, step.output) : [];
	return (
		<li>
			<code>{relabelText(step.rule)}</code>
			{!step.keep && <span class="badge down">dropped here</span>}
			{step.keep && changes.length === 0 && <span class="faint">no change</span>}
			{changes.length > 0 && (
				<span class="chips">
					{changes.map((c) => (
						<ChangedLabel key={c.name} change={c} />
					))}
				</span>
			)}
		</li>
	);
}

function Profile({ profile: p }: { profile: RelabelProfile }) {
	return (
		<tr>
			<td>{p.profile}</td>
			<td class="url">
				{p.scrapeUrl}
				{p.scrapeUnixSocket && ` (socket ${p.scrapeUnixSocket})`}
				{p.error && <span class="err">{p.error}</span>}
				{!p.keep && (
					<span class="badge down">
						{p.reason === undefined
							? `dropped by rule ${(p.droppedBy ?? 0) + 1}`
							: p.reason}
					</span>
				)}
			</td>
			<td>{p.labels && <Chips labels={p.labels} />}</td>
		</tr>
	);
}

export function Relabelling({
	pool,
	labels,
	discovered = true,
}: {
	pool: string;
	labels: Labels;
	/** Show the labels too. */
	discovered?: boolean;
}) {
	const text = JSON.stringify(labels);
	const { answer, error } = useApi<RelabelSteps>(`${pool} ${text}`, "targets/relabel_steps", {
		scrapePool: pool,
		labels: text,
	});
	const steps = answer?.data.steps ?? [];
	const end = steps.findIndex((s) => !s.keep);
	const run = end < 0 ? steps : steps.slice(0, end + 1);
	return (
		<div class="relabel">
			{discovered && <h3>Discovered</h3>}
			{discovered && <Chips labels={labels} />}
			{error && <QueryError error={error} sent="" />}
			{answer && (
				<>
					<h3>Rules</h3>
					{steps.length === 0 && (
						<p class="faint">No relabelling rules.</p>
					)}
					<ol>
						{run.map((s, i) => (
							<Step key={i} step={s} before={i ? run[i - 1].output : labels} />
						))}
					</ol>
					{run.length < steps.length && (
						<p class="faint">{`${steps.length - run.length} more, not run.`}</p>
					)}
					<h3>Result</h3>
					<table class="plain">
						<tbody>
							{answer.data.profiles.map((p) => (
								<Profile key={p.profile} profile={p} />
							))}
						</tbody>
					</table>
				</>
			)}
		</div>
	);
}
