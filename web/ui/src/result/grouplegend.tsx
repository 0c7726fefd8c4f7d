// The groups of a result: colour, total, and share of all. A press shows one of them only.
import type { ProfileElement } from "../shared/api";
import { useTheme } from "../shared/theme";
import { formatPercent, formatSigned, formatValue, trend } from "../shared/units";
import { type Group, type GroupColors, groupsOf } from "./group";

const SHOWN_MAX = 24;

export function useGroups(elements: ProfileElement[], colors?: GroupColors): Group[] {
	const theme = useTheme();
	return elements.length > 1 ? groupsOf(elements, colors, theme) : [];
}

export function GroupLegend(props: {
	groups: Group[];
	/** The group that is shown alone; -1: all together. */
	shown: number;
	/** The parameter `el`. */
	onChange(el: string | null): void;
}) {
	const { groups, shown, onChange } = props;
	if (groups.length < 2) return null;
	const more = groups.length - SHOWN_MAX;
	return (
		<ul class="groups" aria-label="Groups">
			{groups
				.filter((g, rank) => rank < SHOWN_MAX || g.index === shown)
				.map((g) => {
					const { element, index } = g;
					const only = index === shown;
					return (
						<li key={g.title}>
							<button
								type="button"
								aria-pressed={only}
								class={shown >= 0 && !only ? "faint" : ""}
								title={`${g.title || g.name}: press to show ${only ? "all together" : "this one only"}`}
								onClick={() => onChange(only ? "all" : index ? String(index) : null)}
							>
								<span class="dot" style={{ background: g.color }} />
								<span class="ellipsis">{g.name}</span>
								<b class={g.share === null ? trend(element.cost) : ""}>
									{element.flamebearer.format === "double"
										? formatSigned(element.cost, element.unit)
										: formatValue(element.cost, element.unit)}
								</b>
								{g.share !== null && (
									<span class="group-share">{formatPercent(g.share)}</span>
								)}
							</button>
						</li>
					);
				})}
			{more > 0 && <li class="faint">and {more} smaller</li>}
		</ul>
	);
}
