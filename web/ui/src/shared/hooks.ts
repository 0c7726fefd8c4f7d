// Hooks of the page: the URL as state, and answers of the server.
import { createContext } from "preact";
import {
	useCallback,
	useContext,
	useEffect,
	useLayoutEffect,
	useMemo,
	useRef,
	useState,
} from "preact/hooks";
import { type Answer, type ApiError, type Args, call } from "./api";
import { must } from "./must";
import { delaySeconds, outages, unreachable } from "./outage";
import type { Location, UrlStore } from "./urlstate";

export const UrlContext = createContext<UrlStore | null>(null);

export function useUrl(): { store: UrlStore; location: Location } {
	const store = must(useContext(UrlContext), "the address");
	const [location, set] = useState(() => store.get());
	useEffect(() => {
		set(store.get()); // it may have moved between render and effect
		return store.subscribe(() => set(store.get()));
	}, [store]);
	return { store, location };
}

/** What `make` gave for this key, which names all that it depends on. */
export function useKeyed<T>(key: string | null, make: () => T): T {
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what is read
	return useMemo(make, [key]);
}

/** The same object while its content is the same, so that a refresh leaves a table alone. */
export function useSame<T>(value: T): T {
	const last = useRef({ value, text: "" });
	const text = JSON.stringify(value);
	if (text !== last.current.text) last.current = { value, text };
	return last.current.value;
}

const TURN_MS = 250;

interface State<T> {
	answer: Answer<T> | null;
	error: ApiError | null;
	loading: boolean;
	/**
	 * The question that `answer` belongs to, else `error`; an older one while a newer one is running,
	 * and after it has failed.
	 */
	key: string | null;
	/** When the running question began, by performance.now(); null if none is running. */
	since: number | null;
	/** The user cancelled it: `answer` is an older one, if any. */
	cancelled: boolean;
}

export interface Loaded<T> extends State<T> {
	/** Aborts the running question; the server then stops working on it too. */
	cancel(): void;
	/** Asks the same question again. */
	again(): void;
}

/** The server's own failure, which may pass. A query that takes too long would only do so again. */
const retried = (e: ApiError): boolean => e.status >= 500 && e.errorType !== "timeout";

/** Asks again when the server is back, or at the time that the error names. */
export function useAgain(error: ApiError | null, again: () => void): void {
	const last = useRef(again);
	last.current = again;
	useEffect(() => {
		const ask = () => last.current();
		if (!error) return;
		if (unreachable(error)) return outages.wait(ask, error);
		if (error.retryAt === undefined) return;
		const timer = setTimeout(ask, error.retryAt - performance.now());
		return () => clearTimeout(timer);
	}, [error]);
}

/** No question is running, and none has failed. */
const IDLE = { error: null, loading: false, since: null, cancelled: false };

/**
 * Asks the server whenever `key` changes; null asks nothing. The last answer stays until the next
 * one arrives, so that a refresh does not flicker and an error leaves what is shown. The error
 * of a query ends when another query is asked. A newer question aborts the older one. If the server
 * itself failed, the question is asked again.
 */
export function useApi<T>(key: string | null, name: string, args: Args = {}): Loaded<T> {
	const [state, set] = useState<State<T>>({
		...IDLE,
		answer: null,
		loading: key !== null,
		key: null,
	});
	const [round, setRound] = useState(0);
	const last = useRef(args);
	last.current = args;
	const underWay = useRef<AbortController | null>(null);
	const tries = useRef(0);
	const asked = useRef(args.query);
	useEffect(() => {
		const other = asked.current !== last.current.query;
		asked.current = last.current.query;
		if (key === null) {
			set({ ...IDLE, answer: null, key });
			return;
		}
		const abort = new AbortController();
		underWay.current = abort;
		const now = { loading: true, since: performance.now(), cancelled: false };
		set((s) => ({ ...s, ...now, error: other && s.error && !unreachable(s.error) ? null : s.error }));
		call<T>(name, last.current, abort.signal).then(
			(answer) => {
				if (abort.signal.aborted) return;
				outages.answered();
				tries.current = 0;
				set({ ...IDLE, answer, key });
			},
			(error) => {
				if (abort.signal.aborted) return;
				if (!unreachable(error) && retried(error))
					error.retryAt = performance.now() + 1000 * delaySeconds(tries.current++);
				set((s) => ({ ...s, ...IDLE, error, key: s.answer ? s.key : key }));
			},
		);
		return () => abort.abort();
	}, [key, name, round]);
	const cancel = useCallback(() => {
		underWay.current?.abort();
		set((s) => (s.loading ? { ...s, ...IDLE, error: s.error, cancelled: true } : s));
	}, []);
	const again = useCallback(() => setRound((n) => n + 1), []);
	useAgain(state.error, again);
	return { ...state, cancel, again };
}

/**
 * The last answer about `about`. A repeated question keeps its answer, even if the repetition
 * fails, and never shows the answer to another one. `key` is that of the question.
 */
export function useOwnAnswer<T>(
	loaded: Loaded<T>,
	key: string | null,
	about: string,
): Answer<T> | null {
	const last = useRef<{ about: string; answer: Answer<T> | null }>({ about, answer: null });
	if (loaded.answer && loaded.key === key) last.current = { about, answer: loaded.answer };
	return last.current.about === about ? last.current.answer : null;
}

/** performance.now(), updated while `running`. */
export function useNow(running: boolean): number {
	const [now, set] = useState(() => performance.now());
	useEffect(() => {
		if (!running) return;
		set(performance.now());
		const id = setInterval(() => set(performance.now()), TURN_MS);
		return () => clearInterval(id);
	}, [running]);
	return now;
}

/** Calls `fn` every `seconds` while the page is visible; 0 for never. */
export function useInterval(seconds: number, fn: () => void): void {
	const last = useRef(fn);
	last.current = fn;
	useEffect(() => {
		if (seconds <= 0) return;
		const id = setInterval(() => {
			if (!document.hidden) last.current();
		}, seconds * 1000);
		return () => clearInterval(id);
	}, [seconds]);
}

/** Seconds since 1970, updated every second. */
export function useClock(): number {
	const [now, set] = useState(Date.now() / 1000);
	useInterval(1, () => set(Date.now() / 1000));
	return now;
}

/** Calls `close` on Escape and on a press outside of the element with the returned ref. */
export function useOutside(open: boolean, close: () => void) {
	const ref = useRef<HTMLDivElement>(null);
	const last = useRef(close);
	last.current = close;
	// A layout effect, so that it listens as soon as the element is visible.
	useLayoutEffect(() => {
		if (!open) return;
		const down = (e: Event) => {
			if (ref.current && !ref.current.contains(e.target as Node)) last.current();
		};
		const key = (e: KeyboardEvent) => {
			if (e.key === "Escape") last.current();
		};
		document.addEventListener("pointerdown", down);
		document.addEventListener("keydown", key);
		return () => {
			document.removeEventListener("pointerdown", down);
			document.removeEventListener("keydown", key);
		};
	}, [open]);
	return ref;
}

/** What is dragged, if it has files. */
const filesIn = (e: DragEvent): DataTransfer | null =>
	e.dataTransfer?.types.includes("Files") ? e.dataTransfer : null;

/** Whether all files have the ending of a profile. */
export const areProfiles = (data: DataTransfer): boolean =>
	[...data.files].every((f) =>
		/\.(pb|pprof|prof|jfr|folded|collapsed|speedscope\.json)(\.gz)?$/i.test(f.name),
	);

interface Taker {
	/** Whether it leaves such files to the one that came before it. */
	leaves(data: DataTransfer): boolean;
}
/** Who takes files: the one that came last, such as an area of the page for other files. */
const takers: Taker[] = [];

/**
 * Takes files dropped anywhere on the page, and says whether some are held over it. null takes none:
 * a drop does nothing then, where the browser would leave the page for the file. An area for other
 * files `leaves` profiles to the page.
 */
export function useDrop(
	take: ((data: DataTransfer) => void) | null,
	leaves: Taker["leaves"] = () => false,
): boolean {
	const [over, setOver] = useState(false);
	const last = useRef(take);
	last.current = take;
	// biome-ignore lint/correctness/useExhaustiveDependencies: `leaves` is the same for each component
	useEffect(() => {
		const me = { leaves };
		takers.push(me);
		const onOver = (e: DragEvent) => {
			const data = filesIn(e);
			if (!data || takers[takers.length - 1] !== me) return;
			e.preventDefault();
			// Names are known when the files are dropped.
			data.dropEffect = last.current || takers.length > 1 ? "copy" : "none";
			setOver(last.current !== null);
		};
		const onLeave = (e: DragEvent) => {
			if (!e.relatedTarget) setOver(false); // it left the window
		};
		const onDrop = (e: DragEvent) => {
			const data = filesIn(e);
			if (!data) return;
			e.preventDefault();
			setOver(false);
			const taker = [...takers].reverse().find((t) => !t.leaves(data));
			if (taker === me) last.current?.(data);
		};
		window.addEventListener("dragover", onOver);
		window.addEventListener("dragleave", onLeave);
		window.addEventListener("drop", onDrop);
		return () => {
			takers.splice(takers.indexOf(me), 1);
			window.removeEventListener("dragover", onOver);
			window.removeEventListener("dragleave", onLeave);
			window.removeEventListener("drop", onDrop);
		};
	}, []);
	return over;
}

/** The flags that the server was started with. */
export function useFlags(): Loaded<Record<string, string>> {
	return useApi<Record<string, string>>("flags", "status/flags");
}
