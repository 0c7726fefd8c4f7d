#include "web/files/kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "web/files/kept_internal.h"

METRIC_GAUGE(kept_bytes, "epimetheus_files_kept_bytes",
	"Bytes of profiles that are kept; with a bucket those of all members.", NULL);
METRIC_GAUGE(kept_files, "epimetheus_files_kept",
	"Profiles that are kept until they expire; with a bucket those of all members.", NULL);

/* ---- the table ---- */

void kept_publish(const struct kept *k)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < k->n; i++)
		bytes += k->v[i].head.file.bytes;
	metric_set(&kept_bytes, NULL, (double)bytes);
	metric_set(&kept_files, NULL, (double)k->n);
}

size_t kept_place(const struct kept *k, struct str id)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(str_of(k->v[middle].head.file.id), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct kept_entry *kept_find(struct kept *k, struct str id)
{
	size_t at = kept_place(k, id);

	mutex_assert_held(&k->lock);
	return at < k->n && str_is(id, k->v[at].head.file.id) ? &k->v[at] : NULL;
}

enum err_code kept_add(struct kept *k, const struct kept_entry *e, struct err *err)
{
	size_t at = kept_place(k, str_of(e->head.file.id));

	mutex_assert_held(&k->lock);
	if (!array_room(&k->v, k->n, 1, &k->cap))
		return err_nomem(err, "files");
	memmove(&k->v[at + 1], &k->v[at], (k->n - at) * sizeof(*k->v));
	k->v[at] = *e;
	k->n++;
	kept_publish(k);
	return ERR_OK;
}

void kept_remove(struct kept *k, struct kept_entry *e)
{
	size_t at = (size_t)(e - k->v);

	mutex_assert_held(&k->lock);
	memmove(&k->v[at], &k->v[at + 1], (--k->n - at) * sizeof(*k->v));
	kept_publish(k);
}

bool kept_is_over(const struct kept_file *f, int64_t now_ns)
{
	return f->expires_ns && f->expires_ns <= now_ns;
}

enum err_code kept_none(struct str id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no stored file %s: removed or expired", QUOTED(id));
}

/* What the bucket has stays in the table until it is removed there. */
static void kept_expire_copies(struct kept *k, int64_t now_ns)
{
	struct err err;

	mutex_assert_held(&k->lock);
	for (size_t i = k->n; i-- > 0;) {
		struct kept_entry *e = &k->v[i];

		if (!kept_is_over(&e->head.file, now_ns))
			continue;
		if (kept_disk_remove(k, e, &err))
			log_warn(
				"files", "a file that is over stays", LOG_S("id", e->head.file.id), LOG_E(&err));
		else if (!e->seen)
			kept_remove(k, e);
	}
}

void kept_expire(struct kept *k, int64_t now_ns)
{
	mutex_lock(&k->lock);
	kept_expire_copies(k, now_ns);
	mutex_unlock(&k->lock);
}

static void kept_clean(void *ctx)
{
	struct kept *k = ctx;

	mutex_lock(&k->lock);
	while (!k->closing) {
		int64_t now_ns = clock_now_ns();

		kept_expire_copies(k, now_ns);
		if (k->o.bucket) {
			mutex_unlock(&k->lock);
			kept_bucket_round(k, now_ns);
			mutex_lock(&k->lock);
		}
		if (!k->closing)
			cond_wait_until(&k->changed, &k->lock, clock_monotonic_ns() + k->o.look_ns);
	}
	mutex_unlock(&k->lock);
}

/* ---- open, close ---- */

enum err_code kept_open(const struct kept_options *o, struct kept **out, struct err *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	enum err_code rc;

	if (!k)
		return err_nomem(err, "files");
	k->o = *o;
	k->o.look_ns = o->look_ns ? o->look_ns : KEPT_LOOK_NS;
	k->o.list_ns = o->list_ns ? o->list_ns : KEPT_LIST_NS;
	k->o.rest_ns = o->rest_ns ? o->rest_ns : KEPT_REST_NS;
	mutex_init(&k->keeping);
	mutex_init(&k->lock);
	cond_init(&k->changed);
	if (!(k->dir = strdup(o->dir)))
		rc = err_nomem(err, "files");
	else if (!(rc = kept_disk_load(k, err)))
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
	mutex_destroy(&k->keeping);
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

/* Which file would have to go is said, and left to people. */
static enum err_code kept_check_room(
	const struct kept *k, uint64_t bytes, int64_t now_ns, struct err *err)
{
	const struct kept_file *first = NULL;
	struct buf when = { 0 };
	uint64_t sum = 0;
	size_t n = 0;

	mutex_assert_held(&k->lock);
	for (size_t i = 0; i < k->n; i++) {
		const struct kept_file *f = &k->v[i].head.file;

		if (kept_is_over(f, now_ns))
			continue;
		sum += f->bytes;
		n++;
		if (!f->damaged && (!first || f->expires_ns < first->expires_ns))
			first = f;
	}
	if (n >= KEPT_FILES_MAX)
		return err_set(err, ERR_LIMIT, "%u files are stored, the limit", KEPT_FILES_MAX);
	if (bytes <= k->o.bytes_max && sum <= k->o.bytes_max - bytes)
		return ERR_OK;
	if (first)
		time_print_rfc3339(&when, first->expires_ns);
	err_set(err, ERR_LIMIT,
		"the file has %" PRIu64 " bytes and %" PRIu64 " are kept already, limit %" PRIu64
		" (--storage.files.max-size)%s" STR_FMT,
		bytes, sum, k->o.bytes_max, first ? "; the first of them expires at " : "",
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

static enum err_code kept_put_here(
	struct kept *k, const struct kept_head *h, struct str whole, struct err *err)
{
	struct kept_entry e = { .head = *h, .copy = KEPT_OWN };
	enum err_code rc = kept_disk_write(k, &e, whole, err);

	return rc ? rc : kept_add(k, &e, err);
}

/* The limits are those of all members: what they have is looked up first. */
static enum err_code kept_put_whole(
	struct kept *k, const struct kept_head *h, struct str whole, int64_t now_ns, struct err *err)
{
	enum err_code rc;

	mutex_assert_held(&k->keeping);
	if (k->o.bucket && (rc = kept_bucket_refresh(k, err)))
		return err_wrap(err, rc, "the file cannot be kept in the bucket");
	mutex_lock(&k->lock);
	kept_expire_copies(k, now_ns);
	rc = kept_check_room(k, h->file.bytes, now_ns, err);
	if (!rc && !k->o.bucket)
		rc = kept_put_here(k, h, whole, err);
	mutex_unlock(&k->lock);
	if (!rc && k->o.bucket && (rc = kept_bucket_put(k, h, whole, err)))
		return err_wrap(err, rc, "the file cannot be kept in the bucket");
	return rc;
}

enum err_code kept_put(struct kept *k, struct str name, struct str bytes, int64_t keep_ns,
	int64_t now_ns, struct kept_file *out, struct err *err)
{
	struct kept_head h = { .file = { .bytes = bytes.len } };
	struct buf whole = { 0 };
	enum err_code rc;

	if ((rc = kept_check_time(k, keep_ns, err)) || (rc = kept_new_id(h.file.id, err)))
		return rc;
	if (bytes.len > KEPT_FILE_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "the file has %zu bytes, limit %u", bytes.len, KEPT_FILE_BYTES_MAX);
	kept_file_set_name(&h.file, name);
	h.file.created_ns = now_ns / NS_PER_S * NS_PER_S;
	h.file.expires_ns = (now_ns + keep_ns) / NS_PER_S * NS_PER_S;
	h.checksum = kept_checksum(&h.file, bytes);
	kept_head_print(&h, &whole);
	h.len = whole.len;
	buf_add_str(&whole, bytes);
	if (buf_failed(&whole)) {
		rc = err_nomem(err, "file");
	} else {
		mutex_lock(&k->keeping);
		rc = kept_put_whole(k, &h, buf_str(&whole), now_ns, err);
		mutex_unlock(&k->keeping);
	}
	buf_release(&whole);
	if (!rc)
		*out = h.file;
	return rc == ERR_NOT_FOUND ? ERR_IO : rc;
}

/* ---- reading ---- */

enum err_code kept_get(struct kept *k, struct str id, int64_t now_ns, struct arena *a,
	struct kept_file *out, struct str *bytes, struct err *err)
{
	struct kept_entry e = { 0 }, *found;
	struct buf whole = { 0 };
	enum err_code rc;

	if (k->o.bucket)
		return kept_bucket_get(k, id, now_ns, a, out, bytes, err);
	mutex_lock(&k->lock);
	if ((found = kept_find(k, id)))
		e = *found;
	mutex_unlock(&k->lock);
	if (!e.copy || kept_is_over(&e.head.file, now_ns))
		return kept_none(id, err);
	*out = e.head.file;
	rc = kept_disk_read(k, &e, &whole, bytes, err);
	if (!rc && !(*bytes = str_dup(a, *bytes)).ptr)
		rc = arena_fail(a, "file", err);
	buf_release(&whole);
	return rc;
}

enum err_code kept_delete(struct kept *k, struct str id, struct err *err)
{
	struct kept_entry *e;
	enum err_code rc;

	if (k->o.bucket)
		return kept_bucket_delete(k, id, err);
	mutex_lock(&k->lock);
	e = kept_find(k, id);
	rc = e ? kept_disk_remove(k, e, err) : kept_none(id, err);
	if (!rc)
		kept_remove(k, e);
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

/* The bucket does not answer. "": no memory for a warning. */
static struct str kept_say_old(struct kept *k, const struct err *why, struct arena *a)
{
	struct buf when = { 0 };
	int64_t listed_ns;
	char *text;

	mutex_lock(&k->lock);
	listed_ns = k->listed_ns;
	mutex_unlock(&k->lock);
	if (listed_ns)
		time_print_rfc3339(&when, listed_ns);
	text = listed_ns ?
		arena_printf(a, "the bucket of kept files cannot be listed (%s): the files as of " STR_FMT,
			why->msg, STR_ARG(buf_str(&when))) :
		arena_printf(a,
			"the bucket of kept files cannot be listed (%s): the files on this server's disk",
			why->msg);
	buf_release(&when);
	return text ? str_of(text) : STR("");
}

enum err_code kept_list(
	struct kept *k, int64_t now_ns, struct arena *a, struct kept_listing *out, struct err *err)
{
	struct err why;

	*out = (struct kept_listing){ 0 };
	if (k->o.bucket && kept_bucket_refresh(k, &why))
		out->warning = kept_say_old(k, &why, a);
	mutex_lock(&k->lock);
	kept_expire_copies(k, now_ns);
	out->v = arena_array(a, struct kept_file, k->n + 1);
	for (size_t i = 0; out->v && i < k->n; i++)
		if (!kept_is_over(&k->v[i].head.file, now_ns))
			out->v[out->n++] = k->v[i].head.file;
	mutex_unlock(&k->lock);
	if (!out->v)
		return arena_fail(a, "files", err);
	qsort(out->v, out->n, sizeof(*out->v), kept_by_expiry);
	return ERR_OK;
}
