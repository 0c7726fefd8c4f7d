#include "tsdb/debuginfo/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/debuginfo/store/internal.h"

#define STAMPS "stamps"
#define STAMPS_BYTES_MAX (128u << 20)
#define STAMP_EVERY_S 3600

int64_t store_now_s(const struct debuginfo_store *s)
{
	int64_t now_s = s->o.now_ns() / NS_PER_S;

	return now_s < 1 ? 1 : now_s;
}

/* ---- entries ---- */

static struct debuginfo_entry **debuginfo_store_bucket_of(
	struct debuginfo_store *s, const struct debuginfo_id *id)
{
	return &s->buckets[hash_bytes(id, sizeof(*id), s->seed) % BUCKETS];
}

struct debuginfo_entry *entry_find(struct debuginfo_store *s, const struct debuginfo_id *id)
{
	struct debuginfo_entry *e;

	mutex_assert_held(&s->lock);
	for (e = *debuginfo_store_bucket_of(s, id); e && !debuginfo_id_eq(&e->stamp.id, id);
		 e = e->next)
		;
	return e;
}

enum err_code entry_make(struct debuginfo_store *s, const struct debuginfo_id *id, bool for_data,
	struct debuginfo_entry **out, struct err *err)
{
	struct debuginfo_entry *e = entry_find(s, id), **bucket = debuginfo_store_bucket_of(s, id);

	if (!e && !for_data && s->entries_n >= ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "more than %d keys", ENTRIES_MAX);
	if (!e) {
		if (!(e = calloc(1, sizeof(*e))))
			return err_nomem(err, "key");
		e->stamp.id = *id;
		e->next = *bucket;
		*bucket = e;
		s->entries_n++;
	}
	*out = e;
	return ERR_OK;
}

void entry_tidy(struct debuginfo_store *s, struct debuginfo_entry *e)
{
	struct debuginfo_entry **at = debuginfo_store_bucket_of(s, &e->stamp.id);

	mutex_assert_held(&s->lock);
	if (!e->waiting) {
		free(e->waiting_path);
		e->waiting_path = NULL;
	}
	if (e->present || e->waiting || e->stamp.missing_end_s || e->stamp.again_s)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	s->entries_n--;
	free(e);
}

void entry_set_tried(
	struct debuginfo_store *s, struct debuginfo_entry *e, enum debuginfo_kind kind, struct str why)
{
	size_t n = why.len < STAMP_WHY_BYTES_MAX ? why.len : STAMP_WHY_BYTES_MAX;

	mutex_assert_held(&s->lock);
	e->stamp.tried = kind;
	e->stamp.again_s = store_now_s(s) + s->o.again_ns / NS_PER_S;
	memset(e->stamp.why, 0, sizeof(e->stamp.why));
	for (size_t i = 0; i < n; i++) /* ASCII, so that cutting breaks no letter */
		e->stamp.why[i] = why.ptr[i] >= ' ' && why.ptr[i] <= '~' ? why.ptr[i] : '?';
	s->stamps_changed = true;
}

/* The most that a file of this kind can hold. */
static enum debuginfo_quality debuginfo_store_best_of(enum debuginfo_kind kind)
{
	return kind == DEBUGINFO_STRIPPED ? DEBUGINFO_LINES : DEBUGINFO_DWARF;
}

/* What is there cannot become better by such a file. */
static bool entry_has_all_of(const struct debuginfo_entry *e, enum debuginfo_kind kind)
{
	if (!e->present || (e->kind == DEBUGINFO_NO_TEXT && kind != DEBUGINFO_NO_TEXT))
		return false; /* debug data alone do not say where the code lies */
	return kind == DEBUGINFO_STRIPPED || e->quality >= debuginfo_store_best_of(kind);
}

bool entry_wants(const struct debuginfo_store *s, const struct debuginfo_entry *e,
	const struct debuginfo_offer *o, bool patient, const char **reason)
{
	if (e && e->waiting) {
		*reason = e->waiting == WAITING_UPLOAD ? "an upload is in progress" :
												 "extraction is in progress";
		return false;
	}
	if (e && entry_has_all_of(e, o->kind) && !o->force) {
		*reason = "equally good symbols are stored";
		return false;
	}
	if (e && patient && !o->force && e->stamp.again_s > store_now_s(s) &&
		o->kind <= e->stamp.tried) {
		*reason = e->stamp.why[0] ? "the extraction failed a short time ago" :
									"no better a short time ago";
		return false;
	}
	*reason = e && e->present ? "may add to the stored symbols" : "nothing is there";
	return true;
}

bool debuginfo_wants(struct debuginfo_store *s, const struct debuginfo_id *id,
	const struct debuginfo_offer *o, const char **reason)
{
	bool yes;

	mutex_lock(&s->lock);
	uploads_end_idle(s);
	yes = entry_wants(s, entry_find(s, id), o, true, reason);
	mutex_unlock(&s->lock);
	return yes;
}

bool debuginfo_is_known(struct debuginfo_store *s, const struct debuginfo_id *id)
{
	const struct debuginfo_entry *e;
	bool yes;

	mutex_lock(&s->lock);
	e = entry_find(s, id);
	yes = e && (e->present || e->waiting || e->stamp.again_s > store_now_s(s));
	mutex_unlock(&s->lock);
	return yes;
}

bool debuginfo_lacks(struct debuginfo_store *s, const struct debuginfo_id *id)
{
	const struct debuginfo_entry *e;
	int64_t now_s;
	bool good;

	mutex_lock(&s->lock);
	now_s = store_now_s(s);
	e = entry_find(s, id);
	good = e && e->present && (e->quality == DEBUGINFO_DWARF || e->origin != DEBUGINFO_UPLOAD);
	good = good ||
		(e && (e->waiting || e->stamp.missing_end_s > now_s || e->stamp.again_s > now_s));
	mutex_unlock(&s->lock);
	return !good;
}

void debuginfo_set_missing(struct debuginfo_store *s, const struct debuginfo_id *id, int64_t end_s)
{
	struct debuginfo_entry *e;

	mutex_lock(&s->lock);
	if (!entry_make(s, id, false, &e, NULL)) {
		e->stamp.missing_end_s = end_s < 0 ? 0 : end_s;
		s->stamps_changed = true;
		entry_tidy(s, e);
	}
	mutex_unlock(&s->lock);
}

bool debuginfo_is_missing(struct debuginfo_store *s, const struct debuginfo_id *id)
{
	struct debuginfo_entry *e;
	bool yes;

	mutex_lock(&s->lock);
	e = entry_find(s, id);
	yes = e && !e->present && e->stamp.missing_end_s > store_now_s(s);
	mutex_unlock(&s->lock);
	return yes;
}

void debuginfo_forget_missing(struct debuginfo_store *s)
{
	struct debuginfo_entry *e, *next;

	mutex_lock(&s->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (e = s->buckets[i]; e; e = next) {
			next = e->next;
			s->stamps_changed |= e->stamp.missing_end_s != 0;
			e->stamp.missing_end_s = 0;
			entry_tidy(s, e);
		}
	mutex_unlock(&s->lock);
}

/* ---- stamps ---- */

static void stamps_print(struct debuginfo_store *s, struct buf *out)
{
	mutex_assert_held(&s->lock);
	stamps_begin(out);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct debuginfo_entry *e = s->buckets[i]; e; e = e->next)
			if (e->present || e->stamp.missing_end_s || e->stamp.again_s)
				stamps_add(out, &e->stamp);
	stamps_end(out);
}

static void stamps_write(struct debuginfo_store *s)
{
	char *path = path_in(s, STAMPS);
	struct buf b = { 0 };
	struct err err;
	enum err_code rc;

	mutex_lock(&s->lock);
	stamps_print(s, &b);
	s->stamps_changed = false;
	s->stamped_s = store_now_s(s);
	mutex_unlock(&s->lock);
	rc = !path || buf_failed(&b) ? err_nomem(&err, "stamps") :
								   fs_write_file(s->fs, path, buf_str(&b), &err);
	if (rc) /* costs the order of eviction after a restart */
		log_warn("debuginfo", "last uses are not written", LOG_E(&err));
	buf_release(&b);
	free(path);
}

static enum err_code stamp_take(void *ctx, const struct stamp *stamp, struct err *err)
{
	struct debuginfo_store *s = ctx;
	struct debuginfo_entry *e = entry_find(s, &stamp->id);

	if (!e && stamp->missing_end_s <= store_now_s(s) && stamp->again_s <= store_now_s(s))
		return ERR_OK; /* its index is gone */
	if (!e && entry_make(s, &stamp->id, false, &e, err))
		return err ? err->code : ERR_NOMEM;
	e->stamp = *stamp;
	if (e->stamp.used_s > store_now_s(s)) /* the clock was wrong once */
		e->stamp.used_s = store_now_s(s);
	return ERR_OK;
}

static void stamps_read(struct debuginfo_store *s)
{
	char *path = path_in(s, STAMPS);
	struct buf b = { 0 };
	struct err err;
	enum err_code rc;

	rc = path ? fs_read_file(path, STAMPS_BYTES_MAX, &b, &err) : err_nomem(&err, "stamps");
	if (!rc)
		rc = stamps_decode(buf_str(&b), stamp_take, s, &err);
	if (rc && rc != ERR_NOT_FOUND)
		log_warn("debuginfo", "last uses are not known", LOG_E(&err));
	buf_release(&b);
	free(path);
}

/* ---- open ---- */

static enum err_code debuginfo_store_read_footer(const char *path, const struct debuginfo_id *id,
	struct footer *f, int64_t *changed_s, struct err *err)
{
	char bytes[FOOTER_BYTES_MAX];
	struct stat st;
	enum err_code rc;
	size_t want;
	ssize_t n;
	int fd;

	if ((rc = fs_posix.ops->open(&fs_posix, path, O_RDONLY, 0, &fd, err)))
		return rc;
	if (fstat(fd, &st)) {
		rc = err_errno(err, errno, "stat %s", path);
		goto end;
	}
	*changed_s = st.st_mtime;
	want = st.st_size < FOOTER_BYTES_MAX ? (size_t)st.st_size : FOOTER_BYTES_MAX;
	n = pread(fd, bytes, want, st.st_size - (off_t)want);
	if (n != (ssize_t)want)
		rc = err_errno(err, n < 0 ? errno : EIO, "read %s", path);
	else if ((rc = footer_decode((struct str){ bytes, want }, id, f, err)))
		rc = err_wrap(err, rc, "%s", path);
	else if (f->index_bytes != (uint64_t)st.st_size - footer_bytes(f))
		rc = err_set(err, ERR_CORRUPT, "%s has another size", path);
end:
	close(fd);
	return rc;
}

static enum err_code debuginfo_store_found_index(
	struct debuginfo_store *s, const char *path, const struct debuginfo_id *id, struct err *err)
{
	struct footer f;
	struct debuginfo_entry *e;
	int64_t changed_s = 0;
	char *source;
	enum err_code rc;

	if ((rc = debuginfo_store_read_footer(path, id, &f, &changed_s, err)) == ERR_CORRUPT) {
		log_warn("debuginfo", "damaged index removed", LOG_E(err));
		return s->fs->ops->unlink(s->fs, path, err);
	}
	if (rc) { /* the disk may give it another time */
		log_warn("debuginfo", "index is not readable", LOG_E(err));
		return ERR_OK;
	}
	if ((rc = entry_make(s, id, true, &e, err)) || (rc = path_copy(f.path, &source, err)))
		return rc;
	entry_set_path(s, e, source);
	e->present = true;
	s->indexes_n++;
	e->kind = f.kind;
	e->origin = f.origin;
	e->quality = f.quality;
	e->index_bytes = f.index_bytes;
	e->file_bytes = f.index_bytes + footer_bytes(&f);
	e->source_bytes = f.source_bytes;
	e->added_s = f.added_s;
	e->stamp.used_s = changed_s > 0 ? changed_s : 0; /* until the stamps are read */
	s->bytes += e->file_bytes;
	return ERR_OK;
}

static enum err_code debuginfo_store_found_queued(struct debuginfo_store *s, const char *path,
	const struct debuginfo_id *id, enum debuginfo_kind kind, enum debuginfo_origin origin,
	struct err *err)
{
	struct debuginfo_entry *e;
	struct stat st;
	enum err_code rc;

	if (stat(path, &st))
		return err_errno(err, errno, "stat %s", path);
	if ((rc = entry_make(s, id, true, &e, err)))
		return rc;
	if (e->waiting) { /* an old one that could not be removed */
		if (e->waiting_kind >= kind)
			return s->fs->ops->unlink(s->fs, path, err);
		s->uploads_bytes -= e->waiting_bytes;
		s->queued_n--;
		free(e->waiting_path);
		e->waiting_path = NULL;
	}
	if ((rc = waiting_path_read(s, id, kind, origin, &e->waiting_path, err)))
		return rc;
	e->waiting = WAITING_QUEUED;
	e->waiting_kind = kind;
	e->waiting_origin = origin;
	e->waiting_bytes = (uint64_t)st.st_size;
	e->number = ++s->last_number;
	s->uploads_bytes += e->waiting_bytes;
	s->queued_n++;
	return ERR_OK;
}

/* A path whose upload is gone is what a crash has left. */
static enum err_code debuginfo_store_found_path(struct debuginfo_store *s, const char *path,
	const struct debuginfo_id *id, enum debuginfo_kind kind, enum debuginfo_origin origin,
	struct err *err)
{
	char *queued = path_of_queued(s, id, kind, origin);
	bool needed = queued && fs_exists(queued);

	if (!queued)
		return err_nomem(err, "path");
	free(queued);
	return needed ? ERR_OK : s->fs->ops->unlink(s->fs, path, err);
}

static enum err_code debuginfo_store_found(
	struct debuginfo_store *s, struct arena *a, struct str name, struct err *err)
{
	const char *path = path_join(a, str_of(s->dir), name);
	struct debuginfo_id id;
	enum debuginfo_origin origin;
	enum debuginfo_kind kind;
	bool of_path;

	if (!path)
		return arena_fail(a, "path", err);
	if (str_has_suffix(name, STR(".tmp")))
		return s->fs->ops->unlink(s->fs, path, err);
	if (str_has_suffix(name, STR(".idx")) &&
			debuginfo_id_of_stem((struct str){ name.ptr, name.len - 4 }, &id))
		return debuginfo_store_found_index(s, path, &id, err);
	if (queued_name_parse(name, &id, &kind, &origin, &of_path))
		return (of_path ? debuginfo_store_found_path : debuginfo_store_found_queued)(
			s, path, &id, kind, origin, err);
	if (!str_is(name, STAMPS))
		log_warn("debuginfo", "unknown file", LOG_S("path", path));
	return ERR_OK;
}

static enum err_code debuginfo_store_scan(struct debuginfo_store *s, struct err *err)
{
	struct str *names;
	struct arena a;
	enum err_code rc;
	size_t n;

	arena_init(&a, 0);
	mutex_lock(&s->lock);
	rc = fs_list(s->dir, &a, &names, &n, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = debuginfo_store_found(s, &a, names[i], err);
	if (!rc)
		stamps_read(s);
	debuginfo_evict(s, NULL);
	mutex_unlock(&s->lock);
	arena_release(&a);
	return rc;
}

static void debuginfo_options_default(struct debuginfo_options *o)
{
	if (!o->file_bytes_max)
		o->file_bytes_max = UINT64_C(1) << 30;
	if (!o->uploads_bytes_max)
		o->uploads_bytes_max = UINT64_C(4) << 30;
	if (!o->uploads_max)
		o->uploads_max = 10;
	if (!o->idle_ns)
		o->idle_ns = 2 * NS_PER_MIN;
	if (!o->again_ns)
		o->again_ns = 7 * NS_PER_MIN;
	if (!o->now_ns)
		o->now_ns = clock_now_ns;
}

static void store_free(struct debuginfo_store *s)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct debuginfo_entry *e = s->buckets[i], *next; e; e = next) {
			assert(!e->mapped);
			next = e->next;
			free(e->path);
			free(e->waiting_path);
			free(e);
		}
	mutex_destroy(&s->lock);
	free(s->dir);
	free(s);
}

enum err_code debuginfo_store_open(struct fs *fs, const char *dir,
	const struct debuginfo_options *o, struct debuginfo_store **out, struct err *err)
{
	struct debuginfo_store *s = calloc(1, sizeof(*s));
	enum err_code rc;

	if (!s)
		return err_nomem(err, "store of symbols");
	s->fs = fs;
	s->o = *o;
	debuginfo_options_default(&s->o);
	s->seed = hash_seed();
	mutex_init(&s->lock);
	s->stamped_s = store_now_s(s);
	if (!(s->dir = strdup(dir)))
		rc = err_nomem(err, "store of symbols");
	else if (!(rc = fs_mkdir_all(fs, dir, err)))
		rc = debuginfo_store_scan(s, err);
	if (rc) {
		store_free(s);
		return err_wrap(err, rc, "open symbols %s", dir);
	}
	*out = s;
	return ERR_OK;
}

void debuginfo_store_close(struct debuginfo_store *s)
{
	if (!s)
		return;
	assert(!s->uploads && !s->jobs_n);
	if (s->stamps_changed)
		stamps_write(s);
	store_free(s);
}

void debuginfo_store_tick(struct debuginfo_store *s)
{
	struct debuginfo_entry *e, *next;
	int64_t now_s;
	bool stamp;

	mutex_lock(&s->lock);
	now_s = store_now_s(s);
	uploads_end_idle(s);
	for (size_t i = 0; i < BUCKETS; i++)
		for (e = s->buckets[i]; e; e = next) {
			next = e->next;
			if (e->stamp.missing_end_s <= now_s)
				e->stamp.missing_end_s = 0;
			if (e->stamp.again_s <= now_s)
				e->stamp.again_s = 0;
			entry_tidy(s, e);
		}
	stamp = s->stamps_changed && now_s - s->stamped_s >= STAMP_EVERY_S;
	mutex_unlock(&s->lock);
	if (stamp)
		stamps_write(s);
}
