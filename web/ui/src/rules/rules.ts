// Groups of rules as the API gives them (like Prometheus), and functions for the pages Alerts and
// Rules.
import { hashName } from "../flame/layout";
import type { Labels } from "../shared/api";

export type AlertState = "firing" | "pending" | "inactive";

export interface Alert {
	labels: Labels;
	annotations: Labels;
	state: AlertState;
	activeAt: string;
	keepFiringSince?: string;
	value: string;
}

export interface Rule {
	type: "alerting" | "recording";
	name: string;
	query: string;
	labels?: Labels;
	health: string;
	lastError?: string;
	/** Seconds. */
	evaluationTime: number;
	lastEvaluation: string;
	/** Only alerting rules have the following. */
	state?: AlertState | "unknown";
	/** `for` and `keep_firing_for`, in seconds. */
	duration?: number;
	keepFiringFor?: number;
	annotations?: Labels;
	alerts?: Alert[];
}

export interface RuleGroup {
	name: string;
	file: string;
	rules: Rule[];
	interval: number;
	limit?: number;
	evaluationTime: number;
	lastEvaluation: string;
}

export interface RuleGroups {
	groups: RuleGroup[] | null;
	/** Of a query node that does not evaluate the rules itself: the host that does, and when it wrote this. */
	evaluatedBy?: string;
	evaluatedAt?: string;
}

/** Seconds since 1970; null for Go's zero time, which means never. */
export function timeOf(text: string | undefined): number | null {
	const t = Date.parse(text ?? "") / 1000;
	return Number.isFinite(t) && t > 0 ? t : null;
}

/** The state of a rule: the worst of its alerts. */
export function stateOf(r: Rule): AlertState {
	const states = (r.alerts ?? []).map((a) => a.state);
	if (r.state === "firing" || states.includes("firing")) return "firing";
	return r.state === "pending" || states.includes("pending") ? "pending" : "inactive";
}

/** How many rules are in each state. */
export function countStates(groups: RuleGroup[]): Record<AlertState, number> {
	const n = { firing: 0, pending: 0, inactive: 0 };
	for (const g of groups)
		for (const r of g.rules) if (r.type === "alerting") n[stateOf(r)]++;
	return n;
}

function words(labels: Labels | undefined): string {
	return Object.entries(labels ?? {})
		.map(([k, v]) => `${k}="${v}"`)
		.join(" ");
}

/** The text that a filter searches: names, expression, labels, annotations, also of alerts. */
export function ruleSearchText(g: RuleGroup, r: Rule): string {
	const alerts = (r.alerts ?? []).map((a) => `${words(a.labels)} ${words(a.annotations)}`);
	return [g.name, g.file, r.name, r.query, words(r.labels), words(r.annotations), ...alerts]
		.join("\n")
		.toLowerCase();
}

/** The groups with the rules that `keep` accepts and whose text contains `filter`. */
export function filterGroups(
	groups: RuleGroup[],
	filter: string,
	keep: (r: Rule) => boolean,
): RuleGroup[] {
	const want = filter.trim().toLowerCase();
	return groups
		.map((g) => ({
			...g,
			rules: g.rules.filter((r) => keep(r) && (!want || ruleSearchText(g, r).includes(want))),
		}))
		.filter((g) => g.rules.length > 0);
}

/** The labels of an alert's element, without its name and the labels of its rule. */
export function elementLabels(r: Rule, a: Alert): Labels {
	const given = new Set(["alertname", ...Object.keys(r.labels ?? {})]);
	return Object.fromEntries(Object.entries(a.labels).filter(([k]) => !given.has(k)));
}

/** The key of an alert in the URL: a hash of its group and labels. */
export function alertKey(g: RuleGroup, a: Alert): string {
	const text = JSON.stringify([g.file, g.name, Object.entries(a.labels).sort()]);
	return hashName(text).toString(16).padStart(8, "0");
}
