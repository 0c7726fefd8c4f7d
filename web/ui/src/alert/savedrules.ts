// Rules that are saved on the server: what there is, and changes.
import { parseDuration } from "../shared/timerange";
import { type Answer, apiUrl, type Labels, request } from "../shared/api";
import { type Loaded, useApi } from "../shared/hooks";
import { splitLimit } from "../query/edit";
import { newAlert, type Patch } from "../shared/urlstate";
import { validName } from "./rule";

export interface SavedGroup {
	name: string;
	changedAt?: string;
	changedBy?: string;
}

export interface SavedRules {
	enabled: boolean;
	/** Why rules cannot be saved on this server. */
	why?: string;
	/** Whether this user may. */
	mayChange: boolean;
	file?: string;
	version: number;
	changedAt?: string;
	changedBy?: string;
	change?: string;
	groups: SavedGroup[];
}

export interface SavedChange {
	version: number;
	change: string;
}

/** By category and name. */
type Features = Record<string, Record<string, boolean>>;

/** Of a user whose data are limited by matchers nothing is asked: the server refuses that. */
export function useSavedRules(tick: number): Loaded<SavedRules> {
	const { answer, error } = useApi<Features>("features", "features");
	const mayRead = answer ? answer.data.user?.read_all !== false : error !== null;
	return useApi<SavedRules>(mayRead ? `saved ${tick}` : null, "rules/saved");
}

/** Saves a rule file with one group. */
export const saveRule = (text: string, replace: boolean): Promise<Answer<SavedChange>> =>
	request(apiUrl("rules/saved", replace ? { replace: "true" } : {}), {
		method: "POST",
		headers: { "Content-Type": "application/yaml" },
		body: text,
	});

export const deleteRule = (group: string): Promise<Answer<SavedChange>> =>
	request(apiUrl("rules/saved", { group }), { method: "DELETE" });

/** Restores the version before the last change. */
export const undoRules = (): Promise<Answer<SavedChange>> =>
	request(apiUrl("rules/saved/undo"), { method: "POST" });

export interface DrawnRule {
	name: string;
	query: string;
	/** `for`, in seconds. */
	duration?: number;
	labels?: Labels;
}

const labelsText = (labels: Labels): string =>
	Object.entries(labels)
		.map(([k, v]) => `${k}=${/^[^,"]*$/.test(v) && v.trim() === v ? v : JSON.stringify(v)}`)
		.join(", ");

/** The drawer with this rule in the address; null if the rule is more than a limit. */
export function editRule(r: DrawnRule): Patch | null {
	const { expr, over } = splitLimit(r.query);
	if (over === null || !validName(r.name)) return null;
	const { severity = "-", ...more } = r.labels ?? {};
	const wait = `${r.duration ?? 0}s`;
	return {
		...newAlert(expr),
		aover: String(Number(over)),
		afor: parseDuration(wait) === null ? "0s" : wait,
		aname: r.name,
		aseverity: severity,
		alabels: labelsText(more) || null,
	};
}
