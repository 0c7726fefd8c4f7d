// Colours of the flame graph. A package keeps its hue in every graph and on every machine; hues
// are spread at equal lightness (OKLCH), so that no package shouts.
import { hashName } from "./layout";

export type Rgb = [number, number, number];

/** The package, module or namespace a function belongs to. */
export function packageOf(name: string): string {
	// Type parameters and arguments may hold anything, also slashes and dots.
	const paren = name.search(/[[(<]/);
	const head = paren > 0 ? name.slice(0, paren) : name;
	if (head.includes("::")) return head.split("::")[0];
	if (head.endsWith(".")) return head.slice(0, -1); // pkg.(*T).Method
	const slash = head.lastIndexOf("/");
	const dot = head.indexOf(".", slash + 1);
	if (dot > 0 && !head.startsWith("/")) return head.slice(0, dot);
	if (slash >= 0) return head.slice(slash + 1); // a mapping or a file
	const under = head.indexOf("_", 1);
	return under > 0 ? head.slice(0, under) : head; // C: head_append is of head
}

/** The name without the directory of its package: json.Marshal. */
export function shortName(name: string): string {
	const paren = name.search(/[[(<]/);
	const head = paren > 0 ? name.slice(0, paren) : name;
	return name.slice(head.lastIndexOf("/") + 1);
}

/** The name within its package: (*Decoder).Decode; the colour tells the package. */
export function bareName(name: string): string {
	const short = shortName(name);
	const pkg = packageOf(name);
	const last = pkg.slice(pkg.lastIndexOf("/") + 1);
	for (const mark of [".", "::"])
		if (short.startsWith(last + mark)) return short.slice(last.length + mark.length);
	return short;
}

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
	dim: string;
	match: string;
	tiny: string;
	text: string;
	textDim: string;
	outline: string;
	/** Index DIFF_STEPS is no change, 0 vanished, 2*DIFF_STEPS new. */
	diff: string[];
}

const HUES = 30;
const SHADES = 3;
const DIFF_STEPS = 12;

/** Lightness, chroma per theme; the text on top keeps a contrast of at least 4.5. */
const THEME = {
	light: {
		l: 0.835,
		c: 0.085,
		shade: 0.022,
		neutral: 0.88,
		runtime: 0.84,
		dim: 0.93,
		match: 0.76,
		tiny: 0.8,
		text: "#1b1f27",
		textDim: "#8a919d",
		outline: "#11151c",
		diffL: 0.9,
		up: 0.7,
		down: 0.76,
	},
	dark: {
		l: 0.475,
		c: 0.078,
		shade: 0.022,
		neutral: 0.36,
		runtime: 0.42,
		dim: 0.29,
		match: 0.535,
		tiny: 0.36,
		text: "#f2f3f5",
		textDim: "#8b93a1",
		outline: "#ffffff",
		diffL: 0.37,
		up: 0.53,
		down: 0.52,
	},
};

export function makePalette(theme: "light" | "dark"): Palette {
	const t = THEME[theme];
	const shades = (l: number, c: number, h: number) =>
		Array.from({ length: SHADES }, (_, s) => css(oklch(l + (s - 1) * t.shade, c, h)));
	const mix = (k: number): string => {
		const end = k > 0 ? oklchLab(t.up, 0.165, 27) : oklchLab(t.down, 0.13, 150);
		const w = Math.abs(k);
		return css(oklab(t.diffL + (end[0] - t.diffL) * w, end[1] * w, end[2] * w));
	};
	return {
		hues: Array.from({ length: HUES }, (_, i) => shades(t.l, t.c, (360 * i) / HUES + 12)),
		neutral: css(oklch(t.neutral, 0.006, 260)),
		runtime: shades(t.runtime, 0.018, 255),
		dim: css(oklch(t.dim, 0.006, 260)),
		match: css(oklch(t.match, 0.15, 52)),
		tiny: css(oklch(t.tiny, 0.012, 255)),
		text: t.text,
		textDim: t.textDim,
		outline: t.outline,
		diff: Array.from({ length: 2 * DIFF_STEPS + 1 }, (_, i) =>
			mix((i - DIFF_STEPS) / DIFF_STEPS),
		),
	};
}

function oklchLab(l: number, c: number, h: number): [number, number, number] {
	const r = (h * Math.PI) / 180;
	return [l, c * Math.cos(r), c * Math.sin(r)];
}

export function isRuntime(pkg: string): boolean {
	return pkg === "runtime" || pkg.startsWith("runtime/") || pkg === "libc" || pkg === "syscall";
}

/** The colour of each name, by index; the root and folded nodes stay neutral. */
export function nameColors(names: string[], p: Palette): string[] {
	const byPackage = new Map<string, string[]>();
	return names.map((name, i) => {
		if (i === 0 || name === "other" || name === "") return p.neutral;
		const pkg = packageOf(name);
		let row = byPackage.get(pkg);
		if (!row) {
			row = isRuntime(pkg) ? p.runtime : p.hues[hashName(pkg) % HUES];
			byPackage.set(pkg, row);
		}
		return row[hashName(name) % SHADES];
	});
}

/** The colour of a change of share in -1..1; small changes already show. */
export function diffColor(change: number, p: Palette): string {
	const k = Math.sign(change) * Math.sqrt(Math.abs(Math.max(-1, Math.min(1, change))));
	return p.diff[Math.round(k * DIFF_STEPS) + DIFF_STEPS];
}
