// Files that are sent to the server, one after the other: what comes of each, in words. The queue
// outlives the page Symbols, so that an upload goes on while another page is shown.
import { must } from "../shared/must";
import { formatBytes } from "../shared/units";

/** What a sender has of a file, and tests make themselves. */
export interface UploadFile {
	name: string;
	size: number;
	slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/** The server's answer; status 0: the connection broke. */
export interface Reply {
	status: number;
	/** Of the envelope, else the text itself. */
	error: string;
	/** Of the header Retry-After, in seconds; 0 if there is none. */
	retryAfter: number;
	data: { id?: string; kind?: string; state?: string } | null;
}

export type Send = (file: UploadFile, progress: (sent: number) => void, signal: AbortSignal) => Promise<Reply>;

export type UploadStage = "waiting" | "sending" | "pausing" | "taken" | "kept" | "refused" | "cancelled";

export interface Upload {
	key: number;
	name: string;
	size: number;
	sent: number;
	stage: UploadStage;
	/** Why it was refused, or is pausing. */
	text: string;
	/** The build id, if the server took it. */
	id: string;
}

const TRIES = 6;
const PAUSE_S = 5;
const PAUSE_MOST_S = 120;
const ELF = [0x7f, 0x45, 0x4c, 0x46];

/** Why a file need not be sent; "" if it may be one with debug data. */
export async function whyNot(file: UploadFile): Promise<string> {
	let head: Uint8Array;
	try {
		head = new Uint8Array(await file.slice(0, ELF.length).arrayBuffer());
	} catch {
		return (
			"Not readable. For a folder, run epitool debuginfo upload --recursive, " +
			"or drop its files here."
		);
	}
	if (file.size === 0) return "Empty file.";
	if (ELF.some((b, i) => head[i] !== b))
		return (
			"Not an ELF file. Upload programs, libraries (.so) or debug files (.debug); " +
			"unpack archives first."
		);
	return "";
}

/** Whether the same file may be taken later. */
const isBusy = (r: Reply): boolean => r.status === 429 || r.status === 503;

/** A reply other than success, in words. */
export function refusal(r: Reply, file: { size: number }, sent: number): string {
	const why = r.error ? `: ${r.error}` : ".";
	switch (r.status) {
		case 0:
			return (
				`The connection broke after ${formatBytes(sent)} of ${formatBytes(file.size)}` +
				(r.error ? `: ${r.error}` : ". Check that the server runs, and its log.")
			);
		case 400:
			return `Not usable${why}`;
		case 403:
			return `Not allowed${why}`;
		case 404:
			return `Uploads are off${why}`;
		case 409:
			return `Not needed${why}`;
		case 413:
			return `Too large, ${formatBytes(file.size)}${why}`;
		case 429:
		case 503:
			return `Server busy${why}`;
		case 507:
			return `No space on the server${why}`;
		default:
			return `The server answered ${r.status}${why}`;
	}
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : text + ".");

/** The seconds until the same is tried again. */
export function pauseOf(r: Reply): number {
	const s = r.retryAfter > 0 ? r.retryAfter : PAUSE_S;
	return Math.min(PAUSE_MOST_S, s);
}

export class Uploads {
	private all: Upload[] = [];
	private files = new Map<number, UploadFile>();
	private aborts = new Map<number, AbortController>();
	private listeners = new Set<() => void>();
	private running = false;
	private next = 1;

	constructor(
		private send: Send,
		/** Resolves after so many seconds, or when aborted. */
		private pause: (seconds: number, signal: AbortSignal) => Promise<void>,
	) {}

	/** The newest last; another array after each change. */
	get list(): Upload[] {
		return this.all;
	}

	get active(): boolean {
		return this.running;
	}

	subscribe(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	add(files: UploadFile[]): Promise<void> {
		for (const f of files) {
			const key = this.next++;
			this.files.set(key, f);
			const u = { key, name: f.name, size: f.size, sent: 0, text: "", id: "" };
			this.all = [...this.all, { ...u, stage: "waiting" as const }];
		}
		this.changed();
		return this.run();
	}

	/** Of one that waits or is being sent. */
	cancel(key: number): void {
		this.aborts.get(key)?.abort();
		if (this.all.find((u) => u.key === key)?.stage === "waiting")
			this.set(key, { stage: "cancelled" });
	}

	/** Forgets those that have ended. */
	clear(): void {
		this.all = this.all.filter((u) => ["waiting", "sending", "pausing"].includes(u.stage));
		this.changed();
	}

	private changed(): void {
		for (const l of this.listeners) l();
	}

	private set(key: number, part: Partial<Upload>): void {
		this.all = this.all.map((u) => (u.key === key ? { ...u, ...part } : u));
		this.changed();
	}

	private async run(): Promise<void> {
		if (this.running) return;
		this.running = true;
		for (;;) {
			const u = this.all.find((o) => o.stage === "waiting");
			if (!u) break;
			await this.one(u.key);
		}
		this.running = false;
		this.changed();
	}

	private async one(key: number): Promise<void> {
		const file = must(this.files.get(key), "a file of the queue");
		const abort = new AbortController();
		this.aborts.set(key, abort);
		this.set(key, { stage: "sending" });
		const why = await whyNot(file);
		if (abort.signal.aborted) this.set(key, { stage: "cancelled" });
		else if (why) this.set(key, { stage: "refused", text: why });
		else await this.tries(key, file, abort.signal);
		this.aborts.delete(key);
		this.files.delete(key);
	}

	private async tries(key: number, file: UploadFile, signal: AbortSignal): Promise<void> {
		for (let n = 1; ; n++) {
			let sent = 0;
			this.set(key, { stage: "sending", sent, text: "" });
			const r = await this.send(
				file,
				(bytes) => {
					sent = bytes;
					this.set(key, { sent });
				},
				signal,
			);
			if (signal.aborted) return this.set(key, { stage: "cancelled" });
			if (r.status === 200)
				return this.set(key, { stage: "taken", sent: file.size, id: r.data?.id ?? "" });
			const text = sentence(refusal(r, file, sent));
			if (!isBusy(r) || n === TRIES)
				return this.set(key, { stage: r.status === 409 ? "kept" : "refused", text });
			const seconds = pauseOf(r);
			this.set(key, { stage: "pausing", text: `${text} Next attempt in ${seconds} s.` });
			await this.pause(seconds, signal);
			if (signal.aborted) return this.set(key, { stage: "cancelled" });
		}
	}
}
