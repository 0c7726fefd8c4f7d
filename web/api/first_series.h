/*
 * First series: keeps the first in order of very many label sets, each once.
 *
 * At most about twice the limit is kept, however many come. While the rest is dropped, a second
 * arena holds the copy.
 *
 * Errors:    ERR_LIMIT if that needs more than bytes_max; ERR_NOMEM.
 * Ownership: labels are copied; first_series_release frees all.
 * Threads:   one at a time.
 */
#ifndef WEB_API_FIRST_SERIES_H
#define WEB_API_FIRST_SERIES_H

#include "base/arena.h"
#include "base/labels.h"
#include "base/map.h"

struct first_series {
	struct labels *v; /* after first_series_end: ascending, at most one more than the limit */
	size_t n, cap;
	uint64_t limit; /* 0: none, all are kept */
	struct labels last; /* with is_over: only label sets before it are wanted */
	bool is_over;
	struct map map; /* each once */
	struct arena texts;
};

void first_series_init(struct first_series *f, uint64_t limit, size_t bytes_max);
void first_series_release(struct first_series *f);
bool first_series_wants(const struct first_series *f, struct labels labels);
MUST_CHECK enum err_code first_series_add(
	struct first_series *f, struct labels labels, struct err *err);
/* Add nothing afterwards. */
MUST_CHECK enum err_code first_series_end(struct first_series *f, struct err *err);

#endif
