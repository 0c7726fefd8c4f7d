#include "tsdb/catalog/loss_report.h"

#include <inttypes.h>

#include "base/log.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/state.h"

/* The list of losses (losses.h) as a database uses it. */

bool db_lost(struct db *db, enum loss_what what, const char *where, int64_t min_ns, int64_t max_ns,
	uint64_t count, const struct err *why)
{
	struct loss l = { .what = what,
		.where = str_of(where),
		.text = str_of(why->msg),
		.min_ns = min_ns,
		.max_ns = max_ns,
		.count = count };
	bool fresh = false;
	enum err_code rc;
	struct err err;

	db_count_damage();
	if ((rc = losses_add(db->losses, &l, &fresh, &err)))
		log_error("tsdb", "list of losses not written", LOG_E(&err));
	if (fresh)
		log_error("tsdb", "lost", LOG_S("what", loss_name(what)), LOG_S("where", where),
			LOG_I("count", (int64_t)count), LOG_E(why));
	return !rc;
}

static bool loss_report_log_one(void *ctx, const struct loss *l)
{
	struct buf text = { 0 };

	if (l->accepted)
		return true;
	loss_print(l, &text);
	buf_add_char(&text, '\0');
	if (!buf_failed(&text))
		log_error("tsdb", "a loss that nobody has accepted", LOG_S("loss", text.ptr));
	buf_release(&text);
	return true;
}

void db_log_losses(struct db *db)
{
	losses_each(db->losses, 0, LOSS_END, loss_report_log_one, NULL);
}

/* ---- for people ---- */

struct loss_report_listing {
	struct arena *a;
	struct loss *v;
	size_t n, cap;
	struct str shard;
	bool failed;
};

static bool loss_report_list_one(void *ctx, const struct loss *l)
{
	struct loss_report_listing *t = ctx;
	struct loss *v;

	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 16;
		if (!(v = arena_array(t->a, struct loss, t->cap))) {
			t->failed = true;
			return false;
		}
		if (t->n)
			memcpy(v, t->v, t->n * sizeof(*v));
		t->v = v;
	}
	v = &t->v[t->n++];
	*v = *l;
	v->shard = t->shard;
	v->where.ptr = arena_strndup(t->a, l->where.ptr, l->where.len);
	v->text.ptr = arena_strndup(t->a, l->text.ptr, l->text.len);
	t->failed = !v->where.ptr || !v->text.ptr;
	return !t->failed;
}

static enum err_code loss_report_list_members(
	struct db *db, struct loss_report_listing *l, struct err *err)
{
	struct member **v;
	enum err_code rc;
	size_t n;

	if ((rc = members_pin(db, &v, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !l->failed; i++) {
		l->shard = str_dup(l->a, str_of(v[i]->name));
		l->failed = !l->shard.ptr;
		if (!l->failed)
			losses_each(v[i]->db->losses, 0, LOSS_END, loss_report_list_one, l);
	}
	members_unpin(db, v, n);
	return ERR_OK;
}

enum err_code db_losses(
	struct db *db, struct arena *a, struct loss **out, size_t *n, struct err *err)
{
	struct loss_report_listing t = { .a = a };
	enum err_code rc;

	if (!db->is_union)
		losses_each(db->losses, 0, LOSS_END, loss_report_list_one, &t);
	else if ((rc = loss_report_list_members(db, &t, err)))
		return rc;
	if (t.failed)
		return arena_fail(a, "losses", err);
	*out = t.v;
	*n = t.n;
	return ERR_OK;
}

enum err_code db_accept_losses(
	struct db *db, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err)
{
	enum err_code rc = members_refuse(db, "accept losses", err);

	if (!rc)
		rc = losses_accept(db->losses, numbers, n, accepted, err);
	if (!rc)
		log_info("tsdb", "losses accepted", LOG_I("n", (int64_t)*accepted));
	return rc;
}
