// The files that the queries of a page name: what is in them, which type is shown, how long they stay.
import { useEffect, useState } from "preact/hooks";
import { type FileCall, filesOf, fileQuery, isFileId, withFile } from "../query/files";
import { droppedFiles, type ProfileType } from "../shared/api";
import { optionsOf, Select } from "../shared/fields";
import { useApi, useFlags, useUrl } from "../shared/hooks";
import { takesNothing } from "../shared/notices";
import { durationSeconds, formatClock, formatDuration } from "../shared/timerange";
import { formatBytes } from "../shared/units";
import {
	chosenType,
	compareStored,
	type Contents,
	fileAlone,
	inWords,
	type KeptContents,
	productionQuery,
	typeOptions,
} from "./contents";
import { contentsOf, keepFile, onFiles, removeKept } from "./opened";
import "./files.css";

type FileEdit = (change: (query: string) => string) => void;

const KEEP_TIMES = ["1h", "1d", "7d", "30d"];
const KEEP_FIRST = "7d";

/** Draws anew when files were opened. */
function useOpened(): void {
	const [, set] = useState(0);
	useEffect(() => onFiles(() => set((n) => n + 1)), []);
}

function TypeChoice({ of, contents, edit }: { of: FileCall; contents: Contents; edit: FileEdit }) {
	const options = typeOptions(contents);
	if (options.length < 2) return <span class="faint">{options[0]?.[1]}</span>;
	return (
		<Select
			name="Type"
			label={`Type of ${contents.name}`}
			value={chosenType(contents, of.type)}
			onChange={(type) => edit((q) => withFile(q, of.name, (f) => fileQuery(f.name, type)))}
		>
			{options.map(([value, text]) => (
				<option key={value} value={value}>
					{text}
				</option>
			))}
		</Select>
	);
}

/** For a file of this page: stored on the server for a time, so that a link shows it to others. */
function Keep({ of, contents, edit }: { of: FileCall; contents: Contents; edit: FileEdit }) {
	const [time, setTime] = useState("");
	const [state, setState] = useState<"" | "busy" | string>("");
	const mode = useFlags().answer?.data.mode;
	const node = mode === "query" ? undefined : takesNothing(mode);
	if (contents.keepMax === 0)
		return (
			<span class="faint">
				Not uploaded. {node ? (
					<>To share the file, open it on a shard: {node} keeps no files.</>
				) : (
					<>
						To share the file, start the server with <code>--web.enable-files</code>.
					</>
				)}
			</span>
		);
	const times = KEEP_TIMES.filter((t) => durationSeconds(t) <= contents.keepMax);
	const offered = times.length ? times : [formatDuration(Math.floor(contents.keepMax))];
	const chosen = time || (offered.includes(KEEP_FIRST) ? KEEP_FIRST : offered[offered.length - 1]);
	const store = async () => {
		setState("busy");
		try {
			const id = await keepFile(of.name, durationSeconds(chosen));
			setState("");
			edit((q) => withFile(q, of.name, (f) => fileQuery(id, f.type)));
		} catch (e) {
			setState((e as Error).message);
		}
	};
	return (
		<>
			<span class="faint">Not uploaded.</span>
			<Select name="Keep on server for" label={`Time to keep ${contents.name} on the server`} value={chosen} onChange={setTime}>
				{optionsOf(offered)}
			</Select>
			<button
				type="button"
				class="small"
				disabled={state === "busy"}
				title="Uploads the file to the server for this time, so that links work for others"
				onClick={() => void store()}
			>
				Keep
			</button>
			{state && state !== "busy" && (
				<span class="notice error" role="alert">
					{state}
				</span>
			)}
		</>
	);
}

function Kept({ contents }: { contents: KeptContents }) {
	const [said, setSaid] = useState("");
	const remove = () =>
		removeKept(contents.id).then(
			() => setSaid("Removed: links to the file no longer work"),
			(e: Error) => setSaid(e.message),
		);
	return (
		<>
			<span class="faint">On the server until {formatClock(contents.expires)}: links work for others</span>
			{contents.keepMax > 0 && !said && (
				<button type="button" class="small" onClick={() => void remove()}>
					Remove
				</button>
			)}
			<span role="status">{said}</span>
		</>
	);
}

interface RowProps {
	of: FileCall;
	/** The file is all that the page's only query shows. */
	alone: boolean;
	stored: ProfileType[];
	edit: FileEdit;
}

function Row({ of, alone, stored, edit }: RowProps) {
	const { store } = useUrl();
	const id = isFileId(of.name) ? of.name : "";
	// An error of a kept file is that of the query, which says it already.
	const answer = useApi<KeptContents>(id || null, `files/${id}`).answer;
	const kept = answer ? { ...answer.data, warnings: answer.warnings } : null;
	const contents = id ? kept : contentsOf(of.name);
	if (!contents)
		return id ? null : (
			<li class="notice warning">
				{of.name} was not uploaded, so the reload dropped the file. Open the file again.
			</li>
		);
	const base = alone ? productionQuery(contents, of.type, stored) : "";
	const against = new URLSearchParams(compareStored(fileQuery(of.name, of.type), base));
	return (
		<li>
			<b class="file-name">{id ? contents.name || "profile" : of.name}</b>
			<span class="faint">
				{inWords(contents)}, {formatBytes(contents.bytes)}
			</span>
			{contents.warnings?.map((text) => (
				<span class="warning" role="status" key={text}>
					{text}
				</span>
			))}
			<TypeChoice {...{ of, contents, edit }} />
			{base && <a href={store.href("compare", against)}>Compare with {base}, as stored</a>}
			<span class="spacer" />
			{id && kept ? <Kept contents={kept} /> : <Keep {...{ of, contents, edit }} />}
		</li>
	);
}

export function FilesPanel({ queries, stored, edit }: {
	queries: string[];
	stored: ProfileType[];
	edit: FileEdit;
}) {
	useOpened();
	const files = new Map(queries.flatMap(filesOf).map((f) => [f.name, f]));
	if (files.size === 0) return null;
	const alone = queries.length === 1 && fileAlone(queries[0]) !== "";
	return (
		<ul class="files" aria-label="Files">
			{[...files.values()].map((of) => (
				<Row key={of.name + droppedFiles.has(of.name)} {...{ of, alone, stored, edit }} />
			))}
		</ul>
	);
}
