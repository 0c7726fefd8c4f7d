// Files in queries: file("name") and file("name", "type").
import { readQuery } from "./read";
import { quote, type Span, splice } from "./text";

export interface FileCall extends Span {
	name: string;
	/** The sample type, maybe behind the profile's name: "memory:alloc_space"; "" is the default. */
	type: string;
}

/** The files that a query names, in order. */
export function filesOf(text: string): FileCall[] {
	const out: FileCall[] = [];
	for (const { name, args, start, end } of readQuery(text).calls) {
		const [file, type] = args;
		if (name === "file" && file?.type === "string")
			out.push({
				name: file.value,
				type: type?.type === "string" ? type.value : "",
				start,
				end,
			});
	}
	return out;
}

export const hasFiles = (...queries: string[]): boolean => queries.some((q) => filesOf(q).length > 0);

export const fileQuery = (name: string, type = ""): string =>
	`file(${quote(name)}${type && ", " + quote(type)})`;

/** The query with another file, or type, in the place of the file `name`. */
export function withFile(text: string, name: string, to: (f: FileCall) => string): string {
	const calls = filesOf(text).filter((f) => f.name === name);
	return splice(text, calls.map((f) => ({ start: f.start, end: f.end, insert: to(f) })));
}

/** Whether it is the name of a file that the server keeps. */
export const isFileId = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);
