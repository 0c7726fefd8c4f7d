// What a right click on a function offers.
import { useOutside } from "../lib/hooks";

/** An entry of the menu that the place of the graph adds to the view's own. */
export interface FlameAction {
	label: string;
	hint?: string;
	/** `stack` is the call path from the outermost function to `name`, the root left out. */
	run(name: string, stack: string[]): void;
	/** Where it is offered; everywhere unless given. */
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
	onClose(): void;
}

const W = 210;
const H = 120;

export function FlameMenu(props: MenuProps) {
	const { name, stack, actions, x, y, onZoom, onPick, onClose } = props;
	const ref = useOutside(true, onClose);
	const item = (text: string, act: () => void, hint?: string) => (
		<button
			type="button"
			title={hint}
			role="menuitem"
			onClick={() => {
				act();
				onClose();
			}}
		>
			{text}
		</button>
	);
	// Clipboard access needs a secure context; over plain HTTP the entry would do nothing.
	const clipboard = window.isSecureContext ? navigator.clipboard : undefined;
	return (
		<div
			class="popup flame-menu"
			role="menu"
			ref={ref}
			style={{
				left: `${Math.min(x, window.innerWidth - W)}px`,
				top: `${Math.min(y, window.innerHeight - H)}px`,
			}}
		>
			{item("Zoom to this call", onZoom)}
			{item("Highlight everywhere", onPick)}
			{clipboard &&
				item("Copy name", () => {
					clipboard.writeText(name).catch(() => {
						/* refused by the user: nothing to do */
					});
				})}
			{actions
				.filter((a) => a.when?.(name, stack) ?? true)
				.map((a) => item(a.label, () => a.run(name, stack), a.hint))}
		</div>
	);
}
