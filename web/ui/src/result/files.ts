// Where functions are defined, carried over to a tree that was made of others: by name, because
// its names are numbered anew.
import type { Flamebearer } from "../shared/api";

/** `to` with the files and lines that `from` knows of its names, the first that does. */
export function withFiles(to: Flamebearer, ...from: Flamebearer[]): Flamebearer {
	if (!from.some((fb) => fb.files)) return to;
	const files = [""];
	const index = new Map([["", 0]]);
	const byName = new Map<string, [number, number]>();
	for (const fb of from)
		fb.names.forEach((name, i) => {
			const file = fb.files?.[fb.nameFiles?.[i] ?? 0] ?? "";
			if (file === "" || byName.has(name)) return;
			let at = index.get(file);
			if (at === undefined) index.set(file, (at = files.push(file) - 1));
			byName.set(name, [at, fb.nameLines?.[i] ?? 0]);
		});
	return {
		...to,
		files,
		nameFiles: to.names.map((n) => byName.get(n)?.[0] ?? 0),
		nameLines: to.names.map((n) => byName.get(n)?.[1] ?? 0),
	};
}
