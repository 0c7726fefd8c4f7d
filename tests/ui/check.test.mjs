// The strict compiler and the linter find nothing in the page, and each rule that guards it can fail.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const UI = process.env.EPI_UI_DIR;
// A package of the tests, so that who only builds the page does not fetch it.
const BIOME = join(process.env.EPI_NODE_DIR, "node_modules/@biomejs/biome/bin/biome");

const lint = (dir) =>
	spawnSync(process.execPath, [BIOME, "lint", "--error-on-warnings", "--max-diagnostics=none", "--colors=off"], {
		cwd: dir,
		encoding: "utf8",
	});

test("the compiler finds nothing", () => {
	const run = spawnSync("npm", ["run", "--silent", "check"], { cwd: UI, encoding: "utf8" });
	assert.equal(run.status, 0, run.stdout + run.stderr);
});

test("the linter finds nothing", () => {
	const run = lint(UI);
	assert.equal(run.status, 0, run.stdout + run.stderr);
});

/** A breach of each rule, in a file of its own. "plugin" is doublecast.grit. */
const BREACHES = {
	"lint/style/noNonNullAssertion": "export const f = (a?: string) => a!.length;",
	plugin: "export const f = (a: string) => a as unknown as number;",
	"lint/suspicious/noExplicitAny": "export const f = (a: any) => a;",
	"lint/suspicious/noDoubleEquals": "export const f = (a: string | null) => a == null;",
	"lint/correctness/noUnusedVariables": "const a = 1;\nexport {};",
	"lint/correctness/noUnusedImports": 'import { a } from "./sound";\nexport {};',
	"lint/correctness/noUnusedFunctionParameters": "export const f = (a: string) => 1;",
	"lint/correctness/useExhaustiveDependencies":
		'import { useEffect } from "preact/hooks";\n' +
		"export function useA(a: string) {\n\tuseEffect(() => console.log(a), []);\n}",
	"lint/correctness/useHookAtTopLevel":
		'import { useState } from "preact/hooks";\n' +
		"export function useA(a: boolean) {\n\tif (a) useState(0);\n}",
	"lint/nursery/noFloatingPromises":
		"const a = async () => 1;\nexport function f() {\n\ta();\n}",
	"lint/nursery/noMisusedPromises":
		"const a = async () => true;\nexport const f = () => (a() ? 1 : 2);",
	"lint/suspicious/noDuplicateProperties": "a {\n\tcolor: red;\n\tcolor: blue;\n}",
};
const SOUND = "export const a = 1;";

/** The linter's findings by file, as `[rule, ...]`. */
function findings(files) {
	const dir = mkdtempSync(join(tmpdir(), "epi-ui-check-"));
	try {
		mkdirSync(join(dir, "src"));
		for (const name of ["biome.jsonc", "doublecast.grit"])
			copyFileSync(join(UI, name), join(dir, name));
		for (const [name, text] of Object.entries(files))
			writeFileSync(join(dir, "src", name), text + "\n");
		const run = lint(dir);
		const found = {};
		for (const [, name, rule] of `${run.stdout}${run.stderr}`.matchAll(/^src\/(\S+?):\d+:\d+ (\S+)/gm))
			(found[name] ??= []).push(rule);
		return { status: run.status, found };
	} finally {
		rmSync(dir, { recursive: true });
	}
}

test("the linter finds nothing in a sound file", () => {
	assert.deepEqual(findings({ "sound.ts": SOUND }), { status: 0, found: {} });
});

test("each rule finds its breach", () => {
	const names = Object.entries(BREACHES).map(([rule, text], i) => [
		rule,
		`breach${i}.${text.startsWith("a {") ? "css" : "ts"}`,
		text,
	]);
	const files = Object.fromEntries(names.map(([, name, text]) => [name, text]));
	const { status, found } = findings({ ...files, "sound.ts": SOUND });
	assert.equal(status, 1);
	for (const [rule, name] of names)
		assert.ok(found[name]?.includes(rule), `${rule}: ${name} has ${found[name] ?? "no finding"}`);
	assert.equal(found["sound.ts"], undefined);
});
