// Bundles the modules that need no browser, then runs the unit tests on the bundle:
//   node test.mjs OUTDIR [TESTDIR]
// The tests find it by EPI_UI_BUNDLE, the sizes of the page itself by EPI_UI_SIZES, and this folder
// with its modules by EPI_UI_DIR.
// TESTDIR holds *.test.mjs and is tests/ui of the tree unless given (EPI_UI_TESTS also gives
// it, for a copy of this folder elsewhere).
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { bundle, partsOf } from "./bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
if (process.argv.length < 3) {
	console.error("usage: node test.mjs OUTDIR [TESTDIR]");
	process.exit(2);
}
const outdir = resolve(process.argv[2]);
const tests = resolve(process.argv[3] ?? process.env.EPI_UI_TESTS ?? join(here, "../../tests/ui"));
const modules = join(outdir, "ui_modules.mjs");
mkdirSync(outdir, { recursive: true });
await esbuild.build({
	absWorkingDir: here,
	entryPoints: ["src/testing.ts"],
	outfile: modules,
	bundle: true,
	format: "esm",
	platform: "neutral",
	target: ["es2020"],
	logLevel: "warning",
});
const page = await bundle();
const sizes = join(outdir, "ui_sizes.json");
const sum = (all) => all.reduce((a, b) => a + b, 0);
const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;
writeFileSync(
	sizes,
	JSON.stringify({
		parts: Object.fromEntries(partsOf(page.outputs)),
		bytes: sum([...page.js.values(), page.css].map((bytes) => bytes.length)),
		gzipScripts: sum([...page.js.values()].map(gzip)),
		gzipFirst: sum(page.first.map((name) => gzip(page.js.get(name)))),
		gzipCss: gzip(page.css),
		files: page.js.size,
	}),
);
const files = readdirSync(tests)
	.filter((f) => f.endsWith(".test.mjs"))
	.sort()
	.map((f) => join(tests, f));
if (files.length === 0) {
	console.error(`no tests in ${tests}`);
	process.exit(1);
}
const run = spawnSync(process.execPath, ["--test", ...files], {
	stdio: "inherit",
	env: { ...process.env, EPI_UI_DIR: here, EPI_UI_BUNDLE: modules, EPI_UI_SIZES: sizes },
});
process.exit(run.status ?? 1);
