/* Recordings made by hand: what each piece of the format means, and what is refused. */
#include "tests/proto/jfr/fixture.h"

TEST(cpu)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "6 3 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "7 1 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "8 2 2 0 0 0 0 0"); /* sleeps */
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"process_cpu cpu: 3 events, 1 truncated, 0 without stack\n"
		"  20000000 a/B.c:10\n"
		"  10000000 k:0@[kernel.kallsyms] libx.so.f:0@libx.so a/B.c:10\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->sleeping_n, 1);
	CHECK_INT(x.f->events_n, 6); /* with checkpoint and metadata */
	CHECK_INT(x.f->profiles[0].pprof->time_nanos, 1700000000000000000);
	CHECK_INT(x.f->profiles[0].pprof->duration_nanos, 5000000000);
	end(&x);
}

/* Each event that is a profile, and how it is weighed. */
TEST(events)
{
	struct fixture x;

	begin(&x);
	x.w.ticks_per_s = 3000000000;
	writer_event(&x.w, W_WALL, "5 2 7");
	writer_event(&x.w, W_IN_TLAB, "5 4096 1 16");
	writer_event(&x.w, W_OUT_TLAB, "5 1 100");
	writer_event(&x.w, W_ALLOC_SAMPLE, "5 1 5000");
	writer_event(&x.w, W_ALLOC_SAMPLE, "5 2 3000");
	writer_event(&x.w, W_MONITOR, "5 6000001 1");
	writer_event(&x.w, W_MONITOR, "5 3000000 1");
	writer_event(&x.w, W_PARK, "5 20 1");
	writer_event(&x.w, W_LIVE, "5 1 24");
	writer_event(&x.w, W_LIVE, "5 1 4096");
	writer_event(&x.w, W_OLD, "5 2 40");
	writer_event(&x.w, W_MALLOC, "5 1 64");
	writer_event(&x.w, W_OTHER, "0x7f");
	writer_usual(&x.w); /* after the events: the order in a chunk does not matter */
	x.w.without_checkpoint = true;
	CHECK_SHOWN(&x, &options,
		"wall wall: 1 events, 0 truncated, 0 without stack\n"
		"  70000000 libx.so.f:0@libx.so a/B.c:10\n"
		"memory alloc_in_new_tlab_objects alloc_in_new_tlab_bytes alloc_outside_tlab_objects "
		"alloc_outside_tlab_bytes alloc_sample_objects alloc_sample_bytes malloc_objects "
		"malloc_bytes live live_bytes old_objects old_bytes: 8 events, 0 truncated, 0 without "
		"stack\n"
		"  1 4096 1 100 1 5000 1 64 2 4120 0 0 a/B.c:10\n"
		"  0 0 0 0 1 3000 0 0 0 0 1 40 libx.so.f:0@libx.so a/B.c:10\n"
		"mutex contentions delay: 2 events, 0 truncated, 0 without stack\n"
		"  2 3000000 a/B.c:10\n"
		"block contentions delay: 1 events, 0 truncated, 0 without stack\n"
		"  1 20000000 a/B.c:10\n");
}

/* What an interval is taken from, first to last: the recording's settings, the caller's rate. */
TEST(intervals)
{
	static const struct {
		const char *name[3], *value[3];
		const char *cpu, *wall;
	} cases[] = {
		{ { NULL }, { NULL }, "10000000", "10000000" },
		{ { "period" }, { "20 ms" }, "20000000", "10000000" },
		{ { "period" }, { "1 s" }, "1000000000", "10000000" },
		{ { "period" }, { "everyChunk" }, "10000000", "10000000" },
		{ { "period" }, { "99999999999999999999 d" }, "10000000", "10000000" },
		{ { "event", "interval" }, { "itimer", "3000000" }, "3000000", "10000000" },
		{ { "event", "interval", "wall" }, { "cpu", "3000000", "50000000" }, "3000000",
			"50000000" },
		{ { "event", "interval" }, { "cpu", "0" }, "10000000", "10000000" },
		{ { "event", "interval" }, { "cache-misses", "1000" }, "10000000", "10000000" },
		{ { "interval" }, { "3000000" }, "10000000", "10000000" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf want = { 0 };
		struct fixture x;

		begin(&x);
		writer_usual(&x.w);
		writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0"); /* settings may come later */
		writer_event(&x.w, W_WALL, "5 1 1");
		for (int k = 0; k < 3 && cases[i].name[k]; k++)
			writer_setting(&x.w, W_EXECUTION, cases[i].name[k], cases[i].value[k]);
		writer_setting(&x.w, W_PARK, "period", "77 ms"); /* of another event */
		buf_printf(&want,
			"process_cpu cpu: 1 events, 0 truncated, 0 without stack\n  %s a/B.c:10\n"
			"wall wall: 1 events, 0 truncated, 0 without stack\n  %s a/B.c:10\n",
			cases[i].cpu, cases[i].wall);
		buf_add_char(&want, '\0');
		CHECK_SHOWN(&x, &options, want.ptr);
		buf_release(&want);
	}
}

/* async-profiler's jfrsync: a chunk of the JDK, then one of its own. */
TEST(intervals_of_chunks)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_setting(&x.w, W_EXECUTION, "period", "20 ms");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	writer_chunk(&x.w);
	writer_usual(&x.w);
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0"); /* names none: it stays */
	writer_chunk(&x.w);
	writer_usual(&x.w);
	writer_setting(&x.w, W_EXECUTION, "interval", "5000000");
	writer_setting(&x.w, W_OTHER, "event", "cpu");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"process_cpu cpu: 3 events, 0 truncated, 0 without stack\n"
		"  45000000 a/B.c:10\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->profiles[0].pprof->period, 20000000);
	end(&x);
}

/* async-profiler before 4: with event=wall, a sample of a sleeping thread is wall and no cpu. */
TEST(wall_as_execution_samples)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_setting(&x.w, W_OTHER, "event", "wall");
	writer_setting(&x.w, W_EXECUTION, "interval", "5000000");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "5 2 2 0 0 0 0 0");
	CHECK_SHOWN(&x, &options,
		"process_cpu cpu: 1 events, 0 truncated, 0 without stack\n"
		"  5000000 a/B.c:10\n"
		"wall wall: 2 events, 0 truncated, 0 without stack\n"
		"  5000000 a/B.c:10\n"
		"  5000000 libx.so.f:0@libx.so a/B.c:10\n");
}

/* No stack, one without frames, one that is not there; a method and a symbol that are not. */
TEST(what_is_missing)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_checkpoint(&x.w, 2);
	writer_numbers(&x.w, "23 2 5 0 2 77 3 1 1 4 1 8 0 1 4 0 99");
	writer_numbers(&x.w, "22 1 4 1 55 0");
	writer_end(&x.w);
	for (int i = 0; i < 5; i++)
		writer_event(&x.w, W_LIVE,
			(const char *[]){ "0 0 1", "0 4 2", "0 123456789012 4", "0 5 8", "0 8 16" }[i]);
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"memory live live_bytes: 5 events, 0 truncated, 3 without stack\n"
		"  3 7 [unknown]:0\n"
		"  1 8 [unknown]:3 a/B.c:4\n"
		"  1 16 a/B.[unknown]:0\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->frames_lost_n, 1);
	end(&x);
}

/* Constants in many checkpoints, that refer back and forth; the first of two with one id counts. */
TEST(checkpoints)
{
	struct fixture x;

	begin(&x);
	writer_checkpoint(&x.w, 1);
	writer_numbers(&x.w, "23 1 9 0 1 5 0xffffffff 0");
	writer_end(&x.w);
	writer_checkpoint(&x.w, 2);
	writer_numbers(&x.w, "22 1 5 0xf123456789abcdef 7 0 20 1 7");
	writer_text(&x.w, "m");
	writer_end(&x.w);
	writer_event(&x.w, W_LIVE, "0 9 5");
	writer_checkpoint(&x.w, 2);
	writer_numbers(&x.w, "21 1 0xf123456789abcdef 8 0 20 2 8");
	writer_text(&x.w, "K");
	writer_number(&x.w, 7);
	writer_text(&x.w, "other");
	writer_end(&x.w);
	CHECK_SHOWN(&x, &options,
		"memory live live_bytes: 1 events, 0 truncated, 0 without stack\n"
		"  1 5 K.m:0\n");
}

/* Each way to write a string. */
TEST(strings)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *want;
	} cases[] = {
		{ "\0", 1, "[unknown]:0" }, { "\1", 1, "[unknown]:0" }, { "\3\2ab", 4, "ab:0" },
		{ "\5\3a\xfc\xff", 5, "a\xc3\xbc\xc3\xbf:0" },
		{ "\4\3a\xfc\x01\xad\x9c\x01", 8, "a\xc3\xbc\xe4\xb8\xad:0" },
		/* U+1F600 as a pair; halves of pairs */
		{ "\4\2\xbd\xb0\x03\x80\xbc\x03", 8, "\xf0\x9f\x98\x80:0" },
		{ "\4\2\xbd\xb0\x03"
		  "a",
			6,
			"\xef\xbf\xbd"
			"a:0" },
		{ "\4\1\x80\xbc\x03", 5, "\xef\xbf\xbd:0" },
		{ "\2\x03", 2, "pooled:0" }, /* a constant of java.lang.String */
		{ "\2\x04", 2, "pooled:0" }, /* which is one again */
		{ "\2\x05", 2, "[unknown]:0" }, /* which is itself */
		{ "\2\x63", 2, "[unknown]:0" }, /* which is not there */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf want = { 0 };
		struct fixture x;

		begin(&x);
		writer_checkpoint(&x.w, 4);
		writer_numbers(&x.w, "7 3 3");
		writer_text(&x.w, "pooled");
		writer_numbers(&x.w, "4 2 3 5 2 5 20 1 1");
		writer_bytes(&x.w, cases[i].bytes, cases[i].len);
		writer_numbers(&x.w, "22 1 1 0 1 0 23 1 1 0 1 1 0 0");
		writer_end(&x.w);
		writer_event(&x.w, W_LIVE, "0 1 0");
		buf_printf(&want,
			"memory live live_bytes: 1 events, 0 truncated, 0 without stack\n  1 0 %s\n",
			cases[i].want);
		buf_add_char(&want, '\0');
		CHECK_SHOWN(&x, &options, want.ptr);
		buf_release(&want);
	}
}

/*
 * The JDK repeats its old objects with each dump, all of one dump with one time: the last dump of
 * the last chunk counts.
 */
TEST(old_objects)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_event(&x.w, W_OLD, "90 1 100"); /* a chunk before: its clock does not matter */
	writer_chunk(&x.w);
	writer_usual(&x.w);
	writer_event(&x.w, W_OLD, "20 2 10");
	writer_event(&x.w, W_OLD, "30 3 10");
	writer_event(&x.w, W_OLD, "20 1 10");
	writer_event(&x.w, W_ALLOC_SAMPLE, "5 1 5000");
	writer_event(&x.w, W_OLD, "30 1 16");
	writer_event(&x.w, W_OLD, "30 1 24");
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"memory alloc_sample_objects alloc_sample_bytes old_objects old_bytes: 4 events, 1 "
		"truncated, 0 without stack\n"
		"  1 5000 2 40 a/B.c:10\n"
		"  0 0 1 10 k:0@[kernel.kallsyms] libx.so.f:0@libx.so a/B.c:10\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->profiles[0].kinds[1], KIND_DELTA);
	CHECK_INT(x.f->profiles[0].kinds[2], KIND_GAUGE);
	CHECK_INT(x.f->profiles[0].kinds[3], KIND_GAUGE);
	end(&x);
}

/* JDK 17 records no sizes. */
TEST(old_objects_without_size)
{
	struct fixture x;

	begin(&x);
	x.w.schema = "2 long\n51 jdk.OldObjectSample startTime:2\n";
	writer_checkpoint(&x.w, 0);
	writer_end(&x.w);
	writer_event(&x.w, W_OLD, "1");
	writer_event(&x.w, W_OLD, "1");
	CHECK_SHOWN(&x, &options,
		"memory old_objects: 2 events, 0 truncated, 2 without stack\n"
		"  2 [unknown]:0\n");
}

/*
 * JDK 25: each sample says how much time it is for. A failed one has no stack, and its time was
 * spent all the same; of lost ones only the number is known.
 */
TEST(cpu_time)
{
	struct fixture x;

	begin(&x);
	x.w.ticks_per_s = 3000000000;
	writer_usual(&x.w);
	writer_setting(&x.w, W_CPU_TIME, "enabled", "true");
	writer_setting(&x.w, W_CPU_TIME, "throttle", "7 ms");
	writer_event(&x.w, W_CPU_TIME, "5 1 9 0 21000000 0");
	writer_event(&x.w, W_CPU_TIME, "6 3 9 0 42000000 1"); /* the timer had run out twice */
	writer_event(&x.w, W_CPU_TIME, "7 0 9 1 21000000 0");
	writer_event(&x.w, W_CPU_LOST, "8 3 9");
	writer_event(&x.w, W_CPU_LOST, "9 39 10");
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"process_cpu cpu: 3 events, 1 truncated, 1 without stack\n"
		"  7000000 a/B.c:10\n"
		"  14000000 k:0@[kernel.kallsyms] libx.so.f:0@libx.so a/B.c:10\n"
		"  7000000 [unknown]:0\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->profiles[0].pprof->period, 7000000);
	CHECK_INT(x.f->samples_lost_n, 42);
	end(&x);
}

/*
 * Both samplers of the JDK saw the same threads, so their times are two columns. `cpu` is the
 * better one, wherever in the file it is.
 */
TEST(cpu_time_beside_execution_samples)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_setting(&x.w, W_EXECUTION, "period", "20 ms");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "6 2 1 0 0 0 0 0");
	writer_chunk(&x.w);
	writer_usual(&x.w);
	writer_event(&x.w, W_CPU_TIME, "5 1 9 0 7000000 0");
	writer_event(&x.w, W_CPU_TIME, "5 1 9 0 9000000 0");
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"process_cpu execution cpu: 4 events, 0 truncated, 0 without stack\n"
		"  20000000 16000000 a/B.c:10\n"
		"  20000000 0 libx.so.f:0@libx.so a/B.c:10\n");
	REQUIRE(!x.rc);
	CHECK_INT(x.f->profiles[0].pprof->period, 7000000);
	end(&x);
}

/* An idle process has no samples of CPU time: what the name means does not change with that. */
TEST(cpu_time_that_is_on_and_idle)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	writer_setting(&x.w, W_CPU_TIME, "enabled", "false");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	CHECK_SHOWN(&x, &options,
		"process_cpu cpu: 1 events, 0 truncated, 0 without stack\n"
		"  10000000 a/B.c:10\n");
	begin(&x);
	writer_usual(&x.w);
	writer_setting(&x.w, W_CPU_TIME, "enabled", "true");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	CHECK_SHOWN(&x, &options,
		"process_cpu execution cpu: 1 events, 0 truncated, 0 without stack\n"
		"  10000000 0 a/B.c:10\n");
}

/* Fields are found by name: another order, other types, more and nested ones. */
TEST(another_schema)
{
	struct fixture x;

	begin(&x);
	x.w.schema = "2 long\n3 int\n4 boolean\n5 float\n6 double\n7 java.lang.String\n8 byte\n"
				 "9 short\n10 char\n11 jdk.jfr.Timespan value:7\n"
				 "12 test.Inner a:2 b:7 c:5 d:6 e:8 f:9 g:10a\n"
				 "13 test.Outer one:12 many:12a\n"
				 "22 jdk.types.Method name:7p type:7\n"
				 "23 jdk.types.StackTrace frames:24a truncated:8\n"
				 "24 jdk.types.StackFrame extra:13 lineNumber:9 method:22p\n"
				 "47 profiler.LiveObject stackTrace:23p startTime:2\n"
				 "46 jdk.ThreadPark stackTrace:23p duration:10@NANOSECONDS\n";
	writer_checkpoint(&x.w, 3);
	writer_numbers(&x.w, "23 1 1 1");
	writer_numbers(&x.w, "300"); /* one.a */
	writer_bytes(&x.w, "\3\1x", 3);
	writer_bytes(&x.w,
		"1234"
		"12345678"
		"\xff",
		13);
	writer_numbers(&x.w, "9 2 5 6"); /* one.f, one.g of two */
	writer_numbers(&x.w, "1 1"); /* many: one; its a */
	writer_bytes(&x.w,
		"\1"
		"1234"
		"12345678"
		"\0",
		14);
	writer_numbers(&x.w, "9 0");
	writer_numbers(&x.w, "12 2"); /* line, method */
	writer_bytes(&x.w, "\1", 1); /* truncated */
	writer_numbers(&x.w, "22 1 2 4");
	writer_text(&x.w, "T");
	writer_numbers(&x.w, "7 1 4");
	writer_text(&x.w, "n");
	writer_end(&x.w);
	writer_event(&x.w, W_LIVE, "1 0");
	writer_event(&x.w, W_PARK, "1 60000");
	CHECK_SHOWN(&x, &options,
		"memory live: 1 events, 1 truncated, 0 without stack\n"
		"  1 T.n:12\n"
		"block contentions delay: 1 events, 1 truncated, 0 without stack\n"
		"  1 60000 T.n:12\n");
}

TEST(spans)
{
	struct jfr_options with = options;
	struct fixture x;

	begin(&x);
	with.with_spans = true;
	with.labels = (struct str){ "\x12\x07\x08\x05\x12\x03GET", 9 }; /* string 5: GET */
	writer_usual(&x.w);
	writer_event(&x.w, W_EXECUTION, "5 1 1 0 0 0 0 0");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0xabc 5 0 1 2");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0xabc 5 0 1 2");
	writer_event(&x.w, W_EXECUTION, "5 1 1 0xabd 0 0 0 0");
	writer_chunk(&x.w);
	decode(&x, &options);
	CHECK_STR(buf_str(&x.text),
		"process_cpu cpu: 4 events, 0 truncated, 0 without stack\n"
		"  40000000 a/B.c:10\n");
	CHECK_SHOWN(&x, &with,
		"process_cpu cpu: 4 events, 0 truncated, 0 without stack\n"
		"  10000000 a/B.c:10\n"
		"  20000000 {profile_id=0000000000000abc,span_name=GET,"
		"trace_id=00000000000000010000000000000002} a/B.c:10\n"
		"  10000000 {profile_id=0000000000000abd} a/B.c:10\n");
}

/* An empty recording is a chunk without events that are profiles. */
TEST(nothing_to_show)
{
	struct fixture x;

	begin(&x);
	writer_usual(&x.w);
	decode(&x, &options);
	CHECK(!x.rc && x.f->profiles_n == 0 && x.f->events_n == 2);
	end(&x);
}
