/*
 * The smallest ELF file that names a GNU build id: a header, a note, a table with its segment, and
 * as many bytes behind it as asked for.
 */
#ifndef TESTS_WEB_DEBUGINFO_MINI_ELF_H
#define TESTS_WEB_DEBUGINFO_MINI_ELF_H

#include <elf.h>

#include "base/str.h"

static inline void mini_elf_fill(struct buf *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_add_char(out, (char)(i * 7));
}

/*
 * The table of segments is so many bytes behind the header and the note.
 * id: bytes, not digits; "": no note.
 */
static inline void mini_elf_spread(
	struct buf *out, struct str id, size_t bytes_between, size_t bytes_behind)
{
	Elf64_Nhdr note = { .n_namesz = 4, .n_descsz = (Elf64_Word)id.len, .n_type = NT_GNU_BUILD_ID };
	size_t note_bytes = id.len ? sizeof(note) + 4 + id.len : 0;
	Elf64_Ehdr h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h) + note_bytes + bytes_between,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 };
	Elf64_Phdr p = { .p_type = PT_NOTE, .p_offset = sizeof(h), .p_filesz = note_bytes };

	buf_clear(out);
	buf_add(out, &h, sizeof(h));
	if (id.len) {
		buf_add(out, &note, sizeof(note));
		buf_add(out, "GNU", 4);
		buf_add_str(out, id);
	}
	mini_elf_fill(out, bytes_between);
	buf_add(out, &p, sizeof(p));
	mini_elf_fill(out, bytes_behind);
}

static inline void mini_elf(struct buf *out, struct str id, size_t bytes_behind)
{
	mini_elf_spread(out, id, 0, bytes_behind);
}

#endif
