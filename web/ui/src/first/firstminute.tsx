// Shown until the first profile is stored: how far it is, and what is in the way.
import { useMemo, useRef } from "preact/hooks";
import type { ProfileType, Targets } from "../shared/api";
import { CopyButton } from "../shared/copybutton";
import { type Runtime, seconds } from "../shared/defaultrange";
import {
	cpuComes,
	dueText,
	type FirstError,
	firstSteps,
	type FirstSteps,
	keptDue,
} from "./firststeps";
import { type Loaded, useApi, useClock, useFlags, useInterval } from "../shared/hooks";
import { takesNothing } from "../shared/notices";
import { counted } from "../shared/units";
import "./firstminute.css";

const ASK_EVERY_S = 2;

const CONFIG = `scrape_configs:
  - job_name: my-service
    static_configs: [{ targets: ["localhost:6060"] }]
`;

export interface FirstMinute {
	/** There is no profile to show yet; null: not known. */
	waiting: boolean | null;
	/** Others are stored, and the first CPU profile is on its way. */
	cpuComes: boolean;
	targets: Targets | null;
	stored: number;
}

/**
 * Asks again every two seconds until there is a profile to show; with `wantsCpu`, until there is a
 * CPU profile, or none on its way.
 */
export function useFirstMinute(types: Loaded<ProfileType[]>, wantsCpu: boolean): FirstMinute {
	const known = types.answer?.data;
	const none = known?.length === 0;
	const noCpu = known !== undefined && !known.some((t) => t.name === "process_cpu");
	const asks = none || (wantsCpu && noCpu);
	const targets = useApi<Targets>(asks ? "first" : null, "targets", { state: "active" });
	const data = targets.answer?.data ?? null;
	const comes = asks && !none && !targets.error && cpuComes(known ?? [], data);
	useInterval(none || comes ? ASK_EVERY_S : 0, () => {
		if (!types.loading) types.again();
		if (!targets.loading) targets.again();
	});
	return { waiting: known ? none : null, cpuComes: comes, targets: data, stored: known?.length ?? 0 };
}

/** The server's clock, in seconds; null until it is known. */
function useServerClock(): number | null {
	const runtime = useApi<Runtime>("runtime", "status/runtimeinfo");
	const clock = useClock();
	const ahead = useMemo(
		() => runtime.answer && seconds(runtime.answer.data.serverTime) - Date.now() / 1000,
		[runtime.answer],
	);
	if (ahead === null) return runtime.error ? clock : null;
	return clock + ahead;
}

/** Seconds until `dueIn` of the steps, which never grow while this is shown. */
function useCountdown(steps: FirstSteps | null, now: number): number | null {
	const kept = useRef<number | null>(null);
	const { dueIn } = steps ?? { dueIn: null };
	kept.current = keptDue(kept.current, dueIn === null ? null : dueIn + now);
	return kept.current === null ? null : kept.current - now;
}

function HowToName() {
	const node = takesNothing(useFlags().answer?.data.mode);
	if (node)
		return (
			<>
				<h2>No profiles in the bucket yet</h2>
				<p>Shards scrape and take pushes; {node} does not. Start a shard with the same bucket.</p>
			</>
		);
	return (
		<>
			<h2>No profiles stored yet</h2>
			<p>
				No targets configured. Add one that serves <code>/debug/pprof/</code> to the
				configuration file, then reload (SIGHUP) or restart the server:
			</p>
			<div class="first-config">
				<pre tabIndex={0}>{CONFIG}</pre>
				<CopyButton text={CONFIG} />
			</div>
			<p>The first profile appears here without a reload of the page.</p>
		</>
	);
}

type State = "done" | "now" | "todo" | "failed";
const MARKS: Record<State, string> = { done: "✓", now: "", todo: "·", failed: "✗" };
const SPOKEN: Record<State, string> = {
	done: "Done",
	now: "In progress",
	todo: "To come",
	failed: "Failed",
};

function Step({ state, children }: { state: State; children: preact.ComponentChildren }) {
	return (
		<li class={`first-${state}`}>
			<span class="first-mark" aria-hidden="true">
				{state === "now" ? <span class="spinner" /> : MARKS[state]}
			</span>
			<span class="visually-hidden">{SPOKEN[state]}: </span>
			<span>{children}</span>
		</li>
	);
}

function Failure({ error, all }: { error: FirstError; all: boolean }) {
	return (
		<div class="notice error" role={all ? "alert" : undefined}>
			<div>
				<b>{error.url}</b> {error.error}
			</div>
			{error.cause && <div>{error.cause}</div>}
			<a href="targets?state=down">All failing targets</a>
		</div>
	);
}

interface StepsProps {
	steps: FirstSteps;
	stored: number;
	/** Seconds. */
	countdown: number | null;
}

function Steps({ steps, stored, countdown }: StepsProps) {
	const { kind, targets, profiles, up, down, dueIn } = steps;
	const what = steps.cpu ? "First CPU profile" : "First profile";
	const some = targets > 0;
	const idle = up > 0 && up + down === profiles;
	const first: State = kind === "failing" ? "failed" : idle || stored ? "done" : "now";
	return (
		<ul class="first-steps" role="status">
			<Step state="done">Configuration read: {counted(steps.jobs, "job")}</Step>
			<Step state={some ? "done" : "now"}>
				{some ? (
					<>
						<a href="targets">{counted(targets, "target")}</a> found, with{" "}
						{counted(profiles, "profile")} each interval
					</>
				) : (
					<>
						No targets found yet: see <a href="service-discovery">service discovery</a>
					</>
				)}
			</Step>
			<Step state={some ? first : "todo"}>
				{kind === "failing"
					? "First profile: every target has failed"
					: idle
						? `First profile stored without samples: the next is ${dueText(dueIn)}`
						: stored
							? "First profile stored"
							: `${what} ${some ? dueText(countdown) : "after that"}`}
			</Step>
			<Step state="todo">The first graph appears here, without a reload of the page.</Step>
		</ul>
	);
}

/** The checklist of `first`, which waits. */
export function FirstMinutePanel({ first }: { first: FirstMinute }) {
	const pools = useApi<{ scrapePools: string[] | null }>("pools", "scrape_pools");
	const now = useServerClock();
	const steps =
		first.targets && pools.answer && now !== null
			? firstSteps(first.targets, pools.answer.data.scrapePools ?? [], now)
			: null;
	const countdown = useCountdown(steps, now ?? 0);
	// Jobs may come with a reload.
	useInterval(ASK_EVERY_S, () => pools.loading || pools.again());
	if (!steps) return null;
	if (steps.kind === "unconfigured")
		return (
			<section class="panel first-minute">
				<HowToName />
			</section>
		);
	const failing = steps.kind === "failing";
	return (
		<section class="panel first-minute">
			<h2>{failing ? "All targets fail" : "Waiting for the first profile"}</h2>
			<Steps steps={steps} stored={first.stored} countdown={countdown} />
			{steps.error && <Failure error={steps.error} all={failing} />}
		</section>
	);
}

/** Above what is there already: when the first CPU profile is. */
export function FirstCpuNote({ first }: { first: FirstMinute }) {
	const now = useServerClock();
	const steps = first.targets && now !== null ? firstSteps(first.targets, [], now) : null;
	const countdown = useCountdown(steps?.cpu ? steps : null, now ?? 0);
	if (!steps?.cpu) return null;
	return (
		<p class="first-cpu faint" role="status">
			<span class="spinner" aria-hidden="true" /> First CPU profile {dueText(countdown)}
		</p>
	);
}
