// "Open file": a button, and a drop anywhere on the page.
import { useRef, useState } from "preact/hooks";
import { useDrop } from "../shared/hooks";
import { IconFile } from "../shared/icons";
import type { Opened } from "./contents";
import { openAll } from "./opened";
import "./files.css";

export function OpenFile({ onOpened }: { onOpened(opened: Opened[]): void }) {
	const input = useRef<HTMLInputElement>(null);
	const [busy, setBusy] = useState(false);
	const [failed, setFailed] = useState<string[]>([]);
	const take = async (files: File[]) => {
		if (busy || files.length === 0) return;
		setBusy(true);
		const done = await openAll(files);
		setBusy(false);
		setFailed(done.failed);
		if (done.opened.length) onOpened(done.opened);
	};
	const over = useDrop((data) => void take([...data.files]));
	return (
		<>
			<button
				type="button"
				class="open-file"
				disabled={busy}
				title="One or two profiles: pprof, folded stacks, speedscope or JFR. They are not stored. Or drop them anywhere on this page"
				onClick={() => input.current!.click()}
			>
				<IconFile />
				{busy ? "Opening…" : "Open file"}
			</button>
			<input
				ref={input}
				type="file"
				multiple
				hidden
				aria-label="Profiles to open"
				onChange={() => {
					void take([...input.current!.files!]);
					input.current!.value = ""; // the same file may be chosen again
				}}
			/>
			{over && (
				<div class="drop-here">
					<p>Drop one profile to look at, or two to compare: pprof, folded, speedscope, JFR</p>
				</div>
			)}
			{failed.length > 0 && (
				<div class="notice error files-failed" role="alert">
					{failed.map((text) => (
						<div key={text}>{text}</div>
					))}
				</div>
			)}
		</>
	);
}
