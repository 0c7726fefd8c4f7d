// The state of the source view: which file and build, the costs of its lines, the text, the link.
import { useEffect, useMemo, useState } from "preact/hooks";
import { framesOf } from "../query/edit";
import type { Times } from "../query/questions";
import type { Labels, ProfileElement, QueryData, VectorElement } from "../shared/api";
import { type Loaded, useApi, useOwnAnswer } from "../shared/hooks";
import { type DroppedFile, dropped, linesOfText, matching, readLines } from "./dropped";
import {
	type Build,
	buildKey,
	hostOf,
	isServed,
	lineCosts,
	linkArgs,
	type SourcePlace,
	placesOf,
	placesQuery,
	sourceRows,
	type SourceSettings,
} from "./source";

export interface SourceProps {
	/** The function. */
	fn: string;
	/** The query and times of the element, and the identity of the question. */
	query: string;
	times: Times;
	asked: string;
	element: ProfileElement;
	/** All labels of the query's elements, also those that this one lacks. */
	labels: string[];
	params: URLSearchParams;
	patch(p: Record<string, string | null>, replace?: boolean): void;
	/** The function between its callers and callees. */
	onFunction(name: string): void;
}

const OFF: SourceSettings = { debuginfod: false, links: 0, labels: [] };

/** The answer to a question for costs; null until it is there. `key` null asks nothing. */
function useCosts(props: SourceProps, sent: string | null) {
	const key = sent === null ? null : JSON.stringify([props.asked, sent]);
	const loaded = useApi<QueryData>(key, "query", { query: sent ?? "", ...props.times });
	const answer = useOwnAnswer(loaded, key, sent ?? "");
	const vector: VectorElement[] | null =
		answer === null ? null : answer.data.resultType === "vector" ? answer.data.result : [];
	return { vector, error: loaded.error };
}

/** The files of the page, as they are now. */
export function useDropped(): readonly DroppedFile[] {
	const [list, set] = useState(dropped.list);
	useEffect(() => dropped.subscribe(() => set(dropped.list)), []);
	return list;
}

interface Text {
	lines: string[] | null;
	error: string;
	/** What it was read of. */
	of: DroppedFile | null;
}
const NO_TEXT: Text = { lines: null, error: "", of: null };

/** The text of a dropped file. */
function useText(file: DroppedFile | null): Text {
	const [text, set] = useState(NO_TEXT);
	useEffect(() => {
		if (!file) return set(NO_TEXT);
		let gone = false;
		readLines(file).then(
			(lines) => gone || set({ lines, error: "", of: file }),
			(e) => gone || set({ lines: null, error: (e as Error).message, of: file }),
		);
		return () => {
			gone = true;
		};
	}, [file]);
	return text.of === file ? text : NO_TEXT;
}

interface Fetched {
	text: string;
	server: string;
}

/** The text that the server gets from debuginfod, where no file is here. */
function useFetched(settings: SourceSettings, wanted: boolean, place?: SourcePlace, build?: Build) {
	const ask = wanted && settings.debuginfod && isServed(place, build);
	const args = { build_id: build?.id, path: place?.file, binary: build?.mapping };
	const key = ask ? JSON.stringify(args) : null;
	const loaded: Loaded<Fetched> = useApi<Fetched>(key, "source", args);
	const data = key !== null && loaded.key === key ? loaded.answer?.data : undefined;
	const lines = useMemo(() => (data ? linesOfText(data.text) : null), [data]);
	return {
		lines,
		server: data?.server ?? "",
		loading: key !== null && loaded.loading && !data,
		error: key ? loaded.error : null,
	};
}

/** The address of the file's code, with `${line}` in it; "" if no link fits. */
function useLink(settings: SourceSettings, place?: SourcePlace, labels: Labels = {}): string {
	const args = place && settings.links > 0 ? linkArgs(place.file, labels) : null;
	const key = args && JSON.stringify(args);
	const loaded = useApi<SourceSettings>(key, "source_links", args ?? {});
	const url = (key !== null && loaded.key === key && loaded.answer?.data.url) || "";
	return hostOf(url) ? url : "";
}

/** What the server may be asked for; null until that is known. */
function useSettings(): SourceSettings | null {
	const { answer, error } = useApi<SourceSettings>("settings", "source_links");
	return answer?.data ?? (error ? OFF : null);
}

/** The dropped files that may be this one, and which of them is shown. */
function useFile(place: SourcePlace | undefined) {
	const all = useDropped();
	const found = useMemo(() => (place ? matching(all, place.file) : []), [all, place]);
	const [chosen, choose] = useState("");
	const file = found.find((f) => f.path === chosen) ?? found[0] ?? null;
	return { all, found, file, choose };
}

export type SourceState = ReturnType<typeof useSource>;

export function useSource(props: SourceProps) {
	const { fn, query, element, labels, params } = props;
	const settings = useSettings();
	const linkLabels = settings?.labels ?? OFF.labels;
	const asked = settings && placesQuery(query, fn, labels, linkLabels);
	const found = useCosts(props, asked);
	const places = useMemo(
		() => found.vector && placesOf(found.vector, element.metric, linkLabels),
		[found.vector, element, linkLabels],
	);
	const place = places?.find((p) => p.file === params.get("file")) ?? places?.[0];
	const chosen = place?.builds.find((b) => buildKey(b) === params.get("build"));
	const build = chosen ?? place?.builds[0];
	const match: Record<string, string> = { filename: place?.file ?? "" };
	if (chosen) Object.assign(match, chosen.id ? { build_id: chosen.id } : { mapping: chosen.mapping });
	const sent = (cost: "flat" | "cum") =>
		place ? framesOf(query, cost, match, [...labels, "filename", "line"]) : null;
	const queries = { flat: sent("flat"), cum: sent("cum") };
	const flat = useCosts(props, queries.flat);
	const cum = useCosts(props, queries.cum);
	const file = useFile(place);
	const own = useText(file.file);
	const fetched = useFetched(settings ?? OFF, file.file === null, place, build);
	const lines = file.file ? own.lines : fetched.lines;
	const costs = useMemo(
		() => flat.vector && cum.vector && lineCosts(flat.vector, cum.vector, element.metric),
		[flat.vector, cum.vector, element],
	);
	const rows = useMemo(
		() => (costs && place ? sourceRows(costs, place.lines, lines) : null),
		[costs, place, lines],
	);
	return {
		...{ settings: settings ?? OFF, places, place, build, chosen, queries, lines, rows, fetched },
		file: { ...file, error: own.error },
		link: useLink(settings ?? OFF, place, build?.labels),
		error: found.error ?? flat.error ?? cum.error,
		sent: (found.error ? asked : flat.error ? queries.flat : queries.cum) ?? "",
	};
}
