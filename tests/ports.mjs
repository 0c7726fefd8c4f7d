// Ports for programs that cannot choose one themselves.
import { createServer } from "node:http";

/** A port that nobody has, below those that the system gives to others. */
export async function freePort() {
	for (;;) {
		const port = 20000 + Math.floor(Math.random() * 12000);
		const free = await new Promise((done) => {
			const s = createServer().once("error", () => done(false));
			s.listen(port, "127.0.0.1", () => s.close(() => done(true)));
		});
		if (free) return port;
	}
}
