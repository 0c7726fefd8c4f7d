// The flame graph on a canvas. It owns the viewport (a span of x, a scroll offset), the drawing
// and hit testing; the component around it owns what is selected and searched.
//
// A frame costs what is visible: per level a binary search finds the first node, and nodes
// narrower than half a pixel are not drawn one by one but as one faint run, so that 100,000
// nodes draw about as many rectangles as the canvas has room for.
import { bareName, diffColor, nameColors, shortName, type Palette } from "./color";
import { firstEndingAfter, nodeAt, shareChange, type Flame } from "./layout";
import type { Matches } from "./search";

export const ROW_H = 19;
const MIN_W = 0.5;
const LABEL_MIN_W = 18;
const PAD = 4;
const ZOOM_MS = 190;
const FONT = "11.5px system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";

export interface DrawnNode {
	index: number;
	x: number;
	y: number;
	w: number;
}

export class FlameCanvas {
	private ctx: CanvasRenderingContext2D;
	private flame: Flame | null = null;
	private palette: Palette;
	private colors: string[] = [];
	private labels: string[] = [];
	private bareLabels: string[] = [];
	private matches: Matches | null = null;
	private vx = 0;
	private vw = 1;
	private width = 0;
	private height = 0;
	private scrollTop = 0;
	private frame = 0;
	private ancestors = new Set<number>();
	private charW = new Float64Array(128);
	private wideW = 8;
	private drawn: DrawnNode[] = [];
	hovered = -1;
	selected = -1;
	drawMs = 0;

	constructor(
		private canvas: HTMLCanvasElement,
		palette: Palette,
	) {
		this.ctx = canvas.getContext("2d", { alpha: true })!;
		this.palette = palette;
		this.measureFont();
	}

	private measureFont(): void {
		this.ctx.font = FONT;
		for (let c = 32; c < 127; c++)
			this.charW[c] = this.ctx.measureText(String.fromCharCode(c)).width;
		this.wideW = this.ctx.measureText("…").width;
	}

	setPalette(palette: Palette): void {
		this.palette = palette;
		this.recolor();
		this.schedule();
	}

	setFlame(flame: Flame): void {
		this.flame = flame;
		this.labels = flame.names.map(shortName);
		this.bareLabels = flame.names.map(bareName);
		this.hovered = -1;
		this.selected = -1;
		this.recolor();
		this.zoomTo(0, false);
	}

	/** The columns of the same flame changed (the meaning of widths). */
	relayout(zoomed: number): void {
		this.zoomTo(zoomed, false);
	}

	private recolor(): void {
		this.colors =
			this.flame && !this.flame.diff ? nameColors(this.flame.names, this.palette) : [];
	}

	setMatches(matches: Matches | null): void {
		this.matches = matches;
		this.schedule();
	}

	setScroll(top: number): void {
		this.scrollTop = top;
		this.schedule();
	}

	resize(width: number, height: number): void {
		const dpr = window.devicePixelRatio || 1;
		this.width = width;
		this.height = height;
		const w = Math.round(width * dpr);
		const h = Math.round(height * dpr);
		if (this.canvas.width !== w || this.canvas.height !== h) {
			this.canvas.width = w;
			this.canvas.height = h;
			this.canvas.style.width = `${width}px`;
			this.canvas.style.height = `${height}px`;
		}
		this.draw(); // at once: setting the size cleared the canvas
	}

	zoomTo(i: number, animate: boolean): void {
		const f = this.flame;
		if (!f || f.count === 0) return;
		this.ancestors.clear();
		for (let n = f.parent[i]; n >= 0; n = f.parent[n]) this.ancestors.add(n);
		const toX = f.x[i];
		const toW = f.total[i] || f.width || 1;
		const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
		if (!animate || calm) {
			this.vx = toX;
			this.vw = toW;
			this.schedule();
			return;
		}
		this.animate(toX, toW);
	}

	private animate(toX: number, toW: number): void {
		const fromX = this.vx;
		const fromW = this.vw;
		const began = performance.now();
		cancelAnimationFrame(this.frame);
		const tick = (now: number) => {
			const t = Math.min(1, Math.max(0, (now - began) / ZOOM_MS));
			const e = 1 - (1 - t) ** 3;
			// Widths change by a constant factor per time; positions follow the left edge.
			this.vw = t === 1 ? toW : fromW * (toW / fromW) ** e;
			const k = fromW === toW ? e : (this.vw - fromW) / (toW - fromW);
			this.vx = t === 1 ? toX : fromX + (toX - fromX) * k;
			this.frame = 0;
			this.draw();
			if (t < 1) this.frame = requestAnimationFrame(tick);
		};
		this.frame = requestAnimationFrame(tick);
	}

	schedule(): void {
		if (this.frame) return;
		this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			this.draw();
		});
	}

	dispose(): void {
		cancelAnimationFrame(this.frame);
	}

	/** The node at a point of the canvas; -1 for none, or one too narrow to see. */
	hit(px: number, py: number): number {
		const f = this.flame;
		if (!f || px < 0 || px >= this.width) return -1;
		const level = Math.floor((py + this.scrollTop) / ROW_H);
		const i = nodeAt(f, level, this.vx + (px / this.width) * this.vw);
		return i >= 0 && (f.total[i] / this.vw) * this.width >= MIN_W ? i : -1;
	}

	/** Where a node lies on the canvas now. */
	place(i: number, level: number): { x: number; y: number; w: number } {
		const f = this.flame!;
		const s = this.width / this.vw;
		return { x: (f.x[i] - this.vx) * s, y: level * ROW_H - this.scrollTop, w: f.total[i] * s };
	}

	drawnNodes(): readonly DrawnNode[] {
		return this.drawn;
	}

	private draw(): void {
		const f = this.flame;
		const began = performance.now();
		const dpr = window.devicePixelRatio || 1;
		this.ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
		this.ctx.clearRect(0, 0, this.width, this.height);
		this.drawn = [];
		if (!f || this.width <= 0) return;
		this.ctx.font = FONT;
		this.ctx.textBaseline = "middle";
		const first = Math.max(0, Math.floor(this.scrollTop / ROW_H));
		const last = Math.min(f.levels - 1, Math.floor((this.scrollTop + this.height) / ROW_H));
		for (let l = first; l <= last; l++) this.drawLevel(f, l);
		this.outline(f, this.selected, 2);
		this.outline(f, this.hovered, 1);
		this.drawMs = performance.now() - began;
	}

	private drawLevel(f: Flame, level: number): void {
		const scale = this.width / this.vw;
		const y = level * ROW_H - this.scrollTop;
		const right = this.vx + this.vw;
		const end = f.start[level + 1];
		let runX = -1;
		let runEnd = -1;
		let marked = -1;
		const marks: number[] = [];
		const flush = () => {
			if (runEnd - runX >= MIN_W) {
				this.ctx.fillStyle = this.palette.tiny;
				this.ctx.fillRect(runX, y, runEnd - runX, ROW_H - 1);
			}
			runX = -1;
		};
		for (let i = firstEndingAfter(f, level, this.vx); i < end && f.x[i] < right; i++) {
			const x = (f.x[i] - this.vx) * scale;
			const w = f.total[i] * scale;
			if (w < MIN_W) {
				if (runX >= 0 && x - runEnd > 1) flush();
				if (runX < 0) runX = x;
				runEnd = x + w;
				// A match too narrow to draw still leaves a mark, one per pixel.
				if (this.matches?.byName[f.name[i]] && x - marked >= 1) marks.push((marked = x));
				continue;
			}
			if (runX >= 0) flush();
			this.drawn.push({ index: i, x, y, w });
			this.drawNode(f, i, x, y, w);
		}
		if (runX >= 0) flush();
		this.ctx.fillStyle = this.palette.match;
		for (const x of marks) this.ctx.fillRect(x, y, 1, ROW_H - 1);
	}

	private drawNode(f: Flame, i: number, x: number, y: number, w: number): void {
		const ctx = this.ctx;
		const left = Math.max(0, x);
		const visible = Math.min(this.width, x + w) - left;
		// One pixel between neighbours, as long as that leaves something to see.
		const gap = w > 3 ? 1 : w > 1.2 ? 0.4 : 0;
		const name = f.name[i];
		const dimmed = this.matches !== null && !this.matches.byName[name];
		ctx.globalAlpha = this.ancestors.has(i) ? 0.55 : 1;
		ctx.fillStyle = dimmed
			? this.palette.dim
			: this.matches && !f.diff
				? this.palette.match
				: f.diff
					? diffColor(shareChange(f, i), this.palette)
					: this.colors[name];
		ctx.fillRect(left, y, visible - gap, ROW_H - 1);
		ctx.globalAlpha = 1;
		if (visible < LABEL_MIN_W) return;
		ctx.fillStyle = dimmed ? this.palette.textDim : this.palette.text;
		const room = visible - gap - 2 * PAD;
		const text = this.fit(name, room);
		if (text) ctx.fillText(text, left + PAD, y + ROW_H / 2);
	}

	private textWidth(s: string): number {
		let w = 0;
		for (let k = 0; k < s.length; k++) {
			const c = s.charCodeAt(k);
			w += c < 128 ? this.charW[c] : this.wideW;
		}
		return w;
	}

	/** As much of the name as fits: in full, without its package's path, within it, or cut. */
	private fit(name: number, room: number): string {
		const full = this.flame!.names[name];
		// No letter is narrower than this on average, so most long names need no measuring.
		const fits = (s: string) => s.length * 3 < room && this.textWidth(s) <= room;
		if (fits(full)) return full;
		if (fits(this.labels[name])) return this.labels[name];
		const bare = this.bareLabels[name];
		if (fits(bare)) return bare;
		const method = bare.slice(bare.lastIndexOf(").") + 2);
		if (method.length + 2 < bare.length && fits(method)) return method;
		let w = this.wideW;
		let cut = 0;
		while (cut < bare.length && w <= room) {
			const c = bare.charCodeAt(cut++);
			w += c < 128 ? this.charW[c] : this.wideW;
		}
		return cut > 2 ? bare.slice(0, cut - 1) + "…" : "";
	}

	private outline(f: Flame, i: number, weight: number): void {
		if (i < 0 || i >= f.count) return;
		const d = this.drawn.find((n) => n.index === i);
		if (!d) return;
		const left = Math.max(0, d.x);
		const w = Math.min(this.width, d.x + d.w) - left;
		this.ctx.strokeStyle = this.palette.outline;
		this.ctx.lineWidth = weight;
		const h = weight / 2;
		this.ctx.strokeRect(
			left + h,
			d.y + h,
			Math.max(1, w - weight - (d.w > 3 ? 1 : 0)),
			ROW_H - 1 - weight,
		);
	}
}
