// A press keeps what it is on. A click whose press and release meet different elements does nothing, so
// what the server answers in between is shown after the release.

let pressed = false;
let waiting: (() => void)[] = [];

function pressBegins(e: PointerEvent) {
	if (e.button === 0) pressed = true;
}

function pressEnds() {
	pressed = false;
	const due = waiting;
	waiting = [];
	// The click is a later event of the same task.
	setTimeout(() => {
		for (const go of due) go();
	});
}

/** Another window, or a menu of the system, may have seen the release. */
function pressMoves(e: PointerEvent) {
	if (pressed && e.buttons === 0) pressEnds();
}

/** Listens to the presses of `on`, once for a page. */
export function watchPresses(on: EventTarget) {
	const capture = { capture: true };
	on.addEventListener("pointerdown", (e) => pressBegins(e as PointerEvent), capture);
	on.addEventListener("pointermove", (e) => pressMoves(e as PointerEvent), capture);
	on.addEventListener("pointerup", pressEnds, capture);
	on.addEventListener("pointercancel", pressEnds, capture);
}

/** Ends at once, or after the release if the pointer is pressed. */
export const released = (): Promise<void> =>
	pressed ? new Promise((done) => waiting.push(done)) : Promise.resolve();
