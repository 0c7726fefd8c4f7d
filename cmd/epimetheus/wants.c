#include "cmd/epimetheus/wants.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/read/querier.h"

#define WINDOW_NS NS_PER_HOUR

struct walk {
	struct debuginfo *debuginfo;
	struct arena arena;
	bool *seen; /* by number of the partition */
	size_t seen_n;
};

/* *seen grows to hold the number. False: out of memory. */
static bool first_time(struct arena *a, bool **seen, size_t *n, size_t at, bool *first)
{
	bool *grown;

	if (at >= *n) {
		size_t room = 2 * at + 64;

		if (!(grown = arena_array(a, bool, room)))
			return false;
		if (*n)
			memcpy(grown, *seen, *n * sizeof(*grown));
		*seen = grown;
		*n = room;
	}
	*first = !(*seen)[at];
	(*seen)[at] = true;
	return true;
}

static void want(struct walk *w, const struct partition *p, uint32_t mapping)
{
	const struct sym_mapping *m = sym_mapping(p, mapping);
	struct debuginfo_id id;

	if (debuginfo_id_guess(sym_string(p, m->build_id), &id))
		debuginfo_want(w->debuginfo, &id, sym_string(p, m->filename));
}

static enum err_code walk_partition(struct walk *w, const struct partition *p, struct err *err)
{
	uint32_t n = sym_locations_n(p), last = SYM_NONE;
	bool *seen = NULL, first;
	size_t seen_n = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct sym_location *l;

		if (!sym_exists(p, SYM_LOCATION, i))
			continue;
		l = sym_location(p, i);
		if (l->lines_n || l->mapping == SYM_NONE || l->mapping == last)
			continue;
		last = l->mapping;
		if (!first_time(&w->arena, &seen, &seen_n, last, &first))
			return arena_fail(&w->arena, "mappings", err);
		if (first)
			want(w, p, last);
	}
	return ERR_OK;
}

static enum err_code visit(void *ctx, const struct db_series *s, struct err *err)
{
	struct walk *w = ctx;
	bool first;

	if (!first_time(&w->arena, &w->seen, &w->seen_n, partition_index(s->partition), &first))
		return arena_fail(&w->arena, "partitions", err);
	return first && sym_has_bare(s->partition) ? walk_partition(w, s->partition, err) : ERR_OK;
}

void wants_walk(struct db *db, struct debuginfo *d)
{
	struct walk w = { .debuginfo = d };
	const struct db_visitor v = { .take = visit, .ctx = &w };
	int64_t now_ns = clock_now_ns();
	struct db_querier *q = NULL;
	struct err err;
	enum err_code rc;

	arena_init(&w.arena, 0);
	rc = db_querier_open(db, now_ns - WINDOW_NS, now_ns, NULL, &q, &err);
	if (!rc)
		rc = db_visit_series(q, DB_PROFILES, NULL, 0, &v, &err);
	if (rc)
		log_warn("main", "binaries without symbols are not looked for", LOG_E(&err));
	db_querier_close(q);
	arena_release(&w.arena);
}
