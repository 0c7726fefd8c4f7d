// The size of the page, as a whole and by part. The page is in the binary and loaded at each visit.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const sizes = JSON.parse(readFileSync(process.env.EPI_UI_SIZES, "utf8"));
const KB = 1024;

test("the scripts are small: 220 KB gzipped, of which the first page loads 60", () => {
	assert.ok(sizes.gzipScripts <= 220 * KB, `${sizes.gzipScripts} bytes`);
	assert.ok(sizes.gzipFirst <= 60 * KB, `${sizes.gzipFirst} bytes`);
	assert.ok(sizes.gzipCss <= 16 * KB, `${sizes.gzipCss} bytes of styles`);
});

test("the scripts are few: each costs a request", () => {
	assert.ok(sizes.files <= 10, `${sizes.files} scripts`);
});

/** The limits in bytes, minified and not compressed. A part without a limit fails the test. */
const MOST = {
	preact: 16 * KB,
	uplot: 52 * KB,
	"uplot (css)": 3 * KB,
	src: 10 * KB,
	"src/shared": 40 * KB,
	"src/first": 8 * KB,
	"src/query": 64 * KB,
	"src/files": 12 * KB,
	"src/flame": 64 * KB,
	"src/source": 20 * KB,
	"src/marks": 8 * KB,
	"src/chart": 16 * KB,
	"src/verdict": 16 * KB,
	"src/result": 60 * KB,
	"src/alert": 24 * KB,
	"src/compare": 24 * KB,
	"src/rules": 12 * KB,
	"src/fleet": 60 * KB,
	"src/status": 12 * KB,
	"src/symbols": 24 * KB,
	"src/cluster": 12 * KB,
	"src/heat": 20 * KB,
	"src/explore": 16 * KB,
	"src (css)": 12 * KB,
	"src/shared (css)": 8 * KB,
	"src/first (css)": 1 * KB,
	"src/query (css)": 8 * KB,
	"src/files (css)": 2 * KB,
	"src/flame (css)": 6 * KB,
	"src/source (css)": 3 * KB,
	"src/marks (css)": 2 * KB,
	"src/chart (css)": 4 * KB,
	"src/verdict (css)": 3 * KB,
	"src/result (css)": 12 * KB,
	"src/alert (css)": 3 * KB,
	"src/compare (css)": 6 * KB,
	"src/rules (css)": 2 * KB,
	"src/fleet (css)": 6 * KB,
	"src/status (css)": 2 * KB,
	"src/symbols (css)": 4 * KB,
	"src/cluster (css)": 1 * KB,
	"src/heat (css)": 2 * KB,
	"src/explore (css)": 1 * KB,
	glue: 8 * KB, // names that one script takes from another
	"glue (css)": 1 * KB,
};

test("each part is known, and within its bound", () => {
	for (const [part, bytes] of Object.entries(sizes.parts))
		assert.ok(bytes <= (MOST[part] ?? -1), `${part} is ${bytes} bytes, bound ${MOST[part]}`);
	const sum = Object.values(sizes.parts).reduce((a, b) => a + b, 0);
	assert.equal(sum, sizes.bytes, "the parts are the whole");
});
