#include "base/fs.h"
#include "proto/pprof.h"
#include "proto/profile.pb-c.h"
#include "tests/check.h"
#include "tests/proto/corpus.h"
#include "tests/proto/testdata.h"

#define LIT(s) ((struct str){ s, sizeof(s) - 1 })

TEST(verdicts)
{
	for (size_t i = 0; i < corpus_n; i++) {
		const struct corpus_row *row = &corpus[i];
		/* In memory of exactly its length, so that a read beyond the end is found. */
		char *copy = malloc(row->body.len + 1);
		struct str body = { copy + 1, row->body.len };
		struct err err = { 0 };
		struct pprof *p;
		struct arena a;
		enum err_code rc;

		arena_init(&a, 1 << 20);
		memcpy(copy + 1, row->body.ptr, row->body.len);
		rc = pprof_decode(&a, body, &pprof_limits_default, &p, &err);
		if (rc != (row->message ? ERR_INVALID : ERR_OK))
			CHECK_FAIL("%s: %s: %s", row->name, err_code_name(rc), err.msg);
		if (!str_is(str_of(err.msg), row->message ? row->message : ""))
			CHECK_FAIL(
				"%s: \"%s\", want \"%s\"", row->name, err.msg, row->message ? row->message : "");
		free(copy);
		arena_release(&a);
	}
}

/*
 * Cuts each real profile at each of its bytes: it is refused or a profile, and no byte beyond is
 * read.
 */
TEST(truncated_anywhere)
{
	for (size_t f = 0; f < testdata_n; f++) {
		struct str raw;
		struct arena a;
		struct err err;
		size_t step;

		arena_init(&a, 0);
		REQUIRE_OK(testdata_inflated(&a, testdata[f], &raw, &err), &err);
		step = (raw.len > 2000 ? 37 : 1) * (check_is_short() ? 5 : 1);
		for (size_t n = 1; n < raw.len; n += step) {
			char *copy = malloc(n);
			struct pprof *p;
			struct arena b;

			arena_init(&b, 0);
			memcpy(copy, raw.ptr, n);
			if (!pprof_decode(&b, (struct str){ copy, n }, &pprof_limits_default, &p, &err) &&
				p->strings_n == 0)
				CHECK_FAIL("%s cut at %zu", testdata[f], n);
			free(copy);
			arena_release(&b);
		}
		arena_release(&a);
	}
}

static void same_string(
	const Epimetheus__Pprof__Profile *m, const struct pprof *p, int64_t want, uint32_t got)
{
	CHECK_INT(got, want);
	CHECK(str_eq(p->strings[got],
		(struct str){ (const char *)m->string_table[want].data, m->string_table[want].len }));
}

static void same_tables(const Epimetheus__Pprof__Profile *m, const struct pprof *p)
{
	uint32_t line = 0;

	CHECK_INT(p->types_n, m->n_sample_type);
	for (uint32_t i = 0; i < p->types_n; i++) {
		same_string(m, p, m->sample_type[i]->type, p->types[i].type);
		same_string(m, p, m->sample_type[i]->unit, p->types[i].unit);
	}
	CHECK_INT(p->mappings_n, m->n_mapping);
	for (uint32_t i = 0; i < p->mappings_n; i++) {
		const struct pprof_mapping *got = &p->mappings[i];
		const Epimetheus__Pprof__Mapping *want = m->mapping[i];

		CHECK(got->start == want->memory_start && got->limit == want->memory_limit &&
			got->offset == want->file_offset);
		CHECK(got->has_functions == !!want->has_functions &&
			got->has_filenames == !!want->has_filenames &&
			got->has_line_numbers == !!want->has_line_numbers &&
			got->has_inline_frames == !!want->has_inline_frames);
		same_string(m, p, want->filename, got->filename);
		same_string(m, p, want->build_id, got->build_id);
	}
	CHECK_INT(p->functions_n, m->n_function);
	for (uint32_t i = 0; i < p->functions_n; i++) {
		same_string(m, p, m->function[i]->name, p->functions[i].name);
		same_string(m, p, m->function[i]->system_name, p->functions[i].system_name);
		same_string(m, p, m->function[i]->filename, p->functions[i].filename);
		CHECK_INT(p->functions[i].start_line, m->function[i]->start_line);
	}
	CHECK_INT(p->locations_n, m->n_location);
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *got = &p->locations[i];
		const Epimetheus__Pprof__Location *want = m->location[i];

		CHECK(got->address == want->address && got->is_folded == !!want->is_folded);
		CHECK(got->mapping == PPROF_NONE ? !want->mapping_id :
										   m->mapping[got->mapping]->id == want->mapping_id);
		CHECK_INT(got->line_first, line);
		CHECK_INT(got->line_n, want->n_line);
		for (uint32_t l = 0; l < got->line_n; l++, line++) {
			CHECK_INT(m->function[p->lines[line].function]->id, want->line[l]->function_id);
			CHECK_INT(p->lines[line].line, want->line[l]->line);
			CHECK_INT(p->lines[line].column, want->line[l]->column);
		}
	}
	CHECK_INT(p->lines_n, line);
}

static void same_samples(const Epimetheus__Pprof__Profile *m, const struct pprof *p)
{
	uint32_t id = 0, label = 0;

	CHECK_INT(p->samples_n, m->n_sample);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *got = &p->samples[i];
		const Epimetheus__Pprof__Sample *want = m->sample[i];

		CHECK_INT(got->location_first, id);
		CHECK_INT(got->location_n, want->n_location_id);
		for (uint32_t l = 0; l < got->location_n; l++, id++)
			CHECK_INT(m->location[p->location_ids[id]]->id, want->location_id[l]);
		CHECK_INT(want->n_value, p->types_n);
		CHECK(
			!memcmp(&p->values[(size_t)i * p->types_n], want->value, p->types_n * sizeof(int64_t)));
		CHECK_INT(got->label_first, label);
		CHECK_INT(got->label_n, want->n_label);
		for (uint32_t l = 0; l < got->label_n; l++, label++) {
			same_string(m, p, want->label[l]->key, p->labels[label].key);
			same_string(m, p, want->label[l]->str, p->labels[label].str);
			same_string(m, p, want->label[l]->num_unit, p->labels[label].num_unit);
			CHECK_INT(p->labels[label].num, want->label[l]->num);
		}
	}
	CHECK_INT(p->location_ids_n, id);
	CHECK_INT(p->labels_n, label);
}

/* Compares real profiles, field by field, with what protobuf-c reads in the same bytes. */
TEST(real_profiles_as_protobuf_c_reads_them)
{
	for (size_t f = 0; f < testdata_n; f++) {
		Epimetheus__Pprof__Profile *m;
		struct pprof *p = NULL;
		struct arena a;
		struct err err;
		struct str raw;
		int failures = check_failures;

		arena_init(&a, 0);
		REQUIRE_OK(testdata_inflated(&a, testdata[f], &raw, &err), &err);
		REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
		m = epimetheus__pprof__profile__unpack(NULL, raw.len, (const uint8_t *)raw.ptr);
		REQUIRE(m);
		CHECK_INT(p->strings_n, m->n_string_table);
		same_tables(m, p);
		same_samples(m, p);
		CHECK_INT(p->comments_n, m->n_comment);
		for (uint32_t i = 0; i < p->comments_n; i++)
			same_string(m, p, m->comment[i], p->comments[i]);
		same_string(m, p, m->drop_frames, p->drop_frames);
		same_string(m, p, m->keep_frames, p->keep_frames);
		same_string(m, p, m->default_sample_type, p->default_sample_type);
		same_string(m, p, m->doc_url, p->doc_url);
		same_string(m, p, m->period_type ? m->period_type->type : 0, p->period_type.type);
		same_string(m, p, m->period_type ? m->period_type->unit : 0, p->period_type.unit);
		CHECK_INT(p->time_nanos, m->time_nanos);
		CHECK_INT(p->duration_nanos, m->duration_nanos);
		CHECK_INT(p->period, m->period);
		if (failures != check_failures)
			CHECK_FAIL("in %s", testdata[f]);
		epimetheus__pprof__profile__free_unpacked(m, NULL);
		arena_release(&a);
	}
}

#define LABELS \
	"\x32\x00\x32\x01" \
	"k" \
	"\x32\x01" \
	"v" \
	"\x32\x02" \
	"ms" \
	"\x0a\x04\x08\x01\x10\x02"

/*
 * A string wins over a number beside it; a label with neither is dropped; a unit alone is a
 * number.
 */
TEST(labels)
{
	static const struct str raw = { LABELS "\x12\x24\x10\x05"
										   "\x1a\x08\x08\x01\x10\x02\x18\x07\x20\x03"
										   "\x1a\x06\x08\x01\x18\x07\x20\x03"
										   "\x1a\x04\x08\x01\x20\x03"
										   "\x1a\x02\x08\x01"
										   "\x1a\x04\x08\x01\x18\x07",
		sizeof(LABELS) + 37 };
	/* clang-format off */
	static const struct pprof_label want[] = {
		{ 1, 2, 0, 0 }, { 1, 0, 3, 7 }, { 1, 0, 3, 0 }, { 1, 0, 0, 7 },
	};
	/* clang-format on */
	struct pprof *p = NULL;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->labels_n, 4);
	CHECK_INT(p->samples[0].label_n, 4);
	for (uint32_t i = 0; i < 4 && i < p->labels_n; i++)
		CHECK(p->labels[i].key == want[i].key && p->labels[i].str == want[i].str &&
			p->labels[i].num_unit == want[i].num_unit && p->labels[i].num == want[i].num);
	arena_release(&a);
}

#define FEW \
	"\x32\x00\x32\x01" \
	"f" \
	"\x32\x01" \
	"g" \
	"\x0a\x00\x2a\x02\x08\x01" \
	"\x22\x0a\x08\x01\x22\x02\x08\x01\x22\x02\x08\x01" \
	"\x12\x0c\x08\x01\x08\x01\x08\x01\x10\x05\x1a\x02\x18\x01" \
	"\x12\x0b\x0a\x03\x01\x01\x01\x10\x05\x1a\x02\x18\x01"

TEST(limits)
{
	const struct pprof_limits *d = &pprof_limits_default;
	const struct {
		struct pprof_limits limits;
		const char *message;
	} rows[] = {
		{ { 1, 100, 2, 3, 3, 0 }, NULL },
		{ { 1, 20, 2, 3, 3, 0 }, "profile is 53 bytes inflated, limit 20" },
		{ { 1, 100, 1, 3, 3, 0 }, "profile has more than 1 samples, the limit" },
		{ { 1, 100, 2, 2, 3, 0 }, "profile has more than 2 strings, the limit" },
		{ { 1, 100, 2, 3, 2, 0 }, NULL }, /* stacks are cut */
	};
	struct pprof *p;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&a, 0);
		if (rows[i].message)
			CHECK_ERR(pprof_decode(&a, LIT(FEW), &rows[i].limits, &p, &err), &err, ERR_LIMIT,
				rows[i].message);
		else
			CHECK_OK(pprof_decode(&a, LIT(FEW), &rows[i].limits, &p, &err), &err);
		arena_release(&a);
	}
	arena_init(&a, 600);
	CHECK_ERR(pprof_decode(&a, LIT(FEW), d, &p, &err), &err, ERR_LIMIT,
		"profile needs more memory than its limit of 600 bytes");
	arena_release(&a);
}

/* The leaves stay, in one piece or in several. */
TEST(deep_stacks_lose_their_root)
{
	static const char body[] =
		"\x32\x00\x32\x01g\x0a\x00\x22\x02\x08\x01\x22\x02\x08\x02\x22\x02\x08\x03"
		"\x12\x09\x0a\x03\x03\x02\x01\x10\x05\x08\x01"
		"\x12\x07\x0a\x03\x02\x03\x01\x10\x06"
		"\x12\x06\x0a\x02\x01\x03\x10\x07";
	struct pprof_limits limits = pprof_limits_default;
	struct buf got = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 1 << 20);
	limits.stack_depth_max = 2;
	REQUIRE_OK(pprof_decode(&a, LIT(body), &limits, &p, &err), &err);
	CHECK_INT(p->stacks_cut, 2);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		for (uint32_t k = 0; k < p->samples[i].location_n; k++)
			buf_printf(&got, "%u ", p->location_ids[p->samples[i].location_first + k] + 1);
		buf_printf(&got, "= %d; ", (int)p->values[i]);
	}
	CHECK_STR(buf_str(&got), "3 2 = 5; 2 3 = 6; 1 3 = 7; ");
	limits.stack_depth_max = 4;
	REQUIRE_OK(pprof_decode(&a, LIT(body), &limits, &p, &err), &err);
	CHECK_INT(p->stacks_cut, 0);
	buf_release(&got);
	arena_release(&a);
}

/* Each kind that grows, one beyond its limit: n messages of `unit` behind what they need. */
TEST(limits_of_what_grows)
{
	static const struct {
		const char *before, *unit;
		size_t before_len, unit_len;
		uint32_t limit;
		const char *message;
	} rows[] = {
#define ROW(before, unit, limit, message) \
	{ before, unit, sizeof(before) - 1, sizeof(unit) - 1, limit, message }
		ROW("\x32\x00", "\x32\x00", 40, "profile has more than 40 strings, the limit"),
		ROW("\x32\x00", "\x68\x00", 40, "profile has more than 40 comments, the limit"),
		ROW("\x32\x00", "\x6a\x02\x00\x00", 41, "profile has more than 41 comments, the limit"),
		ROW("\x32\x00", "\x0a\x00", 40, "profile has more than 40 sample types, the limit"),
		ROW("\x32\x00", "\x1a\x00", 40, "profile has more than 40 mappings, the limit"),
		ROW("\x32\x00", "\x22\x00", 40, "profile has more than 40 locations, the limit"),
		ROW("\x32\x00", "\x2a\x00", 40, "profile has more than 40 functions, the limit"),
		ROW("\x32\x00\x2a\x02\x08\x01", "\x22\x04\x22\x02\x08\x01", 40,
			"profile has more than 40 locations, the limit"),
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pprof_limits limits = pprof_limits_default;
		struct buf raw = { 0 };
		struct pprof *p;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		limits.elements_max = rows[i].limit;
		buf_add(&raw, rows[i].before, rows[i].before_len);
		for (uint32_t n = 0; n <= rows[i].limit; n++)
			buf_add(&raw, rows[i].unit, rows[i].unit_len);
		CHECK_ERR(
			pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err, ERR_LIMIT, rows[i].message);
		arena_release(&a);
		buf_release(&raw);
	}
}

static void add_message(struct buf *out, unsigned char tag, const struct buf *m)
{
	buf_add_char(out, (char)tag);
	buf_add_lenstr(out, buf_str(m));
}

/*
 * One location with n lines, one sample with n labels and n frames: arrays that grow many times
 * keep their items, until the limit.
 */
TEST(arrays_that_grow)
{
	const uint32_t n = 3000;
	struct buf raw = { 0 }, location = { 0 }, sample = { 0 };
	struct pprof_limits limits = pprof_limits_default;
	struct pprof *p = NULL;
	struct arena a;
	struct err err;
	uint32_t i;

	arena_init(&a, 0);
	buf_add(&raw, "\x32\x00\x0a\x00\x2a\x02\x08\x01", 8);
	buf_add(&location, "\x08\x01", 2);
	buf_add(&sample, "\x10\x07", 2);
	for (i = 0; i < n; i++) {
		struct buf line = { 0 }, label = { 0 };

		buf_add(&line, "\x08\x01\x10", 3);
		buf_add_varint(&line, i);
		add_message(&location, 0x22, &line);
		buf_add_char(&label, 0x18);
		buf_add_varint(&label, i + 1);
		add_message(&sample, 0x1a, &label);
		buf_add(&sample, "\x08\x01", 2);
		buf_release(&line);
		buf_release(&label);
	}
	add_message(&raw, 0x22, &location);
	add_message(&raw, 0x12, &sample);
	REQUIRE_OK(pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err);
	CHECK(p->lines_n == n && p->labels_n == n && p->location_ids_n == n);
	for (i = 0; i < n; i++)
		CHECK(p->lines[i].line == i && p->labels[i].num == i + 1 && p->location_ids[i] == 0);
	limits.elements_max = n - 1;
	CHECK_ERR(pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err, ERR_LIMIT,
		"profile has more than 2999 lines, the limit");
	limits.elements_max = 100; /* 1600 location ids */
	raw.len = 8;
	buf_add(&raw, "\x22\x02\x08\x01", 4);
	add_message(&raw, 0x12, &sample);
	CHECK_ERR(pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err, ERR_LIMIT,
		"profile has more than 100 labels, the limit");
	for (uint32_t ids = 1600; ids <= 1601; ids++) { /* packed and not */
		sample.len = 0;
		buf_add(&sample, "\x10\x07\x0a", 3);
		buf_add_varint(&sample, ids - 5);
		for (i = 0; i < ids - 5; i++)
			buf_add_char(&sample, 1);
		buf_add(&sample, "\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01", 10);
		raw.len = 12;
		add_message(&raw, 0x12, &sample);
		if (ids == 1600)
			CHECK_OK(pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err);
		else
			CHECK_ERR(pprof_decode(&a, buf_str(&raw), &limits, &p, &err), &err, ERR_LIMIT,
				"profile has more than 1600 location ids, the limit");
	}
	buf_release(&raw);
	buf_release(&location);
	buf_release(&sample);
	arena_release(&a);
}

/*
 * Ids of one to three bytes, mixed: packed stacks of every length, compared with the numbers that
 * were written. The ids are in order, small without order, or hashed.
 */
TEST(location_ids_of_all_lengths)
{
	static const uint64_t factors[] = { 1, 3, UINT64_C(0x100000000) };
	const uint32_t locations = 20000, samples = 300;

	for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
		struct buf raw = { 0 };
		struct pprof *p = NULL;
		struct arena a;
		struct err err;
		uint32_t seed = 1, at = 0, i, k, index;

		arena_init(&a, 0);
		buf_add(&raw, "\x32\x00\x0a\x00", 4);
		for (i = 0; i < locations; i++) {
			struct buf m = { 0 };

			buf_add_char(&m, 8);
			buf_add_varint(&m, (i + 1) * factors[f]);
			add_message(&raw, 0x22, &m);
			buf_release(&m);
		}
		for (i = 0; i < samples; i++) {
			struct buf ids = { 0 }, m = { 0 };

			for (k = 0; k < i % 70; k++) {
				seed = seed * 1103515245 + 12345;
				index = (seed >> 8) % (seed >> 30 ? 200 : locations);
				buf_add_varint(&ids, (index + 1) * factors[f]);
			}
			buf_add(&m, "\x10\x01", 2);
			add_message(&m, 0x0a, &ids);
			add_message(&raw, 0x12, &m);
			buf_release(&ids);
			buf_release(&m);
		}
		REQUIRE_OK(pprof_decode(&a, buf_str(&raw), &pprof_limits_default, &p, &err), &err);
		for (seed = 1, i = 0; i < samples; i++) {
			CHECK_INT(p->samples[i].location_n, i % 70);
			for (k = 0; k < i % 70; k++, at++) {
				seed = seed * 1103515245 + 12345;
				CHECK_INT(p->location_ids[at], (seed >> 8) % (seed >> 30 ? 200 : locations));
			}
		}
		buf_release(&raw);
		arena_release(&a);
	}
}
