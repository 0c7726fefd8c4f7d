// The flame graph as a file: as on the screen, with the levels that are scrolled out of view. SVG
// keeps names as text, so that they can be selected and searched; PNG is drawn like the screen, at
// twice the size.
import { context2d } from "../shared/must";
import { formatPercent, formatValue, share } from "../shared/units";
import { arrange } from "./arrange";
import { FlameCanvas, FONT, HATCH_LINE, HATCH_STEP, LABEL_MIN_W, PAD, FLAME_ROW_H } from "./canvas";
import { namePixels, nodePixels, type Palette, pixelColor, unnamedFlags } from "./color";
import { FrameLabels } from "./labels";
import { ancestry, firstEndingAfter, type Flame, nameOf, zoomedNode } from "./layout";
import type { FlameLook } from "./look";
import { MIN_W } from "./paint";
import type { Matches } from "./search";

export interface Picture {
	flame: Flame;
	look: FlameLook;
	/** As the address has it. */
	zoom: string;
	matches: Matches | null;
	unit: string;
}

/** The canvas of a picture: CSS pixels, colours of the theme, background. */
export interface PictureFrame {
	width: number;
	palette: Palette;
	ground: string;
	/** The width of a text in the font of the graph. */
	measure(s: string): number;
}

const PNG_SCALE = 2;
/** No browser makes higher canvases. */
const PIXELS_MAX = 32767;

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of them
const NOT_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Escapes a text for XML; characters that XML cannot hold become U+FFFD. */
function escapeXml(s: string): string {
	return s
		.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
		.replace(NOT_XML, "\ufffd")
		.replace(LONE, "\ufffd");
}

/** The number of levels of the zoomed part, with those above it. */
function depthOf(f: Flame, zoomed: number): number {
	const right = f.x[zoomed] + f.total[zoomed];
	for (let l = f.levels - 1; l > 0; l--) {
		const i = firstEndingAfter(f, l, f.x[zoomed]);
		if (i < f.start[l + 1] && f.x[i] < right) return l + 1;
	}
	return Math.min(1, f.levels);
}

const px = (v: number): string => String(Number(v.toFixed(3)));

function title(f: Flame, i: number, unit: string): string {
	const name = nameOf(f, i);
	const flat = formatValue(f.self[i], unit);
	const cum = formatValue(f.total[i], unit);
	const part = formatPercent(share(f.total[i], f.width));
	return escapeXml(`${name}\ncum ${cum}, ${part} of total; flat ${flat}`);
}

/** The lines across frames without names. */
function hatchPattern(palette: Palette): string {
	const s = HATCH_STEP;
	return (
		`<defs><pattern id="hatch" width="${s}" height="${s}" patternUnits="userSpaceOnUse">` +
		`<path d="M-1 1 1 -1M0 ${s} ${s} 0M${s - 1} ${s + 1} ${s + 1} ${s - 1}" ` +
		`stroke="${palette.hatch}" stroke-width="${HATCH_LINE}"/></pattern></defs>`
	);
}

export function toSvg(picture: Picture, frame: PictureFrame, about: string): string {
	const { look, matches, unit } = picture;
	const { width, palette } = frame;
	const f = arrange(picture.flame, look);
	const zoomed = zoomedNode(f, picture.zoom);
	const above = new Set(ancestry(f, zoomed).slice(0, -1));
	const levels = depthOf(f, zoomed);
	const height = levels * FLAME_ROW_H;
	const vx = f.x[zoomed] ?? 0;
	const vw = f.total[zoomed] || f.width || 1;
	const scale = width / vw;
	const colors = nodePixels(f, palette, matches, namePixels(f, palette, look.color));
	const labels = new FrameLabels(frame.measure);
	labels.setNames(f.names);
	const unnamed = unnamedFlags(f.names);
	const out = [
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
			`viewBox="0 0 ${width} ${height}">`,
		`<desc>${escapeXml(about)}</desc>`,
		`<rect width="100%" height="100%" fill="${frame.ground}"/>`,
		...(unnamed ? [hatchPattern(palette)] : []),
		`<g font-family="system-ui, sans-serif" font-size="11.5" fill="${palette.text}">`,
	];
	for (let l = 0; l < levels; l++) {
		const y = look.orientation === "flame" ? height - (l + 1) * FLAME_ROW_H : l * FLAME_ROW_H;
		const end = f.start[l + 1];
		for (let i = firstEndingAfter(f, l, vx); i < end && f.x[i] < vx + vw; i++) {
			const left = Math.max(0, (f.x[i] - vx) * scale);
			const w = Math.min(width, (f.x[i] + f.total[i] - vx) * scale) - left;
			if (w < MIN_W) continue;
			const edge = w > 3 ? ` stroke="${frame.ground}" stroke-width="0.5"` : "";
			const faded = above.has(i) ? ` fill-opacity="0.55"` : "";
			const fill = pixelColor(colors[i]);
			let node =
				`<g><title>${title(f, i, unit)}</title><rect x="${px(left)}" y="${y}" ` +
				`width="${px(w)}" height="${FLAME_ROW_H - 1}" fill="${fill}"${faded}${edge}/>`;
			if (unnamed?.[f.name[i]] && w >= LABEL_MIN_W)
				node += `<rect x="${px(left)}" y="${y}" width="${px(w)}" height="${FLAME_ROW_H - 1}" fill="url(#hatch)"/>`;
			const text = w < LABEL_MIN_W ? "" : labels.fit(f.name[i], w - 1 - 2 * PAD);
			const dim = matches && !matches.byName[f.name[i]] ? ` fill="${palette.textDim}"` : "";
			if (text)
				node +=
					`<text x="${px(left + PAD)}" y="${px(y + FLAME_ROW_H / 2 + 3.5)}"${dim}>` +
					`${escapeXml(text)}</text>`;
			out.push(node + "</g>");
		}
	}
	out.push("</g>", "</svg>", "");
	return out.join("\n");
}

/** Measures in the font of the graph. */
export function measurer(): (s: string) => number {
	const ctx = context2d(document.createElement("canvas"));
	ctx.font = FONT;
	return (s) => ctx.measureText(s).width;
}

/** The picture as PNG; null if it is too large for the browser. */
export function toPng(picture: Picture, frame: PictureFrame): Promise<Blob | null> {
	const f = arrange(picture.flame, picture.look);
	const zoomed = zoomedNode(f, picture.zoom);
	const height = depthOf(f, zoomed) * FLAME_ROW_H;
	const canvas = document.createElement("canvas");
	const c = new FlameCanvas(canvas, document.createElement("canvas"), frame.palette);
	c.setFlame(f);
	c.setLook(picture.look);
	c.setMatches(picture.matches);
	c.zoomTo(zoomed, false);
	// With the root at the bottom, levels outside of the zoomed part are above.
	if (picture.look.orientation === "flame") c.setScroll(f.levels * FLAME_ROW_H - height);
	c.resize(frame.width, height, Math.min(PNG_SCALE, PIXELS_MAX / height));
	c.dispose();
	const ctx = context2d(canvas);
	ctx.setTransform(1, 0, 0, 1, 0, 0);
	ctx.globalCompositeOperation = "destination-over";
	ctx.fillStyle = frame.ground;
	ctx.fillRect(0, 0, canvas.width, canvas.height);
	return new Promise((done) => canvas.toBlob(done, "image/png"));
}
