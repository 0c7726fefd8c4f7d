/*
 * One trial: a copy of the directory is damaged, opened and asked; perhaps rows are appended and
 * blocks worked on; it is closed, or its process killed, opened again and asked again. Each start
 * is a process of its own, so that whatever ends one is seen from here.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "cmd/epitool/epitool.h"
#include "tests/damage/damage.h"
#include "tsdb/block/block_verify.h"
#include "tsdb/columns/chunk_internal.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/db.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/read/select_internal.h"

const char *const verdict_names[VERDICTS] = { "equal", "warned", "refused", "silent", "crashed",
	"hung" };

#define TOLD_BYTES 12000
#define LOG_BYTES_SHOWN 6000
#define SILENT_SHOWN 2 /* answers of a trial, unless it is tried alone */

/* Results of a trial's processes, in shared memory. */
struct told {
	bool done; /* the process came to its end */
	bool refused; /* the directory was not opened */
	bool later; /* later rows were acknowledged */
	bool compacted;
	int verified; /* exit code of verify */
	struct trial_result r;
	size_t text_n;
	char text[TOLD_BYTES];
};

struct trial {
	const struct trial_options *o;
	struct draw d;
	char dir[400], log[400];
	struct told *told;
	bool append_later, compact, kill, verify, while_open, few_symbols, no_pair;
	int64_t step_ns; /* of the clock, between the starts; 0: it is the machine's */
};

static void tell(struct trial *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void tell(struct trial *t, const char *fmt, ...)
{
	size_t room = TOLD_BYTES - t->told->text_n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->told->text + t->told->text_n, room, fmt, ap);
	va_end(ap);
	t->told->text_n += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* ---- answers ---- */

static bool same(const struct answer *a, const struct answer *b)
{
	return a->status == b->status && str_eq(buf_str(&a->body), buf_str(&b->body));
}

/* Prints the body from byte `from` on; of a packed body only the length. */
static void tell_body(struct trial *t, const char *what, const struct answer *a, size_t from)
{
	size_t n = t->o->verbose ? 600 : 160;

	if (a->body.len && a->body.ptr[0] == '\x1f')
		tell(t, "    %s %d, %d bytes\n", what, a->status, (int)a->body.len);
	else
		tell(t, "    %s %d %.*s\n", what, a->status,
			(int)(a->body.len - from < n ? a->body.len - from : n), a->body.ptr + from);
}

static void tell_difference(
	struct trial *t, const char *what, const struct answer *got, const struct answer *want)
{
	size_t at = 0;
	struct buf question = { 0 };

	while (at < got->body.len && at < want->body.len && got->body.ptr[at] == want->body.ptr[at])
		at++;
	at = at > 40 ? at - 40 : 0;
	answer_print_question(got, &question);
	tell(t, "  %s: " STR_FMT "\n", what, STR_ARG(buf_str(&question)));
	tell_body(t, "got ", got, at);
	tell_body(t, "want", want, at);
	buf_release(&question);
}

/* Blocks that were worked on in part answer some questions as before and others as afterwards. */
static void compare_answers(struct trial *t, const char *when, const struct answers *got)
{
	struct trial_result *r = &t->told->r;
	char what[60];

	for (size_t i = 0; i < got->n; i++) {
		const struct answer *a = &got->v[i], *want = &t->o->plain->v[i];

		if (same(a, want) || (t->told->compacted && same(a, &t->o->compacted->v[i]))) {
			r->equal++;
			continue;
		}
		if (a->status >= 300) {
			r->errors++;
		} else if (a->warned) {
			r->warned++;
		} else {
			r->silent++;
			r->silent_json += !strcmp(a->format, formats[0]);
		}
		if (!t->o->verbose && !t->o->harmless &&
			(a->status >= 300 || a->warned || r->silent > SILENT_SHOWN))
			continue;
		snprintf(what, sizeof(what), "%s, %s", when,
			a->status >= 300 ? "error" :
				a->warned    ? "warned" :
							   "silent");
		tell_difference(t, what, a, want);
	}
}

static void ask_and_compare(struct trial *t, struct site *s, const char *when)
{
	struct answers got;

	site_ask(s, t->told->later, &got);
	compare_answers(t, when, &got);
	answers_release(&got);
}

/* ---- what the processes do ---- */

static bool opens(struct trial *t, struct site *s, const char *when)
{
	struct db_options o = data_options(t->dir);
	struct err err;

	if (t->few_symbols)
		o.symbols_bytes = 1;
	if (!site_open(&o, s, &err))
		return true;
	t->told->refused = true;
	if (t->o->verbose || t->o->harmless)
		tell(t, "  %s: %s\n", when, err.msg);
	site_close(s);
	return false;
}

static void first_start(struct trial *t)
{
	struct site s;
	struct err err;

	if (t->step_ns)
		steps_begin(0);
	if (!opens(t, &s, "first start"))
		return;
	if (t->while_open && harm_do(t->o->harms, t->dir, "blocks/", &t->d, &t->told->r.harm, &err))
		tell(t, "  %s\n", err.msg);
	ask_and_compare(t, &s, "first start");
	if (t->append_later) {
		if (data_append_later(s.db, &err))
			tell(t, "  later rows: %s\n", err.msg);
		else
			t->told->later = true;
		ask_and_compare(t, &s, "rows appended");
	}
	if (t->compact) {
		t->told->compacted = true;
		if (db_compact(s.db, &err) && t->o->verbose)
			tell(t, "  compaction: %s\n", err.msg);
		db_maintain(s.db, true);
		ask_and_compare(t, &s, "blocks worked on");
	}
	if (!t->kill)
		site_close(&s);
}

static void second_start(struct trial *t)
{
	struct site s;

	if (t->step_ns)
		steps_begin(t->step_ns);
	if (!opens(t, &s, "second start"))
		return;
	ask_and_compare(t, &s, "second start");
	site_close(&s);
}

static void verify(struct trial *t)
{
	char name[] = "verify", *argv[] = { name, t->dir, NULL };

	t->told->verified = tsdb_verify(2, argv);
	fflush(stdout);
}

static void quiet(struct trial *t)
{
	int fd = open(t->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	log_set(t->o->verbose ? LOG_INFO : LOG_ERROR + 1, LOG_LOGFMT);
	if (t->o->verbose) {
		dup2(2, 1);
	} else if (fd >= 0) {
		dup2(fd, 1);
		dup2(fd, 2);
	}
}

static void tell_log(struct trial *t)
{
	struct buf log = { 0 };
	size_t from;

	if (fs_read_file(t->log, 64u << 20, &log, NULL) == ERR_OK) {
		from = log.len > LOG_BYTES_SHOWN ? log.len - LOG_BYTES_SHOWN : 0;
		tell(t, "%.*s\n", (int)(log.len - from), log.ptr + from);
	}
	buf_release(&log);
}

/* False: it crashed, or did not end in time. */
static bool in_process(struct trial *t, const char *name, void (*fn)(struct trial *t))
{
	int status = 0;
	pid_t pid;

	t->told->done = false;
	pid = fork();
	if (pid == 0) {
		alarm(t->o->seconds_max);
		quiet(t);
		fn(t);
		t->told->done = true;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (t->told->done && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		t->told->r.verdict = HUNG;
		tell(t, "  %s: not done in %u s\n", name, t->o->seconds_max);
	} else {
		t->told->r.verdict = CRASHED;
		tell(t, "  %s: status %#x\n", name, (unsigned)status);
		tell_log(t);
	}
	return false;
}

/* ---- the trial ---- */

static bool differ(const struct trial_result *r)
{
	return r->warned || r->errors || r->silent;
}

static bool starts(struct trial *t)
{
	const struct trial_result *r = &t->told->r;
	uint32_t before;

	if (t->verify && !t->while_open && !in_process(t, "verify", verify))
		return false;
	if (!in_process(t, "first start", first_start))
		return false;
	t->told->r.verify_missed |= t->verify && !t->while_open && differ(r) && !t->told->verified;
	before = r->warned + r->errors + r->silent;
	if (!in_process(t, "second start", second_start))
		return false;
	if (!t->verify)
		return true;
	if (!in_process(t, "verify after", verify))
		return false;
	t->told->r.verify_missed |= r->warned + r->errors + r->silent > before && !t->told->verified;
	if (t->o->harmless && t->told->verified)
		tell(t, "  verify found something\n");
	return true;
}

static enum verdict verdict_of(const struct told *told)
{
	if (told->r.silent)
		return SILENT;
	if (told->refused)
		return REFUSED;
	return differ(&told->r) ? WARNED : EQUAL;
}

static enum err_code harm(struct trial *t, uint64_t seed, struct err *err)
{
	struct harm_done *done = &t->told->r.harm;

	return t->o->pairs ? harm_pair(t->o->harms, t->dir, (size_t)seed, &t->d, done, err) :
						 harm_do(t->o->harms, t->dir, t->o->only, &t->d, done, err);
}

static void prepare(struct trial *t, uint64_t seed)
{
	char now[400];
	enum err_code rc;
	struct err err;

	t->d.state = map_hash_u64(seed + 1);
	t->append_later = draw(&t->d, 4) == 0;
	t->compact = draw(&t->d, 4) == 0;
	t->kill = draw(&t->d, 2) == 0;
	t->verify = draw(&t->d, 4) == 0 || t->o->pairs;
	t->while_open = draw(&t->d, 8) == 0 && !t->o->only && !t->o->harmless && !t->o->pairs;
	t->few_symbols = draw(&t->d, 4) == 0;
	t->step_ns = steps_draw(seed);
	snprintf(t->dir, sizeof(t->dir), "%s/data", t->o->work);
	snprintf(t->log, sizeof(t->log), "%s/log", t->o->work);
	snprintf(now, sizeof(now), "%s/now", t->o->harms->dir);
	if (fs_remove_tree(&fs_posix, t->dir, &err) || tree_copy(now, t->dir, &err)) {
		fprintf(stderr, "damage: %s\n", err.msg);
		exit(1);
	}
	if (t->o->harmless || t->while_open || !(rc = harm(t, seed, &err)))
		return;
	if (t->o->pairs && rc == ERR_NOT_FOUND)
		t->no_pair = true;
	else
		tell(t, "  nothing was damaged: %s\n", err.msg);
}

static void print(const struct trial *t, uint64_t seed)
{
	const struct told *told = t->told;
	const struct trial_result *r = &told->r;
	bool unexpected = r->verdict >= SILENT || r->verify_missed ||
		(t->o->harmless && (r->verdict != EQUAL || told->text_n));

	if (!unexpected && !t->o->verbose)
		return;
	fprintf(t->o->out, "%s%s --%s %llu: %s%s%s%s%s%s%s%s\n%.*s", verdict_names[r->verdict],
		r->verify_missed ? ", not found by verify" : "", t->o->pairs ? "pair" : "seed",
		(unsigned long long)seed, r->harm.what, t->while_open ? "; while open" : "",
		t->append_later ? "; rows appended" : "", t->compact ? "; blocks worked on" : "",
		t->kill ? "; killed" : "", t->few_symbols ? "; few symbols" : "",
		t->step_ns ? "; clock stepped" : "", t->verify ? "; verified" : "", (int)told->text_n,
		told->text);
	fflush(t->o->out);
}

bool trial_run(const struct trial_options *o, uint64_t seed, struct trial_result *out)
{
	struct trial t = { .o = o };

	t.told = mmap(NULL, sizeof(*t.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t.told == MAP_FAILED)
		abort();
	prepare(&t, seed);
	if (!t.no_pair) {
		if (starts(&t))
			t.told->r.verdict = verdict_of(t.told);
		print(&t, seed);
	}
	*out = t.told->r;
	munmap(t.told, sizeof(*t.told));
	return !t.no_pair;
}
