/* Files of each format, by their bytes alone; and what is none of them. */
#include "proto/any/any.h"

#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "tests/check.h"

#define TESTDATA "tests/proto/"
#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}
#define SCHEMA "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
#define FRAMES "\"shared\":{\"frames\":[{\"name\":\"main\"},{\"name\":\"f\"}]},"

static void print_profile(struct buf *out, const struct any_profile *p)
{
	const struct pprof *f = p->pprof;

	buf_printf(out, " " STR_FMT "(", STR_ARG(p->name));
	for (uint32_t i = 0; i < f->types_n; i++) {
		int64_t sum = 0;

		for (uint32_t k = 0; k < f->samples_n; k++)
			sum += f->values[(size_t)k * f->types_n + i];
		buf_printf(out, "%s" STR_FMT ":" STR_FMT "%s%s", i ? " " : "",
			STR_ARG(f->strings[f->types[i].type]), STR_ARG(f->strings[f->types[i].unit]),
			p->kinds[i] != KIND_GAUGE ? "+" : "", sum ? "" : " empty");
	}
	buf_printf(out, ")");
}

/* "pprof process_cpu(samples:count+ cpu:nanoseconds+)"; + is an amount. */
static void show(struct buf *out, struct str body, const char *name)
{
	struct any_file file;
	struct arena a;
	struct err err;

	buf_clear(out);
	arena_init(&a, 1u << 30);
	if (any_decode(&a, body, str_of(name), &file, &err)) {
		buf_printf(out, "%s", err.msg);
	} else {
		buf_printf(out, "%s", any_format_name(file.format));
		for (uint32_t i = 0; i < file.n; i++)
			print_profile(out, &file.v[i]);
	}
	arena_release(&a);
}

TEST(files_of_others)
{
	/* clang-format off */
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "testdata/go_cpu.pb.gz", "pprof process_cpu(samples:count+ cpu:nanoseconds+)" },
		{ "testdata/go_heap.pb.gz",
		  "pprof memory(alloc_objects:count+ alloc_space:bytes+ inuse_objects:count "
		  "inuse_space:bytes)" },
		{ "testdata/go_goroutine.pb.gz", "pprof goroutine(goroutine:count)" },
		{ "testdata/go_goroutineleak.pb.gz", "pprof goroutineleak(goroutineleak:count)" },
		{ "testdata/go_mutex.pb.gz", "pprof mutex(contentions:count+ delay:nanoseconds+)" },
		{ "testdata/go_block.pb.gz", "pprof block(contentions:count+ delay:nanoseconds+)" },
		{ "legacy/testdata/gperftools.cpu",
		  "a format before pprof process_cpu(samples:count+ cpu:nanoseconds+)" },
		{ "folded/testdata/folded", "folded stacks samples(samples:count+)" },
	};
	/* clang-format on */
	struct buf bytes = { 0 }, got = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[200];

		snprintf(path, sizeof(path), TESTDATA "%s", rows[i].path);
		buf_clear(&bytes);
		REQUIRE_OK(fs_read_file(path, 16u << 20, &bytes, &err), &err);
		show(&got, buf_str(&bytes), rows[i].path);
		CHECK_STR(buf_str(&got), rows[i].want);
	}
	buf_release(&bytes);
	buf_release(&got);
}

/* Of a recording each kind of event is a profile; the CPU's is the one that is meant. */
TEST(a_recording_of_java)
{
	struct buf bytes = { 0 };
	struct any_file file;
	struct arena a;
	struct err err;

	arena_init(&a, 1u << 30);
	REQUIRE_OK(fs_read_file(TESTDATA "jfr/recordings/async.jfr.gz", 16u << 20, &bytes, &err), &err);
	REQUIRE_OK(any_decode(&a, buf_str(&bytes), STR("async.jfr.gz"), &file, &err), &err);
	CHECK_INT(file.format, ANY_JFR);
	CHECK(file.n > 1);
	CHECK_STR(any_default(&file)->name, "process_cpu");
	CHECK_INT(file.notes_n, 0);
	buf_clear(&bytes);
	REQUIRE_OK(fs_read_file(TESTDATA "jfr/recordings/jdk25.jfr.gz", 16u << 20, &bytes, &err), &err);
	REQUIRE_OK(any_decode(&a, buf_str(&bytes), STR("jdk25.jfr.gz"), &file, &err), &err);
	REQUIRE(file.notes_n == 1);
	CHECK_STR(file.notes[0],
		"the recorder lost 47 samples of CPU time, about 329 ms; process_cpu lacks them");
	buf_release(&bytes);
	arena_release(&a);
}

TEST(bytes_say_what_they_are)
{
	/* clang-format off */
	static const struct {
		struct str body;
		const char *want;
	} rows[] = {
		{ LIT("main;f 3\nmain;g 4\n"), "folded stacks samples(samples:count+)" },
		{ LIT("main 1"), "folded stacks samples(samples:count+)" },
		{ LIT("\xef\xbb\xbf" "main;f\t3\r\nmain\t1\r\n"), "folded stacks samples(samples:count+)" },
		{ LIT("\xef\xbb\xbf" SCHEMA FRAMES "\"profiles\":[{\"type\":\"sampled\",\"name\":\"t\","
		  "\"unit\":\"none\",\"startValue\":0,\"endValue\":3,\"samples\":[[0]],\"weights\":[2]}]}"),
		  "speedscope samples(samples:count+)" },
		/* One thread; its weights are time. */
		{ LIT(SCHEMA FRAMES "\"profiles\":[{\"type\":\"sampled\",\"name\":\"thread 1\",\"unit\":"
		  "\"milliseconds\",\"startValue\":0,\"endValue\":3,\"samples\":[[0,1],[0]],"
		  "\"weights\":[2,1]}]}"),
		  "speedscope time(time:nanoseconds+)" },
		{ LIT(SCHEMA FRAMES "\"profiles\":[{\"type\":\"evented\",\"name\":\"t\","
		  "\"unit\":\"seconds\","
		  "\"startValue\":0,\"endValue\":3,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":0},"
		  "{\"type\":\"O\",\"frame\":1,\"at\":1},{\"type\":\"C\",\"frame\":1,\"at\":2},"
		  "{\"type\":\"C\",\"frame\":0,\"at\":3}]}]}"),
		  "speedscope time(time:nanoseconds+)" },
		/* As we export it: the type is in the name. */
		{ LIT(SCHEMA FRAMES "\"profiles\":[{\"type\":\"sampled\",\"name\":"
		  "\"memory:inuse_space:bytes:space:bytes {job=\\\"a\\\"}\",\"unit\":\"bytes\","
		  "\"startValue\":0,"
		  "\"endValue\":3,\"samples\":[[0,1],[0]],\"weights\":[2,1]}]}"),
		  "speedscope memory(inuse_space:bytes)" },
		/* Two threads are one profile. */
		{ LIT(SCHEMA FRAMES "\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":"
		  "\"none\",\"startValue\":0,\"endValue\":3,\"samples\":[[0,1]],\"weights\":[2]},"
		  "{\"type\":\"sampled\",\"name\":\"two\",\"unit\":\"none\",\"startValue\":0,"
		  "\"endValue\":3,"
		  "\"samples\":[[0]],\"weights\":[5]}]}"),
		  "speedscope samples(samples:count+)" },
		/* A type without a name, beside one with a name. */
		{ LIT("\x32\0\x32\1u\x0a\4\x08\0\x10\1"), "pprof unnamed(:u empty)" },
		{ LIT("\x32\0\x32\1u\x0a\4\x08\0\x10\1\x0a\4\x08\1\x10\1"), "pprof u(:u empty u:u empty)" },
		{ LIT(""), "profile is empty" },
		{ LIT("{\"a\": 1}"), "speedscope: $schema is not speedscope's" },
		{ LIT("{"), "speedscope: JSON ends at byte 1: expected the end of what begins before" },
		{ LIT("main;f 3\nno cost\n"), "folded stacks: line 2: " },
		{ LIT("<html><body>"),
			"this is a web page: a login or error page may have answered; check the "
			"address and the credentials" },
		{ LIT("{\"traceEvents\":[]}"), "this is a trace of Chrome's format: ui.perfetto.dev" },
		{ LIT("[{\"ph\":\"X\",\"ts\":1}]"), "this is a trace of Chrome's format: ui.perfetto.dev" },
		{ LIT("PERFILE2\0\0\0\0"), "this is perf.data of Linux perf: " },
		{ LIT(SCHEMA FRAMES "\"profiles\":[1]}"), "speedscope: " },
		{ LIT("\0\1\2\3"), "not pprof, folded stacks, speedscope, JFR or a format before pprof; "
			"as pprof: " },
		{ LIT("FLR\0"), "" },
		{ LIT("\x1f\x8b\x08"), "" },
		{ LIT("\x28\xb5\x2f\xfd"), "" },
	};
	/* clang-format on */
	struct buf got = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		show(&got, rows[i].body, "x");
		if (!str_has_prefix(buf_str(&got), str_of(rows[i].want)) || !got.len ||
			(strchr(rows[i].want, '(') && !str_is(buf_str(&got), rows[i].want)))
			CHECK_FAIL("row %zu: got \"" STR_FMT "\", want \"%s\"", i, STR_ARG(buf_str(&got)),
				rows[i].want);
	}
	buf_release(&got);
}

/* The samples of each thread have its name as a label. */
TEST(threads_of_speedscope_are_told_apart)
{
	const struct str body = LIT(SCHEMA FRAMES
		"\"profiles\":[{\"type\":\"sampled\",\"name\":\"one\",\"unit\":\"none\",\"startValue\":0,"
		"\"endValue\":3,\"samples\":[[0,1],[0]],\"weights\":[2,1]},{\"type\":\"sampled\",\"name\":"
		"\"\","
		"\"unit\":\"none\",\"startValue\":0,\"endValue\":3,\"samples\":[[0]],\"weights\":[5]}]}");
	struct buf got = { 0 };
	struct any_file file;
	struct arena a;
	struct err err;

	arena_init(&a, 64u << 20);
	REQUIRE_OK(any_decode(&a, body, STR(""), &file, &err), &err);
	CHECK_INT(file.n, 1);
	for (uint32_t i = 0; i < file.v[0].pprof->samples_n; i++) {
		const struct pprof *p = file.v[0].pprof;
		const struct pprof_label *l = &p->labels[p->samples[i].label_first];

		CHECK_INT(p->samples[i].label_n, 1);
		buf_printf(&got, STR_FMT "=" STR_FMT " %d\n", STR_ARG(p->strings[l->key]),
			STR_ARG(p->strings[l->str]), (int)p->values[i]);
	}
	CHECK_STR(buf_str(&got), "profile=one 1\nprofile=one 2\nprofile=unnamed 5\n");
	buf_release(&got);
	arena_release(&a);
}

TEST(gzip_is_taken_off_once)
{
	struct buf once = { 0 }, twice = { 0 }, got = { 0 };
	struct err err;

	REQUIRE_OK(gzip_compress(STR("main;f 3\n"), 1, &once, &err), &err);
	show(&got, buf_str(&once), "x.folded.gz");
	CHECK_STR(buf_str(&got), "folded stacks samples(samples:count+)");
	REQUIRE_OK(gzip_compress(buf_str(&once), 1, &twice, &err), &err);
	show(&got, buf_str(&twice), "x");
	CHECK_STR(buf_str(&got), "gzip: the profile is compressed twice");
	buf_release(&once);
	buf_release(&twice);
	buf_release(&got);
}

/* What inflates to more than is taken ends there. */
TEST(a_bomb_is_refused)
{
	struct buf raw = { 0 }, gz = { 0 }, got = { 0 };
	struct err err;

	REQUIRE(buf_reserve(&raw, (128u << 20) + 1));
	memset(raw.ptr, 'a', (128u << 20) + 1);
	raw.len = (128u << 20) + 1;
	REQUIRE_OK(gzip_compress(buf_str(&raw), 1, &gz, &err), &err);
	show(&got, buf_str(&gz), "x");
	CHECK(str_find(buf_str(&got), STR("134217728")) >= 0);
	show(&got, buf_str(&raw), "x");
	CHECK_STR(buf_str(&got), "profile is 134217729 bytes, limit 134217728");
	buf_release(&raw);
	buf_release(&gz);
	buf_release(&got);
}
