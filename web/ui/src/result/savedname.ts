// Names of saved files: shop-cpu-2026-11-23T14-05Z-15m.svg, which is service, profile type, begin and
// length of the window, in UTC. The server names what it sends by the same rules (web/api/saved_name.h).
import type { Times } from "../query/questions";
import { findSelectors } from "../query/read";
import type { Matcher } from "../query/text";
import { type Labels, type ProfileElement, typeInWords } from "../shared/api";

/** Labels that name a service, the first that is there. */
const SERVICES = ["service", "service_name", "job", "app"];
const PART_MAX = 48;

/** Letters, digits and dashes; whatever else is one "_", but not at the ends. */
function plain(part: string): string {
	const text = part.replace(/^[^a-z0-9]+/i, "").replace(/[^a-z0-9-]+/gi, "_");
	return text.slice(0, PART_MAX).replace(/[^a-z0-9]+$/i, "");
}

const UNITS: [number, string][] = [
	[86400, "d"],
	[3600, "h"],
	[60, "m"],
	[1, "s"],
];

/** `1h30m`: the two largest units. */
function lengthText(seconds: number): string {
	const i = UNITS.findIndex(([size]) => seconds >= size);
	return UNITS.slice(i, i + 2)
		.map(([size, unit], k) => [Math.floor((k ? seconds % UNITS[i][0] : seconds) / size), unit])
		.filter(([n]) => n)
		.map(([n, unit]) => `${n}${unit}`)
		.join("");
}

/** Seconds are told where two windows may begin in the same minute. */
function windowText({ time, start, end }: Times): string {
	const begin = Number(start ?? time);
	const seconds = Math.round(Number(end ?? begin) - begin);
	const iso = new Date(Math.floor(begin) * 1000).toISOString().replace(/:/g, "-");
	const clock = seconds < 60 && !iso.includes("-00.") ? iso.slice(0, 19) : iso.slice(0, 16);
	return `${clock}Z${seconds > 0 ? `-${lengthText(seconds)}` : ""}`;
}

/** The value that all have; "" if they have none, or several. */
const common = (values: string[]): string =>
	values.length && values.every((v) => v === values[0]) ? values[0] : "";

const selected = (matchers: Matcher[], label: string): string =>
	matchers.find((m) => m.op === "=" && m.label === label)?.value ?? "";

/** What each selector of profiles selects of a label with `=`; matchers of frames have no name. */
const asked = (query: string, label: string): string[] =>
	findSelectors(query)
		.filter((s) => s.name || selected(s.matchers, "__name__"))
		.map((s) => selected(s.matchers, label));

/** The service that all elements have, else the one that all selectors of the query select. */
function serviceOf(query: string, metrics: Labels[]): string {
	for (const label of SERVICES) {
		const value = common(metrics.map((m) => m[label] ?? ""));
		if (value) return value;
	}
	for (const label of SERVICES) {
		const value = common(asked(query, label));
		if (value) return value;
	}
	return "";
}

export function savedName(
	query: string,
	times: Times,
	elements: Pick<ProfileElement, "metric" | "type">[],
	suffix: string,
): string {
	const service = serviceOf(
		query,
		elements.map((e) => e.metric),
	);
	const type = common(elements.map((e) => typeInWords(e.type ?? "")));
	const parts = [service, ...type.split(" ")].map(plain).filter(Boolean);
	return `${[...parts, windowText(times)].join("-")}.${suffix}`;
}
