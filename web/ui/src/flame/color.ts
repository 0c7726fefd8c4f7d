// Colours of the flame graph. A package has the same hue in every graph and on every machine; all
// hues have the same lightness (OKLCH), so that no package stands out.
import { must } from "../shared/must";
import { unnamedOf } from "../shared/symbols";
import { comparable, costChange, fileOf, type Flame, FOLDED, hashName } from "./layout";
import type { FlameLook } from "./look";
import { packageOf } from "./names";
import type { Matches } from "./search";

export type Rgb = [number, number, number];

const clamp01 = (v: number) => Math.min(1, Math.max(0, v));
const gamma = (v: number) => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);

export function oklch(l: number, c: number, hueDegrees: number): Rgb {
	const h = (hueDegrees * Math.PI) / 180;
	return oklab(l, c * Math.cos(h), c * Math.sin(h));
}

function oklab(L: number, a: number, b: number): Rgb {
	const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
	return [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
	].map((v) => Math.round(255 * clamp01(gamma(clamp01(v))))) as Rgb;
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r},${g},${b})`;

export interface Palette {
	hues: string[][];
	neutral: string;
	runtime: string[];
	/** Frames without names, and the lines across them, which are no darker than what text needs. */
	unnamed: string;
	hatch: string;
	dim: string;
	match: string;
	tiny: string;
	text: string;
	textDim: string;
	outline: string;
	/** Index DIFF_STEPS is no change, 0 vanished, 2*DIFF_STEPS new. */
	diff: string[];
	/** From next to nothing to all of it. */
	heat: string[];
}

const HUE_STEP = 137.508; // the golden angle: neighbours in the list differ most

/** The colour of the line of rank `i`; -1: of what has none of its own. */
export function seriesColor(i: number, theme: "light" | "dark"): string {
	if (i < 0) return theme === "dark" ? "rgb(125,135,150)" : "rgb(140,149,162)";
	const hue = (38 + i * HUE_STEP) % 360;
	return css(theme === "dark" ? oklch(0.76, 0.125, hue) : oklch(0.6, 0.145, hue));
}

/** Orange and blue: also those who do not tell red from green tell them apart. */
const MORE_HUE = 58;
const LESS_HUE = 252;
/** Relative changes below this are no change. */
const UNCHANGED = 0.05;

const HUES = 30;
const SHADES = 3;
const DIFF_STEPS = 12;
const HEAT_STEPS = 24;
/** The share at which heat begins to show. */
const HEAT_FROM = 0.001;

/** Lightness, chroma per theme; the text on top keeps a contrast of at least 4.5. */
const THEME = {
	light: {
		l: 0.835,
		c: 0.085,
		shade: 0.022,
		neutral: 0.88,
		runtime: 0.84,
		unnamed: 0.8,
		hatch: "rgba(255,255,255,0.5)",
		dim: 0.93,
		match: 0.76,
		tiny: 0.8,
		text: "#1b1f27",
		textDim: "#5f6773",
		outline: "#11151c",
		diffL: 0.9,
		up: 0.74,
		upC: 0.155,
		down: 0.7,
		downC: 0.125,
	},
	dark: {
		l: 0.475,
		c: 0.078,
		shade: 0.022,
		neutral: 0.36,
		runtime: 0.42,
		unnamed: 0.44,
		hatch: "rgba(0,0,0,0.3)",
		dim: 0.29,
		match: 0.535,
		tiny: 0.36,
		text: "#f2f3f5",
		textDim: "#9aa2b0",
		outline: "#ffffff",
		diffL: 0.37,
		up: 0.54,
		upC: 0.125,
		down: 0.52,
		downC: 0.13,
	},
};

export function makePalette(theme: "light" | "dark"): Palette {
	const t = THEME[theme];
	const shades = (l: number, c: number, h: number) =>
		Array.from({ length: SHADES }, (_, s) => css(oklch(l + (s - 1) * t.shade, c, h)));
	const mix = (k: number): string => {
		const end = k > 0 ? oklchLab(t.up, t.upC, MORE_HUE) : oklchLab(t.down, t.downC, LESS_HUE);
		const w = Math.abs(k);
		return css(oklab(t.diffL + (end[0] - t.diffL) * w, end[1] * w, end[2] * w));
	};
	return {
		hues: Array.from({ length: HUES }, (_, i) => shades(t.l, t.c, (360 * i) / HUES + 12)),
		neutral: css(oklch(t.neutral, 0.006, 260)),
		runtime: shades(t.runtime, 0.018, 255),
		unnamed: css(oklch(t.unnamed, 0.012, 80)),
		hatch: t.hatch,
		dim: css(oklch(t.dim, 0.006, 260)),
		match: css(oklch(t.match, 0.15, 52)),
		tiny: css(oklch(t.tiny, 0.012, 255)),
		text: t.text,
		textDim: t.textDim,
		outline: t.outline,
		diff: Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) =>
			mix((i - DIFF_STEPS) / DIFF_STEPS),
		),
		heat: Array.from({ length: HEAT_STEPS + 1 }, (_, i) => {
			const k = i / HEAT_STEPS;
			return css(oklch(t.diffL + (t.up - t.diffL) * k, 0.012 + 0.15 * k, 95 - 68 * k));
		}),
	};
}

export const PALETTES = { light: makePalette("light"), dark: makePalette("dark") };

function oklchLab(l: number, c: number, h: number): [number, number, number] {
	const r = (h * Math.PI) / 180;
	return [l, c * Math.cos(r), c * Math.sin(r)];
}

export function isRuntime(pkg: string): boolean {
	return pkg === "runtime" || pkg.startsWith("runtime/") || pkg === "libc" || pkg === "syscall";
}

/** Colours of names by their group; the root and folded nodes are neutral, what has no name is grey. */
function colorsBy(names: string[], p: Palette, groupOf: (i: number) => string): string[] {
	const rows = new Map<string, string[]>();
	return names.map((name, i) => {
		if ((i === 0 && name === "total") || name === FOLDED || !name) return p.neutral;
		if (unnamedOf(name)) return p.unnamed;
		const group = groupOf(i);
		let row = rows.get(group);
		if (!row) {
			row = isRuntime(group) ? p.runtime : p.hues[hashName(group) % HUES];
			rows.set(group, row);
		}
		return row[hashName(name) % SHADES];
	});
}

/** Colours by package. */
export function nameColors(names: string[], p: Palette): string[] {
	return colorsBy(names, p, (i) => packageOf(names[i]));
}

/** Colours by file, or by package if no file is known. */
export function fileColors(f: Flame, p: Palette): string[] {
	return colorsBy(f.names, p, (i) => fileOf(f, i) || packageOf(f.names[i]));
}

function diffStep(change: number): number {
	const size = Math.min(1, Math.abs(change));
	const k = size < UNCHANGED ? 0 : Math.sign(change) * Math.sqrt(size);
	return Math.round(k * DIFF_STEPS) + DIFF_STEPS;
}

/** The colour of a change in -1..1; small changes already show. */
export function diffColor(change: number, p: Palette): string {
	return p.diff[diffStep(change)];
}

/** The step of heat of a share in 0..1; a tenth of all is two thirds of the way. */
function heatStep(share: number): number {
	if (!(share > HEAT_FROM)) return 0;
	return Math.round(HEAT_STEPS * Math.min(1, 1 - Math.log(share) / Math.log(HEAT_FROM)));
}

export function heatColor(share: number, p: Palette): string {
	return p.heat[heatStep(share)];
}

/** A colour as a pixel: bytes red first, as one number in the machine's byte order. */
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

export function pixel(color: string, alpha = 255): number {
	const [r, g, b] = color.startsWith("#")
		? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
		: must(color.match(/\d+/g), "a number of a colour").map(Number);
	return LITTLE_ENDIAN
		? ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0
		: ((r << 24) | (g << 16) | (b << 8) | alpha) >>> 0;
}

export function pixelColor(v: number): string {
	return LITTLE_ENDIAN
		? css([v & 255, (v >> 8) & 255, (v >> 16) & 255])
		: css([v >>> 24, (v >> 16) & 255, (v >> 8) & 255]);
}

/** Which names are none: addresses and binaries. Null if all are names. */
export function unnamedFlags(names: string[]): Uint8Array | null {
	const flags = Uint8Array.from(names, (n) => (unnamedOf(n) ? 1 : 0));
	return flags.includes(1) ? flags : null;
}

/** The pixel of every name. */
export function namePixels(f: Flame, p: Palette, by: FlameLook["color"]): Uint32Array {
	const colors =
		comparable(f) || by === "share"
			? []
			: by === "file"
				? fileColors(f, p)
				: nameColors(f.names, p);
	return Uint32Array.from(colors, (c) => pixel(c));
}

/** The pixel of every node, computed once for all frames. */
export function nodePixels(
	f: Flame,
	p: Palette,
	matches: Matches | null,
	/** The result of namePixels for the same palette. */
	own: Uint32Array,
): Uint32Array {
	const out = new Uint32Array(f.count);
	const dim = pixel(p.dim);
	const match = pixel(p.match);
	const diff = comparable(f);
	const steps = (diff ? p.diff : p.heat).map((c) => pixel(c));
	for (let i = 0; i < f.count; i++) {
		const name = f.name[i];
		if (matches && !matches.byName[name]) out[i] = dim;
		else if (matches && !diff) out[i] = match;
		else if (diff) out[i] = steps[diffStep(costChange(f, i))];
		else out[i] = own.length ? own[name] : steps[heatStep(f.total[i] / f.width)];
	}
	return out;
}
