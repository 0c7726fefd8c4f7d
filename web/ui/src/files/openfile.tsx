// "Open file": a button, and a drop anywhere on the page.
import { useRef, useState } from "preact/hooks";
import { takeFiles } from "../shared/fields";
import { useDrop } from "../shared/hooks";
import { IconFile } from "../shared/icons";
import { attached } from "../shared/must";
import type { OpenedFile } from "./contents";
import { openAll } from "./opened";
import "./files.css";

/** Of a page that takes files: its button may be hidden, what is around it is not. */
export function useOpening(onOpened: (opened: OpenedFile[]) => void) {
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
	return { input, busy, failed, over, take };
}

export type FileOpening = ReturnType<typeof useOpening>;

const HINT =
	"One or two profiles: pprof, folded stacks, speedscope or JFR. Not uploaded. " +
	"Or drop them anywhere on this page";

export function OpenButton({ of: { input, busy } }: { of: FileOpening }) {
	return (
		<button
			type="button"
			class="open-file"
			disabled={busy}
			aria-label={busy ? "Opening…" : "Open file"}
			title={HINT}
			onClick={() => attached(input).click()}
		>
			<IconFile />
			<span class="open-text">{busy ? "Opening…" : "Open file"}</span>
		</button>
	);
}

/** The field behind the button, what is held over the page, and what could not be opened. */
export function OpenAround({ of: { input, failed, over, take } }: { of: FileOpening }) {
	return (
		<>
			<input
				ref={input}
				type="file"
				multiple
				hidden
				aria-label="Profiles to open"
				onChange={(e) => void take(takeFiles(e.currentTarget))}
			/>
			{over && (
				<div class="drop-here">
					<p>Drop one profile to look at, or two to compare: pprof, folded, speedscope, JFR</p>
				</div>
			)}
			{failed.length > 0 && (
				<div class="notice error" role="alert">
					{failed.map((text) => (
						<div key={text}>{text}</div>
					))}
				</div>
			)}
		</>
	);
}
