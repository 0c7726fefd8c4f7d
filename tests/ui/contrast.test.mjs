// Text has a contrast of 4.5:1 (WCAG AA) to its background in both themes: the variables of the
// style sheets, and the fills of the flame graph.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { page } from "./page.mjs";

const { color } = page;

const LEAST = 4.5;
const src = fileURLToPath(new URL("../../web/ui/src", import.meta.url));
const sheets = readdirSync(src, { recursive: true })
	.filter((f) => f.endsWith(".css"))
	.map((f) => [f, readFileSync(join(src, f), "utf8").replace(/\/\*[^]*?\*\//g, "")]);

/** The variables `--name: #rrggbb` in the blocks that begin with `head`. */
function variables(head) {
	const out = {};
	for (const [, text] of sheets)
		for (const block of text.split("}").filter((b) => b.trim().startsWith(head)))
			for (const [, name, value] of block.matchAll(/--([a-z-]+):\s*(#[0-9a-f]{6})\b/g))
				out[name] = value;
	assert.ok(out.text && out.panel, head);
	return out;
}

function rgb(text) {
	const hex = /^#(..)(..)(..)$/.exec(text);
	if (hex) return hex.slice(1).map((h) => parseInt(h, 16));
	const m = /^rgb\((\d+),(\d+),(\d+)\)$/.exec(text);
	assert.ok(m, `not a colour: ${text}`);
	return m.slice(1).map(Number);
}

function luminance(text) {
	const [r, g, b] = rgb(text).map((v) => {
		const s = v / 255;
		return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
	const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
	return (x + 0.05) / (y + 0.05);
}

const SURFACES = ["bg", "panel", "raised", "field", "hover"];
/** The colours of text, and the backgrounds that each is written on. */
const WRITTEN = {
	text: [...SURFACES, "accent-soft", "bar", "bad-soft", "more-bar", "good-soft", "less-bar"],
	soft: SURFACES,
	faint: SURFACES,
	accent: [...SURFACES, "accent-soft"],
	"accent-text": ["accent"],
	panel: ["bad"],
	bad: [...SURFACES, "bad-soft"],
	good: [...SURFACES, "good-soft"],
	more: [...SURFACES, "more-bar"],
	less: [...SURFACES, "less-bar"],
	warn: [...SURFACES, "warn-soft"],
	mark: ["panel", "raised"],
	"mark-text": ["mark"],
	...Object.fromEntries(
		"function keyword label string number operator comment"
			.split(" ")
			.map((kind) => [`q-${kind}`, ["field"]]),
	),
};
/** Colours that no theme defines: inherited, invisible, or of the system's high contrast. */
const OTHER = /^(inherit|currentcolor|transparent|CanvasText)$/i;

test("contrast is measured as it is defined", () => {
	assert.equal(contrast("#000000", "#ffffff").toFixed(2), "21.00");
	assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});

for (const [theme, head] of [
	["light", ":root {"],
	["dark", ':root[data-theme="dark"]'],
]) {
	test(`text of the ${theme} theme`, () => {
		const vars = variables(head);
		const poor = [];
		for (const [text, behind] of Object.entries(WRITTEN))
			for (const b of behind) {
				const c = contrast(vars[text], vars[b]);
				if (c < LEAST) poor.push(`${text} on ${b}: ${c.toFixed(2)}`);
			}
		assert.deepEqual(poor, []);
	});

	test(`text of the ${theme} flame graph`, () => {
		const p = color.makePalette(theme);
		const fills = [...p.hues.flat(), ...p.runtime, ...p.diff, p.neutral, p.match, p.tiny, p.unnamed];
		const poor = fills
			.map((f) => [f, contrast(p.text, f)])
			.concat([[`dim ${p.dim}`, contrast(p.textDim, p.dim)]])
			.filter(([, c]) => c < LEAST)
			.map(([f, c]) => `${f}: ${c.toFixed(2)}`);
		assert.deepEqual(poor, []);
	});
}

test("every colour of text is one of those", () => {
	const strange = [];
	for (const [file, text] of sheets)
		for (const [, value] of text.matchAll(/[;{\s]color:\s*([^;}]+)/g)) {
			const name = /^var\(--([a-z-]+)\)$/.exec(value.trim())?.[1];
			if (!(name in WRITTEN) && !OTHER.test(value.trim()))
				strange.push(`${file}: ${value}`);
		}
	assert.deepEqual(strange, []);
});
