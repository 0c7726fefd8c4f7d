// Copies where functions are defined to a tree that was made of others, by name, because its names
// have other numbers.
import type { Flamebearer } from "../shared/api";

/** `to` with the file and line of each name, from the first tree in `from` that has it. */
export function withFunctionFiles(to: Flamebearer, ...from: Flamebearer[]): Flamebearer {
	if (!from.some((fb) => fb.files)) return to;
	const files = [""];
	const index = new Map([["", 0]]);
	const byName = new Map<string, [number, number]>();
	for (const fb of from)
		fb.names.forEach((name, i) => {
			const file = fb.files?.[fb.nameFiles?.[i] ?? 0] ?? "";
			if (file === "" || byName.has(name)) return;
			let at = index.get(file);
			if (at === undefined) {
				at = files.push(file) - 1;
				index.set(file, at);
			}
			byName.set(name, [at, fb.nameLines?.[i] ?? 0]);
		});
	return {
		...to,
		files,
		nameFiles: to.names.map((n) => byName.get(n)?.[0] ?? 0),
		nameLines: to.names.map((n) => byName.get(n)?.[1] ?? 0),
	};
}
