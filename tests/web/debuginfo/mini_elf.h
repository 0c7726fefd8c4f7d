/*
 * The smallest ELF file that names a GNU build id: a header, a segment of notes, and as many bytes
 * behind it as asked for.
 */
#ifndef TESTS_WEB_DEBUGINFO_MINI_ELF_H
#define TESTS_WEB_DEBUGINFO_MINI_ELF_H

#include <elf.h>

#include "base/str.h"

#define MINI_NOTE_BYTES (sizeof(Elf64_Nhdr) + 4) /* and the id */

static inline void mini_elf_add_header(struct buf *out, size_t segments_at)
{
	Elf64_Ehdr h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
						 EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = segments_at,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 };

	buf_clear(out);
	buf_add(out, &h, sizeof(h));
}

static inline void mini_elf_add_segment(struct buf *out, struct str id, size_t note_at)
{
	Elf64_Phdr p = {
		.p_type = PT_NOTE, .p_offset = note_at, .p_filesz = id.len ? MINI_NOTE_BYTES + id.len : 0
	};

	buf_add(out, &p, sizeof(p));
}

static inline void mini_elf_add_note(struct buf *out, struct str id)
{
	Elf64_Nhdr note = { .n_namesz = 4, .n_descsz = (Elf64_Word)id.len, .n_type = NT_GNU_BUILD_ID };

	if (!id.len)
		return;
	buf_add(out, &note, sizeof(note));
	buf_add(out, "GNU", 4);
	buf_add_str(out, id);
}

static inline void mini_elf_fill(struct buf *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_add_char(out, (char)(i * 7));
}

/* id: bytes, not digits; "": no note. */
static inline void mini_elf(struct buf *out, struct str id, size_t bytes_behind)
{
	mini_elf_add_header(out, sizeof(Elf64_Ehdr));
	mini_elf_add_segment(out, id, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
	mini_elf_add_note(out, id);
	mini_elf_fill(out, bytes_behind);
}

/* The same with the table of segments at the end, so many bytes behind the note. */
static inline void mini_elf_late(struct buf *out, struct str id, size_t bytes_between)
{
	size_t note_bytes = id.len ? MINI_NOTE_BYTES + id.len : 0;

	mini_elf_add_header(out, sizeof(Elf64_Ehdr) + note_bytes + bytes_between);
	mini_elf_add_note(out, id);
	mini_elf_fill(out, bytes_between);
	mini_elf_add_segment(out, id, sizeof(Elf64_Ehdr));
}

#endif
