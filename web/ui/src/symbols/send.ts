// Sends a file to the server, with progress: fetch tells none of what it sends, XMLHttpRequest does.
import { apiUrl, call } from "../shared/api";
import { type Reply, type UploadFile, Uploads } from "./uploads";

function readReply(x: XMLHttpRequest): Reply {
	const retryAfter = Number(x.getResponseHeader("Retry-After") ?? 0) || 0;
	try {
		const body = JSON.parse(x.responseText);
		return { status: x.status, error: body.error ?? "", retryAfter, data: body.data ?? null };
	} catch {
		const error = `${x.statusText} ${x.responseText.slice(0, 200)}`.trim();
		return { status: x.status, error, retryAfter, data: null };
	}
}

/** A server that refuses a file may end the connection before its answer was read. */
async function whyBroken(): Promise<string> {
	try {
		await call("symbols");
		return "the server closed the connection: see its log. The file may be too large";
	} catch (e) {
		return (e as Error).message;
	}
}

function send(file: UploadFile, progress: (sent: number) => void, signal: AbortSignal): Promise<Reply> {
	const x = new XMLHttpRequest();
	return new Promise((done) => {
		const broken = async () =>
			done({
				status: 0,
				error: signal.aborted ? "" : await whyBroken(),
				retryAfter: 0,
				data: null,
			});
		x.upload.onprogress = (e) => progress(e.loaded);
		x.onload = () => done(readReply(x));
		x.onerror = x.ontimeout = x.onabort = broken;
		signal.addEventListener("abort", () => x.abort());
		x.open("POST", new URL(apiUrl("symbols/upload", { name: file.name }), document.baseURI));
		x.setRequestHeader("Content-Type", "application/octet-stream");
		x.send(file as File);
	});
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
	return new Promise((done) => {
		const id = setTimeout(done, seconds * 1000);
		signal.addEventListener("abort", () => {
			clearTimeout(id);
			done();
		});
	});
}

/** Of this page; it goes on while another page is shown. */
export const uploads = new Uploads(send, pause);

// Leaving the site ends what is under way, so the browser asks.
if (typeof window !== "undefined")
	window.addEventListener("beforeunload", (e) => {
		if (uploads.active) e.preventDefault();
	});
