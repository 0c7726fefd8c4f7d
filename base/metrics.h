/*
 * Metrics: the server's own numbers, as Prometheus's text format shows them.
 *
 * A metric is a static object declared where it is counted; it registers itself before main runs
 * (METRIC_* macros) and is never freed. A metric may have one label whose values appear as they are
 * used, up to METRIC_VALUES_MAX; later values are counted under "other".
 *
 *	METRIC_COUNTER(scrapes_total, "epimetheus_scrapes_total", "Scrapes done.", "result");
 *	metric_add(&scrapes_total, "ok", 1);
 *	METRIC_GAUGE(head_series, "epimetheus_head_series", "Series in the head.", NULL);
 *	metric_set(&head_series, NULL, n);
 *	METRIC_HISTOGRAM(query_seconds, "epimetheus_query_duration_seconds", "Time a query takes.",
 *		NULL);
 *	metric_observe(&query_seconds, NULL, 0.25);
 *
 * Threads: any; updates are atomic adds on the metric without a lock.
 * Source:  https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4)
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdatomic.h>

#include "base/str.h"

#define METRIC_VALUES_MAX 64
#define METRIC_INFO_LABELS_MAX 3
#define METRIC_BUCKETS 14 /* 1 ms x 2.5 .. */

enum metric_kind {
	METRIC_KIND_COUNTER,
	METRIC_KIND_GAUGE,
	METRIC_KIND_HISTOGRAM,
	METRIC_KIND_INFO
};

struct metric_cell;

struct metric_label {
	const char *name, *value; /* name NULL: none */
};
/* The labels of the ith row; false: there are no more. */
typedef bool (*metric_info_fn)(size_t i, struct metric_label labels[METRIC_INFO_LABELS_MAX]);

struct metric {
	enum metric_kind kind;
	const char *name, *help, *label; /* label NULL: none */
	_Atomic(struct metric_cell *) cells; /* list, newest first; never shrinks */
	struct metric *next; /* registry, sorted when shown */
	metric_info_fn info; /* of METRIC_KIND_INFO: constant rows, each with the value 1 */
};

void metric_register(struct metric *m);
void metric_add(struct metric *m, const char *label_value, double value);
void metric_set(struct metric *m, const char *label_value, double value);
void metric_observe(struct metric *m, const char *label_value, double value);
/* a histogram's sum; for tests and status pages */
double metric_get(struct metric *m, const char *label_value);

/*
 * Called before the registry is printed, to set gauges that are read off something. It must not add
 * or remove collectors; after metric_collector_remove it runs no more.
 */
typedef void (*metric_collect_fn)(void *ctx);
void metric_collector_add(metric_collect_fn fn, void *ctx);
void metric_collector_remove(metric_collect_fn fn, void *ctx);

/* The whole registry in text format. */
void metrics_print(struct buf *out);

/* Every family, by name, whether it has a value yet or not; for the book. */
typedef void (*metric_walk_fn)(
	void *ctx, const char *name, const char *kind, const char *label, const char *help);
MUST_CHECK bool metrics_walk(metric_walk_fn fn, void *ctx); /* false: out of memory */

#define METRIC_DEFINE_(var, k, n, h, l, f) \
	static struct metric var = { \
		.kind = (k), .name = (n), .help = (h), .label = (l), .info = (f) \
	}; \
	__attribute__((constructor)) static void metric_register_##var(void) \
	{ \
		metric_register(&var); \
	}
#define METRIC_COUNTER(var, name, help, label) \
	METRIC_DEFINE_(var, METRIC_KIND_COUNTER, name, help, label, NULL)
#define METRIC_GAUGE(var, name, help, label) \
	METRIC_DEFINE_(var, METRIC_KIND_GAUGE, name, help, label, NULL)
#define METRIC_HISTOGRAM(var, name, help, label) \
	METRIC_DEFINE_(var, METRIC_KIND_HISTOGRAM, name, help, label, NULL)
#define METRIC_INFO(var, name, help, info) \
	METRIC_DEFINE_(var, METRIC_KIND_INFO, name, help, NULL, info)

#endif
