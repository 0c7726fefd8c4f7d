// A selected frame without a name: what it is, and how its binary gets names.
import { aboutUnnamed } from "../flame/unnamed";
import { zoomedNode, nameOf, type Flame } from "../flame/layout";
import type { FlameAction } from "../flame/menu";
import { Copyable, copyText } from "../shared/copybutton";
import { must } from "../shared/must";
import {
	binariesIn,
	type NamedBinary,
	binaryNamed,
	seenSince,
	symbolsParams,
	symbolsUrl,
	unnamedOf,
	uploadCommand,
} from "../shared/symbols";
import type { UrlStore } from "../shared/urlstate";
import "./unnamednote.css";

/** The filter of the page Symbols for a binary: its build id if the answer says it, else its name. */
const symbolsFilter = (binaries: NamedBinary[], base: string): string =>
	binaryNamed(binaries, base)?.id ?? base;

const commandOf = (binaries: NamedBinary[], base: string): string =>
	uploadCommand(binaryNamed(binaries, base)?.path ?? base, document.baseURI);

const nowS = (): number => Date.now() / 1000;

/** The menu entries of frames without names; `since` is when the window began. */
export function unnamedActions(binaries: NamedBinary[], since: number, store: UrlStore): FlameAction[] {
	const when = (name: string) => unnamedOf(name)?.file ?? false;
	const binary = (name: string) => must(unnamedOf(name), name).binary;
	return [
		{
			label: "Symbols of this binary",
			hint: "Debug data of this binary, and how to add it",
			when,
			run: (name) =>
				store.go(
					"symbols",
					symbolsParams(symbolsFilter(binaries, binary(name)), seenSince(since, nowS())),
				),
		},
		{
			label: "Copy the command to upload symbols",
			hint: "epitool debuginfo upload, to run where the binary is",
			when,
			run: (name) => void copyText(commandOf(binaries, binary(name))),
		},
	];
}

/** The function that a result is about: the one between callers and callees, picked, or zoomed. */
export function selectedName(of: {
	fn: string;
	pick: string;
	flame: Flame | null;
	zoom: string;
}): string {
	if (of.fn || of.pick) return of.fn || of.pick;
	return of.flame && of.zoom ? (nameOf(of.flame, zoomedNode(of.flame, of.zoom)) ?? "") : "";
}

export function UnnamedNote(props: { name: string; infos: string[]; since: number }) {
	const { name, infos, since } = props;
	const unnamed = unnamedOf(name);
	if (!unnamed) return null;
	const { binary, file } = unnamed;
	const binaries = binariesIn(infos);
	return (
		<div class="unnamed-note" role="note">
			<span class="unnamed-what">
				<i class="hatch" />
				<b>{name}</b> {aboutUnnamed(unnamed)}
			</span>
			{file && (
				<>
					<a href={symbolsUrl(symbolsFilter(binaries, binary), seenSince(since, nowS()))}>Symbols of {binary}</a>
					<Copyable text={commandOf(binaries, binary)} what="the command" />
				</>
			)}
		</div>
	);
}
