// A server with an empty configuration, which is asked for the language and to parse queries.
import * as server from "../server.mjs";

/** Gives `ask(name, args)`, the whole answer of the API, and `stop`. */
export async function startServer() {
	const { base, stop } = await server.startServer({ files: { "e.yml": "scrape_configs: []\n" } });
	const ask = async (name, args = {}) => {
		const body = new URLSearchParams(args);
		const options = name === "language" ? {} : { method: "POST", body };
		return (await fetch(`${base}api/v1/${name}`, options)).json();
	};
	return { ask, stop };
}
