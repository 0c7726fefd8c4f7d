// Values that are there unless the page has a bug: a missing one throws where it is needed.

/** `value`, which is never missing here; `what` names it in the error. */
export function must<T>(value: T | null | undefined, what: string): T {
	if (value === null || value === undefined) throw new Error(`${what} is missing`);
	return value;
}

/** What a ref holds, for effects and events of a mounted component. */
export const attached = <T>(ref: { current: T | null }): T => must(ref.current, "a mounted element");

/** The context that draws on a canvas. */
export const context2d = (
	canvas: HTMLCanvasElement,
	settings?: CanvasRenderingContext2DSettings,
): CanvasRenderingContext2D => must(canvas.getContext("2d", settings), "a 2d context");
