/* What is refused, and in which words. The first chunk's events begin at byte 68. */
#include "tests/proto/jfr/fixture.h"

/* Of the header of a finished chunk. */
static void put_u64(struct fixture *x, size_t at, uint64_t v)
{
	struct buf b = { 0 };

	buf_add_u64be(&b, v);
	memcpy(x->w.out.ptr + at, b.ptr, 8);
	buf_release(&b);
}

static void nothing(struct fixture *x)
{
	(void)x;
}

static void not_ours(struct fixture *x)
{
	buf_printf(&x->w.out, "%080d", 7);
}

static void old_version(struct fixture *x)
{
	x->w.version = 9;
	writer_usual(&x->w);
}

static void not_compressed(struct fixture *x)
{
	x->w.flags = 2;
	writer_usual(&x->w);
}

static void no_ticks(struct fixture *x)
{
	x->w.ticks_per_s = 0;
	writer_usual(&x->w);
}

static void not_finished(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	put_u64(x, 8, 0);
}

static void cut_off(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	x->w.out.len -= 2;
}

static void bytes_behind(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	buf_add_cstr(&x->w.out, "more");
}

static void metadata_outside(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	put_u64(x, 24, x->w.out.len);
}

static void no_time(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	put_u64(x, 32, UINT64_MAX);
}

static void metadata_elsewhere(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	put_u64(x, 24, 68);
}

static void checkpoint_elsewhere(struct fixture *x)
{
	writer_event(&x->w, W_OTHER, "0");
	writer_usual(&x->w);
}

static void no_such_class(struct fixture *x)
{
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "999 1 1 1");
	writer_end(&x->w);
}

static void class_without_fields(struct fixture *x)
{
	x->w.schema = "2 long\n20 test.Empty\n";
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "20 1 1 1");
	writer_end(&x->w);
}

static void field_of_no_class(struct fixture *x)
{
	x->w.schema = "2 long\n20 test.Odd a:77\n";
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "20 1 1 1");
	writer_end(&x->w);
}

static void in_itself(struct fixture *x)
{
	x->w.schema = "2 long\n20 test.Nest a:20\n";
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "20 1 1 1");
	writer_end(&x->w);
}

static void class_id(struct fixture *x)
{
	x->w.schema = "2 long\n-1 test.Odd a:2\n";
	writer_checkpoint(&x->w, 0);
	writer_end(&x->w);
}

static void too_many_items(struct fixture *x)
{
	x->w.schema = "2 long\n20 test.Many a:2a\n";
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "20 1 1 0xffffffffffffffff");
	writer_end(&x->w);
}

static void too_many_constants(struct fixture *x)
{
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "22 0xffffffffffffffff 1 1 1 0");
	writer_end(&x->w);
}

static void encoding(struct fixture *x)
{
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "20 1 1 6");
	writer_end(&x->w);
}

static void event_of_no_size(struct fixture *x)
{
	writer_usual(&x->w);
	writer_numbers(&x->w, "0 50");
}

static void event_too_long(struct fixture *x)
{
	writer_usual(&x->w);
	writer_numbers(&x->w, "100000 50");
}

static void event_cut(struct fixture *x)
{
	writer_usual(&x->w);
	writer_event(&x->w, W_MONITOR, "5 6");
}

static void stack_without_frames(struct fixture *x)
{
	x->w.schema = "2 long\n4 boolean\n23 jdk.types.StackTrace truncated:4\n"
				  "47 profiler.LiveObject stackTrace:23p\n";
	writer_checkpoint(&x->w, 1);
	writer_numbers(&x->w, "23 1 1 0");
	writer_end(&x->w);
	writer_event(&x->w, W_LIVE, "1");
}

static void nothing_to_count(struct fixture *x)
{
	x->w.schema = "2 long\n44 jdk.ObjectAllocationSample startTime:2\n";
	writer_checkpoint(&x->w, 0);
	writer_end(&x->w);
	writer_event(&x->w, W_ALLOC_SAMPLE, "1");
}

static void negative(struct fixture *x)
{
	writer_usual(&x->w);
	writer_event(&x->w, W_MALLOC, "5 1 0xffffffffffffffff");
}

static void too_long(struct fixture *x)
{
	writer_usual(&x->w);
	writer_event(&x->w, W_PARK, "5 0x7fffffffffffffff 1");
}

static void lost_below_0(struct fixture *x)
{
	writer_usual(&x->w);
	writer_event(&x->w, W_CPU_LOST, "5 0xffffffff 1");
}

static void sum(struct fixture *x)
{
	writer_usual(&x->w);
	writer_event(&x->w, W_MALLOC, "5 1 0x7fffffffffffffff");
	writer_event(&x->w, W_MALLOC, "5 1 1");
}

static void product(struct fixture *x)
{
	writer_usual(&x->w);
	writer_setting(&x->w, W_EXECUTION, "wall", "9000000000000000000");
	writer_event(&x->w, W_WALL, "5 1 2");
}

static void second_chunk(struct fixture *x)
{
	writer_usual(&x->w);
	writer_chunk(&x->w);
	writer_event(&x->w, W_OTHER, "0");
}

static const struct {
	void (*make)(struct fixture *x);
	const char *want;
} cases[] = {
	{ nothing, "invalid input: chunk 1 at byte 0: its header is cut off" },
	{ not_ours, "invalid input: chunk 1 at byte 0: does not begin with FLR" },
	{ old_version,
		"unsupported: chunk 1 at byte 0: version 0.9 of Java Flight Recorder, 2 is known" },
	{ not_compressed, "unsupported: chunk 1 at byte 0: its integers are not compressed" },
	{ no_ticks, "invalid input: chunk 1 at byte 0: has 0 ticks in a second" },
	{ not_finished, "invalid input: chunk 1 at byte 0: is not finished" },
	{ cut_off, "invalid input: chunk 1 at byte 0: is cut off" },
	{ bytes_behind, "invalid input: chunk 2 at byte 2294: does not begin with FLR" },
	{ metadata_outside,
		"invalid input: chunk 1 at byte 0: has places in its header that are not in it" },
	{ no_time, "invalid input: chunk 1 at byte 0: has no sensible time" },
	{ metadata_elsewhere, "invalid input: chunk 1: metadata at byte 68: is another event" },
	{ checkpoint_elsewhere,
		"invalid input: chunk 1: an event at byte 68: is no checkpoint, but the header says so" },
	{ no_such_class,
		"invalid input: chunk 1: constants at byte 78: their class is not in the metadata" },
	{ class_without_fields,
		"invalid input: chunk 1: a constant at byte 80: a constant's class has no fields" },
	{ field_of_no_class,
		"invalid input: chunk 1: a constant at byte 80: a field's class is not in "
		"the metadata, or has no fields" },
	{ in_itself, "invalid input: chunk 1: a constant at byte 80: values nest too deep" },
	{ class_id, "invalid input: chunk 1: metadata: class test.Odd has id '-1'" },
	{ too_many_items, "invalid input: chunk 1: a constant at byte 80: ends too early" },
	{ too_many_constants, "invalid input: chunk 1: a constant at byte 92: ends too early" },
	{ encoding, "invalid input: chunk 1: a constant at byte 80: a string has an unknown encoding" },
	{ event_of_no_size,
		"invalid input: chunk 1: an event at byte 244: its size does not hold its "
		"type" },
	{ event_too_long, "invalid input: chunk 1: an event at byte 244: ends too early" },
	{ event_cut,
		"invalid input: chunk 1: an event of jdk.JavaMonitorEnter at byte 244: ends too early" },
	{ stack_without_frames,
		"invalid input: chunk 1: a stack at byte 81: jdk.types.StackTrace has no frames" },
	{ nothing_to_count,
		"invalid input: chunk 1: events of jdk.ObjectAllocationSample have no "
		"number to count" },
	{ negative,
		"invalid input: chunk 1: an event of profiler.Malloc at byte 244: size is negative" },
	{ too_long,
		"invalid input: chunk 1: an event of jdk.ThreadPark at byte 244: duration is too large" },
	{ lost_below_0,
		"invalid input: chunk 1: an event of jdk.CPUTimeSamplesLost at byte 244: lostSamples is "
		"negative" },
	{ sum, "invalid input: the sum of a stack's memory values overflows" },
	{ product, "invalid input: chunk 1: 2 samples of 9000000000000000000 ns are too long" },
	{ second_chunk,
		"invalid input: chunk 2: an event at byte 2362: is no checkpoint, but the "
		"header says so" },
};

TEST(refused)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture x;

		begin(&x);
		cases[i].make(&x);
		CHECK_SHOWN(&x, &options, cases[i].want);
	}
}

TEST(recognized)
{
	CHECK(jfr_recognized((struct str){ "FLR\0\0\2", 6 }));
	CHECK(!jfr_recognized((struct str){ "FLR", 3 }));
	CHECK(!jfr_recognized((struct str){ "FLR\1", 4 }));
	CHECK(!jfr_recognized(STR("")));
}

#define LIMIT(field, value, message) \
	do { \
		struct jfr_limits limits_ = jfr_limits_default; \
		struct jfr_options options_ = options; \
		struct fixture x_; \
\
		limits_.field = (value); \
		options_.limits = &limits_; \
		options_.labels = (struct str){ labels, sizeof(labels) - 1 }; \
		begin(&x_); \
		writer_usual(&x_.w); \
		writer_event(&x_.w, W_EXECUTION, "5 3 1 0 0 1 0 0"); \
		writer_event(&x_.w, W_EXECUTION, "5 1 1 0 0 0 0 0"); \
		writer_chunk(&x_.w); \
		writer_usual(&x_.w); \
		CHECK_SHOWN(&x_, &options_, message); \
	} while (0)

TEST(limits)
{
	/* Context 1 is {a: b, b: a}; strings 1 a, 2 b. */
	static const char labels[] = "\x0a\x10\x08\x01\x12\x0c\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x02"
								 "\x10\x01\x12\x05\x08\x01\x12\x01"
								 "a\x12\x05\x08\x02\x12\x01"
								 "b";
	static const char all[] = "process_cpu cpu: 2 events, 1 truncated, 0 without stack\n"
							  "  10000000 {a=b,b=a} k:0@[kernel.kallsyms] libx.so.f:0@libx.so "
							  "a/B.c:10\n"
							  "  10000000 a/B.c:10\n";

	LIMIT(chunks_max, 2, all);
	LIMIT(chunks_max, 1, "limit exceeded: recording of more than 1 chunks");
	LIMIT(raw_bytes_max, 4614, all);
	LIMIT(raw_bytes_max, 4613, "limit exceeded: recording is 4614 bytes, limit 4613");
	LIMIT(events_max, 6, all);
	LIMIT(events_max, 5, "limit exceeded: recording of more than 5 events");
	LIMIT(elements_max, 6, "limit exceeded: chunk 1: more than 6 strings in its metadata");
	LIMIT(samples_max, 2, all);
	LIMIT(samples_max, 1, "limit exceeded: more than 1 samples");
	LIMIT(frames_max, 4, all);
	LIMIT(frames_max, 3, "limit exceeded: stacks of more than 3 frames together");
	LIMIT(stack_depth_max, 3, all);
	LIMIT(stack_depth_max, 2,
		"process_cpu cpu: 2 events, 1 truncated, 0 without stack\n"
		"  10000000 {a=b,b=a} k:0@[kernel.kallsyms] libx.so.f:0@libx.so\n"
		"  10000000 a/B.c:10\n");
	LIMIT(string_bytes_max, 14, all);
	LIMIT(string_bytes_max, 13, "limit exceeded: chunk 1: a string of 14 bytes, limit 13");
	LIMIT(text_bytes_max, 76, all);
	LIMIT(text_bytes_max, 75, "limit exceeded: texts of more than 75 bytes together");
	LIMIT(labels_max, 2, all);
	LIMIT(labels_max, 1, "limit exceeded: labels: a context of more than 1");
	LIMIT(arena_bytes_max, 1000,
		"limit exceeded: metadata needs more memory than its limit of 1000 bytes");
}
