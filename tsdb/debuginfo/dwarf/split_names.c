/*
 * The reader's own first steps: the first entry of each unit is read, and nothing of what follows.
 */
#include "tsdb/debuginfo/dwarf/split_names.h"

#include "tsdb/debuginfo/dwarf/internal.h"

enum err_code dwarf_each_split(struct elf *e,
	enum err_code (*each)(void *ctx, const struct dwarf_split *s, struct err *err), void *ctx,
	struct err *err)
{
	struct dwarf_stats stats;
	struct dwarf_reader *r;
	enum err_code rc = dwarf_reader_open(e, &stats, &r, err);

	if (rc)
		return rc;
	if (!(rc = dwarf_file_load(r, e, &r->main, err)))
		rc = units_scan(r, &r->main, err);
	for (uint32_t i = 0; !rc && i < r->main.units_n; i++) {
		struct dwarf_unit *u = &r->main.units[i];
		struct err why;

		if ((rc = unit_root(r, &r->main, u, &why)) == ERR_INVALID)
			rc = ERR_OK;
		else if (rc)
			err_copy(err, &why);
		else if (u->is_skeleton && u->has_dwo_id && u->dwo_name.len)
			rc = each(ctx, &(struct dwarf_split){ u->dwo_id, u->dwo_name, u->comp_dir }, err);
	}
	dwarf_reader_close(r);
	return rc;
}

struct split_ids {
	enum err_code (*each)(void *ctx, uint64_t id, struct err *err);
	void *ctx;
};

static enum err_code split_tell_id(
	struct dwarf_reader *r, struct dwarf_unit *u, void *ctx, struct err *err)
{
	const struct split_ids *ids = ctx;
	struct err why;
	enum err_code rc = unit_root(r, &r->split, u, &why);

	if (rc)
		return rc == ERR_INVALID ? ERR_OK : err_copy(err, &why);
	return u->has_dwo_id ? ids->each(ids->ctx, u->dwo_id, err) : ERR_OK;
}

enum err_code dwarf_each_split_id(struct elf *e,
	enum err_code (*each)(void *ctx, uint64_t id, struct err *err), void *ctx, struct err *err)
{
	struct split_ids ids = { each, ctx };
	struct dwarf_stats stats;
	struct dwarf_reader *r;
	enum err_code rc = dwarf_reader_open(e, &stats, &r, err);
	bool is_file;

	if (rc)
		return rc;
	if (!(rc = split_load(r, e, err)))
		rc = split_each_unit(r, e, split_tell_id, &ids, &is_file, err);
	split_unload(r);
	dwarf_reader_close(r);
	return rc;
}
