// Bundles the page into its scripts and one style sheet, and counts the bytes of each part.
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

const options = {
	absWorkingDir: here,
	entryPoints: { app: "src/main.tsx" },
	outdir: "out",
	bundle: true,
	minify: true,
	write: false,
	metafile: true,
	format: "esm",
	target: ["es2020"],
	jsx: "automatic",
	jsxImportSource: "preact",
	legalComments: "none", // the full texts are in licenses.txt
	logLevel: "warning",
};

/** What is loaded with `file`, itself included: all that it imports, but for `import()`. */
function loadedWith(outputs, file, seen = new Set()) {
	seen.add(file);
	for (const { path, kind } of outputs[file].imports)
		if (kind === "import-statement" && !seen.has(path)) loadedWith(outputs, path, seen);
	return seen;
}

/**
 * The scripts by name, each name with a hash of the content; `first` are the names of those that every
 * visit loads, the one that starts the page before the others. One style sheet is for all of them.
 */
export async function bundle() {
	const styles = await esbuild.build(options);
	const scripts = await esbuild.build({
		...options,
		splitting: true,
		loader: { ".css": "empty" },
		entryNames: "[name].[hash]",
		chunkNames: "[name].[hash]",
	});
	const bytes = (f) => Buffer.from(f.contents);
	const cssFile = styles.outputFiles.find((f) => f.path.endsWith(".css"));
	const { outputs } = scripts.metafile;
	const app = Object.keys(outputs).find((path) => outputs[path].entryPoint === "src/main.tsx");
	return {
		js: new Map(scripts.outputFiles.map((f) => [basename(f.path), bytes(f)])),
		first: [...loadedWith(outputs, app)].map((path) => basename(path)),
		css: bytes(cssFile),
		outputs: { ...outputs, css: styles.metafile.outputs["out/app.css"] },
	};
}

/** `node_modules/preact/...` is preact's, `src/query/x.ts` of query, `src/x.tsx` of src. */
function partOf(path) {
	const package_ = /node_modules\/([^/]+)\//.exec(path);
	if (package_) return package_[1];
	const folder = /^src\/([^/]+)\//.exec(path);
	return folder ? `src/${folder[1]}` : "src";
}

/**
 * Bytes by part, the largest first: `preact`, `uplot`, `src/flame`, and `... (css)` of the style
 * sheet. The code that joins the modules is "glue", so that the parts add up to the files.
 */
export function partsOf(outputs) {
	const sizes = new Map();
	const add = (name, bytes) => sizes.set(name, (sizes.get(name) ?? 0) + bytes);
	for (const [file, output] of Object.entries(outputs)) {
		const kind = file.endsWith("css") ? " (css)" : "";
		let rest = output.bytes;
		for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
			add(partOf(path) + kind, bytesInOutput);
			rest -= bytesInOutput;
		}
		add("glue" + kind, rest);
	}
	return [...sizes].sort((a, b) => b[1] - a[1]);
}
