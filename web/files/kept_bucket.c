/*
 * Kept files of a cluster, in the bucket: files/ID-CREATED-EXPIRES-BYTES-CHECKSUM-NAME, with the
 * bytes that the file has on a disk. An object never changes, so a copy of it is as good; whether
 * it is still there is asked each time a file is opened. So what another member kept a moment ago
 * opens, and what it removed does not.
 *
 * Who lists the bucket may have an old list by the time that it is read. Each call has a number:
 * an entry that a later call saw stays, whatever the list says. Objects are removed by the time in
 * their own key alone, so no list removes what is not over; and ten minutes late, as members'
 * clocks differ.
 *
 * While the bucket does not answer, copies open, and it is not asked again for some seconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/bucket/bucket.h"
#include "web/files/kept_internal.h"

#define REMOVE_LATE_NS (10 * NS_PER_MIN)
#define LISTED_MAX (2 * KEPT_FILES_MAX) /* members that keep at once pass the limit a little */

METRIC_COUNTER(shared_files_total, "epimetheus_files_shared_total",
	"Kept files that went to or came from the bucket: put, taken, removed, damaged, failed.",
	"result");

/* ---- calls of the bucket ---- */

static bool kept_bucket_is_closing(struct kept *k)
{
	bool closing;

	mutex_lock(&k->lock);
	closing = k->closing;
	mutex_unlock(&k->lock);
	return closing;
}

/* The number of the call that begins. ERR_UNAVAILABLE: it did not answer a moment ago. */
static enum err_code kept_bucket_begin(struct kept *k, uint64_t *number, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&k->lock);
	*number = ++k->calls;
	if (clock_monotonic_ns() < k->rest_ns) {
		*err = k->why;
		rc = err->code;
	}
	mutex_unlock(&k->lock);
	return rc;
}

/* How a call ended: any error of a bucket that did not answer becomes ERR_UNAVAILABLE. */
static enum err_code kept_bucket_end(struct kept *k, enum err_code rc, struct err *err)
{
	bool answered = !rc || rc == ERR_EXISTS || rc == ERR_NOT_FOUND || rc == ERR_CORRUPT;
	bool canceled = rc == ERR_CANCELED;

	if (!answered)
		rc = err->code = ERR_UNAVAILABLE;
	if (canceled)
		return rc;
	mutex_lock(&k->lock);
	if (!answered) {
		metric_add(&shared_files_total, "failed", 1);
		k->rest_ns = clock_monotonic_ns() + k->o.rest_ns;
		k->why = *err;
	}
	if (!answered && !k->failing)
		log_warn("files", "the bucket of kept files is not reached", LOG_E(err));
	if (answered && k->failing)
		log_info("files", "the bucket of kept files is reached again");
	k->failing = !answered;
	mutex_unlock(&k->lock);
	return rc;
}

static void kept_bucket_note_size(struct kept_head *h, uint64_t bytes)
{
	h->file.damaged = bytes != h->len + h->file.bytes;
}

/* ---- the list ---- */

struct kept_bucket_list {
	struct kept *k;
	struct kept_entry *v; /* ascending by id, each once */
	size_t n, cap;
};

static enum err_code kept_bucket_visit(void *ctx, const struct bucket_object *o, struct err *err)
{
	struct kept_bucket_list *l = ctx;
	struct kept_entry e = { 0 };

	if (kept_bucket_is_closing(l->k))
		return err_set(err, ERR_CANCELED, "the server ends");
	if (o->is_prefix || !kept_key_parse(o->key, &e.head) || l->n == LISTED_MAX)
		return ERR_OK;
	if (l->n && strcmp(l->v[l->n - 1].head.file.id, e.head.file.id) >= 0)
		return ERR_OK;
	if (!array_room(&l->v, l->n, 1, &l->cap))
		return err_nomem(err, "list of files");
	kept_bucket_note_size(&e.head, o->info.bytes);
	l->v[l->n++] = e;
	return ERR_OK;
}

/* The list of the call `began` lacks it. */
static bool kept_bucket_stays(struct kept *k, struct kept_entry *e, uint64_t began)
{
	struct err err;

	if (e->seen > began || (e->copy == KEPT_OWN && !e->seen))
		return true;
	if (!kept_disk_remove(k, e, &err))
		return false;
	log_warn("files", "a copy of a removed file stays", LOG_S("id", e->head.file.id), LOG_E(&err));
	return true;
}

static struct kept_entry kept_bucket_joined(
	const struct kept_entry *known, const struct kept_entry *listed, uint64_t began)
{
	struct kept_entry e = *known;

	if (e.copy != KEPT_OWN || e.head.file.damaged)
		e.head = listed->head;
	if (e.seen < began)
		e.seen = began;
	return e;
}

/* Both are ascending. */
static enum err_code kept_bucket_merge(
	struct kept *k, const struct kept_bucket_list *l, uint64_t began, struct err *err)
{
	struct kept_entry *v;
	size_t n = 0, i = 0, j = 0;

	mutex_assert_held(&k->lock);
	if (!(v = reallocarray(NULL, k->n + l->n + 1, sizeof(*v))))
		return err_nomem(err, "list of files");
	while (i < k->n || j < l->n) {
		int order = i == k->n ? 1 :
			j == l->n         ? -1 :
								strcmp(k->v[i].head.file.id, l->v[j].head.file.id);

		if (order > 0) {
			v[n] = l->v[j++];
			v[n++].seen = began;
		} else if (!order) {
			v[n++] = kept_bucket_joined(&k->v[i++], &l->v[j++], began);
		} else if (kept_bucket_stays(k, &k->v[i++], began)) {
			v[n++] = k->v[i - 1];
		}
	}
	free(k->v);
	k->v = v;
	k->n = n;
	k->cap = n;
	kept_publish(k);
	return ERR_OK;
}

enum err_code kept_bucket_refresh(struct kept *k, struct err *err)
{
	struct kept_bucket_list l = { .k = k };
	uint64_t began;
	enum err_code rc = kept_bucket_begin(k, &began, err);

	if (rc)
		return rc;
	rc = bucket_list(k->o.bucket, STR(KEPT_PREFIX), STR(""), STR(""), kept_bucket_visit, &l, err);
	if (!(rc = kept_bucket_end(k, rc, err))) {
		mutex_lock(&k->lock);
		if (!(rc = kept_bucket_merge(k, &l, began, err)))
			k->listed_ns = clock_now_ns();
		mutex_unlock(&k->lock);
	}
	free(l.v);
	return rc;
}

/* ---- one file ---- */

static bool kept_bucket_lookup(struct kept *k, struct str id, struct kept_entry *out)
{
	struct kept_entry *e;

	mutex_lock(&k->lock);
	if ((e = kept_find(k, id)))
		*out = *e;
	mutex_unlock(&k->lock);
	return e != NULL;
}

/* A list of those with that id, which is one or none. */
static enum err_code kept_bucket_locate(
	struct kept *k, struct str id, struct kept_entry *out, struct err *err)
{
	struct kept_bucket_list l = { .k = k };
	struct buf prefix = { 0 };
	enum err_code rc;

	buf_printf(&prefix, KEPT_PREFIX STR_FMT "-", STR_ARG(id));
	rc = bucket_list(k->o.bucket, buf_str(&prefix), STR(""), STR(""), kept_bucket_visit, &l, err);
	if (!rc && !l.n)
		rc = kept_none(id, err);
	if (!rc)
		*out = l.v[0];
	buf_release(&prefix);
	free(l.v);
	return rc;
}

static enum err_code kept_bucket_head(struct kept *k, struct kept_head *h, struct err *err)
{
	struct bucket_info info = { 0 };
	struct buf key = { 0 };
	enum err_code rc;

	kept_key_print(h, &key);
	if (!(rc = bucket_head(k->o.bucket, buf_str(&key), &info, err)))
		kept_bucket_note_size(h, info.bytes);
	buf_release(&key);
	return rc;
}

static void kept_bucket_forget(struct kept *k, struct str id)
{
	struct kept_entry *e;
	struct err err;

	mutex_lock(&k->lock);
	if ((e = kept_find(k, id)) && !kept_disk_remove(k, e, &err))
		kept_remove(k, e);
	mutex_unlock(&k->lock);
}

/* The bucket has it, and so *e is in the table. ERR_NOT_FOUND: neither. e->copy is not changed. */
static enum err_code kept_bucket_confirm(
	struct kept *k, struct str id, bool known, struct kept_entry *e, struct err *err)
{
	struct kept_entry *found;
	uint64_t began;
	enum err_code rc = kept_bucket_begin(k, &began, err);

	if (rc)
		return rc;
	rc = known ? kept_bucket_head(k, &e->head, err) : kept_bucket_locate(k, id, e, err);
	rc = kept_bucket_end(k, rc, err);
	if (rc == ERR_NOT_FOUND)
		kept_bucket_forget(k, id);
	if (rc)
		return rc;
	mutex_lock(&k->lock);
	if ((found = kept_find(k, id))) {
		found->seen = found->seen < began ? began : found->seen;
	} else {
		e->seen = began;
		rc = kept_add(k, e, err);
	}
	mutex_unlock(&k->lock);
	return rc;
}

/* What cannot be cached is asked for again the next time. */
static void kept_bucket_cache(struct kept *k, struct str id, struct str whole)
{
	struct kept_entry *e;
	struct err err;

	mutex_lock(&k->lock);
	if ((e = kept_find(k, id)) && e->copy == KEPT_NOT_HERE) {
		kept_disk_make_room(k, e->head.file.bytes);
		e->copy = KEPT_CACHED;
		e->used = ++k->calls;
		if (kept_disk_write(k, e, whole, &err)) {
			e->copy = KEPT_NOT_HERE;
			log_debug("files", "a kept file is not cached", LOG_E(&err));
		}
	}
	mutex_unlock(&k->lock);
}

static enum err_code kept_bucket_fetch(struct kept *k, const struct kept_entry *e,
	struct buf *whole, struct str *bytes, struct err *err)
{
	struct str id = str_of(e->head.file.id);
	struct buf key = { 0 };
	uint64_t number;
	enum err_code rc = kept_bucket_begin(k, &number, err);

	if (rc)
		return rc;
	kept_key_print(&e->head, &key);
	if (e->head.file.damaged)
		rc = err_set(err, ERR_CORRUPT, "its size is not that of its name");
	else
		rc = bucket_get(
			k->o.bucket, buf_str(&key), 0, e->head.len + e->head.file.bytes + 1, whole, NULL, err);
	if (!(rc = kept_bucket_end(k, rc, err)))
		rc = kept_head_verify(&e->head, buf_str(whole), bytes, err);
	if (rc == ERR_CORRUPT) {
		metric_add(&shared_files_total, "damaged", 1);
		err_wrap(err, rc, "the kept file " STR_FMT " of " STR_FMT " is damaged",
			STR_ARG(buf_str(&key)), STR_ARG(bucket_name(k->o.bucket)));
	}
	buf_release(&key);
	if (rc == ERR_NOT_FOUND)
		return kept_none(id, err);
	if (rc)
		return rc;
	metric_add(&shared_files_total, "taken", 1);
	kept_bucket_cache(k, id, buf_str(whole));
	return ERR_OK;
}

/* Of the copy here, or of the bucket where there is none that is sound. */
static enum err_code kept_bucket_read(struct kept *k, const struct kept_entry *e, struct buf *whole,
	struct str *bytes, struct err *err)
{
	struct str id = str_of(e->head.file.id);
	struct kept_entry *found;
	enum err_code rc;

	if (e->copy == KEPT_NOT_HERE)
		return kept_bucket_fetch(k, e, whole, bytes, err);
	rc = kept_disk_read(k, e, whole, bytes, err);
	mutex_lock(&k->lock);
	if ((found = kept_find(k, id)) && !rc)
		found->used = ++k->calls;
	if (found && found->copy == KEPT_CACHED && (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND)) {
		log_warn("files", "a copy of a kept file is damaged, or gone", LOG_E(err));
		if (kept_disk_remove(k, found, err))
			log_warn("files", "it stays", LOG_E(err));
	}
	mutex_unlock(&k->lock);
	if (!rc || (e->copy == KEPT_OWN && rc != ERR_NOT_FOUND))
		return rc;
	buf_clear(whole);
	return kept_bucket_fetch(k, e, whole, bytes, err);
}

enum err_code kept_bucket_get(struct kept *k, struct str id, int64_t now_ns, struct arena *a,
	struct kept_file *out, struct str *bytes, struct err *err)
{
	struct kept_entry e = { 0 };
	struct buf whole = { 0 };
	bool known = kept_bucket_lookup(k, id, &e);
	enum err_code rc = kept_is_id(id) ? ERR_OK : ERR_NOT_FOUND;

	if (!rc && (!known || e.copy != KEPT_OWN || e.seen))
		rc = kept_bucket_confirm(k, id, known, &e, err);
	/* One that is not known has no time. */
	if (rc == ERR_NOT_FOUND || kept_is_over(&e.head.file, now_ns))
		return kept_none(id, err);
	if (!rc || e.copy != KEPT_NOT_HERE)
		rc = kept_bucket_read(k, &e, &whole, bytes, err);
	if (!rc && !(*bytes = str_dup(a, *bytes)).ptr)
		rc = arena_fail(a, "file", err);
	buf_release(&whole);
	*out = e.head.file;
	out->damaged = rc != ERR_OK;
	return rc == ERR_UNAVAILABLE ? err_wrap(err, rc, "the bucket of kept files cannot be used") :
								   rc;
}

enum err_code kept_bucket_put(
	struct kept *k, const struct kept_head *h, struct str whole, struct err *err)
{
	struct kept_entry e = { .head = *h };
	struct buf key = { 0 };
	uint64_t number;
	enum err_code rc;
	struct err why;

	mutex_assert_held(&k->keeping);
	if ((rc = kept_bucket_begin(k, &number, err)))
		return rc;
	kept_key_print(h, &key);
	rc = bucket_put(k->o.bucket, buf_str(&key), whole, BUCKET_IF_ABSENT, NULL, NULL, err);
	rc = kept_bucket_end(k, rc, err);
	buf_release(&key);
	if (rc)
		return rc;
	metric_add(&shared_files_total, "put", 1);
	mutex_lock(&k->lock);
	e.seen = ++k->calls;
	if (kept_add(k, &e, &why))
		log_debug("files", "the next list has it", LOG_E(&why));
	mutex_unlock(&k->lock);
	kept_bucket_cache(k, str_of(h->file.id), whole);
	return ERR_OK;
}

static enum err_code kept_bucket_remove(struct kept *k, const struct kept_head *h, struct err *err)
{
	struct buf key = { 0 };
	enum err_code rc;

	kept_key_print(h, &key);
	rc = kept_bucket_end(k, bucket_delete(k->o.bucket, buf_str(&key), err), err);
	buf_release(&key);
	if (!rc)
		metric_add(&shared_files_total, "removed", 1);
	return rc;
}

enum err_code kept_bucket_delete(struct kept *k, struct str id, struct err *err)
{
	struct kept_entry e = { 0 }, there = { 0 };
	uint64_t number;
	bool own;
	enum err_code rc;

	if (!kept_is_id(id))
		return kept_none(id, err);
	mutex_lock(&k->keeping);
	own = kept_bucket_lookup(k, id, &e) && e.copy == KEPT_OWN && !e.seen;
	if (!(rc = kept_bucket_begin(k, &number, err))) {
		rc = kept_bucket_end(k, kept_bucket_locate(k, id, &there, err), err);
		if (!rc)
			rc = kept_bucket_remove(k, &there.head, err);
		else if (rc == ERR_NOT_FOUND && own)
			rc = ERR_OK;
	}
	if (!rc || rc == ERR_NOT_FOUND)
		kept_bucket_forget(k, id);
	mutex_unlock(&k->keeping);
	return rc == ERR_UNAVAILABLE ? err_wrap(err, rc, "the bucket of kept files cannot be used") :
								   rc;
}

/* ---- rounds ---- */

/* Entries that fit, one after the other; `last` is the id of the one before. */
static bool kept_bucket_next(struct kept *k, char last[KEPT_ID_BYTES + 1],
	bool (*fits)(const struct kept_entry *e, int64_t now_ns), int64_t now_ns,
	struct kept_entry *out)
{
	bool found = false;

	mutex_lock(&k->lock);
	for (size_t i = kept_place(k, str_of(last)); i < k->n && !found && !k->closing; i++) {
		if (!strcmp(k->v[i].head.file.id, last) || !fits(&k->v[i], now_ns))
			continue;
		*out = k->v[i];
		found = true;
	}
	if (found)
		memcpy(last, out->head.file.id, KEPT_ID_BYTES + 1);
	mutex_unlock(&k->lock);
	return found;
}

static bool kept_bucket_is_to_put(const struct kept_entry *e, int64_t now_ns)
{
	return e->copy == KEPT_OWN && !e->head.file.damaged && !kept_is_over(&e->head.file, now_ns);
}

static bool kept_bucket_is_to_remove(const struct kept_entry *e, int64_t now_ns)
{
	return e->seen && kept_is_over(&e->head.file, now_ns - REMOVE_LATE_NS);
}

/* The bucket has it: the file here is a copy. */
static void kept_bucket_make_copy(struct kept *k, struct str id)
{
	struct kept_entry *e;
	struct err err;

	mutex_lock(&k->lock);
	if ((e = kept_find(k, id)) && e->copy == KEPT_OWN) {
		e->seen = ++k->calls;
		e->used = k->calls;
		if (kept_disk_make_cached(k, e, &err))
			log_warn("files", "a kept file is not marked as a copy", LOG_S("id", e->head.file.id),
				LOG_E(&err));
		kept_disk_make_room(k, 0);
	}
	mutex_unlock(&k->lock);
}

static void kept_bucket_refuse(struct kept *k, struct str id, const struct err *why)
{
	struct kept_entry *e;

	log_warn("files", "a kept file does not go to the bucket", LOG_STR("id", id), LOG_E(why));
	mutex_lock(&k->lock);
	if ((e = kept_find(k, id)))
		e->head.file.damaged = true;
	mutex_unlock(&k->lock);
}

/* One from before the bucket. What is damaged stays where it is. */
static enum err_code kept_bucket_put_own(
	struct kept *k, const struct kept_entry *e, struct err *err)
{
	struct str id = str_of(e->head.file.id), bytes;
	struct buf whole = { 0 }, key = { 0 };
	uint64_t number;
	enum err_code rc;

	if (!e->seen && (rc = kept_disk_read(k, e, &whole, &bytes, err))) {
		if (rc == ERR_CORRUPT)
			kept_bucket_refuse(k, id, err);
		buf_release(&whole);
		return ERR_OK;
	}
	if (!e->seen && !(rc = kept_bucket_begin(k, &number, err))) {
		kept_key_print(&e->head, &key);
		rc = bucket_put(
			k->o.bucket, buf_str(&key), buf_str(&whole), BUCKET_IF_ABSENT, NULL, NULL, err);
		rc = kept_bucket_end(k, rc, err);
		if (!rc)
			metric_add(&shared_files_total, "put", 1);
	} else if (e->seen) {
		rc = ERR_OK;
	}
	buf_release(&key);
	buf_release(&whole);
	if (rc && rc != ERR_EXISTS)
		return rc;
	kept_bucket_make_copy(k, id);
	return ERR_OK;
}

static enum err_code kept_bucket_put_all(struct kept *k, int64_t now_ns, struct err *err)
{
	char last[KEPT_ID_BYTES + 1] = "";
	struct kept_entry e;
	enum err_code rc = ERR_OK;

	while (!rc && kept_bucket_next(k, last, kept_bucket_is_to_put, now_ns, &e)) {
		mutex_lock(&k->keeping);
		/* Somebody may have removed it meanwhile. */
		if (kept_bucket_lookup(k, str_of(last), &e) && kept_bucket_is_to_put(&e, now_ns))
			rc = kept_bucket_put_own(k, &e, err);
		mutex_unlock(&k->keeping);
	}
	return rc;
}

static enum err_code kept_bucket_remove_over(struct kept *k, int64_t now_ns, struct err *err)
{
	char last[KEPT_ID_BYTES + 1] = "";
	struct kept_entry e;
	enum err_code rc = ERR_OK;

	while (!rc && kept_bucket_next(k, last, kept_bucket_is_to_remove, now_ns, &e))
		if (!(rc = kept_bucket_remove(k, &e.head, err)))
			kept_bucket_forget(k, str_of(last));
	return rc;
}

void kept_bucket_round(struct kept *k, int64_t now_ns)
{
	enum err_code rc;
	struct err err;
	bool due;

	mutex_lock(&k->lock);
	due = clock_monotonic_ns() >= k->next_list_ns;
	mutex_unlock(&k->lock);
	if (!due)
		return;
	if (!(rc = kept_bucket_refresh(k, &err)) && !(rc = kept_bucket_put_all(k, now_ns, &err)) &&
		k->o.removes)
		rc = kept_bucket_remove_over(k, now_ns, &err);
	if (rc)
		return; /* it was logged; the next look tries again */
	mutex_lock(&k->lock);
	k->next_list_ns = clock_monotonic_ns() + k->o.list_ns;
	mutex_unlock(&k->lock);
}
