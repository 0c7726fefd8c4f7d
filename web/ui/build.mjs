// Bundles the page (bundle.mjs) and writes it twice: as files (OUTDIR/dist) and as a C table
// (OUTDIR/ui_assets.c) for the binary. Names carry a hash of the content, nothing carries a
// time or a path, so the same sources give the same bytes.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { assetsAsC, hashedName, makeAsset, TYPES } from "./assets.mjs";
import { bundle, partsOf } from "./bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const GZ_TOTAL_MAX = 300 * 1024; // the page must stay small enough to live in the binary

function licenses() {
	return ["preact", "uplot", "markdown-it"] // the last one wrote the HTML of the book
		.map((name) => {
			const dir = join(here, "node_modules", name);
			const { version } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
			return `${name} ${version}\n\n${readFileSync(join(dir, "LICENSE"), "utf8").trim()}\n`;
		})
		.join("\n----\n\n");
}

async function main() {
	if (process.argv.length !== 3) {
		console.error("usage: node build.mjs OUTDIR");
		process.exit(2);
	}
	const outdir = resolve(process.argv[2]);
	const dist = join(outdir, "dist");
	rmSync(dist, { recursive: true, force: true });
	mkdirSync(dist, { recursive: true });

	const { js, first, css, outputs } = await bundle();
	const icon = readFileSync(join(here, "src/favicon.svg"));
	const cssName = hashedName("app", "css", css);
	const iconName = hashedName("favicon", "svg", icon);
	const html = readFileSync(join(here, "src/index.html"), "utf8")
		.replace("%JS%", first[0])
		.replace("%CHUNKS%", first.slice(1).map((name) => `<link rel="modulepreload" href="${name}">`).join("\n"))
		.replace("%CSS%", cssName)
		.replace("%ICON%", iconName);
	if (html.split("%BASE%").length !== 2)
		throw new Error("index.html must hold %BASE% exactly once");

	const assets = [
		makeAsset("index.html", TYPES.html, Buffer.from(html), { immutable: false, template: true }),
		...[...js].map(([name, bytes]) => makeAsset(name, TYPES.js, bytes)),
		makeAsset(cssName, TYPES.css, css),
		makeAsset(iconName, TYPES.svg, icon),
		makeAsset("licenses.txt", TYPES.txt, Buffer.from(licenses()), { immutable: false }),
	];

	for (const [part, bytes] of partsOf(outputs))
		console.log(`  ${part.padEnd(26)} ${String(bytes).padStart(8)} B`);
	let total = 0;
	for (const a of assets) {
		writeFileSync(join(dist, a.path), a.bytes);
		console.log(
			`${a.path.padEnd(28)} ${String(a.bytes.length).padStart(8)} B ` +
				`${String(a.gz.length).padStart(8)} B gz`,
		);
		total += a.gz.length;
	}
	console.log(`${"total".padEnd(28)} ${" ".repeat(8)}   ${String(total).padStart(8)} B gz`);
	if (total > GZ_TOTAL_MAX)
		throw new Error(`the page is ${total} bytes gzipped, limit ${GZ_TOTAL_MAX}`);
	writeFileSync(join(outdir, "ui_assets.c"), assetsAsC("ui_assets", assets, "web/ui/build.mjs"));
}

await main();
