// A pool of targets as a panel that opens and closes.
import type { ComponentChildren } from "preact";
import { useUrl } from "../shared/hooks";
import { IconDown } from "../shared/icons";
import { listParam, openAtFirst, type Pool } from "./targets";
import "./targets.css";
import "./pool.css";

/**
 * Which pools are open. The address has the pools that the user opened and closed; a filter may
 * change the defaults, but not these.
 */
export function usePools<T>(pools: Pool<T>[]) {
	const { store, location } = useUrl();
	const opened = location.params.get("opened");
	const closed = location.params.get("closed");
	const first = openAtFirst(pools);
	const isOpen = (name: string) =>
		first ? !listParam.read(closed).includes(name) : listParam.read(opened).includes(name);
	const toggle = (name: string) => {
		const key = first ? "closed" : "opened";
		store.patch({ [key]: listParam.toggle(first ? closed : opened, name) }, true);
	};
	const setAll = (open: boolean) => {
		const names = listParam.write(pools.map((p) => p.name));
		if (first) store.patch({ closed: open ? null : names }, true);
		else store.patch({ opened: open ? names : null }, true);
	};
	const allOpen = pools.every((p) => isOpen(p.name));
	return { isOpen, toggle, setAll, allOpen };
}

export type Pools = ReturnType<typeof usePools>;

export function OpenAll({ pools, count }: { pools: Pools; count: number }) {
	if (count < 2) return null;
	return (
		<button type="button" onClick={() => pools.setAll(!pools.allOpen)}>
			{pools.allOpen ? "Collapse all" : "Expand all"}
		</button>
	);
}

interface PoolPanelProps {
	pool: { name: string; error: string };
	pools: Pools;
	/** Shown beside the name. */
	counts: ComponentChildren;
	children(): ComponentChildren;
}

export function PoolPanel({ pool, pools, counts, children }: PoolPanelProps) {
	const open = pools.isOpen(pool.name);
	return (
		<section class="panel pool" aria-label={pool.name}>
			<button
				type="button"
				class="panel-head"
				aria-expanded={open}
				onClick={() => pools.toggle(pool.name)}
			>
				<h2 class="ellipsis">{pool.name}</h2>
				{counts}
				<span class="spacer" />
				<IconDown />
			</button>
			{pool.error && <div class="notice error">{pool.error}</div>}
			{open && children()}
		</section>
	);
}
