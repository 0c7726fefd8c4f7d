#include "tsdb/block/block_internal.h"

/*
 * The identity of a table: the block that it belongs to. A restore that mixes two copies of a
 * directory leaves whole tables in the wrong places: every checksum is right, and ids mean
 * something else. So each table begins with the ULID of its block, on a separate page that costs
 * one small read.
 */
static const char identity_key[] = { KEY_IDENTITY };

enum err_code block_identity_put(struct table_writer *t, const struct ulid *ulid, struct err *err)
{
	enum err_code rc = table_writer_put(
		t, (struct str){ identity_key, sizeof(identity_key) }, str_of(ulid->text), err);

	table_writer_end_page(t);
	return rc;
}

enum err_code block_identity_get(
	struct table *t, const char *name, struct ulid *out, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	rc = table_get(t, (struct str){ identity_key, sizeof(identity_key) }, &text, err);
	if (!rc && !ulid_parse(buf_str(&text), out))
		rc = err_set(err, ERR_CORRUPT, "%s does not say of which block it is", name);
	buf_release(&text);
	return rc;
}
