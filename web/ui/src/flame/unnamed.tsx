// Frames without names: their mark in the legend, and what they are, in words.
import { useMemo } from "preact/hooks";
import { symbolsUrl, type Unnamed } from "../shared/symbols";
import { unnamedFlags } from "./color";
import type { Flame } from "./layout";

export const WHAT_TO_DO = "To get names, see the menu (right click, or the menu key).";

export function aboutUnnamed({ binary, address, file }: Unnamed): string {
	if (!binary)
		return address
			? "An address without a name, in an unknown binary."
			: "Function and binary are unknown.";
	const what = address ? "An address" : "Code";
	return file
		? `${what} in ${binary} without a name: no symbols for it are here.`
		: `${what} in ${binary}, which no file has names for.`;
}

/** Whether some frames have no names. */
export function useUnnamed({ names }: Flame): boolean {
	return useMemo(() => unnamedFlags(names) !== null, [names]);
}

/** The mark of frames without names; it leads to the page Symbols. */
export function UnnamedLegend() {
	return (
		<a
			class="unnamed-legend"
			href={symbolsUrl()}
			title="Hatched: addresses without names. See Symbols for binaries without debug data"
		>
			<i class="hatch" />
			without names
		</a>
	);
}
