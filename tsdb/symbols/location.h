/*
 * Location as a partition holds it: 24 bytes with its line, where most have one. A struct
 * sym_location and a line beside it took 40, and a second cache line for each reader.
 *
 * What does not fit is held elsewhere: several lines in an array of their own; an address of more
 * than 48 bits (with sign: the kernel's fit, and SYM_NO_ADDRESS) or a mapping of a high id as a
 * whole struct sym_location.
 *
 * Ownership: arrays and whole locations are the caller's, and outlive the packed one.
 * Threads:   a packed location does not change.
 */
#ifndef TSDB_SYMBOLS_LOCATION_H
#define TSDB_SYMBOLS_LOCATION_H

#include "tsdb/symbols/symbols.h"

#define LOCATION_ADDRESS_BITS 48
#define LOCATION_MAPPING_NONE ((1u << 13) - 1)

enum location_form {
	LOCATION_BARE, /* also a hole: all bytes are 0 */
	LOCATION_ONE, /* line */
	LOCATION_MANY, /* many */
	LOCATION_WHOLE, /* whole, and nothing else */
};

struct location_many {
	uint32_t n;
	struct sym_line v[];
};

struct packed_location {
	int64_t address : LOCATION_ADDRESS_BITS;
	uint64_t mapping : 13;
	uint64_t form : 2;
	uint64_t is_folded : 1;
	union {
		struct sym_line line;
		const struct location_many *many;
		const struct sym_location *whole;
	};
};
_Static_assert(sizeof(struct packed_location) == 24, "bits of an int64_t, and a line");

/* The form that it takes; form ONE needs nothing else than l. */
static inline enum location_form location_form_of(const struct sym_location *l)
{
	int64_t address = (int64_t)(l->address << (64 - LOCATION_ADDRESS_BITS)) >>
		(64 - LOCATION_ADDRESS_BITS);

	if ((uint64_t)address != l->address ||
		(l->mapping != SYM_NONE && l->mapping >= LOCATION_MAPPING_NONE))
		return LOCATION_WHOLE;
	return l->lines_n > 1 ? LOCATION_MANY : l->lines_n ? LOCATION_ONE : LOCATION_BARE;
}

/* Without many and whole. */
static inline struct packed_location location_pack(const struct sym_location *l)
{
	struct packed_location p = { .form = location_form_of(l) };

	if (p.form == LOCATION_WHOLE)
		return p;
	p.address = (int64_t)(l->address << (64 - LOCATION_ADDRESS_BITS)) >>
		(64 - LOCATION_ADDRESS_BITS);
	p.mapping = l->mapping == SYM_NONE ? LOCATION_MAPPING_NONE : l->mapping;
	p.is_folded = l->is_folded;
	if (p.form == LOCATION_ONE)
		p.line = *l->lines;
	return p;
}

/* The lines stay where p has them. */
static inline struct sym_location location_unpack(const struct packed_location *p)
{
	struct sym_location l = { .address = (uint64_t)p->address,
		.mapping = p->mapping == LOCATION_MAPPING_NONE ? SYM_NONE : (uint32_t)p->mapping,
		.is_folded = p->is_folded };

	switch ((enum location_form)p->form) {
	case LOCATION_BARE:
	case LOCATION_ONE:
		l.lines_n = p->form;
		l.lines = &p->line;
		break;
	case LOCATION_MANY:
		l.lines_n = p->many->n & INT32_MAX;
		l.lines = p->many->v;
		break;
	case LOCATION_WHOLE:
		return *p->whole;
	}
	return l;
}

#endif
