/*
 * Parts are added one after the other to one builder. A part that cannot be read is left out. If it
 * met a limit of the builder, which is of no use then, all begins again without it: it is better to
 * have names without lines than nothing.
 */
#include "tsdb/debuginfo/extract/extract.h"

#include <stdio.h>

#include "tsdb/debuginfo/dwarf/dwarf.h"
#include "tsdb/debuginfo/elf/symbols.h"
#include "tsdb/debuginfo/pclntab/pclntab.h"

#define PARTS 4u

struct extraction {
	const struct symindex_limits *limits;
	struct bundle bundle;
	struct elf *elf, *alt; /* alt: what dwz took out of elf, or NULL */
	struct symindex *older; /* NULL: none, or it is left out */
	struct symindex_builder *builder;
	struct err first; /* why a part was left out */
	struct err note; /* what else is missing */
	bool out[PARTS]; /* parts that are left out */
	enum symindex_quality lost; /* of an older index that is sound, and was left out */
	struct err lost_why;
};

static enum err_code extract_add_dwarf(struct extraction *extraction, struct err *err)
{
	struct dwarf_stats stats;
	enum err_code rc;

	if ((rc = dwarf_add(extraction->elf, extraction->alt, &extraction->bundle, extraction->builder,
			 &stats, err)))
		return rc;
	/* It is not left out, but says why there are no names if there are none. */
	if (stats.first_error.code && !stats.segments)
		return err_copy(err, &stats.first_error);
	if (stats.first_error.code && !extraction->note.code)
		extraction->note = stats.first_error;
	if (stats.references_lost && !extraction->note.code)
		err_set(&extraction->note, ERR_NOT_FOUND,
			"dwz's common file is not there: %llu names that it has are missing",
			(unsigned long long)stats.references_lost);
	if (stats.units_split_found < stats.units_split && !extraction->note.code)
		err_set(&extraction->note, ERR_NOT_FOUND,
			"%llu of %llu units of split DWARF were not sent: their lines have names of symbols",
			(unsigned long long)(stats.units_split - stats.units_split_found),
			(unsigned long long)stats.units_split);
	return ERR_OK;
}

static enum err_code extract_add_pclntab(struct extraction *extraction, struct err *err)
{
	struct pclntab_stats stats;

	return pclntab_add(extraction->elf, extraction->builder, &stats, err);
}

static enum err_code extract_add_symbols(struct extraction *extraction, struct err *err)
{
	return elf_symbols_add(extraction->elf, extraction->builder, err);
}

/* Names of stubs alone are not what anybody asks for. */
static enum err_code extract_add_stubs(struct extraction *extraction, struct err *err)
{
	return symindex_builder_best(extraction->builder) ?
		elf_stubs_add(extraction->elf, extraction->builder, err) :
		ERR_OK;
}

static enum err_code (*const parts[PARTS])(struct extraction *extraction, struct err *err) = {
	extract_add_dwarf, extract_add_pclntab, extract_add_symbols, extract_add_stubs
};

/* ---- loads ---- */

/* The segments of a file of debug data alone have lost their places. */
static bool extract_has_places(const struct elf *e)
{
	struct elf_load l;
	uint64_t i = 0;

	if (elf_content(e) != ELF_NO_TEXT)
		return true;
	while (elf_load_next(e, &i, &l))
		if (l.executable && l.file_bytes < l.memory_bytes)
			return false;
	return true;
}

static enum err_code extraction_add_loads(struct extraction *e, struct err *err)
{
	bool places = extract_has_places(e->elf);
	unsigned left = SYMINDEX_LOADS_MAX;
	enum err_code rc;

	/* The executable ones first: a file may have more than an index can hold. */
	for (int executable = 1; executable >= 0; executable--) {
		struct elf_load l;
		uint64_t i = 0;

		while (left && elf_load_next(e->elf, &i, &l)) {
			const struct symindex_load to = { .address = l.address,
				.offset = places ? l.offset : 0,
				.bytes = places ? l.file_bytes : l.memory_bytes,
				.executable = l.executable,
				.lost = !places };

			if (l.executable != executable)
				continue;
			if ((rc = symindex_load(e->builder, &to, err)))
				return rc;
			left--;
		}
	}
	return ERR_OK;
}

/* ---- what dwz took out ---- */

/* The file of the bundle that the binary's link names by its id. */
static enum err_code extraction_open_alt(struct extraction *extraction, struct err *err)
{
	struct elf_link link;
	bool linked = elf_alternative_link(extraction->elf, &link), other = false;

	for (size_t i = 0; !extraction->alt && i < extraction->bundle.files_n; i++) {
		enum bundle_kind kind;
		struct str bytes = bundle_file(&extraction->bundle, i, &kind);
		struct err why = { 0 };
		enum err_code rc;

		if (kind != BUNDLE_ALT)
			continue;
		if ((rc = elf_open(bytes, &extraction->alt, &why)) == ERR_NOMEM)
			return err_copy(err, &why);
		if (rc && !extraction->note.code)
			err_set(&extraction->note, rc, "file %zu of the bundle: %.900s", i + 1, why.msg);
		if (rc || (linked && str_eq(elf_alternative_id(extraction->alt), link.build_id)))
			continue;
		other = true;
		elf_close(extraction->alt);
		extraction->alt = NULL;
	}
	if (other && !extraction->alt && !extraction->note.code)
		err_set(
			&extraction->note, ERR_INVALID, "the common file is not the one that the binary names");
	return ERR_OK;
}

/* ---- the whole ---- */

static struct str extract_build_id(const struct elf *e, struct buf *hex)
{
	struct str id = elf_build_id(e);

	for (size_t i = 0; i < id.len; i++)
		buf_printf(hex, "%02x", (unsigned char)id.ptr[i]);
	id = hex->len ? buf_str(hex) : elf_go_build_id(e);
	if (id.len > SYMINDEX_BUILD_ID_MAX)
		id.len = SYMINDEX_BUILD_ID_MAX;
	return id;
}

/* One part was left out, for e. True: the builder can still be used. */
static bool extraction_leave_out(struct extraction *extraction, size_t part, const struct err *e)
{
	extraction->out[part] = true;
	if (!extraction->first.code)
		extraction->first = *e;
	return e->code == ERR_INVALID || e->code == ERR_UNSUPPORTED;
}

static void extraction_leave_older_out(struct extraction *extraction, const struct err *e)
{
	if (e->code != ERR_CORRUPT) {
		extraction->lost = symindex_best(extraction->older);
		extraction->lost_why = *e;
	}
	symindex_close(extraction->older);
	extraction->older = NULL;
}

/* Names that are there are given up for better ones only. */
static enum err_code extraction_check_lost(const struct extraction *extraction, struct err *err)
{
	if (!extraction->lost || symindex_builder_best(extraction->builder) > extraction->lost)
		return ERR_OK;
	return err_set(err, ERR_LIMIT,
		"the stored symbols cannot be kept beside those of this file: %s",
		extraction->lost_why.msg);
}

/* *again: a part was left out, and all has to begin again. */
static enum err_code extraction_attempt(
	struct extraction *extraction, struct buf *out, bool *again, struct err *err)
{
	struct buf hex = { 0 };
	enum err_code rc;
	struct err e;

	*again = false;
	if ((rc = symindex_builder_open(extraction->limits, &extraction->builder, err)) ||
		(rc = extraction_add_loads(extraction, err)))
		return rc;
	for (size_t i = 0; i < PARTS; i++)
		if (!extraction->out[i] && parts[i](extraction, &e) &&
			!extraction_leave_out(extraction, i, &e)) {
			*again = true;
			return ERR_OK;
		}
	if (extraction->older && symindex_add_index(extraction->builder, extraction->older, &e)) {
		extraction_leave_older_out(extraction, &e);
		*again = true;
		return ERR_OK;
	}
	if (!symindex_builder_best(extraction->builder))
		return extraction->first.code ? err_copy(err, &extraction->first) :
										err_set(err, ERR_INVALID, "ELF: it has no symbols");
	if ((rc = extraction_check_lost(extraction, err)))
		return rc;
	rc = symindex_finish(extraction->builder, extract_build_id(extraction->elf, &hex), out, &e);
	buf_release(&hex);
	if (!rc)
		return ERR_OK;
	if (extraction->older) {
		extraction_leave_older_out(extraction, &e);
		*again = true;
	}
	for (size_t i = 0; i < PARTS && !*again; i++)
		if (!extraction->out[i]) {
			extraction_leave_out(extraction, i, &e);
			*again = true;
		}
	return *again ? ERR_OK : err_copy(err, &e);
}

enum err_code debuginfo_extract(
	struct str input, struct str older, struct buf *out, struct err *err)
{
	return debuginfo_extract_limited(input, older, &symindex_limits_default, out, err);
}

enum err_code debuginfo_extract_limited(struct str input, struct str older,
	const struct symindex_limits *l, struct buf *out, struct err *err)
{
	struct extraction x = { .limits = l };
	size_t from = out->len;
	enum err_code rc;
	bool again = true;

	if ((rc = bundle_open(input, &x.bundle, err)) || (rc = elf_open(x.bundle.binary, &x.elf, err)))
		return rc;
	if (older.len && (rc = symindex_open(older, &x.older, err)) && rc != ERR_NOMEM)
		rc = ERR_OK; /* damaged: as if it were not there */
	if (!rc)
		rc = extraction_open_alt(&x, err);
	while (!rc && again) {
		rc = extraction_attempt(&x, out, &again, err);
		symindex_builder_close(x.builder);
		x.builder = NULL;
		if (again && !from)
			buf_release(out); /* it remembers that it could not grow */
	}
	if (rc && out->len > from)
		out->len = from;
	symindex_close(x.older);
	if (!rc && err)
		snprintf(err->msg, sizeof(err->msg), "%s", x.first.code ? x.first.msg : x.note.msg);
	elf_close(x.alt);
	elf_close(x.elf);
	return rc;
}
