/*
 * What comes out of each format, what is refused with which words, and that damage does no harm.
 * The stacks of real programs are in testdata: a C program that allocates in three threads under
 * gperftools 2.10 and jemalloc 5.3.0.
 */
#include "proto/legacy/legacy.h"

#include <math.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/proto/legacy/bodies.h"

#define DATA "tests/proto/legacy/testdata/"
#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}
#define Z4 "\0\0\0\0"
#define CPU32 Z4 "\3\0\0\0" Z4 "\x10\x27\0\0" Z4
#define MAPS "MAPPED_LIBRARIES:\n400000-500000 r-xp 0 00:00 1 /bin/x\n"

/* "objects/count space/bytes; 1 4096 bytes=4096 @ 3fff:/bin/x 1fff" */
static void print(const struct pprof *p, struct buf *out)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		buf_printf(out, "%s" STR_FMT "/" STR_FMT, i ? " " : "",
			STR_ARG(p->strings[p->types[i].type]), STR_ARG(p->strings[p->types[i].unit]));
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		buf_add_cstr(out, ";");
		for (uint32_t k = 0; k < p->types_n; k++)
			buf_printf(out, " %" PRId64, p->values[i * p->types_n + k]);
		for (uint32_t k = 0; k < s->label_n; k++)
			buf_printf(out, " " STR_FMT "=%" PRId64,
				STR_ARG(p->strings[p->labels[s->label_first + k].key]),
				p->labels[s->label_first + k].num);
		buf_add_cstr(out, " @");
		for (uint32_t k = 0; k < s->location_n; k++) {
			const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

			buf_printf(out, " %" PRIx64, l->address);
			if (l->mapping != PPROF_NONE && p->mappings[l->mapping].filename)
				buf_printf(out, ":" STR_FMT, STR_ARG(p->strings[p->mappings[l->mapping].filename]));
		}
	}
}

static const struct {
	struct str body;
	const char *want;
} read[] = {
	{ LIT(CPU32 "\2\0\0\0"
				"\2\0\0\0"
				"\0\x10\x40\0"
				"\0\x20\x40\0" Z4 "\1\0\0\0" Z4 "400000-500000 r-xp 0 00:00 1 /bin/x\n"),
		"samples/count cpu/nanoseconds; 2 20000000 @ 401000:/bin/x" },
	{ LIT("heap profile: 1: 4096 [ 1: 4096] @ heapprofile\n1: 4096 [1: 4096] @ 0x401001 "
		  "0x2000\n" MAPS),
		"objects/count space/bytes; 1 4096 bytes=4096 @ 401000:/bin/x 1fff" },
	{ LIT("heap profile: 1: 1000 [ 2: 2000] @ heap_v2/524288\n1: 1000 [2: 2000] @ 0x401001\n"),
		"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes;"
		" 1049 1049576 524 524788 bytes=1000 @ 401000" },
	{ LIT("heap_v2/524288\n  t*: 2: 2000 [0: 0]\n  t3: 2: 2000 [0: 0] main thread\n@ 0x401001 "
		  "0x402001\n"
		  "  t*: 1: 1000 [0: 0]\n  t3: 1: 1000 [0: 0]\n@ 0x401001\n  t*: 1: 1000 [0: 0]\n\n" MAPS),
		"inuse_objects/count inuse_space/bytes; 524 524788 bytes=1000 @ 401000:/bin/x "
		"402000:/bin/x;"
		" 524 524788 bytes=1000 @ 401000:/bin/x" },
	{ LIT("heap_v2/1\n  t*: 1: 10 [3: 30]\n@ 0x401001\n  t*: 1: 10 [3: 30]\n"),
		"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes; 3 30 1 10 "
		"bytes=10 @ 401000" },
	{ LIT("heap_v2/524288\n  t*: 0: 0 [0: 0]\n\nMAPPED_LIBRARIES:\n"),
		"inuse_objects/count inuse_space/bytes" },
	{ LIT("goroutine profile: total 3\n3 @ 0x401001 0x402001\n"),
		"goroutine/count; 3 @ 401000 402000" },
	{ LIT("--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 10\n100 3 @ "
		  "0x401001\n"),
		"contentions/count delay/nanoseconds; 30 500 @ 401000" },
	{ LIT("--- contention\ncycles/second=1000000000\n70 1 @ 0x401001 \n"),
		"contentions/count delay/nanoseconds; 1 70 @ 401000" },
	{ LIT("--- threadz 1 ---\n--- Thread 7f (name: m/1) stack: ---\n 0x401001\n 0x402001\n"
		  "--- Thread 7e (name: m/1) stack: ---\n [same as previous thread]\n"
		  "--- Memory map: ---\n"),
		"thread/count; 2 @ 401001 402000" },
};

static const struct {
	struct str body;
	enum err_code code;
	const char *message;
} refused[] = {
	{ LIT(""), ERR_INVALID, "profile is empty" },
	{ LIT("hello"), ERR_INVALID, "not a profile in a format before protobuf" },
	{ LIT("heap profile: 1: 1 [1: 1 @ heapprofile\n"), ERR_INVALID,
		"heap profile (text): its first line is damaged" },
	{ LIT("--- symbol\nbinary=/bin/x\n"), ERR_UNSUPPORTED,
		"a legacy symbolized profile of gperftools is not supported" },
	{ LIT("--- heapz 1 ---\nformat = java\n"), ERR_UNSUPPORTED,
		"a legacy heap profile of Java (text) is not supported" },
	{ LIT("--- contentionz 1 ---\nformat = java\n"), ERR_UNSUPPORTED,
		"a contention profile of Java (text) is not supported" },
	{ LIT(Z4 "\3\0\0\0"
			 "\1\0\0\0"
			 "\x10\x27\0\0" Z4),
		ERR_UNSUPPORTED, "a CPU profile of Java (binary) is not supported" },
	{ LIT(CPU32), ERR_INVALID, "CPU profile of gperftools: the end marker is missing" },
	{ LIT(CPU32 "\1\0\0\0"), ERR_INVALID, "CPU profile of gperftools: sample[0] is cut off" },
	{ LIT(CPU32 "\1\0\0\0"
				"\2\0\0\0"
				"\1\0\0\0"),
		ERR_INVALID, "CPU profile of gperftools: sample[0] is cut off" },
	{ LIT(CPU32 "\1\0\0\0"
				"\xff\xff\xff\xff"
				"\1\0\0\0"),
		ERR_INVALID, "CPU profile of gperftools: sample[0] is cut off" },
	{ LIT(Z4 Z4 "\3\0\0\0" Z4 Z4 Z4 Z4 "\0\0\0\x80" Z4 Z4 Z4 Z4), ERR_INVALID,
		"CPU profile of gperftools: the period is 9223372036854775808 microseconds" },
	{ LIT(Z4 Z4 "\3\0\0\0" Z4 Z4 Z4 "\x10\x27\0\0" Z4 Z4 Z4 Z4 "\0\0\0\1"
				"\1\0\0\0" Z4 "\1\0\0\0" Z4 Z4 Z4 "\1\0\0\0" Z4 Z4 Z4),
		ERR_INVALID,
		"CPU profile of gperftools: sample[0]: 72057594037927936 times the period is more than 64 "
		"bits" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1]\n"), ERR_INVALID,
		"heap profile (text): line 2: expected \"n: bytes [n: bytes] @ addresses\"" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heapprofile\n\n0: 1 [0: 0] @ 0x1\n"), ERR_INVALID,
		"heap profile (text): line 3: bytes of no object" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heapprofile\n1: 9223372036854775808 [1: 1] @ 0x1\n"),
		ERR_INVALID, "heap profile (text): line 2: a number has more than 64 bits" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heapprofile\n-1: -9223372036854775808 [0: 0] @ 0x1\n"),
		ERR_INVALID, "heap profile (text): line 2: a number has more than 64 bits" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heap_v2/9223372036854775807\n9223372036854775807: "
		  "9223372036854775807 [1: 1] @ 0x1\n"),
		ERR_INVALID,
		"heap profile (text): line 2: a number has more than 64 bits when it is scaled up" },
	{ LIT("heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x11111111111111111\n"),
		ERR_INVALID, "heap profile (text): line 2: an address has more than 64 bits" },
	{ LIT("heap_v2/524288\n"), ERR_INVALID,
		"heap profile of jemalloc: line 1: the profile ends before its \"t*\"" },
	{ LIT("heap_v2/524288\n  t1: 1: 1 [0: 0]\n"), ERR_INVALID,
		"heap profile of jemalloc: line 2: expected \"t*\" before single threads" },
	{ LIT("heap_v2/524288\n  t*: 1: 1 [0: ]\n"), ERR_INVALID,
		"heap profile of jemalloc: line 2: expected \"t*: n: bytes [n: bytes]\"" },
	{ LIT("heap_v2/524288\n  t*: 1: 1 [0: 0]\n@ 0x1\n"), ERR_INVALID,
		"heap profile of jemalloc: line 3: the profile ends before its \"t*\"" },
	{ LIT("heap_v2/524288\n  t*: 1: 1 [0: 0]\n@ 0x1\n  t*: 1: 1 [1: 1]\n"), ERR_INVALID,
		"heap profile of jemalloc: line 4: allocations that the header does not have" },
	{ LIT("heap_v2/524288\n  t*: 1: 1 [0: 0]\nx\n"), ERR_INVALID,
		"heap profile of jemalloc: line 3: expected a stack, \"@ addresses\"" },
	{ LIT("goroutine profile: total 1\n1 @\n"), ERR_INVALID,
		"profile of counts (text): line 2: expected \"n @ addresses\"" },
	{ LIT("--- threadz 1 ---\n--- Thread 7f (name: m/1) stack: ---\n 0x401001\n"), ERR_INVALID,
		"thread profile (text): line 3: the profile ends before its memory map" },
	{ LIT("--- mutex:\ncycles/minute=1\n"), ERR_INVALID,
		"contention profile (text): line 2: unknown attribute" },
	{ LIT("--- mutex:\nsampling period=9223372036854775807\n1 2 @ 0x1\n"), ERR_INVALID,
		"contention profile (text): line 3: a number has more than 64 bits when it is scaled up" },
};

TEST(each_format)
{
	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
		struct buf out = { 0 };
		struct pprof *p;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		if (legacy_decode(&a, read[i].body, &pprof_limits_default, &p, &err))
			CHECK_FAIL("body %zu: %s", i, err.msg);
		else
			print(p, &out);
		CHECK_STR(buf_str(&out), read[i].want);
		arena_release(&a);
		buf_release(&out);
	}
}

TEST(what_is_refused)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct pprof *p;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		CHECK_ERR(legacy_decode(&a, refused[i].body, &pprof_limits_default, &p, &err), &err,
			refused[i].code, refused[i].message);
		arena_release(&a);
	}
}

/* ------------------------------------------------------------------------------------------------
 * Limits. */

static void check_limit(const char *body, const struct pprof_limits *limits, const char *message)
{
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	CHECK_ERR(legacy_decode(&a, str_of(body), limits, &p, &err), &err, ERR_LIMIT, message);
	arena_release(&a);
}

TEST(limits)
{
	struct pprof_limits limits = pprof_limits_default;
	const char *counts = "g profile: total 3\n1 @ 0x1 0x2\n1 @ 0x3 0x4\n1 @ 0x5\n";

	limits.raw_bytes_max = 10;
	check_limit(counts, &limits, "profile is 51 bytes inflated, limit 10");
	limits = pprof_limits_default;
	limits.samples_max = 2;
	check_limit(counts, &limits, "profile of counts (text): more than 2 samples, the limit");
	limits = pprof_limits_default;
	limits = pprof_limits_default;
	limits.elements_max = 4;
	check_limit(counts, &limits, "profile of counts (text): more than 4 locations, the limit");
	limits.elements_max = 1;
	check_limit("g profile: total 3\n--- Memory map: ---\n10-20 /a\n30-40 /b\n", &limits,
		"profile of counts (text): more than 1 mappings, the limit");
	check_limit("g profile: total 3\n1 @ 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1\n"
				"1 @ 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1\n",
		&limits, "profile of counts (text): more than 16 frames in all, the limit");
}

TEST(deep_stacks_lose_their_root)
{
	struct pprof_limits limits = pprof_limits_default;
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 1 << 20);
	limits.stack_depth_max = 2;
	REQUIRE_OK(legacy_decode(
		&a, STR("g profile: total 3\n1 @ 0x1 0x2 0x3\n2 @ 0x4 0x5\n"), &limits, &p, &err), &err);
	CHECK_INT(p->stacks_cut, 1);
	CHECK_INT(p->samples[0].location_n, 2);
	CHECK_INT(p->samples[1].location_n, 2);
	CHECK_INT(p->locations[p->location_ids[0]].address, 0x0);
	CHECK_INT(p->locations[p->location_ids[1]].address, 0x1);
	arena_release(&a);
}

/* $a doubles with each line: the line is limited, not the memory. */
TEST(attributes_that_grow)
{
	struct buf b = { 0 };

	buf_add_cstr(&b, "g profile: total 1\n--- Memory map: ---\na_0_=0123456789abcdef\n");
	for (int i = 1; i < 60; i++)
		buf_printf(&b, "a_%d_=$a_%d_$a_%d_\n", i, i - 1, i - 1);
	buf_add_char(&b, '\0');
	check_limit(b.ptr, &pprof_limits_default,
		"profile of counts (text): line 13 has more than 16384 bytes, the limit");
	buf_clear(&b);
	buf_add_cstr(&b, "g profile: total 1\n--- Memory map: ---\nx=y\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%01001d\n", 0);
	for (size_t i = 0; i < b.len; i++)
		b.ptr[i] = b.ptr[i] == '0' ? '$' : b.ptr[i];
	buf_add_char(&b, '\0');
	check_limit(b.ptr, &pprof_limits_default,
		"profile of counts (text): more than 1000000 '$' in the memory map, the limit");
	buf_clear(&b);
	buf_add_cstr(&b, "g profile: total 1\n--- Memory map: ---\n");
	for (int i = 0; i < 65; i++)
		buf_printf(&b, "x%d=y\n", i);
	buf_add_char(&b, '\0');
	check_limit(b.ptr, &pprof_limits_default,
		"profile of counts (text): more than 64 attributes of the memory map, the limit");
	buf_release(&b);
}

/* Mappings that overlap are tried one by one, so addresses times mappings are limited. */
TEST(work_of_overlapping_mappings)
{
	struct buf b = { 0 };

	buf_add_cstr(&b, "g profile: total 1\n");
	for (int i = 0; i < 200; i++) {
		buf_add_cstr(&b, "1 @");
		for (int k = 0; k < 200; k++)
			buf_printf(&b, " 0x%x", 0x7000000 + i * 200 + k);
		buf_add_cstr(&b, "\n");
	}
	buf_add_cstr(&b, "--- Memory map: ---\n");
	for (int i = 0; i < 4000; i++)
		buf_printf(&b, "%x-%x r-xp 0 00:00 1 /f%d\n", 0x1000 + i, 0x3000 + i, i);
	buf_add_char(&b, '\0');
	check_limit(b.ptr, &pprof_limits_default,
		"profile of counts (text): 40000 locations and 4000 mappings that overlap or lack them");
	buf_release(&b);
}

/* ------------------------------------------------------------------------------------------------
 * Real profiles. */

static struct str load(struct arena *a, const char *path)
{
	struct buf b = { 0 };
	struct str s = { 0 };
	struct err err;

	if (fs_read_file(path, 1 << 20, &b, &err))
		CHECK_FAIL("%s", err.msg);
	else
		s = str_dup(a, buf_str(&b));
	buf_release(&b);
	return s;
}

static int64_t total(const struct pprof *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		sum += p->values[i * p->types_n + type];
	return sum;
}

/* Bytes of the samples with a frame in [start, limit), of one type. */
static int64_t under(const struct pprof *p, uint32_t type, uint64_t start, uint64_t limit)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		for (uint32_t k = 0; k < p->samples[i].location_n; k++) {
			uint32_t id = p->location_ids[p->samples[i].location_first + k];

			if (p->locations[id].address >= start && p->locations[id].address < limit) {
				sum += p->values[i * p->types_n + type];
				break;
			}
		}
	return sum;
}

/*
 * leaf_alloc (0x401196) keeps 26,000 objects of 61.6 MB; other (0x40128b) frees what it takes:
 * 40,000 objects of 3,000 bytes. One of 65,536 bytes was sampled, so the numbers are estimates.
 * jeprof --text prints 28744, 69269792, 120612302 and 65834245: it rounds sums, not each stack.
 */
TEST(what_jemalloc_recorded)
{
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(
		legacy_decode(&a, load(&a, DATA "jemalloc_accum.heap"), &pprof_limits_default, &p, &err),
		&err);
	CHECK_INT(p->types_n, 4);
	CHECK_INT(p->period, 65536);
	CHECK_INT(p->samples_n, 5);
	CHECK_INT(under(p, 2, 0x401196, 0x401235), 28743);
	CHECK_INT(under(p, 3, 0x401196, 0x401235), 69269791);
	CHECK_INT(under(p, 0, 0x40128b, 0x4012c0), 39327);
	CHECK_INT(under(p, 1, 0x40128b, 0x4012c0), 120612301);
	CHECK_INT(under(p, 3, 0x40128b, 0x4012c0), 0);
	REQUIRE_OK(
		legacy_decode(&a, load(&a, DATA "jemalloc.heap"), &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->types_n, 2);
	CHECK_INT(under(p, 1, 0x401196, 0x401235), 65834245);
	CHECK_INT(total(p, 1), 65949608);
	arena_release(&a);
}

/* tcmalloc's heap profiler samples nothing: its numbers are exact. */
TEST(what_gperftools_recorded)
{
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(
		legacy_decode(&a, load(&a, DATA "gperftools.cpu"), &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->period, 5000000);
	CHECK_INT(total(p, 0), 131);
	CHECK_INT(total(p, 1), INT64_C(131) * 5000000);
	CHECK_INT(under(p, 0, 0x401306, 0x401500), 131); /* main */
	REQUIRE_OK(
		legacy_decode(&a, load(&a, DATA "tcmalloc.heap"), &pprof_limits_default, &p, &err), &err);
	CHECK_INT(under(p, 2, 0x401196, 0x401235), 26000);
	CHECK_INT(under(p, 3, 0x401196, 0x401235), 61587000);
	CHECK_INT(under(p, 0, 0x40128b, 0x4012c0), 40000);
	CHECK_INT(under(p, 1, 0x40128b, 0x4012c0), 120000000);
	CHECK_INT(under(p, 3, 0x40128b, 0x4012c0), 0);
	arena_release(&a);
}

/* ------------------------------------------------------------------------------------------------
 * Damage. */

/* A body cut after each byte is read or refused, with words, and nothing is touched beyond it. */
static void cut_everywhere(struct str body)
{
	for (size_t n = 0; n <= body.len; n++) {
		char *copy = malloc(n ? n : 1); /* its end is the sanitizer's */
		struct err err = { 0 };
		struct pprof *p = NULL;
		struct arena a;

		arena_init(&a, 64 << 20);
		memcpy(copy, body.ptr, n);
		if (legacy_decode(&a, (struct str){ copy, n }, &pprof_limits_default, &p, &err))
			CHECK(err.msg[0] && !p);
		else
			CHECK(p && p->types_n);
		arena_release(&a);
		free(copy);
	}
}

TEST(cut_bodies)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < legacy_bodies_n; i++)
		cut_everywhere(legacy_bodies[i].body);
	for (unsigned form = 0; form < 4; form++) {
		buf_clear(&b);
		legacy_cpu_body(&b, form, 9);
		cut_everywhere(buf_str(&b));
	}
	buf_release(&b);
}

/* Each byte order and width gives the same; the handler's two frames are gone, repeats too. */
TEST(forms_of_words)
{
	struct buf first = { 0 }, other = { 0 }, body = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	for (unsigned form = 0; form < 4; form++) {
		arena_init(&a, 0);
		buf_clear(&body);
		buf_clear(&other);
		legacy_cpu_body(&body, form, 70);
		CHECK_OK(legacy_decode(&a, buf_str(&body), &pprof_limits_default, &p, &err), &err);
		print(p, form ? &other : &first);
		if (form)
			CHECK(str_eq(buf_str(&first), buf_str(&other)));
		arena_release(&a);
	}
	CHECK(str_has_prefix(buf_str(&first),
		STR("samples/count cpu/nanoseconds; 1 10000000 @ 401000:/bin/server 4fffff:/bin/server")));
	buf_release(&first);
	buf_release(&other);
	buf_release(&body);
}

TEST(memory_that_runs_out)
{
	struct arena a;

	for (size_t i = 0; i < legacy_bodies_n; i++)
		for (size_t bytes = 1; bytes < 40000; bytes += 1500) {
			struct err err = { 0 };
			struct pprof *p = NULL;

			arena_init(&a, bytes);
			if (legacy_decode(&a, legacy_bodies[i].body, &pprof_limits_default, &p, &err))
				CHECK(err.msg[0] && !p);
			arena_release(&a);
		}
}
