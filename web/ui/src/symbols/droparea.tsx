// Files dropped or chosen, sent to the server, and what came of each.
import { useEffect, useRef, useState } from "preact/hooks";
import { Copyable } from "../shared/copybutton";
import { takeFiles } from "../shared/fields";
import { areProfiles, useDrop } from "../shared/hooks";
import { IconX } from "../shared/icons";
import { attached } from "../shared/must";
import { IsOff } from "../shared/notices";
import { symbolsUrl, uploadCommand } from "../shared/symbols";
import { formatBytes, formatPercent, share } from "../shared/units";
import { uploads } from "./send";
import { type Binary, stateChip, shortId, type Symbols } from "./symbols";
import type { UploadStage, Upload } from "./uploads";

/** The uploads of this page, as they are now. */
export function useUploads(): { list: Upload[]; active: boolean } {
	const [now, set] = useState({ list: uploads.list, active: uploads.active });
	useEffect(() => uploads.subscribe(() => set({ list: uploads.list, active: uploads.active })), []);
	return now;
}

const STAGES: Record<UploadStage, [text: string, mark: string]> = {
	waiting: ["waiting", ""],
	sending: ["uploading", "wait"],
	pausing: ["waiting", "wait"],
	taken: ["taken", "up"],
	kept: ["not needed", ""],
	refused: ["refused", "down"],
	cancelled: ["cancelled", ""],
};

/** What is said of an upload: its own words, then those of its binary. */
function Words({ upload: u, binary }: { upload: Upload; binary: Binary | undefined }) {
	if (u.stage === "sending")
		return (
			<span class="upload-bar">
				<progress max={u.size || 1} value={u.sent} aria-label={`Upload of ${u.name}`} />
				<span class="faint">
					{formatBytes(u.sent)} of {formatBytes(u.size)},{" "}
					{formatPercent(share(u.sent, u.size))}
				</span>
			</span>
		);
	if (u.stage !== "taken") return <span>{u.text}</span>;
	return (
		<span>
			{u.id && (
				<>
					Build id <a href={symbolsUrl(u.id)}>{shortId(u.id)}</a> ·{" "}
				</>
			)}
			{binary ? stateChip(binary).hint : "Reading starts soon."}
		</span>
	);
}

function UploadRow({ upload: u, binary }: { upload: Upload; binary: Binary | undefined }) {
	const [own, ownMark] = STAGES[u.stage];
	const chip = u.stage === "taken" && binary ? stateChip(binary) : { text: own, mark: ownMark };
	const cancels = u.stage === "waiting" || u.stage === "sending" || u.stage === "pausing";
	return (
		<li>
			<span class={`badge ${chip.mark}`}>{chip.text}</span>
			<b class="upload-name">{u.name}</b>
			<Words upload={u} binary={binary} />
			{cancels && (
				<button
					type="button"
					class="quiet small"
					aria-label={`Cancel the upload of ${u.name}`}
					onClick={() => uploads.cancel(u.key)}
				>
					<IconX />
				</button>
			)}
		</li>
	);
}

function UploadList({ list, binaries }: { list: Upload[]; binaries: Binary[] }) {
	if (list.length === 0) return null;
	const ended = list.filter((u) => !["waiting", "sending", "pausing"].includes(u.stage));
	const last = ended[ended.length - 1];
	return (
		<div class="uploads">
			<ul aria-label="Uploads">
				{list.map((u) => (
					<UploadRow
						key={u.key}
						upload={u}
						binary={u.id ? binaries.find((b) => b.id === u.id) : undefined}
					/>
				))}
			</ul>
			<span class="visually-hidden" role="status">
				{last && `${last.name}: ${STAGES[last.stage][0]}. ${last.text}`}
			</span>
			{ended.length > 0 && (
				<button type="button" class="quiet small" onClick={() => uploads.clear()}>
					Clear the list
				</button>
			)}
		</div>
	);
}

function Off({ enabled }: { enabled: boolean }) {
	return (
		<p>
			{enabled ? (
				<IsOff what="Uploads" flag="--web.enable-ingest" also="query" />
			) : (
				"This server stores no debug data: see its log."
			)}
		</p>
	);
}

export function DropArea({ symbols }: { symbols: Symbols }) {
	const { list } = useUploads();
	const input = useRef<HTMLInputElement>(null);
	const takes = symbols.enabled && symbols.uploadEnabled;
	const over = useDrop(takes ? (data) => void uploads.add([...data.files]) : null, areProfiles);
	return (
		<section class="panel" aria-labelledby="symbols-upload">
			<div class="panel-head">
				<h2 id="symbols-upload">Upload</h2>
			</div>
			<div class={`drop${over ? " over" : ""}${takes ? "" : " off"}`}>
				{takes ? (
					<>
						<p>
							Drop files with debug data here: programs, libraries, <code>.debug</code>{" "}
							files.{" "}
							<button type="button" onClick={() => attached(input).click()}>
								Choose files
							</button>
						</p>
						<input
							ref={input}
							type="file"
							multiple
							hidden
							aria-label="Files with debug data"
							onChange={(e) => void uploads.add(takeFiles(e.currentTarget))}
						/>
						<p class="faint">
							From a shell:{" "}
							<Copyable
								text={uploadCommand("FILE", document.baseURI)}
								what="the command for a file"
							/>
						</p>
					</>
				) : (
					<Off enabled={symbols.enabled} />
				)}
			</div>
			<UploadList list={list} binaries={symbols.binaries} />
		</section>
	);
}
