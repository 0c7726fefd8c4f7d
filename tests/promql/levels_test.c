/*
 * Levels over windows, by a model that has no code of the server: pods are drawn, with misses,
 * restarts and late scrapes; windows are drawn, with edges on hours, near them and anywhere. Each
 * window is asked when the database has nothing later, again when all is stored, and again from
 * blocks that are joined: the answers are the same, bit for bit, and what the model says.
 */
#include "tests/promql/levels/stored.h"

/* 2023-11-15, a whole day. */
#define DAY_NS (INT64_C(1700006400) * NS_PER_S)
#define JOBS_MAX 6
#define PODS_MAX 6
#define SERIES_MAX (PODS_MAX + 1) /* one pod has two */
#define FAULTS_MAX 8 /* that one town tells */

/* A database, how long its data are, and how often its pods are scraped. */
struct scale {
	const char *name;
	int64_t window_ns, length_ns;
	int64_t intervals_s[4];
	unsigned jobs, windows; /* windows of each job */
};

/* clang-format off */
static const struct scale scales[] = {
	{ "hours, windows of 2h",   2 * LEVELS_HOUR, 4 * LEVELS_HOUR, { 5, 10, 15, 60 },      4, 24 },
	{ "hours, windows of 30m",  LEVELS_HOUR / 2, 4 * LEVELS_HOUR, { 5, 10, 15, 60 },      3, 24 },
	{ "days, windows of 2h",    2 * LEVELS_HOUR, 3 * LEVELS_DAY,  { 60, 300, 300, 600 },  4, 24 },
	{ "days, windows of 30m",   LEVELS_HOUR / 2, 3 * LEVELS_DAY,  { 60, 300, 300, 600 },  2, 24 },
	{ "month, of 2h",   2 * LEVELS_HOUR, 31 * LEVELS_DAY, { 600, 600, 1800, 3600 },   3, 12 },
	{ "month, of 150m", 150 * LEVELS_MINUTE, 31 * LEVELS_DAY, { 600, 600, 1800, 3600 }, 2, 12 },
};
/* clang-format on */

struct job {
	unsigned n; /* series */
	struct levels_series v[SERIES_MAX];
	struct labels labels[SERIES_MAX];
	unsigned pod[SERIES_MAX], instance[SERIES_MAX];
	int64_t interval_ns; /* the shortest */
};

enum shape { WHOLE, BY_POD, EACH, MEANS, SHAPES };

static const char *const queries[SHAPES] = {
	[WHOLE] = "total(merge(goroutine{job=\"%u\"}[%" PRId64 "ms]))",
	[BY_POD] = "total(merge by (pod) (goroutine{job=\"%u\"}[%" PRId64 "ms]))",
	[EACH] = "total(goroutine{job=\"%u\"}[%" PRId64 "ms])",
	[MEANS] = "total(avg_over_time(goroutine{job=\"%u\"}[%" PRId64 "ms]))",
};

struct answers {
	size_t n;
	struct answer {
		unsigned pod, instance; /* those that the query's elements have; else 0 */
		double value;
		long double want;
	} v[SERIES_MAX];
};

struct asked_window {
	unsigned job;
	int64_t min_ns, max_ns;
	struct answers first[SHAPES]; /* as they were when nothing later was there */
};

struct town {
	const struct scale *scale;
	struct stored stored;
	struct draw d;
	struct job jobs[JOBS_MAX];
	struct asked_window *windows;
	size_t windows_n;
	unsigned faults;
};

/* ---- pods ---- */

/* Of the whole length, or a part of it; maybe away in the middle of it. */
static void draw_life(struct town *x, struct levels_pod *p)
{
	int64_t length_ns = x->scale->length_ns;

	p->born_ns = DAY_NS + draw_time(&x->d, 40 * NS_PER_MIN);
	p->dies_ns = DAY_NS + length_ns;
	/* Whole seconds make edges that are met exactly. */
	p->stagger_ns = draw(&x->d, 2) ? draw_time(&x->d, p->interval_ns) / 10 * 10 :
									 (1 + draw_time(&x->d, p->interval_ns / NS_PER_S)) * NS_PER_S;
	if (draw(&x->d, 3) == 0)
		p->born_ns += draw_time(&x->d, length_ns / 2);
	if (draw(&x->d, 3) == 0)
		p->dies_ns -= draw_time(&x->d, length_ns / 2);
	if (draw(&x->d, 2))
		p->born_ns = p->born_ns / NS_PER_MIN * NS_PER_MIN;
	if (draw(&x->d, 3) == 0) {
		p->away_from_ns = p->born_ns + draw_time(&x->d, length_ns);
		p->away_to_ns = p->away_from_ns +
			draw_time(&x->d, draw(&x->d, 2) ? 20 * p->interval_ns : length_ns / 4);
	}
}

/* Of some hours; it comes and goes within an interval or two of them. */
static void draw_life_of_hours(struct town *x, struct levels_pod *p)
{
	int64_t hours = x->scale->length_ns / LEVELS_HOUR, tenth_ns = p->interval_ns / 10;
	int64_t first = draw_time(&x->d, hours - 1), last = first + 1 + draw_time(&x->d, hours - first);
	int64_t away = first + 1 + draw_time(&x->d, last - first);

	p->born_ns = DAY_NS + first * LEVELS_HOUR;
	p->stagger_ns = 8 * tenth_ns + draw_time(&x->d, 5 * tenth_ns) / 10 * 10;
	p->dies_ns = DAY_NS + last * LEVELS_HOUR - draw_time(&x->d, p->interval_ns);
	p->away_from_ns = DAY_NS + away * LEVELS_HOUR - draw_time(&x->d, 2 * p->interval_ns);
	p->away_to_ns = p->away_from_ns + draw_time(&x->d, 3 * p->interval_ns);
}

static void draw_series(struct town *x, struct job *j, bool of_hours)
{
	static const unsigned jitters[] = { 0, 0, 20, 100, 200 }, misses[] = { 0, 0, 10, 50, 100 };
	struct levels_pod p = { .interval_ns = x->scale->intervals_s[draw(&x->d, 4)] * NS_PER_S,
		.jitter = jitters[draw(&x->d, 5)],
		.misses = misses[draw(&x->d, 5)] };
	int64_t dies_ns;

	p.value = draw(&x->d, 4) ? 1 + draw_time(&x->d, 100000) : 0;
	p.value_spread = p.value == 0 || draw(&x->d, 2) ? 1 + draw_time(&x->d, 3000) : 0;
	if (of_hours)
		draw_life_of_hours(x, &p);
	else
		draw_life(x, &p);
	/* A restart shifts its scrapes. */
	for (dies_ns = p.dies_ns; p.born_ns < dies_ns; p.born_ns = p.dies_ns) {
		p.dies_ns = dies_ns;
		if (draw(&x->d, 2))
			p.dies_ns = p.born_ns + draw_time(&x->d, dies_ns - p.born_ns) + 1;
		pod_scrapes(&x->d, &p, &j->v[j->n]);
		p.stagger_ns = 1 + draw_time(&x->d, 2 * p.interval_ns) / 10 * 10;
	}
	if (j->n == 0 || p.interval_ns < j->interval_ns)
		j->interval_ns = p.interval_ns;
}

static void draw_job(struct town *x, unsigned number)
{
	struct job *j = &x->jobs[number];
	bool of_hours = number % 2;
	unsigned pods = 1 + draw(&x->d, of_hours ? 2 : PODS_MAX);
	char text[96];

	for (unsigned i = 0; i <= pods; i++) {
		if (of_hours && i == pods && draw(&x->d, 3))
			break;
		j->pod[j->n] = i < pods ? i : 0;
		j->instance[j->n] = i == pods;
		snprintf(text, sizeof(text), "__name__=goroutine,instance=%u,job=%u,pod=%u",
			j->instance[j->n], number, j->pod[j->n]);
		j->labels[j->n] = stored_labels(&x->stored, text);
		draw_series(x, j, of_hours);
		j->n++;
	}
}

/* ---- windows ---- */

/* A time in the data: on a whole hour or day, near one, or anywhere; in milliseconds. */
static int64_t draw_edge(struct town *x)
{
	static const int64_t near_ms[] = { 1, -1, 300000, -300000, 299999, -299999, 300001, -300001 };
	int64_t length_ns = x->scale->length_ns;
	int64_t any_ns = DAY_NS + draw_time(&x->d, length_ns + length_ns / 8) / NS_PER_MS * NS_PER_MS;
	int64_t hour_ns = any_ns / LEVELS_HOUR * LEVELS_HOUR;

	switch (draw(&x->d, 6)) {
	case 0:
		return hour_ns;
	case 1:
		return length_ns > LEVELS_DAY ? any_ns / LEVELS_DAY * LEVELS_DAY : hour_ns;
	case 2:
		return hour_ns + near_ms[draw(&x->d, 8)] * NS_PER_MS;
	case 3:
		return hour_ns + (draw_time(&x->d, 720000) - 360000) * NS_PER_MS;
	default:
		return any_ns;
	}
}

static void draw_window(struct town *x, unsigned job, struct asked_window *out)
{
	int64_t interval_ns = x->jobs[job].interval_ns, other_ns = draw_edge(x);
	/* clang-format off */
	const int64_t lengths_ns[] = { interval_ns, interval_ns / 10 * 21, 3 * interval_ns,
		7 * interval_ns, NS_PER_MIN, 5 * NS_PER_MIN, LEVELS_HOUR - NS_PER_MS, LEVELS_HOUR,
		LEVELS_HOUR + 10 * NS_PER_MIN, 2 * LEVELS_HOUR,
		NS_PER_S + draw_time(&x->d, 100000) * NS_PER_MS };
	/* clang-format on */

	*out = (struct asked_window){ .job = job, .max_ns = draw_edge(x) };
	if (draw(&x->d, 5) < 3 && other_ns != out->max_ns) { /* both edges are drawn */
		out->min_ns = other_ns < out->max_ns ? other_ns : out->max_ns;
		out->max_ns = other_ns < out->max_ns ? out->max_ns : other_ns;
	} else {
		out->min_ns = out->max_ns -
			lengths_ns[draw(&x->d, sizeof(lengths_ns) / sizeof(*lengths_ns))];
	}
	if (draw(&x->d, 5) == 0) { /* a window is as long as milliseconds say, and may be anywhere */
		int64_t shift_ns = draw_time(&x->d, NS_PER_MS);

		out->min_ns += shift_ns;
		out->max_ns += shift_ns;
	}
}

static int window_cmp(const void *a, const void *b)
{
	const struct asked_window *x = a, *y = b;

	return (x->max_ns > y->max_ns) - (x->max_ns < y->max_ns);
}

static void draw_windows(struct town *x)
{
	unsigned each = x->scale->windows / (CHECK_STEP > 6 ? 6 : (unsigned)CHECK_STEP);

	x->windows_n = (size_t)each * x->scale->jobs;
	if (!(x->windows = calloc(x->windows_n, sizeof(*x->windows))))
		abort();
	for (size_t i = 0; i < x->windows_n; i++)
		draw_window(x, (unsigned)(i / each), &x->windows[i]);
	qsort(x->windows, x->windows_n, sizeof(*x->windows), window_cmp);
}

/* ---- what the model says ---- */

static void want_of_series(
	const struct job *j, const struct levels_sum *sums, int64_t divisor_ns, struct answers *out)
{
	*out = (struct answers){ 0 };
	for (unsigned i = 0; i < j->n; i++)
		if (sums[i].rows) {
			int64_t by_ns = divisor_ns ? divisor_ns : sums[i].counted_ns;

			out->v[out->n++] = (struct answer){ .pod = j->pod[i],
				.instance = j->instance[i],
				.want = (long double)sums[i].value_ns / (long double)by_ns };
		}
}

/* Of each pod; or of all as one. Sums are exact, and divided once. */
static void want_of_groups(const struct job *j, const struct levels_sum *sums, int64_t divisor_ns,
	bool by_pod, struct answers *out)
{
	*out = (struct answers){ 0 };
	for (unsigned pod = 0; pod < (by_pod ? PODS_MAX : 1); pod++) {
		__int128 value_ns = 0;
		size_t rows = 0;

		for (unsigned i = 0; i < j->n; i++)
			if (!by_pod || j->pod[i] == pod) {
				value_ns += sums[i].value_ns;
				rows += sums[i].rows;
			}
		if (rows)
			out->v[out->n++] = (struct answer){ .pod = pod,
				.want = (long double)value_ns / (long double)divisor_ns };
	}
}

static void want_all(const struct town *x, struct asked_window *a)
{
	const struct job *j = &x->jobs[a->job];
	struct levels_window w = {
		.min_ns = a->min_ns, .max_ns = a->max_ns, .doubles = x->scale->window_ns % LEVELS_HOUR == 0
	};
	struct levels_sum sums[SERIES_MAX];
	int64_t divisor_ns = levels_sum(j->v, j->n, w, sums);

	want_of_groups(j, sums, divisor_ns, false, &a->first[WHOLE]);
	want_of_groups(j, sums, divisor_ns, true, &a->first[BY_POD]);
	want_of_series(j, sums, divisor_ns, &a->first[EACH]);
	want_of_series(j, sums, 0, &a->first[MEANS]);
}

/* ---- what the engine says ---- */

static void fault(struct town *x, const struct asked_window *a, const char *text, const char *when,
	const char *what)
{
	if (x->faults++ < FAULTS_MAX)
		CHECK_FAIL("%s, %s: %s at %" PRId64 ".%09" PRId64 "\n    %s", x->scale->name, when, text,
			a->max_ns / NS_PER_S, a->max_ns % NS_PER_S, what);
}

static unsigned label_number(struct labels l, const char *name)
{
	uint64_t n = 0;

	str_to_u64(labels_get(l, str_of(name)), &n);
	return (unsigned)n;
}

static const struct cost *find_answer(const struct result *r, const struct answer *of)
{
	for (size_t i = 0; i < r->n; i++)
		if (label_number(r->vector[i].metric, "pod") == of->pod &&
			label_number(r->vector[i].metric, "instance") == of->instance)
			return &r->vector[i];
	return NULL;
}

static void compare_one(struct town *x, const struct asked_window *a, struct answer *to,
	const struct cost *got, const char *text, const char *when, bool is_first)
{
	char what[160];

	if (!got) {
		snprintf(what, sizeof(what), "no element of pod %u, %u", to->pod, to->instance);
		fault(x, a, text, when, what);
		return;
	}
	if (is_first)
		to->value = got->value;
	if (!stored_is(got->value, to->want)) {
		snprintf(what, sizeof(what), "pod %u, %u: is %.17g, want %.17Lg", to->pod, to->instance,
			got->value, to->want);
		fault(x, a, text, when, what);
	} else if (memcmp(&got->value, &to->value, sizeof(double)) != 0) {
		snprintf(what, sizeof(what), "pod %u, %u: is %.17g, was %.17g when nothing later was there",
			to->pod, to->instance, got->value, to->value);
		fault(x, a, text, when, what);
	}
}

static void ask_shape(
	struct town *x, struct asked_window *a, enum shape shape, const char *when, bool is_first)
{
	struct query_options o = { .t_ns = a->max_ns };
	struct answers *to = &a->first[shape];
	char text[128], what[160];
	struct query *q;
	struct err err;

	snprintf(text, sizeof(text), queries[shape], a->job, (a->max_ns - a->min_ns) / NS_PER_MS);
	o.text = str_of(text);
	if (query_run(x->stored.w.engine, &o, &q, &err)) {
		fault(x, a, text, when, err.msg);
		return;
	}
	if (query_result(q)->n != to->n) {
		snprintf(what, sizeof(what), "%zu elements, want %zu", query_result(q)->n, to->n);
		fault(x, a, text, when, what);
	} else {
		for (size_t i = 0; i < to->n; i++)
			compare_one(
				x, a, &to->v[i], find_answer(query_result(q), &to->v[i]), text, when, is_first);
	}
	query_close(q);
}

/* Groups and series add up to the whole. */
static void check_sums(struct town *x, const struct asked_window *a)
{
	for (unsigned shape = BY_POD; shape <= EACH && a->first[WHOLE].n; shape++) {
		const struct answers *parts = &a->first[shape];
		long double sum = 0;

		for (size_t i = 0; i < parts->n; i++)
			sum += parts->v[i].value;
		if (!stored_is(a->first[WHOLE].v[0].value, sum))
			fault(x, a, queries[shape], "when nothing later was there", "does not add up");
	}
}

static void ask_window(struct town *x, struct asked_window *a, const char *when, bool is_first)
{
	if (is_first)
		want_all(x, a);
	for (unsigned shape = 0; shape < SHAPES; shape++)
		ask_shape(x, a, (enum shape)shape, when, is_first);
	if (is_first)
		check_sums(x, a);
}

/* ---- the town ---- */

/* The earliest row that is not stored yet; ts_ns INT64_MAX: all are. */
static int64_t next_row(const struct town *x, size_t at[][SERIES_MAX], unsigned *job, unsigned *i)
{
	int64_t ts_ns = INT64_MAX;

	for (unsigned k = 0; k < x->scale->jobs; k++)
		for (unsigned s = 0; s < x->jobs[k].n; s++) {
			const struct levels_series *v = &x->jobs[k].v[s];

			if (at[k][s] < v->n && v->rows[at[k][s]].ts_ns < ts_ns) {
				ts_ns = v->rows[at[k][s]].ts_ns;
				*job = k;
				*i = s;
			}
		}
	return ts_ns;
}

/* Stores all in the order of its times; each window is asked before what comes after it. */
static void live_through(struct town *x)
{
	size_t at[JOBS_MAX][SERIES_MAX] = { 0 }, asked = 0;
	unsigned job = 0, i = 0;
	int64_t ts_ns;

	do {
		ts_ns = next_row(x, at, &job, &i);
		if (asked < x->windows_n && x->windows[asked].max_ns < ts_ns)
			stored_wait(&x->stored);
		while (asked < x->windows_n && x->windows[asked].max_ns < ts_ns)
			ask_window(x, &x->windows[asked++], "when nothing later was there", true);
		if (ts_ns != INT64_MAX)
			stored_append(&x->stored, x->jobs[job].labels[i], &x->jobs[job].v[i].rows[at[job][i]]);
		at[job][i]++;
	} while (ts_ns != INT64_MAX);
	stored_wait(&x->stored);
}

static void ask_all(struct town *x, const char *when)
{
	for (size_t i = 0; i < x->windows_n; i++)
		ask_window(x, &x->windows[i], when, false);
}

static void run_town(const struct scale *scale, uint64_t seed, unsigned members)
{
	struct town *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->scale = scale;
	x->d.state = seed;
	if (stored_open(&x->stored, scale->window_ns, members)) {
		for (unsigned i = 0; i < scale->jobs; i++)
			draw_job(x, i);
		draw_windows(x);
		live_through(x);
		ask_all(x, "from the head");
		if (stored_compact(&x->stored, false) > 0)
			ask_all(x, "from blocks beside the head");
		CHECK(stored_compact(&x->stored, true) > 0);
		ask_all(x, "from blocks");
		if (x->faults > FAULTS_MAX)
			CHECK_FAIL("%s: %u faults more", scale->name, x->faults - FAULTS_MAX);
	}
	for (unsigned i = 0; i < scale->jobs; i++)
		levels_release(x->jobs[i].v, x->jobs[i].n);
	free(x->windows);
	stored_close(&x->stored);
	free(x);
}

TEST(hours_are_what_the_model_says)
{
	run_town(&scales[0], 1, 0);
	run_town(&scales[1], 2, 0);
}

TEST(days_are_what_the_model_says)
{
	run_town(&scales[2], 3, 0);
	run_town(&scales[3], 4, 0);
}

TEST(months_are_what_the_model_says)
{
	run_town(&scales[4], 5, 0);
	run_town(&scales[5], 6, 0);
}

/* Each series is in one of three databases. */
TEST(unions_are_what_the_model_says)
{
	run_town(&scales[0], 7, 3);
	run_town(&scales[1], 8, 3);
}
