/* Recordings that are cut and changed: an error with a message, or a whole answer. */
#include "tests/proto/jfr/fixture.h"

/* One chunk, cut at each step-th byte: nothing of it is taken. */
static void check_cut(struct str raw, size_t step)
{
	struct jfr_file *f;
	struct arena work;
	struct err err;

	arena_init(&work, 64 << 20);
	for (size_t len = 0; len < raw.len; len += step) {
		arena_reset(&work);
		err.msg[0] = '\0';
		CHECK(jfr_decode(&work, (struct str){ raw.ptr, len }, &options, &f, &err) == ERR_INVALID);
		CHECK(err.msg[0] != '\0');
	}
	arena_release(&work);
}

/* Each step-th byte is another one. What is accepted has a profile's parts in place. */
static void check_changed(struct str raw, size_t step, unsigned char mask)
{
	size_t accepted = 0, refused = 0;
	struct arena a, work;

	arena_init(&a, 0);
	arena_init(&work, 64 << 20);
	for (size_t i = 0; i < raw.len; i += step) {
		char *copy = malloc(raw.len); /* of its own, so that a read beyond it is seen */
		struct jfr_file *f;
		struct err err = { 0 };

		memcpy(copy, raw.ptr, raw.len);
		copy[i] = (char)(copy[i] ^ mask);
		arena_reset(&work);
		if (jfr_decode(&work, (struct str){ copy, raw.len }, &options, &f, &err)) {
			CHECK(err.msg[0] != '\0');
			refused++;
		} else {
			for (uint32_t k = 0; k < f->profiles_n; k++) {
				const struct pprof *p = f->profiles[k].pprof;

				CHECK(p->samples_n && p->samples_n <= f->profiles[k].events);
				for (uint32_t n = 0; n < p->location_ids_n; n++)
					CHECK(p->location_ids[n] < p->locations_n);
			}
			accepted++;
		}
		free(copy);
	}
	CHECK(accepted && refused); /* a letter in a name; a length */
	arena_release(&work);
	arena_release(&a);
}

static void everything(struct writer *w)
{
	writer_init(w);
	writer_usual(w);
	writer_event(w, W_EXECUTION, "5 3 1 1 1 1 1 2");
	writer_event(w, W_WALL, "5 2 7");
	writer_event(w, W_IN_TLAB, "5 4096 1 16");
	writer_event(w, W_OUT_TLAB, "5 1 100");
	writer_event(w, W_ALLOC_SAMPLE, "5 1 5000");
	writer_event(w, W_MONITOR, "5 6000001 1");
	writer_event(w, W_PARK, "5 20 1");
	writer_event(w, W_LIVE, "5 4 24");
	writer_event(w, W_OLD, "5 1 24");
	writer_event(w, W_OLD, "6 2 24");
	writer_event(w, W_MALLOC, "5 0 64");
	writer_event(w, W_CPU_TIME, "5 1 9 0 7000000 0");
	writer_event(w, W_CPU_LOST, "5 3 9");
	writer_setting(w, W_CPU_TIME, "enabled", "true");
	writer_setting(w, W_EXECUTION, "period", "20 ms");
	writer_chunk(w);
}

TEST(made_by_hand)
{
	struct writer w;

	everything(&w);
	check_cut(buf_str(&w.out), CHECK_STEP);
	check_changed(buf_str(&w.out), CHECK_STEP, 0x01);
	check_changed(buf_str(&w.out), CHECK_STEP, 0x80);
	check_changed(buf_str(&w.out), CHECK_STEP, 0xff);
	writer_release(&w);
}

/* What the whole chunks have is read, whatever is left of the next one. */
TEST(cut_behind_a_whole_chunk)
{
	struct buf want = { 0 }, got = { 0 };
	struct jfr_file *f;
	struct writer w;
	struct arena a;
	struct err err;
	size_t first;

	arena_init(&a, 64 << 20);
	everything(&w);
	first = w.out.len;
	REQUIRE_OK(jfr_decode(&a, buf_str(&w.out), &options, &f, &err), &err);
	CHECK_INT(f->cut_bytes, 0);
	show_file(&want, f);
	writer_usual(&w);
	writer_event(&w, W_WALL, "5 2 7");
	writer_chunk(&w);
	for (size_t len = first + 1; len < w.out.len; len += CHECK_STEP) {
		arena_reset(&a);
		REQUIRE_OK(jfr_decode(&a, (struct str){ w.out.ptr, len }, &options, &f, &err), &err);
		CHECK_INT(f->cut_bytes, len - first);
		CHECK_INT(f->chunks_n, 1);
		buf_clear(&got);
		show_file(&got, f);
		CHECK(str_eq(buf_str(&got), buf_str(&want)));
	}
	memset(w.out.ptr + first + 8, 0, 8); /* the recorder did not finish it */
	REQUIRE_OK(jfr_decode(&a, buf_str(&w.out), &options, &f, &err), &err);
	CHECK_INT(f->cut_bytes, w.out.len - first);
	memset(w.out.ptr + first, 'x', 4);
	CHECK_INT(jfr_decode(&a, buf_str(&w.out), &options, &f, &err), ERR_INVALID);
	buf_release(&want);
	buf_release(&got);
	writer_release(&w);
	arena_release(&a);
}

TEST(recorded)
{
	struct arena a;
	struct str raw;

	arena_init(&a, 0);
	raw = recording(&a, "agent.jfr");
	check_cut(raw, 7 * CHECK_STEP);
	check_changed(raw, 23 * CHECK_STEP, 0x80);
	check_changed(raw, 29 * CHECK_STEP, 0x03);
	raw = recording(&a, "jdk.jfr");
	check_cut(raw, 1999 * CHECK_STEP);
	check_changed(raw, 499 * CHECK_STEP, 0x41);
	arena_release(&a);
}

/* Each budget of memory, for the answer and for what is freed at the end. */
TEST(memory)
{
	struct jfr_limits limits = jfr_limits_default;
	struct jfr_options with = { .limits = &limits, .sample_rate_hz = 100 };
	size_t accepted = 0, refused = 0;
	struct writer w;

	everything(&w);
	for (size_t bytes = 1; bytes < 80000; bytes += 100) {
		for (int own = 0; own < 2; own++) {
			struct jfr_file *f;
			struct err err = { 0 };
			enum err_code rc;
			struct arena a;

			arena_init(&a, own ? 1 << 20 : bytes);
			limits.arena_bytes_max = own ? bytes : 1 << 20;
			rc = jfr_decode(&a, buf_str(&w.out), &with, &f, &err);
			CHECK(rc == ERR_OK || (rc == ERR_LIMIT && err.msg[0]));
			CHECK(rc || f->profiles_n == 5);
			accepted += !rc;
			refused += rc != ERR_OK;
			arena_release(&a);
		}
	}
	CHECK(accepted && refused);
	writer_release(&w);
}
