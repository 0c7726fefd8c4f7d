// The rule as text: what `epitool check rules` and promtool accept.
import { bareName } from "../flame/names";
import { overLimit } from "../query/edit";
import type { Labels } from "../shared/api";

export const INTERVAL_S = 60;

/** Four digits without a prefix: 0.03 cores, where humanize writes 30m. */
export const PLAIN_NUMBER = 'printf "%.4g"';

/** How the rule's summary writes a value, and what follows it. */
export interface SummaryFormat {
	function: "humanize" | "humanize1024" | "humanizePercentage" | typeof PLAIN_NUMBER;
	suffix: string;
}

export interface AlertDraft {
	name: string;
	/** What is compared with the limit. */
	expr: string;
	over: string;
	/** A duration of the query language; "" or 0s for none. */
	wait: string;
	labels: Labels;
	format: SummaryFormat;
	/** The function or the type, if the labels of an element do not say it. */
	subject: string;
	/** The names of the labels that the elements have. */
	known: string[];
}

/* ---- YAML ---- */

/** Texts that mean themselves without quotes. Words that could be numbers, times or constants get some. */
const PLAIN = /^(\.\.\/)?[A-Za-z_][A-Za-z0-9_./-]*$/;
const CONSTANT = /^(true|false|yes|no|on|off|null|y|n)$/i;

/** A text as a YAML scalar on one line. */
export function yamlText(text: string): string {
	if (PLAIN.test(text) && !CONSTANT.test(text)) return text;
	// biome-ignore lint/suspicious/noControlCharactersInRegex: a line of YAML holds none of them
	if (/[\n\r\t\x00-\x1f\x7f\u0085\u2028\u2029]/.test(text)) return JSON.stringify(text);
	return `'${text.replace(/'/g, "''")}'`;
}

/** A text under a key: a block if it has lines or quotes, so that queries stay readable. */
export function yamlBlock(key: string, text: string, indent: string): string {
	const lines = text.split(/\r?\n/).map((l) => l.trimEnd());
	if (lines.length === 1 && yamlText(text) === text) return `${indent}${key}: ${text}\n`;
	return `${indent}${key}: |-\n${lines.map((l) => (l ? `${indent}  ${l}` : "")).join("\n")}\n`;
}

const pairs = (labels: Labels, indent: string): string =>
	Object.entries(labels)
		.map(([k, v]) => `${indent}${yamlText(k)}: ${yamlText(v)}\n`)
		.join("");

/* ---- names and labels ---- */

export const validName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);

const camel = (text: string): string =>
	text
		.split(/[^A-Za-z0-9]+/)
		.filter(Boolean)
		.map((w) => w[0].toUpperCase() + w.slice(1))
		.join("");

const NAME_MOST = 60;

/** `ShopMarshalCostsMore`, of the service and of the function or the type. */
export function suggestName(service: string, subject: string): string {
	const name = (camel(service) + camel(bareName(subject))).slice(0, NAME_MOST) || "Profile";
	return `${/^[0-9]/.test(name) ? "_" : ""}${name}CostsMore`;
}

/** `team=shop, tier="a b"` as labels; null if it cannot be read. */
export function parseLabels(text: string): Labels | null {
	const out: Labels = {};
	const part = /\s*([A-Za-z_][A-Za-z0-9_]*)\s*[=:]\s*("(?:[^"\\]|\\.)*"|[^,"]*?)\s*(,|$)/y;
	if (!text.trim()) return out;
	for (let at = 0; at < text.length; at = part.lastIndex) {
		part.lastIndex = at;
		const m = part.exec(text);
		if (!m || m[1] === "__name__") return null;
		out[m[1]] = m[2].startsWith('"') ? m[2].slice(1, -1).replace(/\\(.)/g, "$1") : m[2];
	}
	return out;
}

/* ---- the rule ---- */

const SERVICES = ["service", "service_name", "job", "app"];

/** The label that names the service, of those that there are. */
export const serviceLabel = (known: string[]): string | undefined =>
	SERVICES.find((l) => known.includes(l)) ?? known.find((l) => l !== "function");

/** The template of the summary, and the same for these labels and this value as it will be written. */
export function summaryOf(d: AlertDraft): { template: string; filled(labels: Labels, value: string): string } {
	const service = serviceLabel(d.known);
	const says = (label: (name: string) => string, value: string) =>
		`${d.known.includes("function") ? label("function") : d.subject}` +
		`${service ? ` of ${label(service)}` : ""}: ${value}${d.format.suffix}`;
	return {
		template: says((l) => `{{ $labels.${l} }}`, `{{ $value | ${d.format.function} }}`),
		filled: (labels, value) => says((l) => labels[l] ?? "", value),
	};
}

export function alertRuleText(d: AlertDraft): string {
	const wait = d.wait && d.wait !== "0s" ? `        for: ${d.wait}\n` : "";
	const labels = Object.keys(d.labels).length
		? `        labels:\n${pairs(d.labels, "          ")}`
		: "";
	return (
		`groups:\n  - name: ${yamlText(d.name)}\n    interval: 1m\n    rules:\n` +
		`      - alert: ${yamlText(d.name)}\n` +
		yamlBlock("expr", overLimit(d.expr, d.over), "        ") +
		wait +
		labels +
		`        annotations:\n          summary: ${yamlText(summaryOf(d).template)}\n`
	);
}
