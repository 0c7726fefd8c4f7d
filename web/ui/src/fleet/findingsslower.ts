// Findings: functions whose share of the CPU time rose, between two versions that run now or against
// the time before. First all services are screened by a few questions, then the likeliest are tested.
import { formatSelector, type Matcher, quote } from "../query/text";
import type { MatrixElement, VectorElement } from "../shared/api";
import { formatDuration, trimMs, type Window } from "../shared/timerange";
import { type Finding, linkTo } from "./findings";
import type { Ask, FleetAnswers, FleetTimes } from "./fleet";

const HOUR = 3600;
const DAY = 86400;
const VERSIONS_MAX_S = HOUR; // two versions are compared over so much at most
const TOP = 5; // functions of each version that are screened
const GAINED_MAX = 10;
const COMPARED_MAX = 4; // comparisons that are tested at each refresh
const SHARE_MIN = 0.02;
const FACTOR_MIN = 1.5;
const CORES_MIN = 0.001;

/** Labels that name a version, the usual one first. */
const VERSION_LABELS = ["version", "service_version", "app_version"];

/** The label that tells versions of a service apart; "" if there is none. */
export const versionLabel = (by: string, labels: string[]): string =>
	VERSION_LABELS.find((l) => labels.includes(l) && l !== by) ?? "";

/** A window and the one before it, `back` seconds earlier. */
export interface TwoWindows {
	end: number;
	seconds: number;
}

const SHORTEST_S = 120;
const GRID_S = 10;

/**
 * The shown range against the one before, at most a day; while less is stored, the newer half of it
 * against the older one. From six hours on these are whole hours, which the server has summed up.
 * null: too little is stored.
 */
export function twoWindows({ start, end }: Window, oldest: number): TwoWindows | null {
	const seconds = Math.min(end - start, DAY, (end - oldest) / 2);
	if (seconds < SHORTEST_S) return null;
	const grid = seconds >= 6 * HOUR ? HOUR : GRID_S;
	const floor = (t: number) => Math.floor(t / grid) * grid;
	const whole = grid === HOUR ? floor(end) : end;
	return { end: whole, seconds: floor(Math.min(seconds, (whole - oldest) / 2)) };
}

/* ---- the screening ---- */

export interface SlowerScreen {
	by: string;
	/** The label of versions; "" if there is none. */
	version: string;
	times: FleetTimes;
	before: TwoWindows | null;
}

const STEPS = 8;

export function slowerQuestions({ by, version, times, before }: SlowerScreen): Ask[] {
	const out: Ask[] = [];
	const ask = (key: string, title: string, name: string, args: Ask["args"]) =>
		out.push({ key, title, name, args });
	if (version) {
		const { start, end } = versionsWindow(times.window);
		const step = Math.max(GRID_S, Math.round((end - start) / STEPS));
		const span = { start: trimMs(start), end: trimMs(end) };
		ask("versions over time", "versions", "query_range", {
			query: `total(merge by (${by}, ${version}) (cpu[${formatDuration(step)}]))`,
			start: trimMs(start + step),
			end: span.end,
			step: String(step),
		});
		ask("functions by version", "functions by version", "query", {
			query: `topk by (${by}, ${version}) (${TOP}, flat_share(merge by (${by}, ${version}) (cpu)))`,
			...span,
		});
	}
	if (before) {
		const length = formatDuration(before.seconds);
		const cores = (offset: string) => `merge by (${by}) (rate(cpu[${length}]${offset}))`;
		ask("gained", "functions that gained", "query", {
			query: `topk(${GAINED_MAX}, flat by (${by}, function) (diff(${cores("")}, ${cores(` offset ${length}`)})))`,
			time: trimMs(before.end),
		});
	}
	return out;
}

const versionsWindow = ({ start, end }: Window): Window => ({
	start: Math.max(start, end - VERSIONS_MAX_S),
	end,
});

/** What is tested: a service's CPU in one window against another's. */
export interface Comparison {
	key: string;
	service: string;
	/** Names the new side: the service, with its version. */
	who: string;
	/** Names the base: `v1`, `the 30m before`. */
	than: string;
	next: string;
	base: string;
	end: number;
	seconds: number;
	/** The base is so many seconds earlier. */
	back: number;
	/** What the new side costs. */
	cores: number;
	/** Estimated, for the order. */
	gain: number;
}

interface Version {
	name: string;
	first: number;
	last: number;
	cost: number;
	tops: Map<string, number>;
}

const collator = new Intl.Collator("en", { numeric: true }); // v10 after v9

function versionsOf(s: SlowerScreen, answers: FleetAnswers): Map<string, Map<string, Version>> {
	const services = new Map<string, Map<string, Version>>();
	const matrix = (answers["versions over time"] as { result?: MatrixElement[] } | undefined)?.result;
	for (const m of matrix ?? []) {
		const [service, name] = [m.metric[s.by] ?? "", m.metric[s.version] ?? ""];
		const with_ = m.values.filter((p) => Number(p[1]) > 0);
		if (!name || with_.length === 0) continue;
		const of = services.get(service) ?? new Map<string, Version>();
		services.set(service, of);
		const cost = with_.reduce((sum, p) => sum + Number(p[1]), 0);
		const [first, last] = [with_[0][0], with_[with_.length - 1][0]];
		of.set(name, { name, first, last, cost, tops: new Map() });
	}
	const tops = (answers["functions by version"] as { result?: VectorElement[] } | undefined)?.result;
	for (const { metric, value } of tops ?? []) {
		const of = services.get(metric[s.by] ?? "")?.get(metric[s.version] ?? "");
		of?.tops.set(metric.function ?? "", Number(value[1]));
	}
	return services;
}

/** The largest rise of a share, by the functions that are known of both. */
function estimate(next: Version, base: Version): number {
	// A function that is not in the base's list has no more than the last one there.
	const rest = base.tops.size < TOP ? 0 : Math.min(...base.tops.values());
	let most = 0;
	for (const [name, share] of next.tops) {
		const was = base.tops.get(name) ?? rest;
		if (share - was >= SHARE_MIN && share >= FACTOR_MIN * was) most = Math.max(most, share - was);
	}
	return most;
}

function versionComparisons(s: SlowerScreen, answers: FleetAnswers): Comparison[] {
	const window = versionsWindow(s.times.window);
	const seconds = Math.floor(window.end - window.start);
	const recent = window.end - seconds / 4;
	const out: Comparison[] = [];
	for (const [service, of] of versionsOf(s, answers)) {
		const now = [...of.values()].filter((v) => v.last > recent);
		if (now.length < 2) continue;
		now.sort((a, b) => a.first - b.first || collator.compare(a.name, b.name));
		const next = now[now.length - 1];
		const [base] = now.slice(0, -1).sort((a, b) => b.cost - a.cost);
		const cores = next.cost / 1e9 / seconds;
		const gain = cores * estimate(next, base);
		if (gain < CORES_MIN) continue;
		const cpu = (v: Version) => cpuOf(s.by, service, { label: s.version, op: "=", value: v.name });
		out.push({
			key: JSON.stringify([service, next.name, base.name]),
			service,
			who: `${service || `no ${s.by}`} ${next.name}`,
			than: base.name,
			...{ next: cpu(next), base: cpu(base), end: window.end, seconds, back: 0, cores, gain },
		});
	}
	return out;
}

function cpuOf(by: string, service: string, ...more: Matcher[]): string {
	return formatSelector({ name: "cpu", matchers: [{ label: by, op: "=", value: service }, ...more] });
}

function timeComparisons(
	s: SlowerScreen,
	answers: FleetAnswers,
	cores: Map<string, number>,
): Comparison[] {
	const { before } = s;
	const gained = (answers.gained as { result?: VectorElement[] } | undefined)?.result;
	if (!before || !gained) return [];
	const gains = new Map<string, number>();
	for (const { metric, value } of gained) {
		const service = metric[s.by] ?? "";
		gains.set(service, Math.max(gains.get(service) ?? 0, Number(value[1]) / 1e9));
	}
	return [...gains]
		.filter(([, gain]) => gain >= CORES_MIN)
		.map(([service, gain]) => ({
			key: JSON.stringify([service]),
			service,
			who: service || `no ${s.by}`,
			than: `the ${formatDuration(before.seconds)} before`,
			next: cpuOf(s.by, service),
			base: cpuOf(s.by, service),
			end: before.end,
			seconds: before.seconds,
			back: before.seconds,
			cores: cores.get(service) ?? 0,
			gain,
		}));
}

/** What is worth a test, the most cores first. `cores`: of each service. */
export function comparisons(
	s: SlowerScreen,
	answers: FleetAnswers,
	cores: Map<string, number>,
): Comparison[] {
	return [...versionComparisons(s, answers), ...timeComparisons(s, answers, cores)]
		.sort((a, b) => b.gain - a.gain)
		.slice(0, COMPARED_MAX);
}

/* ---- the test ---- */

const windowed = (selector: string, c: Comparison, back: number) =>
	`${selector}[${formatDuration(c.seconds)}]${back ? ` offset ${formatDuration(back)}` : ""}`;

/** Whether more than chance moved a share: the server's test. */
export const changedQuestions = (all: Comparison[]): Ask[] =>
	all.map((c) => ({
		key: `changed ${c.key}`,
		title: `functions of ${c.who}`,
		name: "query",
		args: {
			query: `changed(${windowed(c.next, c, 0)}, ${windowed(c.base, c, c.back)})`,
			time: trimMs(c.end),
		},
	}));

/** Of a comparison: the function that rose most, and by how much; null if none did. */
export function risen(c: Comparison, answers: FleetAnswers): { name: string; by: number } | null {
	const vector = (answers[`changed ${c.key}`] as { result?: VectorElement[] } | undefined)?.result;
	let most: { name: string; by: number } | null = null;
	for (const { metric, value } of vector ?? []) {
		// With other labels it is about one series alone.
		if (Object.keys(metric).length > 1 || !metric.function) continue;
		const by = Number(value[1]);
		if (by >= SHARE_MIN && by > (most?.by ?? 0)) most = { name: metric.function, by };
	}
	return most;
}

export function shareQuestions(all: Comparison[], answers: FleetAnswers): Ask[] {
	return all.flatMap((c) => {
		const rose = risen(c, answers);
		if (!rose) return [];
		const matcher = `{function=${quote(rose.name)}}`;
		return [
			{
				key: `share ${c.key} ${rose.name}`,
				title: `${rose.name} of ${c.who}`,
				name: "query",
				args: {
					query: `flat_share(merge(${windowed(c.next, c, 0)}), ${matcher})`,
					time: trimMs(c.end),
				},
			},
		];
	});
}

const factorText = (f: number): string => (f >= 10 ? String(Math.round(f)) : f.toPrecision(2));

export function slowerFindings(all: Comparison[], answers: FleetAnswers): Finding[] {
	const out: Finding[] = [];
	const told = new Set<string>();
	for (const c of [...all].sort((a, b) => a.back - b.back)) {
		const rose = risen(c, answers);
		if (!rose) continue;
		const key = `share ${c.key} ${rose.name}`;
		const vector = (answers[key] as { result?: VectorElement[] } | undefined)?.result;
		const share = Number(vector?.[0]?.value[1] ?? NaN);
		if (!(share > 0)) continue;
		const was = share - rose.by;
		const isNew = was < 0.001;
		// One function of a service is one line: two versions say more than the time before.
		const line = JSON.stringify([c.service, rose.name]);
		if (told.has(line) || (!isNew && share < FACTOR_MIN * was)) continue;
		told.add(line);
		out.push({
			kind: "slower",
			who: c.who,
			function: rose.name,
			text: isNew
				? `new, ${(100 * share).toPrecision(2)}% of CPU; not in ${c.than}`
				: `${factorText(share / was)}x of ${c.than}`,
			href: linkTo("compare", {
				new: c.next,
				base: c.base,
				from: trimMs(c.end - c.seconds),
				to: trimMs(c.end),
				shift: c.back ? formatDuration(c.back) : "0",
				pick: rose.name,
			}),
			cost: c.cores * rose.by,
		});
	}
	return out;
}
