// The files that were opened on this page: in its memory, until it is loaded again.
import { apiUrl, ApiError, droppedFiles, request } from "../shared/api";
import { type Contents, type KeptContents, droppedName, type OpenedFile } from "./contents";

/** The server takes no more of one file; what it inflates to is bounded by it too. */
export const FILE_BYTES_MAX = 16 << 20;

const known = new Map<string, Contents>();
const listeners = new Set<() => void>();

const changed = () => {
	for (const l of listeners) l();
};

/** Called when a file was opened or kept. */
export function onFiles(listener: () => void): () => void {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

/** What is in a file of this page; null: the page does not have it. */
export const contentsOf = (name: string): Contents | null => known.get(name) ?? null;

const post = <T extends Contents>(name: string, body: Blob, keep?: number) =>
	request<T>(apiUrl("files", { name, keep }), {
		method: "POST",
		headers: { "Content-Type": "application/octet-stream" },
		body,
	});

/** Asks the server what is in a file. Nothing is stored there. */
async function open(file: File): Promise<OpenedFile> {
	if (file.size > FILE_BYTES_MAX)
		throw new ApiError(0, "too large", `${file.size} bytes, limit ${FILE_BYTES_MAX}; compress it with gzip`);
	// What is read once stays readable if the file on the disk changes.
	const blob = new Blob([await file.arrayBuffer()]);
	const { data, warnings } = await post<Contents>(file.name, blob);
	const name = droppedName(file.name, (n) => droppedFiles.has(n));
	droppedFiles.set(name, blob);
	const contents = { ...data, warnings };
	known.set(name, contents);
	return { name, contents };
}

/** Opens all that can be; the reasons for the others are texts. */
export async function openAll(files: File[]): Promise<{ opened: OpenedFile[]; failed: string[] }> {
	const opened: OpenedFile[] = [];
	const failed: string[] = [];
	for (const file of files)
		try {
			opened.push(await open(file));
		} catch (e) {
			const why = e instanceof ApiError ? e.message : "not readable";
			failed.push(`${file.name}: ${why}`);
		}
	changed();
	return { opened, failed };
}

/** Stores a file of this page on the server for so many seconds; its id. */
export async function keepFile(name: string, seconds: number): Promise<string> {
	const blob = droppedFiles.get(name);
	if (!blob) throw new ApiError(0, "gone", "no longer in the memory of this page");
	const { data } = await post<KeptContents>(name, blob, seconds);
	return data.id;
}

export const removeKept = (id: string) =>
	request<null>(apiUrl(`files/${id}`), { method: "DELETE" });
