// The colours of the heatmap. Lightness alone tells the cost, so also those who see no hues, or only
// some, read it; the hue goes from blue to yellow, which differ for nearly everybody. In the light
// theme more is darker, in the dark theme brighter: away from the panel behind it.
import { css, oklch, type Rgb } from "../flame/color";
import type { Theme } from "../shared/theme";

export const HEAT_COLORS = 256;
const SCALE_STOPS = 17;

interface Ramp {
	/** Lightness, chroma and hue of a cost of 0, and of the greatest. */
	from: [number, number, number];
	to: [number, number, number];
}

const RAMPS: Record<Theme, Ramp> = {
	light: { from: [0.93, 0.045, 95], to: [0.29, 0.12, 275] },
	dark: { from: [0.33, 0.075, 265], to: [0.93, 0.14, 98] },
};

const ramp = ({ from, to }: Ramp): Rgb[] =>
	Array.from({ length: HEAT_COLORS }, (_, i) => {
		const k = i / (HEAT_COLORS - 1);
		const at = (c: 0 | 1 | 2) => from[c] + (to[c] - from[c]) * k;
		return oklch(at(0), at(1), at(2));
	});

export interface HeatPalette {
	/** From a cost of 0 to the greatest. */
	colors: Rgb[];
	/** The same as pixels of ImageData; 0 is a gap, through which the panel shows. */
	pixels: Uint32Array;
	text: string;
	/** Of the cell under the pointer, and of the selected one. */
	outline: string;
	mark: string;
}

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

const heatPixel = ([r, g, b]: Rgb): number =>
	(littleEndian ? (255 << 24) | (b << 16) | (g << 8) | r : (r << 24) | (g << 16) | (b << 8) | 255) >>>
	0;

function makeHeatPalette(theme: Theme): HeatPalette {
	const colors = ramp(RAMPS[theme]);
	const dark = theme === "dark";
	return {
		colors,
		pixels: Uint32Array.from(colors, heatPixel),
		text: dark ? "#97a0ae" : "#68707d",
		outline: dark ? "#ffffff" : "#11151c",
		mark: dark ? "#f0803c" : "#d9622b",
	};
}

export const HEAT_PALETTES: Record<Theme, HeatPalette> = {
	light: makeHeatPalette("light"),
	dark: makeHeatPalette("dark"),
};

/** The colour of a cost: 0 and less is the first, `max` the last. */
export const colorIndex = (v: number, max: number): number =>
	max > 0 ? Math.min(HEAT_COLORS - 1, Math.max(0, Math.round((v / max) * (HEAT_COLORS - 1)))) : 0;

/** The scale beside the heatmap, as the value of a CSS property. */
export function gradient(theme: Theme): string {
	const { colors } = HEAT_PALETTES[theme];
	const stops = Array.from({ length: SCALE_STOPS }, (_, i) =>
		css(colors[Math.round((i / (SCALE_STOPS - 1)) * (HEAT_COLORS - 1))]),
	);
	return `linear-gradient(to right, ${stops.join(", ")})`;
}
