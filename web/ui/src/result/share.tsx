// A link to what is shown: the address with absolute times, and with the zone if that is UTC. Nothing is stored.
import { useEffect, useRef, useState } from "preact/hooks";
import { useOutside, useUrl } from "../shared/hooks";
import { IconLink } from "../shared/icons";
import { attached } from "../shared/must";
import { isUtc } from "../shared/timerange";
import { type Patch, patchParams } from "../shared/urlstate";
import "./share.css";

const COPIED_MS = 2000;

/** The link in a field, selected; used over plain HTTP, where the clipboard is not available. */
function LinkField({ link }: { link: string }) {
	const field = useRef<HTMLInputElement>(null);
	useEffect(() => {
		const el = attached(field);
		el.focus();
		el.select();
	}, [link]);
	return (
		<div class="popup share-popup" role="dialog" aria-label="Link to this view">
			<label>
				<span class="faint">Link to this view at these times</span>
				<input ref={field} type="text" readOnly value={link} />
			</label>
		</div>
	);
}

/** `fixed`: the changes of the address that make it show the same tomorrow. */
export function ShareButton({ fixed }: { fixed: Patch }) {
	const { store } = useUrl();
	const [state, setState] = useState<"" | "copied" | "shown">("");
	const [link, setLink] = useState("");
	const ref = useOutside(state === "shown", () => setState(""));
	useEffect(() => {
		if (state !== "copied") return;
		const id = setTimeout(() => setState(""), COPIED_MS);
		return () => clearTimeout(id);
	}, [state]);
	const share = () => {
		if (state === "shown") return setState("");
		const { path, params } = store.get();
		const made = window.location.origin + store.href(path, patchParams(params, { ...fixed, tz: isUtc() ? "utc" : null }));
		setLink(made);
		const clipboard = window.isSecureContext ? navigator.clipboard : undefined;
		if (!clipboard) return setState("shown");
		clipboard.writeText(made).then(
			() => setState("copied"),
			() => setState("shown"),
		);
	};
	return (
		<div class="menu" ref={ref}>
			<button
				type="button"
				aria-expanded={state === "shown"}
				title="Copy a link to this view, with absolute times"
				onClick={share}
			>
				<IconLink />
				<span aria-live="polite">{state === "copied" ? "Link copied" : "Share"}</span>
			</button>
			{state === "shown" && <LinkField link={link} />}
		</div>
	);
}
