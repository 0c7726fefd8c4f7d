// What changed, over all services: the functions that gained the most CPU time.
import { useMemo, useState } from "preact/hooks";
import { FunctionName } from "../flame/functionname";
import type { QueryData } from "../shared/api";
import { type Runtime, seconds } from "../shared/defaultrange";
import { useApi, useInterval } from "../shared/hooks";
import { QueryError } from "../shared/notices";
import { dayOf, formatMinute } from "../shared/timerange";
import type { ChartUnit } from "../shared/units";
import {
	changeLink,
	type ChangeRow,
	changeRows,
	changesQuestion,
	type Compared,
	comparedHours,
	comparedText,
	type Later,
} from "./changes";
import "./changespanel.css";

const LOOK_EVERY_S = 60; // a new hour begins

/** What can be compared now; null while that is not known. */
function useCompared(stored: boolean): Compared | Later | null {
	const { answer } = useApi<Runtime>(`runtime ${stored}`, "status/runtimeinfo");
	const [tick, setTick] = useState(0);
	useInterval(LOOK_EVERY_S, () => setTick((t) => t + 1));
	const ahead = useMemo(
		() => (answer ? seconds(answer.data.serverTime) - Date.now() / 1000 : 0),
		[answer],
	);
	return useMemo(() => {
		if (!answer?.data.oldestProfile) return null;
		return comparedHours(Date.now() / 1000 + ahead, seconds(answer.data.oldestProfile));
	}, [answer, ahead, tick]);
}

/** Hour and minute, with the day if it is not today. */
function clock(t: number): string {
	const day = dayOf(t);
	const minute = formatMinute(t);
	return day === dayOf(Date.now() / 1000) ? minute : `${day.slice(5)} ${minute}`;
}

interface RowsProps {
	by: string;
	type: string;
	compared: Compared;
	rows: ChangeRow[];
	unit: ChartUnit;
}

function Rows({ by, type, compared, rows, unit }: RowsProps) {
	if (rows.length === 0)
		return <div class="empty">No function gained 0.001 cores or more.</div>;
	const most = rows[0].gained;
	return (
		<ol class="changes-rows">
			{rows.map((r) => (
				<li key={`${r.service} ${r.function}`}>
					<a
						href={changeLink(by, type, compared, r)}
						title="Flame graph of both windows"
					>
						<span class="changes-service">{r.service || `no ${by}`}</span>
						<FunctionName name={r.function} />
						<span class="changes-gained">
							<span
								class="bar"
								style={{ width: `${Math.min(100, (100 * r.gained) / most)}%` }}
							/>
							+{unit.format(r.gained)} {unit.label}
						</span>
					</a>
				</li>
			))}
		</ol>
	);
}

export interface ChangesProps {
	/** The label of the rows. */
	by: string;
	/** The name of the CPU type. */
	type: string;
	unit: ChartUnit;
}

export function ChangesPanel({ by, type, unit }: ChangesProps) {
	const compared = useCompared(type !== "");
	const told = compared && "hours" in compared ? compared : null;
	const ask = told && by && type ? changesQuestion(by, type, told) : null;
	const { answer, error, loading } = useApi<QueryData>(
		ask ? JSON.stringify(ask) : null,
		"query",
		ask ?? {},
	);
	if (!compared || !type) return null;
	const data = answer?.data;
	const rows = data?.resultType === "vector" ? changeRows(by, data.result, unit.factor) : null;
	return (
		<section class={loading ? "panel changes busy" : "panel changes"} aria-label="What changed">
			<div class="panel-head">
				<h2>{told?.back === 24 ? "What changed today" : "What changed"}</h2>
				{told && (
					<span
						class="faint"
						title={`${clock(told.next.start)} to ${clock(told.next.end)} against ${clock(told.base.start)} to ${clock(told.base.end)}`}
					>
						CPU of {comparedText(told)}; most {unit.label} gained first
					</span>
				)}
			</div>
			{error && ask && <QueryError error={error} sent={ask.query} />}
			{told && rows && <Rows by={by} type={type} compared={told} rows={rows} unit={unit} />}
			{!told && "at" in compared && (
				<p class="faint changes-later">
					Not enough data yet. Two whole hours of profiles are stored at{" "}
					{clock(compared.at)}.
				</p>
			)}
		</section>
	);
}
