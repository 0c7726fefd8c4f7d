#include "cmd/epimetheus/sink.h"

static enum err_code append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct db_sink *self = (struct db_sink *)s;
	struct db_append a = {
		.labels = p->labels,
		.ts_ns = p->ts_ns,
		.interval_ns = p->interval_ns,
		.profile = p->profile,
		.kinds = p->kinds,
		.convert = true,
	};
	struct db_append_stats stats;

	return db_append(self->db, &a, &stats, done, ctx, err);
}

static const struct sink_ops ops = { .append = append };

void db_sink_init(struct db_sink *s, struct db *db)
{
	*s = (struct db_sink){ .sink = { &ops }, .db = db };
}
