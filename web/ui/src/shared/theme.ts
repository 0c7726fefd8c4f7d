// What the user chose once for all pages, kept in the browser's storage: light or dark (else as the
// system says), and times in UTC (else in the zone of the browser).
import { useEffect, useState } from "preact/hooks";
import { setUtc } from "./timerange";

export type Theme = "light" | "dark";
const KEY = "epimetheus.theme";
const media = window.matchMedia("(prefers-color-scheme: dark)");
/** Read when it changes alone: whoever reads `matches` just before the event takes the event away. */
let systemIsDark = media.matches;
const listeners = new Set<() => void>();

function kept<T extends string>(key: string, known: readonly T[]): T | null {
	try {
		const v = localStorage.getItem(key);
		return known.find((k) => k === v) ?? null;
	} catch {
		return null; // storage may be blocked; the choice then lasts until the page is closed
	}
}

function keep(key: string, choice: string): void {
	try {
		localStorage.setItem(key, choice);
	} catch {
		/* as above */
	}
}

let chosen = kept<Theme>(KEY, ["light", "dark"]);

export function currentTheme(): Theme {
	return chosen ?? (systemIsDark ? "dark" : "light");
}

function apply(): void {
	document.documentElement.dataset.theme = currentTheme();
	for (const l of listeners) l();
}

export function installTheme(): void {
	media.addEventListener("change", (e) => {
		systemIsDark = e.matches;
		apply();
	});
	apply();
}

export function toggleTheme(): void {
	chosen = currentTheme() === "dark" ? "light" : "dark";
	keep(KEY, chosen);
	apply();
}

export function useTheme(): Theme {
	const [theme, set] = useState(currentTheme());
	useEffect(() => {
		const l = () => set(currentTheme());
		listeners.add(l);
		return () => {
			listeners.delete(l);
		};
	}, []);
	return theme;
}

const ZONE_KEY = "epimetheus.zone";
let zone = kept(ZONE_KEY, ["utc", "local"]);
/** A link with `tz=utc` was opened: it wins until the switch is pressed, and is not kept. */
let linked = false;

/** Shows all times in the chosen zone. `byLink`: the address has `tz=utc`. */
export function useZone(byLink: boolean): { utc: boolean; toggle(): void } {
	const [, redraw] = useState(0);
	if (byLink) linked = true;
	const utc = linked || zone === "utc";
	setUtc(utc); // before the page below is rendered
	const toggle = () => {
		linked = false;
		zone = utc ? "local" : "utc";
		keep(ZONE_KEY, zone);
		redraw((n) => n + 1);
	};
	return { utc, toggle };
}
