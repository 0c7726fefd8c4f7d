/* Open indexes: what is found under which key, what is wanted, and what a newer index changes. */
#include <unistd.h>

#include "tests/check.h"
#include "tsdb/debuginfo/names/index_cache.h"

struct town {
	char dir[64];
	struct debuginfo_store *store;
	struct index_cache *indexes;
	struct buf wanted;
};

static void on_wanted(void *ctx, const struct debuginfo_id *id, struct str path)
{
	buf_printf(ctx, "%s " STR_FMT " " STR_FMT "\n",
		debuginfo_id_kind_name((enum debuginfo_id_kind)id->kind), STR_ARG(debuginfo_id_text(id)),
		STR_ARG(path));
}

static bool open_town(struct town *t)
{
	struct debuginfo_options o = { 0 };
	struct err err;

	*t = (struct town){ .dir = "/tmp/epi-indexes-XXXXXX" };
	return mkdtemp(t->dir) && !debuginfo_store_open(&fs_posix, t->dir, &o, &t->store, &err) &&
		!index_cache_open(t->store, on_wanted, &t->wanted, &t->indexes, &err);
}

static void close_town(struct town *t)
{
	char command[128];
	FILE *f;

	index_cache_close(t->indexes);
	debuginfo_store_close(t->store);
	buf_release(&t->wanted);
	snprintf(command, sizeof(command), "rm -rf '%s'", t->dir);
	if ((f = popen(command, "r")))
		pclose(f);
}

/* The index of one function at 0x1000. */
static void publish(struct town *t, enum debuginfo_id_kind kind, const char *text, const char *path,
	const char *function, enum debuginfo_quality quality)
{
	FILE *empty = tmpfile();
	struct symindex_builder *b;
	struct debuginfo_job *j;
	struct buf out = { 0 };
	struct debuginfo_id id;
	uint32_t f, frame;
	struct err err;

	REQUIRE(empty);
	REQUIRE_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	CHECK_OK(symindex_function(b, str_of(function), SYMINDEX_NONE, 0, &f, &err), &err);
	CHECK_OK(symindex_frame(b, SYMINDEX_NONE, f, SYMINDEX_NONE, 0, &frame, &err), &err);
	CHECK_OK(symindex_add(b, 0x1000, 0x1010, frame, (enum symindex_quality)quality, &err), &err);
	CHECK_OK(symindex_finish(b, str_of(text), &out, &err), &err);
	symindex_builder_close(b);
	CHECK_OK(debuginfo_id_init(&id, kind, str_of(text), &err), &err);
	REQUIRE_OK(debuginfo_job_begin(t->store, &id,
				   &(struct debuginfo_offer){
					   .kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .path = str_of(path) },
				   dup(fileno(empty)), &j, &err),
		&err);
	CHECK_INT(write(j->out_fd, out.ptr, out.len), (ssize_t)out.len);
	CHECK_OK(debuginfo_job_publish(j, &(struct debuginfo_found){ .quality = quality }, &err), &err);
	buf_release(&out);
	fclose(empty);
}

/* The function at 0x1000 of what is found, "-": nothing is. */
static void check_found(
	struct town *t, const char *build_id, const char *path, const char *want, bool want_by_path)
{
	struct symindex_location l = { .name = STR("no name") };
	bool by_path;
	struct open_index *x = index_cache_get(t->indexes, str_of(build_id), str_of(path), &by_path);

	if (x)
		(void)symindex_find(open_index_symbols(x), 0x1000, &l, 1);
	CHECK_STR(x ? l.name : STR("-"), want);
	CHECK(by_path == want_by_path);
	index_cache_release(t->indexes, x);
}

static void check_wanted(struct town *t, const char *want)
{
	CHECK_STR(buf_str(&t->wanted), want);
	buf_clear(&t->wanted);
}

TEST(by_build_id_of_any_kind)
{
	static const char hash[] = "00112233445566778899aabbccddeeff";
	struct town t;

	REQUIRE(open_town(&t));
	check_found(&t, "aa11", "/bin/a", "-", false);
	check_found(&t, hash, "/bin/b", "-", false);
	check_found(&t, "x/y-z", "/bin/c", "-", false);
	check_wanted(
		&t, "gnu aa11 /bin/a\nfile 00112233445566778899aabbccddeeff /bin/b\ngo x/y-z /bin/c\n");
	publish(&t, DEBUGINFO_GNU, "aa11", "/bin/a", "in_a", DEBUGINFO_SYMBOLS);
	publish(&t, DEBUGINFO_FILE, hash, "/bin/b", "in_b", DEBUGINFO_SYMBOLS);
	publish(&t, DEBUGINFO_GO, "x/y-z", "/bin/c", "in_c", DEBUGINFO_SYMBOLS);
	check_found(&t, "AA11", "/bin/a", "in_a", false);
	check_found(&t, hash, "", "in_b", false);
	check_found(&t, "x/y-z", "", "in_c", false);
	check_wanted(&t, "");
	close_town(&t);
}

TEST(better_names_replace_those_that_are_open)
{
	struct open_index *held;
	struct town t;
	bool by_path;
	struct symindex_location l;

	REQUIRE(open_town(&t));
	publish(&t, DEBUGINFO_GNU, "aa11", "/bin/a", "worse", DEBUGINFO_SYMBOLS);
	held = index_cache_get(t.indexes, STR("aa11"), STR(""), &by_path);
	REQUIRE(held);
	publish(&t, DEBUGINFO_GNU, "aa11", "/bin/a", "better", DEBUGINFO_DWARF);
	check_found(&t, "aa11", "", "better", false);
	CHECK_INT(symindex_find(open_index_symbols(held), 0x1000, &l, 1), 1);
	CHECK_STR(l.name, "worse");
	index_cache_drop(t.indexes, held); /* the newer one stays */
	index_cache_release(t.indexes, held);
	check_found(&t, "aa11", "", "better", false);
	held = index_cache_get(t.indexes, STR("aa11"), STR(""), &by_path);
	REQUIRE(held);
	index_cache_drop(t.indexes, held);
	index_cache_release(t.indexes, held);
	check_found(&t, "aa11", "/bin/a", "-", false);
	check_wanted(&t, "gnu aa11 /bin/a\n");
	close_town(&t);
}

TEST(without_build_id_by_the_only_file_of_that_name)
{
	struct town t;

	REQUIRE(open_town(&t));
	publish(&t, DEBUGINFO_GNU, "aa11", "/srv/one/app", "in_a", DEBUGINFO_DWARF);
	check_found(&t, "", "/usr/bin/app", "in_a", true);
	check_found(&t, "", "/usr/bin/apple", "-", false);
	check_found(&t, "", "", "-", false);
	publish(&t, DEBUGINFO_GNU, "bb22", "/srv/two/app", "in_b", DEBUGINFO_DWARF);
	check_found(&t, "", "/usr/bin/app", "-", false);
	check_wanted(&t, "");
	close_town(&t);
}

TEST(nobody_has_the_kernels_files)
{
	struct town t;

	REQUIRE(open_town(&t));
	check_found(&t, "aa11", "[vdso]", "-", false);
	check_found(&t, "aa11", "vmlinux", "-", false);
	check_found(&t, "", "[vdso]", "-", false);
	check_found(&t, "not printable \x01", "/bin/a", "-", false);
	check_wanted(&t, "");
	close_town(&t);
}
