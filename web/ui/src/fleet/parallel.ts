// Several questions at once: each answer is shown when it arrives, a failed one does not hide the
// others, and running ones can be cancelled.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, call } from "../shared/api";
import { useAgain } from "../shared/hooks";
import { outages, unreachable } from "../shared/outage";
import type { Ask } from "./fleet";

export interface Many {
	/** The subject; answers are dropped when it changes. */
	about: string;
	data: Record<string, unknown>;
	/** What the answers lack, by the same keys as `data`. */
	warnings: Record<string, string[]>;
	errors: Record<string, ApiError>;
	/** Questions without an answer yet, by their keys. */
	waiting: string[];
	/** The key of the round that began last. */
	key: string | null;
	/** performance.now() at the beginning of the running round. */
	since: number | null;
	tookMs: number;
}

const NOTHING: Many = {
	about: "",
	data: {},
	warnings: {},
	errors: {},
	waiting: [],
	key: null,
	since: null,
	tookMs: 0,
};

/** Whether all questions of the round `key` are answered, or have failed. */
export const roundEnded = (many: Many, key: string | null): boolean =>
	key !== null && many.key === key && many.since === null;

/**
 * Asks all of `asks` whenever `key` changes; null asks nothing. Older answers about the same subject
 * stay until newer ones arrive.
 */
export function useMany(
	key: string | null,
	about: string,
	asks: Ask[],
): Many & { cancel(): void } {
	const [state, set] = useState<Many>(NOTHING);
	const [round, setRound] = useState(0);
	const abort = useRef<AbortController | null>(null);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the questions
	useEffect(() => {
		if (key === null) return;
		const own = new AbortController();
		abort.current = own;
		const since = performance.now();
		set((s) => ({
			...(s.about === about ? s : { ...NOTHING, about }),
			errors: {},
			waiting: asks.map((a) => a.key),
			key,
			since,
		}));
		const settle = (k: string, change: (s: Many) => Partial<Many>) => {
			if (own.signal.aborted) return;
			set((s) => {
				const waiting = s.waiting.filter((w) => w !== k);
				const tookMs = performance.now() - since;
				const done = waiting.length ? {} : { since: null, tookMs };
				return { ...s, ...change(s), waiting, ...done };
			});
		};
		for (const a of asks)
			call<unknown>(a.name, a.args, own.signal).then(
				({ data, warnings }) => {
					outages.answered();
					settle(a.key, (s) => ({
						data: { ...s.data, [a.key]: data },
						warnings: { ...s.warnings, [a.key]: warnings },
					}));
				},
				(error) => settle(a.key, (s) => ({ errors: { ...s.errors, [a.key]: error } })),
			);
		return () => own.abort();
	}, [key, round]);
	const lost = Object.values(state.errors).find(unreachable) ?? null;
	useAgain(state.waiting.length ? null : lost, () => setRound((n) => n + 1));
	const cancel = () => {
		abort.current?.abort();
		set((s) => ({ ...s, waiting: [], since: null }));
	};
	return { ...state, cancel };
}
