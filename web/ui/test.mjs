// Bundles the modules that need no browser, then runs the unit tests on the bundle:
//   node test.mjs OUTDIR [TESTDIR]
// TESTDIR holds *.test.mjs and is tests/ui of the tree unless given (EPI_UI_TESTS also gives
// it, for a copy of this folder elsewhere).
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
if (process.argv.length < 3) {
	console.error("usage: node test.mjs OUTDIR [TESTDIR]");
	process.exit(2);
}
const outdir = resolve(process.argv[2]);
const tests = resolve(process.argv[3] ?? process.env.EPI_UI_TESTS ?? join(here, "../../tests/ui"));
const bundle = join(outdir, "ui_modules.mjs");
mkdirSync(outdir, { recursive: true });
await esbuild.build({
	absWorkingDir: here,
	entryPoints: ["src/testing.ts"],
	outfile: bundle,
	bundle: true,
	format: "esm",
	platform: "neutral",
	target: ["es2020"],
	logLevel: "warning",
});
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
	env: { ...process.env, EPI_UI_BUNDLE: bundle },
});
process.exit(run.status ?? 1);
