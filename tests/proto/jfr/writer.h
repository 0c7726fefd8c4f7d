/*
 * Writes recordings for tests: chunks of any classes, constants and events.
 *
 * Nothing is checked, so that wrong recordings can be written too. Events are appended to
 * `events` between writer_begin and writer_end; writer_chunk puts metadata and header around them.
 */
#ifndef TESTS_PROTO_JFR_WRITER_H
#define TESTS_PROTO_JFR_WRITER_H

#include "base/str.h"

struct writer {
	struct buf events; /* of the chunk to come */
	struct buf out; /* finished chunks */
	size_t event_at;
	/*
	 * Classes, one a line: "id name field:class ...". After a field's class: "p" a reference to a
	 * constant, "a" an array, "@UNIT" its jdk.jfr.Timespan.
	 */
	const char *schema;
	uint64_t ticks_per_s;
	uint32_t version, flags;
	bool without_checkpoint; /* the header says that there is none */
};

/* The classes that recorders have, and all events that are profiles. */
extern const char writer_schema[];
enum {
	W_LONG = 2,
	W_INT,
	W_STRING = 7,
	W_SYMBOL = 20,
	W_CLASS,
	W_METHOD,
	W_TRACE,
	W_FRAME,
	W_FRAME_TYPE,
	W_STATE,
	W_EXECUTION = 40,
	W_WALL,
	W_IN_TLAB,
	W_OUT_TLAB,
	W_ALLOC_SAMPLE,
	W_MONITOR,
	W_PARK,
	W_LIVE,
	W_MALLOC,
	W_SETTING,
	W_OTHER,
	W_OLD,
	W_CPU_TIME,
	W_CPU_LOST,
};

void writer_init(struct writer *w);
void writer_release(struct writer *w);

void writer_number(struct writer *w, uint64_t v);
void writer_numbers(struct writer *w, const char *list); /* "1 2 0x30" */
void writer_bytes(struct writer *w, const void *p, size_t n);
void writer_text(struct writer *w, const char *s); /* UTF-8 */

void writer_begin(struct writer *w, uint64_t type);
void writer_end(struct writer *w);
/* An event whose fields are all numbers. */
void writer_event(struct writer *w, uint64_t type, const char *list);
void writer_checkpoint(struct writer *w, uint64_t pools); /* begins one */
void writer_setting(struct writer *w, uint64_t id, const char *name, const char *value);
/*
 * A checkpoint with states 1 STATE_RUNNABLE, 2 STATE_SLEEPING; frame types 1 Interpreted, 2
 * Native, 3 Kernel, 4 C++; symbols, classes and methods 1 a/B.c, 2 libx.so.f, 3 k; stacks 1 c,
 * 2 f c, 3 k f c (cut), 4 empty.
 */
void writer_usual(struct writer *w);

/* Finishes the chunk. */
void writer_chunk(struct writer *w);

#endif
