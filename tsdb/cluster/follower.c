#include "tsdb/cluster/cluster_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/db.h"

/* ---- rounds ---- */

static void follower_count(struct follower *f, const struct manifest *m)
{
	struct follower_status *is = &f->is;

	is->generation = m->generation;
	is->through_ns = m->through_ns;
	is->written_ns = m->written_ns;
	is->interval_ns = m->interval_ns;
	is->stopped = m->stopped;
	is->assignment = m->assignment;
	f->lease_ns = m->lease_ns;
	is->windows = m->windows_n;
	is->blocks = m->blocks_n;
	is->bytes = manifest_bytes(m);
	is->segments = 0;
	for (uint32_t i = 0; i < m->windows_n; i++)
		is->segments += m->windows[i].segments_n;
	snprintf(is->host, sizeof(is->host), STR_FMT, STR_ARG(m->host));
}

/* The largest number that any follower has seen. */
static void follower_raise_newest(struct follower *f)
{
	uint64_t had = f->o.newest ? atomic_load(f->o.newest) : UINT64_MAX;

	while (had < f->is.assignment &&
		!atomic_compare_exchange_weak(f->o.newest, &had, f->is.assignment))
		;
}

/* A shard that is behind others. It lives as long as its manifest changes. */
static bool follower_is_behind(struct follower *f)
{
	int64_t now = clock_monotonic_ns();

	mutex_assert_held(&f->lock);
	if (!f->o.newest || !f->is.assignment || f->is.stopped ||
		f->is.assignment >= atomic_load(f->o.newest)) {
		f->behind_ns = 0;
		return false;
	}
	f->behind_ns = f->behind_ns ? f->behind_ns : now;
	return now - f->behind_ns > f->lease_ns && now - f->is.changed_ns <= f->lease_ns;
}

/* Objects that are gone, and blocks that cannot be opened. */
static void follower_count_missing(struct follower *f)
{
	struct db_status s;

	db_status(f->db, &s);
	mutex_lock(&f->lock);
	f->is.missing = s.unreachable;
	for (size_t i = 0; i < f->missing_n; i++)
		f->is.missing += !f->missing[i].hidden;
	mutex_unlock(&f->lock);
}

/* r's manifest and findings become the follower's. */
static void follower_keep(struct follow_round *r)
{
	struct follower *f = r->f;
	struct arena old = f->arena;

	mutex_lock(&f->lock);
	follow_missing_free(f->missing, f->missing_n);
	f->missing = r->missing;
	f->missing_n = r->missing_n;
	f->missing_cap = r->missing_cap;
	f->unread = r->unread;
	f->unread_n = r->unread_n;
	if (!f->unread_n)
		f->read_failed = (struct err){ 0 };
	if ((f->in_part = r->again)) {
		f->is.failed = r->first;
	} else {
		follower_count(f, &r->m);
		follower_raise_newest(f);
		f->looked_ns = r->began_ns;
		f->has_after_ns = f->after_ns;
	}
	f->arena = r->arena;
	f->m = r->m;
	mutex_unlock(&f->lock);
	arena_release(&old);
	f->whole = !r->again;
	follow_count_read(f);
}

/* after_ns, of our clock: the manifest was not there then; 0: nobody looked. */
static void follower_note_pace(struct follower_pace *p, const struct manifest *m, int64_t after_ns)
{
	int64_t before = m->generation == p->generation + 1 ? p->after_ns : after_ns;

	if (!str_is(m->session, p->session)) {
		*p = (struct follower_pace){ .ahead_ns = { PACE_UNKNOWN, PACE_UNKNOWN } };
		snprintf(p->session, sizeof(p->session), STR_FMT, STR_ARG(m->session));
	} else if (m->generation > p->generation && m->confirmed_ns && before) {
		if (p->n++ == PACE_MANIFESTS) {
			p->ahead_ns[1] = p->ahead_ns[0];
			p->ahead_ns[0] = PACE_UNKNOWN;
			p->n = 1;
		}
		if (before - m->confirmed_ns > p->ahead_ns[0])
			p->ahead_ns[0] = before - m->confirmed_ns;
	}
	p->generation = m->generation;
	p->after_ns = after_ns;
}

/* The earliest time, by our clock, at which the manifest was written; 0: not known. */
static int64_t follower_written_at(const struct follower_pace *p, const struct manifest *m)
{
	int64_t ahead = p->ahead_ns[0] > p->ahead_ns[1] ? p->ahead_ns[0] : p->ahead_ns[1];

	return ahead == PACE_UNKNOWN || !m->clock_ns ? 0 : m->clock_ns + ahead;
}

/*
 * A manifest arrives after the look that found the one before, and is written before it arrives. Of
 * the first manifest only its writer knows when: here alone we trust its clock to agree with ours.
 */
static void follower_note_change(struct follow_round *r, const char *etag)
{
	struct follower *f = r->f;
	int64_t now = clock_now_ns(), age = now - r->m.written_ns, written;

	if (strcmp(f->etag, etag) == 0)
		return;
	follower_note_pace(&f->pace, &r->m, f->etag[0] ? f->looked_ns : 0);
	written = follower_written_at(&f->pace, &r->m);
	mutex_lock(&f->lock);
	f->after_ns = f->etag[0] ? f->looked_ns : r->began_ns - (age > 0 ? age : 0);
	if (written && written < f->after_ns)
		f->after_ns = written;
	f->is.changed_ns = now;
	mutex_unlock(&f->lock);
}

static enum err_code follower_take_manifest(struct follower *f, int64_t began_ns, struct err *err)
{
	struct follow_round r = { .f = f, .began_ns = began_ns };
	char etag[BUCKET_ETAG_BYTES_MAX];
	enum err_code rc;

	arena_init(&r.arena, 0);
	rc = manifest_get(f->o.bucket, manifest_key_str(&f->key), &r.arena, &r.m, etag, err);
	if (rc) {
		arena_release(&r.arena);
		return rc;
	}
	follower_note_change(&r, etag);
	if ((rc = follow_manifest(&r, err)) == ERR_EXISTS) {
		arena_release(&r.arena);
		return rc;
	}
	memcpy(f->etag, etag, sizeof(etag));
	follower_keep(&r);
	return rc;
}

static enum err_code follower_look_at(struct follower *f, struct err *err)
{
	int64_t began_ns = clock_monotonic_ns();
	struct bucket_info info;
	enum err_code rc;

	if ((rc = bucket_head(f->o.bucket, manifest_key_str(&f->key), &info, err)))
		return rc;
	if (f->whole && f->etag[0] && strcmp(info.etag, f->etag) == 0) {
		mutex_lock(&f->lock);
		f->looked_ns = began_ns;
		mutex_unlock(&f->lock);
		return ERR_OK;
	}
	return follower_take_manifest(f, began_ns, err);
}

enum err_code follower_look(struct follower *f, struct err *err)
{
	enum err_code rc;
	bool was;

	mutex_lock(&f->lock);
	was = f->is.failed.code != ERR_OK;
	mutex_unlock(&f->lock);
	rc = follower_look_at(f, err);
	blocks_retry(f->db);
	follower_count_missing(f);
	mutex_lock(&f->lock);
	f->is.failed = rc ? *err : f->read_failed;
	(void)follower_is_behind(f); /* since when */
	mutex_unlock(&f->lock);
	if (rc && !was)
		log_warn("cluster", "shard cannot be followed now", LOG_S("shard", f->name), LOG_E(err));
	else if (!rc && was)
		log_info("cluster", "shard is followed again", LOG_S("shard", f->name));
	return rc;
}

bool follower_has_unread(struct follower *f, int64_t *start_ns)
{
	bool has;

	mutex_lock(&f->lock);
	if ((has = f->unread_n > 0))
		*start_ns = f->unread[f->unread_n - 1].start_ns;
	mutex_unlock(&f->lock);
	return has;
}

enum err_code follower_read(
	struct follower *f, follower_between_fn between, void *ctx, struct err *err)
{
	bool was = f->read_failed.code != ERR_OK;
	enum err_code rc;

	if (!f->unread_n)
		return ERR_OK;
	rc = follow_unread(f, between, ctx, err);
	follower_count_missing(f);
	mutex_lock(&f->lock);
	if (f->read_failed.code != ERR_OK)
		f->is.failed = f->read_failed;
	mutex_unlock(&f->lock);
	if (f->read_failed.code != ERR_OK && !was)
		log_warn("cluster", "segments cannot be read now", LOG_S("shard", f->name),
			LOG_E(&f->read_failed));
	if (!rc && !f->unread_n)
		log_info("cluster", "shard is read", LOG_S("shard", f->name),
			LOG_I("segments", (int64_t)f->is.all_segments),
			LOG_I("bytes", (int64_t)f->is.all_bytes));
	return rc;
}

enum err_code follower_round(struct follower *f, struct err *err)
{
	enum err_code rc = follower_look(f, err);

	while (!rc && f->unread_n)
		rc = follower_read(f, NULL, NULL, err);
	return rc;
}

/* ---- lateness ---- */

/*
 * What is here has all that was acknowledged until `through`. The writer's clock says how long that
 * was before the manifest was written, and our clock that it was written after has_after_ns. So the
 * clocks need not agree.
 */
static bool follower_is_late(const struct follower *f)
{
	int64_t now = clock_monotonic_ns(), most = 2 * f->is.interval_ns + NS_PER_S;

	mutex_assert_held(&f->lock);
	if (!f->is.generation || f->in_part)
		return true;
	if (f->is.stopped) /* there is nothing after it, unless it began again */
		return now - f->looked_ns > most;
	return now - f->has_after_ns > most - (f->is.written_ns - f->is.through_ns);
}

static void follower_tell_late(struct follower *f, struct buf *text)
{
	buf_clear(text);
	if (f->in_part) {
		buf_printf(text, "shard %s was not read whole, profiles may be missing: %s", f->name,
			f->is.failed.msg);
	} else if (!f->is.generation) {
		buf_printf(text, "shard %s is missing: ", f->name);
		buf_add_str(text, f->is.failed.code ? str_of(f->is.failed.msg) : STR("not read yet"));
	} else if (!f->is.through_ns) {
		buf_printf(text, "shard %s is new: its profiles may be missing", f->name);
	} else {
		buf_printf(text, "shard %s is late: its profiles after ", f->name);
		time_print_rfc3339(text, f->is.through_ns);
		buf_add_str(text, STR(" may be missing"));
		if (f->is.failed.code)
			buf_printf(text, ": %s", f->is.failed.msg);
	}
	buf_add_char(text, '\0');
}

#define TELL_SPANS 4 /* the rest is one more */

/* "from A to B and from C to D": windows that touch are one. */
static void follower_print_unread(const struct follower *f, struct buf *text)
{
	size_t spans = 0;

	for (size_t i = 0; i < f->unread_n;) {
		int64_t min_ns = f->unread[i].start_ns, max_ns = f->unread[i].end_ns;

		for (i++; i < f->unread_n && (f->unread[i].start_ns <= max_ns || spans == TELL_SPANS - 1);
			 i++)
			max_ns = max_ns > f->unread[i].end_ns ? max_ns : f->unread[i].end_ns;
		buf_add_str(text, spans++ ? STR(" and from ") : STR("from "));
		time_print_rfc3339(text, min_ns);
		buf_add_str(text, STR(" to "));
		time_print_rfc3339(text, max_ns);
	}
}

static void follower_tell_unread(
	const struct follower *f, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	const struct follower_status *is = &f->is;
	struct buf text = { 0 };
	bool meets = false;

	mutex_assert_held(&f->lock);
	for (size_t i = 0; i < f->unread_n && !meets; i++)
		meets = f->unread[i].start_ns < max_ns && f->unread[i].end_ns > min_ns;
	if (!meets)
		return;
	buf_printf(&text, "shard %s is being read: its profiles ", f->name);
	follower_print_unread(f, &text);
	buf_printf(&text, " are not all here yet (%" PRIu64 "%% read)",
		is->all_bytes ? (uint64_t)(100.0 * (double)is->read_bytes / (double)is->all_bytes) : 0);
	if (f->read_failed.code != ERR_OK)
		buf_printf(&text, ": %s", f->read_failed.msg);
	buf_add_char(&text, '\0');
	warn(to, buf_failed(&text) ? "a shard is being read" : text.ptr);
	buf_release(&text);
}

void follower_tell(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	struct follower *f = ctx;
	struct buf text = { 0 };

	mutex_lock(&f->lock);
	if (follower_is_late(f) && (f->in_part || max_ns > f->is.through_ns)) {
		follower_tell_late(f, &text);
		warn(to, buf_failed(&text) ? "a shard is late" : text.ptr);
	}
	if (follower_is_behind(f)) {
		buf_clear(&text);
		buf_printf(&text,
			"shard %s follows assignment %" PRIu64 ", others %" PRIu64
			": profiles of targets that moved may be there twice",
			f->name, f->is.assignment, (uint64_t)atomic_load(f->o.newest));
		buf_add_char(&text, '\0');
		warn(to, buf_failed(&text) ? "a shard follows an old assignment" : text.ptr);
	}
	follower_tell_unread(f, min_ns, max_ns, warn, to);
	for (size_t i = 0; i < f->missing_n; i++)
		if (f->missing[i].min_ns < max_ns && f->missing[i].max_ns > min_ns)
			warn(to, f->missing[i].text);
	for (size_t i = 0; i < f->losses_n; i++) {
		const struct loss *l = &f->losses[i];

		if (l->accepted || l->min_ns >= max_ns || l->max_ns <= min_ns)
			continue;
		buf_clear(&text);
		buf_printf(&text, "shard %s: ", f->name);
		loss_print(l, &text);
		buf_add_char(&text, '\0');
		warn(to, buf_failed(&text) ? "a shard has losses" : text.ptr);
	}
	mutex_unlock(&f->lock);
	buf_release(&text);
}

/* -1: nothing was read since it began. The lock is held. */
static int64_t follower_left_ns(const struct follower *f)
{
	double done = (double)f->is.read_bytes - (double)f->read_began_bytes, left_ns;

	mutex_assert_held(&f->lock);
	if (!f->unread_n)
		return 0;
	if (done <= 0)
		return -1;
	left_ns = (double)(f->is.all_bytes - f->is.read_bytes) / done *
		(double)(clock_monotonic_ns() - f->read_began_ns);
	return left_ns < (double)(365 * NS_PER_DAY) ? (int64_t)left_ns : -1;
}

void follower_status(struct follower *f, struct follower_status *out)
{
	mutex_lock(&f->lock);
	*out = f->is;
	out->unread_windows = f->unread_n;
	out->left_ns = follower_left_ns(f);
	out->late = follower_is_late(f);
	out->behind = follower_is_behind(f);
	mutex_unlock(&f->lock);
}

/* ---- open, close ---- */

enum err_code follower_open(
	const struct follower_options *o, struct follower **out, struct err *err)
{
	struct follower *f = calloc(1, sizeof(*f));
	enum err_code rc;

	if (!f)
		return err_nomem(err, "shard");
	mutex_init(&f->lock);
	arena_init(&f->arena, 0);
	arena_init(&f->losses_arena, 0);
	f->o = *o;
	f->name = strdup(o->shard);
	f->dir = strdup(o->dir);
	if (!f->name || !f->dir) {
		rc = err_nomem(err, "shard");
		goto fail;
	}
	f->key = manifest_key_of(str_of(f->name));
	f->o.db.dir = f->dir;
	f->o.db.follower = true;
	f->o.db.remote = o->remote;
	if ((rc = db_open(&f->o.db, &f->db, err)))
		goto fail;
	*out = f;
	return ERR_OK;
fail:
	follower_close(f);
	return rc;
}

void follower_close(struct follower *f)
{
	struct err err;

	if (!f)
		return;
	db_close(f->db);
	if (f->dir && fs_remove_tree(&fs_posix, f->dir, &err))
		log_warn("cluster", "not removed", LOG_S("dir", f->dir), LOG_E(&err));
	follow_missing_free(f->missing, f->missing_n);
	arena_release(&f->arena);
	arena_release(&f->losses_arena);
	mutex_destroy(&f->lock);
	free(f->name);
	free(f->dir);
	free(f);
}

struct db *follower_db(struct follower *f)
{
	return f->db;
}
