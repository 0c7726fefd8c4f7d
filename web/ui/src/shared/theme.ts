// Light or dark: as the system says, unless the user chose.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";
const KEY = "epimetheus.theme";
const media = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function stored(): Theme | null {
	try {
		const v = localStorage.getItem(KEY);
		return v === "light" || v === "dark" ? v : null;
	} catch {
		return null; // storage may be blocked; the choice then lasts until the page is closed
	}
}

let chosen = stored();

export function currentTheme(): Theme {
	return chosen ?? (media.matches ? "dark" : "light");
}

function apply(): void {
	document.documentElement.dataset.theme = currentTheme();
	for (const l of listeners) l();
}

export function installTheme(): void {
	media.addEventListener("change", apply);
	apply();
}

export function toggleTheme(): void {
	chosen = currentTheme() === "dark" ? "light" : "dark";
	try {
		localStorage.setItem(KEY, chosen);
	} catch {
		/* as above */
	}
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
