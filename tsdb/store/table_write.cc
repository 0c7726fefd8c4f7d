/* Tables over LevelDB's TableBuilder: writing. */
extern "C" {
#include "tsdb/store/table.h"
#include "tsdb/store/table_end.h"
}

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <new>
#include <string>

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define WRITE_BYTES (256u << 10) /* per write call */

/* Collects what LevelDB's builder appends into large writes; keeps the first error. */
struct out_file final : leveldb::WritableFile {
	leveldb::Status Append(const leveldb::Slice &data) override;
	leveldb::Status Close() override { return leveldb::Status::OK(); }
	/* Called after each page, for readers of a growing file; there are none. */
	leveldb::Status Flush() override { return leveldb::Status::OK(); }
	leveldb::Status Sync() override { return leveldb::Status::OK(); }
	enum err_code put_out();

	struct fs *fs;
	int fd = -1;
	uint64_t bytes = 0; /* appended */
	char *buffer = nullptr; /* WRITE_BYTES */
	size_t used = 0;
	struct buf *copy = nullptr; /* gets what is appended, too */
	enum err_code rc = ERR_OK;
	struct err err = {};
	XXH3_state_t hash;
};

struct table_writer {
	struct out_file file;
	leveldb::TableBuilder *builder = nullptr;
	bool any = false, finished = false;
	struct buf last = {}; /* key */
	std::string path;
};

enum err_code out_file::put_out()
{
	if (rc || !used)
		return rc;
	rc = fs->ops->write(fs, fd, buffer, used, &err);
	XXH3_64bits_update(&hash, buffer, used);
	used = 0;
	return rc;
}

leveldb::Status out_file::Append(const leveldb::Slice &data)
{
	const char *p = data.data();
	size_t left = data.size(), n;

	if (copy)
		buf_add(copy, p, left);
	bytes += left;
	while (left && !rc) {
		n = left < WRITE_BYTES - used ? left : WRITE_BYTES - used;
		memcpy(buffer + used, p, n);
		used += n;
		p += n;
		left -= n;
		if (used == WRITE_BYTES)
			put_out();
	}
	return rc ? leveldb::Status::IOError(err.msg) : leveldb::Status::OK();
}

enum err_code table_writer_open(
	struct fs *fs, const char *path, struct table_writer **out, struct err *err)
{
	struct table_writer *w = new (std::nothrow) table_writer;
	leveldb::Options o;
	enum err_code rc;

	if (!w || !(w->file.buffer = (char *)malloc(WRITE_BYTES))) {
		table_writer_close(w);
		return err_nomem(err, path);
	}
	w->path = path;
	w->file.fs = fs;
	rc = fs->ops->open(fs, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &w->file.fd, err);
	if (rc) {
		w->file.fd = -1;
		table_writer_close(w);
		return rc;
	}
	XXH3_64bits_reset(&w->file.hash);
	o.block_size = TABLE_PAGE_BYTES;
	o.block_restart_interval = 16;
	o.compression = leveldb::kNoCompression;
	w->builder = new leveldb::TableBuilder(o, &w->file);
	*out = w;
	return ERR_OK;
}

static enum err_code table_writer_file_failed(const struct table_writer *w, struct err *err)
{
	return err_set(err, w->file.rc, "%s", w->file.err.msg);
}

enum err_code table_writer_put(
	struct table_writer *w, struct str key, struct str value, struct err *err)
{
	if (w->file.rc)
		return table_writer_file_failed(w, err);
	if (w->any && str_cmp(key, buf_str(&w->last)) <= 0)
		return err_set(err, ERR_INVALID, "%s: key out of order", w->path.c_str());
	if (key.len > TABLE_RECORD_BYTES_MAX || value.len > TABLE_RECORD_BYTES_MAX - key.len)
		return err_set(err, ERR_LIMIT, "%s: record of %zu and %zu bytes, limit %u", w->path.c_str(),
			key.len, value.len, TABLE_RECORD_BYTES_MAX);
	buf_clear(&w->last);
	buf_add_str(&w->last, key);
	if (buf_failed(&w->last))
		return err_nomem(err, w->path.c_str());
	w->any = true;
	/* A large value has a separate page, so that reading its neighbours does not read it. */
	if (value.len >= TABLE_PAGE_BYTES)
		w->builder->Flush();
	if (!w->file.rc)
		w->builder->Add(leveldb::Slice(key.ptr, key.len), leveldb::Slice(value.ptr, value.len));
	return w->file.rc ? table_writer_file_failed(w, err) : ERR_OK;
}

void table_writer_end_page(struct table_writer *w)
{
	if (!w->file.rc)
		w->builder->Flush();
}

enum err_code table_writer_finish(
	struct table_writer *w, struct table_written *out, struct buf *spare, struct err *err)
{
	struct out_file *f = &w->file;
	struct table_handle meta, index;
	struct buf end = {};
	uint64_t at;
	enum err_code rc;

	if (f->rc)
		return table_writer_file_failed(w, err);
	if (w->last.failed) /* a put failed: what is here is not all */
		return err_nomem(err, w->path.c_str());
	w->builder->Flush(); /* so that what follows is the end alone */
	at = f->bytes;
	f->copy = &end;
	w->finished = true;
	w->builder->Finish();
	f->copy = nullptr;
	if (!f->rc)
		f->put_out();
	if (!f->rc)
		f->rc = f->fs->ops->sync(f->fs, f->fd, &f->err);
	if ((rc = f->rc)) {
		table_writer_file_failed(w, err);
	} else if (buf_failed(&end)) {
		rc = err_nomem(err, w->path.c_str());
	} else if (!(rc = table_read_footer(end.ptr + end.len - TABLE_FOOTER_BYTES, f->bytes, &meta,
					 &index, w->path.c_str(), err))) {
		size_t skip = (size_t)(index.offset - at);

		assert(index.offset >= at && end.len >= skip + TABLE_FOOTER_BYTES);
		table_spare_make((struct str){ end.ptr + skip, end.len - skip }, f->bytes, spare);
		*out = { f->bytes, XXH3_64bits_digest(&f->hash) };
		if (buf_failed(spare))
			rc = err_nomem(err, w->path.c_str());
	}
	buf_release(&end);
	return rc;
}

void table_writer_close(struct table_writer *w)
{
	if (!w)
		return;
	if (w->builder && !w->finished)
		w->builder->Abandon();
	delete w->builder;
	if (w->file.fd >= 0)
		close(w->file.fd);
	free(w->file.buffer);
	buf_release(&w->last);
	delete w;
}
