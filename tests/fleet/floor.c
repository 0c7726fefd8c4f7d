#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fleet/command.h"
#include "tests/fleet/recording.h"

/*
 * The floor: bits that rows of a recording hold under the model of README.md, in chunks of rows of
 * one process, item by item. Counts of symbols are taken over the whole recording and turned into
 * entropy at the end, so a code would have to know these tables beforehand.
 */
#define CHUNK_MAX 1024u
#define FILES_MAX 65536
#define CONTEXTS 96u
#define SYMBOLS 200u /* values below 128, then exponents of two */

enum part { WHICH, OFTEN, WHERE, MEANS, VALUES, PARTS };
static const char *const part_names[PARTS] = { "which stacks", "how often", "in which rows",
	"mean values", "values" };

struct table {
	uint64_t n[CONTEXTS][SYMBOLS];
};

struct column_floor {
	struct table often, means, values; /* often: presences of a delta, changes of a gauge */
	double bits[PARTS]; /* those that need no table */
	uint64_t derived, own; /* item-chunks whose column follows from an earlier one, or not */
};

struct floor {
	const struct recording *r;
	uint32_t chunk;
	struct column_floor *columns;
	uint64_t samples, rows;
	int64_t *values; /* of the chunk: by item's place, row, column */
	uint32_t *place; /* by item: place + 1 */
	uint32_t *items; /* by place */
	uint32_t places_n, places_cap;
};

static double log2_choose(double n, double k)
{
	return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / M_LN2;
}

static uint32_t exponent(uint64_t v)
{
	return v ? 63 - (uint32_t)__builtin_clzll(v) : 0;
}

/* Large values are an exponent and as many bits that nothing is known of. */
static void add_value(struct table *t, uint32_t context, uint64_t v, double *bits)
{
	t->n[context < CONTEXTS ? context : CONTEXTS - 1][v < 128 ? v : 128 + exponent(v)]++;
	*bits += v < 128 ? 0 : exponent(v);
}

static double table_bits(const struct table *t)
{
	double bits = 0;

	for (uint32_t c = 0; c < CONTEXTS; c++) {
		double sum = 0;

		for (uint32_t s = 0; s < SYMBOLS; s++)
			sum += (double)t->n[c][s];
		for (uint32_t s = 0; s < SYMBOLS; s++)
			if (t->n[c][s])
				bits -= (double)t->n[c][s] * log2((double)t->n[c][s] / sum);
	}
	return bits;
}

/* b is a times a fixed factor in every row, to the rounding of b, and of a where that is scaled. */
static bool follows(const int64_t *a, const int64_t *b, uint32_t n, bool scaled)
{
	double a0 = 0, b0 = 0;

	for (uint32_t i = 0; i < n; i++)
		if (a[i] > (int64_t)a0) {
			a0 = (double)a[i];
			b0 = (double)b[i];
		}
	for (uint32_t i = 0; i < n; i++)
		if ((a[i] == 0) != (b[i] == 0) ||
			fabs((double)b[i] * a0 - (double)a[i] * b0) > (a0 + (scaled ? b0 : 0)) * 1.5)
			return false;
	return a0 > 0;
}

/* Values as multiples of the smallest where all are, to rounding: Go scales what it sampled. */
static void reduce(int64_t *v, uint32_t n)
{
	int64_t unit = INT64_MAX;

	for (uint32_t i = 0; i < n; i++)
		if (v[i] > 0 && v[i] < unit)
			unit = v[i];
	for (uint32_t i = 0; i < n; i++)
		if (llabs(v[i] - (v[i] + unit / 2) / unit * unit) > v[i] / unit)
			return;
	for (uint32_t i = 0; i < n; i++)
		v[i] = (v[i] + unit / 2) / unit;
}

static uint32_t mean_bucket(const int64_t *v, uint32_t n)
{
	double sum = 0;
	uint32_t present = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += fabs((double)v[i]);
		present += v[i] != 0;
	}
	return present ? (uint32_t)(2 * log2(sum / present) + 0.5) : 0;
}

static bool item_column(struct column_floor *c, int64_t *v, uint32_t n, bool gauge)
{
	uint32_t present = 0, changes = 0, bucket;

	for (uint32_t i = 0; i < n; i++) {
		present += v[i] != 0;
		changes += i > 0 && v[i] != v[i - 1];
	}
	if (!present)
		return false;
	reduce(v, n);
	bucket = mean_bucket(v, n);
	add_value(&c->means, 0, bucket, &c->bits[MEANS]);
	add_value(&c->often, 0, gauge ? changes : present, &c->bits[OFTEN]);
	c->bits[WHERE] += gauge ? log2_choose(n - 1, changes) : log2_choose(n, present);
	for (uint32_t i = 0; i < n; i++)
		if (gauge ? i == 0 || v[i] != v[i - 1] : v[i] != 0)
			add_value(&c->values, bucket, (uint64_t)llabs(v[i]), &c->bits[VALUES]);
	return true;
}

static void end_chunk(struct floor *t, uint32_t n)
{
	const struct recording *r = t->r;
	uint32_t used[FLEET_COLUMNS_MAX] = { 0 };

	for (uint32_t at = 0; at < t->places_n; at++) {
		int64_t *v = t->values + (size_t)at * r->columns_n * t->chunk;

		for (uint32_t c = r->columns_n; c-- > 0;) {
			bool derived = c % 2 == 1 && r->kinds[c] == r->kinds[c - 1] &&
				follows(v + (size_t)(c - 1) * t->chunk, v + (size_t)c * t->chunk, n,
					str_is(r->kind, "heap"));

			t->columns[c].derived += derived;
			if (!derived &&
				item_column(
					&t->columns[c], v + (size_t)c * t->chunk, n, r->kinds[c] == KIND_GAUGE)) {
				used[c]++;
				t->columns[c].own++;
			}
		}
		t->place[t->items[at]] = 0;
	}
	for (uint32_t c = 0; c < r->columns_n; c++)
		t->columns[c].bits[WHICH] += used[c] ? log2_choose(r->items_n, used[c]) : 0;
	memset(t->values, 0, (size_t)t->places_n * r->columns_n * t->chunk * sizeof(*t->values));
	t->places_n = 0;
}

/* False: the process began anew, its total fell. */
static bool continues(const struct recording *r, const struct scrape *b, const struct scrape *s)
{
	double was = 0, is = 0;

	for (uint32_t i = 0; i < b->n; i++)
		was += (double)b->values[i];
	for (uint32_t i = 0; i < s->n; i++)
		is += (double)s->values[i];
	return is >= was;
}

/* One scrape as the row that the database keeps of it. */
static void add_row(struct floor *t, const struct scrape *s, const struct scrape *b, uint32_t row)
{
	const struct recording *r = t->r;

	if (b && !continues(r, b, s))
		b = NULL;
	for (uint32_t i = 0, at = 0; i < s->n; i++) {
		uint32_t item = s->items[i];
		int64_t v[FLEET_COLUMNS_MAX], any = 0;

		while (b && at < b->n && b->items[at] < item)
			at++;
		for (uint32_t c = 0; c < r->columns_n; c++) {
			v[c] = s->values[(size_t)c * s->n + i];
			if (r->kinds[c] == KIND_CUMULATIVE && b && at < b->n && b->items[at] == item)
				v[c] -= b->values[(size_t)c * b->n + at];
			any |= v[c];
		}
		if (!any)
			continue;
		t->samples++;
		if (!t->place[item]) {
			t->items[t->places_n] = item;
			t->place[item] = ++t->places_n;
		}
		for (uint32_t c = 0; c < r->columns_n; c++)
			t->values[((size_t)(t->place[item] - 1) * r->columns_n + c) * t->chunk + row] = v[c];
	}
	t->rows++;
}

/* The most items that a chunk can have: bounds the matrix. */
static uint32_t places_max(const struct recording *r, uint32_t chunk)
{
	uint32_t max = 0;

	for (uint32_t p = 0; p < r->processes_n; p++)
		for (uint32_t k = 0; k < r->processes[p].scrapes_n; k += chunk) {
			uint64_t sum = 0;

			for (uint32_t i = k; i < k + chunk && i < r->processes[p].scrapes_n; i++)
				sum += r->processes[p].scrapes[i].n;
			if (sum > r->items_n)
				sum = r->items_n;
			max = sum > max ? (uint32_t)sum : max;
		}
	return max;
}

static void print_floor(const struct floor *t)
{
	const struct recording *r = t->r;
	double all = 0;

	printf(STR_FMT ": %" PRIu64 " rows of %.1f samples, chunks of %" PRIu32 " rows\n",
		STR_ARG(r->kind), t->rows, (double)t->samples / (double)t->rows, t->chunk);
	for (uint32_t c = 0; c < r->columns_n; c++) {
		struct column_floor *f = &t->columns[c];
		double bytes[PARTS], sum = 0;

		if (!f->own) {
			printf("  %-14.*s follows from the column before\n", STR_ARG(r->types[c]));
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			bytes[p] = f->bits[p];
		bytes[OFTEN] += table_bits(&f->often);
		bytes[MEANS] += table_bits(&f->means);
		bytes[VALUES] += table_bits(&f->values);
		printf("  %-14.*s", STR_ARG(r->types[c]));
		for (int p = 0; p < PARTS; p++) {
			bytes[p] /= 8 * (double)t->samples;
			sum += bytes[p];
			printf("%s %.4f, ", part_names[p], bytes[p]);
		}
		printf("sum %.4f\n", sum);
		all += sum;
	}
	printf("  floor %.4f bytes per sample, %.1f per row\n", all,
		all * (double)t->samples / (double)t->rows);
}

static enum err_code floor_of(const struct recording *r, uint32_t chunk, struct err *err)
{
	struct floor t = { .r = r, .chunk = chunk };
	enum err_code rc = ERR_OK;

	t.places_cap = places_max(r, chunk) + 1;
	t.columns = calloc(r->columns_n, sizeof(*t.columns));
	t.values = calloc((size_t)t.places_cap * r->columns_n * chunk, sizeof(*t.values));
	t.place = calloc(r->items_n + 1, sizeof(*t.place));
	t.items = calloc(t.places_cap, sizeof(*t.items));
	if (!t.columns || !t.values || !t.place || !t.items) {
		rc = err_set(err, ERR_NOMEM, "floor: out of memory");
		goto done;
	}
	for (uint32_t p = 0; p < r->processes_n; p++) {
		const struct process *process = &r->processes[p];

		/* The first scrape is what counters start from. */
		for (uint32_t k = 1; k < process->scrapes_n; k++) {
			uint32_t row = (k - 1) % chunk;

			add_row(&t, &process->scrapes[k], &process->scrapes[k - 1], row);
			if (row == chunk - 1 || k == process->scrapes_n - 1)
				end_chunk(&t, row + 1);
		}
	}
	print_floor(&t);
done:
	free(t.columns);
	free(t.values);
	free(t.place);
	free(t.items);
	return rc;
}

static enum err_code floor_of_set(const struct fleet_params *p, uint32_t pods, uint64_t scrapes,
	uint64_t first, uint32_t chunk, struct arena *a, struct err *err)
{
	struct recording r = { 0 };
	struct fleet *f = NULL;
	enum err_code rc;

	if (!(rc = fleet_open(p, &f, err)) &&
		!(rc = recording_make(f, 1, pods, first, scrapes + 1, a, &r, err))) {
		printf("%s, ", p->name);
		rc = floor_of(&r, chunk, err);
	}
	fleet_close(f);
	arena_reset(a);
	return rc;
}

enum err_code command_floor(int argc, char **argv, struct err *err)
{
	static const char *files[FILES_MAX];
	uint64_t pods, scrapes, first, chunk;
	const char *set = NULL;
	struct flag flags[] = {
		{ "set", FLAG_STRING, &set, NULL, "One made-up set; without files: all." },
		{ "pods", FLAG_UINT, &pods, "10", "Pods of it." },
		{ "scrapes", FLAG_UINT, &scrapes, "360", "Scrapes of each." },
		{ "first", FLAG_UINT, &first, "9000", "Index of the first scrape." },
		{ "chunk", FLAG_UINT, &chunk, "120", "Rows of a chunk." },
	};
	size_t n = 0, taken = 0;
	struct recording r = { 0 };
	struct arena a;
	enum err_code rc;

	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Prints the bytes per sample that rows hold.", argc, argv, files, FILES_MAX, &n, err)))
		return rc;
	if (chunk < 2 || chunk > CHUNK_MAX)
		return err_set(err, ERR_INVALID, "a chunk has 2 to %u rows", CHUNK_MAX);
	if (set && !fleet_set(set))
		return err_set(err, ERR_INVALID, "no set is called \"%s\"", set);
	arena_init(&a, 0);
	for (size_t i = 0; i < fleet_sets_n && !rc; i++)
		if (set ? fleet_set(set) == &fleet_sets[i] : !n)
			rc = floor_of_set(
				&fleet_sets[i], (uint32_t)pods, scrapes, first, (uint32_t)chunk, &a, err);
	for (size_t at = 0; at < n && !rc; at += taken) {
		if (!(rc = recording_read(files + at, n - at, &taken, &a, &r, err)))
			rc = floor_of(&r, (uint32_t)chunk, err);
		recording_release(&r);
		arena_reset(&a);
	}
	arena_release(&a);
	return rc;
}
