// The flame graph on two canvases: the graph, and above it the outlines of the hovered and selected
// nodes, so that a moving pointer does not redraw the graph. This file owns the viewport (a span of
// x, a scroll offset), drawing, animation and hit testing; the component owns selection and search.
//
// The cost of drawing depends on what is visible: a binary search finds the first node of a level,
// frames are pixels of one row (paint.ts), and text is drawn where it fits, with cached widths
// (labels.ts).
import { context2d, must } from "../shared/must";
import { namePixels, nodePixels, type Palette, pixel, pixelColor, unnamedFlags } from "./color";
import { FrameLabels } from "./labels";
import { comparable, type Flame, levelOf, nodeAt } from "./layout";
import { DEFAULT_LOOK, type FlameLook } from "./look";
import { MIN_W, type Paint, Painter } from "./paint";
import type { Matches } from "./search";

export const FLAME_ROW_H = 19;
export const LABEL_MIN_W = 18;
/** While the graph moves, narrow frames have no text. */
const MOVING_LABEL_MIN_W = 40;
/** The distance of the lines across frames without names. */
export const HATCH_STEP = 6;
export const HATCH_LINE = 1.5;
export const PAD = 4;
/** The height of the colour of a group. */
const BAND_H = 3;
const ZOOM_MS = 190;
const FRAMES_KEPT = 600;
export const FONT = "11.5px system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";

export interface DrawnNode {
	index: number;
	x: number;
	y: number;
	w: number;
	color: string;
}

type CanvasLook = Pick<FlameLook, "color" | "orientation">;

export class FlameCanvas {
	private ctx: CanvasRenderingContext2D;
	private over: CanvasRenderingContext2D;
	private strip = document.createElement("canvas");
	private stripCtx: CanvasRenderingContext2D;
	private flame: Flame | null = null;
	private painter = new Painter();
	private labels: FrameLabels;
	private paint: Paint;
	private matches: Matches | null = null;
	private look: CanvasLook = DEFAULT_LOOK;
	private stale = true; // paint.pixels are out of date
	private namesStale = true; // and so are the colours of names
	private own: Uint32Array = new Uint32Array(0);
	/** Per name, whether it is none; null if all are. */
	private bands: Map<string, string> | null = null;
	/** The colours that were drawn, by name. */
	drawnBands: [string, string][] = [];
	private unnamed: Uint8Array | null = null;
	private tile: { key: string; pattern: CanvasPattern | null } = { key: "", pattern: null };
	private view = { x: 0, w: 1, width: 0, dpr: 1 };
	private height = 0;
	private scrollTop = 0;
	private frame = 0;
	private whole = false; // the next frame draws the graph, not only the outlines
	private moving = false;
	private spent = 0; // script time since the last frame
	private frames: number[] = [];
	framesDrawn = 0;
	private hovered = -1;
	private selected = -1;
	drawMs = 0;

	constructor(
		private canvas: HTMLCanvasElement,
		private overlay: HTMLCanvasElement,
		private palette: Palette,
	) {
		this.ctx = context2d(canvas, { alpha: true });
		this.over = context2d(overlay, { alpha: true });
		// The CPU writes and reads it, never a GPU.
		this.stripCtx = context2d(this.strip, { willReadFrequently: true });
		this.ctx.font = FONT;
		this.labels = new FrameLabels((s) => this.ctx.measureText(s).width);
		this.paint = {
			pixels: new Uint32Array(0),
			tiny: 0,
			match: 0,
			matches: null,
			faded: new Int32Array(0),
		};
	}

	setPalette(palette: Palette): void {
		if (palette === this.palette) return;
		this.palette = palette;
		this.stale = this.namesStale = true;
		this.schedule();
	}

	setFlame(flame: Flame): void {
		if (this.flame?.names !== flame.names || comparable(this.flame) !== comparable(flame))
			this.namesStale = true;
		this.flame = flame;
		this.labels.setNames(flame.names);
		if (this.namesStale) this.unnamed = unnamedFlags(flame.names);
		this.painter.reserve(flame.count);
		this.hovered = -1;
		this.selected = -1;
		this.stale = true;
	}

	setLook(look: CanvasLook): void {
		if (look.color !== this.look.color) this.stale = this.namesStale = true;
		this.look = look;
		this.schedule();
	}

	/** Colours of the frames of the first level, by name; null for none. */
	setBands(bands: Map<string, string> | null): void {
		if (bands === this.bands) return;
		this.bands = bands;
		this.schedule();
	}

	setMatches(matches: Matches | null): void {
		if (matches === this.matches) return;
		this.matches = matches;
		this.stale = true;
		this.schedule();
	}

	setScroll(top: number): void {
		if (top === this.scrollTop) return;
		this.scrollTop = top;
		this.schedule();
	}

	/** The outlined node; -1 for none. */
	setMarks(hovered: number, selected: number): void {
		if (hovered === this.hovered && selected === this.selected) return;
		this.hovered = hovered;
		this.selected = selected;
		this.request(false);
	}

	get hoveredNode(): number {
		return this.hovered;
	}

	resize(width: number, height: number, dpr = window.devicePixelRatio || 1): void {
		this.view.width = width;
		this.view.dpr = dpr;
		this.height = height;
		const w = Math.round(width * dpr);
		const h = Math.round(height * dpr);
		for (const c of [this.canvas, this.overlay]) {
			if (c.width === w && c.height === h) continue;
			c.width = w;
			c.height = h;
			c.style.width = `${width}px`;
			c.style.height = `${height}px`;
		}
		this.draw(); // at once: setting the size cleared the canvas
		this.outlines();
	}

	zoomTo(i: number, animate: boolean): void {
		const f = this.flame;
		if (!f || f.count === 0) return;
		this.paint.faded = new Int32Array(f.levels).fill(-1);
		for (let n = f.parent[i], l = levelOf(f, i) - 1; n >= 0; n = f.parent[n], l--)
			this.paint.faded[l] = n;
		const toX = f.x[i];
		const toW = f.total[i] || f.width || 1;
		const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
		if (animate && !calm) {
			this.animate(toX, toW);
			return;
		}
		this.stop();
		this.view.x = toX;
		this.view.w = toW;
		this.schedule();
	}

	private stop(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		this.moving = false;
	}

	private animate(toX: number, toW: number): void {
		const { view } = this;
		const fromX = view.x;
		const fromW = view.w;
		const began = performance.now();
		this.stop();
		const tick = (now: number) => {
			const t = Math.min(1, Math.max(0, (now - began) / ZOOM_MS));
			const e = 1 - (1 - t) ** 3;
			// Widths change by a constant factor per time; positions follow from the left edge.
			view.w = t === 1 ? toW : fromW * (toW / fromW) ** e;
			const k = fromW === toW ? e : (view.w - fromW) / (toW - fromW);
			view.x = t === 1 ? toX : fromX + (toX - fromX) * k;
			this.moving = t < 1;
			this.frame = this.moving ? requestAnimationFrame(tick) : 0;
			this.render(true);
		};
		this.moving = true;
		this.frame = requestAnimationFrame(tick);
	}

	schedule(): void {
		this.request(true);
	}

	private request(whole: boolean): void {
		this.whole ||= whole;
		if (this.frame) return;
		this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			this.render(this.whole);
		});
	}

	private render(whole: boolean): void {
		const began = performance.now();
		this.whole = false;
		if (whole) this.draw();
		this.outlines();
		this.frames.push(this.spent + performance.now() - began);
		this.framesDrawn++;
		this.spent = 0;
		if (this.frames.length > 2 * FRAMES_KEPT) this.frames.splice(0, FRAMES_KEPT);
	}

	/** Adds script time of handlers and the card to the next frame. */
	addTime(ms: number): void {
		this.spent += ms;
	}

	/** Script time of the last frames in milliseconds, the newest last. */
	frameTimes(): number[] {
		return this.frames.slice(-FRAMES_KEPT);
	}

	dispose(): void {
		this.stop();
	}

	/** The height of all levels, at least that of the viewport. */
	private space(): number {
		return Math.max((this.flame?.levels ?? 0) * FLAME_ROW_H, this.height);
	}

	private levelAt(py: number): number {
		const y = py + this.scrollTop;
		return this.look.orientation === "flame"
			? Math.ceil((this.space() - y) / FLAME_ROW_H) - 1
			: Math.floor(y / FLAME_ROW_H);
	}

	/** The upper edge of a level on the canvas. */
	topOf(level: number): number {
		const y =
			this.look.orientation === "flame"
				? this.space() - (level + 1) * FLAME_ROW_H
				: level * FLAME_ROW_H;
		return y - this.scrollTop;
	}

	/** The node at a point of the canvas; -1 for none, or one too narrow to see. */
	hit(px: number, py: number): number {
		const f = this.flame;
		const { x, w, width } = this.view;
		if (!f || px < 0 || px >= width) return -1;
		const i = nodeAt(f, this.levelAt(py), x + (px / width) * w);
		return i >= 0 && (f.total[i] / w) * width >= MIN_W ? i : -1;
	}

	/** The place of a node on the canvas now. */
	place(i: number): { x: number; y: number; w: number } {
		const f = must(this.flame, "the graph");
		const s = this.view.width / this.view.w;
		return { x: (f.x[i] - this.view.x) * s, y: this.topOf(levelOf(f, i)), w: f.total[i] * s };
	}

	/** The upper left corner of the visible part of a node, on the page. */
	placeOnPage(i: number): { x: number; y: number } {
		const box = this.canvas.getBoundingClientRect();
		const p = this.place(i);
		return { x: box.left + Math.min(Math.max(0, p.x), this.view.width), y: box.top + p.y };
	}

	drawnNodes(): DrawnNode[] {
		const p = this.painter;
		const f = this.flame;
		if (!f) return [];
		return Array.from(p.index.subarray(0, p.n), (index, k) => ({
			index,
			x: p.x[k],
			y: this.topOf(levelOf(f, index)),
			w: p.w[k],
			color: pixelColor(this.paint.pixels[index]),
		}));
	}

	private refresh(f: Flame): void {
		if (!this.stale) return;
		this.stale = false;
		const { palette, matches } = this;
		if (this.namesStale) this.own = namePixels(f, palette, this.look.color);
		this.namesStale = false;
		this.paint.pixels = nodePixels(f, palette, matches, this.own);
		this.paint.tiny = pixel(palette.tiny);
		this.paint.match = pixel(palette.match);
		this.paint.matches = matches;
	}

	private draw(): void {
		const f = this.flame;
		const { view, ctx, painter } = this;
		const began = performance.now();
		ctx.setTransform(1, 0, 0, 1, 0, 0);
		ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
		painter.n = 0;
		if (!f || f.count === 0 || view.width <= 0 || this.paint.faded.length < f.levels) return;
		this.refresh(f);
		const a = this.levelAt(0);
		const b = this.levelAt(this.height - 0.01);
		const first = Math.max(0, Math.min(a, b));
		const last = Math.min(f.levels - 1, Math.max(a, b));
		if (last >= first) {
			painter.begin(this.canvas.width, last - first + 1);
			for (let l = first; l <= last; l++) painter.level(f, l, l - first, view, this.paint);
			this.blit(first, last);
			this.hatches(f, first);
			this.groups(f);
			this.texts(f, first);
		}
		this.drawMs = performance.now() - began;
	}

	/** Stretches each row of pixels to the height of a frame. */
	private blit(first: number, last: number): void {
		const { ctx, painter, strip } = this;
		const { dpr } = this.view;
		if (strip.width !== painter.columns || strip.height !== painter.rows) {
			strip.width = painter.columns;
			strip.height = painter.rows;
		}
		const image = new ImageData(painter.bytes, painter.columns, painter.rows);
		this.stripCtx.putImageData(image, 0, 0);
		ctx.imageSmoothingEnabled = false;
		for (let l = first; l <= last; l++) {
			const y = Math.round(this.topOf(l) * dpr);
			const h = Math.round((this.topOf(l) + FLAME_ROW_H - 1) * dpr) - y;
			ctx.drawImage(strip, 0, l - first, strip.width, 1, 0, y, strip.width, h);
		}
	}

	/** One step of the lines, in pixels of the canvas; they go on from tile to tile. */
	private hatch(): CanvasPattern | null {
		const key = `${this.palette.hatch} ${this.view.dpr}`;
		if (this.tile.key === key) return this.tile.pattern;
		const side = Math.max(4, Math.round(HATCH_STEP * this.view.dpr));
		const tile = document.createElement("canvas");
		tile.width = tile.height = side;
		const ctx = context2d(tile);
		ctx.strokeStyle = this.palette.hatch;
		ctx.lineWidth = HATCH_LINE * this.view.dpr;
		for (const x of [-side, 0, side]) {
			ctx.moveTo(x - 1, side + 1);
			ctx.lineTo(x + side + 1, -1);
		}
		ctx.stroke();
		this.tile = { key, pattern: this.ctx.createPattern(tile, "repeat") };
		return this.tile.pattern;
	}

	/** Lines across the frames without names, where a frame is as wide as a text. */
	private hatches(f: Flame, first: number): void {
		const { ctx, painter, unnamed } = this;
		const { dpr } = this.view;
		const pattern = unnamed && this.hatch();
		if (!unnamed || !pattern) return;
		const least = this.moving ? MOVING_LABEL_MIN_W : LABEL_MIN_W;
		ctx.setTransform(1, 0, 0, 1, 0, 0);
		ctx.fillStyle = pattern;
		let level = first;
		for (let k = 0; k < painter.n; k++) {
			const i = painter.index[k];
			if (painter.w[k] < least || !unnamed[f.name[i]]) continue;
			while (i >= f.start[level + 1]) level++;
			const y = Math.round(this.topOf(level) * dpr);
			const x = Math.max(0, Math.round(painter.x[k] * dpr));
			const right = Math.min(this.canvas.width, Math.round((painter.x[k] + painter.w[k] - 1) * dpr));
			ctx.fillRect(x, y, right - x, Math.round((FLAME_ROW_H - 1) * dpr));
		}
	}

	/** Bands of colour at the lower edge of the frames that are groups. */
	private groups(f: Flame): void {
		const { ctx, painter, bands } = this;
		const { dpr } = this.view;
		this.drawnBands = [];
		if (!bands || f.levels < 2) return;
		ctx.setTransform(1, 0, 0, 1, 0, 0);
		const y = Math.round((this.topOf(1) + FLAME_ROW_H - 1 - BAND_H) * dpr);
		for (let k = 0; k < painter.n; k++) {
			const i = painter.index[k];
			const color = i >= f.start[1] && i < f.start[2] && bands.get(f.names[f.name[i]]);
			if (!color) continue;
			const x = Math.max(0, Math.round(painter.x[k] * dpr));
			const right = Math.round((painter.x[k] + painter.w[k] - 1) * dpr);
			ctx.fillStyle = color;
			ctx.fillRect(x, y, Math.min(this.canvas.width, right) - x, Math.round(BAND_H * dpr));
			this.drawnBands.push([f.names[f.name[i]], color]);
		}
	}

	private texts(f: Flame, first: number): void {
		const { ctx, painter, labels, matches } = this;
		const { width, dpr } = this.view;
		const least = this.moving ? MOVING_LABEL_MIN_W : LABEL_MIN_W;
		ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
		ctx.font = FONT;
		ctx.textBaseline = "middle";
		for (let dim = 0; dim < (matches ? 2 : 1); dim++) {
			ctx.fillStyle = dim ? this.palette.textDim : this.palette.text;
			let level = first;
			let y = this.topOf(level) + FLAME_ROW_H / 2;
			for (let k = 0; k < painter.n; k++) {
				if (painter.w[k] < least) continue;
				const i = painter.index[k];
				while (i >= f.start[level + 1]) y = this.topOf(++level) + FLAME_ROW_H / 2;
				const left = Math.max(0, painter.x[k]);
				const visible = Math.min(width, painter.x[k] + painter.w[k]) - left;
				if (visible < least) continue;
				const name = f.name[i];
				if (matches && (matches.byName[name] ? 0 : 1) !== dim) continue;
				const text = labels.fit(name, visible - 1 - 2 * PAD);
				if (text) ctx.fillText(text, left + PAD, y);
			}
		}
	}

	private outlines(): void {
		const { over } = this;
		over.setTransform(1, 0, 0, 1, 0, 0);
		over.clearRect(0, 0, this.overlay.width, this.overlay.height);
		over.setTransform(this.view.dpr, 0, 0, this.view.dpr, 0, 0);
		over.strokeStyle = this.palette.outline;
		this.outline(this.selected, 2);
		this.outline(this.hovered, 1);
	}

	private outline(i: number, weight: number): void {
		const f = this.flame;
		if (!f || i < 0 || i >= f.count) return;
		const d = this.place(i);
		const left = Math.max(0, d.x);
		const w = Math.min(this.view.width, d.x + d.w) - left;
		if (w <= 0 || d.w < MIN_W) return;
		this.over.lineWidth = weight;
		const h = weight / 2;
		this.over.strokeRect(
			left + h,
			d.y + h,
			Math.max(1, w - weight - (d.w > 3 ? 1 : 0)),
			FLAME_ROW_H - 1 - weight,
		);
	}
}
