#include "tsdb/cluster/forget.h"

#include "base/log.h"
#include "tsdb/block/block_internal.h"
#include "tsdb/catalog/inventory.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/cluster/publisher_internal.h"

#define META_BYTES_MAX (64u << 20)

/* The directory is a stub that was dropped; *out: its contents. What cannot be read is none: the
 * database says what is wrong with it. */
static bool was_dropped(
	const char *dir, const struct manifest *m, struct arena *a, struct block_meta *out)
{
	int64_t until = m->dropped_ns > m->dropped_size_ns ? m->dropped_ns : m->dropped_size_ns;
	char key[REMOTE_KEY_BYTES_MAX + 1] = "", *path = path_join(a, str_of(dir), STR("meta.json"));
	struct buf text = { 0 };
	struct err why;
	bool is;

	if (!path || remote_read_key(dir, key, &why) || !key[0])
		return false;
	is = !fs_read_file(path, META_BYTES_MAX, &text, &why) &&
		!block_meta_parse(buf_str(&text), a, out, &why) && out->max_ns <= until &&
		!manifest_find_block(m, &out->ulid);
	buf_release(&text);
	return is;
}

static enum err_code forget(struct fs *fs, struct inventory *v, const char *dir,
	const struct block_meta *meta, struct err *err)
{
	const struct inventory_entry out = inventory_of_block(meta, false);
	const struct inventory_change change = { .out = &out, .out_n = 1 };
	enum err_code rc;

	if ((rc = inventory_change(v, &change, err)))
		return rc;
	return fs_remove_tree(fs, dir, err);
}

enum err_code forget_dropped(
	struct fs *fs, const char *dir, const struct manifest *m, size_t *n, struct err *err)
{
	enum inventory_found found;
	struct inventory *v = NULL;
	struct block_meta meta;
	struct str *names;
	struct ulid u;
	struct arena a;
	enum err_code rc = ERR_OK;
	char *blocks, *path;
	size_t names_n = 0;

	*n = 0;
	arena_init(&a, 0);
	if (!(blocks = path_join(&a, str_of(dir), STR("blocks"))))
		rc = arena_fail(&a, "forget", err);
	else if ((m->dropped_ns || m->dropped_size_ns) && fs_exists(blocks) &&
		!(rc = fs_list(blocks, &a, &names, &names_n, err)))
		rc = inventory_open(fs, dir, false, &v, &found, err);
	for (size_t i = 0; i < names_n && !rc; i++) {
		if (!ulid_parse(names[i], &u) || !(path = path_join(&a, str_of(blocks), names[i])) ||
			!was_dropped(path, m, &a, &meta))
			continue;
		if (!(rc = forget(fs, v, path, &meta, err)))
			(*n)++;
	}
	inventory_close(v);
	if (*n)
		log_info("cluster", "blocks were dropped while the shard was gone", LOG_I("blocks", *n));
	arena_release(&a);
	return rc;
}
