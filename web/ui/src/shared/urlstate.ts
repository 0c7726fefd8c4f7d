// The page's state is its URL: the path relative to the base, and the query string. So back and
// forward work, and a copied link loses nothing.

export interface Location {
	path: string;
	params: URLSearchParams;
}
export type Patch = Record<string, string | null>;

/** A copy of `params` with `patch` applied; null and "" remove. Keys keep a stable order. */
export function patchParams(params: URLSearchParams, patch: Patch): URLSearchParams {
	const out = new URLSearchParams(params);
	for (const [k, v] of Object.entries(patch)) {
		if (v === null || v === "") out.delete(k);
		else out.set(k, v);
	}
	return out;
}

/** The parameters of the alert drawer besides `alert`, the expression that opens it on any page. */
export const ALERT_PARAMS = ["aover", "afor", "aname", "aseverity", "alabels"] as const;

/** Opens the drawer for this expression; "" closes it. */
export const newAlert = (expr: string): Patch => ({
	alert: expr || null,
	...Object.fromEntries(ALERT_PARAMS.map((p) => [p, null])),
});

/** The value of a parameter, if it is one of `all`; else the first of them. */
export const oneOf = <T extends string>(text: string | null, all: readonly T[]): T =>
	all.find((v) => v === text) ?? all[0];

/** `/epi/explore` under base `/epi/` is `explore`; the base itself is "". */
export function pathUnder(base: string, pathname: string): string {
	if (!pathname.startsWith(base)) return "";
	return pathname.slice(base.length).replace(/\/+$/, "");
}

/**
 * Readable query strings: spaces as %20; characters of the language are not escaped where a query
 * string may hold them.
 */
export function formatParams(params: URLSearchParams): string {
	const parts: string[] = [];
	for (const [k, v] of params) parts.push(`${encode(k)}=${encode(v)}`);
	return parts.length ? "?" + parts.join("&") : "";
}

function encode(s: string): string {
	return encodeURIComponent(s).replace(/%(?:3A|2C|2F|40|24)/g, decodeURIComponent);
}

type Listener = () => void;

export class UrlStore {
	private listeners = new Set<Listener>();
	private base: string;

	constructor(private win: Window & typeof globalThis) {
		this.base = new URL(win.document.baseURI).pathname;
		win.addEventListener("popstate", () => this.emit());
	}

	get(): Location {
		return {
			path: pathUnder(this.base, this.win.location.pathname),
			params: new URLSearchParams(this.win.location.search),
		};
	}

	href(path: string, params: URLSearchParams = new URLSearchParams()): string {
		return this.base + path + formatParams(params);
	}

	go(path: string, params: URLSearchParams, replace = false): void {
		const href = this.href(path, params);
		if (href === this.win.location.pathname + this.win.location.search) return;
		if (replace) this.win.history.replaceState(null, "", href);
		else this.win.history.pushState(null, "", href);
		this.emit();
	}

	patch(patch: Patch, replace = false): void {
		const { path, params } = this.get();
		this.go(path, patchParams(params, patch), replace);
	}

	subscribe(listener: Listener): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	private emit(): void {
		for (const l of this.listeners) l();
	}
}
