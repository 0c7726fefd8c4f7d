/*
 * The data that is damaged: two days of a small fleet, a scrape every 40 minutes, in every form
 * that the directory knows. The first day is one block whose raw rows have gone by retention; then
 * come blocks of eight and of two hours, some with deleted ranges, and two windows of the head with
 * deleted ranges, tables and logs. Symbols have several epochs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tests/damage/damage.h"
#include "tests/fleet/fleet.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/db.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/read/select_internal.h"

#define SCRAPE_MIN 40
#define NUMBERS_MIN 20
#define END_MIN (47 * 60 + 20)

enum { CPU, PLAIN_CPU, HEAP, GOROUTINE, SETS };
static const char *const set_names[SETS] = { "labelled-cpu", "fleet-cpu", "heap", "goroutine" };

static const struct {
	const char *name, *job, *instance;
	int set;
	uint32_t service, pod;
	int until_min; /* 0: always */
} sources[] = {
	{ "process_cpu", "api", "a", CPU, 0, 0, 0 },
	{ "process_cpu", "api", "b", CPU, 0, 1, 0 },
	{ "process_cpu", "web", "c", PLAIN_CPU, 1, 0, 0 },
	{ "process_cpu", "old", "o", PLAIN_CPU, 2, 0, 30 * 60 },
	{ "memory", "api", "a", HEAP, 0, 0, 0 },
	{ "goroutine", "web", "c", GOROUTINE, 1, 0, 0 },
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))
#define LINKED 2 /* a source whose samples have links to spans */

static const struct {
	const char *name, *job, *instance;
} numbers[] = {
	{ "up", "api", "a" },
	{ "up", "api", "b" },
	{ "up", "web", "c" },
	{ "job:cost", "api", "" },
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

struct filling {
	struct db *db;
	struct fleet *fleets[SETS];
	struct fleet_scratch *scratch[SETS];
	struct arena arena;
};

static int64_t minute_ns(int minute)
{
	return DATA_T0_S * NS_PER_S + minute * NS_PER_MIN;
}

static struct fleet_params small(const char *name)
{
	struct fleet_params p = *fleet_set(name);

	p.interval_ns = SCRAPE_MIN * NS_PER_MIN;
	p.stacks = 60;
	p.functions = 40;
	p.draws = 14;
	p.depth_mean = 6;
	p.depth_deviation = 2;
	p.label_sets = p.label_sets ? 6 : 0;
	p.rate_max = 20;
	return p;
}

static enum err_code filling_open(struct filling *f, struct err *err)
{
	enum err_code rc = ERR_OK;

	*f = (struct filling){ 0 };
	arena_init(&f->arena, 0);
	for (int i = 0; i < SETS && !rc; i++) {
		struct fleet_params p = small(set_names[i]);

		if (!(rc = fleet_open(&p, &f->fleets[i], err)))
			rc = fleet_scratch_open(f->fleets[i], &f->scratch[i], err);
	}
	return rc;
}

static void filling_close(struct filling *f)
{
	for (int i = 0; i < SETS; i++) {
		fleet_scratch_close(f->scratch[i]);
		fleet_close(f->fleets[i]);
	}
	arena_release(&f->arena);
}

struct db_options data_options(const char *dir)
{
	struct db_options o;

	db_options_default(&o);
	o.dir = dir;
	o.retention_ns = 0;
	o.free_bytes_reserve = 0;
	o.block_max_ns = NS_PER_DAY;
	o.no_compaction = true; /* by its own thread: trials do it when they say so */
	return o;
}

/* ---- rows ---- */

/* Every second sample to one of four spans, one for each minute. */
static void link_samples(struct arena *a, struct pprof *p, int minute)
{
	struct pprof_link *links = arena_array(a, struct pprof_link, 5);
	uint32_t *of = arena_array(a, uint32_t, p->samples_n + 1);

	if (!links || !of)
		return;
	for (unsigned i = 1; i < 5; i++) {
		memcpy(links[i].trace_id, &minute, sizeof(minute));
		links[i].span_id[0] = (unsigned char)i;
	}
	for (uint32_t i = 0; i < p->samples_n; i += 2)
		of[i] = 1 + i / 2 % 4;
	p->links = links;
	p->links_n = 5;
	p->sample_links = of;
}

static enum err_code append_profile(struct filling *f, size_t i, int minute, struct err *err)
{
	const struct fleet *fleet = f->fleets[sources[i].set];
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	struct db_append_stats stats;
	struct pprof *p;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	fleet_kinds(fleet, kinds);
	if (!(rc = fleet_profile(fleet, f->scratch[sources[i].set], sources[i].service, sources[i].pod,
			  (uint64_t)(minute / SCRAPE_MIN), minute_ns(0), &a, &p, err))) {
		if (i == LINKED)
			link_samples(&a, p, minute);
		rc = append_wait(f->db,
			labels_of(&f->arena, sources[i].name, sources[i].job, sources[i].instance),
			minute_ns(minute), SCRAPE_MIN * NS_PER_MIN, p, kinds, true, &stats, err);
	}
	arena_release(&a);
	return rc;
}

struct number_answer {
	struct mutex lock;
	struct cond done;
	bool acked;
	enum err_code rc;
};

static void number_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct number_answer *a = ctx;

	(void)err;
	mutex_lock(&a->lock);
	a->acked = true;
	a->rc = rc;
	cond_signal(&a->done);
	mutex_unlock(&a->lock);
}

static double value_of(size_t i, int minute)
{
	if (i + 1 == NUMBERS)
		return (double)(minute * 37 % 1001) / 7;
	if (minute % 1000 == 0)
		return number_of_bits(NUMBER_STALE_BITS);
	return minute * (int)(i + 3) % 11 != 0;
}

static enum err_code append_numbers(struct filling *f, int minute, struct err *err)
{
	struct number_answer a = { .acked = false };
	struct db_number v[NUMBERS];
	enum err_code rc;

	for (size_t i = 0; i < NUMBERS; i++)
		v[i] = (struct db_number){ labels_of(&f->arena, numbers[i].name, numbers[i].job,
									   numbers[i].instance),
			minute_ns(minute), value_of(i, minute) };
	mutex_init(&a.lock);
	cond_init(&a.done);
	if (!(rc = db_append_numbers(f->db, v, NUMBERS, number_acked, &a, err))) {
		mutex_lock(&a.lock);
		while (!a.acked)
			cond_wait(&a.done, &a.lock);
		mutex_unlock(&a.lock);
		if ((rc = a.rc))
			err_set(err, rc, "numbers were not stored");
	}
	mutex_destroy(&a.lock);
	cond_destroy(&a.done);
	return rc;
}

/* In (from, to], as windows are. */
static enum err_code fill(struct filling *f, int from_min, int to_min, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (int m = from_min + NUMBERS_MIN; m <= to_min && !rc; m += NUMBERS_MIN) {
		rc = append_numbers(f, m, err);
		for (size_t i = 0; i < SOURCES && m % SCRAPE_MIN == 0 && !rc; i++)
			if (!sources[i].until_min || m <= sources[i].until_min)
				rc = append_profile(f, i, m, err);
	}
	return rc;
}

enum err_code data_append_later(struct db *db, struct err *err)
{
	struct filling f;
	enum err_code rc = filling_open(&f, err);

	f.db = db;
	if (!rc)
		rc = fill(&f, 48 * 60, 50 * 60, err);
	filling_close(&f);
	return rc;
}

/* ---- steps ---- */

static enum err_code delete_range(struct db *db, const char *name, const char *instance,
	int from_min, int to_min, struct err *err)
{
	struct matcher m[2];
	enum err_code rc;

	if ((rc = matcher_init(&m[0], MATCH_EQ, STR(LABEL_NAME), str_of(name), err)) ||
			(rc = matcher_init(&m[1], MATCH_EQ, STR("instance"), str_of(instance), err)))
		return rc;
	rc = db_delete_series(db, m, 2, minute_ns(from_min), minute_ns(to_min), err);
	matcher_release(&m[0]);
	matcher_release(&m[1]);
	return rc;
}

static enum err_code first_day(struct db *db, struct filling *f, struct err *err)
{
	enum err_code rc = fill(f, 0, 16 * 60, err);

	return rc ? rc : db_compact(db, err);
}

/* Epochs end at every occasion. */
static enum err_code new_epochs(struct db *db, struct filling *f, struct err *err)
{
	enum err_code rc;

	if ((rc = fill(f, 16 * 60, 34 * 60, err)) ||
		(rc = delete_range(db, "process_cpu", "b", 31 * 60, 33 * 60, err)))
		return rc;
	return db_compact(db, err);
}

static enum err_code deletions(struct db *db, struct filling *f, struct err *err)
{
	enum err_code rc;

	if ((rc = fill(f, 34 * 60, 46 * 60, err)) || (rc = db_compact(db, err)) ||
		(rc = delete_range(db, "process_cpu", "c", 26 * 60, 28 * 60, err)) ||
		(rc = delete_range(db, "up", "a", 34 * 60, 41 * 60, err)) ||
		(rc = delete_range(db, "process_cpu", "a", 44 * 60, 45 * 60, err)))
		return rc;
	db_set_retention(db, 0, 0, 21 * NS_PER_HOUR);
	db_maintain(db, true);
	return ERR_OK;
}

/* Behind it the process is killed. */
static enum err_code last_hours(struct db *db, struct filling *f, struct err *err)
{
	enum err_code rc;

	if ((rc = fill(f, 46 * 60, END_MIN, err)) ||
		(rc = delete_range(db, "up", "b", 44 * 60, 47 * 60, err)))
		return rc;
	return delete_range(db, "memory", "a", 46 * 60, 46 * 60 + 30, err);
}

static const struct step {
	enum err_code (*run)(struct db *db, struct filling *f, struct err *err);
	uint64_t symbols_bytes; /* 0: the default */
} steps[DATA_OLDER + 1] = {
	{ first_day, 0 },
	{ new_epochs, 1 },
	{ deletions, 0 },
	{ last_hours, 0 },
};

static enum err_code run_step(const char *dir, const struct step *s, struct err *err)
{
	struct db_options o = data_options(dir);
	struct filling f;
	enum err_code rc = filling_open(&f, err);

	if (s->symbols_bytes)
		o.symbols_bytes = s->symbols_bytes;
	if (!rc && !(rc = db_open(&o, &f.db, err)))
		rc = s->run(f.db, &f, err);
	if (rc || s->run != last_hours)
		db_close(f.db);
	filling_close(&f);
	return rc;
}

/* In a process of its own, so that the last one can leave the directory as a kill does. */
static enum err_code fork_step(const char *dir, const struct step *s, struct err *err)
{
	struct err why;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (run_step(dir, s, &why))
			fprintf(stderr, "data: %s\n", why.msg);
		else
			_exit(0);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return err_set(err, ERR_IO, "the data could not be made");
	return ERR_OK;
}

enum err_code data_make(const char *dir, struct err *err)
{
	struct arena a;
	const char *now;
	enum err_code rc = ERR_OK;

	arena_init(&a, 0);
	now = arena_printf(&a, "%s/now", dir);
	for (int i = 0; i <= DATA_OLDER && !rc; i++) {
		rc = fork_step(now, &steps[i], err);
		if (!rc && i < DATA_OLDER)
			rc = tree_copy(now, arena_printf(&a, "%s/older-%d", dir, i), err);
	}
	arena_release(&a);
	return rc;
}
