// Marks over the lines of a chart: a thin line at each, a flag above the lines that says what it is, and a
// list where a flag is for several.
import { useMemo, useState } from "preact/hooks";
import type { Window } from "../shared/timerange";
import {
	describeMarks,
	type Flag,
	flagMarks,
	type TimeMark,
	MARKS_SAID,
	markAction,
	markLines,
	markLabels,
	markTime,
	markTitle,
	markText,
} from "./marks";
import type { ShownMarks } from "./usemarks";
import "./marks.css";

/** Where the lines are, in pixels of the box that has them. */
export interface MarksPlace {
	left: number;
	top: number;
	width: number;
	height: number;
}

export interface MarkFlagsProps {
	shown: ShownMarks;
	window: Window;
	place: MarksPlace;
}

const TIP_MAX_PX = 340;

/** What a mark is: a link in a list, else text that the flag itself says. */
function MarkText({ mark, href }: { mark: TimeMark; href: string | null }) {
	const text = (
		<>
			<b>{markTitle(mark)}</b>
			<span>{[markTime(mark), markLabels(mark)].filter(Boolean).join(" · ")}</span>
		</>
	);
	return href === null ? text : <a href={href} title={markAction(mark)}>{text}</a>;
}

interface OneFlagProps {
	flag: Flag;
	hrefOf: ShownMarks["hrefOf"];
	/** The whole width, and what is free at the left of the lines. */
	width: number;
	left: number;
	open: boolean;
	onOpen(open: boolean): void;
}

/** The flag's own element: a link, a button that opens the list, or only a place for the focus. */
function FlagButton({ flag, hrefOf, open, onOpen }: OneFlagProps) {
	const [first, ...more] = flag.marks;
	if (more.length)
		return (
			<button
				type="button"
				class="mark-flag many"
				aria-label={`${flag.marks.length} deploys from ${markTime(first)}`}
				aria-expanded={open}
				onClick={() => onOpen(true)}
			>
				<i>{flag.marks.length}</i>
			</button>
		);
	const href = hrefOf(first);
	const words = markText(first);
	return href === null ? (
		<span class="mark-flag" tabIndex={0} role="img" aria-label={words}>
			<i />
		</span>
	) : (
		<a class="mark-flag" href={href} aria-label={`${words}. ${markAction(first)}`}>
			<i />
		</a>
	);
}

function OneFlag(p: OneFlagProps) {
	const { flag, hrefOf, width, left, open, onOpen } = p;
	const { x, marks } = flag;
	const toLeft = x + left > width - x;
	const room = toLeft ? x + left : width - x;
	const listed = marks.length > 1;
	const more = marks.length - MARKS_SAID;
	return (
		<div
			class="mark"
			style={{ left: `${x}px` }}
			onPointerEnter={() => onOpen(true)}
			onPointerLeave={() => onOpen(false)}
			onFocusIn={() => onOpen(true)}
			onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Node | null) && onOpen(false)}
			onKeyDown={(e) => {
				if (e.key !== "Escape" || !open) return;
				e.preventDefault();
				onOpen(false);
			}}
		>
			<FlagButton {...p} />
			{open && (
				<div
					class={toLeft ? "mark-tip left" : "mark-tip"}
					aria-hidden={listed ? undefined : "true"}
					style={{ maxWidth: `${Math.min(TIP_MAX_PX, room)}px` }}
				>
					{listed && <b class="faint">{marks.length} deploys</b>}
					<ul>
						{marks.slice(0, MARKS_SAID).map((m, i) => (
							<li key={`${m.time} ${i}`}>
								<MarkText mark={m} href={listed ? hrefOf(m) : null} />
							</li>
						))}
					</ul>
					{more > 0 && <span class="faint">and {more} more</span>}
					{!listed && hrefOf(marks[0]) && <span class="faint">{markAction(marks[0])}</span>}
				</div>
			)}
		</div>
	);
}

export function MarkFlags({ shown, window: win, place }: MarkFlagsProps) {
	const { marks, hrefOf } = shown;
	const { left, top, width, height } = place;
	const [open, setOpen] = useState(-1);
	const { start, end } = win;
	const flags = useMemo(() => flagMarks(marks, { start, end }, width), [marks, start, end, width]);
	const lines = useMemo(() => markLines(marks, { start, end }, width), [marks, start, end, width]);
	if (flags.length === 0) return null;
	return (
		<div
			class="marks"
			style={{ left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` }}
		>
			{lines.map(({ x, wide }, i) => (
				<span key={i} class="mark-line" style={{ left: `${x}px` }}>
					{wide > 0 && <span style={{ width: `${wide}px` }} />}
				</span>
			))}
			{flags.map((flag, i) => (
				<OneFlag
					key={flag.marks[0].time}
					{...{ flag, hrefOf, width, left }}
					open={open === i}
					onOpen={(on) => setOpen((now) => (on ? i : now === i ? -1 : now))}
				/>
			))}
		</div>
	);
}

/** The marks of a window in words, for the description of a chart. */
export function MarksSaid({ marks, window: win }: { marks: TimeMark[]; window: Window }) {
	const said = describeMarks(marks, win);
	if (said.length === 0) return null;
	return (
		<li>
			Deploys in this range:{" "}
			<ul>
				{said.map((text, i) => (
					<li key={`${i} ${text}`}>{text}</li>
				))}
			</ul>
		</li>
	);
}
