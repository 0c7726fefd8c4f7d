/*
 * Profile values for tests of the layers above the database: a pprof file's column as the sum of
 * one row.
 */
#ifndef TESTS_VALUES_H
#define TESTS_VALUES_H

#include "promql/value/value.h"
#include "proto/pprof.h"
#include "tests/check.h"
#include "tsdb/symbols/partition.h"

struct values {
	struct arena arena;
	struct partition *partition;
};

static inline bool values_init(struct values *v, const char *job)
{
	const struct symbol_limits limits = { 1u << 20, 1u << 20, 65536, (uint64_t)1 << 30 };
	struct err err;

	arena_init(&v->arena, 0);
	return !partition_open(str_of(job), 0, 0, &limits, &v->partition, &err);
}

static inline void values_release(struct values *v)
{
	partition_close(v->partition);
	arena_release(&v->arena);
}

/* Column `type` of p; cells without sample labels where by_labels is false. */
static inline struct profile_value *values_add(
	struct values *v, const struct pprof *p, uint32_t type, bool by_labels)
{
	struct profile_value *out = arena_new(&v->arena, struct profile_value);
	enum value_kind *kinds = arena_array(&v->arena, enum value_kind, p->types_n);
	struct part *part = arena_new(&v->arena, struct part);
	uint32_t *header = arena_new(&v->arena, uint32_t);
	struct interned in;
	struct err err;

	if (sym_intern_profile(v->partition, p, kinds, &v->arena, &in, &err)) {
		CHECK_FAIL("%s", err.msg);
		return NULL;
	}
	*header = in.header;
	*part = (struct part){ .partition = v->partition, .headers = header, .headers_n = 1 };
	part->cells = arena_array(&v->arena, struct cell, in.n + 1);
	for (uint32_t i = 0; i < in.n; i++) {
		uint32_t stack = (uint32_t)(in.keys[i] >> 32), set = by_labels ? (uint32_t)in.keys[i] : 0;
		int64_t value = p->values[(size_t)in.samples[i] * p->types_n + type];
		struct cell *last = part->n ? &part->cells[part->n - 1] : NULL;

		if (value == 0)
			continue;
		if (last && last->stack == stack && last->label_set == set)
			last->value += value;
		else
			part->cells[part->n++] = (struct cell){ stack, set, value, 0 };
	}
	*out = (struct profile_value){ .parts = part,
		.parts_n = 1,
		.profiles = 1,
		.time_nanos = p->time_nanos,
		.duration_nanos = p->duration_nanos,
		.period = p->period,
		.type = { .name = STR("test"), .sample_type = p->strings[p->types[type].type],
					  .sample_unit = p->strings[p->types[type].unit],
					  .period_type = p->strings[p->period_type.type],
					  .period_unit = p->strings[p->period_type.unit] } };
	for (size_t i = 0; i < part->n; i++) {
		out->value_total += part->cells[i].value;
		out->total += part->cells[i].value < 0 ? -part->cells[i].value : part->cells[i].value;
	}
	out->value_size = out->total;
	return out;
}

/* A file as received, decoded into the values' arena; body must live as long. */
static inline struct pprof *values_decode(struct values *v, struct str body)
{
	struct pprof *p = NULL;
	struct err err;
	struct str raw;

	if (pprof_inflate(&v->arena, body, &pprof_limits_default, &raw, &err) ||
		pprof_decode(&v->arena, raw, &pprof_limits_default, &p, &err))
		CHECK_FAIL("%s", err.msg);
	return p;
}

#endif
