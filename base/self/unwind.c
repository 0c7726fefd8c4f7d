/*
 * The walk, and the loaded objects. Each read of a table goes through a cursor that ends with its
 * segment; each read of the stack goes to the copy. A broken table gives a short stack, never a
 * fault.
 */
#include <assert.h>
#include <link.h>
#include <stdio.h>

#include "base/self/unwind_internal.h"

size_t unwind_walk(
	const struct unwind_tables *t, struct unwind_context *u, uint64_t *pcs, size_t max)
{
	bool exact = true; /* pc is the instruction itself, not a return address */
	size_t n = 0;

	assert(max > 0);
	for (;;) {
		uint64_t pc = u->regs[UNWIND_RIP] - !exact, sp = u->regs[UNWIND_RSP];
		const struct unwind_object *o = unwind_object_of(t, pc);
		struct fde fde;

		if (!u->regs[UNWIND_RIP] || n == max)
			return n;
		pcs[n++] = pc;
		if (!o || !unwind_find(o, pc, &fde) || !unwind_step(&fde, u, pc))
			return n;
		if (u->regs[UNWIND_RSP] <= sp && !fde.cie.signal_frame)
			return n;
		exact = fde.cie.signal_frame;
	}
}

const struct unwind_object *unwind_object_of(const struct unwind_tables *t, uint64_t pc)
{
	for (size_t i = 0; i < t->n; i++)
		if (pc >= t->objects[i].start && pc < t->objects[i].limit)
			return &t->objects[i];
	return NULL;
}

static void unwind_object_note_segment(
	struct unwind_object *o, const ElfW(Phdr) * ph, uint64_t bias)
{
	uint64_t start = bias + ph->p_vaddr, limit = start + ph->p_memsz;

	if (ph->p_type == PT_GNU_EH_FRAME) {
		o->eh_frame_hdr = (const unsigned char *)(uintptr_t)start;
		o->eh_frame_hdr_len = ph->p_memsz;
	} else if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
		if (!o->limit) {
			o->start = start;
			o->file_offset = ph->p_offset;
		}
		o->limit = limit;
	}
}

static int unwind_note_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct unwind_tables *t = ctx;
	struct unwind_object *o = &t->objects[t->n];

	(void)size;
	if (t->n == UNWIND_OBJECTS_MAX)
		return 1;
	*o = (struct unwind_object){ .bias = info->dlpi_addr };
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		unwind_object_note_segment(o, &info->dlpi_phdr[i], info->dlpi_addr);
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const unsigned char *start = (const unsigned char *)(uintptr_t)(o->bias + ph->p_vaddr);

		if (ph->p_type == PT_LOAD && o->eh_frame_hdr >= start &&
			o->eh_frame_hdr < start + ph->p_memsz)
			o->image_end = start + ph->p_memsz;
	}
	snprintf(o->path, sizeof(o->path), "%s", info->dlpi_name ? info->dlpi_name : "");
	if (o->limit && o->image_end)
		t->n++;
	return 0;
}

void unwind_tables_load(struct unwind_tables *t)
{
	t->n = 0;
	dl_iterate_phdr(unwind_note_object, t);
}
