#include "cmd/epimetheus/side_parts.h"

#include "base/clock.h"
#include "base/fs.h"
#include "cmd/epimetheus/storage.h"
#include "promql/rules/saved/saved_rules.h"
#include "tsdb/debuginfo/names/index_cache.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "tsdb/debuginfo/shared/shared.h"
#include "web/files/kept.h"

#define UPLOADS_BYTES_MAX (UINT64_C(4) << 30) /* debug data that waits; one file always may */

static void side_parts_want_binary(void *ctx, const struct debuginfo_id *id, struct str path)
{
	debuginfo_want(ctx, id, path);
}

static enum err_code side_parts_open_debuginfo(
	const struct options *o, struct extractor *extractor, struct side_parts *p, struct err *err)
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
	rc = buf_failed(&dir) ? err_nomem(err, "symbols") :
							debuginfo_service_open(&d, &p->debuginfo, err);
	buf_release(&dir);
	return rc ? rc :
				index_cache_open(debuginfo_store(p->debuginfo), side_parts_want_binary,
					p->debuginfo, &p->indexes, err);
}

/* Members of a cluster have their symbols in common. */
static enum err_code side_parts_open_shared(struct side_parts *p, struct err *err)
{
	const struct shared_symbols_options o = { .bucket = p->bucket, .debuginfo = p->debuginfo };

	return p->bucket ? shared_symbols_open(&o, &p->shared, err) : ERR_OK;
}

/* Members of a cluster have them in the bucket; a caretaker has none. */
static enum err_code side_parts_open_files(
	const struct options *o, struct side_parts *p, struct err *err)
{
	struct kept_options k = {
		.fs = &fs_posix,
		.bytes_max = o->files_bytes_max,
		.time_max_ns = o->files_time_max_ns,
		.free_bytes_min = o->free_bytes_reserve,
		.bucket = p->bucket,
		.removes = o->enable_files,
	};
	struct buf dir = { 0 };
	enum err_code rc;

	if (o->mode == MODE_COMPACT)
		return ERR_OK;
	buf_printf(&dir, "%s/files", o->data_dir);
	buf_add_char(&dir, '\0');
	k.dir = dir.ptr;
	rc = buf_failed(&dir) ? err_nomem(err, "files") : kept_open(&k, &p->files, err);
	buf_release(&dir);
	return rc;
}

/* They run without --web.enable-rules too. */
static enum err_code side_parts_open_saved(
	const struct options *o, struct side_parts *p, struct err *err)
{
	struct saved_rules_options s = { .fs = &fs_posix, .free_bytes_min = o->free_bytes_reserve };
	struct str data = str_of(o->data_dir);
	struct buf dir = { 0 };
	enum err_code rc;

	if (o->mode != MODE_SERVER)
		return ERR_OK;
	while (data.len > 1 && data.ptr[data.len - 1] == '/')
		data.len--;
	buf_printf(&dir, STR_FMT "/rules%c", STR_ARG(data), '\0');
	s.dir = dir.ptr;
	rc = buf_failed(&dir) ? err_nomem(err, "saved rules") : saved_rules_open(&s, &p->saved, err);
	buf_release(&dir);
	return rc;
}

enum err_code side_parts_open(const struct options *o, struct extractor *extractor,
	struct storage *storage, struct side_parts *p, struct err *err)
{
	enum err_code rc;

	p->bucket = storage_side_bucket(storage);
	if (!(rc = side_parts_open_debuginfo(o, extractor, p, err)) &&
		!(rc = side_parts_open_shared(p, err)) && !(rc = side_parts_open_files(o, p, err)))
		rc = side_parts_open_saved(o, p, err);
	return rc == ERR_NOT_FOUND ? ERR_IO : rc;
}

void side_parts_stop(struct side_parts *p)
{
	if (p->debuginfo)
		debuginfo_stop(p->debuginfo);
	if (p->bucket)
		bucket_cancel(p->bucket, clock_monotonic_ns());
}

void side_parts_close(struct side_parts *p)
{
	shared_symbols_close(p->shared);
	index_cache_close(p->indexes);
	debuginfo_service_close(p->debuginfo);
	kept_close(p->files);
	saved_rules_close(p->saved);
	*p = (struct side_parts){ 0 };
}
