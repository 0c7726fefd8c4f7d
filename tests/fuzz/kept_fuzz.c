/*
 * fuzz: web/files
 * The beginning of a kept file, and a key of the bucket, of any bytes: what is read is written
 * again as it was, but for zeros in front of numbers, and reads back the same.
 */
#include "tests/fuzz/fuzz.h"
#include "web/files/kept.h"

static void try_key(struct str key)
{
	struct kept_head head, again;
	struct buf out = { 0 };

	if (!kept_key_parse(key, &head))
		return;
	require(strlen(head.file.id) == KEPT_ID_BYTES && kept_is_id(str_of(head.file.id)));
	require(head.len > 0 && head.len <= KEPT_HEAD_BYTES_MAX && head.file.expires_ns > 0);
	kept_key_print(&head, &out);
	require(kept_key_parse(buf_str(&out), &again) && again.len == head.len);
	require(!strcmp(again.file.id, head.file.id) && !strcmp(again.file.name, head.file.name));
	require(again.checksum == head.checksum && again.file.bytes == head.file.bytes &&
		again.file.created_ns == head.file.created_ns &&
		again.file.expires_ns == head.file.expires_ns);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct kept_head head, again;
	struct buf out = { 0 };
	struct err err = { 0 };

	try_key(bytes);
	if (kept_head_parse(bytes, &head, &err)) {
		require(err.msg[0]);
		return 0;
	}
	require(head.len <= size && head.len <= KEPT_HEAD_BYTES_MAX);
	require(head.file.name[0] && strlen(head.file.name) <= KEPT_NAME_BYTES_MAX);
	require(head.file.created_ns >= 0 && head.file.expires_ns >= 0);
	kept_head_print(&head, &out);
	require(!kept_head_parse(buf_str(&out), &again, &err) && again.len == out.len);
	require(!strcmp(again.file.name, head.file.name) && again.checksum == head.checksum);
	require(again.file.bytes == head.file.bytes && again.file.created_ns == head.file.created_ns &&
		again.file.expires_ns == head.file.expires_ns);
	(void)kept_checksum(&head.file, bytes);
	buf_release(&out);
	return 0;
}
