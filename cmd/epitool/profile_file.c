#include "cmd/epitool/profile_file.h"

#include <errno.h>
#include <stdio.h>

#include "base/fs.h"
#include "proto/any/any.h"
#include "proto/legacy/legacy.h"

#define PIECE (64u << 10)

static enum err_code profile_file_read_stdin(size_t max, struct buf *out, struct err *err)
{
	size_t n;

	do {
		if (!buf_reserve(out, PIECE))
			return err_nomem(err, "standard input");
		n = fread(out->ptr + out->len, 1, PIECE, stdin);
		out->len += n;
		if (out->len > max)
			return err_set(err, ERR_LIMIT, "standard input: more than %zu bytes", max);
	} while (n > 0);
	return ferror(stdin) ? err_errno(err, errno, "standard input") : ERR_OK;
}

enum err_code profile_file_read(const char *path, struct buf *bytes, struct err *err)
{
	size_t max = pprof_limits_default.raw_bytes_max;

	return strcmp(path, "-") ? fs_read_file(path, max, bytes, err) :
							   profile_file_read_stdin(max, bytes, err);
}

static bool profile_file_is_folded(const char *path)
{
	struct str s = str_of(path);

	s.len -= str_has_suffix(s, STR(".gz")) ? 3 : 0;
	return str_has_suffix(s, STR(".folded")) || str_has_suffix(s, STR(".collapsed"));
}

enum err_code profile_file_decode(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct legacy_any any = { 0 };
	struct str raw;
	enum err_code rc;

	limits.body_bytes_max = limits.raw_bytes_max;
	if ((rc = pprof_inflate(a, bytes, &limits, &raw, err)))
		return err_wrap(err, rc, "%s", path);
	if ((rc = legacy_decode_any(a, raw, &limits, &any, err)))
		return err_wrap(err, rc, "%s%s", path, /* a format before pprof names itself */
			rc == ERR_INVALID && !any.is_legacy ? ": it is no profile" : "");
	*out = any.profile;
	return ERR_OK;
}

/* The error is that of the format that the file is of; of no format, that of pprof. */
enum err_code profile_file_decode_any(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err)
{
	struct any_file any;
	struct err why;
	enum err_code rc = ERR_INVALID;

	if (!profile_file_is_folded(path) &&
		(rc = profile_file_decode(path, bytes, a, out, err)) != ERR_INVALID)
		return rc;
	if (!(rc = any_decode(a, bytes, str_base_name(str_of(path)), &any, &why))) {
		*out = any_default(&any)->pprof;
		return ERR_OK;
	}
	if (!profile_file_is_folded(path) && any.format != ANY_JFR && any.format != ANY_SPEEDSCOPE)
		return ERR_INVALID;
	err_copy(err, &why);
	return err_wrap(err, rc, "%s", path);
}
