// The server cannot be reached: one clock for all questions without an answer. One cheap question
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
}

/** Nobody answered, or something between us and the server did. */
export const unreachable = (e: ApiError): boolean =>
	e.status === 0 || (e.errorType === "bad_response" && GATEWAY.includes(e.status));

export const delaySeconds = (tries: number): number =>
	DELAYS_S[Math.min(tries, DELAYS_S.length - 1)];

export class OutageStore {
	private outage: Outage | null = null;
	private lastAnswer: number | null = null;
	private endedAt = -Infinity;
	private tries = 0;
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

	/** `again` is called once, when the server is back; the result takes that back. */
	wait(again: () => void): () => void {
		this.waiting.add(again);
		if (!this.outage) {
			if (performance.now() - this.endedAt > SAME_MS) this.tries = 0;
			this.schedule();
		}
		return () => this.waiting.delete(again);
	}

	/** Probes the server now. */
	now = (): void => {
		clearTimeout(this.timer);
		this.set({ lastAnswer: this.lastAnswer, retryAt: null });
		this.probe().then(
			() => {
				this.answered();
				this.end();
			},
			(e: ApiError) => (unreachable(e) ? this.schedule() : this.end()),
		);
	};

	private schedule(): void {
		const ms = 1000 * delaySeconds(this.tries++);
		this.set({ lastAnswer: this.lastAnswer, retryAt: performance.now() + ms });
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
