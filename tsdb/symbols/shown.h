/*
 * Functions of a partition by the names that people see. Several functions may be shown as one:
 * those of C++ that differ in their parameters, or a file's own functions of one name. Such
 * functions are alike. The first of them is their representative: costs by name are added to it. A
 * function that is shown like no other is its own representative.
 *
 * All of this is kept with the partition from the first query that wants it. A location has a code:
 * what it adds its costs to. It is found once, for all queries.
 *
 * Errors:    ERR_NOMEM.
 * Ownership: the partition's.
 * Threads:   any. Answers know the functions that were there when shown_of returned, and may know
 *            later ones.
 */
#ifndef TSDB_SYMBOLS_SHOWN_H
#define TSDB_SYMBOLS_SHOWN_H

#include "base/err.h"
#include "tsdb/symbols/symbols.h"

struct shown_names;

/* Knows all functions that are in the partition now. Of one that a query made: those of its base.
 */
MUST_CHECK enum err_code shown_of(
	const struct partition *p, struct shown_names **out, struct err *err);
void shown_close(struct shown_names *s); /* NULL is fine */
size_t shown_bytes(const struct partition *p); /* memory of it */

/* Its representative. SYM_NONE: the function is not there. */
uint32_t shown_function(const struct shown_names *s, uint32_t function);
/* No other function is shown like this one. */
bool shown_is_alone(const struct shown_names *s, uint32_t function);

/* ---- strings ---- */

#define SHOWN_SEVERAL (UINT32_MAX - 1) /* functions of this name are shown under several names */

/*
 * The representative of the functions whose stored name is the string, SYM_NONE if none has it.
 * names: n strings, `stride` bytes apart.
 */
MUST_CHECK enum err_code shown_functions_named(const struct partition *p, struct shown_names *s,
	const uint32_t *names, size_t stride, size_t n, uint32_t *out, struct err *err);
/* The text that functions of this stored name are shown as, if it was asked for above. */
struct str sym_shown_string(const struct partition *p, uint32_t string);

/* ---- codes of locations ---- */

#define SHOWN_ONE 1u /* a code is the function << 1 | SHOWN_ONE, or the number of a list << 1 */
#define SHOWN_CODE_SHIFT 1u
#define SHOWN_LINES_MAX 64u /* of a list */

/* By location: 0 is not known. More locations take another array; this one stays until released. */
struct shown_codes {
	_Atomic uint32_t refs;
	uint32_t n;
	_Atomic uint32_t v[];
};

/* Of so many locations. Functions in codes are those of shown_function. */
MUST_CHECK enum err_code shown_codes_hold(
	struct shown_names *s, uint32_t locations_n, struct shown_codes **out, struct err *err);
void shown_codes_release(struct shown_codes *c); /* NULL is fine */
/*
 * Finds the code of a location whose code is 0. *out 0: it has none, since a frame of it has no
 * name, or no function.
 */
MUST_CHECK enum err_code shown_codes_find(struct shown_names *s, struct shown_codes *c,
	const struct partition *p, uint32_t location, uint32_t *out, struct err *err);
/* A list: the number of frames, then the function of each, innermost first. */
const uint32_t *shown_list(const struct shown_names *s, uint32_t code);

#endif
