#include "web/profefe/notation.h"

#include <string.h>

#include "base/clock.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "proto/base64.h"

#define ID_HEAD_BYTES 16u /* time and hash, big-endian */
#define TIME_BYTES_MAX 64u
#define YEAR_MIN 1824
#define YEAR_MAX 2115
#define GO_ZERO "0001-01-01T00:00:00" /* no time in Go */

/* ---- types ---- */

const struct profefe_type profefe_types[] = { { "cpu", "process_cpu" }, { "heap", "memory" },
	{ "block", "block" }, { "mutex", "mutex" }, { "goroutine", "goroutine" },
	{ "threadcreate", "threadcreate" } };
const size_t profefe_types_n = sizeof(profefe_types) / sizeof(profefe_types[0]);

const char *profefe_profile_of(struct str type)
{
	for (size_t i = 0; i < profefe_types_n; i++)
		if (str_is(type, profefe_types[i].name))
			return profefe_types[i].profile;
	return str_is(type, PROFEFE_OTHER) ? PROFEFE_OTHER : NULL;
}

const char *profefe_type_of(struct str profile)
{
	for (size_t i = 0; i < profefe_types_n; i++)
		if (str_is(profile, profefe_types[i].profile))
			return profefe_types[i].name;
	return PROFEFE_OTHER;
}

/* ---- times ---- */

static size_t profefe_digits(struct str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n;
}

static struct str profefe_skip(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* Moves digits, from `least` to `most` of them, padded with zeros, and the character behind. */
static bool profefe_take(
	struct str *from, struct buf *to, size_t least, size_t most, const char *behind)
{
	size_t n = profefe_digits(*from);

	if (n < least || n > most)
		return false;
	for (size_t i = n; i < most; i++)
		buf_add_char(to, '0');
	buf_add(to, from->ptr, n);
	*from = profefe_skip(*from, n);
	if (!*behind)
		return true;
	if (!from->len || from->ptr[0] != *behind)
		return false;
	buf_add_char(to, *behind);
	*from = profefe_skip(*from, 1);
	return true;
}

/* As RFC 3339 has it. */
static bool profefe_normalize(struct str s, struct buf *to)
{
	if (s.len > TIME_BYTES_MAX || !profefe_take(&s, to, 4, 4, "-") ||
		!profefe_take(&s, to, 2, 2, "-") || !profefe_take(&s, to, 2, 2, "T") ||
		!profefe_take(&s, to, 1, 2, ":") || !profefe_take(&s, to, 2, 2, ":") ||
		!profefe_take(&s, to, 2, 2, ""))
		return false;
	if (s.len > 1 && (s.ptr[0] == '.' || s.ptr[0] == ',') && profefe_digits(profefe_skip(s, 1))) {
		buf_add_char(to, '.');
		s = profefe_skip(s, 1);
		buf_add(to, s.ptr, profefe_digits(s));
		s = profefe_skip(s, profefe_digits(s));
	}
	buf_add_str(to, s.len ? s : STR("Z"));
	return true;
}

/*
 * Go takes all years, our times are of few. A time that is further away is the first or the last of
 * ours; it is checked in a year that is as long.
 */
static int profefe_far_year(struct buf *rfc3339)
{
	int year = 0, same;

	for (size_t i = 0; i < 4; i++)
		year = year * 10 + (rfc3339->ptr[i] - '0');
	if (year >= YEAR_MIN && year <= YEAR_MAX)
		return 0;
	same = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 2000 : 2001;
	memcpy(rfc3339->ptr, same == 2000 ? "2000" : "2001", 4);
	return year < YEAR_MIN ? -1 : 1;
}

enum err_code profefe_time_parse(struct str text, int64_t *out_ns, struct err *err)
{
	struct buf rfc3339 = { 0 };
	enum err_code rc;
	int far;

	if (!profefe_normalize(text, &rfc3339) || str_has_prefix(text, STR(GO_ZERO))) {
		rc = err_set(err, ERR_INVALID, "time in unsupported format %s: want 2006-01-02T15:04:05",
			QUOTED(text));
	} else if (buf_failed(&rfc3339)) {
		rc = err_nomem(err, "time");
	} else {
		far = profefe_far_year(&rfc3339);
		rc = time_parse(buf_str(&rfc3339), out_ns, err);
		if (!rc && far)
			*out_ns = far * TIME_MAX_NS;
	}
	buf_release(&rfc3339);
	return rc;
}

void profefe_time_print(struct buf *out, int64_t ns)
{
	int64_t part = ns % NS_PER_S;
	size_t from = out->len;

	time_print_rfc3339(out, ns - part - (part < 0 ? NS_PER_S : 0));
	if (!buf_failed(out) && out->len - from > 5) { /* ".000Z" */
		out->len -= 5;
		buf_add_char(out, 'Z');
	}
}

/* ---- labels ---- */

static bool profefe_is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static enum err_code profefe_unescape(
	struct arena *a, struct str s, struct str *out, struct err *err)
{
	char *to;

	s = str_trim(s);
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '%' &&
			(s.len - i < 3 || !profefe_is_hex(s.ptr[i + 1]) || !profefe_is_hex(s.ptr[i + 2])))
			return err_set(err, ERR_INVALID, "invalid URL escape %s",
				QUOTED(((struct str){ s.ptr + i, s.len - i < 3 ? s.len - i : 3 })));
	if (!(to = arena_alloc_raw(a, s.len + 1, 1)))
		return arena_fail(a, "labels", err);
	*out = (struct str){ to, percent_decode_form(to, s) };
	return ERR_OK;
}

/* What is in front of the first `by`, which goes; *rest is what is behind. */
static struct str profefe_cut(struct str s, char by, struct str *rest)
{
	const char *at = s.len ? memchr(s.ptr, by, s.len) : NULL;
	size_t n = at ? (size_t)(at - s.ptr) : s.len;

	*rest = profefe_skip(s, at ? n + 1 : n);
	return (struct str){ s.ptr, n };
}

enum err_code profefe_labels_parse(
	struct arena *a, struct str text, struct label **out, size_t *n, struct err *err)
{
	struct label *v = arena_array(a, struct label, PROFEFE_LABELS_MAX), l;
	struct str part, value;
	enum err_code rc;

	*n = 0;
	if (!v)
		return arena_fail(a, "labels", err);
	while (text.len) {
		part = profefe_cut(profefe_cut(text, ',', &text), '=', &value);
		if ((rc = profefe_unescape(a, part, &l.name, err)))
			return rc;
		if (!l.name.len)
			continue;
		if ((rc = profefe_unescape(a, value, &l.value, err)))
			return rc;
		if (*n == PROFEFE_LABELS_MAX)
			return err_set(err, ERR_LIMIT, "more than %u labels", PROFEFE_LABELS_MAX);
		v[(*n)++] = l;
	}
	*out = v;
	return ERR_OK;
}

/* ---- ids ---- */

struct str profefe_service_of(struct labels series)
{
	struct str service = labels_get(series, STR("service_name"));

	return service.len ? service : labels_get(series, STR("job"));
}

struct profefe_id profefe_id_of(struct labels series, int64_t ts_ns)
{
	return (struct profefe_id){ ts_ns, labels_hash(series), profefe_service_of(series) };
}

void profefe_id_print(struct buf *out, const struct profefe_id *id)
{
	struct buf bytes = { 0 };
	size_t from = out->len;

	buf_add_u64be(&bytes, (uint64_t)id->ts_ns);
	buf_add_u64be(&bytes, id->series);
	buf_add_str(&bytes, id->service);
	base64_add(out, buf_str(&bytes));
	if (buf_failed(&bytes))
		out->failed = true;
	buf_release(&bytes);
	while (!buf_failed(out) && out->len > from && out->ptr[out->len - 1] == '=')
		out->len--;
	for (size_t i = from; i < out->len; i++) /* of a path, and + is between ids */
		out->ptr[i] = out->ptr[i] == '+' ? '-' : out->ptr[i] == '/' ? '_' : out->ptr[i];
}

static uint64_t profefe_u64be(const char *text)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v = v << 8 | (unsigned char)text[i];
	return v;
}

static enum err_code profefe_parse_id(
	struct arena *a, struct str text, struct profefe_id *out, struct err *err)
{
	char *bytes;
	size_t n;

	if (text.len > (ID_HEAD_BYTES + PROFEFE_SERVICE_BYTES_MAX) * 4 / 3 + 4)
		return err_set(err, ERR_INVALID, "bad profile id of %zu bytes", text.len);
	if (!(bytes = arena_alloc_raw(a, text.len + 1, 1)))
		return arena_fail(a, "profile id", err);
	if (!base64_decode(text, bytes, &n) || n < ID_HEAD_BYTES)
		return err_set(err, ERR_INVALID, "bad profile id %s", QUOTED(text));
	*out = (struct profefe_id){ (int64_t)profefe_u64be(bytes), profefe_u64be(bytes + 8),
		{ bytes + ID_HEAD_BYTES, n - ID_HEAD_BYTES } };
	if (out->ts_ns > TIME_MAX_NS || out->ts_ns <= -TIME_MAX_NS)
		return err_set(
			err, ERR_INVALID, "bad profile id %s: its time is out of range", QUOTED(text));
	return ERR_OK;
}

enum err_code profefe_ids_parse(
	struct arena *a, struct str text, struct profefe_id **out, size_t *n, struct err *err)
{
	size_t count = 1;
	enum err_code rc;

	for (size_t i = 0; i < text.len; i++)
		count += text.ptr[i] == '+';
	if (count > PROFEFE_IDS_MAX)
		return err_set(err, ERR_LIMIT, "%zu profile ids, limit %u", count, PROFEFE_IDS_MAX);
	if (!(*out = arena_array(a, struct profefe_id, count)))
		return arena_fail(a, "profile ids", err);
	for (*n = 0; *n < count; (*n)++) {
		struct str part = profefe_cut(text, '+', &text);

		if (!part.len)
			return err_set(
				err, ERR_INVALID, "%s", count > 1 ? "empty profile id" : "no profile id");
		if ((rc = profefe_parse_id(a, part, &(*out)[*n], err)))
			return rc;
	}
	return ERR_OK;
}
