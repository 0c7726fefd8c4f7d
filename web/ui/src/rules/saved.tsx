// Saved rules on the page Rules: who saved a group and when, edit, delete, and undo of the last change.
import { useState } from "preact/hooks";
import { deleteRule, editRule, type SavedGroup, type SavedRules, undoRules, useSavedRules } from "../alert/savedrules";
import { ApiError } from "../shared/api";
import { useUrl } from "../shared/hooks";
import { formatAgo } from "../shared/units";
import { type RuleGroup, timeOf } from "./rules";

export interface Saving {
	saved: SavedRules | null;
	/** Why the last change failed; "" if it did not. */
	failed: string;
	busy: boolean;
	remove(group: string): void;
	undo(): void;
}

/** What is saved, and changes of it; `changed` is called after each. `tick`: asks again. */
export function useSaving(tick: number, changed: () => void): Saving {
	const [own, setOwn] = useState(0);
	const { answer } = useSavedRules(tick + own);
	const [busy, setBusy] = useState(false);
	const [failed, setFailed] = useState("");
	const change = (made: Promise<unknown>) => {
		setBusy(true);
		made.then(
			() => setFailed(""),
			(e) => setFailed(e instanceof ApiError ? e.message : String(e)),
		).finally(() => {
			setBusy(false);
			setOwn((n) => n + 1);
			changed();
		});
	};
	return {
		saved: answer?.data ?? null,
		failed,
		busy,
		remove: (group) => change(deleteRule(group)),
		undo: () => change(undoRules()),
	};
}

/** `alice, 3 min ago` */
function Who({ at, by, now }: { at?: string; by?: string; now: number }) {
	const t = timeOf(at);
	if (t === null) return null;
	return (
		<span title={at}>
			{by}, {formatAgo(now - t)}
		</span>
	);
}

/** The last change, and a button that takes it back. */
export function LastChange({ of, now }: { of: Saving; now: number }) {
	const { saved } = of;
	if (!saved?.change) return of.failed ? <p class="worse" role="status">{of.failed}</p> : null;
	return (
		<div class="saved-change">
			<span class="faint">
				Saved rules: {saved.change} (<Who at={saved.changedAt} by={saved.changedBy} now={now} />)
			</span>
			{saved.mayChange && (
				<button type="button" disabled={of.busy} onClick={of.undo} title={`Restore the saved rules before "${saved.change}"`}>
					Undo
				</button>
			)}
			<span class="worse" role="status">
				{of.failed}
			</span>
		</div>
	);
}

/** Of a group that is saved: who saved it, and what can be done with it. */
export function SavedActions({ group: g, of, now }: { group: RuleGroup; of: Saving; now: number }) {
	const { store } = useUrl();
	const { saved } = of;
	const mine: SavedGroup | undefined = g.file === saved?.file ? saved?.groups.find((s) => s.name === g.name) : undefined;
	if (!mine || !saved) return null;
	const [rule, ...more] = g.rules;
	const patch = rule && !more.length && rule.type === "alerting" ? editRule(rule) : null;
	return (
		<div class="saved-actions">
			<span class="faint">
				Saved by <Who at={mine.changedAt} by={mine.changedBy} now={now} />
			</span>
			{saved.mayChange && patch && (
				<button type="button" aria-label={`Edit ${g.name}`} onClick={() => store.patch(patch)}>
					Edit
				</button>
			)}
			{saved.mayChange && (
				<button type="button" aria-label={`Delete ${g.name}`} disabled={of.busy} onClick={() => of.remove(g.name)}>
					Delete
				</button>
			)}
		</div>
	);
}
