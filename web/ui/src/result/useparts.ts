// Zooming reads: the parts of the flame graph that the server left out, asked when they are zoomed.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { buildFlame, type Flame } from "../flame/layout";
import { type PartAsk, type Resolved, resolveZoom, STEPS_MAX } from "../flame/subtree";
import type { ApiError, ProfileElement, QueryData } from "../shared/api";
import { sameLabels } from "../shared/api";
import { useApi } from "../shared/hooks";
import { elementName, labelNames } from "./group";
import type { ResultsProps } from "./results";
import { DEFAULT_NODES } from "./results";

/** So many parts are kept, the newest; each has at most the limit of nodes. */
const KEPT_MAX = STEPS_MAX + 16;

export interface Parts extends Resolved {
	/** A part is being read. */
	reading: boolean;
	error: ApiError | null;
}

interface Owner {
	elements: ProfileElement[];
	element: ProfileElement;
	all: boolean;
}

/** The element of a part, and its path there: with all together, the first level is the element. */
function inElement({ elements, element, all }: Owner, path: string[]) {
	if (!all) return { of: element, path };
	const labels = labelNames(elements);
	const of = elements.find((e) => elementName(e.metric, labels) === path[0]);
	return { of, path: path.slice(1) };
}

/** The part of the element in an answer; null: it is not there. With all together, below its name. */
function partIn(data: QueryData | undefined, { of, all }: { of?: ProfileElement; all: boolean }, title: string) {
	if (data?.resultType !== "profiles" || !of) return null;
	const found = data.result.find((e) => sameLabels(e.metric, of.metric));
	if (!found) return null;
	const flame = buildFlame(found.flamebearer);
	// The root of the element is the node of its name.
	return all ? under(flame, title) : flame;
}

/** The graph one level lower, below a node of this name. */
function under(f: Flame, title: string): Flame {
	const names = [...f.names, title];
	const up = <T extends Float64Array | Uint32Array>(a: T): T => {
		const out = new (a.constructor as new (n: number) => T)(a.length + 1);
		out.set(a, 1);
		out[0] = a[0] ?? 0;
		return out;
	};
	const columns = (c: { x: Float64Array; total: Float64Array; self: Float64Array }) => {
		const out = { x: up(c.x), total: up(c.total), self: up(c.self) };
		out.self[0] = 0;
		return out;
	};
	const name = up(f.name);
	name[1] = names.length - 1;
	const parent = new Int32Array(f.count + 1);
	for (let i = 0; i < f.parent.length; i++) parent[i + 1] = f.parent[i] + 1;
	parent[0] = -1;
	return {
		...f,
		...columns(f),
		count: f.count + 1,
		levels: f.levels + 1,
		start: Uint32Array.from([0, ...Array.from(f.start, (s) => s + 1)]),
		names,
		name,
		parent,
		path: new Uint32Array(f.count + 1),
		diff: f.diff && { ...f.diff, base: columns(f.diff.base), next: columns(f.diff.next) },
	};
}

const partKey = (about: string, ask: PartAsk): string => JSON.stringify([about, ask]);

type Asking = Pick<ResultsProps, "query" | "times" | "answered" | "params">;

/** The graph with the parts of the zoom in the address; those that are missing are asked one by one. */
export function useParts(props: Asking, owner: Owner, base: Flame | null, zoom: string): Parts | null {
	const { query, times, answered, params } = props;
	const nodes = params.get("nodes") ?? String(DEFAULT_NODES);
	const kept = useRef(new Map<string, Flame | null>());
	const [version, setVersion] = useState(0);
	const about = JSON.stringify([answered, nodes, owner.all ? "all" : owner.element.metric]);
	const { all } = owner;
	const resolved = useMemo(
		() => base &&
			resolveZoom(base, zoom, all ? 1 : 0, (ask) => kept.current.get(partKey(about, ask)) ?? undefined),
		[base, zoom, all, about, version],
	);
	const ask = resolved?.ask ?? null;
	const key = ask ? partKey(about, ask) : null;
	const place = ask ? inElement(owner, ask.path) : null;
	// What was asked and is not in the answer is not asked again.
	const missing = key !== null && kept.current.get(key) === null;
	const loaded = useApi<QueryData>(missing ? null : key, "query", {
		query,
		...times,
		max_nodes: nodes,
		files: "true",
		"call_site[]": place?.path ?? [],
		call_site_skip: ask?.skip ?? undefined,
	});
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what was asked
	useEffect(() => {
		if (!key || !ask || !place || loaded.key !== key || !loaded.answer || kept.current.has(key)) return;
		const parts = kept.current;
		for (const old of [...parts.keys()].slice(0, parts.size + 1 - KEPT_MAX)) parts.delete(old);
		parts.set(key, partIn(loaded.answer.data, { of: place.of, all }, ask.path[0]));
		setVersion((v) => v + 1);
	}, [key, loaded.key, loaded.answer]);
	if (!resolved) return null;
	return {
		...resolved,
		changed: resolved.changed || missing,
		reading: loaded.loading,
		error: loaded.error,
	};
}
