// What functions cost in the base of a difference, so that its table shows both sides.
import type { Matched, TopElement, TopRow } from "../shared/api";

/** `whole`: a function that has no row has no cost. */
export interface Bases {
	rows: Map<string, TopRow>;
	whole: boolean;
}

const byFunction = (rows: TopRow[]) => new Map(rows.map((r) => [r.function, r]));

/** An empty side has no table, and no function of it has a cost. */
export function basesOf(table: TopElement | undefined): Bases {
	if (!table) return { rows: new Map(), whole: true };
	return { rows: byFunction(table.rows), whole: (table.functions ?? Infinity) <= table.rows.length };
}

/**
 * With the rows of a search: `next` is what it finds in the difference, `own` in the base. Where the
 * base has all that it finds, other functions of the search have no cost there.
 */
export function withSearched(bases: Bases, next: Matched, own: Matched): Bases {
	const rows = new Map([...byFunction(own.rows), ...bases.rows]);
	const none = { flat: 0, flat_percent: 0, sum_percent: 0, cum: 0, cum_percent: 0 };
	if (own.functions <= own.rows.length)
		for (const { function: name } of next.rows)
			if (!rows.has(name)) rows.set(name, { function: name, ...none });
	return { ...bases, rows };
}
