/*
 * The unwinder's halves: finding an address's table entry (unwind_table.c) and running it
 * (unwind_run.c).
 *
 * Threads: pure functions of what they are given.
 */
#ifndef BASE_SELF_UNWIND_INTERNAL_H
#define BASE_SELF_UNWIND_INTERNAL_H

#include "base/self/unwind.h"
#include "base/str.h"

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_reg;
	unsigned char fde_encoding;
	bool signal_frame, augmented;
	struct str program;
};

struct fde {
	struct cie cie;
	uint64_t start, len;
	struct str program;
};

/* n <= 8 bytes, little endian. */
uint64_t unwind_fixed(struct cursor *c, size_t n);
int64_t unwind_sleb(struct cursor *c);
/* A pointer in one of the encodings DW_EH_PE_*; data_base is what "datarel" means here. */
uint64_t unwind_encoded(struct cursor *c, unsigned char encoding, uint64_t data_base);
/* False: the object says nothing about pc, or nothing that can be read. */
bool unwind_find(const struct unwind_object *o, uint64_t pc, struct fde *fde);
/* One frame up: *u becomes the caller's registers. False: this is the outermost frame that can be
 * known. */
bool unwind_step(const struct fde *fde, struct unwind_context *u, uint64_t pc);

#endif
