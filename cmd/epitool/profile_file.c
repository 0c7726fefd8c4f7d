#include "cmd/epitool/profile_file.h"

#include <errno.h>
#include <stdio.h>

#include "base/fs.h"
#include "proto/folded/folded.h"
#include "proto/legacy/legacy.h"

#define PIECE (64u << 10)

static enum err_code read_stdin(size_t max, struct buf *out, struct err *err)
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

	return strcmp(path, "-") ? fs_read_file(path, max, bytes, err) : read_stdin(max, bytes, err);
}

static bool is_folded(const char *path)
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

enum err_code profile_file_decode_any(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err)
{
	const struct folded_meaning meaning = {
		.type = STR("samples"), .unit = STR("count"), .scale = 1 };
	struct pprof_limits limits = pprof_limits_default;
	struct folded_profile *profiles = NULL;
	struct str raw;
	enum err_code rc;
	uint32_t n = 0;

	if (!is_folded(path))
		return profile_file_decode(path, bytes, a, out, err);
	limits.body_bytes_max = limits.raw_bytes_max;
	if (!(rc = pprof_inflate(a, bytes, &limits, &raw, err)))
		rc = folded_decode(a, FOLDED_STACKS, raw, &meaning, &limits, &profiles, &n, err);
	if (rc)
		return err_wrap(err, rc, "%s", path);
	*out = profiles[0].profile;
	return ERR_OK;
}

static bool has_type(const struct pprof *p, const char *type)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		if (str_is(p->strings[p->types[i].type], type))
			return true;
	return false;
}

const char *profile_name_guess(const struct pprof *p, const char *path)
{
	static const struct {
		const char *type, *name;
	} known[] = { { "cpu", "process_cpu" }, { "inuse_space", "memory" },
		{ "alloc_space", "memory" }, { "goroutine", "goroutine" }, { "goroutines", "goroutine" },
		{ "threadcreate", "threadcreate" }, { "wall", "wall" } };
	struct str file = str_base_name(str_of(path));

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_type(p, known[i].type))
			return known[i].name;
	if (has_type(p, "samples") && has_type(p, "time"))
		return "fgprof";
	if (!has_type(p, "contentions"))
		return NULL;
	if (str_find(file, STR("mutex")) >= 0)
		return "mutex";
	return str_find(file, STR("block")) >= 0 ? "block" : NULL;
}
