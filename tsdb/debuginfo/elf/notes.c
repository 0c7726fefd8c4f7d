/* Notes (build ids), links to other files, and addresses by segments. */
#include <elf.h>

#include "tsdb/debuginfo/elf/internal.h"

#define GO_BUILD_ID 4
#define BUILD_ID_MAX 256u /* Go's has some 80 bytes */
#define LIKELY_ID_MAX 64u /* those of linkers have 8 to 32 */

static uint64_t elf_aligned4(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

static struct str elf_find_note(struct str notes, struct str name, uint32_t type)
{
	uint64_t at = 0;

	while (notes.len - at >= sizeof(Elf64_Nhdr)) {
		uint64_t name_n = elf_u32_at(notes.ptr + at), n = elf_u32_at(notes.ptr + at + 4);
		uint64_t name_at = at + sizeof(Elf64_Nhdr), bytes_at = name_at + elf_aligned4(name_n);

		if (name_n == name.len && elf_u32_at(notes.ptr + at + 8) == type && n <= BUILD_ID_MAX &&
			str_eq(str_part(notes, name_at, name_n), name))
			return str_part(notes, bytes_at, n);
		at = bytes_at + elf_aligned4(n);
		if (at > notes.len)
			break;
	}
	return (struct str){ "", 0 };
}

static struct str elf_note(const struct elf *e, struct str name, uint32_t type)
{
	/* Overlapping notes may not cost more than the file has bytes. */
	uint64_t left = e->bytes.len;
	struct str found = { "", 0 };

	for (uint64_t i = 1; i < e->sections_n && !found.len; i++) {
		struct elf_section s = section_at(e, i);
		struct str raw = s.type == SHT_NOTE ? section_raw(e, &s) : STR("");

		if (raw.len <= left) {
			left -= raw.len;
			found = elf_find_note(raw, name, type);
		}
	}
	for (uint64_t i = 0; i < e->segments_n && !found.len; i++) {
		struct elf_segment s = segment_at(e, i);
		struct str raw = s.type == PT_NOTE ? str_part(e->bytes, s.offset, s.file_bytes) : STR("");

		if (raw.len <= left) {
			left -= raw.len;
			found = elf_find_note(raw, name, type);
		}
	}
	return found;
}

struct str elf_build_id(const struct elf *e)
{
	return elf_note(e, STR("GNU\0"), NT_GNU_BUILD_ID);
}

struct str elf_go_build_id(const struct elf *e)
{
	return elf_note(e, STR("Go\0\0"), GO_BUILD_ID);
}

struct str elf_likely_build_id(const struct elf *e)
{
	const uint64_t head_n = sizeof(Elf64_Nhdr) + 4;
	bool wanted = e->form == ELF_HEAD && !e->segments_n;

	for (uint64_t at = 0; wanted && at < e->bytes.len && e->bytes.len - at >= head_n; at += 4) {
		const char *note = e->bytes.ptr + at;
		uint64_t n = elf_u32_at(note + 4);

		if (elf_u32_at(note) == 4 && elf_u32_at(note + 8) == NT_GNU_BUILD_ID &&
			!memcmp(note + 12, "GNU", 4) && n && n <= LIKELY_ID_MAX)
			return str_part(e->bytes, at + head_n, n);
	}
	return (struct str){ "", 0 };
}

static bool elf_link_of(struct elf *e, const char *section, struct elf_link *out, struct str *rest)
{
	struct str s;
	uint64_t at;

	if (elf_section(e, section, &s, NULL))
		return false;
	*out = (struct elf_link){ .name = str_text(s, 0) };
	at = out->name.len + 1;
	*rest = str_part(s, at, at <= s.len ? s.len - at : 0);
	return out->name.len;
}

bool elf_debug_link(struct elf *e, struct elf_link *out)
{
	struct str rest;
	uint64_t skip;

	if (!elf_link_of(e, ".gnu_debuglink", out, &rest))
		return false;
	skip = elf_aligned4(out->name.len + 1) - (out->name.len + 1);
	if (rest.len < skip + 4)
		return false;
	out->crc = elf_u32_at(rest.ptr + skip);
	return true;
}

/*
 * .debug_sup of DWARF 5: version, 1 in the common file itself, the name of that file, its id.
 * False: there is none, or it is damaged.
 */
static bool elf_read_supplement(struct elf *e, bool *is_common, struct elf_link *out)
{
	struct cursor c;
	struct str s;
	uint64_t n;

	if (elf_section(e, ".debug_sup", &s, NULL) || s.len < 4 || s.ptr[0] != 5 || s.ptr[1])
		return false;
	*is_common = s.ptr[2];
	out->name = str_text(s, 3);
	c = cursor_of(str_part(s, 3 + out->name.len + 1, s.len - 3 - (out->name.len + 1)));
	n = cursor_varint(&c);
	if (c.bad || !n || n > BUILD_ID_MAX)
		return false;
	out->build_id = cursor_bytes(&c, n);
	return !c.bad;
}

bool elf_alternative_link(struct elf *e, struct elf_link *out)
{
	struct elf_link link;
	bool is_common;

	if (elf_link_of(e, ".gnu_debugaltlink", out, &out->build_id) && out->build_id.len &&
		out->build_id.len <= BUILD_ID_MAX)
		return true;
	if (!elf_read_supplement(e, &is_common, &link) || is_common || !link.name.len)
		return false;
	*out = (struct elf_link){ .name = link.name, .build_id = link.build_id };
	return true;
}

struct str elf_alternative_id(struct elf *e)
{
	struct str id = elf_build_id(e);
	struct elf_link link;
	bool is_common;

	return !id.len && elf_read_supplement(e, &is_common, &link) && is_common ? link.build_id : id;
}

bool elf_load_next(const struct elf *e, uint64_t *at, struct elf_load *out)
{
	while (*at < e->segments_n) {
		struct elf_segment s = segment_at(e, (*at)++);

		if (s.type != PT_LOAD)
			continue;
		*out = (struct elf_load){ .offset = s.offset,
			.file_bytes = s.file_bytes,
			.address = s.address,
			.memory_bytes = s.memory_bytes,
			.executable = s.flags & PF_X,
			.writable = s.flags & PF_W };
		return true;
	}
	return false;
}

struct str elf_bytes_at(const struct elf *e, uint64_t address)
{
	struct elf_load l;
	uint64_t i = 0;

	while (elf_load_next(e, &i, &l)) {
		struct str bytes = str_part(e->bytes, l.offset, l.file_bytes);

		if (address >= l.address && address - l.address < bytes.len)
			return str_part(bytes, address - l.address, bytes.len - (address - l.address));
	}
	return (struct str){ "", 0 };
}

bool elf_address_at(const struct elf *e, uint64_t offset, uint64_t *address)
{
	bool found = false;

	for (uint64_t i = 0; i < e->segments_n; i++) {
		struct elf_segment s = segment_at(e, i);

		if (s.type != PT_LOAD || offset < s.offset || offset - s.offset >= s.file_bytes ||
			s.address > UINT64_MAX - (offset - s.offset))
			continue;
		if (found && !(s.flags & PF_X))
			continue;
		*address = s.address + (offset - s.offset);
		found = true;
		if (s.flags & PF_X)
			break;
	}
	return found;
}

bool elf_offset_at(const struct elf *e, uint64_t address, uint64_t *offset)
{
	for (uint64_t i = 0; i < e->segments_n; i++) {
		struct elf_segment s = segment_at(e, i);

		if (s.type == PT_LOAD && address >= s.address && address - s.address < s.file_bytes) {
			*offset = s.offset + (address - s.address);
			return true;
		}
	}
	return false;
}

bool elf_address_of(const struct elf *e, uint64_t process_address, uint64_t memory_start,
	uint64_t file_offset, uint64_t *address)
{
	uint64_t offset;

	return !__builtin_sub_overflow(process_address, memory_start, &offset) &&
		!__builtin_add_overflow(offset, file_offset, &offset) && elf_address_at(e, offset, address);
}
