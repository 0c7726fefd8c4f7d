// The list of completions, and what it asks the server.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, type ProfileType } from "../shared/api";
import { candidates, type Known, namesQuestion, rank, type Ranked } from "./candidates";
import type { CaretContext } from "./complete";
import { language } from "./language";
import type { Times } from "./questions";

const WAIT_MS = 120; // while the user goes on typing
const KEPT_MS = 60_000;
const KEPT_MAX = 200;
const SHOWN_MAX = 60;

interface Question {
	name: string;
	args: Record<string, string>;
}

const kept = new Map<string, { data: unknown; at: number }>();

function keep(key: string, data: unknown): void {
	kept.delete(key);
	kept.set(key, { data, at: performance.now() });
	const [oldest] = kept.keys();
	if (kept.size > KEPT_MAX) kept.delete(oldest);
}

/** An answer that is at most a minute old; `empty` until it arrives, and if there is none. */
function useKept<T>(question: Question | null, empty: T, wait: number): T {
	const key = question ? JSON.stringify(question) : "";
	const fresh = () => {
		const k = kept.get(key);
		return k && performance.now() - k.at < KEPT_MS ? k : undefined;
	};
	const [, set] = useState(0);
	const last = useRef<{ name: string; data: T } | null>(null);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the question
	useEffect(() => {
		if (!question || fresh()) return;
		const abort = new AbortController();
		const show = (data: unknown) => {
			if (abort.signal.aborted) return;
			keep(key, data);
			set((n) => n + 1);
		};
		const ask = () =>
			call<T>(question.name, question.args, abort.signal).then(
				(answer) => show(answer.data),
				() => show(empty), // without an answer, completion only offers less
			);
		const timer = setTimeout(ask, wait);
		return () => {
			clearTimeout(timer);
			abort.abort();
		};
	}, [key]);
	if (!question) return empty;
	const found = kept.get(key);
	if (found) last.current = { name: question.name, data: found.data as T };
	// While more letters are typed, the old list stays.
	return last.current?.name === question.name ? last.current.data : empty;
}

const NO_NAMES: string[] = [];
const NO_TYPES: ProfileType[] = [];

function useKnown(context: CaretContext | null, times: Times): Omit<Known, "language"> {
	const { time: _, ...window } = times;
	const operand = context?.wanted === "operand";
	const types = useKept(operand ? { name: "profile_types", args: {} } : null, NO_TYPES, 0);
	const series = useKept(
		operand ? { name: "label/__name__/values", args: {} } : null,
		NO_NAMES,
		0,
	);
	const asked = context && namesQuestion(context);
	const names = useKept(
		asked && { name: asked.name, args: { ...asked.args, ...window } },
		NO_NAMES,
		WAIT_MS,
	);
	return { types, series, names };
}

/** The candidates for `context`, best first. */
export function useOffers(context: CaretContext | null, times: Times): Ranked[] {
	const { types, series, names } = useKnown(context, times);
	return useMemo(
		() =>
			context
				? rank(
						context,
						candidates(context, { types, series, language: language(), names }),
						SHOWN_MAX,
					)
				: [],
		[context, types, series, names],
	);
}

/** The text with the typed characters marked. */
function Marked({ text, hits }: { text: string; hits: number[] }) {
	const out = [];
	const on = new Set(hits);
	for (let i = 0; i < text.length; ) {
		let end = i + 1;
		while (end < text.length && on.has(end) === on.has(i)) end++;
		const part = text.slice(i, end);
		out.push(on.has(i) ? <b key={i}>{part}</b> : part);
		i = end;
	}
	return <>{out}</>;
}

const KIND_NAMES: Record<string, string> = { code: "function in profiles" };

export interface OffersProps {
	id: string;
	offers: Ranked[];
	active: number;
	left: number;
	top: number;
	onPick(offer: Ranked): void;
}

/** The list itself. The focus stays in the text; a press chooses. */
export function Offers({ id, offers, active, left, top, onPick }: OffersProps) {
	const list = useRef<HTMLDivElement>(null);
	useEffect(() => {
		list.current?.children[Math.max(0, active)]?.scrollIntoView({ block: "nearest" });
	}, [active, offers]);
	const shown = offers[active];
	return (
		<div class="popup offers" style={{ left: `${left}px`, top: `${top}px` }}>
			<div
				id={id}
				ref={list}
				role="listbox"
				aria-label="Completions"
				class="offers-list"
				tabIndex={0}
			>
				{offers.map((o, i) => (
					<div
						key={o.text}
						id={`${id}-${i}`}
						role="option"
						aria-selected={i === active}
						class={i === active ? "on" : ""}
						onPointerDown={(e) => {
							e.preventDefault(); // the focus stays where it is
							onPick(o);
						}}
					>
						<span class="offer-text">
							{o.text ? <Marked text={o.text} hits={o.hits} /> : <i>empty</i>}
						</span>
						{o.help && <span class="offer-help">{o.help}</span>}
						<span class="offer-kind">{KIND_NAMES[o.kind] ?? o.kind}</span>
					</div>
				))}
			</div>
			{shown?.usage && (
				<div class="offer-usage">
					<code>{shown.usage}</code>
					{shown.help && <div>{shown.help}</div>}
				</div>
			)}
		</div>
	);
}
