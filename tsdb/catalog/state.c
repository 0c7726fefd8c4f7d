#include "tsdb/catalog/state.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/room.h"

/* The state of a database: are profiles taken, and which series are in use. */

METRIC_GAUGE(state_gauge, "epimetheus_tsdb_state",
	"0 takes profiles, 1 disk full, 2 reopening after an error.", NULL);
METRIC_COUNTER(damage_total, "epimetheus_tsdb_damage_total",
	"Times that stored bytes were found damaged or missing.", NULL);

void db_count_damage(void)
{
	metric_add(&damage_total, NULL, 1);
}

void db_pass_over(struct db *db, const struct err *why)
{
	if (db->o.passed_over)
		db->o.passed_over(db->o.passed_over_ctx, why);
}

static void state_set_locked(struct db *db, enum db_state state, const struct err *why)
{
	mutex_assert_held(&db->lock);
	if (state != db->state || !db->state_since_ns)
		db->state_since_ns = clock_running_ns();
	db->state = state;
	db->why = why ? *why : (struct err){ 0 };
	metric_set(&state_gauge, NULL, state);
}

void db_set_state(struct db *db, enum db_state state, const struct err *why)
{
	mutex_lock(&db->lock);
	state_set_locked(db, state, why);
	mutex_unlock(&db->lock);
}

int64_t db_reached_ns(const struct db *db)
{
	int64_t newest = atomic_load(&db->max_ts_ns), now = clock_now_ns();

	return newest < now ? newest : now;
}

int64_t db_accepts_from_ns(const struct db *db)
{
	int64_t reached = db_reached_ns(db);

	return reached > 0 ? (reached - 1) / db->o.window_ns * db->o.window_ns - db->o.too_old_ns : 0;
}

bool db_counts_missed(const struct db *db)
{
	return db->o.window_ns % rollup_step_ns[0] == 0;
}

static enum db_state state_get(struct db *db, struct err *why, int64_t *since_ns);

/* The state of a union: that of the first member that is not ready. */
static enum db_state state_of_members(struct db *db, struct err *why, int64_t *since_ns)
{
	enum db_state state = DB_READY;
	struct member **v;
	struct err of;
	size_t n;

	if (members_pin(db, &v, &n, why))
		return DB_FAILED;
	if (why)
		*why = (struct err){ 0 };
	for (size_t i = 0; i < n && state == DB_READY; i++)
		if ((state = state_get(v[i]->db, &of, since_ns)) && why)
			err_set(why, of.code, "shard %s: %s", v[i]->name, of.msg);
	members_unpin(db, v, n);
	return state;
}

static enum db_state state_get(struct db *db, struct err *why, int64_t *since_ns)
{
	enum db_state state;

	if (db->is_union)
		return state_of_members(db, why, since_ns);
	mutex_lock(&db->lock);
	state = db->state;
	*since_ns = db->state_since_ns;
	if (why)
		*why = db->why;
	mutex_unlock(&db->lock);
	return state;
}

enum db_state db_state(struct db *db, struct err *why)
{
	int64_t since_ns;

	return state_get(db, why, &since_ns);
}

int64_t db_state_since_ns(struct db *db)
{
	int64_t since_ns = clock_running_ns();

	(void)state_get(db, NULL, &since_ns);
	return clock_of_running_ns(since_ns);
}

/* Changes between READY and FULL only; the commit thread sets and ends FAILED. */
void db_check_room(struct db *db)
{
	struct disk_room room;
	struct err err;
	enum db_state was;
	bool full, shadow;

	if (room_look(db, &room, &err)) {
		log_warn("tsdb", "free space is not known", LOG_E(&err));
		return;
	}
	mutex_lock(&db->lock);
	was = db->state;
	shadow = windows_have_shadow_locked(db);
	full = room_lacks(db, &room, shadow, &err);
	if (shadow && !full) {
		full = true;
		err_set(&err, ERR_UNAVAILABLE,
			"disk was full: stores in %s are being opened for writing again", db->dir);
	}
	if (was != DB_FAILED)
		state_set_locked(db, full ? DB_FULL : DB_READY, full ? &err : NULL);
	if (was != db->state && db->state == DB_FULL)
		log_error("tsdb", "disk full, profiles are refused", LOG_E(&err));
	else if (was != db->state)
		log_info(
			"tsdb", "disk has room again, profiles are taken", LOG_I("free_bytes", room.bytes));
	mutex_unlock(&db->lock);
}

/* ---- series ---- */

void base_account(struct db *db, const struct delta_base *base, bool more)
{
	uint64_t bytes = base->bytes.cap;

	if (!base->partition)
		return;
	if (more) {
		atomic_fetch_add(&resident_of(base->partition)->bases, 1);
		atomic_fetch_add(&db->delta_bytes, bytes);
	} else {
		atomic_fetch_sub(&resident_of(base->partition)->bases, 1);
		atomic_fetch_sub(&db->delta_bytes, bytes);
	}
}

void base_release(struct db *db, struct delta_base *base)
{
	base_account(db, base, false);
	delta_base_release(base);
}

/* Windows that are being dropped count too: after a crash they are back, and still use their
 * ids. */
static bool state_in_some_window(struct db *db, uint32_t series)
{
	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++)
		if (bits_get(&db->windows[i]->series, series))
			return true;
	for (const struct window *w = db->dropping; w; w = w->next_dropping)
		if (bits_get(&w->series, series))
			return true;
	for (const struct left_window *w = db->left; w; w = w->next)
		if (bits_get(&w->series, series))
			return true;
	return false;
}

void left_window_add(struct db *db, struct window *w)
{
	struct left_window *l = malloc(sizeof(*l));

	if (!l) /* a reader of the manifest may then report ids that do not match */
		return;
	mutex_lock(&db->lock);
	*l = (struct left_window){ db->left, w->start_ns, w->identity, w->series };
	w->series = (struct bits){ 0 };
	db->left = l;
	mutex_unlock(&db->lock);
}

void left_window_remove(struct db *db, int64_t start_ns, uint64_t identity)
{
	struct left_window *l;

	mutex_lock(&db->lock);
	for (struct left_window **at = &db->left; (l = *at);) {
		if (l->start_ns != start_ns || l->identity != identity) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		bits_release(&l->series);
		free(l);
	}
	mutex_unlock(&db->lock);
}

/* Removes series from the index that are in no window and whose delta base is too old for another
 * scrape. They are freed when no querier can have seen them. */
void db_retire_series(struct db *db)
{
	int64_t reached = db_reached_ns(db);
	uint64_t oldest;
	struct series *s;

	series_lock_write(db->series);
	mutex_lock(&db->lock);
	for (uint32_t id = 0; id < series_next_id(db->series); id++) {
		if (!(s = series_by_id_locked(db->series, id)) || atomic_load(&s->uses) ||
			state_in_some_window(db, id) || atomic_load(&s->base_until_ns) > reached)
			continue;
		series_remove_locked(db->series, s);
		s->retired_at = db->queriers_opened;
		s->next_retired = db->retired;
		db->retired = s;
	}
	oldest = db->queriers_opened + 1;
	for (const struct querier_turn *q = db->queriers; q; q = q->older)
		oldest = q->number;
	for (struct series **at = &db->retired; (s = *at);) {
		if (s->retired_at >= oldest) {
			at = &s->next_retired;
			continue;
		}
		*at = s->next_retired;
		base_release(db, &s->base);
		series_free(s);
	}
	mutex_unlock(&db->lock);
	series_unlock(db->series);
}
