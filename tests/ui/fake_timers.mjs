// Timers that a test moves: node's own mock takes other arguments in each version.
const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };

/** setTimeout and clearTimeout of this process stand still until tick(); reset() gives them back. */
export function fakeTimers() {
	const waiting = new Map();
	let now = 0;
	let last = 0;
	globalThis.setTimeout = (call, ms = 0, ...args) => {
		waiting.set(++last, { at: now + Math.max(1, ms), run: () => call(...args) });
		return last;
	};
	globalThis.clearTimeout = (id) => waiting.delete(id);
	return {
		/** Runs what is due within these milliseconds, in the order of its time. */
		tick(ms) {
			const end = now + ms;
			for (;;) {
				const due = [...waiting].filter(([, timer]) => timer.at <= end);
				if (due.length === 0) break;
				const [id, timer] = due.reduce((a, b) => (b[1].at < a[1].at ? b : a));
				waiting.delete(id);
				now = timer.at;
				timer.run();
			}
			now = end;
		},
		reset() {
			Object.assign(globalThis, real);
		},
	};
}
