// What a right click on a function offers.
import { useOutside } from "../lib/hooks";

export interface MenuProps {
	name: string;
	x: number;
	y: number;
	onZoom(): void;
	onPick(): void;
	onClose(): void;
}

const W = 210;
const H = 120;

export function FlameMenu({ name, x, y, onZoom, onPick, onClose }: MenuProps) {
	const ref = useOutside(true, onClose);
	const item = (text: string, act: () => void) => (
		<button
			type="button"
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
		</div>
	);
}
