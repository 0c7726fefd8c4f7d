/* Whole profiles through honor_labels: the resulting series and their samples. */
#include "scrape/honor_labels.h"

#include "tests/check.h"

#define SAMPLES_MAX 8

/* A sample's labels as "name=value;name=value", numbers as "name#7"; its value is its place + 1. */
struct row {
	const char *name;
	const char *samples[SAMPLES_MAX];
	const char *want; /* per series: labels, then its samples */
};

static const struct row rows[] = {
	{ "nothing clashes: the profile as it is", { "thread=a;thread=b", "x#1", "" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"p\"} same\n" },
	{ "one series per value; without the label the target's stays",
		{ "pod=a", "", "pod=b;thread=t", "pod=a;thread=u" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 1:1() 4:1(thread=u)\n"
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"p\"} 2:1()\n"
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"b\"} 3:1(thread=t)\n" },
	{ "a combination of two, whatever their order",
		{ "pod=a;job=k", "job=k;pod=a", "pod=a", "job=k" },
		"{__name__=\"m\", instance=\"i\", job=\"k\", pod=\"a\"} 1:1() 2:1()\n"
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 3:1()\n"
		"{__name__=\"m\", instance=\"i\", job=\"k\", pod=\"p\"} 4:1()\n" },
	{ "the target's own value is no series of its own", { "pod=p;thread=t", "pod=a", "" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"p\"} 1:1(thread=t) 3:1()\n"
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 2:1()\n" },
	{ "numbers, the name, and what the target does not have stay the sample's",
		{ "pod#7;__name__=n;zone=z;pod=a" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 1:1(pod#7;__name__=n;zone=z)\n" },
	{ "the first of several counts", { "pod=a;pod=b;pod=c" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 1:1(pod=b;pod=c)\n" },
	{ "stacks stay with their samples", { "pod=a", "pod=b", "pod=a" },
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"a\"} 1:1() 3:1()\n"
		"{__name__=\"m\", instance=\"i\", job=\"j\", pod=\"b\"} 2:1()\n" },
};

static uint32_t parse_labels(struct pprof_builder *b, const char *text, struct pprof_label *out)
{
	uint32_t n = 0;
	size_t name, value;

	while (*text) {
		name = strcspn(text, "=#");
		value = strcspn(text + name + 1, ";");
		out[n] = (struct pprof_label){ .key = pprof_builder_string(b, (struct str){ text, name }) };
		if (text[name] == '=')
			out[n].str = pprof_builder_string(b, (struct str){ text + name + 1, value });
		else
			str_to_i64((struct str){ text + name + 1, value }, &out[n].num);
		n++;
		text += name + 1 + value;
		text += *text == ';';
	}
	return n;
}

/* Sample i has a stack of i + 1 frames, the leaf its own location, and the values i + 1 and 10. */
static struct pprof *make(struct arena *a, const char *const *samples, size_t n)
{
	struct pprof_label labels[SAMPLES_MAX];
	uint32_t stack[SAMPLES_MAX + 1] = { 0 };
	struct pprof_builder *b;
	struct pprof *p = NULL;
	struct err err;
	uint32_t labels_n;

	CHECK_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("count"), STR("count"));
	pprof_builder_type(b, STR("bytes"), STR("bytes"));
	for (size_t i = 0; i < n; i++) {
		stack[0] = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, NULL, 0);
		labels_n = parse_labels(b, samples[i], labels);
		pprof_builder_sample(b, stack, (uint32_t)(i % SAMPLES_MAX) + 1, labels, labels_n,
			(int64_t[]){ (int64_t)i + 1, 10 });
	}
	pprof_builder_profile(b)->time_nanos = 77;
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

static struct labels target_labels(void)
{
	static const struct label v[] = { { { "__name__", 8 }, { "m", 1 } },
		{ { "instance", 8 }, { "i", 1 } }, { { "job", 3 }, { "j", 1 } },
		{ { "pod", 3 }, { "p", 1 } } };

	return (struct labels){ v, 4 };
}

static void print_sample(struct buf *out, const struct pprof *p, const struct pprof_sample *s)
{
	const int64_t *values = p->values + (size_t)(s - p->samples) * p->types_n;
	const struct pprof_label *l = p->labels + s->label_first;

	buf_printf(out, " %" PRId64 ":1(", values[0]);
	for (uint32_t i = 0; i < s->label_n; i++) {
		buf_printf(out, "%s" STR_FMT, i ? ";" : "", STR_ARG(p->strings[l[i].key]));
		if (l[i].str)
			buf_printf(out, "=" STR_FMT, STR_ARG(p->strings[l[i].str]));
		else
			buf_printf(out, "#%" PRId64, l[i].num);
	}
	buf_add_char(out, ')');
	CHECK_INT(values[1], 10);
	CHECK_INT(s->location_n, values[0]); /* its own stack */
	CHECK_INT(p->locations[p->location_ids[s->location_first]].address, values[0]);
}

static void print_labels(struct buf *out, struct labels ls)
{
	buf_add_char(out, '{');
	for (size_t i = 0; i < ls.n; i++)
		buf_printf(out, "%s" STR_FMT "=\"" STR_FMT "\"", i ? ", " : "", STR_ARG(ls.v[i].name),
			STR_ARG(ls.v[i].value));
	buf_add_char(out, '}');
}

TEST(series_of_a_profile)
{
	struct honored *v = NULL;
	struct buf got = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;
	size_t n, samples;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&a, 0);
		for (samples = 0; samples < SAMPLES_MAX && rows[i].samples[samples]; samples++)
			;
		p = make(&a, rows[i].samples, samples);
		REQUIRE_OK(honor_labels(&a, p, target_labels(), &v, &n, &err), &err);
		buf_clear(&got);
		for (size_t k = 0; k < n; k++) {
			print_labels(&got, v[k].labels);
			for (uint32_t s = 0; v[k].profile != p && s < v[k].profile->samples_n; s++)
				print_sample(&got, v[k].profile, &v[k].profile->samples[s]);
			buf_add_cstr(&got, v[k].profile == p ? " same\n" : "\n");
			CHECK_INT(v[k].profile->time_nanos, 77);
		}
		if (!str_eq(buf_str(&got), str_of(rows[i].want)))
			CHECK_FAIL(
				"%s:\n" STR_FMT "want\n%s", rows[i].name, STR_ARG(buf_str(&got)), rows[i].want);
		arena_release(&a);
	}
	buf_release(&got);
}

TEST(limits_and_bytes_that_are_no_text)
{
	static char texts[HONOR_SERIES_MAX + 1][16];
	const char *samples[HONOR_SERIES_MAX + 1];
	struct honored *v;
	struct pprof *p;
	struct arena a;
	struct err err;
	size_t n;

	for (size_t i = 0; i <= HONOR_SERIES_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "pod=%zu;t=x", i);
		samples[i] = texts[i];
	}
	arena_init(&a, 0);
	p = make(&a, samples, HONOR_SERIES_MAX);
	REQUIRE_OK(honor_labels(&a, p, target_labels(), &v, &n, &err), &err);
	CHECK_INT(n, HONOR_SERIES_MAX);
	p = make(&a, samples, HONOR_SERIES_MAX + 1);
	CHECK_ERR(honor_labels(&a, p, target_labels(), &v, &n, &err), &err, ERR_LIMIT,
		"honor_labels splits the profile into more than 1000 series (by the sample labels pod)");
	samples[0] = "pod=\xff";
	p = make(&a, samples, 1);
	CHECK_ERR(honor_labels(&a, p, target_labels(), &v, &n, &err), &err, ERR_INVALID,
		"honor_labels: invalid label value for \"pod\": \"\\xff\"");
	arena_release(&a);
}
