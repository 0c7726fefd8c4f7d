// Copies a text. The clipboard API needs a secure context; over plain HTTP a selection can still
// be copied.
export async function copyText(text: string): Promise<boolean> {
	if (window.isSecureContext) {
		try {
			await navigator.clipboard.writeText(text);
			return true;
		} catch {
			// Refused, or the page lost the focus: try a selection.
		}
	}
	const had = document.activeElement;
	const area = document.createElement("textarea");
	area.value = text;
	area.className = "visually-hidden";
	document.body.append(area);
	area.select();
	const done = document.execCommand("copy");
	area.remove();
	if (had instanceof HTMLElement) had.focus({ preventScroll: true });
	return done;
}
