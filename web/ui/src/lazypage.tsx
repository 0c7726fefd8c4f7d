// A component whose script is loaded when it is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

export type Load = () => Promise<ComponentType>;

/** `onShown` is called after the component is on the screen, perhaps again. Give it a key for each `load`. */
export function LazyPage({ load, onShown }: { load: Load; onShown?(): void }) {
	const [view, setView] = useState<{ View?: ComponentType; failed?: boolean }>({});
	useEffect(() => {
		let gone = false;
		load().then(
			(View) => gone || setView({ View }),
			() => gone || setView({ failed: true }),
		);
		return () => {
			gone = true;
		};
	}, [load]);
	useEffect(() => {
		if (view.View) onShown?.();
	}, [view.View, onShown]);
	if (view.failed)
		return (
			<div class="notice error" role="alert">
				<div>
					Page not loaded: the server is away, or has another version of the page.{" "}
					<button type="button" onClick={() => window.location.reload()}>
						Reload
					</button>
				</div>
			</div>
		);
	return view.View ? <view.View /> : null;
}
