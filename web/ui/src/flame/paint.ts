// The frames of a flame graph as pixels. A level is one row of pixels, which the canvas stretches to
// the height of a frame. Filling a run of numbers takes a few nanoseconds, a rectangle on a canvas a
// few hundred; so the cost of a picture depends on its pixels, not on the number of nodes. Nothing is
// allocated per node or per frame.
import { firstEndingAfter, type Flame } from "./layout";
import type { Matches } from "./search";

/** Narrower nodes are drawn as a faint run; the pointer does not find them. */
export const MIN_W = 0.5;
/** Nodes of at least this width have a pixel between them. */
const GAP_MIN_W = 3;
const FADED = 140;

/** The visible part of the graph, in its unit of x, and its width in CSS pixels. */
export interface Viewport {
	x: number;
	w: number;
	width: number;
	dpr: number;
}

/** The colours of the nodes. */
export interface Paint {
	/** Per node. */
	pixels: Uint32Array;
	tiny: number;
	match: number;
	matches: Matches | null;
	/** Per level, the ancestor of the zoomed node, drawn faded; -1 for none. */
	faded: Int32Array;
}

const ALPHA_BYTE = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 3 : 0;

export class Painter {
	rows = 0;
	columns = 0;
	/** One row per level, `columns` pixels each. */
	bytes = new Uint8ClampedArray(0);
	private pixels = new Uint32Array(0);
	/** The nodes drawn, at least MIN_W wide, in the order of their index. */
	n = 0;
	index = new Int32Array(0);
	x = new Float64Array(0);
	w = new Float64Array(0);

	reserve(nodes: number): void {
		if (this.index.length >= nodes) return;
		this.index = new Int32Array(nodes);
		this.x = new Float64Array(nodes);
		this.w = new Float64Array(nodes);
	}

	/** Begins a picture; clears the pixels. */
	begin(columns: number, rows: number): void {
		this.n = 0;
		if (columns === this.columns && rows === this.rows) {
			this.pixels.fill(0);
			return;
		}
		this.columns = columns;
		this.rows = rows;
		this.bytes = new Uint8ClampedArray(4 * columns * rows);
		this.pixels = new Uint32Array(this.bytes.buffer);
	}

	private run(at: number, from: number, to: number, color: number): void {
		for (let k = at + Math.max(0, from); k < at + Math.min(this.columns, to); k++)
			this.pixels[k] = color;
	}

	/** Paints one level into a row. */
	level(f: Flame, level: number, row: number, view: Viewport, paint: Paint): void {
		const { x: vx, w: vw, dpr } = view;
		const scale = view.width / vw;
		const right = vx + vw;
		const end = f.start[level + 1];
		const at = row * this.columns;
		const gap = Math.max(1, Math.round(dpr));
		const faded = paint.faded[level];
		let marked = -1;
		for (let i = firstEndingAfter(f, level, vx); i < end && f.x[i] < right; i++) {
			const x = (f.x[i] - vx) * scale;
			const w = f.total[i] * scale;
			const from = Math.round(x * dpr);
			let to = Math.round((x + w) * dpr);
			if (w < MIN_W) {
				// A run of narrow nodes is as wide as the sum of them, without rounding each.
				if (to > from) this.run(at, from, to, paint.tiny);
				// A match that is too narrow still gets a mark.
				if (paint.matches?.byName[f.name[i]] && from > marked) {
					marked = Math.floor(x * dpr);
					this.run(at, marked, marked + 1, paint.match);
				}
				continue;
			}
			const k = this.n++;
			this.index[k] = i;
			this.x[k] = x;
			this.w[k] = w;
			to = w > GAP_MIN_W ? to - gap : Math.max(to, from + 1);
			this.run(at, from, to, paint.pixels[i]);
			if (i === faded) this.fade(at + Math.max(0, from), at + Math.min(this.columns, to));
		}
	}

	private fade(from: number, to: number): void {
		for (let k = from; k < to; k++) this.bytes[4 * k + ALPHA_BYTE] = FADED;
	}
}
