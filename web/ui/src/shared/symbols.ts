// Frames without names: how they are recognised, and what to do for a binary that has none. The
// server writes an address without a name as `[binary+0x1f]`, or `[0x1f]` if no binary is known, and
// what has no address as `[binary]` or `<unknown>`.

import { durationSeconds } from "./timerange";
import { formatParams } from "./urlstate";

export interface Unnamed {
	/** The base name of the binary; "" if none is known. */
	binary: string;
	/** In hex, without 0x; "" if there is none. */
	address: string;
	/** Whether a file has its names: not so for memory such as [vdso], or if no binary is known. */
	file: boolean;
}

const ADDRESS = /^\[(?:(.+)\+)?0x([0-9a-f]+)\]$/i;
const BINARY = /^\[([^\s[\]=]+)\]$/;
/** Words of profilers in brackets, which are no binaries: [unknown], [kernel.kallsyms], [no_Java_frame]. */
const WORDS =
	/^(kernel\b|(unknown|not_walkable|deoptimization|break|no|gc|thread|skipped|idle|vdso|vsyscall|heap|stack|anon|jit|interpreter|native|managed|truncated|frame)(_|$))/i;

/** What is known of a frame without a name; null for a function. */
export function unnamedOf(name: string): Unnamed | null {
	if (name[0] !== "[")
		return name === "<unknown>" ? { binary: "", address: "", file: false } : null;
	const at = ADDRESS.exec(name);
	if (at) {
		const binary = at[1] ?? "";
		return { binary, address: at[2], file: binary !== "" && binary[0] !== "[" };
	}
	const binary = BINARY.exec(name)?.[1] ?? "";
	return binary && !WORDS.test(binary) ? { binary, address: "", file: true } : null;
}

/** How far back the page Symbols looks for binaries; the first one unless another is asked for. */
export const SEEN = ["1h", "6h", "1d", "7d", "30d"];

/** The shortest of them that begins before `start`, in seconds since 1970; "" for the first. */
export function seenSince(start: number, now: number): string {
	const fits = SEEN.find((s) => now - start <= durationSeconds(s)) ?? SEEN[SEEN.length - 1];
	return Number.isFinite(start) && fits !== SEEN[0] ? fits : "";
}

/** The parameters of the page Symbols; a filter of "" shows all. */
export function symbolsParams(filter: string, seen: string): URLSearchParams {
	const out = new URLSearchParams();
	if (filter) out.set("filter", filter);
	if (seen) out.set("seen", seen);
	return out;
}

export const symbolsUrl = (filter = "", seen = ""): string =>
	"symbols" + formatParams(symbolsParams(filter, seen));

/** A word of a command line. */
function quoted(word: string): string {
	return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** The command that sends a file's debug data to the server of the page at `base`. */
export function uploadCommand(file: string, base: string): string {
	const name = file.startsWith("-") ? `./${file}` : file;
	return `epitool debuginfo upload ${quoted(name || "FILE")} --server ${quoted(base.replace(/\/+$/, ""))}`;
}

export interface NamedBinary {
	path: string;
	id: string;
}

const NAMED_BINARY = /% in (\S[^()]*?) \(build id ([0-9a-f]{4,})/gi;

/** The binaries that the infos of an answer name because of their addresses without names. */
export function binariesIn(infos: string[]): NamedBinary[] {
	return infos
		.filter(saysUnnamed)
		.flatMap((text) => [...text.matchAll(NAMED_BINARY)])
		.map(([, path, id]) => ({ path, id }));
}

/** The one of them with this base name. */
export function binaryNamed(binaries: NamedBinary[], base: string): NamedBinary | undefined {
	return binaries.find((b) => b.path.slice(b.path.lastIndexOf("/") + 1) === base);
}

export const saysUnnamed = (info: string): boolean => /\bwithout names?\b/.test(info);

/** A text in parts; those with `id` are build ids. */
export function buildIdParts(text: string): { text: string; id?: string }[] {
	const out: { text: string; id?: string }[] = [];
	let end = 0;
	for (const m of text.matchAll(/\bbuild id ([0-9a-f]{4,})/gi)) {
		const at = m.index + m[0].length - m[1].length;
		out.push({ text: text.slice(end, at) }, { text: m[1], id: m[1] });
		end = at + m[1].length;
	}
	out.push({ text: text.slice(end) });
	return out.filter((p) => p.text);
}
