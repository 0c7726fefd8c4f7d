// Bundles the page into one script and one style sheet, and counts the bytes of each part.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

export async function bundle() {
	const out = await esbuild.build({
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
	});
	const pick = (ext) => Buffer.from(out.outputFiles.find((f) => f.path.endsWith(ext)).contents);
	return { js: pick(".js"), css: pick(".css"), metafile: out.metafile };
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
export function partsOf(metafile) {
	const sizes = new Map();
	const add = (name, bytes) => sizes.set(name, (sizes.get(name) ?? 0) + bytes);
	for (const [file, output] of Object.entries(metafile.outputs)) {
		const kind = file.endsWith(".css") ? " (css)" : "";
		let rest = output.bytes;
		for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
			add(partOf(path) + kind, bytesInOutput);
			rest -= bytesInOutput;
		}
		add("glue" + kind, rest);
	}
	return [...sizes].sort((a, b) => b[1] - a[1]);
}
