/*
 * Requests per second of CPU that one core decodes: the yardstick is `gen bench`.
 *
 *   tests/proto/otlp/bench/run.sh BUILD
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "proto/otlp/otlp.h"

#define ROUNDS 15
#define ROUND_NS (NS_PER_S / 10)

static struct arena arena;

static bool keep(void *ctx, struct str *key)
{
	(void)ctx;
	return !str_is(*key, "thread.id") && !str_is(*key, "cpu.logical_number");
}

static const struct otlp_options options = { &otlp_limits_default, keep, NULL };

static void run(struct str raw)
{
	struct otlp_request *r;
	struct err err;

	arena_reset(&arena);
	if (raw.len && raw.ptr[0] == '{' ? otlp_decode_json(&arena, raw, &options, &r, &err) :
									   otlp_decode(&arena, raw, &options, &r, &err)) {
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

int main(int argc, char **argv)
{
	struct buf body = { 0 };
	double best = 0, r;
	struct err err;

	if (argc != 2 || fs_read_file(argv[1], 64 << 20, &body, &err)) {
		fprintf(stderr, "usage: otlp_bench FILE\n");
		return 1;
	}
	arena_init(&arena, 0);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t begin = cpu_ns(), took;
		uint64_t n = 0;

		do {
			for (int i = 0; i < 16; i++, n++)
				run(buf_str(&body));
			took = cpu_ns() - begin;
		} while (took < ROUND_NS);
		r = (double)n * (double)NS_PER_S / (double)took;
		best = r > best ? r : best;
	}
	printf("%.0f\n", best);
	arena_release(&arena);
	buf_release(&body);
	return 0;
}
