#include "tsdb/block/block_internal.h"

/*
 * The identity of a table: the block that it belongs to, and its own name there. A restore that
 * mixes two copies of a directory leaves whole tables in the wrong places: every checksum is right,
 * and ids mean something else. So each table begins with the ULID of its block and with its name,
 * on a separate page that costs one small read.
 *
 * Tables of older programs have no name. There the size says it: no file of a block is changed, so
 * a table whose end is whole and whose size is another's is another.
 */
static const char identity_key[] = { KEY_IDENTITY };

enum err_code block_identity_put(
	struct table_writer *t, const struct ulid *ulid, const char *name, struct err *err)
{
	struct buf key = { 0 };
	enum err_code rc;

	buf_add_char(&key, KEY_IDENTITY);
	buf_add_cstr(&key, name);
	rc = buf_failed(&key) ? err_nomem(err, "write block") :
							table_writer_put(t, (struct str){ identity_key, sizeof(identity_key) },
								str_of(ulid->text), err);
	if (!rc)
		rc = table_writer_put(t, buf_str(&key), STR(""), err);
	table_writer_end_page(t);
	buf_release(&key);
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

enum err_code block_check_role(
	const struct block *b, struct table *t, const char *name, struct err *err)
{
	struct table_iter *it = table_iter_open(t, false);
	enum err_code rc = ERR_OK;
	struct str key, says;

	if (!it)
		return err_nomem(err, "block");
	table_iter_seek(it, (struct str){ identity_key, sizeof(identity_key) });
	if (table_iter_valid(it))
		table_iter_next(it);
	key = table_iter_valid(it) ? table_iter_key(it) : STR("");
	says = key.len > 1 && key.ptr[0] == KEY_IDENTITY ? (struct str){ key.ptr + 1, key.len - 1 } :
													   STR("");
	if (says.len && !str_is(says, name))
		rc = err_set(
			err, ERR_CORRUPT, "%s/%s is the block's " STR_FMT, b->dir, name, STR_ARG(says));
	table_iter_close(it);
	return rc;
}
