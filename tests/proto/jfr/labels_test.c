/* LabelsSnapshot: what contexts mean, and what is refused. */
#include "tests/proto/jfr/fixture.h"

/* Decodes one sample with context 1 and one with context 2. */
static void check(struct str labels, const char *want, uint64_t lost)
{
	struct jfr_options with = options;
	struct fixture x;

	begin(&x);
	with.labels = labels;
	writer_usual(&x.w);
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 1 0 0");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 2 0 0");
	decode(&x, &with);
	CHECK_STR(buf_str(&x.text), want);
	if (!x.rc)
		CHECK_INT(x.f->labels_lost_n, lost);
	end(&x);
}

#define CPU "process_cpu cpu: 2 events, 0 truncated, 0 without stack\n"
#define CASE(bytes, want, lost) check((struct str){ bytes, sizeof(bytes) - 1 }, want, lost)

/* Pieces: a string of one letter; a context of one label; an entry of one label. */
#define STRING(id, letter) "\x12\x05\x08" id "\x12\x01" letter
#define LABEL(key, value) "\x0a\x04\x08" key "\x10" value
#define CONTEXT(id, label) "\x0a\x0a\x08" id "\x12\x06" label
#define TWO(id, label, other) "\x0a\x10\x08" id "\x12\x0c" label other

TEST(contexts)
{
	CASE("", CPU "  20000000 a/B.c:10\n", 2);
	CASE(STRING("\1", "k") STRING("\2", "v") CONTEXT("\1", LABEL("\1", "\2")),
		CPU "  10000000 {k=v} a/B.c:10\n  10000000 a/B.c:10\n", 1);
	/* Two contexts of the same labels, in another order, are one set. */
	CASE(TWO("\1", LABEL("\1", "\2"), LABEL("\2", "\1"))
			 TWO("\2", LABEL("\2", "\1"), LABEL("\1", "\2")) STRING("\1", "b") STRING("\2", "a"),
		CPU "  20000000 {a=b,b=a} a/B.c:10\n", 0);
	/* Two strings of one text are one key; the last of two values counts. */
	CASE(TWO("\1", LABEL("\1", "\2"), LABEL("\3", "\1")) STRING("\1", "b") STRING("\2", "a")
			 STRING("\3", "b"),
		CPU "  10000000 {b=b} a/B.c:10\n  10000000 a/B.c:10\n", 1);
	/* The last of two strings, and of two contexts, with one id. */
	CASE(STRING("\1", "x") CONTEXT("\1", LABEL("\1", "\1")) STRING("\1", "y") STRING("\2", "z")
			 CONTEXT("\1", LABEL("\2", "\1")),
		CPU "  10000000 {z=y} a/B.c:10\n  10000000 a/B.c:10\n", 1);
	/* A string that is not there; a value that is empty. */
	CASE(STRING("\1", "k") CONTEXT("\1", LABEL("\1", "\7"))
			 CONTEXT("\2", LABEL("\1", "\3")) "\x12\x02\x08\x03",
		CPU "  20000000 a/B.c:10\n", 1);
	/* Fields that are not known. */
	CASE("\x18\x05" STRING("\1", "k") "\x22\x01z" CONTEXT("\1", LABEL("\1", "\1"))
			 CONTEXT("\2", LABEL("\1", "\1")),
		CPU "  20000000 {k=k} a/B.c:10\n", 0);
}

TEST(damaged)
{
	CASE("\x0a", "invalid input: labels: snapshot: not well-formed", 0);
	CASE("\x0a\x05\x08", "invalid input: labels: snapshot: not well-formed", 0);
	CASE("\x0a\x01\x08", "invalid input: labels: a context: not well-formed", 0);
	CASE("\x12\x01\x08", "invalid input: labels: a string: not well-formed", 0);
	CASE("\x0a\x06\x08\1\x12\x02\x0a\x05", "invalid input: labels: a context: not well-formed", 0);
	CASE("\x0a\x07\x08\1\x12\x03\x0a\x01\x08", "invalid input: labels: a context: not well-formed",
		0);
}

/* Cut at every byte: an error, or fewer labels; the sums stay. */
TEST(cut)
{
	struct jfr_options with = options;
	struct str labels, raw;
	struct arena a, work;
	struct err err;

	arena_init(&a, 0);
	arena_init(&work, 64 << 20);
	labels = recording(&a, "agent.labels");
	raw = recording(&a, "agent.jfr");
	for (size_t len = 0; len < labels.len; len += CHECK_STEP) {
		struct jfr_file *f;
		int64_t sum = 0;

		arena_reset(&work);
		err.msg[0] = '\0';
		with.labels = (struct str){ labels.ptr, len };
		if (jfr_decode(&work, raw, &with, &f, &err)) {
			CHECK_STR(str_of(err.msg), "labels: snapshot: not well-formed");
			continue;
		}
		for (uint32_t i = 0; i < f->profiles[0].pprof->samples_n; i++)
			sum += f->profiles[0].pprof->values[i];
		CHECK_INT(sum, 770000000);
	}
	arena_release(&work);
	arena_release(&a);
}
