// A read-only view of what is on screen, for tests that cannot read a canvas:
//   __epi.flame()      {width, drawMs, frames, framesDrawn, zoomed, nodes: [{index, x, y, w, color}]}
//                      in CSS pixels; frames is the script time of the last ones in milliseconds,
//                      with that of the pointer's handlers before each
//   __epi.node(index)  {name, total, self, level}
//   __epi.drawn()      the two joined: [{name, total, self, level, x, y, w}]
//                      All three take the name of a view where more than one is on the page.
//   __epi.search()     {text, drawn, at} of the current search: the cost of what is drawn of it, the match that
//                      is shown; and what the server found, once it is known; null without a search
//   __epi.table()      the rows of the top table in the order shown; of another by its name
//   __epi.chart(name)  the chart's lines on its grid of times, their colours, its scale, and what is marked;
//                      "chart" on Explore, "chart-base" and "chart-new" on Compare, "chart-alert" in the drawer
//   __epi.heat()       the heatmap: rows, times, shifts of rows, values (the server's; null is a gap), place of its
//                      cells, its unit and query; frames as of the flame graph
//   __epi.totals()     {base, new, change, factor}: what Compare says of both sides
//   __epi.verdict()    which function the verdict on a difference names, and why
//   __epi.strips()     {base, new, step, top}: its share per step on both sides
//   __epi.source()     the lines of the source view: line, flat, cum, text (null: not known), own (of the function)
//   __epi.level()      {growth, rows, points}: how a level grows, and who holds it
// The page itself does not read it.

const sources = new Map<string, () => unknown>();

export function publish(name: string, source: (() => unknown) | null): void {
	if (source) sources.set(name, source);
	else sources.delete(name);
}

const read = (name: string): unknown => sources.get(name)?.() ?? null;

export function installDebug(win: Window): void {
	const flame = (view = "flame") => read(view) as { nodes: { index: number }[] } | null;
	const node = (i: number, view = "flame") =>
		(read(`${view}Names`) as ((i: number) => object) | null)?.(i) ?? null;
	const hook = Object.freeze({
		flame,
		node,
		drawn: (view = "flame") =>
			flame(view)?.nodes.map((d) => ({ ...node(d.index, view), ...d })) ?? [],
		search: () => read("search"),
		table: (name = "table") => read(name),
		chart: (name = "chart") => read(name),
		heat: () => read("heat"),
		totals: () => read("totals"),
		verdict: () => read("verdict"),
		strips: () => read("strips"),
		source: () => read("source"),
		level: () => read("level"),
	});
	Object.defineProperty(win, "__epi", { value: hook, writable: false });
}
