// A button that copies a text, and says whether it was copied; a command or lines with such a button.
import { useState } from "preact/hooks";
import { copyText } from "./copy";
import "./copybutton.css";

export function CopyButton(props: { text: string; label?: string; tabIndex?: number }) {
	const { text, label, tabIndex } = props;
	const [said, say] = useState("");
	const copy = async () => say((await copyText(text)) ? "Copied" : "Not allowed here");
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
