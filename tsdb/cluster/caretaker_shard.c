#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/caretaker_internal.h"

/*
 * A visit: does what is due for one shard, under its lease, which is taken only for moments. So
 * objects are listed as gone in one visit, and removed in a later one, when that manifest has been
 * there for the delay. Between both the shard may come back at any time.
 *
 * The manifest that was read decides what is done. The lease is taken for exactly that manifest, or
 * not at all.
 */

#define LEASE_SURE_NS (LEASE_MIN_NS / 4) /* nobody takes a lease over that is younger */
#define INTERVAL_NS (30 * NS_PER_S) /* of a manifest that says none */

struct visit {
	struct caretaker *c;
	struct care_shard *s;
	struct lease *lease;
	struct arena arena;
	struct manifest m; /* what is written next */
	struct str *orphans; /* behind shards/NAME/ */
	size_t orphans_n;
	bool removes, drops, searches, ends; /* is due */
	uint64_t removed, blocks, windows;
};

/* ---- what is due ---- */

static bool caretaker_shard_is_over(const struct caretaker *c, int64_t end_ns)
{
	return end_ns <= c->age_cut_ns || end_ns <= c->size_cut_ns;
}

static bool caretaker_shard_has_old(const struct caretaker *c, const struct manifest *m)
{
	for (uint32_t i = 0; i < m->windows_n; i++)
		if (caretaker_shard_is_over(c, m->windows[i].end_ns))
			return true;
	for (uint32_t i = 0; i < m->blocks_n; i++)
		if (caretaker_shard_is_over(c, m->blocks[i].max_ns))
			return true;
	return false;
}

static void visit_find_due(struct visit *v)
{
	const struct caretaker *c = v->c;
	const struct manifest *m = &v->s->m;
	int64_t now = clock_monotonic_ns();
	bool calm = now - v->s->since_ns >= c->o.delete_delay_ns, empty = !m->windows_n && !m->blocks_n;

	v->removes = calm && m->gone_n;
	/* Every write makes what is gone wait for the whole delay again. */
	v->drops = (calm || !m->gone_n) &&
		(caretaker_shard_has_old(c, m) || (calm && empty && (m->ids.bytes || m->losses.bytes)));
	v->ends = calm && empty && !m->gone_n && !m->ids.bytes && !m->losses.bytes;
	v->searches = v->ends || (calm && now >= v->s->orphans_at_ns);
}

static int caretaker_shard_gone_cmp(const void *a, const void *b)
{
	const struct manifest_gone *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

static bool caretaker_shard_is_gone(const struct manifest *m, struct str rest)
{
	const struct manifest_gone key = { .key = rest };

	return m->gone_n && bsearch(&key, m->gone, m->gone_n, sizeof(key), caretaker_shard_gone_cmp);
}

/* Objects that the manifest does not name. Nobody puts any now: the manifest would have changed. */
static enum err_code visit_find_orphans(struct visit *v, struct err *err)
{
	struct str shard = str_of(v->s->name);
	struct shard_object *objects;
	struct key_set named;
	enum err_code rc;
	size_t n;

	if ((rc = shard_list_objects(v->c->o.bucket, shard, &v->arena, &objects, &n, err)) ||
		(rc = key_set_named(&v->s->m, shard, &v->arena, &named, err)))
		return rc;
	if (!(v->orphans = arena_array(&v->arena, struct str, n + 1)))
		return arena_fail(&v->arena, "caretaker", err);
	for (size_t i = 0; i < n; i++)
		if (!str_is(objects[i].rest, "manifest") && !key_set_has(&named, objects[i].rest) &&
			!caretaker_shard_is_gone(&v->s->m, objects[i].rest))
			v->orphans[v->orphans_n++] = objects[i].rest;
	v->s->orphans_at_ns = clock_monotonic_ns() + v->c->o.orphans_every_ns;
	return ERR_OK;
}

/* ---- the lease ---- */

static enum err_code visit_take(struct visit *v, struct err *err)
{
	const struct lease_options o = { .bucket = v->c->o.bucket,
		.shard = str_of(v->s->name),
		.interval_ns = v->s->m.interval_ns ? v->s->m.interval_ns : INTERVAL_NS,
		.lease_ns = v->c->o.lease_ns,
		.seen = v->s->read_etag,
		.no_probe = true };
	enum err_code rc;
	bool same;

	if ((rc = lease_open(&o, &v->lease, err)))
		return rc;
	return lease_take(v->lease, true, &v->arena, &v->m, &same, err);
}

/* Both leases stay ours while much is removed. */
static enum err_code visit_renew(struct visit *v, struct err *err)
{
	enum err_code rc;

	if ((rc = caretaker_renew(v->c, err)))
		return rc;
	if (lease_age_ns(v->lease) > LEASE_SURE_NS / 2 && (rc = lease_write(v->lease, &v->m, err)))
		return rc;
	if (lease_age_ns(v->lease) < LEASE_SURE_NS)
		return ERR_OK;
	return err_set(
		err, ERR_TIMEOUT, "the bucket is too slow to keep the lease of shard %s", v->s->name);
}

/* ---- removing ---- */

static enum err_code visit_remove_gone(struct visit *v, struct err *err)
{
	char key[BUCKET_KEY_BYTES_MAX + MANIFEST_KEY_BYTES_MAX];
	struct manifest_gone *all = v->m.gone;
	uint32_t n = v->m.gone_n, i = 0;
	struct key_set named;
	enum err_code rc;

	if ((rc = key_set_named(&v->m, str_of(v->s->name), &v->arena, &named, err)))
		return rc;
	for (; i < n && !rc; i++) {
		if ((rc = visit_renew(v, err)))
			break;
		snprintf(key, sizeof(key), "shards/%s/" STR_FMT, v->s->name, STR_ARG(all[i].key));
		/* An invalid key names no object: it counts as removed. */
		if (!key_set_has(&named, all[i].key) &&
			(rc = bucket_delete(v->c->o.bucket, str_of(key), err)) && rc != ERR_INVALID)
			break;
		rc = ERR_OK;
		v->removed++;
		v->m.gone = all + i + 1;
		v->m.gone_n = n - i - 1;
	}
	return rc;
}

/* The manifest of a shard that has nothing. A shard that starts meanwhile waits for our lease. */
static enum err_code visit_remove_manifest(struct visit *v, struct err *err)
{
	struct manifest_key key = manifest_key_of(str_of(v->s->name)),
						senders = manifest_key_senders(str_of(v->s->name)),
						evaluated = manifest_key_evaluated(str_of(v->s->name)),
						targets = manifest_key_targets(str_of(v->s->name));
	enum err_code rc;

	if ((rc = visit_renew(v, err)) ||
		(rc = bucket_delete(v->c->o.bucket, manifest_key_str(&senders), err)) ||
		(rc = bucket_delete(v->c->o.bucket, manifest_key_str(&evaluated), err)) ||
		(rc = bucket_delete(v->c->o.bucket, manifest_key_str(&targets), err)) ||
		(rc = bucket_delete(v->c->o.bucket, manifest_key_str(&key), err)))
		return rc;
	log_info(
		"cluster", "shard has nothing left, its manifest is removed", LOG_S("shard", v->s->name));
	mutex_lock(&v->c->lock);
	v->c->status.removed_shards++;
	mutex_unlock(&v->c->lock);
	return ERR_OK;
}

/* ---- dropping ---- */

static void visit_drop_old(struct visit *v)
{
	const struct caretaker *c = v->c;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->m.windows_n; i++)
		if (!caretaker_shard_is_over(c, v->m.windows[i].end_ns))
			v->m.windows[kept++] = v->m.windows[i];
	v->windows = v->m.windows_n - kept;
	v->m.windows_n = kept;
	kept = 0;
	for (uint32_t i = 0; i < v->m.blocks_n; i++)
		if (!caretaker_shard_is_over(c, v->m.blocks[i].max_ns))
			v->m.blocks[kept++] = v->m.blocks[i];
	v->blocks = v->m.blocks_n - kept;
	v->m.blocks_n = kept;
	if (!v->m.windows_n && !v->m.blocks_n)
		v->m.ids = v->m.losses = (struct manifest_file){ 0 };
	if ((v->windows || v->blocks) && c->age_cut_ns > v->m.dropped_ns)
		v->m.dropped_ns = c->age_cut_ns;
	if ((v->windows || v->blocks) && c->size_cut_ns > v->m.dropped_size_ns)
		v->m.dropped_size_ns = c->size_cut_ns;
}

/* Adds to `gone` what `before` names and v->m does not, and the orphans. */
static enum err_code visit_list_gone(struct visit *v, const struct key_set *before, struct err *err)
{
	size_t max = v->m.gone_n + before->n + v->orphans_n;
	struct manifest_gone *gone = arena_array(&v->arena, struct manifest_gone, max + 1);
	int64_t now = clock_now_ns();
	struct key_set named;
	enum err_code rc;

	if (!gone)
		return arena_fail(&v->arena, "caretaker", err);
	if ((rc = key_set_named(&v->m, str_of(v->s->name), &v->arena, &named, err)))
		return rc;
	if (v->m.gone_n)
		memcpy(gone, v->m.gone, v->m.gone_n * sizeof(*gone));
	v->m.gone = gone;
	for (size_t i = 0; i < before->n && v->m.gone_n < MANIFEST_GONE_MAX; i++)
		if (!key_set_has(&named, before->v[i]))
			gone[v->m.gone_n++] = (struct manifest_gone){ before->v[i], now };
	for (size_t i = 0; i < v->orphans_n && v->m.gone_n < MANIFEST_GONE_MAX; i++)
		gone[v->m.gone_n++] = (struct manifest_gone){ v->orphans[i], now };
	manifest_sort(&v->m);
	max = v->m.gone_n;
	v->m.gone_n = 0;
	for (size_t i = 0; i < max; i++) /* each once, also if it was named and gone */
		if (!i || !str_eq(gone[i].key, gone[i - 1].key))
			gone[v->m.gone_n++] = gone[i];
	return ERR_OK;
}

static enum err_code visit_drop(struct visit *v, struct err *err)
{
	struct key_set before;
	enum err_code rc;

	if ((rc = key_set_named(&v->m, str_of(v->s->name), &v->arena, &before, err)))
		return rc;
	if (v->drops)
		visit_drop_old(v);
	return visit_list_gone(v, &before, err);
}

/* ---- the whole ---- */

static void visit_tell(struct visit *v)
{
	struct caretaker_status *s = &v->c->status;

	mutex_lock(&v->c->lock);
	s->removed += v->removed;
	s->orphans += v->orphans_n;
	s->dropped_blocks += v->blocks;
	s->dropped_windows += v->windows;
	mutex_unlock(&v->c->lock);
	if (v->blocks || v->windows || v->removed || v->orphans_n)
		log_info("cluster", "shard that is gone was tidied", LOG_S("shard", v->s->name),
			LOG_I("blocks", v->blocks), LOG_I("windows", v->windows), LOG_I("removed", v->removed),
			LOG_I("unnamed", v->orphans_n));
}

static enum err_code visit_work(struct visit *v, struct err *err)
{
	enum err_code rc = ERR_OK, written;
	struct err why;

	if (v->ends && !v->orphans_n)
		return visit_remove_manifest(v, err);
	if (v->removes)
		rc = visit_remove_gone(v, err);
	if (!rc)
		rc = visit_drop(v, err);
	if (lease_is_fenced(v->lease))
		return rc;
	v->m.stopped = true; /* also after an error: the shard need not wait for us */
	if ((written = lease_write(v->lease, &v->m, rc ? &why : err)))
		return rc ? rc : written;
	visit_tell(v);
	return rc;
}

enum err_code caretaker_visit_shard(struct caretaker *c, struct care_shard *s, struct err *err)
{
	struct visit v = { .c = c, .s = s };
	enum err_code rc = ERR_OK;

	visit_find_due(&v);
	arena_init(&v.arena, 0);
	if (v.searches)
		rc = visit_find_orphans(&v, err);
	if (!rc && (v.removes || v.drops || v.ends || v.orphans_n)) {
		if (!(rc = visit_take(&v, err)))
			rc = visit_work(&v, err);
		s->read = false;
		/* The shard is back, or was just now. That is no failure. */
		if (rc == ERR_EXISTS || rc == ERR_NOT_FOUND)
			rc = ERR_OK;
	}
	lease_close(v.lease);
	arena_release(&v.arena);
	return rc;
}
