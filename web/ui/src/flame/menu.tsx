// The menu of a function, by right click or menu key: the entries of the view, then those that the
// caller adds.
import { Fragment } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../shared/copybutton";
import { useOutside } from "../shared/hooks";
import { attached } from "../shared/must";
import { shortName } from "./names";

/** An entry that the caller adds to the menu. */
export interface FlameAction {
	label: string;
	hint?: string;
	/** `stack` is the call path from the outermost function to `name`, without the root. */
	run(name: string, stack: string[]): void;
	/** Whether to offer it; always if not given. */
	when?(name: string, stack: string[]): boolean;
}

export interface MenuProps {
	name: string;
	stack: string[];
	actions: FlameAction[];
	x: number;
	y: number;
	onZoom(): void;
	onPick(): void;
	/** `back`: return the focus to the graph. */
	onClose(back: boolean): void;
}

const EDGE = 8;

/** The entry that a key moves to, of `n` entries of which `at` has the focus; -1 for other keys. */
function menuMove(key: string, at: number, n: number): number {
	if (key === "ArrowDown") return (at + 1) % n;
	if (key === "ArrowUp") return (at - 1 + n) % n;
	if (key === "Home") return 0;
	if (key === "End") return n - 1;
	return -1;
}

export function FlameMenu(props: MenuProps) {
	const { name, stack, actions, x, y, onZoom, onPick, onClose } = props;
	const ref = useOutside(true, () => onClose(false));
	const opened = useRef(false);
	const [place, setPlace] = useState({ left: x, top: y });
	const buttons = () => [...(ref.current?.querySelectorAll("button") ?? [])];
	useLayoutEffect(() => {
		const menu = attached(ref);
		const box = menu.getBoundingClientRect();
		setPlace({
			left: Math.max(EDGE, Math.min(x, window.innerWidth - box.width - EDGE)),
			top: Math.max(EDGE, Math.min(y, window.innerHeight - box.height - EDGE)),
		});
		if (!opened.current) menu.querySelector("button")?.focus({ preventScroll: true });
		opened.current = true;
	}, [ref, x, y]);
	const own: FlameAction[] = [
		{ label: "Zoom to this call", run: onZoom },
		{ label: "Highlight everywhere", run: onPick },
		{ label: "Copy name", run: () => void copyText(name) },
		{
			label: "Copy stack",
			hint: "The call path, one function per line, the outermost first",
			run: () => void copyText(stack.join("\n")),
		},
	];
	const onKey = (e: KeyboardEvent) => {
		const all = buttons();
		const to = menuMove(e.key, all.indexOf(document.activeElement as HTMLButtonElement), all.length);
		if (to >= 0) all[to].focus();
		else if (e.key === "Escape" || e.key === "Tab") onClose(true);
		else return;
		e.preventDefault();
		e.stopPropagation();
	};
	return (
		<div
			class="popup flame-menu"
			role="menu"
			aria-label={`Actions on ${name}`}
			ref={ref}
			style={{ left: `${place.left}px`, top: `${place.top}px` }}
			onKeyDown={onKey}
			onContextMenu={(e) => e.preventDefault()}
		>
			<div class="flame-menu-name ellipsis" title={name}>
				{shortName(name)}
			</div>
			{[...own, ...actions.filter((a) => a.when?.(name, stack) ?? true)].map((a, i) => (
				<Fragment key={a.label}>
					{i === own.length && <hr />}
					<button
						type="button"
						role="menuitem"
						tabIndex={-1}
						title={a.hint}
						onClick={() => {
							onClose(true);
							a.run(name, stack);
						}}
					>
						{a.label}
					</button>
				</Fragment>
			))}
		</div>
	);
}
