// The Export menu: the answer in the formats of the server, and the flame graph as on the screen:
// zoom, search, look and theme.
import { useState } from "preact/hooks";
import { PALETTES } from "../flame/color";
import { type PictureFrame, measurer, type Picture, toPng, toSvg } from "../flame/picture";
import type { Times } from "../query/questions";
import { apiUrl, callBlob, needsFiles, type ProfileElement } from "../shared/api";
import { optionsOf, Select } from "../shared/fields";
import { useOutside } from "../shared/hooks";
import { IconDown, IconDownload } from "../shared/icons";
import { currentTheme } from "../shared/theme";
import { savedName } from "./savedname";
import "./export.css";

const FORMATS: { format: string; hint: string; suffix?: string }[] = [
	{ format: "pprof", hint: "for go tool pprof", suffix: "pb.gz" },
	{ format: "folded", hint: "one stack per line", suffix: "folded.txt" },
	{ format: "speedscope", hint: "for speedscope.app", suffix: "speedscope.json" },
	{ format: "text", hint: "as pprof -top" },
];
/** The width if there is no flame graph on the page. */
const WIDTH = 1200;
/** Widths of pictures to choose from, in pixels, besides that of the graph on the screen. */
const WIDTHS = [800, 1200, 1920, 3840];

function save(blob: Blob, file: string): void {
	const href = URL.createObjectURL(blob);
	const a = document.createElement("a");
	a.href = href;
	a.download = file;
	a.click();
	// The download has begun by then, and no longer needs it.
	setTimeout(() => URL.revokeObjectURL(href), 1000);
}

/** `width`: 0 for that of the graph on the screen. */
function frameOf(from: Element | null, width: number): PictureFrame {
	const graph = from?.closest(".results")?.querySelector(".flame-stage canvas");
	return {
		width: width || graph?.clientWidth || WIDTH,
		palette: PALETTES[currentTheme()],
		ground: getComputedStyle(document.documentElement).getPropertyValue("--panel").trim(),
		measure: measurer(),
	};
}

/** The entries for the graph on the screen; `onFailed` gets the reason if there is no file. */
function PictureItems(props: {
	picture: Picture;
	about: string;
	name(suffix: string): string;
	/** In pixels; 0: as on the screen. */
	width: string;
	onWidth(width: string): void;
	from(): Element | null;
	onFailed(message: string): void;
}) {
	const { picture, about, name, width, onWidth, from, onFailed } = props;
	const frame = () => frameOf(from(), Number(width));
	const svg = () =>
		save(
			new Blob([toSvg(picture, frame(), about)], { type: "image/svg+xml" }),
			name("svg"),
		);
	const png = async () => {
		const blob = await toPng(picture, frame());
		if (blob) save(blob, name("png"));
		else onFailed("The picture is too large for this browser. Zoom in, or save it as SVG.");
	};
	return (
		<>
			<div class="export-width" onClick={(e) => e.stopPropagation()}>
				<Select name="Picture width" label="Width of the picture" value={width} onChange={onWidth}>
					<option value="0">as shown</option>
					{optionsOf(WIDTHS, (w) => `${w} px`)}
				</Select>
			</div>
			<button type="button" onClick={svg}>
				SVG <span class="faint">the flame graph as seen</span>
			</button>
			<button type="button" onClick={() => void png()}>
				PNG <span class="faint">the same as an image</span>
			</button>
		</>
	);
}

export interface ExportProps {
	query: string;
	times: Times;
	elements: ProfileElement[];
	/** The flame graph on the screen, if there is one. */
	picture?: Picture | null;
}

export function ExportMenu({ query, times, elements, picture }: ExportProps) {
	const [open, setOpen] = useState(false);
	const [failed, setFailed] = useState("");
	const [width, setWidth] = useState("0");
	const ref = useOutside(open || failed !== "", () => {
		setOpen(false);
		setFailed("");
	});
	const asked = (format: string) => ({ query, ...times, format });
	const carries = needsFiles({ query });
	/** A link cannot carry the files that the query names. */
	const fetchOne = (format: string, suffix: string) =>
		callBlob("query", asked(format)).then(
			(blob) => save(blob, name(suffix)),
			(e: Error) => setFailed(e.message),
		);
	const name = (suffix: string) => savedName(query, times, elements, suffix);
	const about = [query, ...Object.entries(times).map(([k, v]) => `${k} ${v}`)].join("\n");
	return (
		<div
			class="menu"
			ref={ref}
			onKeyDown={(e) => {
				if (e.key === "Escape" && open) ref.current?.querySelector("button")?.focus();
			}}
		>
			<button
				type="button"
				aria-expanded={open}
				onClick={() => {
					setFailed("");
					setOpen(!open);
				}}
			>
				<IconDownload />
				Export
				<IconDown />
			</button>
			{open && (
				<div class="popup menu-items export-items" onClick={() => setOpen(false)}>
					{FORMATS.map(({ format, hint, suffix }) =>
						carries ? (
							<button
								key={format}
								type="button"
								onClick={() => void fetchOne(format, suffix ?? "txt")}
							>
								{format} <span class="faint">{hint}</span>
							</button>
						) : (
							<a
								key={format}
								href={apiUrl("query", asked(format))}
								{...(suffix ? { download: name(suffix) } : { target: "_blank", rel: "noreferrer" })}
							>
								{format} <span class="faint">{hint}</span>
							</a>
						),
					)}
					{picture && (
						<PictureItems
							picture={picture}
							about={about}
							name={name}
							width={width}
							onWidth={setWidth}
							from={() => ref.current}
							onFailed={setFailed}
						/>
					)}
				</div>
			)}
			{failed && (
				<div class="popup menu-items notice error" role="alert">
					{failed}
				</div>
			)}
		</div>
	);
}
