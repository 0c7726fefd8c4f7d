// What the server finds for a search: its share of the whole profile, the functions that match, and the
// heaviest nodes that do, drawn or not. Enter and Shift+Enter go from one to the next.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Flame, pathId } from "../flame/layout";
import { pathPlace } from "../flame/place";
import { STEPS_MAX, zoomTo } from "../flame/subtree";
import type { Goal } from "../flame/view";
import { exactPattern, groupBy } from "../query/edit";
import {
	type ApiError,
	type Matched,
	type MatchedPath,
	type ProfileElement,
	type QueryData,
	sameLabels,
} from "../shared/api";
import { useApi } from "../shared/hooks";
import { elementName, labelNames } from "./group";
import type { ResultsProps } from "./results";
import type { Parts } from "./useparts";

const PATHS_MAX = 100;

export interface SearchAnswer {
	/** Of the element that is shown; null while it is not known. */
	matched: Matched | null;
	/** The nodes that match, the heaviest first: names from the root down, as the graph has them. */
	paths: string[][];
	/** Another question is under way. */
	old: boolean;
	error: ApiError | null;
}

type Asking = Pick<ResultsProps, "query" | "times" | "asked">;

/** The expression of the server: of a highlighted function exactly its name. */
export function searchText(text: string, pick: string): string {
	return pick ? `(?-i)${exactPattern(pick)}` : text;
}

const costOf = (p: MatchedPath): number => p.total ?? (p.left_total ?? 0) + (p.right_total ?? 0);

/** The heaviest paths of several elements; with all together, below the names of the elements. */
export function pathsOf(elements: ProfileElement[], all: boolean): string[][] {
	const labels = labelNames(elements);
	const found = elements.flatMap((e) =>
		(e.matched?.paths ?? []).map((p) => ({
			cost: costOf(p),
			path: [
				...(all ? [elementName(e.metric, labels)] : []),
				...p.frames.map((i) => e.matched?.names[i] ?? ""),
			],
		})),
	);
	return found
		.sort((a, b) => b.cost - a.cost)
		.slice(0, PATHS_MAX)
		.map((f) => f.path);
}

const elementsOf = (data: QueryData | undefined): ProfileElement[] =>
	data?.resultType === "profiles" ? data.result : [];

function useAnswer(props: Asking, query: string, text: string) {
	const key = text ? JSON.stringify([props.asked, query, text]) : null;
	const loaded = useApi<QueryData>(key, "query", {
		query,
		...props.times,
		max_nodes: "1",
		search: text,
	});
	return { ...loaded, old: loaded.key !== key || loaded.loading };
}

/** Asks for what matches; an empty text asks nothing. */
export function useFound(props: Asking, element: ProfileElement, all: boolean, text: string): SearchAnswer | null {
	const own = useAnswer(props, props.query, text);
	const sum = useAnswer(props, groupBy(props.query, ""), all ? text : "");
	const elements = useMemo(() => elementsOf(own.answer?.data), [own.answer]);
	const of = (v: ProfileElement[]) =>
		v.find((e) => sameLabels(e.metric, element.metric)) ?? (v.length === 1 ? v[0] : undefined);
	const shown = all ? elementsOf(sum.answer?.data)[0] : of(elements);
	const paths = useMemo(
		() => pathsOf(all ? elements : shown ? [shown] : [], all),
		[elements, shown, all],
	);
	if (!text) return null;
	return {
		matched: shown?.matched ?? null,
		paths,
		old: own.old || sum.old,
		error: own.error ?? sum.error,
	};
}

export interface SearchSteps {
	/** The match that is shown, from 1; 0: none yet. */
	at: number;
	goal: Goal | null;
	onStep(by: 1 | -1): void;
}

/** The place in the graph of one match after the other; what was left out on the way is read. */
export function useSearchSteps(
	about: string,
	found: SearchAnswer | null,
	parts: Parts | null,
	base: Flame | null,
	params: URLSearchParams,
	patch: ResultsProps["patch"],
): SearchSteps {
	const [step, setStep] = useState({ about: "", index: 0, turn: 0 });
	const [goal, setGoal] = useState<Goal | null>(null);
	/** The turn that has come to its end, and the parts that were asked for in this one. */
	const done = useRef(0);
	const read = useRef({ turn: 0, n: 0 });
	const paths = found?.paths ?? [];
	const ready = found !== null && found.matched !== null && !found.old;
	const n = paths.length;
	const index = step.about === about && n ? ((step.index % n) + n) % n : -1;
	const turn = step.about === about ? step.turn : 0;
	const zoom = params.get("zoom") ?? "";
	// biome-ignore lint/correctness/useExhaustiveDependencies: a turn goes on when a part has come
	useEffect(() => {
		if (!turn || turn === done.current || !ready || !parts || !base) return;
		if (read.current.turn !== turn) read.current = { turn, n: 0 };
		const place = index < 0 ? null : pathPlace(parts.flame, paths[index]);
		if (place && "unread" in place && !parts.error && !parts.changed) {
			const to = zoomTo(parts, pathId(parts.flame, place.unread));
			if (to !== zoom && read.current.n++ < STEPS_MAX) patch({ zoom: to }, read.current.n > 1);
			if (to !== zoom || parts.reading || parts.ask) return;
		}
		done.current = turn;
		if (place && "node" in place)
			setGoal({
				turn,
				path: parts.flame.path[place.node],
				opened: read.current.n > 0,
				whole: "node" in (pathPlace(base, paths[index]) ?? {}),
			});
	}, [turn, ready, parts?.flame, parts?.reading, parts?.error, zoom]);
	const onStep = useCallback(
		(by: 1 | -1) =>
			setStep((s) => ({
				about,
				index: s.about === about ? s.index + by : by > 0 ? 0 : -1,
				turn: s.turn + 1,
			})),
		[about],
	);
	return { at: turn ? index + 1 : 0, goal: turn && goal?.turn === turn ? goal : null, onStep };
}
