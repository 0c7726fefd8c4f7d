// Walking a flame graph by keyboard: which node a key moves to.
import { flameChildren, type Flame, levelOf } from "./layout";
import type { FlameLook } from "./look";

/** The most expensive callee, the first of several; -1 for none. */
function heaviest(f: Flame, i: number): number {
	const [from, to] = flameChildren(f, i);
	let best = -1;
	for (let c = from; c < to; c++)
		if (f.total[c] > 0 && (best < 0 || f.total[c] > f.total[best])) best = c;
	return best;
}

/** The node that an arrow key moves to; -1 if there is none. Up is up on the screen. */
export function neighbour(
	f: Flame,
	i: number,
	key: string,
	orientation: FlameLook["orientation"],
): number {
	const out = orientation === "flame" ? "ArrowUp" : "ArrowDown";
	if (key === out) return heaviest(f, i);
	if (key === "ArrowUp" || key === "ArrowDown") return f.parent[i];
	const level = levelOf(f, i);
	const step = key === "ArrowLeft" ? -1 : 1;
	for (let n = i + step; n >= f.start[level] && n < f.start[level + 1]; n += step)
		if (f.total[n] > 0) return n;
	return -1;
}
