/*
 * Warnings and infos of a querier: missing data is reported once per answer.
 *
 * Damage. An iterator passes over a page that it cannot read, so its status is checked after each
 * scan. Records and pages have checksums, so the records that it gave are right. Damage becomes a
 * warning of the querier, one per source.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/lists/losses.h"
#include "tsdb/read/twins.h"

METRIC_COUNTER(read_damage, "epimetheus_tsdb_read_damage_total",
	"Damaged pages and rows met by queries.", NULL);

static void warnings_add_text(struct db_querier *q, struct str **list, size_t *n, const char *text)
{
	static struct str no_memory = { "profiles may be missing: out of memory for the details", 54 };
	struct str *v = text ? arena_array(&q->arena, struct str, *n + 1) : NULL;

	if (!v) { /* out of memory: at least say that something is missing */
		*list = &no_memory;
		*n = 1;
		return;
	}
	if (*n)
		memcpy(v, *list, *n * sizeof(*v));
	v[(*n)++] = str_of(text);
	*list = v;
}

void querier_warn_text(struct db_querier *q, const char *text)
{
	warnings_add_text(q, &q->warnings, &q->warnings_n, text);
}

void querier_warn_of(struct db_querier *q, uint32_t member, const char *text)
{
	if (q->members[member].records)
		warnings_add_text(q, &q->records_warnings, &q->records_warnings_n, text);
	else
		querier_warn_text(q, text);
}

void querier_note_selected(struct db_querier *q, bool may_be_recorded)
{
	if (may_be_recorded)
		q->records_read = true;
	else
		q->records_passed = true;
}

void querier_tell_missing(struct db_querier *q)
{
	struct err why;

	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].w && !q->sources[i].snap) {
			err_set(&why, ERR_UNAVAILABLE, "being reopened after an error");
			querier_warn(q, &q->sources[i], &why);
		}
}

#define LOSS_WARNINGS_MAX 10 /* of one querier: further ones are counted */

struct telling {
	struct db_querier *q;
	uint32_t member;
	const char *shard; /* NULL: not a union */
	size_t n;
};

static bool warnings_tell_one(void *ctx, const struct loss *l)
{
	struct telling *t = ctx;
	struct buf text = { 0 };

	if (l->accepted || ++t->n > LOSS_WARNINGS_MAX)
		return true;
	if (t->shard)
		buf_printf(&text, "shard %s: ", t->shard);
	loss_print(l, &text);
	querier_warn_of(t->q, t->member, arena_printf(&t->q->arena, STR_FMT, STR_ARG(buf_str(&text))));
	buf_release(&text);
	return true;
}

void querier_tell_losses(struct db_querier *q)
{
	struct telling t = { .q = q };

	for (uint32_t i = 0; i < q->members_n; i++) {
		t.member = i;
		t.shard = q->of ? q->of[i]->name : NULL;
		losses_each(q->members[i].db->losses, q->min_ns, q->max_ns, warnings_tell_one, &t);
	}
	if (t.n > LOSS_WARNINGS_MAX)
		querier_warn_text(
			q, arena_printf(&q->arena, "and %zu more losses", t.n - LOSS_WARNINGS_MAX));
}

static void warnings_tell_unreadable(void *ctx, const char *text)
{
	struct telling *t = ctx;

	if (++t->n <= LOSS_WARNINGS_MAX)
		querier_warn_of(t->q, t->member,
			text ? arena_printf(&t->q->arena, "%s%s%s%s", t->shard ? "shard " : "",
					   t->shard ? t->shard : "", t->shard ? ": " : "", text) :
				   NULL);
}

/* Warns of blocks in a bucket that cannot be read, under the lock under which the others are
 * pinned. */
void querier_tell_unreadable_locked(struct db_querier *q, uint32_t member)
{
	struct telling t = { q, member, q->of ? q->of[member]->name : NULL, 0 };

	blocks_tell_unreadable_locked(
		q->members[member].db, q->min_ns, q->max_ns, warnings_tell_unreadable, &t);
	if (t.n > LOSS_WARNINGS_MAX)
		querier_warn_of(
			q, member, arena_printf(&q->arena, "and %zu more blocks", t.n - LOSS_WARNINGS_MAX));
}

/* Warns if the answer may have rows of the future, which were stored while a clock was ahead. */
void querier_tell_future_locked(struct db_querier *q, uint32_t member, size_t from)
{
	int64_t now_ns = clock_now_ns() + DB_FUTURE_NS, last_ns = 0;
	struct buf until = { 0 };

	mutex_assert_held(&q->members[member].db->lock);
	if (q->max_ns <= now_ns)
		return;
	for (size_t i = from; i < q->sources_n; i++) {
		const struct querier_source *s = &q->sources[i];
		int64_t last = s->b ? block_meta(s->b->block)->last_ns : s->w->count.max_ns;

		last_ns = last > last_ns ? last : last_ns;
	}
	if (last_ns <= now_ns)
		return;
	time_print_rfc3339(&until, last_ns);
	querier_warn_of(q, member,
		arena_printf(&q->arena,
			"%s%s%sprofiles of the future, up to " STR_FMT
			", are in the answer: stored while a clock was ahead",
			q->of ? "shard " : "", q->of ? q->of[member]->name : "", q->of ? ": " : "",
			STR_ARG(buf_str(&until))));
	buf_release(&until);
}

static bool warnings_has(const struct str *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(list[i], text))
			return true;
	return false;
}

static void warnings_warn(void *to, const char *text)
{
	struct db_querier *q = to;

	if (!warnings_has(q->warnings, q->warnings_n, text))
		querier_warn_text(q, arena_printf(&q->arena, "%s", text));
}

static void warnings_warn_of_member(void *to, const char *text)
{
	const struct telling *t = to;
	struct db_querier *q = t->q;

	if (!warnings_has(q->warnings, q->warnings_n, text) &&
		!warnings_has(q->records_warnings, q->records_warnings_n, text))
		querier_warn_of(q, t->member, arena_printf(&q->arena, "%s", text));
}

void querier_tell_union(struct db_querier *q)
{
	if (q->db->union_tell)
		q->db->union_tell(q->db->union_tell_ctx, q->min_ns, q->max_ns, warnings_warn, q);
}

void querier_tell_members(struct db_querier *q)
{
	struct telling t = { .q = q };

	for (; q->of && t.member < q->members_n; t.member++) {
		const struct member *of = q->of[t.member];

		if (of->tell)
			of->tell(of->ctx, q->min_ns, q->max_ns, warnings_warn_of_member, &t);
	}
}

void querier_warn(struct db_querier *q, struct querier_source *s, const struct err *why)
{
	metric_add(&read_damage, NULL, 1);
	if (s->warned) /* one warning per source is enough */
		return;
	s->warned = true;
	warnings_add_text(q, &q->warnings, &q->warnings_n,
		arena_printf(&q->arena,
			"%s%s%srows of the %s that starts at %" PRId64 " may be missing: %s",
			q->of ? "shard " : "", q->of ? q->of[s->member]->name : "", q->of ? ": " : "",
			s->b ? "block" : "window", s->min_ns / NS_PER_S, why->msg));
}

void querier_info(struct db_querier *q, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < q->infos_n; i++)
		if (str_is(q->infos[i], text))
			return;
	warnings_add_text(q, &q->infos, &q->infos_n, arena_printf(&q->arena, "%s", text));
}

void db_querier_note_added(
	struct db_querier *q, const struct db_series *s, int64_t min_ns, int64_t max_ns)
{
	twins_note_sum(
		q, &s, 1, min_ns > q->min_ns ? min_ns : q->min_ns, max_ns < q->max_ns ? max_ns : q->max_ns);
}

const struct str *db_querier_warnings(struct db_querier *q, size_t *n)
{
	twins_tell(q);
	if (q->records_read || !q->records_passed) {
		for (size_t i = 0; i < q->records_warnings_n; i++)
			querier_warn_text(q, q->records_warnings[i].ptr);
		q->records_warnings_n = 0;
	}
	*n = q->warnings_n;
	return q->warnings;
}

const struct str *db_querier_infos(const struct db_querier *q, size_t *n)
{
	*n = q->infos_n;
	return q->infos;
}
