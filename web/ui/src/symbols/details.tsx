// One binary: all that is known of it, and how it gets names.
import type { ComponentChildren } from "preact";
import { Copyable } from "../shared/copybutton";
import { IconX } from "../shared/icons";
import { IsOff } from "../shared/notices";
import { uploadCommand } from "../shared/symbols";
import { formatClock } from "../shared/timerange";
import { formatBytes } from "../shared/units";
import {
	type Binary,
	stateChip,
	contentOf,
	idKind,
	LOOK_CONFIG,
	binaryName,
	originOf,
	type Symbols,
	wantsFile,
} from "./symbols";

function Time({ text }: { text: string }) {
	return <span title={text}>{formatClock(Date.parse(text) / 1000)}</span>;
}

/** What is known: name and value; those that are not known are left out. */
function facts(b: Binary): [string, ComponentChildren][] {
	const id = b.id && <Copyable text={b.id} what="the build id" />;
	const all: [string, ComponentChildren][] = [
		["Path", b.path && <code>{b.path}</code>],
		[
			b.id ? idKind(b) : "Build id",
			id || "none in the profiles: files with the same name are used",
		],
		["Jobs", b.jobs?.join(", ")],
		["Addresses in profiles", b.addresses?.toLocaleString("en")],
		["Source", [originOf(b), contentOf(b)].filter(Boolean).join(": ")],
		["Size of the file", b.sourceBytes !== undefined && formatBytes(b.sourceBytes)],
		["Size of the index", b.indexBytes !== undefined && formatBytes(b.indexBytes)],
		["Added", b.addedAt && <Time text={b.addedAt} />],
		["Last used", b.usedAt && <Time text={b.usedAt} />],
		["Next request", b.againAt && <Time text={b.againAt} />],
	];
	return all.filter(([, value]) => value !== undefined && value !== false && value !== "");
}

/** How the server looks by itself; debuginfod servers know GNU build ids only. */
function Looking({ binary, symbols }: { binary: Binary; symbols: Symbols }) {
	const servers = symbols.debuginfod ?? [];
	const directories = symbols.directories ?? [];
	if (servers.length + directories.length > 0)
		return (
			<li>
				The server looks for this file
				{servers.length > 0 && (
					<>
						{" "}
						at <code>{servers.join(", ")}</code>
					</>
				)}
				{directories.length > 0 && (
					<>
						{servers.length > 0 && " and"} in <code>{directories.join(", ")}</code>
					</>
				)}
				.
			</li>
		);
	return (
		<li>
			Or let the server look for such files. In the configuration
			{binary.kind !== "gnu" && " (debuginfod servers know GNU build ids only)"}:
			<Copyable text={LOOK_CONFIG} what="the lines of the configuration" />
		</li>
	);
}

function WhatToDo({ binary, symbols }: { binary: Binary; symbols: Symbols }) {
	if (!wantsFile(binary)) return null;
	return (
		<>
			<h3>What to do</h3>
			<ul class="to-do">
				{symbols.uploadEnabled ? (
					<li>
						On a machine with the binary, or its debug file:
						<Copyable
							text={uploadCommand(binary.path ?? "", document.baseURI)}
							what="the command"
						/>
						or drop the file on this page.
					</li>
				) : (
					<li>
						<IsOff what="Uploads" flag="--web.enable-ingest" also="query" />
					</li>
				)}
				<Looking binary={binary} symbols={symbols} />
			</ul>
		</>
	);
}

export function Details(props: { binary: Binary; symbols: Symbols; onClose(): void }) {
	const { binary, symbols } = props;
	const chip = stateChip(binary);
	return (
		<section class="panel symbol-details" aria-labelledby="symbol-name">
			<div class="panel-head">
				<h2 id="symbol-name">{binaryName(binary)}</h2>
				<span class={`badge ${chip.mark}`}>{chip.text}</span>
				<span class="spacer" />
				<button type="button" class="quiet" aria-label="Close" onClick={props.onClose}>
					<IconX />
				</button>
			</div>
			<p class="symbol-hint">{chip.hint}</p>
			<div class="symbol-body">
				<table class="plain pairs">
					<tbody>
						{facts(binary).map(([name, value]) => (
							<tr key={name}>
								<th scope="row">{name}</th>
								<td>{value}</td>
							</tr>
						))}
					</tbody>
				</table>
				<div class="symbol-help">
					<WhatToDo binary={binary} symbols={symbols} />
				</div>
			</div>
		</section>
	);
}
