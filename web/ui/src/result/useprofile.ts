// The state of a profile result: from the address, and derived from the answer.
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { buildFlame, comparable, type Flame, setWidthMode, type WidthMode } from "../flame/layout";
import { zoomSteps, zoomTo } from "../flame/subtree";
import { lookFromParams } from "../flame/look";
import type { FlameAction } from "../flame/menu";
import { type Matches, search, searchName } from "../flame/search";
import { alertOn, baseSide, groupBy } from "../query/edit";
import { hasFiles } from "../query/files";
import { tableQuery, withMatcher } from "../query/query";
import { type ProfileElement, type QueryData, sameLabels, type TopElement } from "../shared/api";
import { publish } from "../shared/debug";
import { type Loaded, useApi, useKeyed, useUrl } from "../shared/hooks";
import { binariesIn, unnamedOf } from "../shared/symbols";
import { newAlert, oneOf } from "../shared/urlstate";
import { openSource } from "../source/source";
import { type Bases, basesOf, withSearched } from "./bases";
import { type QueryEdit, isFolded, queryActions } from "./filters";
import { elementName, type Group, labelNames, together } from "./group";
import { useGroups } from "./grouplegend";
import type { ResultsProps } from "./results";
import { type SearchAnswer, searchText, useFound, useSearchSteps } from "./usefound";
import { type Parts, useParts } from "./useparts";
import { useSignificance } from "../verdict/significance";
import { useSearch } from "./toolbar";
import { unnamedActions } from "./unnamednote";

const VIEWS = ["both", "flame", "table", "tree"] as const;
const WIDTHS: WidthMode[] = ["both", "new", "base"];

export type View = (typeof VIEWS)[number];

const TABLE_ROWS = 5000;
/** Of a difference: all of its functions, so that those that are new, gone or changed can be counted. */
const DIFF_ROWS = 50000;

export interface ProfileProps extends ResultsProps {
	elements: ProfileElement[];
}

/** The element that is shown: one of the answer's, or all together. */
export function useElement({ elements, params }: Pick<ProfileProps, "elements" | "params">) {
	const all = params.get("el") === "all" && elements.length > 1;
	const index = Math.min(elements.length - 1, Math.max(0, Number(params.get("el") ?? 0) || 0));
	const element = useMemo(
		() => (all ? together(elements) : elements[index]),
		[elements, index, all],
	);
	return { element, index, all };
}

/** The colour of each group by the name that it has in the graph of all together. */
function useBands(groups: Group[], all: boolean): Map<string, string> | null {
	const key = JSON.stringify([all, groups.map((g) => [g.title, g.color])]);
	return useKeyed(key, () => {
		if (!all) return null;
		const labels = labelNames(groups.map((g) => g.element));
		return new Map(groups.map((g) => [elementName(g.element.metric, labels), g.color]));
	});
}

/** The graph as it was answered. */
function useBase(element: ProfileElement): [Flame | null, string] {
	return useMemo((): [Flame | null, string] => {
		try {
			return [buildFlame(element.flamebearer), ""];
		} catch (e) {
			return [null, (e as Error).message];
		}
	}, [element]);
}

function useMatches(
	flame: Flame | null,
	pattern: RegExp | null,
	pick: string,
	widthMode: WidthMode,
	text: string,
	found: SearchAnswer | null,
	at: number,
): Matches | null {
	const matches = useMemo(() => {
		if (!flame) return null;
		if (pick) return searchName(flame, pick);
		return pattern ? search(flame, pattern) : null;
	}, [flame, pattern, pick, widthMode]);
	useEffect(() => {
		publish(
			"search",
			() =>
				matches &&
				flame && {
					text,
					drawn: matches.total,
					...(found && !found.old ? found.matched : null),
					at,
				},
		);
		return () => publish("search", null);
	}, [matches, flame, text, found, at]);
	return matches;
}

export interface Top {
	loaded: Loaded<QueryData>;
	/** The query that was sent. */
	sent: string;
	element?: TopElement;
}

/** The table of the element, or of the sum of all. */
function useTop(props: ProfileProps, element: ProfileElement, all: boolean, wanted: boolean): Top {
	const rows = element.flamebearer.format === "double" ? DIFF_ROWS : TABLE_ROWS;
	const sent = tableQuery(all ? groupBy(props.query, "") : props.query, rows);
	const key = wanted ? JSON.stringify([props.asked, sent]) : null;
	const loaded = useApi<QueryData>(key, "query", { query: sent, ...props.times });
	const tables: TopElement[] =
		loaded.answer?.data.resultType === "top" ? loaded.answer.data.result : [];
	const own = tables.find((t) => sameLabels(t.metric, element.metric));
	return { loaded, sent, element: own ?? (tables.length === 1 ? tables[0] : undefined) };
}

/** The table of a difference without a new side is that of the base, whose costs are negative there. */
function useBaseAlone(top: Top, alone: boolean): Top {
	const element = useMemo(() => {
		if (!top.element || !alone) return top.element;
		const rows = top.element.rows.map((r) => ({ ...r, flat: -r.flat, cum: -r.cum }));
		return { ...top.element, rows };
	}, [top.element, alone]);
	return { ...top, element };
}

function useBases(
	props: ProfileProps,
	element: ProfileElement,
	all: boolean,
	wanted: boolean,
	search: { text: string; found: SearchAnswer | null },
): Bases | null {
	const query = all ? groupBy(props.query, "") : props.query;
	const side = element.flamebearer.format === "double" ? baseSide(query) : null;
	const ask = side ? { ...props, query: side } : props;
	const { element: base, loaded } = useTop(ask, element, false, wanted && side !== null);
	const { answer } = loaded;
	const known = useMemo(() => (side && answer ? basesOf(base) : null), [side, base, answer]);
	// A search has rows beyond those that are loaded: what they cost in Base, too.
	const beyond = useFound(ask, element, false, known && !known.whole ? search.text : "");
	const [next, own] = [search.found?.matched, beyond && !beyond.old ? beyond.matched : null];
	return useMemo(() => (known && next && own ? withSearched(known, next, own) : known), [known, next, own]);
}

/** The menu entries of a function, besides those of the flame graph. */
function useActions(
	props: ProfileProps,
	all: boolean,
	onAlert: (name: string) => void,
	onOpen: (name: string) => void,
	onSource: (name: string) => void,
) {
	const { edit, times, elements } = props;
	const { store } = useUrl();
	const labels = useMemo(() => labelNames(elements), [elements]);
	return useMemo((): FlameAction[] => {
		// With several elements together, the first level are values of labels.
		const isFunction = (_: string, stack: string[]) => !all || stack.length !== 1;
		const when = (name: string, stack: string[]) =>
			!isFolded(name) && stack.length > 0 && isFunction(name, stack);
		const sandwich: FlameAction = {
			label: "Callers and callees (sandwich)",
			hint: "Callers and callees of the function, with costs",
			when,
			run: onOpen,
		};
		const source: FlameAction = {
			label: "Source: lines with their cost",
			hint: "Source file with the cost of each line",
			when: (name, stack) => when(name, stack) && !unnamedOf(name),
			run: onSource,
		};
		const alert: FlameAction = {
			label: "Alert when it costs more",
			hint: "Cost of the past day, a limit, and the rule as text",
			when: (...at) => when(...at) && !hasFiles(props.query),
			run: onAlert,
		};
		const own: FlameAction[] = edit
			? [...queryActions(edit, when), ...(all ? onlyValue(edit, labels) : [])]
			: [];
		const symbols = unnamedActions(binariesIn(props.answer.infos), Number(times.start), store);
		return [...symbols, sandwich, source, alert, ...own];
	}, [edit, times.start, all, labels, onAlert, onOpen, onSource, props.answer, props.query, store]);
}

/** The menu entry of a value of a label, if the first level of the graph are such values. */
function onlyValue(edit: QueryEdit, labels: string[]): FlameAction[] {
	const [label, ...more] = labels;
	if (more.length) return [];
	return [
		{
			label: `Only this ${label}`,
			hint: "Selects the series or samples with this value",
			when: (_, stack) => stack.length === 1,
			run: (name) => {
				const value = name === elementName({}, labels) ? "" : name;
				edit((q) => groupBy(withMatcher(q, label, value), ""));
			},
		},
	];
}

/** The last step of the zoom that is in the graph; the last of all if none is known there. */
const shownZoom = (part: Parts | null, zoom: string): string =>
	part?.read[part.read.length - 1]?.id ?? zoomSteps(zoom).slice(-1)[0] ?? "";

export type ProfileState = ReturnType<typeof useProfile>;

/** Everything that a result shows, and the functions that change it. */
export function useProfile(props: ProfileProps) {
	const { params, patch } = props;
	const { element, index, all } = useElement(props);
	const view = oneOf(params.get("view"), VIEWS);
	const widthMode = oneOf(params.get("width"), WIDTHS);
	const searched = useSearch(params.get("search") ?? "");
	const pick = params.get("pick") ?? "";
	const fn = params.get("fn") ?? "";
	const src = params.get("src") ?? "";
	const groups = useGroups(props.elements, props.colors);
	const bands = useBands(groups, all);
	const [base, broken] = useBase(element);
	const part = useParts(props, { elements: props.elements, element, all }, base, params.get("zoom") ?? "");
	const flame = part?.flame ?? null;
	const read = part?.read;
	// The widths change in place, so everything that reads them depends on the mode.
	useMemo(() => flame && setWidthMode(flame, widthMode), [flame, widthMode]);
	const text = searchText(searched.pattern ? searched.text : "", pick);
	const found = useFound(props, element, all, text);
	const about = JSON.stringify([text, all ? "all" : element.metric]);
	const steps = useSearchSteps(about, found, part, base, params, patch);
	const matches = useMatches(flame, searched.pattern, pick, widthMode, text, found, steps.at);
	const tabled = view === "both" || view === "table";
	const double = element.flamebearer.format === "double";
	// If one side has no costs, nothing is compared: the other side is shown as it is.
	const diff = double && (base === null || comparable(base));
	const both = useTop(props, element, all, tabled || fn !== "");
	const top = useBaseAlone(both, double && !element.right_total);
	const bases = useBases(props, element, all, tabled, { text, found });
	const asked = all ? { ...props, query: groupBy(props.query, "") } : props;
	const given = all ? undefined : props.significance;
	const own = useSignificance(asked, element, given === undefined);
	const significance = given === undefined ? own : given;
	const onAlert = useCallback(
		(name: string) => patch(newAlert(alertOn(props.query, name, element.type ?? ""))),
		[patch, props.query, element.type],
	);
	const onOpen = useCallback((name: string) => patch({ fn: name }), [patch]);
	const onSource = useCallback(
		(name: string, file?: string, line?: number) => patch(openSource(name, file, line)),
		[patch],
	);
	const onZoom = useCallback(
		(id: string, replace?: boolean) =>
			patch({ zoom: flame && read ? zoomTo({ flame, read }, id) : id }, replace),
		[patch, flame, read],
	);
	const onSearch = useCallback((s: string) => patch({ search: s, pick: null }, true), [patch]);
	const onPick = useCallback(
		(name: string) => patch({ pick: name === pick ? null : name }, true),
		[patch, pick],
	);
	return {
		...{ element, index, all, view, widthMode, searched, pick, fn, src, flame, broken, matches },
		...{ groups, bands, found, steps },
		...{ tabled, top, bases, significance, double, diff, onAlert, onOpen, onSource, onZoom, onSearch, onPick },
		// The view of one function has no level of labels.
		actions: useActions(props, all && !fn, onAlert, onOpen, onSource),
		idle: element.cost === 0 && element.flamebearer.levels.length < 2,
		look: lookFromParams(params),
		zoom: shownZoom(part, params.get("zoom") ?? ""),
		part,
	};
}
