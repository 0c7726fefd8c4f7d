#include "tsdb/block/block_internal.h"

#include <assert.h>
#include <inttypes.h>

/* The pages of a partition, into memory. */

static enum err_code block_load_page(struct symbol_page *page, struct str key, struct str value,
	struct partition *p, enum sym_kind kind, uint32_t end, struct arena *scratch, uint64_t *loaded,
	struct err *err)
{
	struct cursor in = cursor_of(key);
	enum err_code rc;

	(void)cursor_bytes(&in, BLOCK_KEY_ID_BYTES + 1);
	if ((rc = symbol_page_unpack(page, kind, value, err)))
		return rc;
	return symbol_page_load(page, p, kind, cursor_u32be(&in), end, scratch, loaded, err);
}

static enum err_code block_load_kind(struct block *b, struct block_iter *it,
	struct symbol_page *page, uint32_t slot, struct partition *p, enum sym_kind kind,
	uint64_t *lost, struct err *err)
{
	struct block_key from = block_key_symbols(slot, kind, 0);
	struct block_key to = block_key_symbols(slot, kind + 1, 0);
	struct str key, value;
	struct arena scratch;
	uint64_t loaded = 0;
	enum err_code rc;
	struct err why;

	arena_init(&scratch, 0);
	table_expect(b->rollups, block_key_str(&from), block_key_str(&to), 0);
	block_iter_seek(it, block_key_str(&from), BLOCK_KEY_ID_BYTES + 1);
	do {
		if (!(rc = block_iter_next(it, &key, &value, &why)))
			rc = block_load_page(
				page, key, value, p, kind, b->slots[slot].ends[kind], &scratch, &loaded, &why);
		if (rc && rc != ERR_NOT_FOUND)
			*err = why;
	} while (rc == ERR_OK || rc == ERR_CORRUPT);
	if (loaded < b->slots[slot].symbols[kind] && !range_unreachable(rc))
		*lost += b->slots[slot].symbols[kind] - loaded;
	arena_release(&scratch);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static const enum sym_kind names[] = { SYM_STRING, SYM_MAPPING, SYM_FUNCTION, SYM_LABEL_SET,
	SYM_HEADER };
static const enum sym_kind stacks[] = { SYM_LOCATION, SYM_NODE };

static const enum sym_kind *block_kinds_of(enum block_stage stage, size_t *n)
{
	assert(stage == BLOCK_NAMES || stage == BLOCK_STACKS);
	*n = stage == BLOCK_NAMES ? sizeof(names) / sizeof(names[0]) :
								sizeof(stacks) / sizeof(stacks[0]);
	return stage == BLOCK_NAMES ? names : stacks;
}

void block_symbols_expect(struct block *b, uint32_t slot, enum block_stage stage)
{
	size_t n;
	const enum sym_kind *kinds = block_kinds_of(stage, &n);

	for (size_t i = 0; i < n && slot < b->meta.partitions; i++) {
		struct block_key from = block_key_symbols(slot, kinds[i], 0);
		struct block_key to = block_key_symbols(slot, kinds[i] + 1, 0);

		table_expect(b->rollups, block_key_str(&from), block_key_str(&to), 0);
	}
}

enum err_code block_load_symbols(struct block *b, uint32_t slot, struct partition *p,
	enum block_stage stage, uint64_t *lost, struct err *err)
{
	size_t n;
	const enum sym_kind *kinds = block_kinds_of(stage, &n);
	struct symbol_page page = { 0 };
	struct block_iter it;
	struct err why = { 0 };
	enum err_code rc;

	*lost = 0;
	if (slot >= b->meta.partitions)
		return err_set(err, ERR_NOT_FOUND, "block %s has no partition %" PRIu32, b->dir, slot);
	if ((rc = block_iter_open(&it, b->rollups, true, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = block_load_kind(b, &it, &page, slot, p, kinds[i], lost, &why);
	symbol_page_release(&page);
	block_iter_close(&it);
	if (*lost)
		atomic_store(&p->damaged, true);
	if (rc || *lost) {
		err_copy(err, &why);
		return err_wrap(err, rc, "block %s: symbols of job \"" STR_FMT "\"", b->dir,
			STR_ARG(b->slots[slot].p.name));
	}
	return ERR_OK;
}
