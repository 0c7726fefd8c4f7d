// What is in a file, and what follows from it: its name on this page, its types, the side of a
// comparison that it becomes, and the query of production that it is compared with.
import { filesOf, fileQuery } from "../query/files";
import { findSelectors } from "../query/read";
import { guessKind } from "../query/types";
import { type ProfileType, resolveType, shortTypeName } from "../shared/api";
import { formatDuration } from "../shared/timerange";
import type { Patch } from "../shared/urlstate";

export interface FileType {
	type: string;
	unit: string;
	default: boolean;
}

export interface FileProfile {
	name: string;
	/** Seconds since 1970. */
	time?: number;
	duration?: number;
	samples: number;
	types: FileType[];
}

/** The server's answer about a file. */
export interface Contents {
	name: string;
	format: string;
	bytes: number;
	/** How many seconds a file may be kept; 0: none is. */
	keepMax: number;
	profiles: FileProfile[];
	/** What the file says that it lacks. */
	warnings?: string[];
}

/** The same of a file that is kept on the server. */
export interface KeptContents extends Contents {
	id: string;
	/** Seconds since 1970. */
	expires: number;
}

const NAME_MAX = 80;

/**
 * The name of a dropped file in queries: no character needs an escape there, and no other file that
 * the page still has is called so.
 */
export function droppedName(file: string, taken: (name: string) => boolean): string {
	const plain = file.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+/, "").slice(-NAME_MAX) || "profile";
	if (!taken(plain)) return plain;
	const dot = plain.indexOf(".", 1);
	const [stem, ending] = dot < 0 ? [plain, ""] : [plain.slice(0, dot), plain.slice(dot)];
	let n = 2;
	while (taken(`${stem}-${n}${ending}`)) n++;
	return `${stem}-${n}${ending}`;
}

/** The profile that is meant where none is named: the CPU's, else the first. */
export const mainProfile = (c: Contents): FileProfile =>
	c.profiles.find((p) => p.name === "process_cpu") ?? c.profiles[0];

const defaultType = (p: FileProfile): FileType => p.types.find((t) => t.default) ?? p.types[0];

/** `[value, text]` of each type of a file; the value "" is the default. */
export function typeOptions(c: Contents): [string, string][] {
	const main = mainProfile(c);
	return c.profiles.flatMap((p) =>
		p.types.map((t): [string, string] => [
			p === main && t === defaultType(p) ? "" : `${p.name}:${t.type}`,
			`${p.name} · ${t.type} (${t.unit})`,
		]),
	);
}

/** The option that a query names: by the type alone, or behind the profile's name. */
export function chosenType(c: Contents, type: string): string {
	const all = typeOptions(c).map(([v]) => v);
	if (all.includes(type)) return type;
	const main = mainProfile(c);
	const [name, t = name] = type.split(":");
	const of = c.profiles.find((p) => (p.name === name || t === name) && p.types.some((x) => x.type === t));
	return of && !(of === main && defaultType(of).type === t) ? `${of.name}:${t}` : "";
}

/** The stored type that a file's type is compared with; "" if none is stored. */
export function productionQuery(c: Contents, type: string, stored: ProfileType[]): string {
	const main = mainProfile(c);
	const wanted = chosenType(c, type) || `${main.name}:${defaultType(main).type}`;
	const of = c.profiles.find((p) => wanted.startsWith(p.name + ":"));
	const unit = of?.types.find((t) => wanted === `${of.name}:${t.type}`)?.unit;
	const found = resolveType(wanted, stored);
	return found && found.sample_unit === unit ? shortTypeName(found, stored) : "";
}

export interface OpenedFile {
	name: string;
	contents: Contents;
}

/** When the profile was taken; 0 if the file does not say. */
const takenAt = ({ contents }: OpenedFile): number => mainProfile(contents).time ?? 0;

/** The older one is the base; where that is not known, the first. */
export function asSides([a, b]: OpenedFile[]): { base: OpenedFile; next: OpenedFile } {
	const swap = takenAt(a) > 0 && takenAt(b) > 0 && takenAt(a) > takenAt(b);
	return swap ? { base: b, next: a } : { base: a, next: b };
}

type Params = Record<string, string>;

/** Two files as a comparison. */
export function compareFiles(opened: OpenedFile[]): Params {
	const { base, next } = asSides(opened);
	return { new: fileQuery(next.name), base: fileQuery(base.name) };
}

/** A file against the latest of what is stored; times differ in length, so it is compared in proportion. */
export const compareStored = (file: string, base: string): Params =>
	({ new: file, base, shift: "0", norm: "1" });

interface ComparedQueries {
	next: string;
	base: string;
}

/**
 * What Compare shows once files were opened there. One file is the new side: against the file that was
 * there, else against what is stored of its type.
 */
export function openedSides(
	opened: OpenedFile[],
	{ next, base }: ComparedQueries,
	stored: ProfileType[],
): Patch {
	if (opened.length > 1) return { ...compareFiles(opened), norm: null };
	const [{ name, contents }] = opened;
	const file = fileQuery(name);
	const other = [next, base].find((q) => filesOf(q).length === 1 && filesOf(q)[0].name !== name);
	if (other) return { new: file, base: other, norm: null };
	const kept = filesOf(base).length ? "" : base;
	const wanted = productionQuery(contents, "", stored);
	const same = wanted && resolveType(wanted, stored) === resolveType(findSelectors(kept)[0]?.name ?? "", stored);
	// Who compares with this query has chosen its window too.
	return same ? { new: file, base: kept, norm: "1" } : compareStored(file, wanted || kept);
}

/** The name of the file if the query is a file alone, maybe filtered; else "". */
export function fileAlone(query: string): string {
	const files = filesOf(query);
	return files.length === 1 && guessKind(query) === "profiles" ? files[0].name : "";
}

/** `pprof, 12 s of cpu`: a file in a few words. */
export function inWords(c: Contents): string {
	const main = mainProfile(c);
	const time = main.duration ? `${formatDuration(Math.max(1, Math.round(main.duration)))} of ` : "";
	const more = c.profiles.length > 1 ? ` and ${c.profiles.length - 1} more` : "";
	return `${c.format}, ${time}${main.name}${more}`;
}
