#include "web/api/fleet_targets.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "scrape/target_lines.h"

#define ARENA_BYTES (256u << 20)

struct fleet_reading {
	struct fleet_targets *to;
	struct listed_targets *lists; /* of to->shards */
	struct arena *a;
	struct str pool;
	size_t bytes; /* of the lists so far */
	int64_t now_ns;
};

/* ---- one list ---- */

static enum err_code fleet_targets_say(
	struct fleet_reading *r, struct str *list, size_t *n, const char *text, struct err *err)
{
	if (!text)
		return arena_fail(r->a, "targets", err);
	list[(*n)++] = str_of(text);
	return ERR_OK;
}

static enum err_code fleet_targets_warn(struct fleet_reading *r, const char *text, struct err *err)
{
	return fleet_targets_say(r, r->to->warnings, &r->to->warnings_n, text, err);
}

static enum err_code fleet_targets_inflate(struct fleet_reading *r, struct str packed,
	struct arena *scratch, struct str *text, struct err *err)
{
	enum err_code rc = gzip_inflate(
		scratch, packed, "targets", TARGET_LINES_BYTES_MAX * 2, text, err);

	if (rc)
		return rc;
	if (r->bytes + text->len > FLEET_TARGETS_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the lists of all shards have more than %u MiB",
			FLEET_TARGETS_BYTES_MAX >> 20);
	r->bytes += text->len;
	return target_lines_read(*text, &r->to->arena, &r->lists[r->to->shards_n], err);
}

static enum err_code fleet_targets_note(
	struct fleet_reading *r, const struct shard_list_view *v, struct err *err)
{
	const struct listed_targets *l = &r->lists[r->to->shards_n];
	struct buf when = { 0 };
	enum err_code rc = ERR_OK;

	r->to->shards[r->to->shards_n++] = (struct fleet_shard){
		.name = v->shard, .time_ns = l->time_ns, .active = l->s.active_n, .left_out = l->left_out
	};
	time_print_rfc3339(&when, l->time_ns);
	if (l->left_out)
		rc = fleet_targets_warn(r,
			arena_printf(r->a,
				"%llu targets of shard " STR_FMT " are left out: its list is too long",
				(unsigned long long)l->left_out, STR_ARG(v->shard)),
			err);
	if (!rc && l->s.active_n && r->now_ns - l->time_ns > FLEET_TARGETS_OLD_NS)
		rc = fleet_targets_warn(r,
			arena_printf(r->a, "the targets of shard " STR_FMT " are as they were at " STR_FMT,
				STR_ARG(v->shard), STR_ARG(buf_str(&when))),
			err);
	buf_release(&when);
	return rc;
}

static enum err_code fleet_targets_take(
	struct fleet_reading *r, const struct shard_list_view *v, struct err *err)
{
	struct err why = { .code = ERR_OK };
	struct arena scratch;
	struct str text, error = v->error;
	enum err_code rc = ERR_OK;

	if (v->stopped)
		return fleet_targets_say(r, r->to->infos, &r->to->infos_n,
			arena_printf(
				r->a, "shard " STR_FMT " has stopped, and scrapes nothing", STR_ARG(v->shard)),
			err);
	arena_init(&scratch, 0);
	if (!error.len && (rc = fleet_targets_inflate(r, v->text, &scratch, &text, &why)))
		error = str_of(why.msg);
	arena_release(&scratch);
	if (!error.len)
		return fleet_targets_note(r, v, err);
	return fleet_targets_warn(r,
		arena_printf(r->a, "the targets of shard " STR_FMT " are missing: " STR_FMT,
			STR_ARG(v->shard), STR_ARG(error)),
		err);
}

/* ---- all of them ---- */

static bool fleet_targets_is_wanted(const struct fleet_reading *r, struct str pool)
{
	return !r->pool.len || str_eq(r->pool, pool);
}

static int fleet_targets_by_pool(const void *a, const void *b)
{
	return str_cmp(((const struct pool_info *)a)->name, ((const struct pool_info *)b)->name);
}

static int fleet_targets_by_labels(const void *a, const void *b)
{
	const struct target_info *x = a, *y = b;
	int order = str_cmp(x->pool, y->pool);

	if (!order)
		order = labels_cmp(x->labels, y->labels);
	if (!order)
		order = str_cmp(x->profile, y->profile);
	return order ? order : str_cmp(x->shard, y->shard);
}

static int fleet_targets_by_discovered(const void *a, const void *b)
{
	const struct dropped_target *x = a, *y = b;
	int order = str_cmp(x->pool, y->pool);

	return order ? order : labels_cmp(x->discovered, y->discovered);
}

/* Each shard finds all targets, and relabelling drops the same ones. */
static void fleet_targets_unite_dropped(struct scrape_snapshot *s)
{
	size_t n = 0;

	if (s->dropped_n)
		qsort(s->dropped, s->dropped_n, sizeof(*s->dropped), fleet_targets_by_discovered);
	for (size_t i = 0; i < s->dropped_n; i++)
		if (!n || fleet_targets_by_discovered(&s->dropped[n - 1], &s->dropped[i]))
			s->dropped[n++] = s->dropped[i];
	s->dropped_n = n;
}

static void fleet_targets_unite_pools(struct scrape_snapshot *s)
{
	struct pool_info *v = s->pools;
	size_t n = 0;

	if (s->pools_n)
		qsort(v, s->pools_n, sizeof(*v), fleet_targets_by_pool);
	for (size_t i = 0; i < s->pools_n; i++) {
		if (!n || !str_eq(v[n - 1].name, v[i].name)) {
			v[n++] = v[i];
			continue;
		}
		v[n - 1].active += v[i].active;
		if (v[i].dropped > v[n - 1].dropped)
			v[n - 1].dropped = v[i].dropped;
		if (!v[n - 1].error.len)
			v[n - 1].error = v[i].error;
	}
	s->pools_n = n;
}

static enum err_code fleet_targets_make_room(struct fleet_reading *r, struct err *err)
{
	struct arena *a = &r->to->arena;
	size_t active = 0, dropped = 0, pools = 0;

	for (size_t i = 0; i < r->to->shards_n; i++) {
		active += r->lists[i].s.active_n;
		dropped += r->lists[i].s.dropped_n;
		pools += r->lists[i].s.pools_n;
	}
	r->to->s = (struct scrape_snapshot){
		.active = arena_array(a, struct target_info, active + 1),
		.dropped = arena_array(a, struct dropped_target, dropped + 1),
		.pools = arena_array(a, struct pool_info, pools + 1),
	};
	return r->to->s.active && r->to->s.dropped && r->to->s.pools ? ERR_OK :
																   arena_fail(a, "targets", err);
}

static enum err_code fleet_targets_unite(struct fleet_reading *r, struct err *err)
{
	struct scrape_snapshot *s = &r->to->s;
	enum err_code rc = fleet_targets_make_room(r, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < r->to->shards_n; i++) {
		const struct scrape_snapshot *one = &r->lists[i].s;

		for (size_t k = 0; k < one->active_n; k++)
			if (fleet_targets_is_wanted(r, one->active[k].pool)) {
				s->active[s->active_n] = one->active[k];
				s->active[s->active_n++].shard = r->to->shards[i].name;
			}
		for (size_t k = 0; k < one->dropped_n; k++)
			if (fleet_targets_is_wanted(r, one->dropped[k].pool))
				s->dropped[s->dropped_n++] = one->dropped[k];
		for (size_t k = 0; k < one->pools_n; k++)
			if (fleet_targets_is_wanted(r, one->pools[k].name))
				s->pools[s->pools_n++] = one->pools[k];
	}
	if (s->active_n)
		qsort(s->active, s->active_n, sizeof(*s->active), fleet_targets_by_labels);
	fleet_targets_unite_dropped(s);
	fleet_targets_unite_pools(s);
	return ERR_OK;
}

static enum err_code fleet_targets_read(
	struct fleet_reading *r, const struct shard_list_view *v, size_t n, struct err *err)
{
	struct fleet_targets *to = r->to;
	enum err_code rc = ERR_OK;

	to->shards = arena_array(r->a, struct fleet_shard, n);
	to->warnings = arena_array(r->a, struct str, 2 * n);
	to->infos = arena_array(r->a, struct str, n);
	r->lists = arena_array(r->a, struct listed_targets, n);
	if (!to->shards || !to->warnings || !to->infos || !r->lists)
		return arena_fail(r->a, "targets", err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = fleet_targets_take(r, &v[i], err);
	return rc ? rc : fleet_targets_unite(r, err);
}

enum err_code fleet_targets_open(
	struct web *w, struct str pool, struct arena *a, struct fleet_targets *out, struct err *err)
{
	struct fleet_reading r = { .to = out, .a = a, .pool = pool, .now_ns = clock_now_ns() };
	struct shard_list_view *v = NULL;
	enum err_code rc = ERR_OK;
	size_t n = 0;

	*out = (struct fleet_targets){ 0 };
	arena_init(&out->arena, ARENA_BYTES);
	if (w->o.shard_lists)
		rc = w->o.shard_lists(w->o.ctx, SHARD_TARGETS, a, &v, &n, err);
	if (!rc)
		rc = n ? fleet_targets_read(&r, v, n, err) :
				 scrape_manager_snapshot(w->o.manager, pool.len ? pool.ptr : NULL, a, &out->s, err);
	if (rc)
		fleet_targets_release(out);
	return rc;
}

void fleet_targets_release(struct fleet_targets *f)
{
	scrape_snapshot_release(&f->s);
	arena_release(&f->arena);
}
