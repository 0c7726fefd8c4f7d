// What was shown before an error stays, dimmed.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface LastGoodProps {
	/** The present question has failed. */
	failed: boolean;
	/** The children show its answer. */
	good: boolean;
	children: ComponentChildren;
}

export function LastGood({ failed, good, children }: LastGoodProps) {
	const last = useRef<ComponentChildren>(null);
	if (good && !failed) last.current = children;
	return (
		<>
			<i class={failed ? "failed-view" : ""} hidden />
			{failed ? last.current : children}
		</>
	);
}
