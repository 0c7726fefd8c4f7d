// Binaries and their debug data as the API gives them, and what the page Symbols says of them.
import { unnamedOf } from "../shared/symbols";

export type BinaryState =
	| "named"
	| "uploading"
	| "queued"
	| "extracting"
	| "failed"
	| "missing"
	| "unknown";

/** Keys that the server does not know are left out. */
export interface Binary {
	id?: string;
	/** "": profiles name no build id. */
	kind?: "gnu" | "go" | "file" | "";
	path?: string;
	jobs?: string[];
	/** Distinct addresses in stored profiles instead of functions; the store may have names for them. */
	addresses?: number;
	state: BinaryState;
	/** Why it failed. */
	why?: string;
	quality?: "dwarf" | "lines" | "symbols" | "nothing";
	content?: "full" | "no_text" | "stripped";
	origin?: "upload" | "debuginfod" | "directory";
	indexBytes?: number;
	sourceBytes?: number;
	/** RFC 3339. */
	addedAt?: string;
	usedAt?: string;
	againAt?: string;
}

export interface Symbols {
	enabled: boolean;
	uploadEnabled: boolean;
	bytes: number;
	/** 0: no limit. */
	bytesMax: number;
	debuginfod?: string[];
	directories?: string[];
	binaries: Binary[];
}

const UNDER_WAY: BinaryState[] = ["uploading", "queued", "extracting"];

/** Whether it has names: not so if a file was read that has none. */
export const isNamed = (b: Binary): boolean => b.state === "named" && b.quality !== "nothing";

export const isUnderWay = (b: Binary): boolean => UNDER_WAY.includes(b.state);

export const underWay = (s: Symbols | null): boolean => s?.binaries.some(isUnderWay) ?? false;

/** The same binary in every answer. */
export const binaryKey = (b: Binary): string => (b.id ? `${b.kind}:${b.id}` : `path:${b.path}`);

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const dirOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** What it is called in a sentence. */
export const binaryName = (b: Binary): string =>
	baseName(b.path ?? "") || (b.id ? `build id ${shortId(b.id)}` : "this binary");

const SHORT = 12;
export const shortId = (id: string): string => (id.length > SHORT + 2 ? id.slice(0, SHORT) + "…" : id);

export interface SymbolTotals {
	seen: number;
	named: number;
	unnamed: number;
	/** Of binaries without names. */
	addresses: number;
}

export function symbolTotals(binaries: Binary[]): SymbolTotals {
	const unnamed = binaries.filter((b) => !isNamed(b));
	return {
		seen: binaries.length,
		named: binaries.length - unnamed.length,
		unnamed: unnamed.length,
		addresses: unnamed.reduce((n, b) => n + (b.addresses ?? 0), 0),
	};
}

/** Sorts by addresses; binaries with names are below all others. */
export const weightOf = (b: Binary): number =>
	isNamed(b) ? -1 / (1 + (b.addresses ?? 0)) : (b.addresses ?? 0);

export interface StateChip {
	text: string;
	/** The class of the badge. */
	mark: "up" | "down" | "wait" | "";
	/** A sentence. */
	hint: string;
	/** Sorts: what needs somebody comes first. */
	rank: number;
}

const QUALITY: Record<NonNullable<Binary["quality"]>, StateChip> = {
	dwarf: {
		text: "DWARF",
		mark: "up",
		hint: "Functions, files, lines and inlined calls.",
		rank: 8,
	},
	lines: {
		text: "line table",
		mark: "up",
		hint: "Functions, files and lines, from Go's line table or DWARF without its .dwo files.",
		rank: 7,
	},
	symbols: {
		text: "symbols only",
		mark: "wait",
		hint: "Functions only. Upload a file with DWARF for files, lines and inlined calls.",
		rank: 6,
	},
	nothing: {
		text: "no names",
		mark: "down",
		hint: "The file is stripped: no symbols, no DWARF.",
		rank: 1,
	},
};

const STATES: Record<Exclude<BinaryState, "named">, StateChip> = {
	failed: { text: "failed", mark: "down", hint: "File not readable", rank: 0 },
	missing: {
		text: "missing",
		mark: "down",
		hint: "No debug data at any source.",
		rank: 2,
	},
	unknown: {
		text: "unknown",
		mark: "",
		hint: "No source of debug data was asked yet, or none answered.",
		rank: 3,
	},
	uploading: { text: "uploading", mark: "wait", hint: "Upload in progress.", rank: 4 },
	queued: { text: "queued", mark: "wait", hint: "File stored, waiting to be read.", rank: 4 },
	extracting: { text: "extracting", mark: "wait", hint: "Reading the file.", rank: 5 },
};

export function stateChip(b: Binary): StateChip {
	if (b.state === "named")
		return QUALITY[b.quality ?? "dwarf"] ?? { text: b.state, mark: "up", hint: "", rank: 8 };
	const chip = STATES[b.state] ?? { text: String(b.state), mark: "", hint: "", rank: 3 };
	if (b.state !== "failed") return chip;
	return { ...chip, hint: b.why ? `${chip.hint}: ${b.why}` : `${chip.hint}.` };
}

/** Whether a better file would help. */
export const wantsFile = (b: Binary): boolean =>
	!isUnderWay(b) && !(b.state === "named" && (b.quality === "dwarf" || b.quality === "lines"));

const ORIGINS: Record<string, string> = {
	upload: "upload",
	debuginfod: "debuginfod",
	directory: "directory",
};
export const originOf = (b: Binary): string => (b.origin ? (ORIGINS[b.origin] ?? b.origin) : "");

const CONTENT: Record<string, string> = {
	full: "the whole file",
	no_text: "debug data without code",
	stripped: "a stripped file",
};
export const contentOf = (b: Binary): string => (b.content ? (CONTENT[b.content] ?? b.content) : "");

const KINDS: Record<string, string> = {
	gnu: "GNU build id",
	go: "Go build id",
	file: "file id",
};
export const idKind = (b: Binary): string => KINDS[b.kind ?? ""] ?? "build id";

/** The text that the filter's words are looked for in, in lower case. */
export function filterText(b: Binary): string {
	const chip = stateChip(b);
	return [b.path, b.id, ...(b.jobs ?? []), chip.text, b.why, originOf(b)].join(" ").toLowerCase();
}

/** What the filter is for a frame without a name: the binary in it. */
export const filterOf = (text: string): string => unnamedOf(text.trim())?.binary || text;

/** The lines of the configuration that have the server look for debug data by itself. */
export const LOOK_CONFIG = `debuginfod:
  - url: https://debuginfod.example
debug_directories: [/usr/lib/debug]
`;
