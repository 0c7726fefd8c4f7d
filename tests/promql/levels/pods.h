/*
 * Pods that are scraped: the rows of one series, drawn from how a pod lives and how scrapes come.
 *
 * Units: nanoseconds; jitter and misses are in thousandths.
 */
#ifndef TESTS_PROMQL_LEVELS_PODS_H
#define TESTS_PROMQL_LEVELS_PODS_H

#include "tests/draw.h"
#include "tests/promql/levels/model.h"

struct levels_pod {
	int64_t born_ns, dies_ns; /* it has its level in (born, dies] */
	int64_t interval_ns;
	int64_t stagger_ns; /* the first scrape is so long after it is born */
	unsigned jitter; /* scrapes are late by up to this part of the interval */
	unsigned misses;
	int64_t away_from_ns, away_to_ns; /* no scrape comes in (from, to] */
	int64_t value;
	int64_t value_spread; /* values are up to so much higher, and change from time to time */
};

/* 0 to below - 1; draw() alone has 31 bits. */
static inline int64_t draw_time(struct draw *d, int64_t below)
{
	uint64_t high = draw(d, 1u << 31), low = draw(d, 1u << 31);

	return (int64_t)((high << 31 | low) % (uint64_t)below);
}

/* Its rows, behind those of *out. */
static inline void pod_scrapes(
	struct draw *d, const struct levels_pod *p, struct levels_series *out)
{
	int64_t late_ns = p->interval_ns / 1000 * p->jitter, value = p->value;

	for (int64_t at_ns = p->born_ns + p->stagger_ns; at_ns <= p->dies_ns; at_ns += p->interval_ns) {
		int64_t ts_ns = at_ns + (late_ns ? draw_time(d, late_ns) / 10 * 10 : 0);
		bool is_missed = p->misses && draw(d, 1000) < p->misses;

		if (p->value_spread && draw(d, 4) == 0)
			value = p->value + draw_time(d, p->value_spread);
		if (ts_ns > p->away_from_ns && ts_ns <= p->away_to_ns)
			is_missed = true;
		if (!is_missed && ts_ns <= p->dies_ns)
			levels_add(out, (struct levels_row){ ts_ns, p->interval_ns, value });
	}
}

#endif
