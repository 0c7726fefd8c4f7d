#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fleet/command.h"
#include "tests/fleet/fit.h"

/*
 * The numbers that a fleet is made from, read off a recording. Rates of one process are averaged
 * over processes: those of a service differ from those of one pod.
 */
#define FILES_MAX 65536

static double slope(const double *x, const double *y, uint32_t n)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0;

	for (uint32_t i = 0; i < n; i++) {
		sx += x[i];
		sy += y[i];
		sxx += x[i] * x[i];
		sxy += x[i] * y[i];
	}
	return n > 1 ? (n * sxy - sx * sy) / (n * sxx - sx * sx) : 0;
}

struct fitting {
	const struct recording *r;
	uint32_t *last, *times; /* by stack: scrape last seen in + 1; scrapes seen in */
	int64_t *value; /* by stack: sum of column 0 */
	double *x, *y;
	uint32_t heaps_n;
};

static int descending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x > y ? -1 : x < y;
}

/* Ranks in steps of a quarter, so that the tail does not outvote the head. */
static double zipf(struct fitting *t)
{
	uint32_t n = 0, points = 0;

	for (uint32_t i = 0; i < t->r->stacks_n; i++)
		if (t->value[i] > 0)
			t->value[n++] = t->value[i];
	qsort(t->value, n, sizeof(*t->value), descending);
	for (double rank = 1; rank <= n && t->value[(uint32_t)rank - 1] > 2; rank *= 1.25) {
		t->x[points] = log((uint32_t)rank);
		t->y[points++] = log((double)t->value[(uint32_t)rank - 1]);
	}
	return -slope(t->x, t->y, points);
}

static void fit_process(struct fitting *t, const struct process *p, struct fit *out)
{
	const struct recording *r = t->r;
	uint32_t distinct = 0, singles = 0;
	uint64_t seen = 0;
	double overlap = 0;

	memset(t->last, 0, r->stacks_n * sizeof(*t->last));
	memset(t->times, 0, r->stacks_n * sizeof(*t->times));
	memset(t->value, 0, r->stacks_n * sizeof(*t->value));
	for (uint32_t k = 0; k < p->scrapes_n; k++) {
		const struct scrape *s = &p->scrapes[k];
		uint32_t here = 0, before = 0;

		for (uint32_t i = 0; i < s->n; i++) {
			uint32_t stack = r->item_stack[s->items[i]];

			t->value[stack] += s->values[i];
			if (t->last[stack] == k + 1)
				continue; /* other labels */
			here++;
			before += k && t->last[stack] == k;
			distinct += !t->times[stack]++;
			t->last[stack] = k + 1;
		}
		seen += here;
		overlap += k && here ? (double)before / here : 0;
		if (k == 0)
			out->distinct_first += distinct;
		t->x[k] = log((double)seen + 1);
		t->y[k] = log((double)distinct + 1);
	}
	for (uint32_t i = 0; i < r->stacks_n; i++)
		singles += t->times[i] == 1;
	out->distinct += distinct;
	out->heaps += slope(t->x, t->y, p->scrapes_n);
	out->stacks_mean += (double)seen / p->scrapes_n;
	out->singles += distinct ? (double)singles / distinct : 0;
	out->overlap += p->scrapes_n > 1 ? overlap / (p->scrapes_n - 1) : 0;
	out->zipf += zipf(t);
}

static void fit_values(const struct recording *r, struct fit *out)
{
	uint64_t at_least[8] = { 0 }, n = 0, labelled = 0;
	double sum = 0;

	for (uint32_t p = 0; p < r->processes_n; p++)
		for (uint32_t k = 0; k < r->processes[p].scrapes_n; k++) {
			const struct scrape *s = &r->processes[p].scrapes[k];

			out->scrapes++;
			for (uint32_t i = 0; i < s->n; i++) {
				int64_t v = s->values[i];

				n++;
				sum += (double)v;
				labelled += r->item_labels[s->items[i]] != 0;
				for (int64_t b = 0; b < 8 && v > b; b++)
					at_least[b]++;
			}
		}
	out->samples = (double)n / out->scrapes;
	out->value_mean = sum / (double)n;
	out->total_mean = sum / out->scrapes;
	out->ones = 1 - (double)at_least[1] / (double)at_least[0];
	out->tail_first = (double)at_least[2] / (double)(at_least[1] ? at_least[1] : 1);
	out->tail_last = (double)at_least[7] / (double)(at_least[6] ? at_least[6] : 1);
	out->labelled = (double)labelled / (double)n;
}

/* Entry by entry against the scrape before; an entry that was not there was 0. */
static void fit_changes(const struct recording *r, uint32_t column, struct fit_column *out)
{
	uint64_t entries = 0, nonzero = 0, changed = 0, grown = 0;
	double change = 0, value = 0;

	for (uint32_t p = 0; p < r->processes_n; p++)
		for (uint32_t k = 1; k < r->processes[p].scrapes_n; k++) {
			const struct scrape *s = &r->processes[p].scrapes[k], *b = s - 1;

			for (uint32_t i = 0, at = 0; i < s->n; i++) {
				int64_t v = s->values[(size_t)column * s->n + i], was = 0;

				while (at < b->n && b->items[at] < s->items[i])
					at++;
				if (at < b->n && b->items[at] == s->items[i])
					was = b->values[(size_t)column * b->n + at];
				entries++;
				nonzero += v != 0;
				value += (double)v;
				changed += v != was;
				grown += v > was;
				change += fabs((double)(v - was));
			}
		}
	out->nonzero = (double)nonzero / (double)entries;
	out->changed = (double)changed / (double)entries;
	out->grown = changed ? (double)grown / (double)changed : 0;
	out->change = changed ? change / (double)changed : 0;
	out->mean = nonzero ? value / (double)nonzero : 0;
}

static void fit_depth(const struct recording *r, struct fit *out)
{
	double sum = 0, squares = 0;
	uint64_t lines = 0, inlined = 0;

	for (uint32_t i = 0; i < r->stacks_n; i++) {
		uint32_t depth = 0;

		for (uint32_t at = r->stack_node[i]; at; at = sym_node(r->partition, at).parent)
			depth++;
		sum += depth;
		squares += (double)depth * depth;
	}
	for (uint32_t i = 0; i < sym_locations_n(r->partition); i++) {
		uint32_t n = sym_location(r->partition, i).lines_n;

		lines += n;
		inlined += n > 1;
	}
	out->depth = sum / r->stacks_n;
	out->depth_deviation = sqrt(squares / r->stacks_n - out->depth * out->depth);
	out->new_nodes = (double)(sym_nodes_n(r->partition) - 1) / r->stacks_n;
	out->lines = (double)lines / sym_locations_n(r->partition);
	out->inlined = (double)inlined / sym_locations_n(r->partition);
}

enum err_code fit_recording(const struct recording *r, struct fit *out, struct err *err)
{
	struct fitting t = { .r = r };
	uint32_t scrapes = 64, n = r->processes_n;
	enum err_code rc = ERR_OK;

	for (uint32_t p = 0; p < n; p++)
		if (r->processes[p].scrapes_n > scrapes)
			scrapes = r->processes[p].scrapes_n;
	*out = (struct fit){ 0 };
	t.last = calloc(r->stacks_n + 1, sizeof(*t.last));
	t.times = calloc(r->stacks_n + 1, sizeof(*t.times));
	t.value = calloc(r->stacks_n + 1, sizeof(*t.value));
	t.x = calloc(scrapes, sizeof(*t.x));
	t.y = calloc(scrapes, sizeof(*t.y));
	if (!t.last || !t.times || !t.value || !t.x || !t.y) {
		rc = err_set(err, ERR_NOMEM, "fit: out of memory");
		goto done;
	}
	for (uint32_t p = 0; p < n; p++)
		fit_process(&t, &r->processes[p], out);
	out->distinct_first /= n;
	out->distinct /= n;
	out->heaps /= n;
	out->singles /= n;
	out->overlap /= n;
	out->zipf /= n;
	out->stacks_mean /= n;
	fit_values(r, out);
	for (uint32_t c = 0; c < r->columns_n; c++)
		fit_changes(r, c, &out->columns[c]);
	if (r->partition)
		fit_depth(r, out);
done:
	free(t.last);
	free(t.times);
	free(t.value);
	free(t.x);
	free(t.y);
	return rc;
}

static void print(const struct recording *r, const struct fit *t)
{
	printf(STR_FMT ": %" PRIu32 " processes, %.0f scrapes; %" PRIu32 " stacks, %" PRIu32
				   " label sets, %" PRIu32 " of both\n",
		STR_ARG(r->kind), r->processes_n, t->scrapes, r->stacks_n, r->label_sets_n, r->items_n);
	printf("  samples %.1f, stacks %.1f a scrape; sum of values %.1f; labelled %.3f\n", t->samples,
		t->stacks_mean, t->total_mean, t->labelled);
	printf("  distinct of a process: first %.0f, all %.0f, Heaps %.2f; singles %.3f; "
		   "overlap %.3f; Zipf %.2f\n",
		t->distinct_first, t->distinct, t->heaps, t->singles, t->overlap, t->zipf);
	printf("  values: mean %.3f, ones %.3f, P(>=3|>=2) %.3f, P(>=8|>=7) %.3f\n", t->value_mean,
		t->ones, t->tail_first, t->tail_last);
	if (r->partition)
		printf("  depth %.1f +- %.1f, %.2f nodes a stack; locations with inlining %.3f, "
			   "lines "
			   "%.2f; a profile has %.0f locations, %.0f functions; all %" PRIu32 " functions\n",
			t->depth, t->depth_deviation, t->new_nodes, t->inlined, t->lines, r->locations,
			r->functions, sym_functions_n(r->partition));
	for (uint32_t c = 0; c < r->columns_n; c++)
		printf("  column %" PRIu32 " " STR_FMT
			   " (%s): not 0 %.3f, mean %.3g, changed %.3f (up %.3f), by %.3g\n",
			c, STR_ARG(r->types[c]), value_kind_name(r->kinds[c]), t->columns[c].nonzero,
			t->columns[c].mean, t->columns[c].changed, t->columns[c].grown, t->columns[c].change);
}

enum err_code command_fit(int argc, char **argv, struct err *err)
{
	static const char *files[FILES_MAX];
	uint64_t services, pods, scrapes, first, draws;
	struct fleet_params params;
	const char *set;
	struct flag flags[] = {
		{ "set", FLAG_STRING, &set, NULL, "Fit a made-up set instead of files." },
		{ "service", FLAG_UINT, &services, "1", "Services of it." },
		{ "pods", FLAG_UINT, &pods, "4", "Pods of each." },
		{ "scrapes", FLAG_UINT, &scrapes, "30", "Scrapes of each." },
		{ "first", FLAG_UINT, &first, "9000", "Index of the first scrape." },
		{ "draws", FLAG_UINT, &draws, "0", "Samples a scrape takes; 0: the set's." },
	};
	size_t n = 0, taken = 0;
	struct recording r = { 0 };
	struct fleet *f = NULL;
	struct fit fit;
	struct arena a;
	enum err_code rc;

	set = NULL;
	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Prints the numbers of recorded profiles.", argc, argv, files, FILES_MAX, &n, err)))
		return rc;
	arena_init(&a, 0);
	if (!set && !n) {
		arena_release(&a);
		return err_set(err, ERR_INVALID, "files are needed, or --set");
	}
	if (set && !fleet_set(set)) {
		arena_release(&a);
		return err_set(err, ERR_INVALID, "no set is called \"%s\"", set);
	}
	if (set) {
		params = *fleet_set(set);
		params.draws = draws ? (double)draws : params.draws;
	}
	if (set && !(rc = fleet_open(&params, &f, err)) &&
		!(rc = recording_make(
			  f, (uint32_t)services, (uint32_t)pods, first, scrapes, &a, &r, err)) &&
		!(rc = fit_recording(&r, &fit, err)))
		print(&r, &fit);
	for (size_t at = 0; at < n && !rc; at += taken) {
		if (!(rc = recording_read(files + at, n - at, &taken, &a, &r, err)) &&
			!(rc = fit_recording(&r, &fit, err)))
			print(&r, &fit);
		recording_release(&r);
		arena_reset(&a);
	}
	fleet_close(f);
	arena_release(&a);
	return rc;
}
