/*
 * Stacks by name, as senders of Pyroscope's /ingest give them, become a struct pprof.
 *
 *	folded      "main;run;read 12" a line: root first, then how much
 *	lines       "main;run;read" a line: each counts 1
 *	trie, tree  Pyroscope's binary forms (nodes.c)
 *	speedscope  its JSON (speedscope.c)
 *
 * Before the value are spaces or tabs. A text may begin with a byte order mark, and its lines may
 * end in CRLF.
 *
 * A stack that comes twice is one sample with the sum. A frame is a function with a name; in
 * speedscope also with a file and a line. No frame has an address. Empty frames ("a;;b") are left
 * out, and so are stacks of value 0.
 *
 * Stricter than Pyroscope, which skips what it does not understand: a line without a value, a
 * negative one, a body that ends too early or goes on after its end are refused.
 *
 * Units:     values are multiplied by `scale`; times as pprof.h.
 * Errors:    ERR_INVALID (what, in which line or at which byte), ERR_LIMIT (names the limit),
 *            ERR_UNSUPPORTED (a speedscope file of another schema), ERR_NOMEM.
 * Ownership: all in the arena given; nothing points into the body.
 * Threads:   any number, each with its own arena.
 * Source:    Pyroscope's API (grafana.com/docs/pyroscope, "Server HTTP API"), pkg/og/convert of
 *            its sources; www.speedscope.app/file-format-schema.json.
 */
#ifndef PROTO_FOLDED_FOLDED_H
#define PROTO_FOLDED_FOLDED_H

#include "proto/pprof.h"

#define FOLDED_NAME_BYTES_MAX 16384u
#define FOLDED_PROFILES_MAX 1000u /* in a speedscope file */

enum folded_format {
	FOLDED_STACKS,
	FOLDED_LINES,
	FOLDED_TRIE,
	FOLDED_TREE,
	FOLDED_SPEEDSCOPE,
};

/*
 * The format of a request, by its parameter `format` and its Content-Type, as Pyroscope decides:
 * what names no other format is FOLDED_STACKS. Asked after pprof, jfr and multipart bodies.
 */
enum folded_format folded_format_of(struct str format, struct str content_type);

bool speedscope_recognized(struct str raw); /* a text that is JSON; inflated */

/* What the values are. */
struct folded_meaning {
	struct str type, unit;
	struct str period_type, period_unit; /* empty: none */
	int64_t period;
	int64_t scale; /* above 0; samples at 100 Hz become nanoseconds with 10,000,000 */
	int64_t time_nanos, duration_nanos;
};

/* One of a body: all formats but speedscope give one, without name. */
struct folded_profile {
	struct str name; /* in a speedscope file: mostly of a thread */
	struct pprof *profile;
};

/*
 * In a speedscope file each profile has a unit of its own: of times values become nanoseconds, of
 * bytes bytes; these have that unit and are not scaled. Only those of unit "none" are as `meaning`
 * says. Fractions are rounded so that the sum of a profile is right.
 */
MUST_CHECK enum err_code folded_decode(struct arena *a, enum folded_format format, struct str raw,
	const struct folded_meaning *meaning, const struct pprof_limits *limits,
	struct folded_profile **out, uint32_t *n, struct err *err);

#endif
