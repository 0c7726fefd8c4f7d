// A server that checks the page's edits: EPI_BUILD has the program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const freePort = () =>
	new Promise((done) => {
		const s = createServer();
		s.listen(0, "127.0.0.1", () => {
			const { port } = s.address();
			s.close(() => done(port));
		});
	});

/** Gives `ask(name, args)`, which returns the whole answer of the API, and `stop`. */
export async function startServer() {
	const dir = mkdtempSync(join(tmpdir(), "epi-ui-"));
	writeFileSync(join(dir, "e.yml"), "scrape_configs: []\n");
	const port = await freePort();
	const server = spawn(
		join(process.env.EPI_BUILD ?? "build", "epimetheus"),
		[
			`--config.file=${join(dir, "e.yml")}`,
			`--storage.tsdb.path=${join(dir, "data")}`,
			`--web.listen-address=127.0.0.1:${port}`,
		],
		{ stdio: ["ignore", "ignore", "pipe"] },
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
	const ask = async (name, args = {}) => {
		const body = new URLSearchParams(args);
		const url = `http://127.0.0.1:${port}/api/v1/${name}`;
		const options = name === "language" ? {} : { method: "POST", body };
		return (await fetch(url, options)).json();
	};
	const stop = async () => {
		if (server.kill()) await once(server, "close"); // it writes until then
		rmSync(dir, { recursive: true, force: true });
	};
	return { ask, stop };
}
