/*
 * A profile in a file of whatever format: pprof, the formats before it, folded stacks, speedscope,
 * a recording of Java. The bytes say which it is; names of files do not.
 *
 * Any of them may be in gzip, zstd or lz4, up to 128 MiB inflated. Text that is neither JSON nor a
 * format before pprof is folded stacks.
 *
 * Units:     as pprof.h.
 * Errors:    those of the format's decoder; ERR_INVALID for bytes of no known format, which names
 *            all that are.
 * Ownership: all is in the arena given; profiles may point into the body, which must outlive them.
 * Threads:   any number, each with its own arena.
 */
#ifndef PROTO_ANY_ANY_H
#define PROTO_ANY_ANY_H

#include "proto/kinds.h"

#define ANY_NOTES_MAX 3u

enum any_format { ANY_PPROF, ANY_LEGACY, ANY_FOLDED, ANY_SPEEDSCOPE, ANY_JFR, ANY_FORMATS };

struct any_profile {
	/* As it would be scraped under: "process_cpu"; else the name of its first type that has one. */
	struct str name;
	bool is_named; /* else the name is that of a type */
	const struct pprof *pprof; /* with a type at least */
	const enum value_kind *kinds; /* of its columns: a level, or else costs that add up */
	bool has_kinds; /* the format says them; else they are by name and type */
};

struct any_file {
	enum any_format format;
	struct any_profile *v; /* of JFR: one for each kind of event; else one */
	uint32_t n; /* above 0 */
	struct str notes[ANY_NOTES_MAX]; /* what is left out of it: whole sentences for its reader */
	uint32_t notes_n;
};

const char *any_format_name(enum any_format f); /* "pprof", "folded stacks", "JFR" ... */

/* The one that is meant where only one can be: the CPU profile, else the first. */
const struct any_profile *any_default(const struct any_file *f);

/* file_name: tells block and mutex profiles apart, which look the same; may be empty. */
MUST_CHECK enum err_code any_decode(
	struct arena *a, struct str body, struct str file_name, struct any_file *out, struct err *err);

/*
 * The name under which such a profile is scraped: process_cpu, memory, goroutine ... Block and
 * mutex profiles look the same: the name of the file decides if it has one of these words. Empty:
 * unknown.
 */
struct str any_name_guess(const struct pprof *p, struct str file_name);

#endif
