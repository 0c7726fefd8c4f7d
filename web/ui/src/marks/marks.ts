// Marks on time lines: where a version changed, and what was posted, as deploys are. Which are one flag,
// what they say, and which comparison each leads to.
import { ungrouped } from "../query/edit";
import { profilesOf, withMatcher } from "../query/query";
import { readQuery } from "../query/read";
import { formatSelector } from "../query/text";
import { guessKind, profileSelectors } from "../query/types";
import type { Labels } from "../shared/api";
import { formatClock, trimMs, type Window } from "../shared/timerange";

/** As /api/v1/annotations has it; times in seconds since 1970. */
export interface TimeMark {
	time: number;
	/** What was posted may take a while. */
	end?: number;
	kind: "posted" | "version";
	text: string;
	/** Of a change of versions: the label, and its values before and after. */
	label?: string;
	from?: string;
	to?: string;
	labels: Labels;
}

/** Marks that are drawn as one. */
export interface Flag {
	/** From the left end of the lines, in pixels; that of the first mark. */
	x: number;
	marks: TimeMark[];
}

/** Marks closer than this are one flag: a flag takes a press on 24 pixels, and none covers another. */
export const FLAG_NEAR_PX = 24;
/** So many are said one by one, of a flag or of a range. */
export const MARKS_SAID = 12;
/** No comparison is of less. */
const COMPARED_MIN_S = 60;

/** The place of a time in a window that is `width` pixels wide, at its ends beyond them. */
export const markX = (t: number, { start, end }: Window, width: number): number =>
	Math.min(1, Math.max(0, (t - start) / (end - start))) * width;

/** The marks of a window, in the order of their times. */
export const marksIn = (marks: TimeMark[], { start, end }: Window): TimeMark[] =>
	marks.filter((m) => m.time <= end && (m.end ?? m.time) >= start).sort((a, b) => a.time - b.time);

export function flagMarks(marks: TimeMark[], window: Window, width: number): Flag[] {
	const flags: Flag[] = [];
	for (const mark of marksIn(marks, window)) {
		const x = markX(mark.time, window, width);
		const last = flags[flags.length - 1];
		if (last && x - last.x < FLAG_NEAR_PX) last.marks.push(mark);
		else flags.push({ x, marks: [mark] });
	}
	return flags;
}

/** The lines of marks, no two on one pixel; `wide` is how far what took a while reaches. */
export function markLines(marks: TimeMark[], window: Window, width: number): { x: number; wide: number }[] {
	const lines = new Map<number, { x: number; wide: number }>();
	for (const m of marksIn(marks, window)) {
		const x = markX(m.time, window, width);
		const wide = m.end === undefined ? 0 : markX(m.end, window, width) - x;
		const there = lines.get(Math.round(x));
		lines.set(Math.round(x), { x: there?.x ?? x, wide: Math.max(wide, there?.wide ?? 0) });
	}
	return [...lines.values()];
}

/** `version v1 → v2`, or the posted text. */
export const markTitle = ({ kind, text, label, from, to }: TimeMark): string =>
	kind === "version" ? `${label} ${from} → ${to}` : text;

export const markLabels = ({ labels }: TimeMark): string =>
	Object.entries(labels)
		.map(([name, value]) => `${name}=${value}`)
		.join(", ");

export const markTime = ({ time, end }: TimeMark): string =>
	end === undefined ? formatClock(time) : `${formatClock(time)} to ${formatClock(end)}`;

/** A mark in words. */
export const markText = (mark: TimeMark): string =>
	[markTitle(mark), markTime(mark), markLabels(mark)].filter(Boolean).join(", ");

/** What a press on a mark does. */
export const markAction = ({ kind, from, to }: TimeMark): string =>
	kind === "version" ? `Compare ${to} against ${from}` : "Compare after against before";

/** The first marks of a range in words, and how many more there are. */
export function describeMarks(marks: TimeMark[], window: Window): string[] {
	const all = marksIn(marks, window);
	const more = all.length - MARKS_SAID;
	return [...all.slice(0, MARKS_SAID).map(markText), ...(more > 0 ? [`and ${more} more`] : [])];
}

/** The profiles that a query is about: of costs those of its first selector. "" if it has none. */
function markProfiles(query: string): string {
	const kind = guessKind(query);
	if (kind !== "costs" && kind !== "unknown") return profilesOf(query, kind);
	const { tree } = readQuery(query);
	const [first] = tree ? profileSelectors(tree) : [];
	return first ? formatSelector(first) : "";
}

/**
 * The comparison that a mark of a chart of `query` leads to, as parameters of Compare: from the mark to
 * the end of the window, against as long before it. A change of versions compares the two versions of
 * that service. Null if the query selects no profiles.
 */
export function markComparison(mark: TimeMark, query: string, window: Window): Record<string, string> | null {
	const profiles = markProfiles(query);
	if (!profiles) return null;
	const after = mark.end !== undefined && mark.end < window.end ? mark.end : mark.time;
	const length = Math.max(COMPARED_MIN_S, window.end - after);
	const times = {
		...{ from: trimMs(after), to: trimMs(after + length) },
		...{ bfrom: trimMs(mark.time - length), bto: trimMs(mark.time) },
	};
	const { kind, label, from, to } = mark;
	if (kind !== "version" || !label || !from || !to) return { new: profiles, base: profiles, ...times };
	const service = Object.entries(mark.labels).reduce(
		(q, [name, value]) => withMatcher(q, name, value),
		ungrouped(profiles),
	);
	return { new: withMatcher(service, label, to), base: withMatcher(service, label, from), ...times };
}
