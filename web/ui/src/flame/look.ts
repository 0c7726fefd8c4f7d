// How a flame graph is looked at: which way it grows, how siblings stand, what colours mean,
// and whether recursion is one frame. It lives in the URL; what is usual is left out there.

import { oneOf } from "../shared/urlstate";

export interface FlameLook {
	/** "icicle" hangs from its root, "flame" stands on it. */
	orientation: "icicle" | "flame";
	/** Siblings from left to right: by name, or the most expensive first. */
	order: "name" | "cost";
	/** What a colour says; in a difference it is always the change. */
	color: "package" | "file" | "share";
	/** Consecutive frames of one function are one. */
	collapse: boolean;
}

export const DEFAULT_LOOK: FlameLook = {
	orientation: "icicle",
	order: "name",
	color: "package",
	collapse: false,
};

/** The look an address asks for; what it does not know of is as usual. */
export function lookFromParams(params: URLSearchParams): FlameLook {
	return {
		orientation: oneOf(params.get("dir"), ["icicle", "flame"] as const),
		order: oneOf(params.get("order"), ["name", "cost"] as const),
		color: oneOf(params.get("color"), ["package", "file", "share"] as const),
		collapse: params.get("collapse") === "1",
	};
}

/** What to change in the address for a look; null leaves a parameter out. */
export function lookPatch(look: FlameLook): Record<string, string | null> {
	return {
		dir: look.orientation === DEFAULT_LOOK.orientation ? null : look.orientation,
		order: look.order === DEFAULT_LOOK.order ? null : look.order,
		color: look.color === DEFAULT_LOOK.color ? null : look.color,
		collapse: look.collapse ? "1" : null,
	};
}
