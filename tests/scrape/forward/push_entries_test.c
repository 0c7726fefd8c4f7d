/* What one shard sends to another is what arrives there, for profiles of all forms. */
#include "scrape/forward/push_entries.h"

#include <glob.h>

#include "base/clock.h"
#include "base/fs.h"
#include "proto/any/any.h"
#include "proto/jfr/jfr.h"
#include "proto/otlp/otlp.h"
#include "tests/check.h"
#include "tests/proto/corpus.h"
#include "tests/scrape/forward/same_profile.h"

#define FILE_BYTES_MAX (16u << 20)
#define NOW (INT64_C(1795326350123456789))

static const struct label series[] = { { STR("__name__"), STR("process_cpu") },
	{ STR("instance"), STR("10.0.0.1:6060") }, { STR("job"), STR("shop\xc3\xa9") } };

static size_t sent_n; /* by all tests of a run */

/* Writes it and reads it back; what arrives is in the arena. */
static bool pass(struct arena *a, const struct sink_profile *p, struct sink_profile *out)
{
	struct buf entry = { 0 };
	uint64_t assignment = 0;
	struct err err;
	enum err_code rc;

	if ((rc = push_entry_write(p, 7, &entry, &err)) ||
		(rc = push_entry_read(a, str_dup(a, buf_str(&entry)), out, &assignment, &err)))
		CHECK_FAIL("%s", err.msg);
	else
		CHECK_INT(assignment, 7);
	buf_release(&entry);
	return !rc;
}

static void pass_profile(const char *name, const struct pprof *profile)
{
	struct sink_profile p = {
		.labels = { series, 3 }, .ts_ns = NOW, .interval_ns = 15 * NS_PER_S, .profile = profile
	};
	enum value_kind *kinds;
	struct sink_profile got;
	const char *differs;
	struct arena a;

	arena_init(&a, 0);
	kinds = arena_array(&a, enum value_kind, profile->types_n + 1);
	for (uint32_t i = 0; i < profile->types_n; i++)
		kinds[i] = (enum value_kind)(i % 3);
	p.kinds = kinds;
	p.as_sent = profile->samples_n % 2;
	p.gap_max_ns = profile->samples_n % 3 ? 5 * NS_PER_MIN : 0;
	if (pass(&a, &p, &got) && (differs = same_sink_profile(&p, &got)))
		CHECK_FAIL("%s: %s differs", name, differs);
	sent_n++;
	arena_release(&a);
}

/* Labels with units, comments, drop_frames, wrong sizes: all that the decoder takes. */
TEST(hand_made_pprof)
{
	struct pprof *p;
	struct arena a;
	struct err err;

	sent_n = 0;
	for (size_t i = 0; i < corpus_n; i++) {
		if (corpus[i].message)
			continue;
		arena_init(&a, 0);
		REQUIRE_OK(pprof_decode(&a, corpus[i].body, &pprof_limits_default, &p, &err), &err);
		pass_profile(corpus[i].name, p);
		arena_release(&a);
	}
	CHECK(sent_n > 20);
}

static void with_files(const char *pattern, void (*fn)(const char *path, struct str body))
{
	struct buf body = { 0 };
	struct err err;
	glob_t files;

	REQUIRE(!glob(pattern, 0, NULL, &files));
	for (size_t i = 0; i < files.gl_pathc; i++) {
		buf_clear(&body);
		REQUIRE_OK(fs_read_file(files.gl_pathv[i], FILE_BYTES_MAX, &body, &err), &err);
		fn(files.gl_pathv[i], buf_str(&body));
	}
	globfree(&files);
	buf_release(&body);
}

static void pass_any(const char *path, struct str body)
{
	struct any_file f;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	if (!any_decode(&a, body, STR(""), &f, &err))
		for (uint32_t i = 0; i < f.n; i++)
			pass_profile(path, f.v[i].pprof);
	arena_release(&a);
}

/* Recorded ones, and every seed of the fuzz drivers that is a profile. */
TEST(pprof_java_stacks_and_formats_before)
{
	sent_n = 0;
	with_files("tests/proto/testdata/*", pass_any);
	CHECK_INT(sent_n, 8);
	with_files("tests/proto/jfr/recordings/*.jfr.gz", pass_any);
	CHECK(sent_n >= 15);
	with_files("tests/proto/legacy/testdata/*", pass_any);
	with_files("tests/proto/folded/testdata/*", pass_any);
	CHECK(sent_n >= 25);
	with_files("tests/fuzz/pprof/*", pass_any);
	with_files("tests/fuzz/any/*", pass_any);
	with_files("tests/fuzz/legacy/*", pass_any);
	with_files("tests/fuzz/folded/*", pass_any);
	CHECK(sent_n > 60);
}

static void pass_otlp(const char *path, struct str body)
{
	static const struct otlp_options options = { .limits = &otlp_limits_default };
	struct otlp_request *r;
	struct arena a;
	struct str raw;
	struct err err;

	arena_init(&a, 0);
	if (!pprof_inflate(&a, body, &pprof_limits_default, &raw, &err) &&
		!otlp_decode(&a, raw, &options, &r, &err))
		for (uint32_t i = 0; i < r->profiles_n; i++)
			pass_profile(path, r->profiles[i].pprof);
	arena_release(&a);
}

TEST(otlp)
{
	sent_n = 0;
	with_files("tests/proto/otlp/testdata/*.pb.gz", pass_otlp);
	CHECK(sent_n > 10);
	with_files("tests/fuzz/otlp/*", pass_otlp);
	with_files("tests/proto/otlp/drawn/*", pass_otlp);
	CHECK(sent_n > 30);
}

/* Profiles of one series become one; it may have what no single one had. */
TEST(several_profiles_in_one)
{
	const struct pprof *v[3];
	struct pprof *all;
	struct otlp_request *r;
	static const struct otlp_options options = { .limits = &otlp_limits_default };
	struct buf body = { 0 };
	struct arena a;
	struct str raw;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(fs_read_file("tests/proto/otlp/testdata/p2-standalone-99hz-steady.pb.gz",
				   FILE_BYTES_MAX, &body, &err),
		&err);
	REQUIRE_OK(pprof_inflate(&a, buf_str(&body), &pprof_limits_default, &raw, &err), &err);
	REQUIRE_OK(otlp_decode(&a, raw, &options, &r, &err), &err);
	REQUIRE(r->profiles_n >= 3);
	for (uint32_t i = 0; i < 3; i++)
		v[i] = r->profiles[i].pprof;
	REQUIRE_OK(pprof_concat(&a, v, 3, &all, &err), &err);
	pass_profile("several", all);
	buf_release(&body);
	arena_release(&a);
}

static struct pprof *linked(struct arena *a, uint32_t samples, uint32_t links)
{
	struct pprof_link *v = arena_array(a, struct pprof_link, links);
	uint32_t *of = arena_array(a, uint32_t, samples);
	struct pprof_builder *b;
	struct pprof *p = NULL;
	struct err err;

	CHECK_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	for (uint32_t i = 0; i < samples; i++) {
		const int64_t value = i;

		pprof_builder_sample(b, NULL, 0, NULL, 0, &value);
		of[i] = i % links;
	}
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	for (uint32_t i = 1; i < links; i++) {
		memset(v[i].trace_id, (int)i, sizeof(v[i].trace_id));
		memset(v[i].span_id, (int)(i >> 8) + 1, sizeof(v[i].span_id));
	}
	p->links = v;
	p->links_n = links;
	p->sample_links = of;
	p->stacks_cut = 4000000000u;
	return p;
}

TEST(links_and_cut_stacks)
{
	static const struct {
		uint32_t samples, links;
	} rows[] = { { 0, 1 }, { 1, 1 }, { 5, 3 }, { 300, 70000 }, { 70000, 300 }, { 200000, 1 } };
	struct arena a;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pprof *p;

		arena_init(&a, 0);
		p = linked(&a, rows[i].samples, rows[i].links);
		if (!rows[i].samples)
			p->sample_links = NULL;
		pass_profile("links", p);
		arena_release(&a);
	}
}

/* Long ones are compressed on their way; what cannot be made short is refused before it is sent. */
TEST(long_profiles)
{
	struct sink_profile p = { .labels = { series, 3 }, .ts_ns = NOW, .interval_ns = NS_PER_S };
	static const enum value_kind kinds[] = { KIND_DELTA };
	struct pprof_builder *b;
	struct pprof *profile;
	struct buf entry = { 0 };
	uint64_t state = 1;
	struct arena a;
	struct err err;
	struct str s;
	char *text;

	arena_init(&a, 0);
	text = arena_alloc(&a, PUSH_ENTRY_BYTES_MAX);
	s = (struct str){ text, PUSH_ENTRY_BYTES_MAX };
	memset(text, 'x', s.len);
	for (int noise = 0; noise < 2; noise++) {
		for (size_t i = 0; noise && i + 8 <= s.len; i += 8) {
			state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
			memcpy(text + i, &state, 8);
		}
		REQUIRE_OK(pprof_builder_open(&a, &b, &err), &err);
		pprof_builder_type(b, STR("samples"), STR("count"));
		pprof_builder_comment(b, s);
		REQUIRE_OK(pprof_builder_finish(b, &profile, &err), &err);
		p.profile = profile;
		p.kinds = kinds;
		if (!noise) {
			pass_profile("long", profile);
			continue;
		}
		CHECK_INT(push_entry_write(&p, 1, &entry, &err), ERR_LIMIT);
		CHECK(strstr(err.msg, " bytes on its way to another shard, limit 33554432"));
	}
	buf_release(&entry);
	arena_release(&a);
}

/* ---- bytes that are wrong ---- */

static void make_entry(struct arena *a, struct buf *out)
{
	static const enum value_kind kinds[] = { KIND_GAUGE };
	struct sink_profile p = { .labels = { series, 3 },
		.ts_ns = NOW,
		.interval_ns = NS_PER_S,
		.kinds = kinds,
		.profile = linked(a, 3, 2) };
	struct err err;

	CHECK_OK(push_entry_write(&p, 300, out, &err), &err);
}

static enum err_code read_entry(struct str entry, struct err *err)
{
	struct sink_profile p;
	uint64_t assignment;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 64u << 20);
	rc = push_entry_read(&a, entry, &p, &assignment, err);
	arena_release(&a);
	return rc;
}

TEST(an_entry_that_is_cut_short_is_refused)
{
	struct buf entry = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	make_entry(&a, &entry);
	CHECK_OK(read_entry(buf_str(&entry), &err), &err);
	for (size_t n = 0; n < entry.len; n++)
		if (read_entry((struct str){ entry.ptr, n }, &err) != ERR_INVALID)
			CHECK_FAIL("%zu bytes of %zu are accepted", n, entry.len);
	buf_add_char(&entry, 0);
	CHECK_INT(read_entry(buf_str(&entry), &err), ERR_INVALID);
	CHECK_STR(str_of(err.msg), "the profile does not end where its entry ends");
	buf_release(&entry);
	arena_release(&a);
}

static const struct label spaced[] = { { STR("__name__"), STR("a b") } };
static const struct label dashed[] = { { STR("__name__"), STR("a") }, { STR("b-c"), STR("d") } };
static const struct label bytes[] = { { STR("__name__"), STR("a") }, { STR("b"), STR("\xff") } };

/* One field is wrong, the others are as they should be. */
static const struct {
	const char *what;
	struct labels labels;
	int64_t ts_ns, interval_ns, gap_max_ns;
	int kind;
	const char *message;
} wrong[] = {
	{ "no name", { series + 1, 2 }, NOW, NS_PER_S, 0, 0, "labels: no name of a profile" },
	{ "a name", { spaced, 1 }, NOW, NS_PER_S, 0, 0, "labels: no name of a profile" },
	{ "a label", { dashed, 2 }, NOW, NS_PER_S, 0, 0, "labels: a name or a value is not valid" },
	{ "bytes", { bytes, 2 }, NOW, NS_PER_S, 0, 0, "labels: a name or a value is not valid" },
	{ "before 1970", { series, 3 }, -1, NS_PER_S, 0, 0,
		"the profile's time is before 1970 or after 2116" },
	{ "far away", { series, 3 }, TIME_MAX_NS, NS_PER_S, 0, 0,
		"the profile's time is before 1970 or after 2116" },
	{ "no interval", { series, 3 }, NOW, 0, 0, 0, "the profile's interval is not valid" },
	{ "long", { series, 3 }, NOW, PUSH_INTERVAL_MAX_NS + 1, 0, 0,
		"the profile's interval is not valid" },
	{ "gap", { series, 3 }, NOW, NS_PER_S, -1, 0, "the profile's interval is not valid" },
	{ "kind", { series, 3 }, NOW, NS_PER_S, 0, 3, "kinds: 3 is none" },
};

TEST(fields_are_checked)
{
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const enum value_kind kinds[] = { (enum value_kind)wrong[i].kind };
		const struct sink_profile p = { .labels = wrong[i].labels,
			.ts_ns = wrong[i].ts_ns,
			.interval_ns = wrong[i].interval_ns,
			.gap_max_ns = wrong[i].gap_max_ns,
			.kinds = kinds,
			.profile = linked(&a, 2, 1) };
		struct buf entry = { 0 };
		struct err err = { 0 };

		CHECK_OK(push_entry_write(&p, 1, &entry, &err), &err);
		if (read_entry(buf_str(&entry), &err) != ERR_INVALID ||
			strcmp(err.msg, wrong[i].message) != 0)
			CHECK_FAIL("%s: \"%s\"", wrong[i].what, err.msg);
		buf_release(&entry);
	}
	arena_release(&a);
}

TEST(bodies)
{
	struct buf body = { 0 };
	struct cursor entries;
	struct err err;
	unsigned n;

	CHECK_INT(push_body_open(STR(""), &entries, &n, &err), ERR_INVALID);
	CHECK_STR(str_of(err.msg), "the body is empty");
	CHECK_INT(push_body_open(STR("\2"), &entries, &n, &err), ERR_UNSUPPORTED);
	CHECK_STR(str_of(err.msg),
		"version 2 of profiles between shards; this server has 1: upgrade all shards");
	CHECK_INT(push_body_open(STR("\1"), &entries, &n, &err), ERR_INVALID);
	CHECK_STR(str_of(err.msg), "the body has no profile");
	push_body_begin(&body);
	for (unsigned i = 1; i <= PUSH_ENTRIES_MAX + 1; i++) {
		push_body_add(&body, i % 2 ? STR("") : STR("some"));
		if (i <= PUSH_ENTRIES_MAX) {
			CHECK_OK(push_body_open(buf_str(&body), &entries, &n, &err), &err);
			CHECK_INT(n, i);
		}
	}
	CHECK_STR(push_body_next(&entries), "");
	CHECK_STR(push_body_next(&entries), "some");
	CHECK_INT(push_body_open(buf_str(&body), &entries, &n, &err), ERR_LIMIT);
	CHECK_STR(str_of(err.msg), "more than 256 profiles at once");
	CHECK_INT(push_body_open(STR("\1\0\0\0\2a"), &entries, &n, &err), ERR_INVALID);
	CHECK_STR(str_of(err.msg), "profile 1 is cut short");
	buf_release(&body);
}

TEST(answers)
{
	struct sink_stored stored = { 4000000000u, true, 7 }, got;
	struct buf body = { 0 };
	struct err err, why;
	enum err_code rc;
	struct cursor c;

	push_answers_begin(&body);
	push_answer_add(&body, ERR_OK, NULL, &stored);
	for (int code = ERR_NOMEM; code < ERR_CODES; code++) {
		err_set(&err, (enum err_code)code, "number %d", code);
		push_answer_add(&body, err.code, &err, NULL);
	}
	REQUIRE_OK(push_answers_open(buf_str(&body), &c, &err), &err);
	CHECK(push_answer_next(&c, &rc, &why, &got) && rc == ERR_OK);
	CHECK(got.samples == stored.samples && got.overflow && got.links_dropped == 7);
	for (int code = ERR_NOMEM; code < ERR_CODES; code++) {
		err_set(&err, (enum err_code)code, "number %d", code);
		CHECK(!push_answers_ended(&c));
		CHECK(push_answer_next(&c, &rc, &why, &got));
		CHECK_INT(rc, code);
		CHECK_STR(str_of(why.msg), err.msg);
	}
	CHECK(push_answers_ended(&c));
	CHECK(!push_answer_next(&c, &rc, &why, &got));
	for (size_t n = 1; n < body.len; n++) { /* cut short, none is made up */
		REQUIRE_OK(push_answers_open((struct str){ body.ptr, n }, &c, &err), &err);
		for (int i = 0; i < ERR_CODES; i++)
			if (!push_answer_next(&c, &rc, &why, &got))
				break;
		CHECK(c.bad || push_answers_ended(&c));
	}
	buf_release(&body);
}
