// The server cannot be reached, or is not ready: one clock for all questions without an answer. One cheap question
// probes the server; when it is answered, all others are asked again.
import { type ApiError, call } from "./api";

const DELAYS_S = [3, 5, 10, 20, 30];
/** An outage that begins so soon after the last one is the same: it goes on with longer delays. */
const SAME_MS = 30000;
const GATEWAY = [502, 503, 504];

export interface Outage {
	/** When the last answer came, in seconds since 1970; null if there was none. */
	lastAnswer: number | null;
	/** When the server is probed next, by performance.now(); null while it is. */
	retryAt: number | null;
	/** What a server that is starting waits for, in its words; "" if it cannot be reached. */
	waitsFor: string;
}

const NOT_READY = "not ready: ";

/** What the server waits for before it answers questions; "" if the error is another one. */
export const waitsFor = (e: ApiError): string =>
	e.status === 503 && e.errorType === "unavailable" && e.message.startsWith(NOT_READY)
		? e.message.slice(NOT_READY.length)
		: "";

/** Nobody answered, or something between us and the server did, or the server is not ready. */
export const unreachable = (e: ApiError): boolean =>
	e.status === 0 ||
	(e.errorType === "bad_response" && GATEWAY.includes(e.status)) ||
	waitsFor(e) !== "";

export const delaySeconds = (tries: number): number =>
	DELAYS_S[Math.min(tries, DELAYS_S.length - 1)];

export class OutageStore {
	private outage: Outage | null = null;
	private lastAnswer: number | null = null;
	private endedAt = -Infinity;
	private tries = 0;
	private reason = "";
	private timer: ReturnType<typeof setTimeout> | undefined;
	private waiting = new Set<() => void>();
	private listeners = new Set<() => void>();

	constructor(private probe: () => Promise<unknown>) {}

	get = (): Outage | null => this.outage;

	subscribe(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	answered(): void {
		this.lastAnswer = Date.now() / 1000;
	}

	/** `again` is called once, when the server is back; the result takes that back. `e`: why it is not. */
	wait(again: () => void, e?: ApiError): () => void {
		this.waiting.add(again);
		if (!this.outage) {
			if (performance.now() - this.endedAt > SAME_MS) this.tries = 0;
			this.schedule(e);
		}
		return () => this.waiting.delete(again);
	}

	/** Probes the server now. */
	now = (): void => {
		clearTimeout(this.timer);
		this.set({ lastAnswer: this.lastAnswer, retryAt: null, waitsFor: this.reason });
		this.probe().then(
			() => {
				this.answered();
				this.end();
			},
			(e: ApiError) => (unreachable(e) ? this.schedule(e) : this.end()),
		);
	};

	private schedule(e?: ApiError): void {
		const reason = e ? waitsFor(e) : "";
		if (reason) this.tries = Math.min(this.tries, 1); // it comes for sure: asked every 5 s
		this.reason = reason;
		const ms = 1000 * delaySeconds(this.tries++);
		this.set({ lastAnswer: this.lastAnswer, retryAt: performance.now() + ms, waitsFor: reason });
		this.timer = setTimeout(this.now, ms);
	}

	private end(): void {
		this.endedAt = performance.now();
		this.set(null);
		const all = [...this.waiting];
		this.waiting.clear();
		for (const again of all) again();
	}

	private set(outage: Outage | null): void {
		this.outage = outage;
		for (const l of this.listeners) l();
	}
}

export const outages = new OutageStore(() => call("status/buildinfo"));
