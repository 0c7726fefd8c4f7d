// What is wrong in the fleet, one line each: what the kinds share, what is known without a question of
// its own (alerts, pushes), and the order.
import type { Alert } from "../rules/rules";
import { counted } from "../shared/units";
import { formatParams } from "../shared/urlstate";
import { notesOf, type Senders } from "./senders";

/** From the worst to the mildest; the order on the page. */
export const FINDING_KINDS = ["down", "alert", "refused", "growth", "slower"] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export interface Finding {
	kind: FindingKind;
	/** The service, with its version if it is about one. */
	who: string;
	/** What is said of it; of a function, what is said behind its name. */
	text: string;
	function?: string;
	/** The page that explains it. */
	href: string;
	/** Orders findings of one kind: processes, alerts, profiles refused, bytes per hour, cores. */
	cost: number;
}

export const linkTo = (path: string, args: Record<string, string>): string =>
	path + formatParams(new URLSearchParams(args));

/** Kinds in their order, within a kind by cost; what is said of a service and function once. */
export function ranked(all: Finding[]): Finding[] {
	const rank = (f: Finding) => FINDING_KINDS.indexOf(f.kind);
	return all.sort(
		(a, b) => rank(a) - rank(b) || b.cost - a.cost || (a.who + a.text < b.who + b.text ? -1 : 1),
	);
}

/* ---- alerts ---- */

/** One per name and service: alerts of one rule come in crowds. */
export function alertFindings(by: string, alerts: Alert[]): Finding[] {
	const groups = new Map<string, Alert[]>();
	for (const a of alerts) {
		if (a.state !== "firing") continue;
		const key = JSON.stringify([a.labels.alertname, a.labels[by] ?? ""]);
		groups.set(key, [...(groups.get(key) ?? []), a]);
	}
	return [...groups.values()].map((of) => {
		const [{ labels, annotations }] = of;
		const name = labels.alertname ?? "alert";
		const said = of.length === 1 ? annotations.summary || "firing" : `${of.length} firing`;
		return {
			kind: "alert",
			who: labels[by] || labels.service || labels.job || name,
			text: labels[by] || labels.service || labels.job ? `${name}: ${said}` : said,
			href: linkTo("alerts", { state: "firing", filter: name }),
			cost: of.length,
		};
	});
}

/* ---- pushes ---- */

/** Senders whose last requests were refused, or that were regular and are silent. */
export function senderFindings(data: Senders, now: number): Finding[] {
	const out: Finding[] = [];
	for (const s of data.senders) {
		if (s.state === "sending" || s.state === "idle") continue;
		const [note] = notesOf(s, now).filter((n) => n.now);
		if (!note) continue;
		const why = note.cause?.cause ?? note.message;
		const what = s.state === "in part" ? "pushes refused in part" : "pushes refused";
		const text = s.state === "stopped" ? `pushes stopped: ${lowerFirst(why)}` : `${what}: ${lowerFirst(why)}`;
		out.push({
			kind: "refused",
			who: s.job || s.address,
			text,
			href: linkTo("senders", {
				state: s.state === "stopped" ? "stopped" : "trouble",
				filter: s.address,
			}),
			cost: s.refusedProfiles ?? 0,
		});
	}
	return oncePerLine(out);
}

const lowerFirst = (text: string): string =>
	/^[A-Z][a-z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text;

/** Ten senders of one job with one trouble are one line, which leads to all of them. */
function oncePerLine(all: Finding[]): Finding[] {
	const lines = new Map<string, Finding[]>();
	for (const f of all) {
		const key = JSON.stringify([f.who, f.text]);
		lines.set(key, [...(lines.get(key) ?? []), f]);
	}
	return [...lines.values()].map((of) => {
		if (of.length === 1) return of[0];
		const cost = of.reduce((sum, f) => sum + f.cost, 0);
		const { state } = Object.fromEntries(new URLSearchParams(of[0].href.split("?")[1]));
		const href = linkTo("senders", { state, filter: of[0].who });
		return { ...of[0], text: `${counted(of.length, "sender")}: ${of[0].text}`, href, cost };
	});
}
