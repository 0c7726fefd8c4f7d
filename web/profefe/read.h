/*
 * Reading stored rows: the series of a service, their rows, and rows added up into one profile.
 *
 * Units:     nanoseconds since 1970; times are both inside.
 * Errors:    ERR_NOT_FOUND, ERR_LIMIT (rows, cells, series, memory), ERR_CANCELED, ERR_NOMEM.
 * Ownership: read_open is ended by read_close, also if it failed. Series and rows live as long.
 * Threads:   one.
 */
#ifndef WEB_PROFEFE_READ_H
#define WEB_PROFEFE_READ_H

#include "tsdb/db.h"
#include "web/profefe/profefe.h"

#define READ_SERIES_MAX 20000u
#define READ_ROWS_MAX 100000u /* listed, or merged */
#define READ_CELLS_MAX 200000000u /* of the rows that are decoded */
#define READ_ARENA_BYTES_MAX (128u << 20)
#define READS_MAX 8u /* at once: each may use that memory */

struct profefe_reading {
	struct web *w;
	struct http_in *in;
	struct db_querier *q;
	struct arena arena;
	bool entered;
	size_t rows, cells; /* so far */
};

/* ERR_UNAVAILABLE: too many read already. */
MUST_CHECK enum err_code read_open(struct profefe_reading *r, struct web *w, struct http_in *in,
	int64_t from_ns, int64_t to_ns, struct err *err);
void read_close(struct profefe_reading *r);

/* The series of a service: with the name and labels that p asks for. ERR_NOT_FOUND: none. */
struct read_series {
	const struct db_series **v;
	size_t n;
};
MUST_CHECK enum err_code read_select(struct profefe_reading *r, const struct profefe_params *p,
	struct read_series *out, struct err *err);

typedef enum err_code read_row_fn(
	void *ctx, const struct db_series *s, const struct db_row *row, struct err *err);
MUST_CHECK enum err_code read_rows(struct profefe_reading *r, const struct db_series *s,
	int64_t from_ns, int64_t to_ns, read_row_fn *fn, void *ctx, struct err *err);

/* A row that was found. */
struct read_found {
	const struct db_series *series;
	int64_t ts_ns;
};
struct read_list {
	struct read_found *v;
	size_t n, cap;
};
/* The newest first, at most p->limit of them. */
MUST_CHECK enum err_code read_list(struct profefe_reading *r, const struct profefe_params *p,
	const struct read_series *series, struct read_list *out, struct err *err);

/* ---- sum.c ---- */

/*
 * Adds rows up as google/pprof's Merge does: equal stacks with equal labels become one sample, all
 * values are added, whatever they count. The querier stays open until sum_profile is done.
 */
struct sum;
MUST_CHECK enum err_code sum_open(struct arena *a, struct sum **out, struct err *err);
void sum_close(struct sum *s); /* NULL is fine */
/* A read_row_fn; ctx is the struct sum. */
enum err_code sum_add(
	void *ctx, const struct db_series *series, const struct db_row *row, struct err *err);
size_t sum_rows(const struct sum *s);
/* In the arena. There is at least one row. */
MUST_CHECK enum err_code sum_profile(struct sum *s, struct pprof **out, struct err *err);

#endif
