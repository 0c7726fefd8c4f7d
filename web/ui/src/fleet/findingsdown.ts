// Findings: processes that are down, by service and likely cause.
import type { Labels, Targets, VectorElement } from "../shared/api";
import { causeOf } from "./causes";
import { type Finding, linkTo } from "./findings";
import { type Process, processes } from "./targets";

/** How many profiles a service has, of which nobody knows the processes. */
export function targetCounts(by: string, vector: VectorElement[]): Map<string, number> {
	return new Map(vector.map((e) => [e.metric[by] ?? "", Number(e.value[1])]));
}

const CAUSE_MAX = 120;

function causeText(p: Process): string {
	const [error] = p.errors;
	if (!error) return "";
	const text = causeOf(error.text, error.url) || error.text;
	return text.length > CAUSE_MAX ? `${text.slice(0, CAUSE_MAX)}…` : text;
}

const serviceOf = (by: string, labels: Labels): string => labels[by] ?? "";

/**
 * `down`: the targets that are down; `all`: how many profiles each service has. A service is down if
 * all its profiles are. Processes that fail for one reason are one line.
 */
export function downFindings(by: string, down: Targets, all: Map<string, number>): Finding[] {
	const services = new Map<string, Process[]>();
	for (const p of processes(down.activeTargets ?? [])) {
		const service = serviceOf(by, p.labels);
		services.set(service, [...(services.get(service) ?? []), p]);
	}
	const out: Finding[] = [];
	for (const [service, of] of services) {
		const failing = of.reduce((n, p) => n + p.targets.length, 0);
		const wholly = failing >= (all.get(service) ?? failing);
		const causes = new Map<string, Process[]>();
		for (const p of of) causes.set(causeText(p), [...(causes.get(causeText(p)) ?? []), p]);
		for (const [cause, with_] of causes) out.push(lineOf(by, service, with_, cause, wholly));
	}
	return out;
}

function lineOf(by: string, service: string, of: Process[], cause: string, wholly: boolean): Finding {
	const profiles = new Set(of.flatMap((p) => p.targets.map((t) => t.profile)));
	const many = of.length > 1 ? `${of.length.toLocaleString("en")} processes ` : "";
	const part = [...profiles].sort().join(", ");
	const text = wholly
		? `${many}down`
		: `${many || `${of[0].address} `}${of.length > 1 ? "fail" : "fails"} (${part})`;
	return {
		kind: "down",
		who: service || `no ${by}`,
		text: cause ? `${text}: ${cause}` : text,
		href: linkTo("targets", {
			state: "down",
			filter: of.length === 1 ? of[0].address : service ? `${by}=${service}` : "",
		}),
		// A whole service before parts of others.
		cost: of.length + (wholly ? 1e6 : 0),
	};
}
