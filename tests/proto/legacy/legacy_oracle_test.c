/*
 * The same profiles as google/pprof reads: of small bodies, of its own test data, and of both with
 * bytes changed. A counter decides which bytes, so each run sees the same bodies.
 *
 * Needs go and Debian's golang-github-google-pprof-dev; without them the test fails.
 */
#include "proto/legacy/legacy.h"

#include "tests/oracle.h"
#include "tests/proto/legacy/bodies.h"
#include "tests/proto/profile_compare.h"

#define GOOGLE "/usr/share/gocode/src/github.com/google/pprof/profile/testdata"
#define DATA "tests/proto/legacy/testdata"
#define SHOWN_MAX 10

static const char *const google_files[] = { "cppbench.contention", "cppbench.cpu",
	"cppbench.growth", "cppbench.heap", "cppbench.thread", "cppbench.thread.all",
	"cppbench.thread.none", "go.crc32.cpu", "go.godoc.thread", "gobench.cpu", "gobench.heap",
	"java.contention", "java.cpu", "java.heap" };

static const char *const real_files[] = { "gperftools.cpu", "tcmalloc.heap", "go_heap.txt",
	"go_goroutine.txt", "go_mutex.txt", "go_block.txt", "go_threadcreate.txt" };

/* What we refuse and google/pprof reads, by our message. */
static const struct {
	const char *message, *why;
} stricter[] = {
	{ "the end marker is missing", "google/pprof keeps the stacks before the cut" },
	{ "is cut off", "google/pprof reads missing words of 64 bits as 0" },
	{ "more than 64 bits", "google/pprof multiplies without a look at the overflow" },
	{ "the period is ", "likewise" },
	{ "of Java", "not a format of this room" },
};

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % n);
}

struct bodies {
	struct buf frames; /* as the oracle reads them */
	size_t at[32768], n;
};

static void add_body(struct bodies *b, struct str body)
{
	if (b->n == sizeof(b->at) / sizeof(b->at[0]))
		abort();
	b->at[b->n++] = b->frames.len;
	buf_add_u32be(&b->frames, (uint32_t)body.len);
	buf_add_str(&b->frames, body);
}

static void mutate(struct buf *b, struct str from)
{
	static const char some[] = "09afxz:@[]-= \n\r\t#/(){}$.\0\1\3\xff";
	uint32_t n = (uint32_t)from.len, at = random_below(n), len = random_below(12) + 1, to;

	if (len > n - at)
		len = n - at;
	buf_clear(b);
	switch (random_below(5)) {
	case 0: /* a byte */
		buf_add_str(b, from);
		b->ptr[at] = some[random_below(sizeof(some) - 1)];
		break;
	case 1: /* cut */
		buf_add(b, from.ptr, at);
		break;
	case 2: /* a piece left out */
		buf_add(b, from.ptr, at);
		buf_add(b, from.ptr + at + len, n - at - len);
		break;
	case 3: /* a byte put in */
		buf_add(b, from.ptr, at);
		buf_add_char(b, some[random_below(sizeof(some) - 1)]);
		buf_add(b, from.ptr + at, n - at);
		break;
	default: /* a piece copied elsewhere */
		to = random_below(n);
		buf_add(b, from.ptr, to);
		buf_add(b, from.ptr + at, len);
		buf_add(b, from.ptr + to, n - to);
		break;
	}
}

static void add_mutations(struct bodies *bodies, struct str from, uint32_t n)
{
	struct buf once = { 0 }, twice = { 0 };

	add_body(bodies, from);
	for (uint32_t i = 0; i < n; i++) {
		mutate(&once, from);
		if (once.len && random_below(3) == 0) {
			mutate(&twice, buf_str(&once));
			add_body(bodies, buf_str(&twice));
		} else {
			add_body(bodies, buf_str(&once));
		}
	}
	buf_release(&once);
	buf_release(&twice);
}

static void add_all(struct bodies *bodies)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < legacy_bodies_n; i++)
		add_mutations(bodies, legacy_bodies[i].body, 500);
	for (unsigned i = 0; i < 8; i++) {
		buf_clear(&b);
		legacy_cpu_body(&b, i & 3, i & 4 ? 70 : 9);
		add_mutations(bodies, buf_str(&b), 100);
	}
	for (size_t i = 0; i < sizeof(google_files) / sizeof(google_files[0]); i++) {
		CHECK(oracle_read(&b, GOOGLE, google_files[i]));
		add_mutations(bodies, buf_str(&b), 40);
	}
	for (size_t i = 0; i < sizeof(real_files) / sizeof(real_files[0]); i++) {
		CHECK(oracle_read(&b, DATA, real_files[i]));
		add_mutations(bodies, buf_str(&b), 40);
	}
	buf_release(&b);
}

static bool is_stricter(struct str body, const char *message)
{
	/* What is wrong as a text of contentions, google/pprof tries as Java's. */
	if (str_has_prefix(str_trim(body), STR("--- contentionz 1 ---")))
		return true;
	for (size_t i = 0; i < sizeof(stricter) / sizeof(stricter[0]); i++)
		if (strstr(message, stricter[i].message))
			return true;
	return false;
}

/* "--- contention" without more is brpc's, which google/pprof does not read. */
static bool is_brpc(struct str body)
{
	const char *end = body.len ? memchr(body.ptr, '\n', body.len) : NULL;

	return str_is(str_trim((struct str){ body.ptr, end ? (size_t)(end - body.ptr) : body.len }),
		"--- contention");
}

/* False: they differ, and `why` says how. */
static bool same(struct arena *a, struct str body, char verdict, struct str answer, struct buf *why)
{
	struct pprof_limits limits = pprof_limits_default;
	struct err err = { 0 };
	struct buf ours = { 0 };
	struct pprof *p;
	bool equal;

	buf_clear(why);
	if (legacy_decode(a, body, &limits, &p, &err)) {
		buf_printf(why, "google/pprof reads it; we: %s", err.msg);
		return verdict == 'r' || is_stricter(body, err.msg);
	}
	if (verdict == 'r' && is_brpc(body))
		return true;
	if (verdict == 'r') {
		buf_printf(why, "we read it; google/pprof: " STR_FMT, STR_ARG(answer));
		return false;
	}
	if (pprof_encode(p, &ours, &err)) {
		buf_printf(why, "%s", err.msg);
		return false;
	}
	equal = profile_equal(answer, buf_str(&ours), why);
	buf_release(&ours);
	return equal;
}

static void compare(const struct bodies *bodies, struct str answers)
{
	struct cursor c = cursor_of(answers);
	size_t accepted = 0, shown = 0;
	struct buf why = { 0 };

	for (size_t i = 0; i < bodies->n && shown < SHOWN_MAX; i++) {
		size_t end = i + 1 < bodies->n ? bodies->at[i + 1] : bodies->frames.len;
		struct str body = { bodies->frames.ptr + bodies->at[i] + 4, end - bodies->at[i] - 4 };
		struct str verdict = cursor_bytes(&c, 1), answer = cursor_bytes(&c, cursor_u32be(&c));
		struct arena a;

		REQUIRE(!c.bad);
		accepted += verdict.ptr[0] == 'a';
		if (verdict.ptr[0] == 'p')
			continue;
		arena_init(&a, 256 << 20);
		if (!same(&a, body, verdict.ptr[0], answer, &why)) {
			CHECK_FAIL("body %zu: " STR_FMT "\n" STR_FMT, i, STR_ARG(buf_str(&why)),
				(int)(body.len < 1500 ? body.len : 1500), body.ptr);
			shown++;
		}
		arena_release(&a);
	}
	/* There must be many of both verdicts, or the comparison says little. */
	if (accepted < bodies->n / 4 || accepted > bodies->n * 9 / 10)
		CHECK_FAIL("%zu of %zu bodies accepted", accepted, bodies->n);
	buf_release(&why);
}

static bool ask(const struct bodies *bodies, struct buf *answers)
{
	return oracle_dir() && oracle_write(buf_str(&bodies->frames), oracle_dir(), "bodies") &&
		oracle_run(answers,
			"test -x %s/oracle || GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS= "
			"go build -o %s/oracle tests/proto/legacy/oracle/main.go 2>&1",
			oracle_dir(), oracle_dir()) &&
		oracle_run(answers, "cd %s && ./oracle <bodies >answers", oracle_dir()) &&
		oracle_read(answers, oracle_dir(), "answers");
}

TEST(same_profiles)
{
	static struct bodies bodies;
	struct buf answers = { 0 };

	random_state = 1;
	add_all(&bodies);
	CHECK(bodies.n > 10000);
	REQUIRE(ask(&bodies, &answers));
	compare(&bodies, buf_str(&answers));
	buf_release(&answers);
	buf_release(&bodies.frames);
}

/* ------------------------------------------------------------------------------------------------
 * jemalloc: google/pprof reads the same numbers and stacks in the form of gperftools. */

/* "@ 0x1 0x2", "  t*: 1: 2 [3: 4]" become "1: 2 [3: 4] @ 0x1 0x2". */
static void as_gperftools(struct str text, struct buf *out)
{
	struct str stack = STR(""), rate = STR("");

	for (bool maps = false; text.len;) {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t n = end ? (size_t)(end - text.ptr) : text.len;
		struct str line = { text.ptr, n }, row = str_trim(line);

		text = (struct str){ text.ptr + n + (end != NULL), text.len - n - (end != NULL) };
		maps = maps || str_is(line, "MAPPED_LIBRARIES:");
		if (str_has_prefix(line, STR("heap_v2/")))
			rate = line;
		else if (maps)
			buf_printf(out, STR_FMT "\n", STR_ARG(line));
		else if (str_has_prefix(line, STR("@")))
			stack = line;
		if (maps || !str_has_prefix(row, STR("t*: ")))
			continue;
		row = (struct str){ row.ptr + 4, row.len - 4 };
		if (stack.len)
			buf_printf(out, STR_FMT " " STR_FMT "\n", STR_ARG(row), STR_ARG(stack));
		else
			buf_printf(
				out, "heap profile: " STR_FMT " @ " STR_FMT "\n", STR_ARG(row), STR_ARG(rate));
	}
}

static void rename_type(struct pprof *p, uint32_t type, struct str name)
{
	p->strings[p->types[type].type] = name;
}

TEST(jemalloc_as_gperftools)
{
	static const char *const files[] = { "jemalloc.heap", "jemalloc_accum.heap" };
	struct bodies *bodies = calloc(1, sizeof(*bodies));
	struct buf text = { 0 }, answers = { 0 }, form = { 0 }, ours = { 0 }, why = { 0 };
	struct cursor c;

	REQUIRE(bodies);
	for (size_t i = 0; i < 2; i++) {
		REQUIRE(oracle_read(&text, DATA, files[i]));
		buf_clear(&form);
		as_gperftools(buf_str(&text), &form);
		add_body(bodies, buf_str(&form));
	}
	REQUIRE(ask(bodies, &answers));
	c = cursor_of(buf_str(&answers));
	for (size_t i = 0; i < 2; i++) {
		struct str verdict = cursor_bytes(&c, 1), answer = cursor_bytes(&c, cursor_u32be(&c));
		struct pprof *p;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		REQUIRE(!c.bad && verdict.ptr[0] == 'a');
		REQUIRE(oracle_read(&text, DATA, files[i]));
		REQUIRE_OK(legacy_decode(&a, buf_str(&text), &pprof_limits_default, &p, &err), &err);
		if (p->types_n == 2) {
			rename_type(p, 0, STR("objects"));
			rename_type(p, 1, STR("space"));
		}
		buf_clear(&ours);
		CHECK_OK(pprof_encode(p, &ours, &err), &err);
		if (!profile_equal(answer, buf_str(&ours), &why))
			CHECK_FAIL("%s: " STR_FMT, files[i], STR_ARG(buf_str(&why)));
		arena_release(&a);
	}
	buf_release(&text);
	buf_release(&answers);
	buf_release(&form);
	buf_release(&ours);
	buf_release(&why);
	buf_release(&bodies->frames);
	free(bodies);
}
