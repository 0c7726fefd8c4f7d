/*
 * Names of a linker's stubs, through which calls of other files' functions go: "memcpy@plt". Stub i
 * jumps where relocation i of .rela.plt says, which has the function's symbol.
 */
#include <elf.h>

#include "tsdb/debuginfo/elf/internal.h"
#include "tsdb/debuginfo/elf/symbols.h"

#define STUB_BYTES 16u
#define STUBS_MAX (1u << 20)
#define NAME_MAX_BYTES 4096u

struct stubs {
	uint64_t address, n;
};

/* Where stub 0 is. False: this machine or linker lays them out otherwise. */
static bool elf_find_stubs(const struct elf *e, uint64_t relocations, struct stubs *out)
{
	uint64_t bytes, head;

	if (e->machine == EM_X86_64 && elf_section_place(e, ".plt.sec", &out->address, &bytes)) {
		head = 0;
	} else if (e->machine == EM_X86_64 && elf_section_place(e, ".plt", &out->address, &bytes)) {
		head = STUB_BYTES;
	} else if (e->machine == EM_AARCH64 && elf_section_place(e, ".plt", &out->address, &bytes)) {
		head = 2 * STUB_BYTES;
	} else {
		return false;
	}
	/* Other layouts have other sizes; some linkers fill up the last stub. */
	if (bytes < head || (bytes - head) / STUB_BYTES != relocations)
		return false;
	out->n = relocations;
	return !__builtin_add_overflow(out->address, head, &out->address) &&
		out->address <= UINT64_MAX - relocations * STUB_BYTES;
}

static bool elf_is_call(const struct elf *e, uint64_t info)
{
	return ELF64_R_TYPE(info) ==
		(e->machine == EM_X86_64 ? R_X86_64_JUMP_SLOT : R_AARCH64_JUMP_SLOT);
}

static enum err_code elf_add_stub(
	struct symindex_builder *b, uint64_t address, struct str name, struct err *err)
{
	char text[NAME_MAX_BYTES + sizeof("@plt")];
	uint32_t function, frame;
	enum err_code rc;

	memcpy(text, name.ptr, name.len);
	memcpy(text + name.len, "@plt", 4);
	if ((rc = symindex_function(
			 b, (struct str){ text, name.len + 4 }, SYMINDEX_NONE, 0, &function, err)) ||
		(rc = symindex_frame(b, SYMINDEX_NONE, function, SYMINDEX_NONE, 0, &frame, err)))
		return rc;
	return symindex_add(b, address, address + STUB_BYTES, frame, SYMINDEX_SYMBOLS, err);
}

enum err_code elf_stubs_add(struct elf *e, struct symindex_builder *b, struct err *err)
{
	struct str relocations, symbols, names;
	struct stubs stubs;
	enum err_code rc;

	if (!e->wide)
		return ERR_OK;
	if ((rc = elf_section(e, ".rela.plt", &relocations, err)) ||
		(rc = elf_section(e, ".dynsym", &symbols, err)) ||
		(rc = elf_section(e, ".dynstr", &names, err)))
		return rc;
	if (!relocations.len || relocations.len / sizeof(Elf64_Rela) > STUBS_MAX ||
		!elf_find_stubs(e, relocations.len / sizeof(Elf64_Rela), &stubs))
		return ERR_OK;
	for (uint64_t i = 0; i < stubs.n; i++) {
		Elf64_Rela r;
		Elf64_Sym y;
		struct str name;

		memcpy(&r, relocations.ptr + i * sizeof(r), sizeof(r));
		if (!elf_is_call(e, r.r_info) || ELF64_R_SYM(r.r_info) >= symbols.len / sizeof(y))
			continue;
		memcpy(&y, symbols.ptr + ELF64_R_SYM(r.r_info) * sizeof(y), sizeof(y));
		name = str_part(names, y.st_name, 1);
		if (!name.len)
			continue;
		name.len = strnlen(name.ptr,
			names.len - y.st_name < NAME_MAX_BYTES ? names.len - y.st_name : NAME_MAX_BYTES);
		if (name.len && (rc = elf_add_stub(b, stubs.address + i * STUB_BYTES, name, err)))
			return rc;
	}
	return ERR_OK;
}
