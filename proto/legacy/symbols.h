/*
 * Names for addresses, by the symbol protocol of pprof servers: POST /pprof/symbol (or
 * /debug/pprof/symbol) with addresses, answered by a name for each that is known.
 *
 *	0x401000+0x402000              request
 *	num_symbols: 1                 answer; other lines are skipped
 *	0x401000	main.f
 *
 * A caller takes the addresses of a profile, asks for those that its cache lacks, in batches,
 * reads the answers, and applies the names.
 *
 * Go's texts (?debug=1) bring most names themselves, as comments that google/pprof does not read:
 *
 *	#	0x401000	main.f+0x20	/src/main.go:12
 *
 * Errors:    ERR_LIMIT (names the limit), ERR_INVALID (an address of more than 64 bits), ERR_NOMEM.
 * Ownership: arrays and names live in the arena given; an answer's bytes may go.
 * Threads:   any number, each with its own arena.
 * Source:    google/pprof, internal/symbolz/symbolz.go; Go, runtime/pprof, printStackRecord.
 */
#ifndef PROTO_LEGACY_SYMBOLS_H
#define PROTO_LEGACY_SYMBOLS_H

#include "proto/pprof.h"

#define SYMBOL_NAME_BYTES_MAX 16384u
#define SYMBOLS_MAX 1000000u

struct symbol {
	uint64_t address;
	struct str name, file; /* file: empty where it is not known */
	int64_t line;
	uint32_t order; /* in which it came */
};

struct symbols {
	struct symbol *v; /* by address, each once, after symbols_sort */
	uint32_t n, cap;
};

/*
 * The addresses of p that have no line, ascending, each once; not those of the kernel's mappings
 * ("[vdso]", "linux-vdso.so"). An address is as in the profile: that of a caller is in its call.
 */
MUST_CHECK enum err_code symbols_wanted(
	struct arena *a, const struct pprof *p, uint64_t **addresses, uint32_t *n, struct err *err);

/* Appends the body of a request for n addresses. */
void symbols_request(const uint64_t *addresses, uint32_t n, struct buf *out);

/* Adds the names of an answer. "??" is none; a line without its end is cut off, and left out. */
MUST_CHECK enum err_code symbols_read(
	struct arena *a, struct str answer, struct symbols *s, struct err *err);

/* Adds the names in the comments of one of Go's texts; what is no such comment is skipped. */
MUST_CHECK enum err_code symbols_read_comments(
	struct arena *a, struct str text, struct symbols *s, struct err *err);

/* Sorts; of an address given twice the last name stays. symbols_apply and symbols_find need it. */
void symbols_sort(struct symbols *s);
const struct symbol *symbols_find(const struct symbols *s, uint64_t address);

/*
 * *out is p with a line for each location without one whose address has a name; a mapping that
 * got a name has functions then. Shares all else with p, which stays as it is. p itself if no name
 * fits.
 */
MUST_CHECK enum err_code symbols_apply(struct arena *a, const struct pprof *p,
	const struct symbols *s, const struct pprof **out, struct err *err);

#endif
