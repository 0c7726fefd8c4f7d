// Relabelling as text: a rule as in the configuration, and the labels that it changed.
import type { Labels } from "../shared/api";

export interface RelabelRule {
	sourceLabels?: string[];
	separator?: string;
	regex?: string;
	modulus?: number;
	targetLabel?: string;
	replacement?: string;
	action: string;
}

export interface RelabelStep {
	rule: RelabelRule;
	output: Labels;
	keep: boolean;
}

export interface RelabelProfile {
	profile: string;
	keep: boolean;
	/** The rule, counted from 0. */
	droppedBy?: number;
	/** The shard that scrapes it, if it is another one. */
	shard?: number;
	/** Why another shard scrapes it. */
	reason?: string;
	error?: string;
	labels?: Labels;
	scrapeUrl?: string;
	/** The socket that it is scraped through; absent if it is scraped by TCP. */
	scrapeUnixSocket?: string;
}

export interface RelabelSteps {
	steps: RelabelStep[];
	profiles: RelabelProfile[];
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
const quoted = (s: string) => (PLAIN.test(s) ? s : `'${s.replace(/'/g, "''")}'`);

/** The rule as one line of YAML, without defaults. */
export function relabelText(r: RelabelRule): string {
	const parts: string[] = [];
	if (r.sourceLabels?.length) parts.push(`source_labels: [${r.sourceLabels.join(", ")}]`);
	if ((r.separator ?? "") !== ";") parts.push(`separator: ${quoted(r.separator ?? "")}`);
	if ((r.regex ?? "") !== "(.*)") parts.push(`regex: ${quoted(r.regex ?? "")}`);
	if (r.modulus) parts.push(`modulus: ${r.modulus}`);
	if (r.targetLabel) parts.push(`target_label: ${quoted(r.targetLabel)}`);
	if ((r.replacement ?? "") !== "$1") parts.push(`replacement: ${quoted(r.replacement ?? "")}`);
	if (r.action !== "replace") parts.push(`action: ${r.action}`);
	return parts.join(", ");
}

export interface LabelChange {
	name: string;
	before?: string;
	after?: string;
}

/** Labels that differ, by name. */
export function labelChanges(before: Labels, after: Labels): LabelChange[] {
	return [...new Set([...Object.keys(before), ...Object.keys(after)])]
		.sort()
		.filter((name) => before[name] !== after[name])
		.map((name) => ({ name, before: before[name], after: after[name] }));
}
