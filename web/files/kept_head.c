/*
 * What is known of a kept file, as text: the first line of the file on the disk and in the bucket,
 * and the name of its object. Both have the same words, so a list of the bucket says all of a file
 * but its bytes, and an object that is not the one its name says is noticed.
 */
#include "web/files/kept.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/map.h"
#include "web/files/kept_internal.h"

#define MAGIC "epimetheus-file-1"

static bool kept_name_has(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		c == '_' || c == '-';
}

void kept_file_set_name(struct kept_file *f, struct str name)
{
	size_t n = name.len < KEPT_NAME_BYTES_MAX ? name.len : KEPT_NAME_BYTES_MAX;

	for (size_t i = 0; i < n; i++)
		f->name[i] = kept_name_has(name.ptr[i]) ? name.ptr[i] : '-';
	f->name[n] = '\0';
	if (!n)
		memcpy(f->name, "profile", sizeof("profile"));
}

bool kept_is_id(struct str s)
{
	size_t i = 0;

	while (
		i < s.len && ((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
		i++;
	return i == s.len && s.len == KEPT_ID_BYTES;
}

/* Of what the first line says, too. */
uint64_t kept_checksum(const struct kept_file *f, struct str bytes)
{
	uint64_t seed = hash_bytes(f->name, strlen(f->name), (uint64_t)f->created_ns);

	return hash_bytes(bytes.ptr, bytes.len, seed ^ (uint64_t)f->expires_ns);
}

void kept_head_print(const struct kept_head *h, struct buf *out)
{
	buf_printf(out, MAGIC " %" PRId64 " %" PRId64 " %" PRIu64 " %016" PRIx64 " %s\n",
		h->file.created_ns / NS_PER_S, h->file.expires_ns / NS_PER_S, h->file.bytes, h->checksum,
		h->file.name);
}

void kept_key_print(const struct kept_head *h, struct buf *out)
{
	buf_printf(out, KEPT_PREFIX "%s-%" PRId64 "-%" PRId64 "-%" PRIu64 "-%016" PRIx64 "-%s",
		h->file.id, h->file.created_ns / NS_PER_S, h->file.expires_ns / NS_PER_S, h->file.bytes,
		h->checksum, h->file.name);
}

static bool kept_take_word(struct str *at, char between, struct str *word)
{
	const char *end = at->len ? memchr(at->ptr, between, at->len) : NULL;

	word->ptr = at->ptr;
	word->len = end ? (size_t)(end - at->ptr) : at->len;
	at->len -= word->len + (end ? 1 : 0);
	at->ptr += word->len + (end ? 1 : 0);
	return word->len > 0;
}

static bool kept_take_number(
	struct str *at, char between, unsigned base, uint64_t max, uint64_t *out)
{
	struct str word;
	uint64_t v = 0;

	if (!kept_take_word(at, between, &word) || word.len > 19)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
			c >= 'a' && c <= 'f'              ? (unsigned)(c - 'a') + 10 :
												99;

		if (digit >= base)
			return false;
		v = v * base + digit;
	}
	*out = v;
	return v <= max;
}

/* Times, size, checksum and name. */
static bool kept_take_words(struct str at, char between, struct kept_head *out)
{
	const uint64_t seconds_max = TIME_MAX_NS / NS_PER_S;
	uint64_t created, expires;

	if (!kept_take_number(&at, between, 10, seconds_max, &created) ||
		!kept_take_number(&at, between, 10, seconds_max, &expires) || !expires ||
		!kept_take_number(&at, between, 10, KEPT_FILE_BYTES_MAX, &out->file.bytes) ||
		!kept_take_number(&at, between, 16, UINT64_MAX, &out->checksum) || !at.len ||
		at.len > KEPT_NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < at.len; i++)
		if (!kept_name_has(at.ptr[i]))
			return false;
	kept_file_set_name(&out->file, at);
	out->file.created_ns = (int64_t)created * NS_PER_S;
	out->file.expires_ns = (int64_t)expires * NS_PER_S;
	return true;
}

enum err_code kept_head_parse(struct str bytes, struct kept_head *out, struct err *err)
{
	size_t looked = bytes.len < KEPT_HEAD_BYTES_MAX ? bytes.len : KEPT_HEAD_BYTES_MAX;
	const char *end = looked ? memchr(bytes.ptr, '\n', looked) : NULL;
	struct str at = { bytes.ptr, end ? (size_t)(end - bytes.ptr) : 0 }, magic;

	*out = (struct kept_head){ 0 };
	if (!end || !kept_take_word(&at, ' ', &magic) || !str_is(magic, MAGIC) ||
		!kept_take_words(at, ' ', out))
		return err_set(err, ERR_CORRUPT, "its first line cannot be read");
	out->len = (size_t)(end - bytes.ptr) + 1;
	return ERR_OK;
}

bool kept_key_parse(struct str key, struct kept_head *out)
{
	struct buf line = { 0 };
	struct str at = key, id;

	*out = (struct kept_head){ 0 };
	if (!str_has_prefix(key, STR(KEPT_PREFIX)))
		return false;
	at.ptr += strlen(KEPT_PREFIX);
	at.len -= strlen(KEPT_PREFIX);
	if (!kept_take_word(&at, '-', &id) || !kept_is_id(id) || !kept_take_words(at, '-', out))
		return false;
	memcpy(out->file.id, id.ptr, KEPT_ID_BYTES);
	kept_head_print(out, &line);
	out->len = line.len;
	buf_release(&line);
	return out->len > 0;
}

/* `bytes` begin with the line that `is` came from. */
static enum err_code kept_head_check_size(
	const struct kept_head *is, struct str bytes, struct err *err)
{
	if (bytes.len - is->len == is->file.bytes)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "it has %zu bytes instead of %" PRIu64, bytes.len - is->len,
		is->file.bytes);
}

enum err_code kept_head_verify(
	const struct kept_head *want, struct str whole, struct str *bytes, struct err *err)
{
	struct kept_head is;
	enum err_code rc = kept_head_parse(whole, &is, err);

	if (rc || (rc = kept_head_check_size(&is, whole, err)))
		return rc;
	*bytes = (struct str){ whole.ptr + is.len, whole.len - is.len };
	if (kept_checksum(&is.file, *bytes) != is.checksum)
		return err_set(err, ERR_CORRUPT, "its bytes are not those that were written");
	if (is.checksum != want->checksum || is.file.bytes != want->file.bytes ||
		is.file.created_ns != want->file.created_ns ||
		is.file.expires_ns != want->file.expires_ns || strcmp(is.file.name, want->file.name) != 0)
		return err_set(err, ERR_CORRUPT, "it is another file");
	return ERR_OK;
}
