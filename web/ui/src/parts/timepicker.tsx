// The time controls: presets, absolute times, shifting, zooming out, refreshing.
import { useState } from "preact/hooks";
import { useOutside } from "../lib/hooks";
import {
	absolute,
	describeRange,
	formatDuration,
	fromLocalInput,
	parseDuration,
	PRESETS,
	REFRESH,
	resolve,
	shift,
	toLocalInput,
	zoomOut,
	type TimeRange,
} from "../lib/timerange";
import { IconClock, IconDown, IconLeft, IconRight, IconZoomOut } from "./icons";

export interface TimePickerProps {
	range: TimeRange;
	onChange(range: TimeRange): void;
	refresh?: string;
	onRefresh?(every: string): void;
}

const now = () => Date.now() / 1000;

function Popup({ range, onChange, close }: TimePickerProps & { close(): void }) {
	const w = resolve(range, now());
	const [from, setFrom] = useState(toLocalInput(w.start));
	const [to, setTo] = useState(toLocalInput(w.end));
	const a = fromLocalInput(from);
	const b = fromLocalInput(to);
	const valid = a !== null && b !== null && a < b;
	return (
		<div class="popup time-popup">
			<div class="presets">
				{PRESETS.map((p) => (
					<button
						key={p}
						type="button"
						class={
							range.kind === "relative" && formatDuration(range.seconds) === p
								? "on"
								: ""
						}
						onClick={() => {
							onChange({ kind: "relative", seconds: parseDuration(p)! });
							close();
						}}
					>
						Last {p}
					</button>
				))}
			</div>
			<form
				onSubmit={(e) => {
					e.preventDefault();
					if (!valid) return;
					onChange(absolute(a, b));
					close();
				}}
			>
				<label>
					From
					<input
						type="datetime-local"
						step="1"
						value={from}
						onInput={(e) => setFrom((e.target as HTMLInputElement).value)}
					/>
				</label>
				<label>
					To
					<input
						type="datetime-local"
						step="1"
						value={to}
						onInput={(e) => setTo((e.target as HTMLInputElement).value)}
					/>
				</label>
				<button type="submit" class="primary" disabled={!valid}>
					Apply
				</button>
				{!valid && <div class="faint">The end must come after the start.</div>}
			</form>
		</div>
	);
}

export function TimePicker(props: TimePickerProps) {
	const { range, onChange, refresh, onRefresh } = props;
	const [open, setOpen] = useState(false);
	const close = () => setOpen(false);
	const ref = useOutside(open, close);
	return (
		<div class="time-picker" ref={ref}>
			<div class="group">
				<button
					type="button"
					title="Half a window back"
					aria-label="Earlier"
					onClick={() => onChange(shift(range, -1, now()))}
				>
					<IconLeft />
				</button>
				<button
					type="button"
					class="time-text"
					aria-expanded={open}
					onClick={() => setOpen(!open)}
				>
					<IconClock />
					{describeRange(range)}
					<IconDown />
				</button>
				<button
					type="button"
					title="Half a window forward"
					aria-label="Later"
					disabled={range.kind === "relative"}
					onClick={() => onChange(shift(range, 1, now()))}
				>
					<IconRight />
				</button>
				<button
					type="button"
					title="Twice the window"
					aria-label="Zoom out"
					onClick={() => onChange(zoomOut(range, now()))}
				>
					<IconZoomOut />
				</button>
			</div>
			{onRefresh && (
				<label class="select" title="Ask again by itself">
					<span class="faint">Refresh</span>
					<select
						value={refresh}
						aria-label="Refresh every"
						onChange={(e) => onRefresh((e.target as HTMLSelectElement).value)}
					>
						{REFRESH.map((r) => (
							<option key={r} value={r}>
								{r}
							</option>
						))}
					</select>
				</label>
			)}
			{open && <Popup {...props} close={close} />}
		</div>
	);
}
