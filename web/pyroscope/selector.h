/*
 * Pyroscope's selectors, `<type id>{k="v"}`, `{__profile_type__="<type id>", k="v"}` and `{}`, as
 * our selectors.
 *
 * service_name is the job of series that have none, as LABEL_SERVICE is.
 *
 * An id has five parts and means our types of five and of six parts; with ":delta" behind it only
 * those of six. Aliases of our language (cpu, heap) work here too.
 *
 * Errors:    ERR_INVALID: "<the text>: <what is wrong>".
 * Ownership: in the arena but for compiled regexes: pyroscope_selector_release before the arena.
 * Threads:   values.
 */
#ifndef WEB_PYROSCOPE_SELECTOR_H
#define WEB_PYROSCOPE_SELECTOR_H

#include "promql/syntax/parse.h"

struct profile_type; /* tsdb/symbols/profile_type.h */

#define PYROSCOPE_TYPE_LABEL "__profile_type__"
#define PYROSCOPE_TYPES_MAX 4u /* that one selector may name */

struct pyroscope_type {
	struct str name; /* of the profile: the id's first part */
	struct str id; /* five parts */
	bool delta_only;
};

struct pyroscope_selector {
	struct parsed *parsed; /* NULL: no matchers */
	struct matcher *matchers; /* except those on the type */
	size_t matchers_n;
	struct pyroscope_type types[PYROSCOPE_TYPES_MAX]; /* all of them must fit */
	size_t types_n;
};

/* The label that our language has for one of Pyroscope's: LABEL_SERVICE for service_name. */
struct str pyroscope_label(struct str name);

/* type_id may be empty. */
MUST_CHECK enum err_code pyroscope_selector_read(struct arena *a, struct str type_id,
	struct str text, struct pyroscope_selector *out, struct err *err);
void pyroscope_selector_release(struct pyroscope_selector *s);

/* As a selector of our language that selects the columns of the type. */
void pyroscope_selector_print(struct buf *out, const struct pyroscope_selector *s);
/* True if the selector means the type, or names none. */
bool pyroscope_selector_fits(const struct pyroscope_selector *s, const struct profile_type *t);
/* The five parts of a type's name, which are its id. */
void pyroscope_type_print(struct buf *out, const struct profile_type *t);

#endif
