// What is wrong, above the services: one line each, which leads to the page that explains it.
import { useState } from "preact/hooks";
import { FunctionName } from "../flame/functionname";
import type { Finding, FindingKind } from "./findings";
import "./findingspanel.css";

const SHOWN_MAX = 6;

const WORDS: Record<FindingKind, [word: string, hint: string]> = {
	down: ["Down", "Opens Targets"],
	alert: ["Alert", "Opens Alerts"],
	refused: ["Pushes", "Opens Senders"],
	growth: ["Growth", "Opens Explore: what grew"],
	slower: ["CPU", "Opens Compare: the flame graph of both"],
};

function Line({ of }: { of: Finding }) {
	const [word, hint] = WORDS[of.kind];
	return (
		<li class={`finding finding-${of.kind}`}>
			<a href={of.href} title={hint}>
				<span class="finding-kind">{word}</span>
				<b class="finding-who">{of.who}</b>
				<span class="finding-text">
					{of.function && (
						<>
							<FunctionName name={of.function} />{" "}
						</>
					)}
					{of.text}
				</span>
			</a>
		</li>
	);
}

/** Nothing if there is nothing wrong. */
export function FindingsPanel({ findings }: { findings: Finding[] }) {
	const [all, setAll] = useState(false);
	if (findings.length === 0) return null;
	const more = findings.length - SHOWN_MAX;
	return (
		<section class="panel findings" aria-label="Findings">
			<ol>
				{(all ? findings : findings.slice(0, SHOWN_MAX)).map((f) => (
					<Line key={`${f.kind} ${f.who} ${f.text} ${f.function ?? ""}`} of={f} />
				))}
			</ol>
			{more > 0 && (
				<button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
					{all ? "Fewer" : `${more.toLocaleString("en")} more`}
				</button>
			)}
		</section>
	);
}
