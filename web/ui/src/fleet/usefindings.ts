// The findings of Services: a round of questions screens the fleet, the next two test what was found.
import { useMemo } from "preact/hooks";
import type { Alert } from "../rules/rules";
import type { Targets, VectorElement } from "../shared/api";
import { type Runtime, seconds } from "../shared/defaultrange";
import { useApi } from "../shared/hooks";
import { rangeToParams, type TimeRange } from "../shared/timerange";
import { alertFindings, type Finding, ranked, senderFindings } from "./findings";
import { downFindings, targetCounts } from "./findingsdown";
import { growthCandidates, growthFindings, growthLevels, growthQuestions } from "./findingsgrowth";
import {
	changedQuestions,
	comparisons,
	shareQuestions,
	slowerFindings,
	slowerQuestions,
	twoWindows,
	versionLabel,
} from "./findingsslower";
import type { Ask, FleetAnswers, FleetTimes, FleetTypes, ServiceRow } from "./fleet";
import { roundEnded, useMany } from "./parallel";
import type { Senders } from "./senders";

export interface FindingsOf {
	by: string;
	range: TimeRange;
	tick: number;
	labels: string[];
	known: FleetTypes;
	times: FleetTimes;
	rows: ServiceRow[];
	/** Of the questions of the rows. */
	answers: FleetAnswers;
	/** Those of this tick are answered. */
	ready: boolean;
}

const ALWAYS: Ask[] = [
	{ key: "down", title: "targets that are down", name: "targets", args: { state: "active", health: "down" } },
	{ key: "senders", title: "senders", name: "senders", args: {} },
];

/** A round of questions, asked once `on`; null if there are none. Older answers stay meanwhile. */
function useRound(on: boolean, about: string, tick: number, asks: Ask[]) {
	const key = JSON.stringify([about, tick, asks]);
	const many = useMany(on && asks.length > 0 ? key : null, about, asks);
	const data: FleetAnswers = many.about === about ? many.data : {};
	return { data, ended: on && (asks.length === 0 || roundEnded(many, key)) };
}

/** Ranked. What is not answered yet is left out; a refresh keeps what was found until it is answered. */
export function useFindings(of: FindingsOf): Finding[] {
	const { by, range, tick, labels, known, times, rows, answers, ready } = of;
	const about = JSON.stringify([by, range]);
	const runtime = useApi<Runtime>(`runtime ${tick}`, "status/runtimeinfo");
	const oldest = seconds(runtime.answer?.data.oldestProfile ?? "");
	const now = seconds(runtime.answer?.data.serverTime ?? "");
	const cpu = known.cpu !== null;

	const screen = useMemo(
		() => ({
			by,
			version: versionLabel(by, labels),
			times,
			before: Number.isFinite(oldest) ? twoWindows(times.window, oldest) : null,
		}),
		[by, labels, times, oldest],
	);
	const first = useMemo(() => [...ALWAYS, ...(cpu ? slowerQuestions(screen) : [])], [screen, cpu]);
	const on = ready && runtime.key === `runtime ${tick}` && !runtime.loading;
	const screened = useRound(on, about, tick, first);

	const levels = useMemo(() => growthLevels(known.memory, known.tasks), [known.memory, known.tasks]);
	const candidates = useMemo(() => growthCandidates(by, levels, answers), [by, levels, answers]);
	const compared = useMemo(() => {
		const cores = new Map(rows.map((r) => [r.service, r.cores ?? 0]));
		return comparisons(screen, screened.data, cores);
	}, [screen, screened.data, rows]);
	const tests = useMemo(
		() => [...growthQuestions(by, candidates, times, oldest), ...changedQuestions(compared)],
		[by, candidates, times, oldest, compared],
	);
	const tested = useRound(screened.ended, about, tick, tests);
	const shares = useRound(tested.ended, about, tick, shareQuestions(compared, tested.data));

	return useMemo(() => {
		const { alerts } = (answers.alerts ?? {}) as { alerts?: Alert[] | null };
		const down = screened.data.down as Targets | undefined;
		const senders = screened.data.senders as Senders | undefined;
		const all = (answers.targets as { result?: VectorElement[] } | undefined)?.result ?? [];
		return ranked([
			...(down ? downFindings(by, down, targetCounts(by, all)) : []),
			...alertFindings(by, alerts ?? []),
			...(senders ? senderFindings(senders, now) : []),
			...growthFindings(by, candidates, tested.data, timesOf(range)),
			...slowerFindings(compared, { ...tested.data, ...shares.data }),
		]);
	}, [screened.data, range, answers, by, now, candidates, tested.data, compared, shares.data]);
}

const timesOf = (range: TimeRange): Record<string, string> =>
	Object.fromEntries(
		Object.entries(rangeToParams(range)).filter((e): e is [string, string] => e[1] !== null),
	);
