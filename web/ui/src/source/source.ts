// The costs of lines, and the file that they are in: from answers of the server to the rows of a
// listing.
import { framesOf, groupBy } from "../query/edit";
import { type Labels, sameLabels, type VectorElement } from "../shared/api";

/** What the server may be asked for, and which labels its links need. */
export interface SourceSettings {
	/** Whether a debuginfod server may be asked for source code. */
	debuginfod: boolean;
	/** How many links by template there are. */
	links: number;
	labels: string[];
	/** With a path: where its code is; left out if no link fits. */
	url?: string;
}

/** Fields of frames that tell one file of one build from another. */
export const PLACE_FIELDS = ["filename", "line", "build_id", "mapping"];

/**
 * The question for the files of a function. What is merged has lost the labels of links, so it is
 * merged by them too.
 */
export function placesQuery(query: string, fn: string, labels: string[], linkLabels: string[]): string {
	const by = [...new Set([...labels, ...linkLabels])];
	const profiles = linkLabels.length ? groupBy(query, by.join(", ")) : query;
	return framesOf(profiles, "cum", { function: fn }, [...by, ...PLACE_FIELDS]);
}

export interface Build {
	/** "": profiles name none. */
	id: string;
	/** The path of the binary. */
	mapping: string;
	cum: number;
	/** Those of the costliest series, for links. */
	labels: Labels;
}

/** A file that has lines of the function. */
export interface SourcePlace {
	file: string;
	/** The magnitude of what its lines cost, for the order. */
	cum: number;
	/** The costliest first. */
	builds: Build[];
	/** Lines of the function, and their cost. 0 is not among them: no line is known. */
	lines: Map<number, number>;
}

/** The rest of the labels, if they are those of the element. */
const isOf = (metric: Labels, element: Labels, also: string[]): boolean =>
	sameLabels(
		Object.fromEntries(
			Object.entries(metric).filter(([k]) => k in element || !also.includes(k)),
		),
		element,
	);

/**
 * The files of a function, the costliest first: from its costs by `PLACE_FIELDS` and the labels
 * that links need.
 */
export function placesOf(vector: VectorElement[], element: Labels, linkLabels: string[]): SourcePlace[] {
	const places = new Map<string, SourcePlace>();
	const most = new Map<Build, number>();
	const also = [...PLACE_FIELDS, ...linkLabels];
	for (const { metric, value } of vector) {
		const { filename: file = "", line = "", build_id: id = "", mapping = "" } = metric;
		const cost = Math.abs(Number(value[1]));
		if (!file || !isOf(metric, element, also)) continue;
		let place = places.get(file);
		if (!place) {
			place = { file, cum: 0, builds: [], lines: new Map() };
			places.set(file, place);
		}
		place.cum += cost;
		if (Number(line)) place.lines.set(Number(line), (place.lines.get(Number(line)) ?? 0) + cost);
		let build = place.builds.find((b) => b.id === id && b.mapping === mapping);
		if (!build) {
			build = { id, mapping, cum: 0, labels: {} };
			place.builds.push(build);
		}
		build.cum += cost;
		if (cost < (most.get(build) ?? -1)) continue;
		most.set(build, cost);
		build.labels = Object.fromEntries(
			linkLabels.filter((l) => metric[l] !== undefined).map((l) => [l, metric[l]]),
		);
	}
	const out = [...places.values()].sort((a, b) => b.cum - a.cum);
	for (const p of out) p.builds.sort((a, b) => b.cum - a.cum);
	return out;
}

/** Whether debuginfod can be asked: it knows GNU build ids, and whole paths. */
export const isServed = (place: SourcePlace | undefined, build: Build | undefined): boolean =>
	!!place && place.file[0] === "/" && /^([0-9a-f]{2}){1,20}$/i.test(build?.id ?? "");

export interface LineCost {
	line: number;
	flat: number;
	cum: number;
}

/** The costs of a file's lines, by line. */
export function lineCosts(flat: VectorElement[], cum: VectorElement[], element: Labels): Map<number, LineCost> {
	const out = new Map<number, LineCost>();
	for (const [kind, vector] of [["flat", flat], ["cum", cum]] as const)
		for (const { metric, value } of vector) {
			const line = Number(metric.line);
			const cost = Number(value[1]);
			if (!line || cost === 0 || !isOf(metric, element, ["filename", "line"])) continue;
			const row = out.get(line) ?? { line, flat: 0, cum: 0 };
			row[kind] += cost;
			out.set(line, row);
		}
	return out;
}

export interface SourceRow extends LineCost {
	/** The code; null: not known. */
	text: string | null;
	/** Whether the line is one of the function's. */
	own: boolean;
}

/** All lines of the text; without one, those that cost something. Lines behind the end come last. */
export function sourceRows(
	costs: Map<number, LineCost>,
	own: Map<number, number>,
	lines: string[] | null,
): SourceRow[] {
	const length = lines?.length ?? 0;
	const rows: SourceRow[] = (lines ?? []).map((text, i) => ({
		...(costs.get(i + 1) ?? { line: i + 1, flat: 0, cum: 0 }),
		text,
		own: own.has(i + 1),
	}));
	const rest = [...costs.values()].filter((c) => c.line > length).sort((a, b) => a.line - b.line);
	return [...rows, ...rest.map((c) => ({ ...c, text: null, own: own.has(c.line) }))];
}

const cost = (r: LineCost): number => Math.abs(r.cum);

/** The row to begin at: that of `line`, else the function's costliest, else the costliest; -1: none. */
export function firstRow(rows: SourceRow[], line: number): number {
	const asked = rows.findIndex((r) => r.line === line);
	if (asked >= 0) return asked;
	let best = -1;
	for (let i = 0; i < rows.length; i++) {
		if (cost(rows[i]) === 0) continue;
		const b = rows[best];
		if (!b || (rows[i].own && !b.own) || (rows[i].own === b.own && cost(rows[i]) > cost(b))) best = i;
	}
	return best;
}

/** The next row with a cost of its own or below it, from `at` on; around at the ends; -1: none. */
export function nextCost(rows: SourceRow[], at: number, step: 1 | -1): number {
	const n = rows.length;
	for (let k = 1; k <= n; k++) {
		const i = (((at + step * k) % n) + n) % n;
		if (cost(rows[i]) || rows[i].flat) return i;
	}
	return -1;
}

/**
 * Why the text may be of another version than the profiles: costs behind its end, or on lines that
 * have no code. "" if nothing speaks against it.
 */
export function otherVersion(rows: SourceRow[], lines: string[] | null): string {
	if (!lines) return "";
	const costly = rows.filter((r) => r.cum !== 0 || r.flat !== 0);
	const last = costly[costly.length - 1];
	if (last && last.line > lines.length)
		return (
			`Another version? The file ends at line ${lines.length}, profiles have costs up to ` +
			`line ${last.line}.`
		);
	const blank = costly.filter((r) => r.text !== null && r.text.trim() === "").map((r) => r.line);
	if (blank.length)
		return (
			`Another version? ${blank.length === 1 ? "Line" : "Lines"} ` +
			`${blank.slice(0, 5).join(", ")}${blank.length > 5 ? ", …" : ""} of the file ` +
			`${blank.length === 1 ? "is empty but has" : "are empty but have"} costs.`
		);
	return "";
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the server writes links so
const LINE = "${line}";

/** The link of a line; the server leaves `${line}` in. */
export const lineUrl = (url: string, line: number): string => url.split(LINE).join(String(line));

/** Whose page it is; "" if the address is none. */
export function hostOf(url: string): string {
	try {
		return new URL(url).host;
	} catch {
		return "";
	}
}

/** The parameters of the question for a link. */
export const linkArgs = (path: string, labels: Labels): Record<string, string> => ({
	path,
	...Object.fromEntries(Object.entries(labels).map(([k, v]) => [`label.${k}`, v])),
});

/** The parameters of the address that open the view; all others of it go. */
export const openSource = (fn: string, file = "", line = 0) => ({
	src: fn || null,
	file: file || null,
	line: line ? String(line) : null,
	build: null,
});

/** `abc123def456`, as short as it is still known by. */
export const shortBuild = (b: Build): string =>
	b.id.slice(0, 12) || b.mapping.slice(b.mapping.lastIndexOf("/") + 1) || "no build id";

/** Identifies a build in the address. */
export const buildKey = (b: Build): string => b.id || b.mapping || "-";

/** The number of characters that a line takes, tabs as they are shown. */
export const TAB_WIDTH = 4;
export function widthOf(lines: string[]): number {
	let most = 0;
	for (const l of lines) {
		let n = 0;
		for (const c of l) n = c === "\t" ? n + TAB_WIDTH - (n % TAB_WIDTH) : n + 1;
		if (n > most) most = n;
	}
	return most;
}
