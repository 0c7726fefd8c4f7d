#include <jansson.h>

#include "tsdb/cluster/assignment/assignment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"

#define CHECKSUM_BYTES 31u /* "checksum":"0123456789abcdef"} and the line's end */
#define TOTAL_MAX ASSIGNMENT_SHARDS_MAX

/* ---- owners ---- */

enum err_code assignment_version_make(
	struct assignment_version *v, struct str *shards, uint32_t n, struct arena *a, struct err *err)
{
	v->shards = shards;
	v->n = n;
	if (!(v->hashes = arena_array(a, uint64_t, n + 1)))
		return arena_fail(a, "assignment", err);
	for (uint32_t i = 0; i < n; i++)
		v->hashes[i] = hash_bytes(shards[i].ptr, shards[i].len, 0);
	return ERR_OK;
}

/* If two shards have equal mixes, the first one owns the key. */
uint32_t assignment_owner(const struct assignment_version *v, uint64_t key)
{
	uint64_t best = 0, mix;
	uint32_t owner = 0;

	assert(v->n > 0);
	for (uint32_t i = 0; i < v->n; i++)
		if ((mix = map_hash_u64(key ^ v->hashes[i])) > best) {
			best = mix;
			owner = i;
		}
	return owner;
}

/* ---- finding ---- */

const struct assignment_version *assignment_newest(const struct assignment *list)
{
	return list->versions_n ? &list->versions[list->versions_n - 1] : NULL;
}

const struct assignment_version *assignment_find(const struct assignment *list, uint64_t number)
{
	uint64_t oldest = list->versions_n ? list->versions[0].number : 0;

	return list->versions_n && number >= oldest && number - oldest < list->versions_n ?
		&list->versions[number - oldest] :
		NULL;
}

const struct assignment_version *assignment_at(const struct assignment *list, int64_t ts_ns)
{
	for (uint32_t i = list->versions_n; i-- > 1;)
		if (list->versions[i].since_ns <= ts_ns)
			return &list->versions[i];
	return list->versions_n ? &list->versions[0] : NULL;
}

static bool assignment_has_name(const struct str *names, uint32_t n, struct str name)
{
	uint32_t lo = 0, hi = n, mid;
	int c;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (!(c = str_cmp(names[mid], name)))
			return true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

bool assignment_version_has(const struct assignment_version *v, struct str name)
{
	return assignment_has_name(v->shards, v->n, name);
}

bool assignment_is_drained(const struct assignment *list, struct str name)
{
	return assignment_has_name(list->drained, list->drained_n, name);
}

static int assignment_by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

enum err_code assignment_names(
	const struct assignment *list, struct arena *a, struct str **out, uint32_t *n, struct err *err)
{
	size_t all = 0, kept = 0;
	struct str *v;

	for (uint32_t i = 0; i < list->versions_n; i++)
		all += list->versions[i].n;
	if (!(v = arena_array(a, struct str, all + 1)))
		return arena_fail(a, "assignment", err);
	all = 0;
	for (uint32_t i = 0; i < list->versions_n; i++)
		for (uint32_t k = 0; k < list->versions[i].n; k++)
			v[all++] = list->versions[i].shards[k];
	qsort(v, all, sizeof(*v), assignment_by_name);
	for (size_t i = 0; i < all; i++)
		if (!kept || !str_eq(v[kept - 1], v[i]))
			v[kept++] = v[i];
	*out = v;
	*n = (uint32_t)kept;
	return ERR_OK;
}

/* ---- the text ---- */

static void assignment_add_names(
	struct json *j, const char *key, const struct str *names, uint32_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (uint32_t i = 0; i < n; i++)
		json_str(j, names[i]);
	json_array_end(j);
}

void assignment_print(struct buf *out, const struct assignment *list)
{
	size_t start = out->len;
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "version");
	json_u64(&j, ASSIGNMENT_VERSION);
	json_key(&j, "number");
	json_u64(&j, list->number);
	json_key(&j, "total");
	json_u64(&j, list->total);
	json_key(&j, "secret");
	json_cstr(&j, list->secret);
	if (list->settled) {
		json_key(&j, "settled");
		json_u64(&j, list->settled);
	}
	json_key(&j, "versions");
	json_array_begin(&j);
	for (uint32_t i = 0; i < list->versions_n; i++) {
		const struct assignment_version *v = &list->versions[i];

		json_object_begin(&j);
		json_key(&j, "number");
		json_u64(&j, v->number);
		json_key(&j, "since_ns");
		json_i64(&j, v->since_ns);
		assignment_add_names(&j, "shards", v->shards, v->n);
		json_object_end(&j);
	}
	json_array_end(&j);
	assignment_add_names(&j, "drained", list->drained, list->drained_n);
	json_object_end(&j);
	if (buf_failed(out))
		return;
	out->ptr[out->len - 1] = ','; /* the checksum goes in front of the last brace */
	buf_printf(out, "\"checksum\":\"%016" PRIx64 "\"}\n",
		hash_bytes(out->ptr + start, out->len - start, 0));
}

static enum err_code assignment_wrong(const char *member, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "assignment: member \"%s\" is missing or wrong", member);
}

static enum err_code assignment_check_sum(struct str text, struct err *err)
{
	char want[CHECKSUM_BYTES + 1];
	size_t n;

	if (text.len > ASSIGNMENT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "assignment: %zu bytes, limit %u", text.len,
			(unsigned)ASSIGNMENT_BYTES_MAX);
	if (text.len < CHECKSUM_BYTES)
		return err_set(err, ERR_CORRUPT, "assignment: only %zu bytes", text.len);
	n = text.len - CHECKSUM_BYTES;
	snprintf(want, sizeof(want), "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text.ptr, n, 0));
	return memcmp(text.ptr + n, want, CHECKSUM_BYTES) ?
		err_set(err, ERR_CORRUPT, "assignment: its checksum is wrong") :
		ERR_OK;
}

static bool assignment_read_int(
	const json_t *object, const char *name, int64_t min, int64_t max, int64_t *out)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return false;
	*out = json_integer_value(v);
	return true;
}

static enum err_code assignment_read_names(const json_t *object, const char *member, uint32_t least,
	struct arena *a, struct str **out, uint32_t *n, struct err *err)
{
	const json_t *all = json_object_get(object, member), *v;
	size_t size = json_array_size(all);
	struct str *names, name;

	if (!json_is_array(all) || size < least)
		return assignment_wrong(member, err);
	if (size > ASSIGNMENT_SHARDS_MAX)
		return err_set(err, ERR_LIMIT, "assignment: %zu %s, limit %u", size, member,
			(unsigned)ASSIGNMENT_SHARDS_MAX);
	if (!(names = arena_array(a, struct str, size + 1)))
		return arena_fail(a, "assignment", err);
	for (size_t i = 0; i < size; i++) {
		v = json_array_get(all, i);
		if (!json_is_string(v))
			return assignment_wrong(member, err);
		name = (struct str){ json_string_value(v), json_string_length(v) };
		if (manifest_check_shard(name, NULL) || (i && str_cmp(names[i - 1], name) >= 0))
			return assignment_wrong(member, err);
		if (!(names[i] = str_dup(a, name)).ptr)
			return arena_fail(a, "assignment", err);
	}
	*out = names;
	*n = (uint32_t)size;
	return ERR_OK;
}

static enum err_code assignment_read_versions(
	const json_t *object, struct arena *a, struct assignment *list, struct err *err)
{
	const json_t *all = json_object_get(object, "versions"), *o;
	size_t size = json_array_size(all);
	struct assignment_version *v;
	struct str *shards;
	enum err_code rc;
	int64_t number;
	uint32_t n;

	if (!json_is_array(all) || !size || size > list->number)
		return assignment_wrong("versions", err);
	if (size > ASSIGNMENT_KNOWN_MAX) /* a file of a shard may have more than the object */
		return err_set(err, ERR_LIMIT, "assignment: %zu versions, limit %u", size,
			(unsigned)ASSIGNMENT_KNOWN_MAX);
	if (!(list->versions = arena_array(a, struct assignment_version, size)))
		return arena_fail(a, "assignment", err);
	for (size_t i = 0; i < size; i++) {
		o = json_array_get(all, i);
		v = &list->versions[i];
		if (!assignment_read_int(o, "number", 1, INT64_MAX, &number) ||
			(uint64_t)number != list->number - (size - 1 - i) ||
			!assignment_read_int(o, "since_ns", 0, TIME_MAX_NS, &v->since_ns))
			return assignment_wrong("versions", err);
		v->number = (uint64_t)number;
		if ((rc = assignment_read_names(o, "shards", 1, a, &shards, &n, err)) ||
			(rc = assignment_version_make(v, shards, n, a, err)))
			return rc;
	}
	list->versions_n = (uint32_t)size;
	return ERR_OK;
}

static bool assignment_is_secret(const json_t *value)
{
	struct str s = { json_string_value(value), json_string_length(value) };

	if (!json_is_string(value) || s.len != ASSIGNMENT_SECRET_LEN)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!s.ptr[i] || !strchr("0123456789abcdef", s.ptr[i]))
			return false;
	return true;
}

static enum err_code assignment_read(
	const json_t *object, struct arena *a, struct assignment *list, struct err *err)
{
	const json_t *secret = json_object_get(object, "secret");
	enum err_code rc;
	int64_t v;

	if (!assignment_read_int(object, "version", 0, INT64_MAX, &v))
		return assignment_wrong("version", err);
	if (v != ASSIGNMENT_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"assignment: version %" PRId64 " was written by another program; this one reads "
			"version %d",
			v, ASSIGNMENT_VERSION);
	if (!assignment_read_int(object, "number", 1, INT64_MAX, &v))
		return assignment_wrong("number", err);
	list->number = (uint64_t)v;
	if (!assignment_read_int(object, "total", 0, TOTAL_MAX, &v))
		return assignment_wrong("total", err);
	list->total = (uint64_t)v;
	if (json_object_get(object, "settled")) {
		if (!assignment_read_int(object, "settled", 0, (int64_t)list->number, &v))
			return assignment_wrong("settled", err);
		list->settled = (uint64_t)v;
	}
	if (!assignment_is_secret(secret))
		return assignment_wrong("secret", err);
	memcpy(list->secret, json_string_value(secret), ASSIGNMENT_SECRET_LEN);
	if ((rc = assignment_read_versions(object, a, list, err)))
		return rc;
	return assignment_read_names(object, "drained", 0, a, &list->drained, &list->drained_n, err);
}

enum err_code assignment_parse(
	struct str text, struct arena *a, struct assignment *out, struct err *err)
{
	json_error_t why;
	enum err_code rc;
	json_t *o;

	*out = (struct assignment){ 0 };
	if ((rc = assignment_check_sum(text, err)))
		return rc;
	if (!(o = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why)))
		return err_set(err, ERR_CORRUPT, "assignment: %d:%d: %s", why.line, why.column, why.text);
	rc = json_is_object(o) ? assignment_read(o, a, out, err) :
							 err_set(err, ERR_CORRUPT, "assignment: no JSON object");
	json_decref(o);
	return rc;
}

enum err_code assignment_get(
	struct bucket *b, struct arena *a, struct assignment *out, char *etag, struct err *err)
{
	struct buf text = { 0 };
	struct bucket_info info;
	enum err_code rc = bucket_get(
		b, STR(ASSIGNMENT_KEY), 0, ASSIGNMENT_BYTES_MAX + 1, &text, &info, err);

	if (!rc && !(rc = assignment_parse(buf_str(&text), a, out, err)) && etag)
		memcpy(etag, info.etag, sizeof(info.etag));
	buf_release(&text);
	return rc;
}
