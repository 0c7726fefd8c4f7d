// Filters of words, as the lists of targets and of flags take them.

/** Words apart by spaces, each of which must be there. */
export function words(filter: string): string[] {
	return filter.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether a text in lower case holds all of them. */
export const holds = (text: string, wanted: string[]): boolean =>
	wanted.every((w) => text.includes(w));
