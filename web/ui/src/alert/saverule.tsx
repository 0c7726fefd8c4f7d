// The end of the drawer: the rule is saved on the server, or the reason why it cannot be.
import { useState } from "preact/hooks";
import { useUrl } from "../shared/hooks";
import { ApiError } from "../shared/api";
import { saveRule, useSavedRules } from "./savedrules";

type State = { is: "idle" | "saving" } | { is: "saved"; text: string } | { is: "failed"; text: string; why: string };

/** `text` is the rule file. `busy`: it may still change by itself. */
export function SaveRule({ name, text, busy }: { name: string; text: string; busy: boolean }) {
	const { store } = useUrl();
	const [tick, setTick] = useState(0);
	const { answer } = useSavedRules(tick);
	const [state, setState] = useState<State>({ is: "idle" });
	const saved = answer?.data;
	if (!saved) return null;
	if (!saved.enabled) return <p class="faint alert-save">Not saved by this page: {saved.why}.</p>;
	if (!saved.mayChange) return <p class="faint alert-save">Users with the role admin can save this rule.</p>;
	const replaces = saved.groups.some((g) => g.name === name);
	const save = () => {
		setState({ is: "saving" });
		saveRule(text, replaces).then(
			() => {
				setState({ is: "saved", text });
				setTick((t) => t + 1);
			},
			(e) => {
				setState({ is: "failed", text, why: e instanceof ApiError ? e.message : String(e) });
				setTick((t) => t + 1);
			},
		);
	};
	const done = state.is === "saved" && state.text === text;
	return (
		<div class="alert-save">
			<button type="button" class="primary" disabled={busy || state.is === "saving" || done} onClick={save}>
				{replaces ? "Replace saved rule" : "Save rule"}
			</button>
			<span role="status">
				{done && (
					<>
						Saved and running. <a href={store.href("rules")}>Rules</a>
					</>
				)}
				{state.is === "failed" && state.text === text && <span class="worse">{state.why}</span>}
			</span>
		</div>
	);
}
