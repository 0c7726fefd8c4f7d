/*
 * Labels: a set of name-value pairs sorted by name; matchers that pick sets.
 *
 * A label that is missing and one that is empty are the same; a set never holds an empty value.
 * Names are compared as bytes. Reserved: __name__ is the profile's name, other names that begin
 * with "__" are not stored. __service__ can be read of each set: it is service_name, or else job.
 *
 * Ownership: a struct labels points into the arena (or other memory) it was made in.
 * Threads:   immutable once built; share freely.
 * Source:    Prometheus's data model; matchers are anchored, RE2 syntax.
 */
#ifndef BASE_LABELS_H
#define BASE_LABELS_H

#include "base/regex.h"
#include "base/str.h"

struct json;

#define LABEL_NAME "__name__"
#define LABEL_SERVICE "__service__"
#define LABEL_SERVICE_NAME "service_name" /* what LABEL_SERVICE is, */
#define LABEL_SERVICE_ELSE "job" /* and where a set lacks that */

struct label {
	struct str name, value;
};

struct labels {
	const struct label *v; /* ascending by name, names distinct, values not empty */
	size_t n;
};

struct str labels_get(struct labels ls, struct str name); /* the empty string when missing */
bool labels_has(struct labels ls, struct str name);
/* Those of the n names that ls has. The names ascend, out has room for n; returns how many. */
size_t labels_pick(struct labels ls, const struct str *names, size_t n, struct label *out);
bool label_is_service(struct str name); /* indexes have no LABEL_SERVICE: two others make it up */
/* by name, value, pair after pair; shorter first */
int labels_cmp(struct labels a, struct labels b);
bool labels_eq(struct labels a, struct labels b);
bool labels_are_set(struct labels ls); /* as struct labels says; for assertions */
uint64_t labels_hash(struct labels ls); /* stable across runs and machines */
/* {a="b", c="d"} with __name__ in front when present; values quoted as in the query language. */
void labels_print(struct buf *out, struct labels ls);
void labels_write_json(struct json *j, struct labels ls); /* {"a":"b"} */
/* Deep copy: names, values and array in the arena. v is NULL when the arena fails (n is not 0). */
struct labels labels_dup(struct arena *a, struct labels ls);
/* Bytes: varint n, then n x (lenstr name, lenstr value). */
void labels_encode(struct buf *out, struct labels ls);
/* Copies into the arena. ERR_CORRUPT when the bytes are cut short or no set of labels. */
MUST_CHECK enum err_code labels_decode(
	struct arena *a, struct cursor *in, struct labels *out, struct err *err);

bool label_name_valid(struct str name); /* [a-zA-Z_][a-zA-Z0-9_]*: it needs no quotes */
#define LABEL_NAME_RULE "write a-z, A-Z, 0-9 and _, and no digit first" /* for messages */
bool series_name_valid(struct str name); /* the same with colons */
bool any_name_valid(struct str name); /* UTF-8, not empty: as Prometheus 3 has it, in quotes */
bool label_value_valid(struct str value); /* UTF-8 */
/*
 * prefix and then `name` with "_" for each character that label names do not have, whatever its
 * bytes; as Prometheus names what it discovers. ptr NULL: the arena failed.
 */
struct str label_name_sanitized(struct arena *a, const char *prefix, struct str name);

/*
 * Builder: set, delete, read back, then make a sorted set. Setting an empty value deletes. Names
 * and values are not copied; a failed allocation shows at the end.
 */
struct labels_builder {
	struct arena *arena;
	struct label *v; /* ascending by name */
	size_t n, cap;
	bool failed;
};

void labels_builder_init(struct labels_builder *b, struct arena *a, struct labels base);
void labels_builder_set(struct labels_builder *b, struct str name, struct str value);
void labels_builder_del(struct labels_builder *b, struct str name);
struct str labels_builder_get(const struct labels_builder *b, struct str name);
/* The set as it is now; the builder can go on afterwards without changing it. */
MUST_CHECK enum err_code labels_builder_build(
	struct labels_builder *b, struct labels *out, struct err *err);

enum match_op { MATCH_EQ, MATCH_NE, MATCH_RE, MATCH_NRE };

struct matcher {
	enum match_op op;
	struct str name, value;
	struct regex *re; /* MATCH_RE, MATCH_NRE; freed by matcher_release */
};

/*
 * Compiles the regex where there is one. name and value are not copied.
 * ERR_INVALID or ERR_LIMIT (pattern too long).
 */
MUST_CHECK enum err_code matcher_init(
	struct matcher *m, enum match_op op, struct str name, struct str value, struct err *err);
void matcher_release(struct matcher *m);
bool matcher_test(const struct matcher *m, struct str value);
bool matcher_test_labels(const struct matcher *m, struct labels ls);
/*
 * The i-th, ascending, of the values that the matcher names ("a|b", !~ too) and that alone decide;
 * false: there are no more, or it is a pattern.
 */
bool matcher_listed(const struct matcher *m, size_t i, struct str *out);
void matcher_print(struct buf *out, const struct matcher *m); /* name=~"value" */
const char *match_op_name(enum match_op op); /* "=", "!=", "=~", "!~" */

/*
 * What a reader may see: the label sets that all matchers of one of the sets accept. A label that
 * is missing is "". No set at all: the reader sees nothing.
 */
struct matcher_set {
	const struct matcher *m;
	size_t n;
};
struct label_limits {
	const struct matcher_set *sets;
	size_t n;
};
bool label_limits_admit(const struct label_limits *l, struct labels ls); /* NULL: everything */

#endif
