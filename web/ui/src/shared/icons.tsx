// A few icons, drawn for 16 pixels, in the colour of the text around them.
const icon = (d: string) => () => (
	<svg
		class="icon"
		viewBox="0 0 16 16"
		width="16"
		height="16"
		aria-hidden="true"
		fill="none"
		stroke="currentColor"
		stroke-width="1.5"
		stroke-linecap="round"
		stroke-linejoin="round"
	>
		<path d={d} />
	</svg>
);

export const IconLeft = icon("M10 3.5 5.5 8l4.5 4.5");
export const IconRight = icon("M6 3.5 10.5 8 6 12.5");
export const IconZoomOut = icon(
	"M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5 14 14M5 7h4",
);
export const IconClock = icon("M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.6");
export const IconDown = icon("M4.5 6.5 8 10l3.5-3.5");
export const IconFull = icon("M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10");
export const IconPlus = icon("M8 3.5v9M3.5 8h9");
export const IconX = icon("M4.5 4.5l7 7M11.5 4.5l-7 7");
export const IconSun = icon(
	"M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.2v1.3M8 13.5v1.3M1.2 8h1.3M13.5 8h1.3" +
		"M3.2 3.2l.9.9M11.9 11.9l.9.9M3.2 12.8l.9-.9M11.9 4.1l.9-.9",
);
export const IconMoon = icon("M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z");
export const IconSearch = icon("M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5 14 14");
export const IconDownload = icon("M8 2.5v7.5M4.8 7.2 8 10.4l3.2-3.2M3 13.5h10");
export const IconPlay = icon("M5 3.2v9.6L12.5 8Z");
export const IconMenu = icon("M2.5 4.5h11M2.5 8h11M2.5 11.5h11");
export const IconFile = icon("M4 2.5h5L12.5 6v7.5H4ZM9 2.5V6h3.5");
export const IconSwap = icon("M3 5.5h9.5L10 3M13 10.5H3.5L6 13");

export const IconBell = icon(
	"M3.5 11.5h9c-1-1-1.3-2-1.3-4.2a3.2 3.2 0 0 0-6.4 0c0 2.2-.3 3.2-1.3 4.2ZM6.7 13.5a1.5 1.5 0 0 0 2.6 0",
);
export const IconMark = icon(
	"M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
);
export const IconCode = icon("M5.5 4 1.8 8l3.7 4M10.5 4l3.7 4-3.7 4");
export const IconLink = icon(
	"M6.5 9.5l3-3M7.2 4.6l1.3-1.3a2.9 2.9 0 0 1 4.2 4.2l-1.3 1.3" +
		"M8.8 11.4l-1.3 1.3a2.9 2.9 0 0 1-4.2-4.2l1.3-1.3",
);

export function Logo() {
	return (
		<svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
			<g fill="var(--accent)">
				<rect x="2" y="4" width="28" height="5.6" rx="1.4" />
				<rect x="2" y="11.8" width="17.5" height="5.6" rx="1.4" opacity=".8" />
				<rect x="21.6" y="11.8" width="8.4" height="5.6" rx="1.4" opacity=".5" />
				<rect x="2" y="19.6" width="10.4" height="5.6" rx="1.4" opacity=".5" />
				<rect x="14.4" y="19.6" width="5.1" height="5.6" rx="1.4" opacity=".32" />
			</g>
		</svg>
	);
}
