// Above every page while the server cannot be reached or is not ready; the page below it is dimmed.
import { useEffect, useState } from "preact/hooks";
import { useNow } from "./hooks";
import { type Outage, outages } from "./outage";
import { formatTime } from "./timerange";
import "./outagebanner.css";

export function useOutage(): Outage | null {
	const [outage, set] = useState(outages.get);
	useEffect(() => outages.subscribe(() => set(outages.get())), []);
	return outage;
}

/** Seconds until `at`, which is a performance.now(). */
export function Countdown({ at }: { at: number }) {
	const now = useNow(true);
	return <>Trying again in {Math.max(0, Math.ceil((at - now) / 1000))} s.</>;
}

export function OutageBanner({ outage }: { outage: Outage }) {
	const { lastAnswer, retryAt, waitsFor } = outage;
	return (
		<div class="notice error outage">
			<span role="alert">
				<b>{waitsFor ? "The server is not ready." : "The server cannot be reached."}</b>
				{waitsFor && ` ${waitsFor[0].toUpperCase()}${waitsFor.slice(1)}.`}
				{lastAnswer !== null && ` The last answer came at ${formatTime(lastAnswer)}.`}
			</span>
			<span>{retryAt === null ? "Trying now…" : <Countdown at={retryAt} />}</span>
			<button type="button" class="small" disabled={retryAt === null} onClick={outages.now}>
				Try now
			</button>
		</div>
	);
}
