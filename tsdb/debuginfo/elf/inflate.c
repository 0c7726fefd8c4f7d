/*
 * Compressed sections: what the header claims is compared with the limits before anything is
 * allocated, and must be exactly what comes out.
 */
#include <elf.h>
#include <libdeflate.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "tsdb/debuginfo/elf/internal.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif
#define FREE_BYTES (1u << 20) /* whatever the size of the file */
#define OLD_HEADER_BYTES 12 /* "ZLIB", the size in big-endian */
#define MINI_FIRST_BYTES (64u << 10)

struct elf_packed {
	uint32_t type;
	uint64_t size;
	struct str bytes;
};

static enum err_code elf_check_size(
	const struct elf *e, const char *name, uint64_t n, struct err *err)
{
	const struct elf_limits *l = &e->limits;
	uint64_t ratio_max;

	if (n > l->inflated_bytes_max || e->inflated_sum > l->inflated_bytes_max - n)
		return err_set(err, ERR_LIMIT,
			"ELF: section %s makes compressed sections more than %llu bytes inflated, the limit",
			name, (unsigned long long)l->inflated_bytes_max);
	if (__builtin_mul_overflow(e->bytes.len, l->inflated_ratio_max, &ratio_max) ||
		__builtin_add_overflow(ratio_max, FREE_BYTES, &ratio_max))
		return ERR_OK;
	if (e->inflated_sum + n > ratio_max)
		return err_set(err, ERR_LIMIT,
			"ELF: section %s makes compressed sections more than %llu times the file, the limit",
			name, (unsigned long long)l->inflated_ratio_max);
	return ERR_OK;
}

static bool inflate_zlib(struct str in, char *out, size_t n)
{
	struct libdeflate_decompressor *z = libdeflate_alloc_decompressor();
	size_t made = 0;
	bool ok;

	ok = z && libdeflate_zlib_decompress(z, in.ptr, in.len, out, n, &made) == LIBDEFLATE_SUCCESS &&
		made == n;
	libdeflate_free_decompressor(z);
	return ok;
}

static enum err_code elf_inflate(struct elf *e, const char *name, uint64_t i,
	const struct elf_packed *p, struct str *out, struct err *err)
{
	struct elf_inflated *v;
	enum err_code rc;
	char *bytes;
	bool ok;

	if (p->type != ELFCOMPRESS_ZLIB && p->type != ELFCOMPRESS_ZSTD)
		return err_set(err, ERR_UNSUPPORTED, "ELF: section %s has compression %u", name, p->type);
	if ((rc = elf_check_size(e, name, p->size, err)))
		return rc;
	if (!(v = malloc(sizeof(*v) + p->size + 1)))
		return err_nomem(err, name);
	bytes = (char *)(v + 1);
	if (p->type == ELFCOMPRESS_ZLIB)
		ok = inflate_zlib(p->bytes, bytes, p->size);
	else
		ok = ZSTD_decompress(bytes, p->size, p->bytes.ptr, p->bytes.len) == p->size;
	if (!ok) {
		free(v);
		return err_set(err, ERR_INVALID, "ELF: section %s is damaged: inflating fails", name);
	}
	bytes[p->size] = '\0';
	*v = (struct elf_inflated){ e->inflated, i, { bytes, p->size } };
	e->inflated = v;
	e->inflated_sum += p->size;
	*out = v->bytes;
	return ERR_OK;
}

static bool elf_inflate_read_header(const struct elf *e, struct str raw, struct elf_packed *out)
{
	size_t n = e->wide ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);

	if (raw.len < n)
		return false;
	out->type = elf_u32_at(raw.ptr);
	out->size = e->wide ? elf_u64_at(raw.ptr + 8) : elf_u32_at(raw.ptr + 4);
	out->bytes = str_part(raw, n, raw.len - n);
	return true;
}

static bool elf_read_old_header(struct str raw, struct elf_packed *out)
{
	struct cursor c = cursor_of(raw);

	if (!str_eq(cursor_bytes(&c, 4), STR("ZLIB")))
		return false;
	out->type = ELFCOMPRESS_ZLIB;
	out->size = cursor_u64be(&c);
	out->bytes = str_part(raw, OLD_HEADER_BYTES, raw.len - OLD_HEADER_BYTES);
	return !c.bad;
}

static enum err_code section_unpack(struct elf *e, uint64_t i, struct str *out, struct err *err)
{
	struct elf_section s = section_at(e, i);
	struct str name = section_name(e, &s), raw = section_raw(e, &s);
	bool old = str_has_prefix(name, STR(".zdebug_"));
	struct elf_packed p = { 0 };
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)(name.len < 60 ? name.len : 60), name.ptr);
	if (s.type != SHT_NOBITS && s.size && !raw.len)
		return err_set(err, ERR_INVALID, "ELF: section %s is beyond the end of the file", text);
	if (!raw.len || (!old && !(s.flags & SHF_COMPRESSED))) {
		*out = raw;
		return ERR_OK;
	}
	if (old ? !elf_read_old_header(raw, &p) : !elf_inflate_read_header(e, raw, &p))
		return err_set(err, ERR_INVALID, "ELF: section %s is damaged: no compression header", text);
	return elf_inflate(e, text, i, &p, out, err);
}

enum err_code section_contents(struct elf *e, uint64_t i, struct str *out, struct err *err)
{
	for (struct elf_inflated *v = e->inflated; v; v = v->next)
		if (v->section == i) {
			*out = v->bytes;
			return ERR_OK;
		}
	return section_unpack(e, i, out, err);
}

enum err_code elf_section_next(
	struct elf *e, const char *name, uint64_t *at, struct str *out, bool *found, struct err *err)
{
	uint64_t i = section_find_from(e, name, *at ? *at : 1);

	*out = (struct str){ "", 0 };
	*at = i + 1;
	*found = i < e->sections_n;
	/* The list of what was inflated is not searched: a file may have millions of such sections. */
	return *found ? section_unpack(e, i, out, err) : ERR_OK;
}

enum err_code elf_section(struct elf *e, const char *name, struct str *out, struct err *err)
{
	uint64_t i = section_find(e, name);
	char old[64];

	if (i == e->sections_n && !strncmp(name, ".debug_", 7)) {
		snprintf(old, sizeof(old), ".z%s", name + 1);
		i = section_find(e, old);
	}
	if (i == e->sections_n) {
		*out = (struct str){ "", 0 };
		return ERR_OK;
	}
	return section_contents(e, i, out, err);
}

/* ---- MiniDebugInfo: an ELF file compressed by xz ---- */

static enum err_code elf_unpack(
	const struct elf *e, struct str in, struct buf *out, struct err *err)
{
	const struct elf_limits *l = &e->limits;
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret got = lzma_stream_decoder(&z, l->mini_memory_max, 0);
	enum err_code rc = ERR_OK;

	z.next_in = (const uint8_t *)in.ptr;
	z.avail_in = in.len;
	while (got == LZMA_OK) {
		size_t room = out->len < MINI_FIRST_BYTES ? MINI_FIRST_BYTES : out->len;

		if (out->len >= l->mini_bytes_max || !buf_reserve(out, room))
			break;
		if (room > l->mini_bytes_max - out->len)
			room = l->mini_bytes_max - out->len;
		z.next_out = (uint8_t *)out->ptr + out->len;
		z.avail_out = room;
		got = lzma_code(&z, LZMA_FINISH);
		out->len += room - z.avail_out;
	}
	lzma_end(&z);
	if (buf_failed(out) || got == LZMA_MEM_ERROR)
		rc = err_nomem(err, ".gnu_debugdata");
	else if (got == LZMA_MEMLIMIT_ERROR)
		rc = err_set(err, ERR_LIMIT, "ELF: .gnu_debugdata needs more than %llu bytes to inflate",
			(unsigned long long)l->mini_memory_max);
	else if (got == LZMA_OK)
		rc = err_set(err, ERR_LIMIT, "ELF: .gnu_debugdata is more than %llu bytes inflated",
			(unsigned long long)l->mini_bytes_max);
	else if (got != LZMA_STREAM_END)
		rc = err_set(err, ERR_INVALID, "ELF: .gnu_debugdata is damaged: inflating fails");
	return rc;
}

enum err_code elf_mini(struct elf *e, struct elf **out, struct err *err)
{
	struct buf raw = { 0 };
	enum err_code rc;
	struct str in;

	*out = e->mini;
	if (e->mini)
		return ERR_OK;
	if ((rc = elf_section(e, ".gnu_debugdata", &in, err)) || !in.len)
		return rc;
	if ((rc = elf_unpack(e, in, &raw, err)) ||
		(rc = elf_open_limited(buf_str(&raw), &e->limits, &e->mini, err))) {
		buf_release(&raw);
		return err_wrap(err, rc, ".gnu_debugdata");
	}
	e->mini_bytes = raw.ptr;
	*out = e->mini;
	return ERR_OK;
}
