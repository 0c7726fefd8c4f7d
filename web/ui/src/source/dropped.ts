// Files that were dropped on the page, and which of them a profile means. They stay in the memory of
// this browser: the list holds handles, and a text is read when it is shown. Nothing is sent.
import { formatBytes } from "../shared/units";

/** What a browser has of a file, and tests make themselves. */
export interface DroppedFile {
	/** The name; below a folder that was dropped, the path from that folder on. */
	path: string;
	size: number;
	text(): Promise<string>;
}

export const FILES_MAX = 50000;
export const TEXT_BYTES_MAX = 8 << 20;

const partsOf = (path: string): string[] =>
	path.split(/[/\\]/).filter((p) => p !== "" && p !== ".");

/** How many names two paths have in common at their ends. */
export function commonEnd(a: string, b: string): number {
	const [x, y] = [partsOf(a), partsOf(b)];
	let n = 0;
	while (n < x.length && n < y.length && x[x.length - 1 - n] === y[y.length - 1 - n]) n++;
	return n;
}

/**
 * Whether a dropped file may be that of the profile. The folder that was dropped may have any name,
 * so what is below it is enough, and so are two names: the profile's file may be built elsewhere.
 */
const isMeant = (path: string, common: number): boolean =>
	common >= 2 || (common === 1 && partsOf(path).length <= 2);

/** The files that share the longest end with `path`, the one that was dropped last first. */
export function matching(files: readonly DroppedFile[], path: string): DroppedFile[] {
	let best: DroppedFile[] = [];
	let most = 1;
	for (const f of files) {
		const common = commonEnd(f.path, path);
		if (!isMeant(f.path, common) || common < most) continue;
		if (common > most) best = [];
		most = common;
		best.unshift(f);
	}
	return best;
}

/** The lines of a text. One that is not text gives an error in words. */
export async function readLines(file: DroppedFile): Promise<string[]> {
	if (file.size > TEXT_BYTES_MAX)
		throw new Error(
			`${file.path} is ${formatBytes(file.size)}, more than ${formatBytes(TEXT_BYTES_MAX)}.`,
		);
	let text: string;
	try {
		text = await file.text();
	} catch {
		throw new Error(`${file.path} is no longer readable. Drop the file again.`);
	}
	if (text.includes("\0")) throw new Error(`${file.path} is not a text file.`);
	return linesOfText(text);
}

/** A line's end is no line of its own. */
export function linesOfText(text: string): string[] {
	const lines = text.split(/\r\n|\n|\r/);
	if (lines[lines.length - 1] === "") lines.pop();
	return lines;
}

export class DroppedFiles {
	private byPath = new Map<string, DroppedFile>();
	private listeners = new Set<() => void>();
	private all: DroppedFile[] = [];

	/** In the order they came; another array after each change. */
	get list(): readonly DroppedFile[] {
		return this.all;
	}

	/** A path that was there already gives way. Returns how many were too many. */
	add(files: DroppedFile[]): number {
		let over = 0;
		for (const f of files) {
			this.byPath.delete(f.path);
			if (this.byPath.size >= FILES_MAX) over++;
			else this.byPath.set(f.path, f);
		}
		this.changed();
		return over;
	}

	clear(): void {
		this.byPath.clear();
		this.changed();
	}

	subscribe(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	private changed(): void {
		this.all = [...this.byPath.values()];
		for (const l of this.listeners) l();
	}
}

/** Those of this page. They outlive the view, so that a folder is dropped once. */
export const dropped = new DroppedFiles();

/* ---- from the browser ---- */

const DEPTH_MAX = 64;
/** Folders without sources that are worth the time. */
const LEFT_OUT = /^(\.git|\.hg|\.svn|node_modules)$/;

function asDropped(file: File, path: string): DroppedFile {
	return { path, size: file.size, text: () => file.text() };
}

/** Of an `<input type="file">`, also of a folder. */
export const ofInput = (files: Iterable<File>): DroppedFile[] =>
	[...files].map((f) => asDropped(f, f.webkitRelativePath || f.name));

const entryFile = (entry: FileSystemFileEntry): Promise<File> =>
	new Promise((resolve, reject) => entry.file(resolve, reject));

/** All entries of a folder: the browser gives them in pieces. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
	const reader = folder.createReader();
	const out: FileSystemEntry[] = [];
	while (out.length < FILES_MAX) {
		const piece = await new Promise<FileSystemEntry[]>((resolve, reject) =>
			reader.readEntries(resolve, reject),
		);
		if (piece.length === 0) break;
		out.push(...piece);
	}
	return out;
}

async function walk(entry: FileSystemEntry, path: string, depth: number, out: DroppedFile[]): Promise<void> {
	if (out.length >= FILES_MAX) return;
	if (entry.isFile) {
		out.push(asDropped(await entryFile(entry as FileSystemFileEntry), path));
		return;
	}
	if (!entry.isDirectory || depth === DEPTH_MAX || LEFT_OUT.test(entry.name)) return;
	for (const e of await entriesOf(entry as FileSystemDirectoryEntry))
		await walk(e, `${path}/${e.name}`, depth + 1, out);
}

/** Of a drop, folders with all below them. What cannot be read is left out. */
export async function ofDrop(data: DataTransfer): Promise<DroppedFile[]> {
	// Taken at once: after the event the browser forgets them.
	const entries = [...data.items].map((i) => (i.kind === "file" ? i.webkitGetAsEntry() : null));
	const files = [...data.files];
	if (!entries.some((e) => e?.isDirectory)) return ofInput(files);
	const out: DroppedFile[] = [];
	for (const e of entries)
		if (e) await walk(e, e.name, 0, out).catch(() => undefined);
	return out;
}
