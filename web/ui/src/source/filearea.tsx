// Where the code comes from: files that are dropped or chosen, debuginfod, a link; and what to do
// where there is none.
import { useRef, useState } from "preact/hooks";
import { Select, takeFiles } from "../shared/fields";
import { areProfiles, useDrop } from "../shared/hooks";
import { attached } from "../shared/must";
import { dropped, type DroppedFile, FILES_MAX, matching, ofDrop, ofInput } from "./dropped";
import { isServed } from "./source";
import type { SourceState } from "./usesource";

const baseOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** What came of a drop, where it gave no text for `path`. */
function outcome(files: DroppedFile[], over: number, path: string): string {
	if (files.length === 0) return "No readable file in the drop.";
	if (over) return `More than ${FILES_MAX.toLocaleString("en")} files: ${over} skipped.`;
	if (matching(dropped.list, path).length) return "";
	const what =
		files.length === 1 ? files[0].path : `None of the ${files.length.toLocaleString("en")} files`;
	return files.length === 1
		? `${what} does not match the path ${path}.`
		: `${what} match the path ${path}.`;
}

/** Takes files for the page, and says what came of the last ones. */
export function useFiles(path: string) {
	const [said, say] = useState("");
	const add = (files: DroppedFile[]) => say(outcome(files, dropped.add(files), path));
	const over = useDrop((data) => void ofDrop(data).then(add), areProfiles);
	return { add, over, said };
}

/** Two buttons: files, or a folder with all that is in it. */
function Choose({ add }: { add(files: DroppedFile[]): void }) {
	const files = useRef<HTMLInputElement>(null);
	const folder = useRef<HTMLInputElement>(null);
	const took = (e: { currentTarget: HTMLInputElement }) => add(ofInput(takeFiles(e.currentTarget)));
	return (
		<>
			<button type="button" class="small" onClick={() => attached(files).click()}>
				Choose files
			</button>
			<button type="button" class="small" onClick={() => attached(folder).click()}>
				Choose a folder
			</button>
			<input
				ref={files}
				type="file"
				multiple
				hidden
				aria-label="Source files"
				onChange={took}
			/>
			<input
				ref={folder}
				type="file"
				hidden
				aria-label="A folder with source files"
				{...{ webkitdirectory: true }}
				onChange={took}
			/>
		</>
	);
}

/** Why debuginfod gives no text. */
function WhyNotFetched({ of }: { of: SourceState }) {
	const { settings, fetched, build } = of;
	if (!settings.debuginfod)
		return (
			<>
				No source code from debuginfod: set <code>source: true</code> at a server in the
				section <code>debuginfod</code>.
			</>
		);
	if (!isServed(of.place, build))
		return <>No source code from debuginfod: the profiles have no GNU build id or no absolute path.</>;
	return <>debuginfod: {fetched.error ? fetched.error.detail : "no answer yet"}.</>;
}

function WhyNoLink({ of }: { of: SourceState }) {
	return of.settings.links ? (
		<>No matching link in source_links for this path and these labels.</>
	) : (
		<>
			<code>source_links</code> in the configuration adds links to your repository.
		</>
	);
}

/** What to do to see the code. */
export function NoText(props: { of: SourceState; path: string; add(files: DroppedFile[]): void }) {
	const { of, path, add } = props;
	return (
		<div class="no-text">
			<p>
				<b>To see the code</b>, drop <code>{baseOf(path)}</code> here, or its folder.{" "}
				<Choose add={add} />
			</p>
			<p class="faint">
				Files stay in this browser. <WhyNotFetched of={of} /> {!of.link && <WhyNoLink of={of} />}
			</p>
		</div>
	);
}

/** Which text is shown. */
export function TextFrom({ of }: { of: SourceState }) {
	const { file, fetched } = of;
	if (!file.file)
		return fetched.lines && <span class="faint">Code from {fetched.server}</span>;
	return (
		<span class="text-from">
			{file.found.length > 1 ? (
				<Select
					name="Code from"
					label="Dropped file"
					value={file.file.path}
					onChange={file.choose}
				>
					{file.found.map((f) => (
						<option key={f.path} value={f.path}>
							{f.path}
						</option>
					))}
				</Select>
			) : (
				<span class="faint">Code from {file.file.path}, dropped here</span>
			)}
			<button
				type="button"
				class="quiet small"
				title="Forget all dropped files"
				onClick={() => dropped.clear()}
			>
				Forget
			</button>
		</span>
	);
}
