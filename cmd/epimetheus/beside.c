#include "cmd/epimetheus/beside.h"

#include "base/fs.h"
#include "tsdb/debuginfo/names/index_cache.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "web/files/kept.h"

#define UPLOADS_BYTES_MAX (UINT64_C(4) << 30) /* debug data that waits; one file always may */

static void beside_want_binary(void *ctx, const struct debuginfo_id *id, struct str path)
{
	debuginfo_want(ctx, id, path);
}

enum err_code beside_open_symbols(const struct options *o, struct extractor *extractor,
	struct debuginfo **out, struct index_cache **indexes, struct err *err)
{
	struct debuginfo_service_options d = {
		.fs = &fs_posix,
		.store = { .bytes_max = o->debuginfo_bytes_max,
			.file_bytes_max = o->debuginfo_file_bytes_max,
			.uploads_bytes_max = UPLOADS_BYTES_MAX,
			.free_bytes_min = o->free_bytes_reserve },
		.extractor = extractor,
	};
	struct buf dir = { 0 };
	enum err_code rc;

	if (d.store.uploads_bytes_max < o->debuginfo_file_bytes_max)
		d.store.uploads_bytes_max = o->debuginfo_file_bytes_max;
	buf_printf(&dir, "%s/debuginfo", o->data_dir);
	buf_add_char(&dir, '\0');
	d.dir = dir.ptr;
	rc = buf_failed(&dir) ? err_nomem(err, "symbols") : debuginfo_service_open(&d, out, err);
	buf_release(&dir);
	if (!rc)
		rc = index_cache_open(debuginfo_store(*out), beside_want_binary, *out, indexes, err);
	return rc == ERR_NOT_FOUND ? ERR_IO : rc;
}

enum err_code beside_open_files(const struct options *o, struct kept **out, struct err *err)
{
	struct kept_options k = {
		.fs = &fs_posix,
		.bytes_max = o->files_bytes_max,
		.time_max_ns = o->files_time_max_ns,
		.free_bytes_min = o->free_bytes_reserve,
	};
	struct buf dir = { 0 };
	enum err_code rc;

	if (o->mode != MODE_SERVER)
		return ERR_OK;
	buf_printf(&dir, "%s/files", o->data_dir);
	buf_add_char(&dir, '\0');
	k.dir = dir.ptr;
	rc = buf_failed(&dir) ? err_nomem(err, "files") : kept_open(&k, out, err);
	buf_release(&dir);
	return rc == ERR_NOT_FOUND ? ERR_IO : rc;
}
