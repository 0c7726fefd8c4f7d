// What the menus of a query offer: the labels, values and types of the series that it selects.
import { useApi } from "../shared/hooks";
import { wholeWindow } from "./labels";
import type { Times } from "./questions";

/** The answer of `name`, a list, for these selectors; for all series if they select nothing. */
export function useMenu<T>(name: string, selectors: string[], times: Times, wanted = true): T[] {
	const args = { "match[]": selectors, ...wholeWindow(times) };
	const own = useApi<T[]>(wanted ? JSON.stringify([name, args]) : null, name, args);
	const none = own.error !== null || own.answer?.data.length === 0;
	const all = useApi<T[]>(wanted && none ? name : null, name);
	return (none ? all : own).answer?.data ?? [];
}
