#include "tests/web/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "promql/engine/engine.h"
#include "proto/pprof.h"
#include "tests/scratch.h"
#include "tsdb/db.h"

#define SAMPLE_NS (10 * NS_PER_MS)

void must(enum err_code rc, const struct err *err)
{
	if (!rc)
		return;
	printf("  cannot go on: %s\n", err->msg);
	exit(1);
}

void storage_open(struct storage *s)
{
	struct engine_options e = { .timeout_ns = NS_PER_HOUR,
		.lookback_ns = 5 * NS_PER_MIN,
		.concurrency_max = 4,
		.samples_max = 1000000,
		.memory_bytes_max = 256u << 20 };
	struct db_options d;
	struct err err;

	*s = (struct storage){ .dir = SCRATCH "epi-web-XXXXXX" };
	if (!scratch_dir(s->dir))
		exit(1);
	db_options_default(&d);
	d.dir = s->dir;
	d.too_old_ns = 100000 * NS_PER_HOUR;
	d.retention_ns = 0;
	must(db_open(&d, &s->db, &err), &err);
	db_sink_init(&s->sink, s->db);
	e.db = s->db;
	must(engine_open(&e, &s->engine, &err), &err);
}

void storage_close(struct storage *s)
{
	struct err err;

	engine_close(s->engine);
	db_close(s->db);
	must(fs_remove_tree(&fs_posix, s->dir, &err), &err);
}

void profile_gz(struct buf *gz, const struct pushed_profile *o)
{
	const char *const names[] = { o->leaf, "main.handle", "main.main" };
	struct pprof_label label = { 0 };
	uint32_t locations[3];
	struct pprof_builder *b;
	struct buf raw = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	must(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, o->cpu ? STR("samples") : STR("goroutine"), STR("count"));
	if (o->cpu)
		pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (int i = 0; i < 3; i++) {
		struct pprof_function fn = { .name = pprof_builder_string(b, str_of(names[i])),
			.start_line = o->starts ? 100 * (i + 1) : 0 };
		struct pprof_line line = { .function = pprof_builder_function(b, &fn),
			.line = fn.start_line + i + 1 };
		struct pprof_location l = { .address = 4096u + (unsigned)i, .mapping = PPROF_NONE };

		locations[i] = pprof_builder_location(b, l, &line, 1);
	}
	if (o->handler) {
		label.key = pprof_builder_string(b, str_of(o->key ? o->key : "handler"));
		label.str = pprof_builder_string(b, str_of(o->handler));
	}
	for (int i = 0; i < 2; i++) {
		int64_t n = i ? o->own : o->slow, values[2] = { n, n * SAMPLE_NS };

		pprof_builder_sample(b, locations + i, 3 - (uint32_t)i, &label, o->handler != NULL, values);
	}
	p = pprof_builder_profile(b);
	p->duration_nanos = o->cpu || o->lasting ? 9 * NS_PER_S : 0;
	p->period_type.type = pprof_builder_string(b, o->cpu ? STR("cpu") : STR("goroutine"));
	p->period_type.unit = pprof_builder_string(b, o->cpu ? STR("nanoseconds") : STR("count"));
	if (o->end_s) {
		p->time_nanos = o->end_s * NS_PER_S - p->duration_nanos;
		p->period = SAMPLE_NS;
	}
	must(pprof_builder_finish(b, &p, &err), &err);
	must(pprof_encode(p, &raw, &err), &err);
	must(gzip_compress(buf_str(&raw), 1, gz, &err), &err);
	buf_release(&raw);
	arena_release(&a);
}
