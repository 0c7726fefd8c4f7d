#include "base/metrics.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/quote.h"
#include "base/thread.h"

#define COLLECTORS_MAX 64
#define OTHER "other"

/* Upper bounds in seconds: 1 ms x 2.5 each, rounded so that they read well. */
/* clang-format off */
static const double bounds[METRIC_BUCKETS] = {
	0.001, 0.0025, 0.006, 0.015, 0.04, 0.1, 0.25, 0.6, 1.5, 4, 10, 25, 60, 150,
};
/* clang-format on */

/*
 * One value of the label. Cells are pushed at the front of their metric's list and stay for ever,
 * so readers walk the list without a lock. A push that loses the race looks for its value again.
 */
struct metric_cell {
	struct metric_cell *next;
	uint64_t hash; /* of value */
	size_t nth; /* 1 for the first cell of the metric */
	_Atomic uint64_t number; /* bits of a double: the value, or the sum of a histogram */
	_Atomic uint64_t *buckets; /* METRIC_BUCKETS and +Inf; histograms only */
	char value[];
};

static struct mutex lock = MUTEX_INIT; /* guards registry and collectors */
static struct metric *registry;
static struct collector {
	metric_collect_fn fn;
	void *ctx;
} collectors[COLLECTORS_MAX];
static size_t collectors_n;

void metric_register(struct metric *m)
{
	struct metric *other;

	assert(m->name && m->help);
	mutex_lock(&lock);
	for (other = registry; other; other = other->next)
		assert(strcmp(other->name, m->name));
	m->next = registry;
	registry = m;
	mutex_unlock(&lock);
}

static struct metric_cell *metric_cell_find(struct metric_cell *c, uint64_t hash, const char *value)
{
	for (; c; c = c->next)
		if (c->hash == hash && !strcmp(c->value, value))
			return c;
	return NULL;
}

static struct metric_cell *metric_cell_new(const struct metric *m, uint64_t hash, const char *value)
{
	size_t len = strlen(value) + 1, room = (sizeof(struct metric_cell) + len + 7) & ~(size_t)7;
	size_t buckets = m->kind == METRIC_KIND_HISTOGRAM ? METRIC_BUCKETS + 1 : 0;
	struct metric_cell *c = calloc(1, room + buckets * sizeof(*c->buckets));

	if (!c)
		return NULL;
	c->hash = hash;
	if (buckets)
		c->buckets = (_Atomic uint64_t *)(void *)((char *)c + room);
	memcpy(c->value, value, len);
	return c;
}

/* The cell of a label value; the first use makes it. NULL: out of memory, the count is lost. */
static struct metric_cell *metric_cell_of(struct metric *m, const char *value)
{
	struct metric_cell *first, *found, *fresh = NULL;
	uint64_t hash;

	assert(m->label || !value);
	if (!value)
		value = "";
	hash = hash_bytes(value, strlen(value), 0);
	first = atomic_load_explicit(&m->cells, memory_order_acquire);
	for (;;) { /* ends: the list grows in each turn, and it is bounded */
		if ((found = metric_cell_find(first, hash, value)))
			break;
		if (first && first->nth >= METRIC_VALUES_MAX && strcmp(value, OTHER)) {
			free(fresh);
			return metric_cell_of(m, OTHER);
		}
		if (!fresh && !(fresh = metric_cell_new(m, hash, value)))
			return NULL;
		fresh->next = first;
		fresh->nth = first ? first->nth + 1 : 1;
		if (atomic_compare_exchange_strong_explicit(
				&m->cells, &first, fresh, memory_order_acq_rel, memory_order_acquire))
			return fresh;
	}
	free(fresh);
	return found;
}

static double metrics_to_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static uint64_t metrics_to_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void metric_cell_number_add(struct metric_cell *c, double value)
{
	uint64_t old = atomic_load_explicit(&c->number, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&c->number, &old,
		metrics_to_bits(metrics_to_double(old) + value), memory_order_relaxed,
		memory_order_relaxed))
		;
}

void metric_add(struct metric *m, const char *label_value, double value)
{
	struct metric_cell *c = metric_cell_of(m, label_value);

	assert(m->kind == METRIC_KIND_GAUGE || (m->kind == METRIC_KIND_COUNTER && value >= 0));
	if (c)
		metric_cell_number_add(c, value);
}

void metric_set(struct metric *m, const char *label_value, double value)
{
	struct metric_cell *c = metric_cell_of(m, label_value);

	assert(m->kind == METRIC_KIND_GAUGE);
	if (c)
		atomic_store_explicit(&c->number, metrics_to_bits(value), memory_order_relaxed);
}

void metric_observe(struct metric *m, const char *label_value, double value)
{
	struct metric_cell *c = metric_cell_of(m, label_value);
	size_t i = 0;

	assert(m->kind == METRIC_KIND_HISTOGRAM);
	if (!c)
		return;
	while (i < METRIC_BUCKETS && value > bounds[i])
		i++;
	atomic_fetch_add_explicit(&c->buckets[i], 1, memory_order_relaxed);
	metric_cell_number_add(c, value);
}

double metric_get(struct metric *m, const char *label_value)
{
	const char *value = label_value ? label_value : "";
	struct metric_cell *c = metric_cell_find(atomic_load_explicit(&m->cells, memory_order_acquire),
		hash_bytes(value, strlen(value), 0), value);

	return c ? metrics_to_double(atomic_load_explicit(&c->number, memory_order_relaxed)) : 0;
}

void metric_collector_add(metric_collect_fn fn, void *ctx)
{
	assert(fn);
	mutex_lock(&lock);
	assert(collectors_n < COLLECTORS_MAX);
	collectors[collectors_n++] = (struct collector){ fn, ctx };
	mutex_unlock(&lock);
}

void metric_collector_remove(metric_collect_fn fn, void *ctx)
{
	size_t i;

	mutex_lock(&lock);
	for (i = 0; i < collectors_n; i++) {
		if (collectors[i].fn != fn || collectors[i].ctx != ctx)
			continue;
		memmove(collectors + i, collectors + i + 1, (collectors_n - i - 1) * sizeof(collectors[0]));
		collectors_n--;
		break;
	}
	mutex_unlock(&lock);
}

/* Escapes backslash and newline, and in a label's value the double quote; the output is UTF-8. */
static void metrics_add_escaped(struct buf *out, const char *text, bool quote)
{
	struct str s = str_of(text);
	uint32_t code;
	size_t n;

	while (s.len) {
		n = utf8_decode(s, &code);
		if (n == 0)
			buf_add_cstr(out, "\xef\xbf\xbd"), n = 1;
		else if (code == '\n')
			buf_add_cstr(out, "\\n");
		else if (code == '\\' || (quote && code == '"'))
			buf_add(out, (char[]){ '\\', (char)code }, 2);
		else
			buf_add(out, s.ptr, n);
		s.ptr += n;
		s.len -= n;
	}
}

/* name_suffix{label="value",le="bound"} */
static void metrics_add_series(
	struct buf *out, const struct metric *m, const char *suffix, const char *value, double le)
{
	buf_add_cstr(out, m->name);
	buf_add_cstr(out, suffix);
	if (m->label || le > 0) {
		buf_add_char(out, '{');
		if (m->label) {
			buf_printf(out, "%s=\"", m->label);
			metrics_add_escaped(out, value, true);
			buf_add_char(out, '"');
		}
		if (le > 0) {
			buf_add_cstr(out, m->label ? ",le=\"" : "le=\"");
			buf_add_double(out, le);
			buf_add_char(out, '"');
		}
		buf_add_char(out, '}');
	}
	buf_add_char(out, ' ');
}

static void metrics_print_cell(struct buf *out, const struct metric *m, const struct metric_cell *c)
{
	double number = c ? metrics_to_double(atomic_load_explicit(&c->number, memory_order_relaxed)) :
						0;
	const char *value = c ? c->value : "";
	uint64_t count = 0;
	size_t i;

	if (m->kind != METRIC_KIND_HISTOGRAM) {
		metrics_add_series(out, m, "", value, 0);
		buf_add_double(out, number);
		buf_add_char(out, '\n');
		return;
	}
	for (i = 0; i <= METRIC_BUCKETS; i++) {
		count += c ? atomic_load_explicit(&c->buckets[i], memory_order_relaxed) : 0;
		metrics_add_series(
			out, m, "_bucket", value, i < METRIC_BUCKETS ? bounds[i] : __builtin_inf());
		buf_add_u64(out, count);
		buf_add_char(out, '\n');
	}
	metrics_add_series(out, m, "_sum", value, 0);
	buf_add_double(out, number);
	buf_add_char(out, '\n');
	metrics_add_series(out, m, "_count", value, 0); /* the sum of the buckets above */
	buf_add_u64(out, count);
	buf_add_char(out, '\n');
}

static void metrics_print_info(struct buf *out, const struct metric *m)
{
	struct metric_label labels[METRIC_INFO_LABELS_MAX] = { 0 };

	for (size_t i = 0; m->info(i, labels); i++) {
		buf_add_cstr(out, m->name);
		for (size_t k = 0; k < METRIC_INFO_LABELS_MAX && labels[k].name; k++) {
			buf_printf(out, "%s%s=\"", k ? "," : "{", labels[k].name);
			metrics_add_escaped(out, labels[k].value, true);
			buf_add_char(out, '"');
		}
		buf_add_cstr(out, "} 1\n");
	}
}

static int metrics_by_value(const void *a, const void *b)
{
	return strcmp(
		(*(struct metric_cell *const *)a)->value, (*(struct metric_cell *const *)b)->value);
}

static const char *const kinds[] = { "counter", "gauge", "histogram", "gauge" };

static void metrics_print_metric(struct buf *out, struct metric *m)
{
	struct metric_cell *sorted[METRIC_VALUES_MAX + 1], *c;
	size_t n = 0, i;

	mutex_assert_held(&lock);
	for (c = atomic_load_explicit(&m->cells, memory_order_acquire); c; c = c->next) {
		assert(n <= METRIC_VALUES_MAX);
		sorted[n++] = c;
	}
	if (!n && m->label) /* no value was used yet */
		return;
	buf_printf(out, "# HELP %s ", m->name);
	metrics_add_escaped(out, m->help, false);
	buf_printf(out, "\n# TYPE %s %s\n", m->name, kinds[m->kind]);
	if (m->kind == METRIC_KIND_INFO)
		metrics_print_info(out, m);
	else if (!n)
		metrics_print_cell(out, m, NULL);
	qsort(sorted, n, sizeof(sorted[0]), metrics_by_value);
	for (i = 0; i < n; i++)
		metrics_print_cell(out, m, sorted[i]);
}

static int metrics_by_name(const void *a, const void *b)
{
	return strcmp((*(struct metric *const *)a)->name, (*(struct metric *const *)b)->name);
}

/* NULL: out of memory. */
static struct metric **metrics_sorted(size_t *n)
{
	struct metric *m, **sorted;

	mutex_assert_held(&lock);
	*n = 0;
	for (m = registry; m; m = m->next)
		++*n;
	sorted = calloc(*n + 1, sizeof(*sorted));
	if (!sorted)
		return NULL;
	*n = 0;
	for (m = registry; m; m = m->next)
		sorted[(*n)++] = m;
	qsort(sorted, *n, sizeof(*sorted), metrics_by_name);
	return sorted;
}

bool metrics_walk(metric_walk_fn fn, void *ctx)
{
	struct metric **sorted;
	bool whole;
	size_t n;

	mutex_lock(&lock);
	sorted = metrics_sorted(&n);
	whole = sorted != NULL;
	for (size_t i = 0; whole && i < n; i++)
		fn(ctx, sorted[i]->name, kinds[sorted[i]->kind], sorted[i]->label, sorted[i]->help);
	mutex_unlock(&lock);
	free(sorted);
	return whole;
}

void metrics_print(struct buf *out)
{
	struct metric **sorted;
	size_t n, i;

	mutex_lock(&lock);
	for (i = 0; i < collectors_n; i++)
		collectors[i].fn(collectors[i].ctx);
	sorted = metrics_sorted(&n);
	for (i = 0; sorted && i < n; i++)
		metrics_print_metric(out, sorted[i]);
	out->failed |= !sorted;
	mutex_unlock(&lock);
	free(sorted);
}
