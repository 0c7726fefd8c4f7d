/*
 * Bodies per second of CPU that one core inflates, decodes, and does both with, for each file.
 *
 *   tests/proto/bench/run.sh DIR FILE...
 *
 * One line per file: name, body bytes, raw bytes, then the three rates, each the best of ROUNDS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "proto/pprof.h"

#define ROUNDS 15
#define ROUND_NS (NS_PER_S / 10)
#define FILE_BYTES_MAX (64u << 20)

enum what { INFLATE = 1, DECODE = 2 };

static struct arena arena;

static void run(unsigned what, struct str body, struct str raw)
{
	struct pprof *p;
	struct err err;
	enum err_code rc = ERR_OK;

	arena_reset(&arena);
	if (what & INFLATE)
		rc = pprof_inflate(&arena, body, &pprof_limits_default, &raw, &err);
	if (!rc && (what & DECODE))
		rc = pprof_decode(&arena, raw, &pprof_limits_default, &p, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
}

/* CPU time of the process: other work on the machine does not count. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static double rate(unsigned what, struct str body, struct str raw)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t begin = cpu_ns(), took;
		uint64_t n = 0;
		double r;

		do {
			for (int i = 0; i < 16; i++, n++)
				run(what, body, raw);
			took = cpu_ns() - begin;
		} while (took < ROUND_NS);
		r = (double)n * (double)NS_PER_S / (double)took;
		best = r > best ? r : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct buf body = { 0 };
		struct arena a;
		struct err err;
		struct str raw;

		arena_init(&arena, 0);
		arena_init(&a, 0);
		if (fs_read_file(argv[i], FILE_BYTES_MAX, &body, &err) ||
			pprof_inflate(&a, buf_str(&body), &pprof_limits_default, &raw, &err)) {
			fprintf(stderr, "%s: %s\n", argv[i], err.msg);
			return 1;
		}
		printf("%s %zu %zu %.0f %.0f %.0f\n", argv[i], body.len, raw.len,
			rate(INFLATE, buf_str(&body), raw), rate(DECODE, buf_str(&body), raw),
			rate(INFLATE | DECODE, buf_str(&body), raw));
		fflush(stdout);
		buf_release(&body);
		arena_release(&a);
		arena_release(&arena);
	}
	return 0;
}
