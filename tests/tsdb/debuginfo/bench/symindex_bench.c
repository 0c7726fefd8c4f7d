/*
 * A symbol index as of a large binary: bytes, time and memory of building it, look-ups per second.
 *
 *   tests/tsdb/debuginfo/bench/run.sh BUILD [MILLIONS_OF_SEGMENTS]
 *
 * Functions of 25 segments on average, of which many are in inlined calls up to five deep; lines
 * go forward and back as an optimiser leaves them. One function in ten comes out of order, as those
 * of templates do.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/map.h"
#include "tsdb/debuginfo/index/format.h"

#define PER_FUNCTION 25u
#define FILES 20000u
#define LOOKUPS 4000000u
#define ROUNDS 3
#define DEPTH_MAX 16u

static struct err err;
static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

static void must(enum err_code rc)
{
	if (rc) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
}

/* CPU time of the process: other work on the machine does not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double resident_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

static uint32_t add_function(struct symindex_builder *b, uint32_t number, uint32_t file)
{
	char text[160];
	uint32_t id;
	int n;

	/* Four functions have one name for people. */
	n = snprintf(text, sizeof(text),
		"_ZN7company10product%03u9ClassName14do_work_%06xIN7company6detail%uParameterEEEvPKc"
		"RKSt6vectorIiSaIiEE",
		number % 500, number / 4, 9 + number % 4);
	must(symindex_function(b, (struct str){ text, (size_t)n }, file, draw(5000), &id, &err));
	return id;
}

struct chain {
	uint32_t function[DEPTH_MAX], frame[DEPTH_MAX], file[DEPTH_MAX], line[DEPTH_MAX];
	uint32_t first[DEPTH_MAX];
	unsigned depth;
};

static void fill_function(struct symindex_builder *b, uint32_t number, uint32_t segments,
	const uint32_t *files, uint64_t at)
{
	struct chain c = { .depth = 1 };
	static uint32_t inlined[1024];
	static uint32_t inlined_n;

	c.file[0] = files[number / 50 % FILES];
	c.function[0] = add_function(b, number, c.file[0]);
	c.first[0] = draw(5000);
	if (inlined_n < 1024)
		inlined[inlined_n++] = c.function[0];
	else
		inlined[draw(1024)] = c.function[0];
	for (uint32_t i = 0; i < segments; i++) {
		uint32_t length = 2 + draw(27), top = c.depth - 1;

		if (draw(100) < 12 && c.depth < 5 && i) {
			c.function[c.depth] = inlined[draw(inlined_n)];
			c.file[c.depth] = files[draw(FILES)];
			c.first[c.depth] = draw(2000);
			top = c.depth++;
		} else if (draw(100) < 20 && c.depth > 1) {
			c.depth--;
			top--;
		}
		c.line[top] = c.first[top] + draw(top ? 3 : 12);
		must(symindex_frame(b, top ? c.frame[top - 1] : SYMINDEX_NONE, c.function[top], c.file[top],
			c.line[top], &c.frame[top], &err));
		must(symindex_add(b, at, at + length, c.frame[top], SYMINDEX_DWARF, &err));
		at += length;
	}
}

static uint64_t build(uint32_t segments, struct buf *out)
{
	struct symindex_builder *b;
	uint32_t *files = malloc(FILES * sizeof(*files)), functions = segments / PER_FUNCTION;
	uint64_t at = 0x400000, late = 0;
	char path[100];

	must(symindex_builder_open(&symindex_limits_default, &b, &err));
	for (uint32_t i = 0; i < FILES; i++) {
		snprintf(
			path, sizeof(path), "/build/source/company/product%u/component/file_%u.cc", i / 50, i);
		must(symindex_file(b, str_of(path), &files[i], &err));
	}
	/* Each function has room of 16 bytes a segment. */
	for (uint32_t i = 0; i < functions; i++) {
		uint32_t n = 1 + draw(2 * PER_FUNCTION - 1);
		uint64_t to = at;

		if (i % 10 == 9) /* beyond the others */
			to = UINT64_C(0x100000000) + hash_u64(late++) % (segments / 16) * 1024;
		else
			at += (uint64_t)n * 16;
		fill_function(b, i, n, files, to);
	}
	must(symindex_finish(b, STR("0123456789abcdef0123"), out, &err));
	symindex_builder_close(b);
	free(files);
	return at;
}

/* Random addresses, no two in a row near each other. Returns those a second. */
static double look_up(const struct symindex *x, uint64_t end, size_t *frames)
{
	struct symindex_location v[DEPTH_MAX];
	double begin = cpu_s();

	*frames = 0;
	for (uint32_t i = 0; i < LOOKUPS; i++)
		*frames += symindex_find(
			x, 0x400000 + (hash_u64(i) & UINT64_C(0xffffffffff)) % (end - 0x400000), v, DEPTH_MAX);
	return LOOKUPS / (cpu_s() - begin);
}

static double look_up_ascending(const struct symindex *x, uint64_t end)
{
	struct symindex_location v[DEPTH_MAX];
	double begin = cpu_s();

	for (uint32_t i = 0; i < LOOKUPS; i++)
		symindex_find(x, 0x400000 + (end - 0x400000) / LOOKUPS * i, v, DEPTH_MAX);
	return LOOKUPS / (cpu_s() - begin);
}

int main(int argc, char **argv)
{
	uint32_t millions = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10, n;
	double begin = cpu_s(), rate, best = 0, best_ascending = 0, ns;
	static const char *const names[] = { "segments", "blocks", "buckets", "scopes", "functions",
		"files", "strings", "loads" };
	struct buf out = { 0 };
	struct header h;
	struct symindex *x;
	size_t frames = 0;
	uint64_t end;

	if (!millions || millions > 60) {
		fprintf(stderr, "usage: symindex_bench [MILLIONS], 1 to 60\n");
		return 1;
	}
	n = millions * 1000000;
	end = build(n, &out);
	printf("built        %.2f s of CPU, %.0f MiB at most with the index\n", cpu_s() - begin,
		resident_mib());
	printf("index        %zu bytes, %.2f a segment\n", out.len, (double)out.len / n);
	must(header_read(buf_str(&out), &h, &err));
	for (unsigned i = 0; i < SECTIONS; i++)
		printf("  %-10s %10" PRIu64 " bytes, %9" PRIu64 " of %u bits\n", names[i],
			h.section[i].bytes, h.section[i].count, h.section[i].record);
	begin = cpu_s();
	for (int i = 0; i < 1000; i++) {
		must(symindex_open(buf_str(&out), &x, &err));
		symindex_close(x);
	}
	ns = (cpu_s() - begin) * 1e6;
	printf("opened       %.0f ns\n", ns);
	must(symindex_open(buf_str(&out), &x, &err));
	for (int round = 0; round < ROUNDS; round++) {
		rate = look_up(x, end, &frames);
		printf("look-ups     %.2f M/s%s\n", rate / 1e6, round ? "" : ", pages verified");
		best = rate > best ? rate : best;
		rate = look_up_ascending(x, end);
		best_ascending = rate > best_ascending ? rate : best_ascending;
	}
	printf("warm         %.2f M/s random, %.2f M/s ascending, %.1f names each\n", best / 1e6,
		best_ascending / 1e6, (double)frames / LOOKUPS);
	must(symindex_damaged(x, &err));
	symindex_close(x);
	buf_release(&out);
	return 0;
}
