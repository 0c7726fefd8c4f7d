// Draws the heatmap. The cells are an image with one pixel each that is stretched over the plot, so a
// frame costs the same for ten cells and for 50,000; what only changes with the answer is kept as one
// picture, over which the pointer's cell and the selected one are outlined.
import { context2d, must } from "../shared/must";
import type { Theme } from "../shared/theme";
import { type Window, zoneAt } from "../shared/timerange";
import type { Heat } from "./cells";
import { boxOf, fitted, type Grid, gridOf, ticksOf, timeAt, xOf } from "./grid";
import { colorIndex, HEAT_PALETTES } from "./palette";

export interface HeatContent {
	heat: Heat;
	theme: Theme;
	/** An open part of the window; null for none. */
	mark: Window | null;
}

/** What changes with the pointer and the keyboard; cells, -1 for none. */
export interface Marks {
	hover: number;
	selected: number;
	/** The left and right edge of a drag; null for none. */
	drag: [number, number] | null;
}

const HEAT_FONT = "11px system-ui, sans-serif";
const FRAMES_KEPT = 400;
/** Half of the longest text of a tick. */
const TICK_TEXT_HALF = 28;
const TICK_H = 4;

/** What the columns cover: the first one begins a step before its time. */
export const covered = ({ times, step }: Heat): Window => ({
	start: times[0] - step,
	end: times[times.length - 1],
});

export class HeatCanvas {
	framesDrawn = 0;
	private frames: number[] = [];
	private picture = document.createElement("canvas");
	private cells = document.createElement("canvas");
	private content: HeatContent | null = null;
	private marks: Marks = { hover: -1, selected: -1, drag: null };
	private width = 0;
	private shape: Grid | null = null;
	private stale = false;
	private pending = 0;
	private spent = 0;

	constructor(private canvas: HTMLCanvasElement) {}

	get grid(): Grid | null {
		return this.shape;
	}

	frameTimes(): number[] {
		return this.frames.slice(-FRAMES_KEPT);
	}

	/** Time of the pointer's handlers, which counts for the next frame. */
	addTime(ms: number): void {
		this.spent += ms;
	}

	dispose(): void {
		cancelAnimationFrame(this.pending);
	}

	setContent(content: HeatContent): void {
		const before = this.content;
		this.content = content;
		if (before?.heat !== content.heat || before.theme !== content.theme) this.paintCells(content);
		this.reshape();
	}

	resize(width: number): void {
		if (width === this.width) return;
		this.width = width;
		this.reshape();
	}

	setMarks(marks: Partial<Marks>): void {
		this.marks = { ...this.marks, ...marks };
		this.schedule();
	}

	/** The time at a place. */
	timeAt(x: number): number {
		return timeAt(must(this.shape, "the grid"), covered(must(this.content, "the heatmap").heat), x);
	}

	private reshape(): void {
		if (!this.content || this.width === 0) return;
		const { rows, times } = this.content.heat;
		const ctx = context2d(this.canvas);
		ctx.font = HEAT_FONT;
		const label = rows.reduce((w, r) => Math.max(w, ctx.measureText(r.label).width), 0);
		this.shape = gridOf(rows.length, times.length, this.width, label);
		const { height } = this.shape;
		for (const c of [this.canvas, this.picture]) {
			c.width = Math.round(this.width * devicePixelRatio);
			c.height = Math.round(height * devicePixelRatio);
		}
		this.canvas.style.width = `${this.width}px`;
		this.canvas.style.height = `${height}px`;
		this.stale = true;
		this.draw(); // a canvas with a new size is empty until then
	}

	private schedule(): void {
		if (this.pending) return;
		this.pending = requestAnimationFrame(() => {
			this.pending = 0;
			this.draw();
		});
	}

	/** One pixel per cell; those without a profile stay transparent. */
	private paintCells({ heat, theme }: HeatContent): void {
		const { values, max, times, rows } = heat;
		const { pixels } = HEAT_PALETTES[theme];
		const [w, h] = [times.length, Math.max(1, rows.length)];
		this.cells.width = w;
		this.cells.height = h;
		const ctx = context2d(this.cells);
		const image = ctx.createImageData(w, h);
		const out = new Uint32Array(image.data.buffer);
		for (let i = 0; i < values.length; i++)
			if (!Number.isNaN(values[i])) out[i] = pixels[colorIndex(values[i], max)];
		ctx.putImageData(image, 0, 0);
	}

	private draw(): void {
		const g = this.shape;
		if (!g || !this.content) return;
		const began = performance.now();
		if (this.stale) this.paintPicture(g, this.content);
		this.stale = false;
		const ctx = context2d(this.canvas);
		ctx.setTransform(1, 0, 0, 1, 0, 0);
		ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
		ctx.drawImage(this.picture, 0, 0);
		ctx.scale(devicePixelRatio, devicePixelRatio);
		this.paintMarks(ctx, g, this.content);
		this.frames.push(performance.now() - began + this.spent);
		if (this.frames.length > 2 * FRAMES_KEPT) this.frames = this.frameTimes();
		this.spent = 0;
		this.framesDrawn++;
	}

	private paintPicture(g: Grid, { heat, theme, mark }: HeatContent): void {
		const ctx = context2d(this.picture);
		const { text } = HEAT_PALETTES[theme];
		ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
		ctx.clearRect(0, 0, this.width, g.height);
		ctx.imageSmoothingEnabled = false;
		const bottom = g.rows * g.rowHeight;
		ctx.drawImage(this.cells, 0, 0, g.columns, g.rows, g.left, 0, g.width, bottom);
		for (let r = 1; r < g.rows; r++) ctx.clearRect(g.left, r * g.rowHeight - 1, g.width, 1);
		ctx.font = HEAT_FONT;
		ctx.fillStyle = text;
		ctx.textBaseline = "middle";
		const measure = (t: string) => ctx.measureText(t).width;
		heat.rows.forEach((row, r) => {
			const label = fitted(row.label, g.left - 6, measure);
			ctx.fillText(label, 0, (r + 0.5) * g.rowHeight);
		});
		ctx.textBaseline = "alphabetic";
		const whole = covered(heat);
		const zone = zoneAt(whole.end);
		if (measure(zone) < g.left - TICK_TEXT_HALF) ctx.fillText(zone, 0, bottom + TICK_H + 13);
		ctx.textAlign = "center";
		for (const { x, text: label } of ticksOf(g, whole)) {
			ctx.fillRect(x, bottom, 1, TICK_H);
			const half = measure(label) / 2;
			ctx.fillText(label, Math.min(this.width - half, x), bottom + TICK_H + 13);
		}
		ctx.textAlign = "left";
		if (mark) this.paintOpen(ctx, g, whole, mark, theme);
	}

	/** The open part of the window, by its edges: the cells in it keep their colours. */
	private paintOpen(
		ctx: CanvasRenderingContext2D,
		g: Grid,
		whole: Window,
		mark: Window,
		theme: Theme,
	): void {
		const bottom = g.rows * g.rowHeight;
		const clamp = (t: number) => xOf(g, whole, Math.min(whole.end, Math.max(whole.start, t)));
		const [a, b] = [clamp(mark.start), clamp(mark.end)];
		ctx.fillStyle = HEAT_PALETTES[theme].mark;
		ctx.fillRect(a - 1, 0, 2, bottom);
		ctx.fillRect(b - 1, 0, 2, bottom);
		ctx.fillRect(a, bottom, Math.max(1, b - a), 3);
	}

	private paintMarks(ctx: CanvasRenderingContext2D, g: Grid, { theme }: HeatContent): void {
		const { hover, selected, drag } = this.marks;
		const p = HEAT_PALETTES[theme];
		const outline = (cell: number, width: number) => {
			if (cell < 0 || cell >= g.rows * g.columns) return;
			const { x, y, w, h } = boxOf(g, cell);
			// A cell may be a pixel wide: the outline is around it.
			ctx.strokeStyle = p.outline;
			ctx.lineWidth = width;
			ctx.strokeRect(x - width / 2, y - width / 2, w + width, h - 1 + width);
		};
		outline(hover, 1);
		outline(selected, 2);
		if (!drag) return;
		const [a, b] = [Math.min(...drag), Math.max(...drag)];
		ctx.globalAlpha = 0.25;
		ctx.fillStyle = p.mark;
		ctx.fillRect(a, 0, b - a, g.rows * g.rowHeight);
		ctx.globalAlpha = 1;
	}
}
