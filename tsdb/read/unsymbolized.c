/* Addresses of native code that were stored without lines. */
#include "tsdb/read/querier.h"
#include "tsdb/symbols/segvec.h"

struct unsymbolized_walk {
	struct bits seen; /* partitions */
	db_bare_fn take;
	void *ctx;
};

static enum err_code unsymbolized_visit(void *ctx, const struct db_series *s, struct err *err)
{
	const struct partition *p = s->partition;
	struct unsymbolized_walk *w = ctx;
	enum err_code rc = ERR_OK;

	if (!bits_reserve(&w->seen, partition_index(p)))
		return err_nomem(err, "partitions");
	if (bits_get(&w->seen, partition_index(p)) || !sym_has_bare(p))
		return ERR_OK;
	bits_set(&w->seen, partition_index(p));
	for (uint32_t i = sym_next(p, SYM_LOCATION, 0); i != SYM_NONE && !rc;
		 i = sym_next(p, SYM_LOCATION, i + 1)) {
		const struct sym_location l = sym_location(p, i);

		if (!l.lines_n && l.mapping != SYM_NONE && sym_has_address(p, &l))
			rc = w->take(w->ctx, p, &l, err);
	}
	return rc;
}

enum err_code db_visit_bare(struct db_querier *q, db_bare_fn take, void *ctx, struct err *err)
{
	struct unsymbolized_walk w = { .take = take, .ctx = ctx };
	const struct db_visitor v = { .take = unsymbolized_visit, .ctx = &w };
	enum err_code rc = db_visit_series(q, DB_PROFILES, NULL, 0, &v, err);

	bits_release(&w.seen);
	return rc;
}
