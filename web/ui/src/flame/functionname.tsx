// The name of a function in a table.
import { unnamedOf } from "../shared/symbols";
import { shortName } from "./names";
import { aboutUnnamed } from "./unnamed";

/** In a narrow column the package's directory is cut first: the end of a name matters most. */
export function FunctionName({ name }: { name: string }) {
	const unnamed = unnamedOf(name);
	if (unnamed)
		return (
			<span class="fn" title={`${name}: ${aboutUnnamed(unnamed)}`}>
				<i class="hatch" />
				<span class="fn-name">{name}</span>
			</span>
		);
	const short = shortName(name);
	return (
		<span class="fn" title={name}>
			<span class="fn-dir">{name.slice(0, name.length - short.length)}</span>
			<span class="fn-name">{short}</span>
		</span>
	);
}
