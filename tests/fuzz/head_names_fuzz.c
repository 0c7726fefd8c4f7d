/*
 * fuzz: tsdb
 * The files beside a window, as a damaged disk could return them: its mark and its second copy of
 * small records, with their own checksums, and the copy with a right one at its head and on each
 * record that the input is cut into. Records come out in order, each key once, and can be found.
 */
#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/columns/chunk_bits.h"
#include "tsdb/columns/varints.h"
#include "tsdb/head/head_internal.h"

#define START_NS INT64_C(7200000000000)

static size_t try(struct str bytes)
{
	struct names_file f = { 0 };
	struct head_name found;
	struct err err;
	size_t n;

	require(!head_names_parse(START_NS, bytes, &f, &err) || err.code == ERR_NOMEM);
	for (size_t i = 0; i < f.n; i++) {
		const struct head_name one = head_names_at(&f, i);

		require(!i || str_cmp(head_names_at(&f, i - 1).key, one.key) < 0);
		require(head_names_find(&f, one.key, &found) && found.record.ptr == one.record.ptr);
	}
	require(!head_names_find(&f, STR("x"), &found));
	n = f.n;
	head_names_release(&f);
	return n;
}

/* A record of one kind with a key of up to 7 bytes more, the first bytes of the input. */
static size_t add_record(const uint8_t *data, size_t size, uint64_t identity, struct buf *out)
{
	static const char kinds[] = "mnpst";
	char key[8] = { kinds[data[0] % 5] };
	size_t n = 1 + (data[0] >> 4) % 8, value_n;
	struct buf value = { 0 };
	uint64_t seed;

	n = n < size ? n : size;
	memcpy(key + 1, data + 1, n - 1);
	value_n = n < size ? data[n] % (size - n) : 0;
	buf_add(&value, data + n, value_n);
	seed = hash_bytes(key, n, key[0] == 'm' ? 0 : identity);
	buf_add_u32be(&value, (uint32_t)hash_bytes(value.ptr, value.len, seed));
	buf_add_lenstr(out, (struct str){ key, n });
	buf_add_lenstr(out, buf_str(&value));
	buf_release(&value);
	return n + value_n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct buf b = { 0 };
	struct head_mark mark;
	size_t added = 0, got;

	(void)!head_parse_mark(START_NS, bytes, &mark);
	try(bytes);
	buf_add_char(&b, 1);
	buf_add_u64be(&b, 99);
	buf_add_u64be(&b, hash_bytes(b.ptr, 9, (uint64_t)START_NS));
	for (size_t at = 0; at < size; added++)
		at += add_record(data + at, size - at, 99, &b);
	got = try(buf_str(&b));
	require(got <= added && (got || !added));
	buf_add(&b, data, size);
	require(try(buf_str(&b)) >= got);
	buf_release(&b);
	return 0;
}
