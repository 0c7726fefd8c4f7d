// What is drawn of a search's matches, for their colour. Each name is matched once, not each node. The
// share is the server's: result/usefound.ts.
import type { Flame } from "./layout";

export interface Matches {
	/** By name index: 1 if it matches. */
	byName: Uint8Array;
	/** The cost of the matched nodes; each stack counts once, at its outermost match. */
	total: number;
	names: number;
	nodes: number;
}

/** A pattern with upper case letters is case-sensitive, any other ignores case. */
export function compilePattern(text: string): RegExp {
	return new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "" : "i");
}

export function search(f: Flame, re: RegExp): Matches {
	return collect(f, (name) => re.test(name));
}

/** The nodes of one function. */
export function searchName(f: Flame, name: string): Matches {
	return collect(f, (n) => n === name);
}

function collect(f: Flame, wanted: (name: string) => boolean): Matches {
	const byName = new Uint8Array(f.names.length);
	let names = 0;
	f.names.forEach((n, i) => {
		if (i !== f.other && wanted(n)) {
			byName[i] = 1;
			names++;
		}
	});
	// The root is the whole, not a function.
	const covered = new Uint8Array(f.count);
	let total = 0;
	let nodes = 0;
	for (let i = 1; i < f.count; i++) {
		const hit = byName[f.name[i]];
		if (hit) nodes++;
		if (covered[f.parent[i]]) {
			covered[i] = 1;
		} else if (hit) {
			covered[i] = 1;
			total += f.total[i];
		}
	}
	return { byName, total, names, nodes };
}
