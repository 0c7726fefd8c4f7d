#include "tests/tsdb/debuginfo/oracle/bundles.h"

#include <glob.h>
#include <stdio.h>

#include "tsdb/debuginfo/elf/bundle.h"

static bool bundles_read(struct buf *out, const char *path)
{
	char chunk[4096];
	FILE *f = fopen(path, "rbe");
	size_t n;

	if (!f)
		return false;
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(out, chunk, n);
	fclose(f);
	return out->len && !buf_failed(out);
}

static bool bundles_add(struct bundle_writer *w, struct buf *out, const char *path)
{
	static const char zeros[8] = { 0 };
	struct str name = str_of(path);
	enum bundle_kind kind = str_has_suffix(name,
		STR(".dwp")) ? BUNDLE_DWP :
					   str_has_suffix(name, STR(".dwo")) ||
						   str_has_suffix(name, STR(".o")) ? BUNDLE_DWO : BUNDLE_ALT;
	struct buf bytes = { 0 };
	struct err err;
	size_t padding;
	bool ok = bundles_read(&bytes, path) && !bundle_next(w, kind, bytes.len, &padding, &err);

	if (ok) {
		buf_add(out, zeros, padding);
		buf_add_str(out, buf_str(&bytes));
	}
	buf_release(&bytes);
	return ok;
}

bool oracle_bundle(struct buf *out, const char *dir, const char *binary, const char *pattern)
{
	struct bundle_writer w;
	char path[256];
	glob_t found;
	struct err err;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, binary);
	ok = bundles_read(out, path);
	snprintf(path, sizeof(path), "%s/%s", dir, pattern);
	if (!ok || glob(path, 0, NULL, &found))
		return false;
	bundle_begin(&w, out->len);
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok = bundles_add(&w, out, found.gl_pathv[i]);
	globfree(&found);
	if (bundle_end(&w, out, &err))
		ok = false;
	return ok;
}
