#include "tests/proto/jfr/writer.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER 68
#define NAMES_MAX 256

#define SPANS " spanId:2 spanName:2 contextId:2 traceIdHi:2 traceIdLo:2\n"
#define START " startTime:2 "

const char writer_schema[] = "2 long\n"
							 "3 int\n"
							 "4 boolean\n"
							 "5 float\n"
							 "6 double\n"
							 "7 java.lang.String\n"
							 "8 byte\n"
							 "9 short\n"
							 "10 char\n"
							 "11 jdk.jfr.Timespan value:7\n"
							 "20 jdk.types.Symbol string:7\n"
							 "21 java.lang.Class name:20p modifiers:3\n"
							 "22 jdk.types.Method type:21p name:20p hidden:4\n"
							 "23 jdk.types.StackTrace truncated:4 frames:24a\n"
							 "24 jdk.types.StackFrame method:22p lineNumber:3 type:25p\n"
							 "25 jdk.types.FrameType description:7\n"
							 "26 jdk.types.ThreadState name:7\n"
							 "40 jdk.ExecutionSample" START "stackTrace:23p state:26p" SPANS
							 "41 profiler.WallClockSample" START "stackTrace:23p samples:3\n"
							 "42 jdk.ObjectAllocationInNewTLAB" START
							 "tlabSize:2 stackTrace:23p allocationSize:2\n"
							 "43 jdk.ObjectAllocationOutsideTLAB" START
							 "stackTrace:23p allocationSize:2\n"
							 "44 jdk.ObjectAllocationSample" START "stackTrace:23p weight:2\n"
							 "45 jdk.JavaMonitorEnter" START "duration:2@TICKS stackTrace:23p\n"
							 "46 jdk.ThreadPark" START "duration:2@MILLISECONDS stackTrace:23p\n"
							 "47 profiler.LiveObject" START "stackTrace:23p allocationSize:2\n"
							 "48 profiler.Malloc" START "stackTrace:23p size:2\n"
							 "49 jdk.ActiveSetting" START "id:2 name:7 value:7\n"
							 "50 test.Other" START "what:5\n"
							 "51 jdk.OldObjectSample" START "stackTrace:23p objectSize:2\n"
							 "52 jdk.CPUTimeSample" START
							 "stackTrace:23p eventThread:2 failed:4 samplingPeriod:2@TICKS "
							 "biased:4\n"
							 "53 jdk.CPUTimeSamplesLost" START "lostSamples:3 eventThread:2\n";

struct tree {
	struct buf strings, elements;
	struct str names[NAMES_MAX];
	uint32_t names_n;
};

static void number(struct buf *b, uint64_t v)
{
	for (int i = 0; i < 8 && v >= 0x80; i++, v >>= 7)
		buf_add_char(b, (char)(v | 0x80));
	buf_add_char(b, (char)v); /* the ninth has eight bits */
}

static void text(struct buf *b, struct str s)
{
	buf_add_char(b, 3);
	number(b, s.len);
	buf_add_str(b, s);
}

void writer_init(struct writer *w)
{
	*w = (struct writer){
		.schema = writer_schema, .ticks_per_s = 1000000000, .version = 2 << 16, .flags = 1
	};
}

void writer_release(struct writer *w)
{
	buf_release(&w->events);
	buf_release(&w->out);
}

void writer_number(struct writer *w, uint64_t v)
{
	number(&w->events, v);
}

void writer_numbers(struct writer *w, const char *list)
{
	char *end;

	for (; *list; list = end + (*end == ' '))
		number(&w->events, strtoull(list, &end, 0));
}

void writer_bytes(struct writer *w, const void *p, size_t n)
{
	buf_add(&w->events, p, n);
}

void writer_text(struct writer *w, const char *s)
{
	text(&w->events, str_of(s));
}

/* The size is four bytes, as the JDK writes it. */
static void put_size(struct buf *b, size_t at)
{
	size_t size = b->len - at;

	for (int i = 0; i < 4; i++)
		b->ptr[at + (size_t)i] = (char)((size >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
}

void writer_begin(struct writer *w, uint64_t type)
{
	w->event_at = w->events.len;
	buf_add(&w->events, "\0\0\0\0", 4);
	number(&w->events, type);
}

void writer_end(struct writer *w)
{
	put_size(&w->events, w->event_at);
}

void writer_event(struct writer *w, uint64_t type, const char *list)
{
	writer_begin(w, type);
	writer_numbers(w, list);
	writer_end(w);
}

void writer_checkpoint(struct writer *w, uint64_t pools)
{
	writer_begin(w, 1);
	writer_numbers(w, "0 0 0");
	writer_bytes(w, "\1", 1);
	writer_number(w, pools);
}

void writer_setting(struct writer *w, uint64_t id, const char *name, const char *value)
{
	writer_begin(w, W_SETTING);
	writer_number(w, 0);
	writer_number(w, id);
	writer_text(w, name);
	writer_text(w, value);
	writer_end(w);
}

static void texts(struct writer *w, uint64_t class, const char *const *list, uint64_t n)
{
	writer_number(w, class);
	writer_number(w, n);
	for (uint64_t i = 0; i < n; i++) {
		writer_number(w, i + 1);
		writer_text(w, list[i]);
	}
}

void writer_usual(struct writer *w)
{
	writer_checkpoint(w, 6);
	/* Stacks come first: what they refer to is later. */
	writer_number(w, W_TRACE);
	writer_numbers(w,
		"4 "
		"1 0 1 1 10 1 "
		"2 0 2 2 0 2 1 10 1 "
		"3 1 3 3 0 3 2 0 2 1 10 1 "
		"4 0 0");
	writer_number(w, W_METHOD);
	writer_numbers(w, "3 1 1 2 0 2 2 4 0 3 3 6 0");
	writer_number(w, W_CLASS);
	writer_numbers(w, "3 1 1 0 2 3 0 3 5 0");
	texts(w, W_SYMBOL, (const char *[]){ "a/B", "c", "libx.so", "f", "", "k" }, 6);
	texts(w, W_STATE, (const char *[]){ "STATE_RUNNABLE", "STATE_SLEEPING" }, 2);
	texts(w, W_FRAME_TYPE, (const char *[]){ "Interpreted", "Native", "Kernel", "C++" }, 4);
	writer_end(w);
}

static uint32_t name(struct tree *t, struct str s)
{
	uint32_t i = 0;

	while (i < t->names_n && !str_eq(t->names[i], s))
		i++;
	if (i == t->names_n) {
		t->names[t->names_n++] = s;
		text(&t->strings, s);
	}
	return i;
}

static void element(struct tree *t, const char *what, uint64_t attributes)
{
	number(&t->elements, name(t, str_of(what)));
	number(&t->elements, attributes);
}

static void attribute(struct tree *t, const char *key, struct str value)
{
	number(&t->elements, name(t, str_of(key)));
	number(&t->elements, name(t, value));
}

static struct str word(const char **at, const char *stops)
{
	struct str s = { *at, strcspn(*at, stops) };

	*at += s.len;
	return s;
}

static void add_field(struct tree *t, const char **at)
{
	struct str field, class, unit = STR(""), timespan_id = STR("11");
	bool pool = false, array = false;

	(*at)++;
	field = word(at, ":");
	(*at)++;
	class = word(at, "pa@ \n");
	for (; **at != ' ' && **at != '\n';) {
		pool |= **at == 'p';
		array |= **at == 'a';
		if (*(*at)++ == '@')
			unit = word(at, " \n");
	}
	element(t, "field", 4);
	attribute(t, "name", field);
	attribute(t, "class", class);
	attribute(t, "constantPool", pool ? STR("true") : STR("false"));
	attribute(t, "dimension", array ? STR("1") : STR("0"));
	number(&t->elements, unit.len ? 1 : 0);
	if (unit.len) {
		element(t, "annotation", 2);
		attribute(t, "class", timespan_id);
		attribute(t, "value", unit);
		number(&t->elements, 0);
	}
}

static void add_class(struct tree *t, const char **at)
{
	struct str id = word(at, " "), of;
	uint64_t fields = 0;

	(*at)++;
	of = word(at, " \n");
	for (const char *s = *at; *s != '\n'; s++)
		fields += *s == ':';
	element(t, "class", 2);
	attribute(t, "id", id);
	attribute(t, "name", of);
	number(&t->elements, fields);
	while (**at != '\n')
		add_field(t, at);
	(*at)++;
}

static void metadata(struct buf *out, const char *schema)
{
	struct tree t = { 0 };
	size_t at = out->len;
	uint64_t classes = 0;

	for (const char *s = schema; *s; s++)
		classes += *s == '\n';
	element(&t, "root", 0);
	number(&t.elements, 1);
	element(&t, "metadata", 0);
	number(&t.elements, classes);
	while (*schema)
		add_class(&t, &schema);
	buf_add(out, "\0\0\0\0", 4);
	for (int i = 0; i < 4; i++) /* type, start, duration, id */
		number(out, 0);
	number(out, t.names_n);
	buf_add_str(out, buf_str(&t.strings));
	buf_add_str(out, buf_str(&t.elements));
	put_size(out, at);
	buf_release(&t.strings);
	buf_release(&t.elements);
}

void writer_chunk(struct writer *w)
{
	struct buf meta = { 0 };

	metadata(&meta, w->schema);
	buf_add(&w->out, "FLR", 4);
	buf_add_u32be(&w->out, w->version);
	buf_add_u64be(&w->out, HEADER + w->events.len + meta.len);
	buf_add_u64be(&w->out, w->without_checkpoint ? 0 : HEADER); /* the first event */
	buf_add_u64be(&w->out, HEADER + w->events.len);
	buf_add_u64be(&w->out, UINT64_C(1700000000000000000));
	buf_add_u64be(&w->out, 5000000000);
	buf_add_u64be(&w->out, 0);
	buf_add_u64be(&w->out, w->ticks_per_s);
	buf_add_u32be(&w->out, w->flags);
	buf_add_str(&w->out, buf_str(&w->events));
	buf_add_str(&w->out, buf_str(&meta));
	buf_clear(&w->events);
	buf_release(&meta);
}
