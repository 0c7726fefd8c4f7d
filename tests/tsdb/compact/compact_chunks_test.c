/* Joining blocks makes chunks as long as their columns want them. */
#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/block/block.h"

#define HOURS 4
#define EVERY_S 10

static const char *const types[] = { "bytes/count", NULL };

/* A level that wanders a little at twenty stacks. */
static struct pprof *scrape(struct fixture *f, int64_t i)
{
	char text[20][40];
	const char *lines[21] = { NULL };

	for (int k = 0; k < 20; k++) {
		snprintf(text[k], sizeof(text[k]), "main;f%d %lld", k,
			(long long)(1000 + k * 17 + (i * (k + 3) / 40) % 9));
		lines[k] = text[k];
	}
	return profile_of(&f->arena, types, lines);
}

static bool fill(struct town *w, int window_s, enum value_kind kind)
{
	struct labels l = town_labels(w, "job0", "i0");

	w->f.o.window_ns = window_s * SEC;
	w->f.o.too_old_ns = 0;
	w->f.o.retention_ns = 0;
	w->f.o.block_max_ns = HOURS * 3600 * SEC;
	if (!fixture_reopen(&w->f))
		return false;
	for (int64_t s = EVERY_S; s <= HOURS * 3600 + 2 * window_s; s += EVERY_S)
		if (append_wait(w->f.db, l, (T0 + s) * SEC, EVERY_S * SEC, scrape(&w->f, s / EVERY_S),
				&kind, false, NULL, &w->f.err))
			return false;
	return true;
}

/* Rows of each chunk of the first hours, in order; *bytes of them all. */
static void chunks_of(struct town *w, struct buf *out, size_t *bytes)
{
	struct chunk *chunk = chunk_open();
	struct block_chunks *it;
	struct str v;
	int64_t first;
	struct err err;

	*bytes = 0;
	for (size_t i = 0; i < w->f.db->blocks_n; i++) {
		struct block *b = w->f.db->blocks[i]->block;
		const struct block_meta *m = block_meta(b);

		if (m->min_ns >= (T0 + HOURS * 3600) * SEC)
			break;
		CHECK_OK(block_chunks_open(b, true, &it, &err), &err);
		block_chunks_seek(it, 0, m->min_ns, m->max_ns);
		while (!block_chunks_next(it, &v, &first, &err)) {
			CHECK_OK(chunk_parse(chunk, v, &err), &err);
			buf_printf(out, "%s%u", out->len ? " " : "", chunk_rows_n(chunk));
			*bytes += v.len;
		}
		block_chunks_close(it);
	}
	chunk_close(chunk);
}

static const struct {
	enum value_kind kind;
	int window_s;
	const char *want;
} cases[] = {
	{ KIND_GAUGE, 1200, "360 360 360 360" },
	{ KIND_GAUGE, 600, "360 360 360 360" },
	{ KIND_DELTA, 1200, "120 120 120 120 120 120 120 120 120 120 120 120" },
};

TEST(joined_chunks_are_long)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf got = { 0 };
		struct town w;
		size_t bytes;

		REQUIRE(town_open(&w));
		REQUIRE(fill(&w, cases[i].window_s, cases[i].kind));
		town_compact(&w);
		chunks_of(&w, &got, &bytes);
		CHECK_STR(buf_str(&got), cases[i].want);
		printf("  %zu bytes of chunks\n", bytes);
		CHECK_INT(town_failures, 0);
		buf_release(&got);
		town_close(&w);
	}
}
