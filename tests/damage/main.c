/*
 * damage: trials of damaged data directories, and a table of what became of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/self/flags.h"
#include "tests/damage/damage.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/db.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/read/select_internal.h"

#define KINDS_MAX 200
#define JOBS_MAX 64
#define HARMLESS 8 /* trials of the undamaged directory, before all others */

struct counts {
	uint64_t verdicts[VERDICTS], verify_missed, bad;
	uint64_t equal, warned, errors, silent, silent_json; /* answers */
};

/* The counts of one process, in shared memory. */
struct tally {
	struct counts kinds[KINDS_MAX], harms[HARM_KINDS];
	uint64_t harmless_failed;
};

struct run {
	uint64_t trials, jobs, seed, seconds;
	const char *only, *base;
	bool pairs; /* then each file in place of each other, once */
	bool one_pair; /* the seed is a pair's number */
	bool verbose; /* one seed, and all it has to say */
	char dir[200], base_dir[260];
	struct harms harms;
	struct answers plain, compacted;
	struct tally *tallies; /* by process */
};

static void end(const struct run *r, const char *what, const struct err *err)
{
	fprintf(stderr, "damage: %s: %s (%s)\n", what, err->msg, r->dir);
	exit(1);
}

/* ---- the undamaged directory ---- */

static void ask_undamaged(struct run *r, bool compact, struct answers *out)
{
	char now[300], copy[300];
	struct db_options o;
	struct site s;
	struct err err;

	snprintf(now, sizeof(now), "%s/now", r->base_dir);
	snprintf(copy, sizeof(copy), "%s/undamaged", r->dir);
	if (fs_remove_tree(&fs_posix, copy, &err) || tree_copy(now, copy, &err))
		end(r, "copy", &err);
	o = data_options(copy);
	if (site_open(&o, &s, &err) || data_append_later(s.db, &err))
		end(r, "undamaged data", &err);
	if (compact) {
		if (db_compact(s.db, &err))
			end(r, "compaction of undamaged data", &err);
		db_maintain(s.db, true);
	}
	site_ask(&s, true, out);
	site_close(&s);
}

/* An empty body, or an empty list without an info that says why. */
static bool is_empty(const struct answer *a)
{
	struct str body = buf_str(&a->body);

	return body.len < 8 ||
		(str_find(body, STR("\":[]}")) >= 0 && str_find(body, STR(",\"infos\":[\"")) < 0);
}

/* Each question has an answer that is not empty. */
static void check_answers(struct run *r)
{
	struct err err;

	for (size_t i = 0; i < r->plain.n; i++) {
		const struct answer *a = &r->plain.v[i];
		struct buf b = { 0 };

		if (a->status == 200 && !a->warned && !is_empty(a))
			continue;
		if (a->status == 400 && !strcmp(a->format, "pgo")) /* of memory there is none */
			continue;
		answer_print_question(a, &b);
		buf_add_char(&r->plain.v[i].body, '\0');
		err_set(&err, ERR_INVALID, STR_FMT ": %d%s ...%s", STR_ARG(buf_str(&b)), a->status,
			a->warned ? " with a warning" : "",
			a->body.len > 300 ? a->body.ptr + a->body.len - 300 : a->body.ptr);
		end(r, "undamaged", &err);
	}
}

static void prepare(struct run *r)
{
	struct err err;

	snprintf(r->dir, sizeof(r->dir), "%s/epimetheus-damage-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(r->dir))
		exit(1);
	snprintf(r->base_dir, sizeof(r->base_dir), "%s%s", *r->base ? r->base : r->dir,
		*r->base ? "" : "/base");
	if (!fs_exists(r->base_dir) &&
		(fs_mkdir_all(&fs_posix, r->base_dir, &err) || data_make(r->base_dir, &err)))
		end(r, "data", &err);
	if (harms_init(&r->harms, r->base_dir, &err))
		end(r, "data", &err);
	if (r->harms.kinds_n > KINDS_MAX)
		exit(1);
	ask_undamaged(r, false, &r->plain);
	ask_undamaged(r, true, &r->compacted);
	check_answers(r);
}

/* ---- trials ---- */

static void count(struct counts *c, const struct trial_result *t)
{
	c->verdicts[t->verdict]++;
	c->verify_missed += t->verify_missed;
	c->bad += t->verdict >= SILENT || t->verify_missed;
	c->equal += t->equal;
	c->warned += t->warned;
	c->errors += t->errors;
	c->silent += t->silent;
	c->silent_json += t->silent_json;
}

static void try_some(const struct trial_options *o, struct tally *tally, uint64_t first,
	uint64_t from, uint64_t n, uint64_t step)
{
	struct trial_result t;

	for (uint64_t i = from; i < n; i += step)
		if (trial_run(o, first + i, &t)) {
			count(&tally->kinds[t.harm.kind], &t);
			count(&tally->harms[t.harm.how], &t);
		}
}

static void worker(struct run *r, uint64_t job)
{
	struct tally *tally = &r->tallies[job];
	struct trial_options o = { .harms = &r->harms,
		.plain = &r->plain,
		.compacted = &r->compacted,
		.only = *r->only ? r->only : NULL,
		.out = stdout,
		.verbose = r->verbose,
		.seconds_max = (unsigned)r->seconds };
	struct trial_result t;
	char work[300];

	snprintf(work, sizeof(work), "%s/job-%d", r->dir, (int)job);
	mkdir(work, 0755);
	o.work = work;
	for (uint64_t i = job; i < HARMLESS && !r->verbose; i += r->jobs) {
		o.harmless = true;
		(void)trial_run(&o, r->seed + i, &t);
		tally->harmless_failed += t.verdict != EQUAL;
	}
	o.harmless = false;
	o.pairs = r->one_pair;
	try_some(&o, tally, r->seed, job, r->trials, r->jobs);
	o.pairs = true;
	if (r->pairs)
		try_some(&o, tally, 0, job, r->harms.kinds_n * r->harms.kinds_n, r->jobs);
}

static void work(struct run *r)
{
	for (uint64_t job = 0; job < r->jobs; job++) {
		pid_t pid = fork();

		if (pid == 0) {
			worker(r, job);
			exit(0);
		}
		if (pid < 0)
			exit(1);
	}
	for (uint64_t job = 0; job < r->jobs; job++) {
		int status;

		if (wait(&status) < 0 || status) {
			printf("a process of trials ended by itself\n");
			r->tallies[job].harmless_failed++;
		}
	}
}

/* ---- the table ---- */

static uint64_t trials_of(const struct counts *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < VERDICTS; i++)
		n += c->verdicts[i];
	return n;
}

static void add_counts(struct counts *to, const struct counts *c)
{
	for (size_t i = 0; i < VERDICTS; i++)
		to->verdicts[i] += c->verdicts[i];
	to->verify_missed += c->verify_missed;
	to->bad += c->bad;
	to->equal += c->equal;
	to->warned += c->warned;
	to->errors += c->errors;
	to->silent += c->silent;
	to->silent_json += c->silent_json;
}

static void print_row(const char *name, const struct counts *c)
{
	printf("%-28s %7llu", name, (unsigned long long)trials_of(c));
	for (size_t i = 0; i < VERDICTS; i++)
		printf(" %7llu", (unsigned long long)c->verdicts[i]);
	printf(" %7llu\n", (unsigned long long)c->verify_missed);
}

static void print_head(const char *first)
{
	printf("\n%-28s %7s", first, "trials");
	for (size_t i = 0; i < VERDICTS; i++)
		printf(" %7s", verdict_names[i]);
	printf(" %7s\n", "missed");
}

static struct counts sum(const struct run *r, size_t offset)
{
	struct counts c = { 0 };

	for (uint64_t job = 0; job < r->jobs; job++)
		add_counts(
			&c, (const struct counts *)(const void *)((const char *)&r->tallies[job] + offset));
	return c;
}

/* False: something went wrong. */
static bool report(const struct run *r, double seconds)
{
	struct counts all = { 0 }, c;
	uint64_t harmless_failed = 0;

	print_head("damage");
	for (size_t i = 0; i < HARM_KINDS; i++) {
		c = sum(r, offsetof(struct tally, harms) + i * sizeof(c));
		print_row(harm_names[i], &c);
	}
	print_head("file or directory");
	for (size_t i = 0; i < r->harms.kinds_n; i++) {
		c = sum(r, offsetof(struct tally, kinds) + i * sizeof(c));
		print_row(r->harms.kinds[i], &c);
		add_counts(&all, &c);
	}
	print_row("all", &all);
	for (uint64_t job = 0; job < r->jobs; job++)
		harmless_failed += r->tallies[job].harmless_failed;
	printf("\n%llu answers: %llu equal, %llu warned, %llu errors, %llu silent (%llu JSON)\n",
		(unsigned long long)(all.equal + all.warned + all.errors + all.silent),
		(unsigned long long)all.equal, (unsigned long long)all.warned,
		(unsigned long long)all.errors, (unsigned long long)all.silent,
		(unsigned long long)all.silent_json);
	printf("%.1f s, %.1f trials a second; %d questions in all formats: %d answers\n", seconds,
		(double)trials_of(&all) / seconds, (int)questions_n, (int)r->plain.n);
	printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(trials_of(&all) - all.bad),
		(unsigned long long)(all.bad + harmless_failed));
	return all.bad + harmless_failed == 0;
}

/* ---- main ---- */

static int read_flags_of(struct run *r, int argc, char **argv)
{
	const char *one = "", *pair = "", *args[1];
	bool help = false, version = false;
	struct flag flags[] = {
		{ "trials", FLAG_UINT, &r->trials, "1000", "how many" },
		{ "first", FLAG_UINT, &r->seed, "1", "seed of the first; the others follow" },
		{ "seed", FLAG_STRING, &one, "", "this one alone, and all it has to say" },
		{ "jobs", FLAG_UINT, &r->jobs, "2", "processes that try" },
		{ "pairs", FLAG_BOOL, &r->pairs, "false",
			"then a file of each kind in place of one of each other kind" },
		{ "pair", FLAG_STRING, &pair, "", "this pair alone, and all it has to say" },
		{ "only", FLAG_STRING, &r->only, "", "damage what has this in its path" },
		{ "data", FLAG_STRING, &r->base, "",
			"a directory for the undamaged data: made where it is missing, and kept" },
		{ "seconds", FLAG_UINT, &r->seconds, "600", "for one process of a trial" },
	};
	const size_t n = sizeof(flags) / sizeof(flags[0]);
	struct buf text = { 0 };
	struct err err;
	size_t args_n = 0;

	if (flags_parse(flags, n, argc, argv, args, 0, &args_n, &help, &version, &err)) {
		fprintf(stderr, "damage: %s\n", err.msg);
		return 2;
	}
	if (help) {
		flags_print_help(&text, "damage", "Damaged data directories.", flags, n);
		fwrite(text.ptr, 1, text.len, stdout);
		buf_release(&text);
		return 0;
	}
	r->one_pair = *pair != '\0';
	r->verbose = (*one && str_to_u64(str_of(one), &r->seed)) ||
		(*pair && str_to_u64(str_of(pair), &r->seed));
	if (r->verbose)
		r->trials = r->jobs = 1;
	if (r->jobs < 1 || r->jobs > JOBS_MAX)
		return 2;
	return -1;
}

int main(int argc, char **argv)
{
	static struct run r;
	int64_t began_ns;
	bool ok;
	int rc = read_flags_of(&r, argc, argv);
	struct err err;

	if (rc >= 0)
		return rc;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	log_set(LOG_ERROR + 1, LOG_LOGFMT);
	r.tallies = mmap(NULL, r.jobs * sizeof(*r.tallies), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.tallies == MAP_FAILED)
		return 1;
	prepare(&r);
	began_ns = clock_monotonic_ns();
	work(&r);
	ok = report(&r, (double)(clock_monotonic_ns() - began_ns) / 1e9);
	answers_release(&r.plain);
	answers_release(&r.compacted);
	harms_release(&r.harms);
	if (fs_remove_tree(&fs_posix, r.dir, &err))
		printf("%s\n", err.msg);
	return ok ? 0 : 1;
}
