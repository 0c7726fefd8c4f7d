// Hooks of the page: the URL as state, and answers of the server.
import { createContext } from "preact";
import {
	useCallback,
	useContext,
	useEffect,
	useLayoutEffect,
	useRef,
	useState,
} from "preact/hooks";
import { type Answer, type ApiError, type Args, call } from "./api";
import type { Location, UrlStore } from "./urlstate";

export const UrlContext = createContext<UrlStore>(null as unknown as UrlStore);

export function useUrl(): { store: UrlStore; location: Location } {
	const store = useContext(UrlContext);
	const [location, set] = useState(() => store.get());
	useEffect(() => {
		set(store.get()); // it may have moved between render and effect
		return store.subscribe(() => set(store.get()));
	}, [store]);
	return { store, location };
}

const TURN_MS = 250;

interface State<T> {
	answer: Answer<T> | null;
	error: ApiError | null;
	loading: boolean;
	/** The question `answer` or `error` is to; an older one while a newer is under way. */
	key: string | null;
	/** When the question under way began, by performance.now(); null where none is. */
	since: number | null;
	/** Somebody gave up waiting for it: `answer` is an older one, if any. */
	cancelled: boolean;
}

export interface Loaded<T> extends State<T> {
	/** Aborts the question under way; the server then stops working on it too. */
	cancel(): void;
	/** Asks the same question again. */
	again(): void;
}

/**
 * Asks the server whenever `key` changes; null asks nothing. The last answer stays until the
 * next one is here, so a refresh does not flicker; a newer question aborts the older.
 */
export function useApi<T>(key: string | null, name: string, args: Args = {}): Loaded<T> {
	const idle = { error: null, loading: false, since: null, cancelled: false };
	const [state, set] = useState<State<T>>({
		...idle,
		answer: null,
		loading: key !== null,
		key: null,
	});
	const [round, setRound] = useState(0);
	const last = useRef(args);
	last.current = args;
	const underWay = useRef<AbortController | null>(null);
	useEffect(() => {
		if (key === null) {
			set({ ...idle, answer: null, key });
			return;
		}
		const abort = new AbortController();
		underWay.current = abort;
		set((s) => ({ ...s, loading: true, since: performance.now(), cancelled: false }));
		call<T>(name, last.current, abort.signal).then(
			(answer) => {
				if (!abort.signal.aborted) set({ ...idle, answer, key });
			},
			(error) => {
				if (!abort.signal.aborted) set({ ...idle, answer: null, error, key });
			},
		);
		return () => abort.abort();
	}, [key, name, round]);
	const cancel = useCallback(() => {
		underWay.current?.abort();
		set((s) => (s.loading ? { ...s, ...idle, error: s.error, cancelled: true } : s));
	}, []);
	const again = useCallback(() => setRound((n) => n + 1), []);
	return { ...state, cancel, again };
}

/**
 * The last answer to a question about `about`: one that is asked again keeps what it has, also
 * where that fails, and never shows what another one gave. `key` is that of the question.
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

/** The time now, by performance.now(), again and again while `running`. */
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

/** The time of day in seconds since 1970, moving with each second. */
export function useClock(): number {
	const [now, set] = useState(Date.now() / 1000);
	useInterval(1, () => set(Date.now() / 1000));
	return now;
}

/** Closes on Escape or a press outside of the element the returned ref is given to. */
export function useOutside(open: boolean, close: () => void) {
	const ref = useRef<HTMLDivElement>(null);
	const last = useRef(close);
	last.current = close;
	// It listens from when it is seen.
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

/** The flags that the server was started with. */
export function useFlags(): Loaded<Record<string, string>> {
	return useApi<Record<string, string>>("flags", "status/flags");
}
