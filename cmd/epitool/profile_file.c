#include "cmd/epitool/profile_file.h"

#include <errno.h>
#include <stdio.h>

#include "base/fs.h"
#include "proto/pprof.h"

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

enum err_code profile_file_decode(
	const char *path, struct str bytes, struct arena *a, struct any_file *out, struct err *err)
{
	enum err_code rc = any_decode(a, bytes, str_base_name(str_of(path)), out, err);

	return rc ? err_wrap(err, rc, "%s", path) : ERR_OK;
}
