/*
 * Blocks with files of another block, as after a restore that mixes two copies of a directory: each
 * answer is right, or says that something is missing, after each start.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/block/block_internal.h"

#define FILES_N 4u
#define BLOCKS_N 3u
#define ENDS_N (BLOCKS_N * 2 + 1)

#define LISTS_N 4u

/* Files about the whole directory. */
static const char *const lists[LISTS_N] = { "inventory", "inventory.copy", "losses",
	"losses.copy" };
static const char *const files[FILES_N] = { "rows.ldb", "rollups.ldb", "spare", "meta.json" };

/* A town of three blocks that differ in size, and what is true of it. */
struct swaps {
	struct town w;
	const char *block[BLOCKS_N];
	char *sums[ENDS_N][ENDS_N]; /* by window */
};

/* Windows begin and end within blocks, and between them. */
static int64_t edge_ns(size_t i)
{
	return (T0 + (int64_t)i * TOWN_WINDOW_S / 2) * SEC;
}

static void print_sum(struct swaps *s, size_t from, size_t to, struct buf *out, size_t *warnings)
{
	*warnings = 0;
	buf_clear(out);
	if (!sum_text(s->w.f.db, NULL, edge_ns(from), edge_ns(to), out, warnings, &s->w.f.err)) {
		buf_printf(out, "error: %s", s->w.f.err.msg);
		*warnings = 1;
	}
	buf_add_char(out, '\0');
}

static char *below(struct swaps *s, const char *name)
{
	return arena_printf(&s->w.f.arena, "%s/%s", s->w.f.dir, name);
}

static bool swaps_open(struct swaps *s)
{
	struct buf text = { 0 };
	size_t warnings;

	*s = (struct swaps){ 0 };
	if (!town_open(&s->w))
		return false;
	/* Blocks of the same jobs, so that the ids of one mean something in the other too. */
	town_fill(&s->w, 2, 3, T0, T0 + 10, 1);
	town_fill(&s->w, 2, 2, T0 + 10, T0 + 20, 1);
	town_fill(&s->w, 1, 3, T0 + 20, T0 + 60, 2);
	town_compact(&s->w);
	CHECK_LAYOUT(&s->w, "1 1 1 head head head");
	for (size_t i = 0; i < BLOCKS_N; i++)
		s->block[i] = town_block(&s->w, i);
	for (size_t from = 0; from < ENDS_N; from++)
		for (size_t to = from + 1; to < ENDS_N; to++) {
			print_sum(s, from, to, &text, &warnings);
			CHECK_INT(warnings, 0);
			s->sums[from][to] = arena_printf(&s->w.f.arena, "%s", text.ptr);
		}
	buf_release(&text);
	db_close(s->w.f.db);
	s->w.f.db = NULL;
	for (size_t i = 0; i < BLOCKS_N; i++)
		town_copy(&s->w, s->block[i], arena_printf(&s->w.f.arena, "kept/%d", (int)i));
	for (size_t i = 0; i < LISTS_N; i++)
		if (fs_exists(below(s, lists[i])))
			town_copy(&s->w, lists[i], arena_printf(&s->w.f.arena, "kept/%s", lists[i]));
	return true;
}

static void swaps_reset(struct swaps *s)
{
	db_close(s->w.f.db);
	s->w.f.db = NULL;
	CHECK_OK(fs_remove_tree(&fs_posix, below(s, "blocks"), &s->w.f.err), &s->w.f.err);
	for (size_t i = 0; i < LISTS_N; i++) {
		const char *kept = arena_printf(&s->w.f.arena, "kept/%s", lists[i]);

		unlink(below(s, lists[i]));
		if (fs_exists(below(s, kept)))
			town_copy(&s->w, kept, lists[i]);
	}
	for (size_t i = 0; i < BLOCKS_N; i++)
		town_copy(&s->w, arena_printf(&s->w.f.arena, "kept/%d", (int)i), s->block[i]);
}

/* File `name` of block `from` stands in block `to`. */
static void put(struct swaps *s, size_t from, size_t to, const char *name)
{
	town_copy(&s->w, arena_printf(&s->w.f.arena, "kept/%d/%s", (int)from, name),
		arena_printf(&s->w.f.arena, "%s/%s", s->block[to], name));
}

static const char *first_line(const char *text)
{
	static char line[80];

	snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
	return line;
}

/* Answers over windows that touch blocks in `hurt` are right or warned; others are right. */
static void check_answers(struct swaps *s, unsigned hurt, const char *what)
{
	struct buf text = { 0 };
	size_t warnings;

	for (int start = 0; start < 2; start++) {
		if (!fixture_reopen(&s->w.f))
			CHECK_FAIL("%s: does not open", what);
		for (size_t from = 0; from < ENDS_N && s->w.f.db; from++)
			for (size_t to = from + 1; to < ENDS_N; to++) {
				unsigned touched = 0;
				bool right;

				for (size_t i = 0; i < BLOCKS_N; i++)
					touched |= (from < 2 * i + 2 && to > 2 * i) << i;
				print_sum(s, from, to, &text, &warnings);
				right = strcmp(text.ptr, s->sums[from][to]) == 0;
				if (!right && !warnings)
					CHECK_FAIL("%s, start %d, %d to %d: %s without a warning", what, start,
						(int)from, (int)to, first_line(text.ptr));
				if (!(touched & hurt) && (!right || warnings))
					CHECK_FAIL("%s, start %d, %d to %d: not touched, but %s", what, start,
						(int)from, (int)to, first_line(text.ptr));
			}
	}
	buf_release(&text);
}

/* Something is found in each block of `hurt`. */
static void check_verify(struct swaps *s, unsigned hurt, const char *what)
{
	for (size_t i = 0; i < BLOCKS_N; i++) {
		struct err damaged = { 0 };
		struct block *b = NULL;
		bool sick = block_open(below(s, s->block[i]), NULL, NULL, &b, &damaged, NULL) != ERR_OK ||
			damaged.code || block_verify(b, NULL, NULL, NULL);

		if (sick != (hurt >> i & 1))
			CHECK_FAIL("%s: block %d is %s", what, (int)i,
				sick ? "whole, but something is found" : "not whole");
		block_close(b);
	}
}

static void swaps_close(struct swaps *s)
{
	TOWN_END(&s->w);
}

/*
 * Each set of files of block `from` is put into block `to`, with `exchange` those of `to` into
 * `from` as well. Something is found in a block with other files, and answers are right or warned.
 */
static void sweep_files(size_t from, size_t to, bool exchange)
{
	unsigned hurt = 1u << to | (exchange ? 1u << from : 0);
	struct swaps s;

	REQUIRE(swaps_open(&s));
	for (unsigned mask = 1; mask < 1u << FILES_N; mask++) {
		struct buf what = { 0 };

		swaps_reset(&s);
		for (size_t i = 0; i < FILES_N; i++) {
			if (!(mask >> i & 1))
				continue;
			put(&s, from, to, files[i]);
			if (exchange)
				put(&s, to, from, files[i]);
			buf_printf(&what, "%s, ", files[i]);
		}
		buf_add_char(&what, '\0');
		check_verify(&s, hurt, what.ptr);
		check_answers(&s, hurt, what.ptr);
		buf_release(&what);
	}
	swaps_close(&s);
}

TEST(files_of_two_blocks_are_exchanged)
{
	sweep_files(0, 1, true);
}

TEST(a_block_has_files_of_a_neighbour)
{
	sweep_files(2, 1, false);
}

TEST(directories_have_other_names)
{
	static const char *const names[] = { "blocks/01M00000000000000000000000",
		"blocks/7ZZZZZZZZZZZZZZZZZZZZZZZZZ" };
	struct swaps s;

	REQUIRE(swaps_open(&s));
	for (size_t i = 0; i < 2; i++) {
		swaps_reset(&s);
		town_move(&s.w, s.block[1], names[i]);
		check_answers(&s, 2, "renamed");
		/* Two directories hold the same block. */
		swaps_reset(&s);
		town_copy(&s.w, s.block[1], names[i]);
		check_answers(&s, 2, "doubled");
		CHECK_OK(fs_remove_tree(&fs_posix, below(&s, names[i]), &s.w.f.err), &s.w.f.err);
	}
	swaps_close(&s);
}

/* ---- one block, and what is said of it ---- */

static const struct {
	const char *file;
	bool opens, raw;
	const char *said; /* %1$s: the directory; %2$s: its block, %3$s: the other */
} cases[] = {
	{ "rows.ldb", true, false, "%s/rows.ldb is a file of block %s" },
	{ "rollups.ldb", false, false, "open block: %s/rollups.ldb is a file of block %s" },
	{ "meta.json", true, true, "%s/meta.json is a file of block %s" },
};

TEST(a_file_of_another_block_is_named)
{
	struct swaps s;
	char want[300];

	REQUIRE(swaps_open(&s));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 }, damaged = { 0 };
		struct block *b = NULL;
		char *dir = below(&s, s.block[0]);

		swaps_reset(&s);
		put(&s, 1, 0, cases[i].file);
		CHECK_INT(
			block_open(dir, NULL, NULL, &b, &damaged, &err), cases[i].opens ? ERR_OK : ERR_CORRUPT);
		snprintf(want, sizeof(want), cases[i].said, dir, s.block[1] + strlen("blocks/"));
		CHECK_STR(str_of(b ? damaged.msg : err.msg), want);
		if (b) {
			CHECK_STR(str_of(block_meta(b)->ulid.text), s.block[0] + strlen("blocks/"));
			CHECK_INT(block_has_raw(b), cases[i].raw);
		}
		block_close(b);
	}
	swaps_close(&s);
}

/* Nothing of a copy of small records is believed that is not this block's. */
TEST(the_spare_of_another_block_is_not_used)
{
	struct swaps s;
	struct err damaged = { 0 };
	struct block *b = NULL;
	struct arena a;
	struct block_series series;

	REQUIRE(swaps_open(&s));
	swaps_reset(&s);
	put(&s, 2, 0, "spare");
	REQUIRE_OK(block_open(below(&s, s.block[0]), NULL, NULL, &b, &damaged, &s.w.f.err), &s.w.f.err);
	CHECK_INT(damaged.code, ERR_OK);
	CHECK(block_spare(b, &damaged) == NULL);
	CHECK_INT(damaged.code, ERR_CORRUPT);
	arena_init(&a, 0);
	CHECK_OK(block_series(b, 0, &a, &series, &s.w.f.err), &s.w.f.err);
	arena_release(&a);
	block_close(b);
	swaps_close(&s);
}

/* ---- files of one block in each other's places ---- */

static const struct {
	const char *from, *to;
	bool opens, raw, spare;
	const char *said; /* %s: the directory */
} places[] = {
	{ "rollups.ldb", "rows.ldb", true, false, true, "%s/rows.ldb is the block's rollups.ldb" },
	{ "spare", "rows.ldb", true, false, true, "%s/rows.ldb is the block's spare" },
	{ "rows.ldb", "rollups.ldb", false, false, false,
		"open block: %s/rollups.ldb is the block's rows.ldb" },
	{ "spare", "rollups.ldb", false, false, false,
		"open block: %s/rollups.ldb is the block's spare" },
	{ "rows.ldb", "spare", true, true, false, "%s/spare is the block's rows.ldb" },
	{ "rollups.ldb", "spare", true, true, false, "%s/spare is the block's rollups.ldb" },
};

/* Each says that it is this block's, and is whole: so it says which file it is, too. */
TEST(files_of_one_block_change_places)
{
	struct swaps s;
	char want[300];

	REQUIRE(swaps_open(&s));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct err err = { 0 }, damaged = { 0 }, why = { 0 };
		struct block *b = NULL;
		char *dir = below(&s, s.block[1]);

		swaps_reset(&s);
		town_copy(&s.w, arena_printf(&s.w.f.arena, "kept/1/%s", places[i].from),
			arena_printf(&s.w.f.arena, "%s/%s", s.block[1], places[i].to));
		CHECK_INT(block_open(dir, NULL, NULL, &b, &damaged, &err),
			places[i].opens ? ERR_OK : ERR_CORRUPT);
		snprintf(want, sizeof(want), places[i].said, dir);
		if (b) {
			CHECK_INT(block_has_raw(b), places[i].raw);
			CHECK_INT(block_spare(b, &why) != NULL, places[i].spare);
		}
		CHECK_STR(str_of(why.code ? why.msg : b ? damaged.msg : err.msg), want);
		block_close(b);
		check_verify(&s, 2, places[i].said);
		check_answers(&s, places[i].spare || !places[i].opens ? 2 : 0, places[i].said);
	}
	swaps_close(&s);
}

/* The page that says which block a file is of may be damaged like any other. */
TEST(a_damaged_first_page_is_made_up_for)
{
	struct swaps s;

	REQUIRE(swaps_open(&s));
	for (size_t i = 0; i < 2; i++) {
		char *path = arena_printf(&s.w.f.arena, "%s/%s", below(&s, s.block[0]), files[i]);
		struct buf bytes = { 0 };

		swaps_reset(&s);
		CHECK_OK(fs_read_file(path, 64u << 20, &bytes, &s.w.f.err), &s.w.f.err);
		bytes.ptr[3] ^= 1;
		CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&bytes), &s.w.f.err), &s.w.f.err);
		buf_release(&bytes);
		check_verify(&s, 1, "first page");
		check_answers(&s, 0, "first page");
	}
	swaps_close(&s);
}

TEST(blocks_of_newer_versions_are_refused)
{
	static const struct {
		int version;
		const char *said;
	} versions[] = {
		{ 5, "version 5 was written by a newer program; this one reads versions 1 to 4" },
		{ 9, "version 9 was written by a newer program; this one reads versions 1 to 4" },
	};
	struct swaps s;
	struct arena a;

	REQUIRE(swaps_open(&s));
	arena_init(&a, 0);
	for (size_t i = 0; i < 2; i++) {
		char *dir = below(&s, s.block[0]), *path = arena_printf(&a, "%s/meta.json", dir);
		struct buf text = { 0 };
		char want[400], *sum;
		struct err err;

		swaps_reset(&s);
		CHECK_OK(fs_read_file(path, 1 << 20, &text, &err), &err);
		text.ptr[strlen("{\"version\":")] = (char)('0' + versions[i].version);
		sum = strstr(text.ptr, "\"checksum\"");
		snprintf(sum, 32, "\"checksum\":\"%016" PRIx64 "\"}",
			hash_bytes(text.ptr, (size_t)(sum - text.ptr), 0));
		text.ptr[text.len - 1] = '\n';
		CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&text), &err), &err);
		buf_release(&text);
		s.w.f.o.dir = s.w.f.dir;
		CHECK_INT(db_open(&s.w.f.o, &s.w.f.db, &err), ERR_UNSUPPORTED);
		snprintf(want, sizeof(want), "open database %s: %s/meta.json: %s", s.w.f.dir, dir,
			versions[i].said);
		CHECK_STR(str_of(err.msg), want);
		s.w.f.db = NULL;
	}
	arena_release(&a);
	swaps_close(&s);
}
