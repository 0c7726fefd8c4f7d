/*
 * Unwinder: from the registers of an interrupted thread and a copy of the top of its stack to the
 * addresses of its callers, by the call frame information that compilers leave in .eh_frame. It
 * needs no frame pointers.
 *
 * It reads the program's own read-only tables and the copy, never the live stack, so it may run
 * later, on another thread. A frame without information, or with its caller beyond the copy, ends
 * the walk.
 *
 * Units:   addresses; at most UNWIND_DEPTH_MAX frames.
 * Threads: unwind_tables_load once per capture; the walk only reads.
 * Source:  DWARF 5 section 6.4, Linux Standard Base core "Exception Frames"; System V ABI AMD64,
 *          figure 3.36.
 */
#ifndef BASE_SELF_UNWIND_H
#define BASE_SELF_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#define UNWIND_DEPTH_MAX 256
#define UNWIND_REGS 17 /* DWARF numbers 0..15 are general registers, 16 is the return address */
#define UNWIND_RSP 7
#define UNWIND_RIP 16
#define UNWIND_OBJECTS_MAX 64

/* A loaded object: the program itself, and in a build with shared libraries those too. */
struct unwind_object {
	uint64_t start, limit; /* executable segments */
	uint64_t bias; /* runtime address minus address in the file */
	uint64_t file_offset; /* of `start` */
	const unsigned char *eh_frame_hdr;
	size_t eh_frame_hdr_len;
	const unsigned char *image_end; /* end of the segment that holds .eh_frame */
	char path[256]; /* "" for the program */
};

struct unwind_tables {
	struct unwind_object objects[UNWIND_OBJECTS_MAX];
	size_t n;
};

struct unwind_context {
	uint64_t regs[UNWIND_REGS];
	uint64_t stack_base; /* address that stack[0] was copied from */
	const unsigned char *stack;
	size_t stack_len;
};

void unwind_tables_load(struct unwind_tables *t);
const struct unwind_object *unwind_object_of(const struct unwind_tables *t, uint64_t pc);
/*
 * Fills pcs, leaf first: pcs[0] is the interrupted instruction, the others are return addresses
 * minus one, so that each lies in the call it belongs to. *context is used up. Gives the number of
 * frames, at least one.
 */
size_t unwind_walk(
	const struct unwind_tables *t, struct unwind_context *context, uint64_t *pcs, size_t max);

#endif
