// The theme follows the system's, in a browser that gives no event of a change that was read before.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";

const dir = process.env.EPI_UI_DIR;
const esbuild = createRequire(join(dir, "package.json"))("esbuild");

/** As Chromium has it: an event comes where `matches` is not yet known to have changed. */
function mediaQuery() {
	let system = false;
	let known = false;
	let heard = () => {};
	return {
		get matches() {
			known = system;
			return known;
		},
		addEventListener: (_, f) => {
			heard = f;
		},
		change: (dark) => {
			system = dark;
		},
		draw() {
			if (known === system) return;
			known = system;
			heard({ matches: system });
		},
	};
}

test("what is drawn while the system's theme changes takes no event away", async () => {
	const media = mediaQuery();
	const root = { dataset: {} };
	Object.assign(globalThis, { window: { matchMedia: () => media }, document: { documentElement: root } });
	const { outputFiles } = await esbuild.build({
		absWorkingDir: dir,
		entryPoints: ["src/shared/theme.ts"],
		bundle: true,
		format: "esm",
		platform: "neutral",
		write: false,
	});
	const theme = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
	theme.installTheme();
	assert.equal(root.dataset.theme, "light");
	for (const want of ["dark", "light"]) {
		media.change(want === "dark");
		theme.currentTheme(); // something is drawn
		media.draw();
		assert.equal(root.dataset.theme, want);
		assert.equal(theme.currentTheme(), want);
	}
});
