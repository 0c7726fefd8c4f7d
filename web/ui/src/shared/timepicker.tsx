// The time controls: typed ranges, presets, absolute times, shifting, zooming out, refreshing.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { optionsOf, Select } from "./fields";
import { useOutside } from "./hooks";
import { IconClock, IconDown, IconLeft, IconRight, IconZoomOut } from "./icons";
import { attached } from "./must";
import {
	absolute,
	describeRange,
	durationSeconds,
	formatDuration,
	fromLocalInput,
	isUtc,
	parseRangeText,
	RANGE_PRESETS,
	REFRESH,
	resolve,
	shift,
	type TimeRange,
	toLocalInput,
	zoneAt,
	zoomOut,
} from "./timerange";
import "./timepicker.css";

export interface TimePickerProps {
	range: TimeRange;
	onChange(range: TimeRange): void;
	/** A text in place of the range. */
	text?: string;
	refresh?: string;
	onRefresh?(every: string): void;
}

interface PopupProps {
	range: TimeRange;
	onChange(range: TimeRange): void;
}

const now = () => Date.now() / 1000;

/** The field for a typed range; the popup opens with the focus here. */
function TypedRange({ range, onChange }: PopupProps) {
	const [text, setText] = useState(
		range.kind === "relative" ? formatDuration(range.seconds) : describeRange(range),
	);
	const [wrong, setWrong] = useState(false);
	const input = useRef<HTMLInputElement>(null);
	const help = useId();
	useEffect(() => attached(input).select(), []);
	return (
		<form
			class="typed"
			onSubmit={(e) => {
				e.preventDefault();
				const typed = parseRangeText(text, now());
				setWrong(!typed);
				if (typed) onChange(typed);
			}}
		>
			<label>
				Range
				<input
					ref={input}
					value={text}
					spellcheck={false}
					autocomplete="off"
					aria-invalid={wrong}
					aria-describedby={help}
					onInput={(e) => {
						setText((e.target as HTMLInputElement).value);
						setWrong(false);
					}}
				/>
			</label>
			<div id={help} class={wrong ? "worse" : "faint"} role={wrong ? "alert" : undefined}>
				{wrong && "Not a range. "}
				<code>3h</code>, or two times: <code>2026-01-02T15:00:00Z to now</code>
				{`. Times without a zone are in ${isUtc() ? "UTC" : "the browser's time zone"}.`}
			</div>
		</form>
	);
}

function FromTo({ range, onChange }: PopupProps) {
	const w = resolve(range, now());
	const [from, setFrom] = useState(toLocalInput(w.start));
	const [to, setTo] = useState(toLocalInput(w.end));
	const a = fromLocalInput(from);
	const b = fromLocalInput(to);
	const valid = a !== null && b !== null && a < b;
	const field = (name: string, value: string, t: number | null, set: (v: string) => void) => (
		<label>
			{name} {t !== null && <span class="faint">{zoneAt(t)}</span>}
			<input
				type="datetime-local"
				step="1"
				value={value}
				onInput={(e) => set((e.target as HTMLInputElement).value)}
			/>
		</label>
	);
	return (
		<form
			onSubmit={(e) => {
				e.preventDefault();
				if (valid) onChange(absolute(a, b));
			}}
		>
			{field("From", from, a, setFrom)}
			{field("To", to, b, setTo)}
			<button type="submit" class="primary" disabled={!valid}>
				Apply
			</button>
			{!valid && <div class="faint">The end must come after the start.</div>}
		</form>
	);
}

function Popup({ range, onChange }: PopupProps) {
	const chosen = range.kind === "relative" ? formatDuration(range.seconds) : "";
	return (
		<div class="popup time-popup" role="dialog" aria-label="Time range">
			<div class="presets">
				{RANGE_PRESETS.map((p) => (
					<button
						key={p}
						type="button"
						class={chosen === p ? "on" : ""}
						aria-pressed={chosen === p}
						onClick={() => onChange({ kind: "relative", seconds: durationSeconds(p) })}
					>
						Last {p}
					</button>
				))}
			</div>
			<div class="exact">
				<TypedRange range={range} onChange={onChange} />
				<FromTo range={range} onChange={onChange} />
			</div>
		</div>
	);
}

function Refresh({ every, onChange }: { every: string; onChange(every: string): void }) {
	const offered = REFRESH.includes(every) ? REFRESH : [...REFRESH, every];
	return (
		<Select
			name="Refresh"
			label="Refresh every"
			value={every}
			hint="Refresh automatically"
			onChange={onChange}
		>
			{optionsOf(offered)}
		</Select>
	);
}

interface MoveProps {
	label: string;
	hint: string;
	disabled?: boolean;
	icon: preact.JSX.Element;
	onClick(): void;
}

function Move({ label, hint, disabled, icon, onClick }: MoveProps) {
	return (
		<button type="button" title={hint} aria-label={label} disabled={disabled} onClick={onClick}>
			{icon}
		</button>
	);
}

export function TimePicker(props: TimePickerProps) {
	const { range, onChange, refresh, onRefresh } = props;
	const [open, setOpen] = useState(false);
	const text = useRef<HTMLButtonElement>(null);
	// The focus returns to the button, unless a press moved it elsewhere.
	const close = () => {
		setOpen(false);
		if (ref.current?.contains(document.activeElement)) text.current?.focus();
	};
	const ref = useOutside(open, close);
	const pick = (r: TimeRange) => {
		onChange(r);
		close();
	};
	return (
		<div class="time-picker" ref={ref}>
			<div class="group" role="group" aria-label="Time">
				<Move
					label="Earlier"
					hint="Half a window back"
					icon={<IconLeft />}
					onClick={() => onChange(shift(range, -1, now()))}
				/>
				<button
					ref={text}
					type="button"
					class="time-text"
					aria-expanded={open}
					aria-haspopup="dialog"
					onClick={() => setOpen(!open)}
				>
					<IconClock />
					{props.text ?? describeRange(range)}
					<IconDown />
				</button>
				<Move
					label="Later"
					hint="Half a window forward"
					disabled={range.kind === "relative"}
					icon={<IconRight />}
					onClick={() => onChange(shift(range, 1, now()))}
				/>
				<Move
					label="Zoom out"
					hint="Twice the window"
					icon={<IconZoomOut />}
					onClick={() => onChange(zoomOut(range, now()))}
				/>
			</div>
			{onRefresh && <Refresh every={refresh ?? "off"} onChange={onRefresh} />}
			{open && <Popup range={range} onChange={pick} />}
		</div>
	);
}
