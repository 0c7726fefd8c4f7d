// Filters of the lists of targets and flags: words that must all be there.

/** The words of a filter, in lower case. */
export function filterWords(filter: string): string[] {
	return filter.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether a lower case text contains all words. */
export const holds = (text: string, wanted: string[]): boolean =>
	wanted.every((w) => text.includes(w));
