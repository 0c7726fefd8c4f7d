// Builds the book: node book/build.mjs --tree=DIR --parts=DIR OUTDIR
//   --tree   has web/book, and the files that are chapters as they are
//   --parts  has the generated parts, NAME.md
// Writes static HTML into OUTDIR/site and a table for the binary, OUTDIR/book_assets.c. Prints every finding and
// writes nothing if there is one.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as esbuild from "esbuild";
import { assetsAsC, hashedName, makeAsset, TYPES } from "../assets.mjs";
import { pageOf, resolveBook } from "./check.mjs";
import { chapterPage, firstPage, missingPage, withoutServer } from "./html.mjs";
import { searchIndex } from "./index.mjs";
import { readBook } from "./read.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const GZ_TOTAL_MAX = 1 << 20; // all of it, pictures too, lives in the binary

/** The style, and the script, which knows all sections. */
async function bundleBook(book) {
	const sections = book.sections.map((s) => ({
		title: s.title,
		chapters: s.chapters.map((c) => ({ title: c.title, url: pageOf(c) })),
	}));
	const out = await esbuild.build({
		absWorkingDir: here,
		entryPoints: ["script.ts", "style.css"],
		outdir: "out",
		bundle: true,
		minify: true,
		define: { BOOK_SECTIONS: JSON.stringify(sections) },
		write: false,
		format: "iife",
		target: ["es2020"],
		legalComments: "none",
		logLevel: "warning",
	});
	const pick = (ext) => Buffer.from(out.outputFiles.find((f) => f.path.endsWith(ext)).contents);
	return { script: pick(".js"), style: pick(".css") };
}

/** The files of the book, as assets. */
async function bookAssets(book, pictures) {
	const { script, style } = await bundleBook(book);
	const index = Buffer.from(searchIndex(book));
	const icon = readFileSync(join(here, "../src/favicon.svg"));
	const files = {
		script: hashedName("script", "js", script),
		style: hashedName("style", "css", style),
		index: hashedName("index", "js", index),
		icon: hashedName("favicon", "svg", icon),
	};
	const page = (path, text, options) =>
		makeAsset(path, TYPES.html, Buffer.from(text), { immutable: false, ...options });
	return [
		page("index.html", firstPage(book, files)),
		...book.chapters.map((c) => page(pageOf(c), chapterPage(book, c, files))),
		page("missing.html", missingPage(book, files), { template: true }),
		makeAsset(files.script, TYPES.js, script),
		makeAsset(files.style, TYPES.css, style),
		makeAsset(files.index, TYPES.js, index),
		makeAsset(files.icon, TYPES.svg, icon),
		...pictures.map((path) =>
			makeAsset(path, TYPES[extname(path).slice(1)], readFileSync(join(book.tree, "web/book", path)), {
				immutable: false,
			}),
		),
	];
}

/** "  pages   12345 B   2345 B gz" for each kind of file, and the sum. */
function printSizes(assets) {
	const kinds = new Map();
	for (const a of assets) {
		const kind = a.type.split(";")[0];
		const [bytes, gz] = kinds.get(kind) ?? [0, 0];
		kinds.set(kind, [bytes + a.bytes.length, gz + a.gz.length]);
	}
	const line = (name, bytes, gz) =>
		console.log(`  ${name.padEnd(26)} ${String(bytes).padStart(8)} B ${String(gz).padStart(8)} B gz`);
	for (const [kind, [bytes, gz]] of kinds) line(kind, bytes, gz);
	const sum = (of) => assets.reduce((n, a) => n + of(a), 0);
	const total = sum((a) => a.gz.length);
	line("the book", sum((a) => a.bytes.length), total);
	return total;
}

async function main() {
	const { values, positionals } = parseArgs({
		options: { tree: { type: "string" }, parts: { type: "string", default: "" } },
		allowPositionals: true,
	});
	if (!values.tree || positionals.length !== 1) {
		console.error("usage: node book/build.mjs --tree=DIR [--parts=DIR] OUTDIR");
		process.exit(2);
	}
	const book = readBook({ tree: resolve(values.tree), parts: resolve(values.parts) });
	const pictures = resolveBook(book);
	if (book.findings.length) {
		console.error(book.findings.join("\n"));
		process.exit(1);
	}
	if (book.missing.length) console.log(`  sections without chapters: ${book.missing.join(", ")}`);
	const assets = await bookAssets(book, pictures);
	const total = printSizes(assets);
	if (total > GZ_TOTAL_MAX) {
		console.error(`the book is ${total} bytes gzipped, limit ${GZ_TOTAL_MAX}`);
		process.exit(1);
	}
	const outdir = resolve(positionals[0]);
	const site = join(outdir, "site");
	rmSync(site, { recursive: true, force: true });
	for (const a of assets.filter((a) => !a.template)) {
		mkdirSync(dirname(join(site, a.path)), { recursive: true });
		writeFileSync(join(site, a.path), a.type === TYPES.html ? withoutServer(a.bytes.toString()) : a.bytes);
	}
	writeFileSync(join(outdir, "book_assets.c"), assetsAsC("book_assets", assets, "web/ui/book/build.mjs"));
}

await main();
