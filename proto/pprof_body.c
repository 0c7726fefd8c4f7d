#include "base/gzip/gzip.h"
#include "base/gzip/lz4.h"
#include "base/gzip/zstd.h"
#include "proto/pprof.h"

/* What profiles are compressed by. */
static const struct pprof_body_coding {
	const char *name;
	bool (*is)(struct str body);
	enum err_code (*inflate)(struct arena *a, struct str body, const char *what, size_t raw_max,
		struct str *out, struct err *err);
} pprof_body_codings[] = {
	{ "gzip", gzip_is, gzip_inflate },
	{ "zstd", zstd_is, zstd_inflate },
	{ "lz4", lz4_is, lz4_inflate },
};

static const struct pprof_body_coding *pprof_body_coding_of(struct str body)
{
	for (size_t i = 0; i < sizeof(pprof_body_codings) / sizeof(pprof_body_codings[0]); i++)
		if (pprof_body_codings[i].is(body))
			return &pprof_body_codings[i];
	return NULL;
}

enum err_code pprof_inflate(struct arena *a, struct str body, const struct pprof_limits *limits,
	struct str *out, struct err *err)
{
	const struct pprof_body_coding *coding = pprof_body_coding_of(body), *inner;
	struct str raw = body;
	enum err_code rc;

	if (body.len > limits->body_bytes_max)
		return err_set(
			err, ERR_LIMIT, "profile is %zu bytes, limit %zu", body.len, limits->body_bytes_max);
	if (coding) {
		if ((rc = coding->inflate(a, body, "profile", limits->raw_bytes_max, &raw, err)))
			return rc;
		if ((inner = pprof_body_coding_of(raw)))
			return err_set(err, ERR_INVALID, "%s: the profile is compressed twice", inner->name);
	} else if (body.len > limits->raw_bytes_max) {
		return err_set(
			err, ERR_LIMIT, "profile is %zu bytes, limit %zu", body.len, limits->raw_bytes_max);
	}
	if (!raw.len)
		return err_set(err, ERR_INVALID, "profile is empty");
	*out = raw;
	return ERR_OK;
}
