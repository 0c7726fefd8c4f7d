#include "scrape/body.h"

#include <assert.h>
#include <inttypes.h>
#include <zlib.h>

#include "base/array.h"
#include "base/gzip/gzip.h"
#include "base/quote.h"
#include "scrape/refusal.h"

/* ---- the transport's compression ---- */

/* Inflated bytes in an arena. */
struct body_inflated {
	struct arena *arena;
	char *v;
	size_t n, cap;
};

/* room: the first allocation. If it has a byte to spare at the end, nothing was copied. */
static enum err_code body_inflate_all(
	z_stream *stream, size_t room, size_t max, struct body_inflated *out, struct err *err)
{
	int rc;

	for (;;) {
		if (!arena_array_room(out->arena, &out->v, out->n, out->n ? 1 : room, &out->cap))
			return arena_fail(out->arena, "profile", err);
		room = out->cap - out->n;
		if (room > max + 1 - out->n)
			room = max + 1 - out->n; /* one byte more than allowed shows that there is more */
		stream->next_out = (unsigned char *)out->v + out->n;
		stream->avail_out = (unsigned)room;
		rc = inflate(stream, Z_NO_FLUSH);
		out->n += room - stream->avail_out;
		if (out->n > max)
			return err_set(
				err, ERR_LIMIT, "profile inflates to more than its limit of %zu bytes", max);
		if (rc == Z_STREAM_END && stream->avail_in == 0)
			return ERR_OK;
		if (rc == Z_STREAM_END) { /* a further member */
			if (inflateReset(stream) == Z_OK)
				continue;
			rc = Z_STREAM_ERROR;
		}
		if (rc == Z_BUF_ERROR || (rc == Z_OK && stream->avail_in == 0 && stream->avail_out != 0))
			return err_set(err, ERR_INVALID, "Content-Encoding gzip: the body is cut short");
		if (rc != Z_OK)
			return err_set(err, ERR_INVALID, "Content-Encoding gzip: %s",
				stream->msg ? stream->msg : "damaged body");
	}
}

static enum err_code body_gunzip(
	struct str in, size_t max, struct body_inflated *out, struct err *err)
{
	z_stream z = { .avail_in = (unsigned)in.len };
	const unsigned char *at = (const unsigned char *)in.ptr;
	size_t hint = gzip_raw_hint(in);
	enum err_code rc;

	if (in.len > UINT32_MAX || max > UINT32_MAX - 1)
		return err_set(err, ERR_LIMIT, "profile is %zu bytes, limit %u", in.len, UINT32_MAX);
	memcpy(&z.next_in, &at, sizeof(at)); /* zlib reads through a pointer it does not call const */
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return err_nomem(err, "profile");
	rc = body_inflate_all(&z, (hint < max ? hint : max) + 1, max, out, err);
	inflateEnd(&z);
	return rc;
}

enum err_code body_undo_transport(struct arena *a, struct str encoding,
	const struct pprof_limits *limits, struct str *body, struct err *err)
{
	struct body_inflated out = { .arena = a };
	enum err_code rc;

	encoding = str_trim(encoding);
	if (encoding.len == 0 || refusal_type_is(encoding, "identity"))
		return ERR_OK;
	if (!refusal_type_is(encoding, "gzip") && !refusal_type_is(encoding, "x-gzip"))
		return err_set(
			err, ERR_UNSUPPORTED, "Content-Encoding %s is not supported", QUOTED(encoding));
	if ((rc = body_gunzip(*body, limits->raw_bytes_max, &out, err)))
		return rc;
	*body = (struct str){ out.v, out.n };
	return ERR_OK;
}

/* ---- bodies that are no profile ---- */

static bool body_is_textual(struct str content_type)
{
	return str_has_prefix_nocase(content_type, STR("text/")) ||
		refusal_type_is(content_type, "application/json") ||
		refusal_type_is(content_type, "application/xml");
}

/* Replaces the decoder's message if the kind of body says more. */
static enum err_code body_explain(
	struct str body, struct str content_type, enum err_code rc, struct err *err)
{
	static const struct foreign page = { .what = "a web page" };
	const struct foreign *f = foreign_recognize(body);
	char text[REFUSAL_TEXT_BYTES];

	if (rc != ERR_INVALID)
		return rc;
	if (!f && refusal_type_is(content_type, "text/html"))
		f = &page;
	if (f)
		return err_set(err, ERR_INVALID, "target answers %s (Content-Type %s), not a profile%s%s",
			f->what, QUOTED(content_type), f->advice ? ": " : "", f->advice ? f->advice : "");
	if (body_is_textual(content_type)) {
		refusal_text(text, body);
		return err_set(
			err, ERR_INVALID, "target answers %s, not a profile: %s", QUOTED(content_type), text);
	}
	return err_wrap(err, rc, "not a profile (Content-Type %s)", QUOTED(content_type));
}

enum err_code body_decode(struct arena *a, struct str body, struct str content_type,
	struct str content_encoding, const struct pprof_limits *limits, struct body *out,
	struct err *err)
{
	struct legacy_any *any = &out->any;
	struct str raw;
	enum err_code rc;

	if ((rc = body_undo_transport(a, content_encoding, limits, &body, err)))
		return rc;
	if ((rc = pprof_inflate(a, body, limits, &raw, err)))
		return body_explain(body, content_type, rc, err);
	if ((rc = legacy_decode_any(a, raw, limits, any, err)))
		return any->is_legacy ? rc : body_explain(raw, content_type, rc, err);
	out->raw = raw;
	return ERR_OK;
}

/* ---- limits of the job ---- */

static enum err_code body_check_label(struct str series, struct str name, struct str value,
	const struct scrape_config *job, struct err *err)
{
	if (job->label_name_length_limit && name.len > job->label_name_length_limit)
		return err_set(err, ERR_LIMIT,
			"label_name_length_limit exceeded (metric: %.50s, label name: "
			"%.50s, length: %zu, limit: %" PRIu64 ")",
			QUOTED(series), QUOTED(name), name.len, job->label_name_length_limit);
	if (job->label_value_length_limit && value.len > job->label_value_length_limit)
		return err_set(err, ERR_LIMIT,
			"label_value_length_limit exceeded (metric: %.50s, label name: "
			"%.50s, value: %.50s, length: %zu, limit: %" PRIu64 ")",
			QUOTED(series), QUOTED(name), QUOTED(value), value.len, job->label_value_length_limit);
	return ERR_OK;
}

enum err_code body_check_limits(
	const struct pprof *p, struct labels labels, const struct scrape_config *job, struct err *err)
{
	struct str series = labels_get(labels, STR(LABEL_NAME));
	uint32_t most = 0;
	enum err_code rc;

	if (job->sample_limit && p->samples_n > job->sample_limit)
		return err_set(err, ERR_LIMIT,
			"sample limit exceeded (number of samples: %u, limit: %" PRIu64 ")", p->samples_n,
			job->sample_limit);
	for (uint32_t i = 0; i < p->samples_n; i++)
		if (p->samples[i].label_n > most)
			most = p->samples[i].label_n;
	if (job->label_limit && labels.n + most > job->label_limit)
		return err_set(err, ERR_LIMIT,
			"label_limit exceeded (metric: %.50s, number of labels: %zu, "
			"limit: %" PRIu64 ")",
			QUOTED(series), labels.n + most, job->label_limit);
	if (!job->label_name_length_limit && !job->label_value_length_limit)
		return ERR_OK;
	for (size_t i = 0; i < labels.n; i++)
		if ((rc = body_check_label(series, labels.v[i].name, labels.v[i].value, job, err)))
			return rc;
	for (uint32_t i = 0; i < p->labels_n; i++)
		if ((rc = body_check_label(
				 series, p->strings[p->labels[i].key], p->strings[p->labels[i].str], job, err)))
			return rc;
	return ERR_OK;
}
