/*
 * fuzz: tsdb/debuginfo/store
 * Keys from senders, names in the store's directory, its stamps, ends of index files: as they are,
 * and the latter with a right checksum. A key has one name, which is safe and reads back.
 */
#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/store/internal.h"

static void try_key(enum debuginfo_id_kind kind, struct str text)
{
	struct debuginfo_id id, same;
	struct buf stem = { 0 };

	if (debuginfo_id_init(&id, kind, text, NULL))
		return;
	debuginfo_id_stem(&id, &stem);
	require(!buf_failed(&stem) && stem.len <= 220 && !memchr(stem.ptr, '/', stem.len) &&
		!memchr(stem.ptr, '.', stem.len));
	require(debuginfo_id_of_stem(buf_str(&stem), &same) && debuginfo_id_eq(&id, &same));
	buf_release(&stem);
}

static enum err_code add_again(void *ctx, const struct stamp *t, struct err *err)
{
	stamps_add(ctx, t);
	return ERR_OK;
}

static void try_stamps(struct str bytes)
{
	struct buf out = { 0 }, third = { 0 };
	struct err err;

	stamps_begin(&out);
	if (stamps_decode(bytes, add_again, &out, &err)) {
		require(err.code == ERR_CORRUPT);
	} else {
		stamps_end(&out);
		stamps_begin(&third);
		require(!stamps_decode(buf_str(&out), add_again, &third, &err));
		stamps_end(&third);
		require(str_eq(buf_str(&out), buf_str(&third)));
	}
	buf_release(&out);
	buf_release(&third);
}

static void with_checksum(struct str bytes)
{
	struct debuginfo_id id;
	struct buf b = { 0 };
	struct footer f;
	struct err err;

	buf_add_str(&b, bytes);
	buf_add_u64be(&b, hash_bytes(bytes.ptr, bytes.len, 0));
	try_stamps(buf_str(&b));
	require(!debuginfo_id_init(&id, DEBUGINFO_GNU, STR("00"), NULL));
	if (footer_decode(buf_str(&b), &id, &f, &err))
		require(err.code == ERR_CORRUPT);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str s = { (const char *)data, size };
	struct debuginfo_id id;
	enum debuginfo_origin origin;
	enum debuginfo_kind kind;
	bool of_path;

	for (int k = 0; k < DEBUGINFO_ID_KINDS; k++)
		try_key((enum debuginfo_id_kind)k, s);
	if (debuginfo_id_of_stem(s, &id))
		try_key((enum debuginfo_id_kind)id.kind, debuginfo_id_text(&id));
	if (queued_name_parse(s, &id, &kind, &origin, &of_path))
		require(kind < DEBUGINFO_KINDS && origin < DEBUGINFO_ORIGINS);
	try_stamps(s);
	with_checksum(s);
	return 0;
}
