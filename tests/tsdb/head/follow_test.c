/*
 * A database that follows another one by its segments answers as that one does, after each of them:
 * rows, links, numbers, sums, counts, types; with new jobs and series, epochs that end, deletions,
 * snapshots, gaps, damage, restarts of either; and a directory restored of segments goes on.
 */
#include <stdatomic.h>

#include "tests/tsdb/disk.h"
#include "tests/tsdb/head/follow_world.h"
#include "tsdb/lists/inventory.h"

TEST(a_follower_answers_as_the_one_it_follows)
{
	struct follow_world w = { 0 };

	REQUIRE(world_open(&w, NULL));
	for (int s = 1; s < 260; s += 20) {
		work(&w, 1 + s / 60, s, s + 20);
		CHECK_INT(ship(&w), 0);
		follow(&w);
		if (!same_answers(w.f.db, w.follower))
			break;
	}
	/* Late rows, in a window that has been there for long. */
	put_profile(&w, 0, 70, 15);
	put_profile(&w, 9, 1, 115);
	ship(&w);
	follow(&w);
	same_answers(w.f.db, w.follower);
	/* A follower that comes new reads all of it. */
	db_close(w.follower);
	REQUIRE(follower_open(&w));
	follow(&w);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}

static void tiny_memory(struct db_options *o)
{
	o->symbols_bytes = 1;
}

TEST(epochs_that_end_are_followed)
{
	struct follow_world w = { 0 };

	REQUIRE(world_open(&w, tiny_memory));
	for (int s = 1; s < 160; s += 10) {
		work(&w, 2, s, s + 10);
		db_maintain(w.f.db, true);
		ship(&w);
		follow(&w);
		db_maintain(w.follower, true);
		if (!same_answers(w.f.db, w.follower))
			break;
	}
	CHECK(metric_value("epimetheus_tsdb_epochs_ended_total") > 0);
	world_close(&w);
}

/* Symbols are loaded further, not again from the start, and a table is there once. */
TEST(symbols_are_loaded_from_where_they_ended)
{
	struct follow_world w = { 0 };
	struct db_status of_f, of_g;

	REQUIRE(world_open(&w, NULL));
	for (int s = 1; s < 90; s += 8) {
		work(&w, 1, s, s + 8);
		ship(&w);
		follow(&w);
		same_answers(w.f.db, w.follower);
	}
	db_status(w.f.db, &of_f);
	db_status(w.follower, &of_g);
	CHECK_INT(of_g.nodes, of_f.nodes);
	CHECK_INT(of_g.strings, of_f.strings);
	CHECK_INT(of_g.partitions, of_f.partitions);
	CHECK_INT(of_g.series, of_f.series);
	CHECK_INT(of_g.max_ns, of_f.max_ns);
	world_close(&w);
}

/* ---- deletions ---- */

static void read_deleted_file(struct follow_world *w)
{
	struct buf b = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "%s/head/0.deleted", w->f.dir);
	CHECK_OK(fs_read_file(path, 1 << 20, &b, &w->err), &w->err);
	w->deleted = str_dup(&w->f.arena, buf_str(&b));
	buf_release(&b);
}

TEST(deletions_are_followed)
{
	struct follow_world w = { 0 };
	struct matcher m;

	REQUIRE(world_open(&w, NULL));
	work(&w, 2, 1, 50);
	ship(&w);
	follow(&w);
	CHECK_OK(matcher_init(&m, MATCH_EQ, STR("job"), STR("job1"), &w.err), &w.err);
	CHECK_OK(db_delete_series(w.f.db, &m, 1, 10 * SEC, 30 * SEC, &w.err), &w.err);
	read_deleted_file(&w);
	CHECK_OK(head_follow_deleted(w.follower, 0, w.v[0].head.identity, w.deleted, &w.err), &w.err);
	CHECK_OK(head_follow_deleted(w.follower, 0, w.v[0].head.identity, w.deleted, &w.err), &w.err);
	same_answers(w.f.db, w.follower);
	CHECK_OK(db_delete_series(w.f.db, &m, 1, 30 * SEC, 32 * SEC, &w.err), &w.err);
	read_deleted_file(&w);
	work(&w, 2, 50, 60);
	ship(&w);
	follow(&w);
	same_answers(w.f.db, w.follower);
	/* A new follower never shows deleted rows. */
	db_close(w.follower);
	REQUIRE(follower_open(&w));
	follow(&w);
	same_answers(w.f.db, w.follower);
	CHECK_INT(head_follow_deleted(w.follower, 0, 1, w.deleted, &w.err), ERR_NOT_FOUND);
	matcher_release(&m);
	world_close(&w);
}

/* ---- snapshots, gaps, damage ---- */

TEST(a_snapshot_takes_the_place_of_what_was_there)
{
	struct follow_world w = { 0 };
	struct db_querier *q;

	REQUIRE(world_open(&w, NULL));
	work(&w, 2, 1, 40);
	ship(&w);
	follow(&w);
	/* Nobody says what was put: it all comes again. */
	work(&w, 2, 40, 45);
	REQUIRE(fixture_reopen(&w.f));
	work(&w, 2, 45, 50);
	CHECK_OK(db_querier_open(w.follower, FOLLOW_ALL, NULL, &q, &w.err), &w.err);
	CHECK_INT(ship(&w), 1);
	CHECK_INT(w.n, 1);
	follow(&w);
	CHECK(w.follower->dropping != NULL);
	db_querier_close(q);
	same_answers(w.f.db, w.follower);
	work(&w, 3, 50, 60);
	CHECK_INT(ship(&w), 0);
	follow(&w);
	CHECK(w.follower->dropping == NULL);
	same_answers(w.f.db, w.follower);
	/* A restart that does say so needs none. */
	REQUIRE(fixture_reopen(&w.f));
	ship_again(&w);
	work(&w, 3, 60, 70);
	CHECK_INT(ship(&w), 0);
	follow(&w);
	same_answers(w.f.db, w.follower);
	head_follow_drop(w.follower, 0, w.v[0].head.identity);
	CHECK_INT(head_followed(w.follower, 0, w.v[0].head.identity), 0);
	CHECK_INT(w.follower->windows_n, 0);
	CHECK_INT(series_n(w.follower->series), 0);
	world_close(&w);
}

static void check_refused(struct follow_world *w, const struct segment *of, struct str bytes,
	enum err_code code, const char *text)
{
	uint64_t had = head_followed(w->follower, of->start_ns, of->identity);

	CHECK_INT(head_follow(w->follower, of, bytes, (struct str){ 0 }, &w->err), code);
	if (text && !strstr(w->err.msg, text))
		CHECK_FAIL("%s, want %s", w->err.msg, text);
	CHECK_INT(head_followed(w->follower, of->start_ns, of->identity), had);
}

TEST(segments_that_do_not_fit_are_refused)
{
	struct follow_world w = { 0 };
	struct segment other;
	struct str bytes;

	REQUIRE(world_open(&w, NULL));
	for (int s = 1; s < 40; s += 10) {
		work(&w, 2, s, s + 10);
		ship(&w);
	}
	REQUIRE(w.n == 4);
	bytes = buf_str(&w.v[1].bytes);
	check_refused(&w, &w.v[1].head, bytes, ERR_NOT_FOUND, "batch 1 is missing");
	follow(&w);
	other = w.v[3].head;
	other.last++;
	check_refused(&w, &other, buf_str(&w.v[3].bytes), ERR_CORRUPT, "it is another one");
	other = w.v[3].head;
	other.first = other.last + 2;
	other.last = other.first + 1;
	check_refused(&w, &other, bytes, ERR_NOT_FOUND, "is missing");
	/* What is there is passed over. */
	CHECK_OK(head_follow(w.follower, &w.v[1].head, bytes, (struct str){ 0 }, &w.err), &w.err);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}

/* Whatever byte is wrong: an error, and the right segment can be followed afterwards. */
TEST(damaged_segments_change_nothing)
{
	struct follow_world w = { 0 };
	struct kept_segment *k;

	REQUIRE(world_open(&w, NULL));
	work(&w, 1, 1, 10);
	ship(&w);
	follow(&w);
	work(&w, 2, 10, 13);
	ship(&w);
	REQUIRE(w.n == 2);
	k = &w.v[1];
	for (size_t i = 0; i < k->bytes.len; i += 1 + k->bytes.len / 400) {
		k->bytes.ptr[i] ^= 0x20;
		if (head_follow(w.follower, &k->head, buf_str(&k->bytes), (struct str){ 0 }, &w.err) ==
			ERR_OK)
			break; /* a byte that zstd does not use */
		k->bytes.ptr[i] ^= 0x20;
		if (head_follow(w.follower, &k->head, (struct str){ k->bytes.ptr, i }, (struct str){ 0 },
				&w.err) == ERR_OK)
			CHECK_FAIL("cut at %zu", i);
	}
	follow(&w);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}

/* The follower's disk fails at the n-th write; then it is followed from the start again. */
static bool follower_fails_at(uint64_t n)
{
	struct follow_world w = { 0 };
	struct disk *d;
	bool hit;

	if (!world_open(&w, NULL)) {
		CHECK_FAIL("%s", w.err.msg);
		return false;
	}
	db_close(w.follower);
	d = disk_open(w.dir);
	w.o.store = disk_store(d);
	CHECK_OK(db_open(&w.o, &w.follower, &w.err), &w.err);
	work(&w, 1, 1, 5);
	ship(&w);
	follow(&w);
	work(&w, 2, 5, 9);
	ship(&w);
	disk_fail(d, n, DISK_WRITE, DISK_ONCE);
	for (size_t i = 0; i < w.n; i++) {
		const struct kept_segment *k = &w.v[i];

		if (head_followed(w.follower, k->head.start_ns, k->head.identity) < k->head.last &&
			head_follow(w.follower, &k->head, buf_str(&k->bytes), (struct str){ 0 }, &w.err))
			CHECK_INT(w.err.code, ERR_IO);
	}
	hit = disk_failed(d);
	disk_fail(d, 0, DISK_WRITE, DISK_ONCE);
	follow(&w);
	same_answers(w.f.db, w.follower);
	world_close(&w);
	disk_close(d);
	return hit;
}

TEST(a_follower_whose_disk_failed_begins_again)
{
	for (uint64_t n = 1; follower_fails_at(n); n++)
		;
}

/* ---- queries meanwhile ---- */

struct asking {
	struct follow_world *w;
	atomic_bool end;
	atomic_int asked;
};

/* Each row that is seen can be understood, and rows never become fewer. */
static void ask(void *ctx)
{
	struct asking *t = ctx;
	size_t most = 0;

	while (!atomic_load(&t->end)) {
		struct line_list l = { 0 };
		size_t warnings = 0;
		struct buf text = { 0 };
		struct err err;

		CHECK(rows_each(t->w->follower, FOLLOW_ALL, add_row, &l, &warnings, &err));
		CHECK(sum_text(t->w->follower, NULL, FOLLOW_ALL, &text, &warnings, &err));
		add_counts(t->w->follower, &l);
		CHECK_INT(warnings, 0);
		CHECK(l.n >= most);
		most = l.n;
		for (size_t i = 0; i < l.n; i++)
			free((void *)(uintptr_t)l.v[i].ptr);
		free(l.v);
		buf_release(&text);
		atomic_fetch_add(&t->asked, 1);
	}
}

TEST(queries_run_while_segments_come)
{
	struct follow_world w = { 0 };
	struct asking t = { .w = &w };
	struct thread threads[2];
	int had = 0;

	REQUIRE(world_open(&w, NULL));
	for (int i = 0; i < 2; i++)
		CHECK_OK(thread_start(&threads[i], "ask", ask, &t, &w.err), &w.err);
	for (int s = 1; s < 220; s += 12) {
		work(&w, 1 + s / 40, s, s + 12);
		if (s % 5 == 1) /* a snapshot now and then */
			REQUIRE(fixture_reopen(&w.f));
		ship(&w);
		follow(&w);
		for (; atomic_load(&t.asked) < had; usleep(1000))
			;
		had = atomic_load(&t.asked) + 1;
	}
	atomic_store(&t.end, true);
	for (int i = 0; i < 2; i++)
		thread_join(&threads[i]);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}

/* ---- a directory that was lost ---- */

static void restore(struct follow_world *w, const char *dir, size_t leave_out)
{
	struct inventory_entry in[8];
	struct head_restore *r = NULL;
	size_t windows = 0;

	for (size_t i = 0; i < w->n - leave_out; i++) {
		const struct kept_segment *k = &w->v[i];

		if (k->head.first == 1) {
			if (r)
				CHECK_OK(head_restore_end(r, &w->err), &w->err);
			in[windows++] = (struct inventory_entry){ .min_ns = k->head.start_ns,
				.max_ns = k->head.end_ns };
			CHECK_OK(head_restore_open(&fs_posix, NULL, dir, &k->head, &r, &w->err), &w->err);
		}
		CHECK_OK(head_restore_add(r, &k->head, buf_str(&k->bytes), &w->err), &w->err);
	}
	CHECK_OK(head_restore_end(r, &w->err), &w->err);
	CHECK_OK(inventory_write(&fs_posix, dir, in, windows, &w->err), &w->err);
}

TEST(a_lost_directory_comes_back)
{
	struct follow_world w = { 0 };
	struct head_restore *r;
	char text[96];

	REQUIRE(world_open(&w, NULL));
	for (int s = 1; s < 100; s += 10) {
		work(&w, 2, s, s + 10);
		ship(&w);
	}
	follow(&w);
	work(&w, 2, 105, 120);
	ship(&w);
	follow(&w);
	REQUIRE(w.n > 10);
	db_close(w.f.db);
	w.f.db = NULL;
	snprintf(text, sizeof(text), "%s/head", w.f.dir);
	CHECK_OK(fs_remove_tree(&fs_posix, w.f.dir, &w.err), &w.err);
	CHECK_OK(fs_mkdir_all(&fs_posix, w.f.dir, &w.err), &w.err);
	/* A crash in the midst of it. */
	CHECK_OK(head_restore_open(&fs_posix, NULL, w.f.dir, &w.v[0].head, &r, &w.err), &w.err);
	CHECK_INT(head_restore_add(r, &w.v[1].head, buf_str(&w.v[1].bytes), &w.err), ERR_NOT_FOUND);
	head_restore_close(r);
	restore(&w, w.f.dir, 0);
	CHECK_INT(head_restore_open(&fs_posix, NULL, w.f.dir, &w.v[0].head, &r, &w.err), ERR_EXISTS);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(losses_open_n(w.f.db->losses), 0);
	same_answers(w.f.db, w.follower);
	/* It goes on, with the same ids, and without a snapshot. */
	ship_again(&w);
	work(&w, 3, 120, 130);
	CHECK_INT(ship(&w), 0);
	follow(&w);
	same_answers(w.f.db, w.follower);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(losses_open_n(w.f.db->losses), 0);
	same_answers(w.f.db, w.follower);
	world_close(&w);
}
