// The look of a flame graph: direction, order of siblings, meaning of colours, recursion as one
// frame. It is kept in the URL, where defaults are left out.

import { oneOf } from "../shared/urlstate";

export interface FlameLook {
	/** "icicle": root at the top; "flame": root at the bottom. */
	orientation: "icicle" | "flame";
	/** The order of siblings: by name, or the most expensive first. */
	order: "name" | "cost";
	/** The meaning of colours; in a difference it is always the change. */
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

/** The look in an address, with defaults for what it lacks. */
export function lookFromParams(params: URLSearchParams): FlameLook {
	return {
		orientation: oneOf(params.get("dir"), ["icicle", "flame"] as const),
		order: oneOf(params.get("order"), ["name", "cost"] as const),
		color: oneOf(params.get("color"), ["package", "file", "share"] as const),
		collapse: params.get("collapse") === "1",
	};
}

/** The parameters of a look; null removes one. */
export function lookPatch(look: FlameLook): Record<string, string | null> {
	return {
		dir: look.orientation === DEFAULT_LOOK.orientation ? null : look.orientation,
		order: look.order === DEFAULT_LOOK.order ? null : look.order,
		color: look.color === DEFAULT_LOOK.color ? null : look.color,
		collapse: look.collapse ? "1" : null,
	};
}
