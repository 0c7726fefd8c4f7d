#include "cmd/epimetheus/symbol_requests.h"

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/read/querier.h"
#include "tsdb/symbols/segvec.h"

#define WINDOW_NS NS_PER_HOUR

struct symbol_requests_walk {
	struct debuginfo *debuginfo;
	const struct partition *walked;
	struct bits seen; /* its mappings */
};

static enum err_code symbol_requests_want(
	void *ctx, const struct partition *p, const struct sym_location *l, struct err *err)
{
	const struct sym_mapping *m = sym_mapping(p, l->mapping);
	struct symbol_requests_walk *w = ctx;
	struct debuginfo_id id;

	if (p != w->walked)
		bits_release(&w->seen);
	w->walked = p;
	if (!bits_reserve(&w->seen, l->mapping))
		return err_nomem(err, "mappings");
	if (bits_get(&w->seen, l->mapping))
		return ERR_OK;
	bits_set(&w->seen, l->mapping);
	if (debuginfo_id_guess(sym_string(p, m->build_id), &id))
		debuginfo_want(w->debuginfo, &id, sym_string(p, m->filename));
	return ERR_OK;
}

void symbol_requests_walk(struct db *db, struct debuginfo *d)
{
	struct symbol_requests_walk w = { .debuginfo = d };
	int64_t now_ns = clock_now_ns();
	struct db_querier *q = NULL;
	struct err err;
	enum err_code rc;

	rc = db_querier_open(db, now_ns - WINDOW_NS, now_ns, NULL, &q, &err);
	if (!rc)
		rc = db_visit_bare(q, symbol_requests_want, &w, &err);
	if (rc)
		log_warn("main", "binaries without symbols are not looked for", LOG_E(&err));
	db_querier_close(q);
	bits_release(&w.seen);
}
