// Copies a text; a button that does, and says whether it was copied; a command or lines with such a button.
import { useState } from "preact/hooks";
import "./copybutton.css";

/** The clipboard needs a secure context; over plain HTTP a selection can still be copied. */
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

export function CopyButton(props: { text: string; label?: string; tabIndex?: number }) {
	const { text, label, tabIndex } = props;
	const [said, say] = useState("");
	const copy = async () => say((await copyText(text)) ? "Copied" : "Copying not allowed");
	return (
		<>
			<button
				type="button"
				class="small"
				{...{ tabIndex, "aria-label": label, title: label }}
				onClick={copy}
			>
				Copy
			</button>
			<span class="faint" role="status">
				{said}
			</span>
		</>
	);
}

/** `what` names it for screen readers: "the command". */
export function Copyable({ text, what }: { text: string; what: string }) {
	return (
		<span class="command">
			{text.includes("\n") ? <pre>{text}</pre> : <code>{text}</code>}
			<CopyButton text={text} label={`Copy ${what}`} />
		</span>
	);
}
