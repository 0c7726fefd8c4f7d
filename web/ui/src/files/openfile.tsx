// "Open file": a button, and a drop anywhere on the page.
import { useRef, useState } from "preact/hooks";
import { fileQuery } from "../query/files";
import { takeFiles } from "../shared/fields";
import { useDrop, useUrl } from "../shared/hooks";
import { IconFile, IconX } from "../shared/icons";
import { attached } from "../shared/must";
import type { Location } from "../shared/urlstate";
import { compareFiles, type OpenedFile } from "./contents";
import { openAll } from "./opened";
import "./files.css";

/** What a page shows; errors of files end when it is another. */
const subjectOf = ({ path, params }: Location): string =>
	JSON.stringify([path, ...["query", "new", "base"].map((k) => params.get(k))]);

/** Of a page that takes files: its button may be hidden, what is around it is not. */
export function useOpening(onOpened: (opened: OpenedFile[]) => void) {
	const input = useRef<HTMLInputElement>(null);
	const [busy, setBusy] = useState(false);
	const { store, location } = useUrl();
	const [last, setLast] = useState<{ failed: string[]; on: string }>({ failed: [], on: "" });
	const take = async (files: File[]) => {
		if (busy || files.length === 0) return;
		setBusy(true);
		const done = await openAll(files);
		setBusy(false);
		if (done.opened.length) onOpened(done.opened);
		setLast({ failed: done.failed, on: subjectOf(store.get()) });
	};
	const failed = last.on === subjectOf(location) ? last.failed : [];
	const close = () => setLast({ failed: [], on: "" });
	const over = useDrop((data) => void take([...data.files]));
	return { input, busy, failed, close, over, take };
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
export function OpenAround({ of }: { of: FileOpening }) {
	return (
		<>
			<input
				ref={of.input}
				type="file"
				multiple
				hidden
				aria-label="Profiles to open"
				onChange={(e) => void of.take(takeFiles(e.currentTarget))}
			/>
			<OpenNotes of={of} />
		</>
	);
}

function OpenNotes({ of: { failed, close, over } }: { of: FileOpening }) {
	return (
		<>
			{over && (
				<div class="drop-here">
					<p>Drop one profile to look at, or two to compare: pprof, folded, speedscope, JFR</p>
				</div>
			)}
			{failed.length > 0 && (
				<div class="notice error closable" role="alert">
					<div>
						{failed.map((text) => (
							<div key={text}>{text}</div>
						))}
					</div>
					<button type="button" class="quiet" aria-label="Close the error" onClick={close}>
						<IconX />
					</button>
				</div>
			)}
		</>
	);
}

/** On pages without a button: one profile is shown, two are compared. It comes before the page, whose own area is asked first. */
export function DropAnywhere() {
	const { store } = useUrl();
	const opening = useOpening((opened) =>
		opened.length > 1
			? store.go("compare", new URLSearchParams(compareFiles(opened)))
			: store.go("explore", new URLSearchParams({ query: fileQuery(opened[0].name) })),
	);
	return <OpenNotes of={opening} />;
}
