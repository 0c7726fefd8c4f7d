/*
 * Java Flight Recorder: a recording becomes pprof profiles, named and weighed as Pyroscope does.
 *
 * Recordings of the JDK (9 and later) and of async-profiler are read, as its agents send them.
 * Each kind of event that is a profile gives one or two columns of one; README.md has their
 * table. All else in a recording is skipped and counted. What events, stacks and methods look like
 * is read from the recording's own metadata, by the names of fields.
 *
 * Samples:   events of the same stack, labels and span are one sample. A stack that the recording
 *            does not have is the frame "[unknown]", and so is a method.
 * Names:     "java/util/ArrayList.add"; "libc.so.6.read" of native code, whose mapping is the
 *            library; kernel functions by themselves, with the mapping "[kernel.kallsyms]".
 *            What the JVM numbers anew in each run becomes "_": "Work$$Lambda_.run".
 * Weight:    cpu and wall are counts times the interval that the recording names; the caller's
 *            rate counts only if it names none.
 * Units:     times in nanoseconds since 1970; delays in nanoseconds; sizes in bytes.
 * Cut short: of a recording whose last chunk is cut off or unfinished the chunks before it are
 *            read; cut_bytes says how much is left out.
 * Errors:    a recording that is damaged, without a whole chunk or beyond a limit gives nothing:
 *            ERR_INVALID, ERR_UNSUPPORTED (before JDK 9, integers not compressed), ERR_LIMIT,
 *            ERR_NOMEM. Messages name the chunk and the place in the body.
 * Ownership: all is in the arena given; nothing points into the recording or the labels.
 * Threads:   a decoding belongs to one thread. A finished file is immutable.
 * Source:    the JDK's jdk.jfr module; async-profiler's flightRecorder.cpp; Grafana's jfr-parser
 *            for names and weights; jfr_labels.proto of pyroscope-java.
 */
#ifndef PROTO_JFR_JFR_H
#define PROTO_JFR_JFR_H

#include "proto/kinds.h"
#include "proto/pprof.h"

struct jfr_profile {
	const char *name; /* "process_cpu", "wall", "memory", "mutex", "block"; each once */
	struct pprof *pprof; /* with the columns that the recording has */
	enum value_kind *kinds; /* of its columns: live and old objects are gauges, else deltas */
	uint64_t events; /* that the samples are made of */
	uint64_t truncated; /* of them: the recorder cut the stack */
	uint64_t without_stack; /* of them: the recording has no such stack, or the event has none */
};

struct jfr_file {
	struct jfr_profile *profiles;
	uint32_t profiles_n;
	uint32_t chunks_n;
	uint64_t cut_bytes; /* behind the last whole chunk: the recording is cut short */
	uint64_t events_n; /* of all types */
	uint64_t sleeping_n; /* ExecutionSamples of sleeping threads, which are no cpu */
	uint64_t samples_lost_n; /* of CPU time: the recorder had no room; not in the sums */
	uint64_t frames_lost_n; /* of distinct stacks: the recording does not have their method */
	struct str warning; /* the samples lost, in words; empty: none */
	uint64_t labels_lost_n; /* events whose context, or part of it, the snapshot does not have */
};

struct jfr_limits {
	size_t raw_bytes_max; /* of the recording, inflated; at most 4 GiB */
	uint32_t chunks_max;
	uint32_t events_max; /* of the file */
	uint32_t elements_max; /* of a chunk's classes, fields, strings, constants, each; of labels */
	uint32_t samples_max; /* of all profiles */
	uint32_t frames_max; /* of all stacks, and of all samples of a profile */
	uint32_t stack_depth_max;
	uint32_t string_bytes_max; /* of a name */
	size_t text_bytes_max; /* of constants read for their texts, together; some more than once */
	uint32_t labels_max; /* of one context */
	size_t arena_bytes_max; /* for the caller's arena, and for what is freed at the end */
};

/*
 * 128 MiB, 1024 chunks, 16 M events, 4 M elements, 1 M samples, 16 M frames, 4096 deep, 64 KiB,
 * 256 MiB, 128 labels, 1 GiB.
 */
extern const struct jfr_limits jfr_limits_default;

struct jfr_options {
	const struct jfr_limits *limits;
	uint32_t sample_rate_hz; /* of cpu and wall, if the recording names no interval; not 0 */
	struct str labels; /* LabelsSnapshot, inflated: what contexts mean; may be empty */
	bool with_spans; /* span_name, profile_id, trace_id as labels, as Pyroscope */
};

/* Whether the bytes begin as a recording does. */
bool jfr_recognized(struct str raw);

MUST_CHECK enum err_code jfr_decode(struct arena *a, struct str raw,
	const struct jfr_options *options, struct jfr_file **out, struct err *err);

#endif
