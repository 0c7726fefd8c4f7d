/*
 * The state of one decoding, shared by the files of this room. Private to proto/jfr.
 *
 * A chunk is read in this order: header, metadata (classes), checkpoints (constants), settings,
 * events. Only the constants that events need are decoded, when the first of them asks.
 */
#ifndef PROTO_JFR_DECODER_H
#define PROTO_JFR_DECODER_H

#include "base/map.h"
#include "proto/jfr/jfr.h"

#define JFR_NONE UINT32_MAX
#define JFR_NESTING_MAX 8 /* of values in values, and of references from text to text */

/* What a class is to us. Roles from ROLE_EVENT on are events. */
enum jfr_role {
	ROLE_NONE,
	ROLE_STRING, /* java.lang.String */
	ROLE_TEXT, /* a class that is known by one text: a symbol, a state, a class */
	ROLE_METHOD,
	ROLE_TRACE,
	ROLE_FRAME,
	ROLE_SETTING,
	ROLE_EVENT,
	ROLE_EXECUTION = ROLE_EVENT,
	ROLE_CPU_TIME,
	ROLE_CPU_LOST,
	ROLE_WALL,
	ROLE_IN_TLAB,
	ROLE_OUT_TLAB,
	ROLE_ALLOC_SAMPLE,
	ROLE_MONITOR,
	ROLE_PARK,
	ROLE_LIVE,
	ROLE_OLD,
	ROLE_MALLOC,
	ROLES
};

/* The places of the fields that we read, by role. */
enum { TEXT_TEXT };
enum { METHOD_TYPE, METHOD_NAME };
enum { TRACE_TRUNCATED, TRACE_FRAMES };
enum { FRAME_METHOD, FRAME_LINE, FRAME_TYPE };
enum { SETTING_ID, SETTING_NAME, SETTING_VALUE };
enum {
	EVENT_STACK,
	EVENT_STATE,
	EVENT_CONTEXT,
	EVENT_SPAN,
	EVENT_SPAN_NAME,
	EVENT_TRACE_HIGH,
	EVENT_TRACE_LOW,
	EVENT_VALUE,
	EVENT_START,
	SLOTS
};

/* Finds items by id; each begins with its uint64_t id. If two have one id, the first is found. */
struct jfr_index {
	const char *items;
	size_t size;
	uint32_t *slots; /* item + 1; 0: free */
	uint64_t mask, seed;
	bool direct; /* slots by id */
};

enum jfr_kind {
	KIND_UNKNOWN, /* of a class that the metadata do not have */
	KIND_LONG,
	KIND_INT,
	KIND_SHORT,
	KIND_CHAR,
	KIND_REF, /* the id of a constant */
	KIND_BYTE, /* from here on: not a varint */
	KIND_BOOLEAN,
	KIND_FLOAT,
	KIND_DOUBLE,
	KIND_STRING,
	KIND_STRUCT,
};

struct jfr_field {
	struct str name;
	uint64_t class_id;
	uint32_t class; /* index; JFR_NONE: the metadata do not have it */
	enum jfr_kind kind;
	bool pool, array;
	struct str timespan; /* "TICKS", "MILLISECONDS"; empty: not annotated */
};

struct jfr_entry {
	uint64_t id;
	uint32_t at; /* in the body */
	uint32_t memo; /* what it was decoded to, + 1 */
};

struct jfr_class {
	uint64_t id;
	struct str name;
	uint32_t field_first, field_n;
	bool varints; /* all fields are */
	enum jfr_role role;
	uint32_t field_of[SLOTS]; /* index of all fields; JFR_NONE */
	struct jfr_entry *entries; /* constants, if the role needs them */
	uint32_t entries_n, entries_cap;
	struct jfr_index index; /* of entries */
};

struct jfr_value {
	uint64_t n; /* a number, an id, the length of an array or of a string in characters */
	struct str bytes; /* of a string as encoded; of an array's items */
	unsigned char encoding; /* of a string */
};

struct jfr_chunk {
	struct jfr_decoder *d;
	uint32_t number; /* from 1 */
	uint32_t at, end, body; /* in the body of the request; body: behind the header */
	uint32_t checkpoint_at, metadata_at;
	uint64_t start_ns, duration_ns, ticks_per_s;
	struct str *strings; /* of the metadata */
	uint32_t strings_n;
	struct jfr_class *classes;
	uint32_t classes_n, classes_cap;
	struct jfr_field *fields;
	uint32_t fields_n, fields_cap;
	unsigned char *slots; /* of each field: its place in its class's field_of; SLOTS: none */
	struct jfr_index by_id; /* of classes */
	uint32_t string_class; /* JFR_NONE */
	bool is_cut; /* the body ends before the chunk does */
	const char *why; /* a value could not be read; NULL: the bytes end too early */
};

enum jfr_origin { ORIGIN_JAVA, ORIGIN_NATIVE, ORIGIN_KERNEL };

struct jfr_function {
	uint32_t name, library; /* names; 0: none */
};

/* Without padding, as jfr_function: hashed and compared as bytes. */
struct jfr_frame {
	uint32_t function;
	enum jfr_origin origin;
	int64_t line;
};

struct jfr_stack {
	uint32_t first, n; /* of decoder.stack_frames */
	bool is_cut; /* by the limit, at the root */
};

struct jfr_label {
	uint32_t key, value; /* names */
};

struct jfr_label_set {
	uint32_t first, n; /* of decoder.labels, by key */
};

/* What an event counts: one or two columns of a profile. Those of one profile are neighbours. */
enum jfr_cost {
	COST_EXECUTION, /* it is the cpu of recordings without samples of CPU time */
	COST_CPU,
	COST_WALL,
	COST_IN_TLAB,
	COST_OUT_TLAB,
	COST_ALLOC_SAMPLE,
	COST_MALLOC,
	COST_LIVE,
	COST_OLD,
	COST_MUTEX,
	COST_BLOCK,
	COSTS
};

enum jfr_kind_of_profile {
	PROFILE_CPU,
	PROFILE_WALL,
	PROFILE_MEMORY,
	PROFILE_MUTEX,
	PROFILE_BLOCK,
	PROFILES
};

#define JFR_COLUMNS_MAX (2 * (COST_OLD - COST_IN_TLAB + 1)) /* of one profile */

/* Without padding: hashed and compared as bytes. */
struct jfr_row_key {
	uint32_t profile, stack, labels, span_name; /* labels: a set; span_name: a name */
	uint64_t span, trace_high, trace_low;
};

struct jfr_row {
	struct jfr_row_key key;
	int64_t values[JFR_COLUMNS_MAX]; /* two of each cost */
};

/* An old object of the last dump so far. */
struct jfr_old {
	struct jfr_row_key key;
	int64_t bytes; /* below 0: not known */
	bool truncated, without_stack;
};

/* A string or a context of the snapshot: its message's bytes until it is needed. */
struct jfr_snapshot_item {
	uint64_t id;
	struct str bytes;
	uint32_t memo; /* name or label set, + 1 */
	bool lossy; /* a context: some of its strings are not there */
};

/* Items that are alike are kept once: an array in `work`, and a map from contents to index. */
struct jfr_decoder {
	struct arena *a;
	struct arena work; /* until the end of the decoding */
	struct arena chunk_arena; /* until the end of the chunk */
	const struct jfr_limits *limits;
	const struct jfr_options *options;
	struct str raw;
	struct err *err;
	uint64_t seed;
	struct buf scratch;

	struct str *names; /* names[0] is empty */
	uint32_t names_n, names_cap;
	struct map names_map;
	size_t text_bytes; /* read so far */
	struct jfr_function *functions;
	uint32_t functions_n, functions_cap;
	struct map functions_map;
	struct jfr_frame *frames;
	uint32_t frames_n, frames_cap;
	struct map frames_map;
	uint32_t *stack_frames;
	uint32_t stack_frames_n, stack_frames_cap;
	struct jfr_stack *stacks;
	uint32_t stacks_n, stacks_cap;
	struct map stacks_map;
	struct jfr_row *rows;
	uint32_t rows_n, rows_cap;
	struct map rows_map;
	uint32_t unknown_stack; /* JFR_NONE until it is needed */

	struct jfr_snapshot_item *contexts, *strings;
	struct jfr_index contexts_by_id, strings_by_id;
	struct jfr_label *labels;
	uint32_t labels_n, labels_cap;
	struct jfr_label_set *label_sets; /* label_sets[0] is empty */
	uint32_t label_sets_n, label_sets_cap;
	struct map label_sets_map;

	/* Settings; a later chunk keeps what it does not name. 0: not known. */
	uint64_t period_ns, interval_ns, wall_ns;
	bool event_is_wall, event_is_timed, has_cpu_time;

	struct jfr_old *old;
	uint32_t old_n, old_cap;
	uint32_t old_chunk; /* of the dump: its chunk, and its time in that */
	int64_t old_start;

	struct jfr_profile counts[PROFILES];
	uint64_t events[COSTS];
	bool has_second[COSTS]; /* the recording says it of some event */
	int64_t periods[COSTS]; /* the first one used; of cpu the least */
	int64_t start_ns, end_ns;
	struct jfr_file file; /* but its profiles */
};

/* index.c */
MUST_CHECK enum err_code jfr_index_init(struct jfr_index *j, struct jfr_decoder *d, struct arena *a,
	const void *items, size_t size, uint32_t n);
uint32_t jfr_index_find(const struct jfr_index *j, uint64_t id); /* JFR_NONE */

/* value.c: reading. A failure sets c->bad; jfr_value_fail says why, `at` in the body. */
uint64_t jfr_varint_slow(struct cursor *c);
static inline uint64_t jfr_varint(struct cursor *c)
{
	if (__builtin_expect(c->at < c->end && *c->at < 0x80, 1))
		return *c->at++;
	return jfr_varint_slow(c);
}
void jfr_string(struct cursor *c, struct jfr_value *v);
/* Reads an object. values: by slot, or NULL, and then it is skipped. */
bool jfr_object(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_class *class,
	struct jfr_value *values);
/* The same of an array's items, and of constants, which may be plain strings. */
bool jfr_constant(struct jfr_chunk *c, struct cursor *cursor, const struct jfr_class *class,
	struct jfr_value *values);
uint32_t jfr_offset(const struct jfr_decoder *d, const struct cursor *c);
struct cursor jfr_cursor(const struct jfr_decoder *d, uint32_t at, uint32_t end);
MUST_CHECK enum err_code jfr_value_fail(struct jfr_chunk *c, uint32_t at, const char *what);
/* The number in a slot; false: the class has no such field, or it is no whole number. */
bool jfr_number(const struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, unsigned slot, int64_t *out);

/* metadata.c */
MUST_CHECK enum err_code jfr_metadata(struct jfr_chunk *c);
/* roles.c: sets roles, field_of and slots of all classes. */
MUST_CHECK enum err_code jfr_roles(struct jfr_chunk *c);

/* pool.c */
MUST_CHECK enum err_code jfr_checkpoint(struct jfr_chunk *c, struct cursor cursor);
MUST_CHECK enum err_code jfr_pools_finish(struct jfr_chunk *c); /* all checkpoints are read */
/* Finds a constant by a reference in a slot; NULL: the chunk does not have it. */
struct jfr_entry *jfr_find(const struct jfr_chunk *c, const struct jfr_class *class, unsigned slot,
	const struct jfr_value *values);
/* The text in a slot, through references. Empty if there is none; lives as long as the chunk. */
MUST_CHECK enum err_code jfr_text(struct jfr_chunk *c, const struct jfr_class *class, unsigned slot,
	const struct jfr_value *values, struct str *out);

/* names.c: appends a class or a library without what differs from run to run. */
void jfr_add_class_name(struct buf *out, struct str name);

/* stacks.c */
MUST_CHECK enum err_code jfr_name(struct jfr_decoder *d, struct str s, uint32_t *out);
/* The stack of an event. *truncated: the recorder cut it; *unknown: there is none. */
MUST_CHECK enum err_code jfr_stack_of(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, uint32_t *out, bool *truncated, bool *unknown);

/* labels.c */
MUST_CHECK enum err_code jfr_labels_open(struct jfr_decoder *d);
/* The label set of a context; *lost: some of it is not in the snapshot. */
MUST_CHECK enum err_code jfr_context(
	struct jfr_decoder *d, uint64_t context, uint32_t *label_set, bool *lost);
/* A string of the snapshot as a name; 0: it is empty or not there. */
MUST_CHECK enum err_code jfr_snapshot_name(struct jfr_decoder *d, uint64_t id, uint32_t *out);

/* events.c */
MUST_CHECK enum err_code jfr_events(struct jfr_chunk *c);
/* After the last chunk. */
MUST_CHECK enum err_code jfr_events_finish(struct jfr_decoder *d);

/* rows.c */
/*
 * Counts an event. Sets key->profile. value: of the second column, if the cost has two; below 0:
 * the event does not say.
 */
MUST_CHECK enum err_code jfr_row_add(struct jfr_decoder *d, struct jfr_row_key *key,
	enum jfr_cost cost, int64_t count, int64_t value);
enum jfr_kind_of_profile jfr_profile_of(enum jfr_cost cost);
MUST_CHECK enum err_code jfr_rows_finish(struct jfr_decoder *d, struct jfr_file *file);

#endif
