// The field in which a query is written. The field itself draws only caret and selection; behind it
// is a coloured copy of the text, which also gives the position of each character.
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError } from "../shared/api";
import { accept, type CaretEdit, type Ranked, SURE } from "./candidates";
import { type CaretContext, contextAt } from "./complete";
import { Offers, useOffers } from "./completion";
import type { Times } from "./questions";
import { balanced, placeOf, segments } from "./syntax";
import type { Span } from "./text";

export interface QueryInputProps {
	text: string;
	label: string;
	placeholder?: string;
	times: Times;
	/** The error of this text, if known. */
	error: ApiError | null;
	/** Whether to show the message below the field. */
	tell: boolean;
	area: { current: HTMLTextAreaElement | null };
	onText(text: string): void;
	onRun(text: string): void;
	onFormat(): void;
}

const INPUT_LINES_MAX = 8;
const PAGE = 8;

/** Why the list is open: typing, a choice that led to the next one, or Ctrl+Space. */
type Mode = "closed" | "typed" | "more" | "asked";

/** Replaces a part of the field's text as if typed, so that undo works. */
export function edit(area: HTMLTextAreaElement, e: Pick<CaretEdit, "start" | "end" | "insert">): void {
	area.focus();
	area.setSelectionRange(e.start, e.end);
	if (e.insert === area.value.slice(e.start, e.end)) return;
	if (document.execCommand("insertText", false, e.insert)) return;
	area.setRangeText(e.insert, e.start, e.end, "end");
	area.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

function wanted(context: CaretContext | null, mode: Mode): boolean {
	if (!context || mode === "closed") return false;
	const open = context.wanted === "operand" || context.wanted === "after";
	return mode !== "typed" || context.typed !== "" || !open;
}

/** The position of the character at `index`, within `frame`. */
function pointOf(copy: HTMLElement, frame: HTMLElement, index: number): { x: number; y: number } {
	const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
	let left = index;
	let node = walker.nextNode();
	while (node && left > (node.nodeValue ?? "").length) {
		left -= (node.nodeValue ?? "").length;
		node = walker.nextNode();
	}
	if (!node) return { x: 0, y: frame.clientHeight };
	const range = document.createRange();
	range.setStart(node, left);
	range.setEnd(node, left);
	const at = range.getBoundingClientRect();
	const own = frame.getBoundingClientRect();
	return { x: at.left - own.left, y: Math.min(at.bottom - own.top, frame.clientHeight) };
}

const OFFERS_WIDTH = 480; // as in querybar.css

/** The list of completions: its entries, the marked one, and what choosing does. */
function useList(props: QueryInputProps) {
	const { text, area, times } = props;
	const [mode, setMode] = useState<Mode>("closed");
	const [caret, setCaret] = useState(0);
	const [pointed, setPointed] = useState<{ of: Ranked[]; at: number } | null>(null);
	const context = useMemo(
		() => (mode === "closed" ? null : contextAt(text, caret, mode === "more")),
		[text, caret, mode],
	);
	const offers = useOffers(wanted(context, mode) ? context : null, times);
	const sure = offers.length > 0 && offers[0].score >= SURE && context && !context.free;
	const active = pointed?.of === offers ? pointed.at : sure ? 0 : -1;
	const setActive = (at: number) => setPointed({ of: offers, at });
	const pick = (offer: Ranked) => {
		if (!area.current || !context) return;
		const e = accept(text, context, offer);
		edit(area.current, e);
		area.current.setSelectionRange(e.caret, e.caret);
		setCaret(e.caret);
		setMode(e.more ? "more" : "closed");
	};
	/** Whether choosing it would change nothing. */
	const idle = (offer: Ranked) => {
		if (!context) return true;
		const e = accept(text, context, offer);
		return !e.more && e.insert === text.slice(e.start, e.end);
	};
	return { mode, setMode, setCaret, active, setActive, context, offers, pick, idle };
}

type List = ReturnType<typeof useList>;

/** Handles a key for the open list; false if it has no meaning there. */
function listKey(e: KeyboardEvent, list: List): boolean {
	const { offers, active, setActive, setMode, pick, idle } = list;
	const n = offers.length;
	if (n === 0) return false;
	const step = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE }[e.key];
	const from = active < 0 && step === -1 ? 0 : active; // up from nothing is the last
	if (step === 1 || step === -1) setActive((from + step + n) % n);
	else if (step) setActive(Math.max(0, Math.min(n - 1, active + step)));
	else if (e.key === "Escape") {
		e.stopPropagation();
		setMode("closed");
	} else if (e.key === "Tab" && !e.shiftKey) pick(offers[Math.max(0, active)]);
	else if (e.key === "Enter" && !e.shiftKey && active >= 0 && !idle(offers[active]))
		pick(offers[active]);
	else return false;
	return true;
}

/** Whether a typed closing bracket only moves over the one that completion wrote. */
function stepsOver(e: KeyboardEvent, area: HTMLTextAreaElement): boolean {
	const at = area.selectionStart;
	if (!")}]".includes(e.key) || at !== area.selectionEnd) return false;
	return area.value[at] === e.key && balanced(area.value);
}

function useKeys(props: QueryInputProps, list: List) {
	return (e: KeyboardEvent) => {
		const area = e.target as HTMLTextAreaElement;
		const step = (done: () => void) => {
			e.preventDefault();
			done();
		};
		if (e.isComposing) return;
		if (listKey(e, list)) e.preventDefault();
		else if (e.key === " " && e.ctrlKey)
			step(() => {
				list.setCaret(area.selectionStart);
				list.setMode("asked");
			});
		else if (e.code === "KeyF" && e.altKey && e.shiftKey) step(props.onFormat);
		else if (e.key === "Enter" && !e.shiftKey)
			step(() => {
				list.setMode("closed");
				props.onRun(area.value.trim());
			});
		else if (stepsOver(e, area))
			step(() => area.setSelectionRange(area.selectionStart + 1, area.selectionStart + 1));
		else if (/^(Arrow|Home|End|Page)/.test(e.key)) list.setMode("closed");
	};
}

/** The copy: every word in its colour, errors underlined. */
function Copy(props: {
	text: string;
	wrong: Span | null;
	copy: { current: HTMLPreElement | null };
}) {
	const { text, wrong, copy } = props;
	// biome-ignore lint/correctness/useExhaustiveDependencies: a place by its ends
	const parts = useMemo(() => segments(text, wrong), [text, wrong?.start, wrong?.end]);
	return (
		<pre class="query-copy" aria-hidden="true" ref={copy}>
			{parts.map((s) => (
				<span key={s.start} class={`w-${s.kind}${s.wrong ? " wrong" : ""}`}>
					{text.slice(s.start, s.end)}
				</span>
			))}
			{wrong && wrong.start >= text.length && <span class="wrong"> </span>}
			{"\n" /* without it a last empty line would have no height */}
		</pre>
	);
}

/** Whether to show an error: not while completion is open and the error may be unfinished text. */
function visible(error: ApiError | null, span: Span | null, list: List): boolean {
	if (!error) return false;
	if (!list.offers.length || !list.context) return true;
	const end = /unexpected end|unterminated/.test(error.detail);
	return !end && !!span && span.end <= list.context.start;
}

export function QueryInput(props: QueryInputProps) {
	const { text, error, area } = props;
	const id = useId();
	const frame = useRef<HTMLDivElement>(null);
	const copy = useRef<HTMLPreElement>(null);
	const list = useList(props);
	const onKeyDown = useKeys(props, list);
	const span = error ? placeOf(text, error.line, error.column) : null;
	const shown = visible(error, span, list);
	const open = list.offers.length > 0;
	const [point, setPoint] = useState({ x: 0, y: 0 });
	useLayoutEffect(() => {
		if (!open || !copy.current || !frame.current) return;
		const p = pointOf(copy.current, frame.current, list.context?.start ?? 0);
		const room = Math.max(0, frame.current.clientWidth - OFFERS_WIDTH);
		setPoint({ x: Math.min(p.x, room), y: p.y });
	}, [open, list.context?.start, text]);
	const scroll = () => {
		if (copy.current && area.current) copy.current.scrollTop = area.current.scrollTop;
	};
	useLayoutEffect(scroll, [text, area]);
	return (
		<div class="query-field" ref={frame}>
			<div class="query-ground">
				<Copy text={text} wrong={shown ? span : null} copy={copy} />
				<textarea
					ref={area}
					rows={Math.min(INPUT_LINES_MAX, text.split("\n").length)}
					value={text}
					aria-label={props.label}
					aria-autocomplete="list"
					aria-haspopup="listbox"
					aria-controls={open ? `${id}-list` : undefined}
					aria-activedescendant={
						open && list.active >= 0 ? `${id}-list-${list.active}` : undefined
					}
					aria-invalid={shown}
					aria-describedby={shown && props.tell ? `${id}-wrong` : undefined}
					spellcheck={false}
					autocomplete="off"
					autocapitalize="off"
					placeholder={props.placeholder}
					title="Enter runs, Shift+Enter starts a new line, Ctrl+Space completes"
					onInput={(e) => {
						const field = e.target as HTMLTextAreaElement;
						props.onText(field.value);
						list.setCaret(field.selectionStart);
						list.setMode("typed");
					}}
					onKeyDown={onKeyDown}
					onPointerDown={() => list.setMode("closed")}
					onBlur={() => list.setMode("closed")}
					onScroll={scroll}
				/>
			</div>
			{shown && props.tell && error && (
				<div id={`${id}-wrong`} class="query-wrong" role="status">
					{span ? `${error.line}:${error.column}: ` : ""}
					{error.detail}
				</div>
			)}
			{open && (
				<Offers
					id={`${id}-list`}
					offers={list.offers}
					active={list.active}
					left={point.x}
					top={point.y + 4}
					onPick={list.pick}
				/>
			)}
		</div>
	);
}
