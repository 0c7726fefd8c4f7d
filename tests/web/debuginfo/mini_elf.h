/*
 * The smallest ELF file that names a GNU build id: a header, a segment of notes, and as many bytes
 * behind it as asked for.
 */
#ifndef TESTS_WEB_DEBUGINFO_MINI_ELF_H
#define TESTS_WEB_DEBUGINFO_MINI_ELF_H

#include <elf.h>

#include "base/str.h"

/* id: bytes, not digits; "": no note. */
static inline void mini_elf(struct buf *out, struct str id, size_t bytes_behind)
{
	Elf64_Ehdr h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 };
	Elf64_Nhdr note = { .n_namesz = 4, .n_descsz = (Elf64_Word)id.len, .n_type = NT_GNU_BUILD_ID };
	Elf64_Phdr p = { .p_type = PT_NOTE,
		.p_offset = sizeof(h) + sizeof(p),
		.p_filesz = id.len ? sizeof(note) + 4 + id.len : 0 };

	buf_clear(out);
	buf_add(out, &h, sizeof(h));
	buf_add(out, &p, sizeof(p));
	if (id.len) {
		buf_add(out, &note, sizeof(note));
		buf_add(out, "GNU", 4);
		buf_add_str(out, id);
	}
	for (size_t i = 0; i < bytes_behind; i++)
		buf_add_char(out, (char)(i * 7));
}

#endif
