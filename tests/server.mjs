// Starts a server in a directory of its own, for tests of the page. EPI_BUILD has the program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./ports.mjs";

/**
 * Writes `files` into a new directory; "e.yml" is the configuration. Gives the server's address
 * `base`, the directory `dir`, and `stop`, which also removes the directory. `program` is below EPI_BUILD.
 */
export async function startServer({ files, flags = [], prefix = "/", program = "epimetheus", env = {} }) {
	const dir = mkdtempSync(join(tmpdir(), "epi-page-"));
	for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
	const options = { dir, flags, prefix, program, env };
	for (let attempts = 5; ; attempts--) {
		try {
			return await startAt(await freePort(), options);
		} catch (e) {
			// Somebody else was quicker.
			if (!attempts || !/Address already in use/.test(e.message)) throw e;
		}
	}
}

async function startAt(port, { dir, flags, prefix, program, env }) {
	const base = `http://127.0.0.1:${port}${prefix}`;
	const server = spawn(
		join(process.env.EPI_BUILD ?? "build", program),
		[
			`--config.file=${join(dir, "e.yml")}`,
			`--storage.tsdb.path=${join(dir, "data")}`,
			`--web.listen-address=127.0.0.1:${port}`,
			`--web.external-url=${base}`,
			...flags,
		],
		{ stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } },
	);
	await new Promise((done, fail) => {
		let log = "";
		server.stderr.on("data", (d) => {
			log += d;
			if (/msg=ready\b/.test(log)) done();
		});
		server.on("error", fail);
		server.on("close", () => fail(new Error(log)));
	});
	const stop = async () => {
		if (server.kill()) await once(server, "close"); // it writes until then
		rmSync(dir, { recursive: true, force: true });
	};
	return { base, dir, stop };
}
