#include "tsdb/catalog/name_kind.h"

#include "tsdb/catalog/state.h"

/* If the block cannot be read, no name is refused because of it. */
static enum series_kind kind_in_block(struct block *b, struct str name)
{
	struct matcher m = { .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = name };
	enum series_kind kind = SERIES_NONE;
	struct bits ids = { 0 };

	if (!block_match(b, &m, 1, NULL, NULL, &ids, NULL))
		for (size_t w = 0; w < ids.words && kind == SERIES_NONE; w++)
			if (ids.w[w])
				kind = w * 64 + (size_t)__builtin_ctzll(ids.w[w]) < block_meta(b)->number_series ?
					SERIES_NUMBERS :
					SERIES_PROFILES;
	bits_release(&ids);
	return kind;
}

static enum err_code kind_in_blocks(
	struct db *db, struct str name, enum series_kind *out, struct err *err)
{
	struct db_block **blocks = NULL;
	size_t n = 0;
	enum err_code rc;

	if ((rc = blocks_pin_all(db, &blocks, &n, err)))
		return rc;
	*out = SERIES_NONE;
	for (size_t i = n; i-- > 0 && *out == SERIES_NONE;)
		*out = kind_in_block(blocks[i]->block, name);
	blocks_unpin_all(db, blocks, n);
	return ERR_OK;
}

enum err_code name_kind_check(
	struct db *db, struct labels labels, enum series_kind wanted, struct err *err)
{
	struct str name = labels_get(labels, STR(LABEL_NAME));
	enum series_kind kind = series_name_kind(db->series, name);
	enum err_code rc;

	if (kind == SERIES_NONE && (rc = kind_in_blocks(db, name, &kind, err)))
		return rc;
	return series_check_kind(name, kind, wanted, err);
}
