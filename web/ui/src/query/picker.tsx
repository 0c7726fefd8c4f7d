// A selector as fields: profile type and matchers, with suggestions from the server. It reads the
// query text and writes it back.
import { useEffect, useId, useLayoutEffect, useState } from "preact/hooks";
import { type ProfileType, resolveType, shortTypeName } from "../shared/api";
import { optionsOf } from "../shared/fields";
import { useOutside } from "../shared/hooks";
import { IconPlus, IconX } from "../shared/icons";
import { askedOf } from "./labels";
import { useMenu } from "./menus";
import type { Times } from "./questions";
import { formatSelector, MATCH_OPS, type Matcher, type MatchOp, type Selector } from "./text";
import "./picker.css";

export interface PickerProps {
	/** null if the query is not a lone selector. */
	selector: Selector | null;
	/** All stored types, from which short names follow. */
	types: ProfileType[];
	/** The window whose types, labels and values are offered. */
	times: Times;
	onChange(selector: Selector): void;
}

interface ComboProps {
	value: string;
	options: string[];
	placeholder: string;
	label: string;
	autofocus?: boolean;
	onCommit(value: string): void;
	onFocus?(): void;
}

const SHOWN = 50;

function Options(props: {
	id: string;
	label: string;
	value: string;
	shown: string[];
	at: number;
	onPick(value: string): void;
}) {
	const { id, at } = props;
	return (
		<div class="popup options" role="listbox" id={id} aria-label={props.label}>
			{props.shown.map((o, i) => (
				<div
					key={o}
					id={`${id}-${i}`}
					role="option"
					aria-selected={i === at}
					class={i === at ? "on" : o === props.value ? "current" : ""}
					onPointerDown={(e) => {
						e.preventDefault(); // keeps the focus: no blur, no commit
						props.onPick(o);
					}}
				>
					{o || <i>empty</i>}
				</div>
			))}
		</div>
	);
}

/** A text field with a list of suggestions below it. */
export function Combo(props: ComboProps) {
	const { value, options, placeholder, label, autofocus, onCommit } = props;
	const [text, setText] = useState(value);
	const [open, setOpen] = useState(false);
	const [typed, setTyped] = useState(false);
	const [at, setAt] = useState(-1);
	const id = useId();
	const ref = useOutside(open, () => setOpen(false));
	// Before the browser hands on the next key: a value that comes later would be mixed with what is typed.
	useLayoutEffect(() => setText(value), [value]);

	const wanted = typed ? text.toLowerCase() : "";
	const shown = options.filter((o) => o.toLowerCase().includes(wanted)).slice(0, SHOWN);
	const commit = (v: string) => {
		setText(v);
		setOpen(false);
		setTyped(false);
		setAt(-1);
		if (v !== value) onCommit(v);
	};
	const onKey = (e: KeyboardEvent) => {
		if (e.key === "ArrowDown" || e.key === "ArrowUp") {
			setOpen(true);
			setAt((at + (e.key === "ArrowDown" ? 1 : shown.length)) % Math.max(1, shown.length));
			e.preventDefault();
		} else if (e.key === "Enter") {
			commit(open && at >= 0 && shown[at] !== undefined ? shown[at] : text);
			e.preventDefault();
		}
	};
	return (
		<div class="combo" ref={ref}>
			<input
				value={text}
				placeholder={placeholder}
				aria-label={label}
				role="combobox"
				aria-autocomplete="list"
				aria-expanded={open && shown.length > 0}
				aria-controls={open && shown.length > 0 ? id : undefined}
				aria-activedescendant={open && at >= 0 && at < shown.length ? `${id}-${at}` : undefined}
				spellcheck={false}
				autocomplete="off"
				size={Math.max(placeholder.length, Math.min(28, text.length + 1))}
				ref={(el) => {
					if (autofocus && el && !el.dataset.seen) {
						el.dataset.seen = "1";
						el.focus();
					}
				}}
				onFocus={() => {
					props.onFocus?.();
					setOpen(true);
				}}
				onInput={(e) => {
					setText((e.target as HTMLInputElement).value);
					setTyped(true);
					setOpen(true);
					setAt(-1);
				}}
				onKeyDown={onKey}
				onBlur={() => {
					if (typed) commit(text);
				}}
			/>
			{open && shown.length > 0 && (
				<Options id={id} label={label} value={value} shown={shown} at={at} onPick={commit} />
			)}
		</div>
	);
}


function MatcherEdit(props: {
	matcher: Matcher;
	/** The selector without this matcher. */
	rest: Selector;
	times: Times;
	autofocus: boolean;
	onChange(m: Matcher): void;
	onRemove(): void;
}) {
	const { matcher: m, rest, times, onChange, onRemove, autofocus } = props;
	const [wantLabels, setWantLabels] = useState(autofocus);
	const [wantValues, setWantValues] = useState(false);
	const asked = [askedOf(rest)].filter(Boolean);
	const labels = useMenu<string>("labels", asked, times, wantLabels);
	const values = useMenu<string>(
		`label/${encodeURIComponent(m.label)}/values`,
		asked,
		times,
		wantValues && m.label !== "",
	);
	return (
		<div class="matcher">
			<Combo
				value={m.label}
				label="Label"
				placeholder="label"
				autofocus={autofocus}
				options={labels.filter((l) => !l.startsWith("__"))}
				onFocus={() => setWantLabels(true)}
				onCommit={(label) => onChange({ ...m, label })}
			/>
			<select
				value={m.op}
				aria-label="Operator"
				onChange={(e) =>
					onChange({ ...m, op: (e.target as HTMLSelectElement).value as MatchOp })
				}
			>
				{optionsOf(MATCH_OPS)}
			</select>
			<Combo
				value={m.value}
				label="Value"
				placeholder="value"
				options={values}
				onFocus={() => setWantValues(true)}
				onCommit={(value) => onChange({ ...m, value })}
			/>
			<button type="button" class="quiet" aria-label="Remove this matcher" onClick={onRemove}>
				<IconX />
			</button>
		</div>
	);
}

function TypeSelect({
	selector: { name, matchers },
	types,
	times,
	onPick,
}: {
	selector: Selector;
	types: ProfileType[];
	times: Times;
	onPick(n: string): void;
}) {
	const current = resolveType(name, types);
	const offered = useMenu<ProfileType>("profile_types", [askedOf({ name: "", matchers })].filter(Boolean), times);
	const groups = new Map<string, ProfileType[]>();
	for (const t of types)
		if (t === current || offered.some((o) => o.type === t.type))
			groups.set(t.name, [...(groups.get(t.name) ?? []), t]);
	return (
		<select
			class="type"
			value={current?.type ?? ""}
			aria-label="Profile type"
			onChange={(e) => {
				const t = types.find((x) => x.type === (e.target as HTMLSelectElement).value);
				if (t) onPick(shortTypeName(t, types));
			}}
		>
			{!current && <option value="">{name || "profile type"}</option>}
			{[...groups].map(([group, members]) => (
				<optgroup key={group} label={group}>
					{members.map((t) => (
						<option key={t.type} value={t.type}>
							{t.name} · {t.sample_type} ({t.sample_unit})
						</option>
					))}
				</optgroup>
			))}
		</select>
	);
}

const NO_SELECTOR: Selector = { name: "", matchers: [] };

export function Picker({ selector, types, times, onChange }: PickerProps) {
	const [draft, setDraft] = useState<Matcher[] | null>(null);
	const text = selector ? formatSelector(selector) : "";
	useEffect(() => setDraft(null), [text]);

	if (!selector)
		return (
			<div class="picker">
				<TypeSelect
					selector={NO_SELECTOR}
					types={types}
					times={times}
					onPick={(name) => onChange({ name, matchers: [] })}
				/>
				<span class="faint">
					The query is an expression. Choosing a type starts a new query.
				</span>
			</div>
		);
	// A matcher without label or value is kept here until it is complete.
	const matchers = draft ?? selector.matchers;
	const known = matchers.filter((m) => m.label && m.value);
	const update = (next: Matcher[]) => {
		const whole = next.filter((m) => m.label);
		setDraft(next);
		if (
			next.every((m) => m.label && m.value) &&
			formatSelector({ ...selector, matchers: whole }) !== text
		)
			onChange({ ...selector, matchers: whole });
	};
	return (
		<div class="picker">
			<TypeSelect
				selector={selector}
				types={types}
				times={times}
				onPick={(name) => onChange({ ...selector, name })}
			/>
			{matchers.map((m, i) => (
				<MatcherEdit
					key={i}
					matcher={m}
					rest={{ ...selector, matchers: known.filter((y) => y !== m) }}
					times={times}
					autofocus={!m.label}
					onChange={(x) => update(matchers.map((y, k) => (k === i ? x : y)))}
					onRemove={() => update(matchers.filter((_, k) => k !== i))}
				/>
			))}
			<button
				type="button"
				class="add"
				onClick={() => setDraft([...matchers, { label: "", op: "=", value: "" }])}
			>
				<IconPlus />
				Label
			</button>
		</div>
	);
}
