// The alert in the address, the day before now, and what follows from both.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useProfileTypes } from "../query/questions";
import { findSelectors } from "../query/read";
import { formatSelector } from "../query/text";
import { againstVersion, newerFirst, VERSION, type VersionPair, versionPair } from "../query/versions";
import { type Labels, type MatrixElement, resolveType } from "../shared/api";
import { useApi, useOwnAnswer, useUrl } from "../shared/hooks";
import { durationSeconds, parseDuration, type Window } from "../shared/timerange";
import { newAlert, type Patch } from "../shared/urlstate";
import { alertUnit } from "./alertunit";
import { firedText, firingsOf } from "./fired";
import { defaultLimit, limitText } from "./limit";
import { type AlertDraft, INTERVAL_S, parseLabels, serviceLabel, suggestName, type SummaryFormat } from "./rule";
import { functionIn, ruleTest } from "./ruletest";

export const WAIT = "5m";
export const SEVERITY = "warning";
const DAY_S = 86400;
const NONE = "-"; // in the address: no severity
const NO_LINES: MatrixElement[] = [];

interface Matrix {
	resultType: string;
	unit?: string;
	result: MatrixElement[];
}

/** The day that ends with the last full minute. */
function dayBefore(now: number): Window {
	const end = Math.floor(now / INTERVAL_S) * INTERVAL_S;
	return { start: end - DAY_S, end };
}

/** The expression over the past day, as a rule would have seen it once a minute. */
function usePast(expr: string, win: Window) {
	const args = { query: expr, start: String(win.start), end: String(win.end), step: String(INTERVAL_S) };
	const key = JSON.stringify(args);
	const loaded = useApi<Matrix>(key, "query_range", args);
	const data = useOwnAnswer(loaded, key, expr)?.data;
	const lines = data?.resultType === "matrix" ? data.result : NO_LINES;
	return { loaded, known: data !== undefined, lines, unit: data?.unit ?? "" };
}

/** The labels of one series that the expression selects; null if there is none, or not known yet. */
function useSeries(expr: string, win: Window): { series: Labels | null; loading: boolean } {
	const selector = useMemo(() => findSelectors(expr)[0], [expr]);
	const args = {
		"match[]": selector ? formatSelector(selector) : "",
		start: String(win.start),
		end: String(win.end),
	};
	const loaded = useApi<Labels[]>(selector ? JSON.stringify(args) : null, "series", args);
	const found = loaded.answer?.data;
	return { series: (Array.isArray(found) && found[0]) || null, loading: loaded.loading };
}

/** The newer and the older version, if the expression selects two and could compare them. */
function useVersions(expr: string, win: Window): [string, string] | null {
	const selector = useMemo(() => {
		const comparable = againstVersion(expr, { how: "points", next: "b", base: "a" });
		const first = comparable === null ? undefined : findSelectors(expr)[0];
		return first && { ...first, matchers: first.matchers.filter((m) => m.label !== VERSION) };
	}, [expr]);
	const args = {
		"match[]": selector && (selector.name || selector.matchers.length) ? formatSelector(selector) : undefined,
		start: String(win.start),
		end: String(win.end),
	};
	const { answer } = useApi<string[]>(selector ? JSON.stringify(args) : null, `label/${VERSION}/values`, args);
	return useMemo(() => newerFirst(answer?.data ?? []), [answer]);
}

/** What the limit is where nothing suggests one. */
const FALLBACK = { points: 0.02, times: 1.5 };

/** How the summary says a comparison of versions. */
const comparedFormat = (f: SummaryFormat, { how, next, base }: VersionPair): SummaryFormat =>
	how === "points"
		? { ...f, suffix: ` more of the total in ${next} than in ${base}` }
		: { function: "humanize", suffix: ` times its share in ${base} in ${next}` };

/** The element with the largest value, whose labels are those of the example. */
function largest(lines: MatrixElement[]): Labels | null {
	const top = (m: MatrixElement) => m.values.reduce((t, [, v]) => Math.max(t, Number(v) || 0), 0);
	const best = lines.reduce<[number, Labels | null]>(
		(a, m) => (a[1] === null || top(m) > a[0] ? [top(m), m.metric] : a),
		[0, null],
	);
	return best[1];
}

export type DraftState = ReturnType<typeof useAlertDraft>;

export function useAlertDraft() {
	const { store, location } = useUrl();
	const { params } = location;
	const get = (name: string) => params.get(name) ?? "";
	const set = (p: Patch) => store.patch(p, true);
	const expr = get("alert");
	const win = useMemo(() => dayBefore(Date.now() / 1000), [expr]);
	const past = usePast(expr, win);
	const { series, loading } = useSeries(expr, win);
	const types = useProfileTypes();
	const profile = resolveType(findSelectors(expr)[0]?.name ?? "", types.answer?.data ?? []);
	const type = profile?.type ?? "";
	const pair = useMemo(() => versionPair(expr), [expr]);
	const versions = useVersions(expr, win);
	// A quotient of shares may be more than all: it is a number.
	const own = pair?.how === "times" ? "" : past.unit;
	const unit = useMemo(() => alertUnit(expr, type, own), [expr, type, own]);

	// A link must keep the limit that its sender saw.
	const typed = get("aover");
	const suggested = useMemo(
		() => (past.known ? (defaultLimit(past.lines, unit.limit) ?? (pair && FALLBACK[pair.how])) : null),
		[past.known, past.lines, unit.limit, pair],
	);
	useEffect(() => {
		if (!typed && suggested !== null) store.patch({ aover: limitText(suggested) }, true);
	}, [typed, suggested, store]);
	const stored = Number(typed || (suggested ?? 1));
	const [moved, setMoved] = useState<number | null>(null);
	useEffect(() => setMoved(null), [typed, expr]);
	const over = moved ?? (Number.isFinite(stored) ? stored : 1);
	/** While it is dragged, only what is shown follows. */
	const move = (v: number, done: boolean) => {
		setMoved(v);
		if (done) set({ aover: limitText(v) });
	};

	const wait = parseDuration(get("afor")) === null ? WAIT : get("afor");
	const fired = useMemo(
		() => firingsOf(past.lines, win, INTERVAL_S, over, durationSeconds(wait)),
		[past.lines, win, over, wait],
	);
	const metric = useMemo(() => largest(past.lines), [past.lines]);
	const known = Object.keys(metric ?? {}).sort();
	const fn = functionIn(expr);
	const service = serviceLabel(known);
	const subject = fn ?? metric?.function ?? findSelectors(expr)[0]?.name ?? "";
	const name = get("aname") || suggestName((service && metric?.[service]) || "", subject);
	const severity = get("aseverity") === NONE ? "" : get("aseverity") || SEVERITY;
	const more = parseLabels(get("alabels"));
	const labels: Labels = { ...(severity ? { severity } : {}), ...more };
	const format = pair ? comparedFormat(unit.format, pair) : unit.format;
	const draft: AlertDraft = { name, expr, over: limitText(over), wait, labels, format, subject, known };
	return {
		...{ draft, fired, unit, past, window: win, over, move, type, severity, fn, pair, versions },
		/** The texts may still change by what the server answers. */
		busy: past.loaded.loading || types.loading || loading,
		labelsText: get("alabels"),
		labelsWrong: more === null,
		sentence: past.known ? firedText(fired, win) : "",
		test: ruleTest(draft, { metric, series, type: profile }),
		set,
		setExpr: (text: string) => {
			const { aover, ...kept } = newAlert(text);
			set(text ? { alert: text, aover: null } : { ...kept, aover });
		},
		setSeverity: (v: string) => set({ aseverity: v === SEVERITY ? null : v || NONE }),
		close: () => store.patch(newAlert("")),
	};
}
