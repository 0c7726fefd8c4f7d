#include "web/files/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "base/thread.h"

#define SUFFIX ".file"
#define HALF_SUFFIX ".tmp" /* what fs_write_file had not renamed */
#define MAGIC "epimetheus-file-1"
#define LOOK_NS NS_PER_MIN /* how late a file may be removed */
#define FILE_BYTES_MAX (64u << 20)

METRIC_GAUGE(kept_bytes, "epimetheus_files_kept_bytes", "Bytes of profiles that are kept.", NULL);
METRIC_GAUGE(
	kept_files, "epimetheus_files_kept", "Profiles that are kept until they expire.", NULL);

struct kept {
	struct kept_options o;
	char *dir;
	struct mutex lock; /* guards all below, and who writes to the directory */
	struct cond changed;
	struct kept_file *v;
	size_t n, cap;
	uint64_t bytes;
	bool closing;
	struct thread cleaner;
};

/* ---- the first line ---- */

static bool kept_name_has(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		c == '_' || c == '-';
}

static void kept_file_set_name(struct kept_file *f, struct str name)
{
	size_t n = name.len < KEPT_NAME_BYTES_MAX ? name.len : KEPT_NAME_BYTES_MAX;

	for (size_t i = 0; i < n; i++)
		f->name[i] = kept_name_has(name.ptr[i]) ? name.ptr[i] : '-';
	f->name[n] = '\0';
	if (!n)
		memcpy(f->name, "profile", sizeof("profile"));
}

bool kept_is_id(struct str s)
{
	size_t i = 0;

	while (
		i < s.len && ((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f')))
		i++;
	return i == s.len && s.len == KEPT_ID_BYTES;
}

/* Of what the first line says, too. */
uint64_t kept_checksum(const struct kept_file *f, struct str bytes)
{
	uint64_t seed = hash_bytes(f->name, strlen(f->name), (uint64_t)f->created_ns);

	return hash_bytes(bytes.ptr, bytes.len, seed ^ (uint64_t)f->expires_ns);
}

void kept_head_print(const struct kept_head *h, struct buf *out)
{
	buf_printf(out, MAGIC " %" PRId64 " %" PRId64 " %" PRIu64 " %016" PRIx64 " %s\n",
		h->file.created_ns / NS_PER_S, h->file.expires_ns / NS_PER_S, h->file.bytes, h->checksum,
		h->file.name);
}

static bool kept_take_word(struct str *at, struct str *word)
{
	const char *end = memchr(at->ptr, ' ', at->len);

	word->ptr = at->ptr;
	word->len = end ? (size_t)(end - at->ptr) : at->len;
	at->len -= word->len + (end ? 1 : 0);
	at->ptr += word->len + (end ? 1 : 0);
	return word->len > 0;
}

static bool kept_take_number(struct str *at, unsigned base, uint64_t max, uint64_t *out)
{
	struct str word;
	uint64_t v = 0;

	if (!kept_take_word(at, &word) || word.len > 19)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') :
			c >= 'a' && c <= 'f'              ? (unsigned)(c - 'a') + 10 :
												99;

		if (digit >= base)
			return false;
		v = v * base + digit;
	}
	*out = v;
	return v <= max;
}

enum err_code kept_head_parse(struct str bytes, struct kept_head *out, struct err *err)
{
	size_t looked = bytes.len < KEPT_HEAD_BYTES_MAX ? bytes.len : KEPT_HEAD_BYTES_MAX;
	const char *end = looked ? memchr(bytes.ptr, '\n', looked) : NULL;
	const uint64_t seconds_max = TIME_MAX_NS / NS_PER_S;
	struct str at = { bytes.ptr, end ? (size_t)(end - bytes.ptr) : 0 }, magic;
	uint64_t created, expires;

	*out = (struct kept_head){ 0 };
	if (!end || !kept_take_word(&at, &magic) || !str_is(magic, MAGIC) ||
		!kept_take_number(&at, 10, seconds_max, &created) ||
		!kept_take_number(&at, 10, seconds_max, &expires) ||
		!kept_take_number(&at, 10, FILE_BYTES_MAX, &out->file.bytes) ||
		!kept_take_number(&at, 16, UINT64_MAX, &out->checksum) || !at.len ||
		at.len > KEPT_NAME_BYTES_MAX)
		return err_set(err, ERR_CORRUPT, "its first line cannot be read");
	for (size_t i = 0; i < at.len; i++)
		if (!kept_name_has(at.ptr[i]))
			return err_set(err, ERR_CORRUPT, "its first line has no name");
	kept_file_set_name(&out->file, at);
	out->file.created_ns = (int64_t)created * NS_PER_S;
	out->file.expires_ns = (int64_t)expires * NS_PER_S;
	out->len = (size_t)(end - bytes.ptr) + 1;
	return ERR_OK;
}

/* ---- the list ---- */

static void kept_publish(struct kept *k)
{
	metric_set(&kept_bytes, NULL, (double)k->bytes);
	metric_set(&kept_files, NULL, (double)k->n);
}

static enum err_code kept_add(struct kept *k, const struct kept_file *f, struct err *err)
{
	if (!array_room(&k->v, k->n, 1, &k->cap))
		return err_nomem(err, "files");
	k->v[k->n++] = *f;
	k->bytes += f->bytes;
	kept_publish(k);
	return ERR_OK;
}

static size_t kept_find(const struct kept *k, struct str id)
{
	size_t i = 0;

	while (i < k->n && !str_is(id, k->v[i].id))
		i++;
	return i;
}

static char *kept_path_of(const struct kept *k, const char *id, char *out, size_t size)
{
	int n = snprintf(out, size, "%s/%s" SUFFIX, k->dir, id);

	return n > 0 && (size_t)n < size ? out : NULL;
}

/* Only what was removed from the disk leaves the list. */
static enum err_code kept_drop(struct kept *k, size_t i, struct err *err)
{
	char path[4096];
	enum err_code rc;

	mutex_assert_held(&k->lock);
	if (!kept_path_of(k, k->v[i].id, path, sizeof(path)))
		return err_set(err, ERR_IO, "%s: the path is too long", k->dir);
	rc = k->o.fs->ops->unlink(k->o.fs, path, err);
	if ((rc && rc != ERR_NOT_FOUND) || (rc = k->o.fs->ops->sync_dir(k->o.fs, k->dir, err)))
		return rc;
	k->bytes -= k->v[i].bytes;
	k->v[i] = k->v[--k->n];
	kept_publish(k);
	return ERR_OK;
}

static void files_kept_expire(struct kept *k, int64_t now_ns)
{
	struct err err;

	mutex_assert_held(&k->lock);
	for (size_t i = k->n; i-- > 0;)
		if (!k->v[i].damaged && k->v[i].expires_ns <= now_ns && kept_drop(k, i, &err))
			log_warn("files", "a file that is over stays", LOG_S("id", k->v[i].id), LOG_E(&err));
}

void kept_expire(struct kept *k, int64_t now_ns)
{
	mutex_lock(&k->lock);
	files_kept_expire(k, now_ns);
	mutex_unlock(&k->lock);
}

static void kept_clean(void *ctx)
{
	struct kept *k = ctx;

	mutex_lock(&k->lock);
	while (!k->closing) {
		files_kept_expire(k, clock_now_ns());
		cond_wait_until(&k->changed, &k->lock, clock_monotonic_ns() + LOOK_NS);
	}
	mutex_unlock(&k->lock);
}

/* ---- open, close ---- */

static enum err_code kept_read_head(const char *path, struct kept_head *h, struct err *err)
{
	char first[KEPT_HEAD_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	enum err_code rc;
	ssize_t n;

	if (fd < 0)
		return err_errno(err, errno, "%s", path);
	n = fstat(fd, &st) ? -1 : pread(fd, first, sizeof(first), 0);
	if (n < 0)
		rc = err_errno(err, errno, "%s", path);
	else
		rc = kept_head_parse((struct str){ first, (size_t)n }, h, err);
	if (!rc && (uint64_t)st.st_size != h->len + h->file.bytes)
		rc = err_set(err, ERR_CORRUPT, "it has %lld bytes instead of %" PRIu64,
			(long long)st.st_size, h->len + h->file.bytes);
	if (rc)
		h->file = (struct kept_file){ .bytes = n < 0 ? 0 : (uint64_t)st.st_size, .damaged = true };
	close(fd);
	return rc;
}

static enum err_code kept_load_one(struct kept *k, struct str name, struct err *err)
{
	struct str id = { name.ptr, name.len - strlen(SUFFIX) };
	struct kept_head h = { 0 };
	char path[4096], text[KEPT_ID_BYTES + 1];
	struct err why;

	memcpy(text, id.ptr, KEPT_ID_BYTES);
	text[KEPT_ID_BYTES] = '\0';
	if (!kept_path_of(k, text, path, sizeof(path)))
		return err_set(err, ERR_IO, "%s: the path is too long", k->dir);
	if (kept_read_head(path, &h, &why))
		log_warn("files", "a kept file is damaged", LOG_S("path", path), LOG_E(&why));
	memcpy(h.file.id, text, sizeof(text));
	return kept_add(k, &h.file, err);
}

static enum err_code kept_load(struct kept *k, struct err *err)
{
	struct arena a;
	struct str *names;
	size_t n;
	enum err_code rc;
	char path[4096];

	if (!fs_exists(k->dir))
		return ERR_OK;
	arena_init(&a, 0);
	rc = fs_list(k->dir, &a, &names, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		struct str id = { names[i].ptr,
			names[i].len > strlen(SUFFIX) ? names[i].len - strlen(SUFFIX) : 0 };

		if (str_has_suffix(names[i], STR(SUFFIX)) && kept_is_id(id)) {
			rc = k->n < KEPT_FILES_MAX ? kept_load_one(k, names[i], err) : ERR_OK;
		} else if (str_has_suffix(names[i], STR(HALF_SUFFIX)) &&
					   (size_t)snprintf(path, sizeof(path), "%s/" STR_FMT, k->dir,
						   STR_ARG(names[i])) < sizeof(path)) {
			(void)!k->o.fs->ops->unlink(k->o.fs, path, NULL);
		}
	}
	arena_release(&a);
	return rc;
}

enum err_code kept_open(const struct kept_options *o, struct kept **out, struct err *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	enum err_code rc;

	if (!k)
		return err_nomem(err, "files");
	k->o = *o;
	mutex_init(&k->lock);
	cond_init(&k->changed);
	if (!(k->dir = strdup(o->dir)))
		rc = err_nomem(err, "files");
	else if (!(rc = kept_load(k, err)))
		rc = thread_start(&k->cleaner, "files-expire", kept_clean, k, err);
	if (rc) {
		kept_close(k);
		return err_wrap(err, rc, "kept files");
	}
	*out = k;
	return ERR_OK;
}

void kept_close(struct kept *k)
{
	if (!k)
		return;
	mutex_lock(&k->lock);
	k->closing = true;
	cond_broadcast(&k->changed);
	mutex_unlock(&k->lock);
	thread_join(&k->cleaner);
	cond_destroy(&k->changed);
	mutex_destroy(&k->lock);
	free(k->v);
	free(k->dir);
	free(k);
}

const struct kept_options *kept_limits(const struct kept *k)
{
	return &k->o;
}

/* ---- keeping ---- */

static enum err_code kept_new_id(char id[KEPT_ID_BYTES + 1], struct err *err)
{
	unsigned char random[KEPT_ID_BYTES / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_errno(err, errno, "random id");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(id + 2 * i, 3, "%02x", random[i]);
	return ERR_OK;
}

static enum err_code kept_check_disk(const struct kept *k, uint64_t bytes, struct err *err)
{
	uint64_t free_bytes;
	enum err_code rc;

	if (!k->o.free_bytes_min)
		return ERR_OK;
	rc = k->o.fs->ops->free_bytes(k->o.fs, k->dir, &free_bytes, err);
	if (rc || free_bytes >= k->o.free_bytes_min + bytes)
		return rc;
	return err_set(err, ERR_UNAVAILABLE,
		"disk is full: %s free, %s needed above the reserve of %s (--storage.tsdb.free-reserve)",
		str_size_of(free_bytes).text, str_size_of(bytes).text,
		str_size_of(k->o.free_bytes_min).text);
}

/* Which file would have to go is said, and left to people. */
static enum err_code kept_check_room(const struct kept *k, uint64_t bytes, struct err *err)
{
	const struct kept_file *first = NULL;
	struct buf when = { 0 };

	mutex_assert_held(&k->lock);
	if (k->n >= KEPT_FILES_MAX)
		return err_set(err, ERR_LIMIT, "%u files are stored, the limit", KEPT_FILES_MAX);
	if (bytes <= k->o.bytes_max && k->bytes <= k->o.bytes_max - bytes)
		return ERR_OK;
	for (size_t i = 0; i < k->n; i++)
		if (!k->v[i].damaged && (!first || k->v[i].expires_ns < first->expires_ns))
			first = &k->v[i];
	if (first)
		time_print_rfc3339(&when, first->expires_ns);
	err_set(err, ERR_LIMIT,
		"the file has %" PRIu64 " bytes and %" PRIu64 " are kept already, limit %" PRIu64
		" (--storage.files.max-size)%s" STR_FMT,
		bytes, k->bytes, k->o.bytes_max, first ? "; the first of them expires at " : "",
		STR_ARG(buf_str(&when)));
	buf_release(&when);
	return ERR_LIMIT;
}

static enum err_code kept_check_time(const struct kept *k, int64_t keep_ns, struct err *err)
{
	struct buf asked = { 0 }, most = { 0 };

	if (keep_ns >= NS_PER_S && keep_ns <= k->o.time_max_ns)
		return ERR_OK;
	duration_print(&asked, keep_ns);
	duration_print(&most, k->o.time_max_ns);
	err_set(err, ERR_LIMIT,
		"a file cannot be kept for " STR_FMT ": 1s to " STR_FMT " (--storage.files.max-time)",
		STR_ARG(buf_str(&asked)), STR_ARG(buf_str(&most)));
	buf_release(&asked);
	buf_release(&most);
	return ERR_LIMIT;
}

static enum err_code kept_write_one(
	struct kept *k, const struct kept_head *h, struct str bytes, struct err *err)
{
	struct buf all = { 0 };
	char path[4096];
	enum err_code rc;

	if (!kept_path_of(k, h->file.id, path, sizeof(path)))
		return err_set(err, ERR_IO, "%s: the path is too long", k->dir);
	kept_head_print(h, &all);
	buf_add(&all, bytes.ptr, bytes.len);
	if (buf_failed(&all))
		rc = err_nomem(err, "file");
	else if (!(rc = fs_mkdir_all(k->o.fs, k->dir, err)) && !(rc = kept_check_disk(k, all.len, err)))
		rc = fs_write_file(k->o.fs, path, buf_str(&all), err);
	buf_release(&all);
	return rc;
}

enum err_code kept_put(struct kept *k, struct str name, struct str bytes, int64_t keep_ns,
	int64_t now_ns, struct kept_file *out, struct err *err)
{
	struct kept_head h = { .file = { .bytes = bytes.len } };
	enum err_code rc;

	if ((rc = kept_check_time(k, keep_ns, err)) || (rc = kept_new_id(h.file.id, err)))
		return rc;
	if (bytes.len > FILE_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "the file has %zu bytes, limit %u", bytes.len, FILE_BYTES_MAX);
	kept_file_set_name(&h.file, name);
	h.file.created_ns = now_ns / NS_PER_S * NS_PER_S;
	h.file.expires_ns = (now_ns + keep_ns) / NS_PER_S * NS_PER_S;
	h.checksum = kept_checksum(&h.file, bytes);
	mutex_lock(&k->lock);
	files_kept_expire(k, now_ns);
	if (!(rc = kept_check_room(k, bytes.len, err)) && !(rc = kept_write_one(k, &h, bytes, err)))
		rc = kept_add(k, &h.file, err);
	mutex_unlock(&k->lock);
	if (!rc)
		*out = h.file;
	return rc == ERR_NOT_FOUND ? ERR_IO : rc;
}

/* ---- reading ---- */

static enum err_code kept_none(struct str id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no stored file %s: removed or expired", QUOTED(id));
}

static enum err_code kept_read_bytes(
	const struct kept *k, struct kept_file *f, struct arena *a, struct str *bytes, struct err *err)
{
	struct buf all = { 0 };
	struct kept_head h;
	char path[4096];
	enum err_code rc;

	if (!kept_path_of(k, f->id, path, sizeof(path)))
		return err_set(err, ERR_IO, "%s: the path is too long", k->dir);
	if ((rc = fs_read_file(path, FILE_BYTES_MAX + KEPT_HEAD_BYTES_MAX, &all, err))) {
		buf_release(&all);
		return rc;
	}
	rc = kept_head_parse(buf_str(&all), &h, err);
	if (!rc && all.len - h.len != h.file.bytes)
		rc = err_set(err, ERR_CORRUPT, "it has %zu bytes instead of %" PRIu64, all.len - h.len,
			h.file.bytes);
	if (!rc) {
		*bytes = (struct str){ all.ptr + h.len, all.len - h.len };
		if (kept_checksum(&h.file, *bytes) != h.checksum)
			rc = err_set(err, ERR_CORRUPT, "its bytes are not those that were written");
	}
	if (!rc && !(*bytes = str_dup(a, *bytes)).ptr)
		rc = arena_fail(a, "file", err);
	buf_release(&all);
	return rc == ERR_CORRUPT ? err_wrap(err, rc, "the kept file %s is damaged", path) : rc;
}

enum err_code kept_get(struct kept *k, struct str id, int64_t now_ns, struct arena *a,
	struct kept_file *out, struct str *bytes, struct err *err)
{
	bool there;
	size_t i;

	mutex_lock(&k->lock);
	i = kept_find(k, id);
	there = i < k->n && (k->v[i].damaged || k->v[i].expires_ns > now_ns);
	if (there)
		*out = k->v[i];
	mutex_unlock(&k->lock);
	if (!there)
		return kept_none(id, err);
	if (!bytes && out->damaged)
		return err_set(
			err, ERR_CORRUPT, "the kept file %s/%s" SUFFIX " is damaged", k->dir, out->id);
	if (!bytes)
		return ERR_OK;
	return kept_read_bytes(k, out, a, bytes, err);
}

enum err_code kept_delete(struct kept *k, struct str id, struct err *err)
{
	enum err_code rc;
	size_t i;

	mutex_lock(&k->lock);
	i = kept_find(k, id);
	rc = i < k->n ? kept_drop(k, i, err) : kept_none(id, err);
	mutex_unlock(&k->lock);
	return rc;
}

static int kept_by_expiry(const void *a, const void *b)
{
	const struct kept_file *l = a, *r = b;

	if (l->expires_ns != r->expires_ns)
		return l->expires_ns < r->expires_ns ? -1 : 1;
	return strcmp(l->id, r->id);
}

enum err_code kept_list(struct kept *k, int64_t now_ns, struct arena *a, struct kept_file **out,
	size_t *n, struct err *err)
{
	struct kept_file *v;

	mutex_lock(&k->lock);
	files_kept_expire(k, now_ns);
	v = arena_array(a, struct kept_file, k->n + 1);
	*n = v ? k->n : 0;
	if (*n)
		memcpy(v, k->v, *n * sizeof(*v));
	mutex_unlock(&k->lock);
	if (!v)
		return arena_fail(a, "files", err);
	qsort(v, *n, sizeof(*v), kept_by_expiry);
	*out = v;
	return ERR_OK;
}
