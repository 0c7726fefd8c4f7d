// The flame graph as SVG: well-formed, with widths in the ratio of totals.
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";

const { color, layout, look, picture, search } = page;

const FLAME = layout.buildFlame({
	format: "single",
	names: ["total", 'a<"&\u0001\ud800', "b", "c"],
	levels: [
		[0, 1000, 0, 0],
		[0, 600, 100, 1, 0, 400, 150, 3],
		[100, 300, 300, 2, 0, 200, 200, 1, 150, 249, 249, 2, 0, 0.3, 0.3, 3],
	],
	numTicks: 1000,
	maxSelf: 300,
});
const FRAME = {
	width: 800,
	palette: color.PALETTES.light,
	ground: "#ffffff",
	measure: (s) => 6 * s.length,
};

/** Checks that every element is closed; returns them as `{name, attributes, text}`. */
function parse(xml) {
	const all = [];
	const open = [];
	let at = 0;
	for (const m of xml.matchAll(/<(\/?)([a-z]+)((?: [\w:-]+="[^"<]*")*)(\/?)>/g)) {
		const text = xml.slice(at, m.index);
		assert.doesNotMatch(text, /[<>]|&(?!#\d+;)/, text);
		if (open.length) open[open.length - 1].text += text;
		at = m.index + m[0].length;
		const [, closes, name, attributes, empty] = m;
		if (closes) {
			assert.equal(open.pop().name, name);
			continue;
		}
		const node = {
			name,
			text: "",
			...Object.fromEntries([...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map((a) => [a[1], a[2]])),
		};
		all.push(node);
		if (!empty) open.push(node);
	}
	assert.equal(open.length, 0);
	assert.equal(xml.slice(at).trim(), "");
	return all;
}

const draw = (part) =>
	parse(
		picture.toSvg(
			{ flame: FLAME, look: look.DEFAULT_LOOK, zoom: "", matches: null, unit: "", ...part },
			FRAME,
			"cpu{a<b}",
		),
	);
const rects = (all) => all.filter((n) => n.name === "rect" && n.width !== "100%");

test("widths are in the ratio of totals", () => {
	const all = draw({});
	const got = rects(all).map((r) => [Number(r.x), Number(r.y), Number(r.width)]);
	assert.deepEqual(got, [
		[0, 0, 800],
		[0, 19, 480],
		[480, 19, 320],
		[80, 38, 240],
		[320, 38, 160],
		[600, 38, 199.2],
	]); // nodes narrower than half a pixel are left out
	const titles = all.filter((n) => n.name === "title").map((n) => n.text.split("\n"));
	assert.deepEqual(titles[1], ["a&#60;&#34;&#38;\ufffd\ufffd", "cum 600, 60.00% of total; flat 100"]);
	assert.equal(all.find((n) => n.name === "desc").text, "cpu{a&#60;b}");
	assert.equal(all[0].height, "57");
});

test("a zoomed part fills the width, with what is above it", () => {
	const all = draw({ zoom: layout.pathId(FLAME, 2) });
	assert.deepEqual(
		rects(all).map((r) => [Number(r.x), Number(r.width), r["fill-opacity"]]),
		[
			[0, 800, "0.55"],
			[0, 800, undefined],
			[300, 498, undefined],
			[798, 0.6, undefined],
		],
	);
});

test("the look and the search are those of the screen", () => {
	const flame = draw({ look: { ...look.DEFAULT_LOOK, orientation: "flame" } });
	assert.deepEqual(
		rects(flame).map((r) => Number(r.y)),
		[38, 19, 19, 0, 0, 0],
	);
	const one = rects(draw({ look: { ...look.DEFAULT_LOOK, collapse: true } }));
	assert.equal(one.length, 5, "a below a is a part of it");
	const found = rects(draw({ matches: search.search(FLAME, /^b$/) })).map((r) => r.fill);
	const { match, dim } = FRAME.palette;
	assert.deepEqual(found, [dim, dim, dim, match, dim, match]);
});
