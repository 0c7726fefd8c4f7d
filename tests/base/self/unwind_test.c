/* The unwinder on broken tables: shorter stacks, and no read outside of the segment. */
#include <link.h>
#include <stdlib.h>

#include "base/self/unwind.h"
#include "tests/check.h"

#define ROUNDS 20000u
#define STACK_WORDS 512u

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A copy of this program's own tables, header to segment's end, as an object elsewhere. */
struct copy {
	unsigned char *bytes, *whole;
	size_t n;
	struct unwind_tables tables;
	uint64_t pc_min, pc_max;
};

static int take_segment(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct copy *c = ctx;
	const ElfW(Phdr) *hdr = NULL;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			hdr = &info->dlpi_phdr[i];
	for (size_t i = 0; hdr && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const unsigned char *from = (const unsigned char *)info->dlpi_addr + hdr->p_vaddr;
		struct unwind_object *o = &c->tables.objects[0];

		if (ph->p_type != PT_LOAD || hdr->p_vaddr < ph->p_vaddr ||
			hdr->p_vaddr >= ph->p_vaddr + ph->p_memsz)
			continue;
		c->n = ph->p_vaddr + ph->p_memsz - hdr->p_vaddr;
		c->bytes = malloc(c->n);
		c->whole = malloc(c->n);
		memcpy(c->whole, from, c->n);
		/* Addresses are relative to the tables, so code moves by as much as they did. */
		o->bias = (uint64_t)(uintptr_t)c->bytes;
		o->eh_frame_hdr = c->bytes;
		o->eh_frame_hdr_len = hdr->p_memsz;
		o->image_end = c->bytes + c->n;
		o->limit = UINT64_MAX;
		c->tables.n = 1;
		c->pc_min = (uint64_t)(uintptr_t)c->bytes - hdr->p_vaddr;
		c->pc_max = (uint64_t)(uintptr_t)c->bytes;
	}
	return 1; /* the program itself comes first */
}

static size_t walk(const struct copy *c, uint64_t pc)
{
	uint64_t words[STACK_WORDS], pcs[UNWIND_DEPTH_MAX];
	struct unwind_context u = { .stack_base = 0x7f0000000000, .stack_len = sizeof(words) };

	for (size_t i = 0; i < STACK_WORDS; i++)
		words[i] = c->pc_min + draw() % (c->pc_max - c->pc_min);
	u.stack = (const unsigned char *)words;
	for (size_t i = 0; i < UNWIND_REGS; i++)
		u.regs[i] = u.stack_base + draw() % sizeof(words) / 8 * 8;
	u.regs[UNWIND_RSP] = u.stack_base;
	u.regs[UNWIND_RIP] = pc;
	return unwind_walk(&c->tables, &u, pcs, UNWIND_DEPTH_MAX);
}

TEST(broken_tables_give_short_stacks)
{
	struct copy c = { 0 };
	size_t n, longer = 0;

	dl_iterate_phdr(take_segment, &c);
	REQUIRE(c.tables.n == 1);
	memcpy(c.bytes, c.whole, c.n);
	for (unsigned i = 0; i < ROUNDS; i++)
		longer += walk(&c, c.pc_min + draw() % (c.pc_max - c.pc_min)) > 1;
	CHECK(longer > ROUNDS / 4); /* whole tables are understood */
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i % 64 == 0)
			memcpy(c.bytes, c.whole, c.n);
		for (unsigned k = 0; k < 64; k++)
			c.bytes[draw() % c.n] = (unsigned char)draw();
		for (unsigned k = 0; k < i % 16; k++) /* a header that lies as well */
			c.bytes[12 + draw() % (c.tables.objects[0].eh_frame_hdr_len - 12)] = (unsigned char)
				draw();
		n = walk(&c, c.pc_min + draw() % (c.pc_max - c.pc_min));
		CHECK(n >= 1 && n <= UNWIND_DEPTH_MAX);
	}
	free(c.bytes);
	free(c.whole);
}
