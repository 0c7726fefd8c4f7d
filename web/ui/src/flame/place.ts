// The place of a call path in a graph that has only the heaviest nodes.
import { type Flame, flameChildren, nameOf } from "./layout";
import { isOther } from "./subtree";

/** The node at the end of a path, or the node "other" that has to be read first. */
export type PathPlace = { node: number } | { unread: number };

/** The names are from the root down, without the root's. null: the graph has no such path. */
export function pathPlace(f: Flame, path: string[]): PathPlace | null {
	let at = f.count ? 0 : -1;
	for (const name of path) {
		let above = at;
		for (at = -1; at < 0; ) {
			const [from, to] = flameChildren(f, above);
			let other = -1;
			for (let k = from; k < to && at < 0; k++) {
				if (isOther(f, k)) other = k;
				else if (nameOf(f, k) === name) at = k;
			}
			if (at >= 0) break;
			if (other < 0) return null;
			// What was read of it is below it.
			const [first, end] = flameChildren(f, other);
			if (first === end) return { unread: other };
			above = other;
		}
	}
	return at < 0 ? null : { node: at };
}
