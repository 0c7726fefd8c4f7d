#include "base/gzip/gzip.h"
#include "proto/pprof.h"

enum err_code pprof_inflate(struct arena *a, struct str body, const struct pprof_limits *limits,
	struct str *out, struct err *err)
{
	struct str raw = body;
	enum err_code rc;

	if (body.len > limits->body_bytes_max)
		return err_set(
			err, ERR_LIMIT, "profile is %zu bytes, limit %zu", body.len, limits->body_bytes_max);
	if (gzip_is(body)) {
		if ((rc = gzip_inflate(a, body, "profile", limits->raw_bytes_max, &raw, err)))
			return rc;
		if (gzip_is(raw))
			return err_set(err, ERR_INVALID, "gzip: the profile is compressed twice");
	} else if (body.len > limits->raw_bytes_max) {
		return err_set(
			err, ERR_LIMIT, "profile is %zu bytes, limit %zu", body.len, limits->raw_bytes_max);
	}
	if (!raw.len)
		return err_set(err, ERR_INVALID, "profile is empty");
	*out = raw;
	return ERR_OK;
}
