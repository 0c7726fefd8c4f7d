// A function's file: each line with what it cost in the window, beside the code where that is known.
import { useEffect, useRef } from "preact/hooks";
import { CopyButton } from "../shared/copybutton";
import { Select } from "../shared/fields";
import { IconX } from "../shared/icons";
import { Narrow } from "../shared/layout";
import { attached, must } from "../shared/must";
import { QueryError } from "../shared/notices";
import { formatPercent, share } from "../shared/units";
import { NoText, TextFrom, useFiles } from "./filearea";
import { Listing, type ListingHandle } from "./listing";
import {
	buildKey,
	hostOf,
	lineUrl,
	openSource,
	otherVersion,
	type SourcePlace,
	shortBuild,
} from "./source";
import { type SourceProps, type SourceState, useSource } from "./usesource";
import "./source.css";

interface Part {
	props: SourceProps;
	of: SourceState;
}

const close = (props: SourceProps) => props.patch(openSource(""));

/** The file, if lines of the function are in several: one that was inlined has the file of each copy. */
function FileSelect({ props, of }: Part) {
	const { place, places } = of;
	if (!place || !places || places.length < 2) return null;
	return (
		<Select
			name="File"
			label="File"
			value={place.file}
			onChange={(file) => props.patch({ file, build: null, line: null }, true)}
		>
			{places.map((p) => (
				<option key={p.file} value={p.file}>
					{p.file}
				</option>
			))}
		</Select>
	);
}

/** Lines of other builds have other numbers, so one of them may be chosen. */
function BuildSelect({ props, of }: Part) {
	const builds = of.place?.builds ?? [];
	if (builds.length < 2) return null;
	const all = builds.reduce((sum, b) => sum + b.cum, 0);
	return (
		<Select
			name="Build"
			label="Build"
			hint="Lines of one build: other builds may have other code on the same lines"
			value={of.chosen ? buildKey(of.chosen) : ""}
			onChange={(build) => props.patch({ build: build || null }, true)}
		>
			<option value="">all {builds.length}</option>
			{builds.map((b) => (
				<option key={buildKey(b)} value={buildKey(b)}>
					{shortBuild(b)}, {formatPercent(share(b.cum, all))}
				</option>
			))}
		</Select>
	);
}

function Head({ props, of }: Part) {
	const { fn } = props;
	const { place, link } = of;
	const title = useRef<HTMLHeadingElement>(null);
	useEffect(() => attached(title).focus({ preventScroll: true }), [fn]);
	const first = Math.min(...(place?.lines.keys() ?? []));
	return (
		<div class="source-head">
			<h2 ref={title} tabIndex={-1}>
				{fn}
			</h2>
			<span class="spacer" />
			<button type="button" class="small" onClick={() => props.onFunction(fn)}>
				Callers and callees
			</button>
			<button type="button" class="small" onClick={() => close(props)}>
				<IconX />
				Close
			</button>
			{place && (
				<div class="source-file">
					<code class="ellipsis" title={place.file}>
						{place.file}
					</code>
					{link && (
						<a
							href={lineUrl(link, Number(props.params.get("line")) || (Number.isFinite(first) ? first : 1))}
							target="_blank"
							rel="noopener noreferrer"
							title={link}
						>
							Open at {hostOf(link)}
						</a>
					)}
					<FileSelect props={props} of={of} />
					<BuildSelect props={props} of={of} />
					<TextFrom of={of} />
				</div>
			)}
		</div>
	);
}

/** The questions behind the costs. */
function Questions({ of }: { of: SourceState }) {
	const one = (what: "flat" | "cum") => {
		const query = must(of.queries[what], `the query of ${what}`);
		return (
			<p>
				<code>{query}</code> <CopyButton text={query} label={`Copy the query of ${what}`} />
			</p>
		);
	};
	return (
		<details class="source-queries">
			<summary>Queries</summary>
			{one("flat")}
			{one("cum")}
		</details>
	);
}

/** What speaks against the lines: several builds, another version of the text, no lines at all. */
function Doubts({ of, place }: { of: SourceState; place: SourcePlace }) {
	const { chosen, rows, lines, file } = of;
	const several = new Set(place.builds.map((b) => b.id).filter(Boolean)).size;
	const doubts = [
		file.error,
		rows && otherVersion(rows, lines),
		several > 1 &&
			!chosen &&
			`Sum of ${several} builds, which may have other code on the same lines. Choose a build.`,
		place.lines.size === 0 && "The profiles have no line numbers for this function.",
	].filter(Boolean) as string[];
	return (
		<>
			{doubts.map((d) => (
				<div key={d} class="notice" role="status">
					{d}
				</div>
			))}
		</>
	);
}

function File({ props, of, place }: Part & { place: SourcePlace }) {
	const handle = useRef<ListingHandle>(null);
	const files = useFiles(place.file);
	const { rows, lines } = of;
	const line = Number(props.params.get("line")) || 0;
	const waiting = of.fetched.loading && !lines;
	return (
		<div class={files.over ? "source-body over" : "source-body"}>
			<Doubts of={of} place={place} />
			{files.said && (
				<div class="notice" role="status">
					{files.said}
				</div>
			)}
			{!lines && !waiting && <NoText of={of} path={place.file} add={files.add} />}
			{waiting && <p class="no-text faint">Asking debuginfod for the code…</p>}
			<div class="source-tools">
				<button type="button" class="small" onClick={() => handle.current?.next(1)}>
					Next cost
				</button>
				<button type="button" class="small" onClick={() => handle.current?.next(-1)}>
					Previous
				</button>
				<Narrow name="Queries">
					<Questions of={of} />
				</Narrow>
			</div>
			{rows === null ? (
				<div class="empty">{of.error ? "" : "Loading…"}</div>
			) : rows.length === 0 ? (
				<div class="empty">No line of this file has a cost.</div>
			) : (
				<Listing
					rows={rows}
					unit={props.element.unit}
					diff={props.element.flamebearer.format === "double"}
					line={line}
					begin={JSON.stringify([props.fn, line, props.params.get("build"), lines !== null, of.file.file?.path])}
					url={of.link}
					label={`Lines of ${place.file}`}
					handle={handle}
				/>
			)}
		</div>
	);
}

export function SourceView(props: SourceProps) {
	const of = useSource(props);
	const onKey = (e: KeyboardEvent) => {
		if (e.key === "Escape" && !e.defaultPrevented) close(props);
	};
	return (
		<div class="source" onKeyDown={onKey}>
			<Head props={props} of={of} />
			{of.error && <QueryError error={of.error} sent={of.sent} />}
			{of.place ? (
				<File key={of.place.file} props={props} of={of} place={of.place} />
			) : (
				<div class="empty">
					{of.places
						? "No source file for this function. For native code, add debug data: see the page Symbols."
						: of.error
							? ""
							: "Loading…"}
				</div>
			)}
		</div>
	);
}
