// The Export menu: what was asked, in the formats of the server.
import { useState } from "preact/hooks";
import { apiUrl } from "../lib/api";
import { useOutside } from "../lib/hooks";
import type { Times } from "../lib/questions";
import { IconDown, IconDownload } from "./icons";

const FORMATS: { format: string; hint: string; file?: string }[] = [
	{ format: "pprof", hint: "for go tool pprof", file: "profile.pb.gz" },
	{ format: "folded", hint: "one stack per line", file: "profile.folded.txt" },
	{ format: "speedscope", hint: "for speedscope.app", file: "profile.speedscope.json" },
	{ format: "text", hint: "as pprof -top" },
];

export function ExportMenu({ query, times }: { query: string; times: Times }) {
	const [open, setOpen] = useState(false);
	const ref = useOutside(open, () => setOpen(false));
	const href = (format: string) => apiUrl("query", { query, ...times, format });
	return (
		<div class="menu" ref={ref}>
			<button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
				<IconDownload />
				Export
				<IconDown />
			</button>
			{open && (
				<div class="popup menu-items" onClick={() => setOpen(false)}>
					{FORMATS.map(({ format, hint, file }) => (
						<a
							key={format}
							href={href(format)}
							{...(file ? { download: file } : { target: "_blank", rel: "noreferrer" })}
						>
							{format} <span class="faint">{hint}</span>
						</a>
					))}
				</div>
			)}
		</div>
	);
}
