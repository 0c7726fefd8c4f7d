/*
 * The same verdicts as google/pprof, on thousands of bodies: the hand-made ones, each valid one
 * followed by each other, and real profiles with bytes changed. A counter decides which bytes, so
 * each run sees the same bodies.
 *
 * Needs go and Debian's golang-github-google-pprof-dev; without them the test fails.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "proto/pprof.h"
#include "tests/check.h"
#include "tests/proto/corpus.h"
#include "tests/proto/testdata.h"

#define ANSWERS_BYTES_MAX (64u << 20)
#define SHOWN_MAX 20

extern char **environ;

struct bodies {
	struct buf frames; /* as the oracle reads them */
	size_t *at, n, cap;
};

static void add_body(struct bodies *b, struct str body)
{
	if (b->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 1024;
		b->at = realloc(b->at, b->cap * sizeof(*b->at));
		if (!b->at)
			abort();
	}
	b->at[b->n++] = b->frames.len;
	buf_add_u32be(&b->frames, (uint32_t)body.len);
	buf_add_str(&b->frames, body);
}

static struct str body_at(const struct bodies *b, size_t i)
{
	size_t end = i + 1 < b->n ? b->at[i + 1] : b->frames.len;

	return (struct str){ b->frames.ptr + b->at[i] + 4, end - b->at[i] - 4 };
}

/* ------------------------------------------------------------------------------------------------
 * Bodies. */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % n);
}

/* Bytes with a meaning: tags, lengths, ends and beginnings of varints. */
static unsigned char random_byte(void)
{
	static const unsigned char some[] = { 0, 1, 2, 3, 4, 8, 0x0a, 0x10, 0x12, 0x18, 0x1a, 0x20,
		0x22, 0x28, 0x2a, 0x30, 0x32, 0x38, 0x48, 0x5a, 0x68, 0x6a, 0x70, 0x78, 0x7f, 0x80, 0x81,
		0xff };

	return random_below(3) ? some[random_below(sizeof(some))] : (unsigned char)random_below(256);
}

static void mutate(struct buf *b, struct str from)
{
	uint32_t n = (uint32_t)from.len, at = random_below(n), len, to;

	buf_clear(b);
	switch (random_below(6)) {
	case 0: /* one byte */
		buf_add_str(b, from);
		b->ptr[at] = (char)random_byte();
		break;
	case 1: /* one bit */
		buf_add_str(b, from);
		b->ptr[at] = (char)(b->ptr[at] ^ 1 << random_below(8));
		break;
	case 2: /* cut */
		buf_add(b, from.ptr, at);
		break;
	case 3: /* a piece left out */
		len = random_below(n - at < 64 ? n - at : 64) + 1;
		buf_add(b, from.ptr, at);
		buf_add(b, from.ptr + at + len, n - at - len);
		break;
	case 4: /* bytes put in */
		buf_add(b, from.ptr, at);
		for (len = random_below(4) + 1; len; len--)
			buf_add_char(b, (char)random_byte());
		buf_add(b, from.ptr + at, n - at);
		break;
	default: /* a piece copied elsewhere */
		len = random_below(n - at < 64 ? n - at : 64) + 1;
		to = random_below(n);
		buf_add(b, from.ptr, to);
		buf_add(b, from.ptr + at, len);
		buf_add(b, from.ptr + to, n - to);
		break;
	}
}

static void add_mutations(struct bodies *bodies, struct str from, uint32_t n)
{
	struct buf b = { 0 }, again = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		mutate(&b, from);
		if (b.len && random_below(4) == 0) {
			mutate(&again, buf_str(&b));
			add_body(bodies, buf_str(&again));
		} else {
			add_body(bodies, buf_str(&b));
		}
	}
	buf_release(&b);
	buf_release(&again);
}

static void add_hand_made(struct bodies *bodies)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < corpus_n; i++) {
		add_body(bodies, corpus[i].body);
		if (corpus[i].body.len)
			add_mutations(bodies, corpus[i].body, corpus[i].message ? 20 : 150);
		for (size_t k = 0; k < corpus_n && !corpus[i].message; k++) {
			buf_clear(&b);
			buf_add_str(&b, corpus[i].body);
			buf_add_str(&b, corpus[k].body);
			add_body(bodies, buf_str(&b));
		}
	}
	buf_release(&b);
}

static enum err_code add_real(struct bodies *bodies, struct err *err)
{
	for (size_t i = 0; i < testdata_n; i++) {
		struct str body, raw;
		enum err_code rc;
		struct arena a;

		arena_init(&a, 0);
		if (!(rc = testdata_body(&a, testdata[i], &body, err)))
			rc = testdata_inflated(&a, testdata[i], &raw, err);
		if (!rc) {
			add_body(bodies, body);
			add_body(bodies, raw);
			add_mutations(bodies, body, body.len < 2000 ? 400 : 40);
			add_mutations(bodies, raw, raw.len < 4000 ? 2500 : 250);
		}
		arena_release(&a);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * The oracle, built and run. */

/* Runs argv with files as standard input and output; returns its exit code, or -1. */
static int run(const char *const argv[], char *const env[], const char *in, const char *out)
{
	posix_spawn_file_actions_t files;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, in, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, env))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Our environment, and variables that make Go use Debian's packages and say where it caches. */
static char **go_environment(struct arena *a, const char *dir)
{
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = arena_array(a, char *, n + 5);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "GO111MODULE=", 12) != 0 &&
			strncmp(environ[i], "GOPATH=", 7) != 0 && strncmp(environ[i], "GOFLAGS=", 8) != 0)
			env[kept++] = environ[i];
	env[kept++] = arena_printf(a, "GO111MODULE=off");
	env[kept++] = arena_printf(a, "GOPATH=/usr/share/gocode");
	env[kept++] = arena_printf(a, "GOFLAGS=");
	if (!getenv("HOME") && !getenv("GOCACHE") && !getenv("XDG_CACHE_HOME"))
		env[kept++] = arena_printf(a, "GOCACHE=%s/cache", dir);
	return env;
}

static bool ask(struct arena *a, const char *dir, const struct bodies *bodies, struct buf *answers)
{
	char *program = arena_printf(a, "%s/oracle", dir), *in = arena_printf(a, "%s/bodies", dir);
	char *out = arena_printf(a, "%s/answers", dir);
	const char *build[] = { "go", "build", "-o", program, "tests/proto/oracle/main.go", NULL };
	const char *oracle[] = { program, NULL };
	char **env = go_environment(a, dir);
	struct err err = { 0 };

	if (run(build, env, "/dev/null", out)) {
		CHECK_FAIL("cannot build the oracle; needs go and golang-github-google-pprof-dev");
		return false;
	}
	if (fs_write_file(&fs_posix, in, buf_str(&bodies->frames), &err) || run(oracle, env, in, out) ||
		fs_read_file(out, ANSWERS_BYTES_MAX, answers, &err)) {
		CHECK_FAIL("cannot run the oracle: %s", err.msg);
		return false;
	}
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Verdicts. */

static void show_bytes(struct str body)
{
	for (size_t i = 0; i < body.len && i < 400; i++)
		printf("%02x", (unsigned char)body.ptr[i]);
	printf("%s\n", body.len > 400 ? "..." : "");
}

static size_t compare(const struct bodies *bodies, struct str answers)
{
	size_t accepted = 0, shown = 0;

	for (size_t i = 0; i < bodies->n; i++) {
		const char *newline = answers.len ? memchr(answers.ptr, '\n', answers.len) : NULL;
		struct str body = body_at(bodies, i), raw, answer;
		struct err err = { 0 };
		struct pprof *p;
		struct arena a;
		bool ours, theirs;

		if (!newline) {
			CHECK_FAIL("%zu answers to %zu bodies", i, bodies->n);
			break;
		}
		answer = (struct str){ answers.ptr, (size_t)(newline - answers.ptr) };
		answers.ptr += answer.len + 1;
		answers.len -= answer.len + 1;
		theirs = str_is(answer, "accept");
		arena_init(&a, 256 << 20);
		ours = !pprof_inflate(&a, body, &pprof_limits_default, &raw, &err) &&
			!pprof_decode(&a, raw, &pprof_limits_default, &p, &err);
		arena_release(&a);
		accepted += theirs;
		if (ours != theirs && shown++ < SHOWN_MAX) {
			CHECK_FAIL("body %zu: google/pprof: " STR_FMT "; we: %s", i, STR_ARG(answer),
				ours ? "accept" : err.msg);
			show_bytes(body);
		}
	}
	return accepted;
}

TEST(same_verdicts)
{
	const char *tmp = getenv("TMPDIR");
	struct bodies bodies = { 0 };
	struct buf answers = { 0 };
	size_t accepted;
	struct arena a;
	struct err err;
	char *dir;

	random_state = 1;
	arena_init(&a, 0);
	dir = arena_printf(&a, "%s/epimetheus-oracle-XXXXXX", tmp ? tmp : "/tmp");
	REQUIRE(mkdtemp(dir));
	add_hand_made(&bodies);
	CHECK_OK(add_real(&bodies, &err), &err);
	if (ask(&a, dir, &bodies, &answers)) {
		accepted = compare(&bodies, buf_str(&answers));
		/* There must be many of both verdicts, or the comparison says little. */
		CHECK(bodies.n > 10000);
		if (accepted < bodies.n / 10 || accepted > bodies.n * 9 / 10)
			CHECK_FAIL("%zu of %zu bodies accepted", accepted, bodies.n);
	}
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	buf_release(&bodies.frames);
	buf_release(&answers);
	free(bodies.at);
	arena_release(&a);
}
