/*
 * Tables over LevelDB's Table: opening and reading.
 *
 * The end of a table is read in two reads, kept in memory, and served to LevelDB from there; so it
 * does not matter to it whether the end came from the file or from the spare.
 *
 * Pages are never compressed: a page that says it is would be unpacked into a size it names itself,
 * and is refused as damaged.
 */
extern "C" {
#include "tsdb/store/table.h"
#include "base/thread.h"
#include "tsdb/store/table_end.h"
}

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <atomic>
#include <new>
#include <string>

#include <leveldb/cache.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>

/* The last bytes of a table, from its index page on. */
struct store_table_tail {
	char *ptr; /* malloc */
	size_t len;
	uint64_t at; /* in the file */
};

/* In two reads. */
static enum err_code store_table_read_tail(
	struct range_reader *r, struct store_table_tail *tail, struct err *err)
{
	struct table_handle meta, index;
	char footer[TABLE_FOOTER_BYTES];
	enum err_code rc;

	if (r->bytes < TABLE_FOOTER_BYTES)
		return err_set(
			err, ERR_CORRUPT, "%s: footer: the file has %" PRIu64 " bytes", r->name, r->bytes);
	if ((rc = r->ops->read(r, r->bytes - TABLE_FOOTER_BYTES, TABLE_FOOTER_BYTES, footer, err)))
		return rc;
	if ((rc = table_read_footer(footer, r->bytes, &meta, &index, r->name, err)))
		return rc;
	tail->at = index.offset;
	tail->len = (size_t)(r->bytes - index.offset);
	if (!(tail->ptr = (char *)malloc(tail->len)))
		return err_nomem(err, r->name);
	memcpy(tail->ptr + tail->len - TABLE_FOOTER_BYTES, footer, TABLE_FOOTER_BYTES);
	return r->ops->read(r, tail->at, tail->len - TABLE_FOOTER_BYTES, tail->ptr, err);
}

/* A table's bytes for LevelDB: the end from memory, pages by range reads. */
struct table_file final : leveldb::RandomAccessFile {
	leveldb::Status Read(
		uint64_t offset, size_t n, leveldb::Slice *result, char *scratch) const override;

	struct range_reader *r;
	struct store_table_tail tail = {};
	struct table *of = nullptr;
	struct table_guard guard = {};
	mutable std::atomic<bool> passed{ true }; /* the guard; else guarded by lock, as what follows */
	mutable struct mutex lock;
	mutable enum err_code refused = ERR_OK; /* for good */
	mutable struct err why = {};
};

struct table {
	struct range_reader *r = nullptr;
	struct table_file file;
	leveldb::Table *ldb = nullptr;
};

struct table_iter {
	leveldb::Iterator *it;
	const struct table *t;
	/* The first that went wrong, kept here: a later seek may make LevelDB forget it. */
	enum err_code rc;
	struct err err;
};

/* LevelDB itself never says NotSupported here, so it stands for a place that does not answer. */
static leveldb::Status store_table_read_status(enum err_code rc, const struct err *why)
{
	if (range_unreachable(rc))
		return leveldb::Status::NotSupported(why->msg);
	return rc == ERR_CORRUPT ? leveldb::Status::Corruption(why->msg) :
							   leveldb::Status::IOError(why->msg);
}

static thread_local const struct table_file *asking; /* the guard of this one */

/* Once; others wait for the answer. If the key is not on the page at 0, LevelDB looks for it on the
 * next one. */
static enum err_code table_file_ask_guard(const struct table_file *f, struct err *err)
{
	enum err_code rc;

	if (asking == f)
		return err_set(err, ERR_CORRUPT, "%s: does not say whose it is", f->r->name);
	mutex_lock(&f->lock);
	asking = f;
	if (!(rc = f->refused) && !f->passed.load() &&
		(rc = f->guard.fn(f->guard.ctx, f->of, &f->why)) && !range_unreachable(rc))
		f->refused = rc;
	asking = nullptr;
	if (rc)
		err_copy(err, &f->why);
	else
		f->passed.store(true);
	mutex_unlock(&f->lock);
	return rc;
}

leveldb::Status table_file::Read(
	uint64_t offset, size_t n, leveldb::Slice *result, char *scratch) const
{
	struct err err;
	enum err_code rc;

	if (offset >= tail.at) {
		if (offset - tail.at > tail.len || n > tail.len - (offset - tail.at))
			return leveldb::Status::Corruption("a page behind the end of the file");
		*result = leveldb::Slice(tail.ptr + (offset - tail.at), n);
		return leveldb::Status::OK();
	}
	/* The guard itself reads the page at 0. */
	if (offset && !passed.load(std::memory_order_acquire) &&
		(rc = table_file_ask_guard(this, &err)))
		return store_table_read_status(rc, &err);
	if ((rc = r->ops->read(r, offset, n, scratch, &err)))
		return store_table_read_status(rc, &err);
	if (n < TABLE_TRAILER_BYTES || scratch[n - TABLE_TRAILER_BYTES] != 0)
		return leveldb::Status::Corruption("a page that says it is compressed");
	*result = leveldb::Slice(scratch, n);
	return leveldb::Status::OK();
}

/* LevelDB's message behind the file's name; a message of the range reader has the name already. */
static enum err_code store_table_failed(
	const leveldb::Status &status, const char *name, const char *where, struct err *err)
{
	enum err_code rc = status.IsCorruption() ? ERR_CORRUPT :
		status.IsNotSupportedError()         ? ERR_UNAVAILABLE :
											   ERR_IO;
	std::string text = status.ToString();
	size_t colon = text.find(": ");
	struct str msg = { text.data(), text.size() };

	if (status.ok())
		return ERR_OK;
	if (colon != std::string::npos)
		msg = (struct str){ text.data() + colon + 2, text.size() - colon - 2 };
	if (str_has_prefix(msg, str_of(name)))
		return err_set(err, rc, STR_FMT, STR_ARG(msg));
	return err_set(err, rc, "%s: %s" STR_FMT, name, where, STR_ARG(msg));
}

/* With t->file.tail as it is. */
static enum err_code table_start(struct table *t, struct store_cache *cache, struct err *err)
{
	const struct store_table_tail *tail = &t->file.tail;
	uint64_t bytes = tail->at + tail->len;
	struct table_handle meta, index;
	leveldb::Options o;
	leveldb::Status s;
	enum err_code rc;

	if ((rc = table_read_footer(
			 tail->ptr + tail->len - TABLE_FOOTER_BYTES, bytes, &meta, &index, t->r->name, err)))
		return rc;
	if (index.offset != tail->at) /* of a spare: the end in the file is read from there */
		return err_set(err, ERR_CORRUPT, "%s: index page: not where it must be", t->r->name);
	if (tail->ptr[index.size] != 0)
		return err_set(err, ERR_CORRUPT, "%s: index page: says it is compressed", t->r->name);
	o.paranoid_checks = true;
	o.block_cache = (leveldb::Cache *)store_cache_leveldb(cache);
	o.block_size = TABLE_PAGE_BYTES;
	o.compression = leveldb::kNoCompression;
	s = leveldb::Table::Open(o, &t->file, bytes, &t->ldb);
	if (!s.ok())
		return store_table_failed(s, t->r->name, "index page: ", err);
	rc = table_check_index((struct str){ tail->ptr, (size_t)index.size }, meta, t->r->name, err);
	if (rc) {
		delete t->ldb;
		t->ldb = nullptr;
	}
	return rc;
}

/* The end in the file cannot be used; *own says why. */
static enum err_code table_start_spare(struct table *t, struct str spare, struct store_cache *cache,
	const struct err *own, struct err *damaged, struct err *err)
{
	struct store_table_tail *tail = &t->file.tail;
	struct str copy;
	uint64_t bytes;
	enum err_code rc;

	if (!spare.len)
		return err_set(err, own->code, "%s", own->msg);
	if (!table_spare_read(spare, &copy, &bytes))
		return err_set(err, own->code, "%s; its copy is damaged, too", own->msg);
	free(tail->ptr);
	*tail = { (char *)malloc(copy.len), copy.len, bytes - copy.len };
	if (!tail->ptr)
		return err_nomem(err, t->r->name);
	memcpy(tail->ptr, copy.ptr, copy.len);
	if ((rc = table_start(t, cache, err)))
		return err_wrap(err, rc, "%s; its copy", own->msg);
	err_set(damaged, own->code, "%s; its copy is used", own->msg);
	return ERR_OK;
}

/* The end in the file is in use; the spare is checked only so that its loss is known in time. */
static void table_check_spare(const struct table *t, struct str spare, struct err *damaged)
{
	const struct store_table_tail *tail = &t->file.tail;
	struct str copy;
	uint64_t bytes;

	if (!spare.len)
		return;
	if (!table_spare_read(spare, &copy, &bytes))
		err_set(damaged, ERR_CORRUPT, "%s: the copy of its index page is damaged", t->r->name);
	else if (bytes != t->r->bytes || !str_eq(copy, (struct str){ tail->ptr, tail->len }))
		err_set(damaged, ERR_CORRUPT, "%s: its index page and the copy of it differ", t->r->name);
}

enum err_code table_open(struct range_reader *r, struct str spare, struct store_cache *cache,
	struct table **out, struct err *damaged, struct err *err)
{
	struct table *t = new (std::nothrow) table;
	struct err own;
	enum err_code rc;

	if (damaged)
		*damaged = {};
	if (!t) {
		rc = err_nomem(err, r->name);
		range_close(r);
		return rc;
	}
	t->r = t->file.r = r;
	mutex_init(&t->file.lock);
	if (!(rc = store_table_read_tail(r, &t->file.tail, &own)))
		rc = table_start(t, cache, &own);
	if (rc == ERR_NOMEM || range_unreachable(rc)) {
		err_set(err, rc, "%s", own.msg);
	} else if (rc) {
		rc = table_start_spare(t, spare, cache, &own, damaged, err);
	} else {
		table_check_spare(t, spare, damaged);
	}
	if (rc) {
		table_close(t);
		return rc;
	}
	*out = t;
	return ERR_OK;
}

enum err_code table_open_by_spare(struct range_reader *r, struct str spare,
	const struct table_guard *guard, struct store_cache *cache, struct table **out, struct err *err)
{
	struct table *t = new (std::nothrow) table;
	struct str copy;
	uint64_t bytes;
	enum err_code rc;

	if (!t) {
		rc = err_nomem(err, r->name);
		range_close(r);
		return rc;
	}
	t->r = t->file.r = r;
	mutex_init(&t->file.lock);
	t->file.of = t;
	if (!table_spare_read(spare, &copy, &bytes) || bytes != r->bytes) {
		rc = err_set(err, ERR_CORRUPT, "%s: the copy of its index page is not its", r->name);
	} else if (!(t->file.tail.ptr = (char *)malloc(copy.len))) {
		rc = err_nomem(err, r->name);
	} else {
		t->file.tail.len = copy.len;
		t->file.tail.at = bytes - copy.len;
		memcpy(t->file.tail.ptr, copy.ptr, copy.len);
		rc = table_start(t, cache, err);
	}
	if (rc) {
		table_close(t);
		return rc;
	}
	if (guard) {
		t->file.guard = *guard;
		t->file.passed.store(false);
	}
	*out = t;
	return ERR_OK;
}

enum err_code table_check_end(const struct table *t, struct err *err)
{
	struct store_table_tail own = {};
	enum err_code rc = store_table_read_tail(t->r, &own, err);

	if (!rc && (own.len != t->file.tail.len || memcmp(own.ptr, t->file.tail.ptr, own.len) != 0))
		rc = err_set(err, ERR_CORRUPT, "%s: its index page and the copy of it differ", t->r->name);
	free(own.ptr);
	return rc;
}

void table_close(struct table *t)
{
	if (!t)
		return;
	delete t->ldb;
	free(t->file.tail.ptr);
	mutex_destroy(&t->file.lock);
	range_close(t->r);
	delete t;
}

/* ---- reading ---- */

static leveldb::Iterator *table_ldb_iterator(const struct table *t, bool scan)
{
	leveldb::ReadOptions o;

	o.verify_checksums = true;
	o.fill_cache = !scan;
	return t->ldb->NewIterator(o);
}

struct table_iter *table_iter_open(struct table *t, bool scan)
{
	struct table_iter *it = new (std::nothrow) table_iter;

	if (!it)
		return nullptr;
	it->it = table_ldb_iterator(t, scan);
	it->t = t;
	it->rc = ERR_OK;
	return it;
}

void table_iter_close(struct table_iter *it)
{
	if (!it)
		return;
	delete it->it;
	delete it;
}

static void table_iter_note_status(struct table_iter *it)
{
	if (!it->rc) {
		leveldb::Status s = it->it->status();

		if (!s.ok())
			it->rc = store_table_failed(s, it->t->r->name, "", &it->err);
	}
}

void table_iter_seek(struct table_iter *it, struct str key)
{
	it->it->Seek(leveldb::Slice(key.ptr, key.len));
	table_iter_note_status(it);
}

void table_iter_next(struct table_iter *it)
{
	it->it->Next();
	table_iter_note_status(it);
}

bool table_iter_valid(const struct table_iter *it)
{
	return it->it->Valid();
}

struct str table_iter_key(const struct table_iter *it)
{
	assert(it->it->Valid());
	leveldb::Slice s = it->it->key();

	return (struct str){ s.data(), s.size() };
}

struct str table_iter_value(const struct table_iter *it)
{
	assert(it->it->Valid());
	leveldb::Slice s = it->it->value();

	return (struct str){ s.data(), s.size() };
}

enum err_code table_iter_status(const struct table_iter *it, struct err *err)
{
	return it->rc ? err_set(err, it->rc, "%s", it->err.msg) : ERR_OK;
}

enum err_code table_get(struct table *t, struct str key, struct buf *out, struct err *err)
{
	leveldb::Iterator *it = table_ldb_iterator(t, false);
	leveldb::Slice k(key.ptr, key.len), value;
	enum err_code rc;

	it->Seek(k);
	/* Before the key: after a damaged page the iterator is at a later one, and valid. */
	rc = store_table_failed(it->status(), t->r->name, "", err);
	if (!rc && (!it->Valid() || it->key() != k))
		rc = err_set(err, ERR_NOT_FOUND, "%s: no such key", t->r->name);
	if (!rc) {
		value = it->value();
		buf_add(out, value.data(), value.size());
		if (buf_failed(out))
			rc = err_nomem(err, t->r->name);
	}
	delete it;
	return rc;
}

uint64_t table_offset(const struct table *t, struct str key)
{
	return t->ldb->ApproximateOffsetOf(leveldb::Slice(key.ptr, key.len));
}

void table_expect(struct table *t, struct str key, struct str to, uint64_t more)
{
	uint64_t from = table_offset(t, key), end = table_offset(t, to) + more;

	if (from < end)
		range_expect(t->r, from, end - from);
}
