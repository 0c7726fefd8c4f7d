#include "tsdb/db_sink.h"

#include <stdlib.h>

#include "tsdb/columns/number_chunk.h"

_Static_assert(SINK_STALE_BITS == NUMBER_STALE_BITS, "both are Prometheus's");

static enum err_code db_sink_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct db_sink *self = (struct db_sink *)s;
	struct db_append a = {
		.labels = p->labels,
		.ts_ns = p->ts_ns,
		.interval_ns = p->interval_ns,
		.profile = p->profile,
		.kinds = p->kinds,
		.convert = !p->as_sent,
		.gap_max_ns = p->gap_max_ns,
	};
	struct db_append_stats stats;
	enum err_code rc = db_append(self->db, &a, &stats, done, ctx, err);

	if (!rc && p->stored)
		*p->stored = (struct sink_stored){ stats.samples, stats.overflow, stats.links_dropped };
	return rc;
}

static enum err_code db_sink_append_numbers(struct sink *s, const struct sink_number *number,
	size_t n, sink_done_fn done, void *ctx, struct err *err)
{
	struct db_sink *self = (struct db_sink *)s;
	struct db_number *numbers = calloc(n ? n : 1, sizeof(*numbers));
	enum err_code rc;

	if (!numbers)
		return err_set(err, ERR_NOMEM, "out of memory for numbers");
	for (size_t i = 0; i < n; i++)
		numbers[i] = (struct db_number){ number[i].labels, number[i].ts_ns, number[i].value };
	rc = db_append_numbers(self->db, numbers, n, done, ctx, err);
	free(numbers);
	return rc;
}

static const struct sink_ops ops = { .append = db_sink_append,
	.append_numbers = db_sink_append_numbers };

void db_sink_init(struct db_sink *s, struct db *db)
{
	*s = (struct db_sink){ .sink = { &ops }, .db = db };
}
