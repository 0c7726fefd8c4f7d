/* What becomes of profiles that are sent: labels, times, rows, answers; and whose turn it is. */
#include "scrape/receive/receive.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "scrape/config/config.h"
#include "tests/check.h"
#include "tests/wait.h"

/* ---- a sink that writes down what it gets ---- */

struct notes {
	struct sink sink; /* first: the receiver gets it */
	struct buf text;
	const char *refuse; /* profiles with this in their labels; NULL: none */
};

static enum err_code append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct notes *n = (struct notes *)s;
	size_t from = n->text.len;

	labels_print(&n->text, p->labels);
	if (n->refuse && memmem(n->text.ptr + from, n->text.len - from, n->refuse, strlen(n->refuse))) {
		n->text.len = from;
		return err_set(err, ERR_EXISTS, "another profile is stored already");
	}
	buf_printf(&n->text, " @%d every %d ms%s:", (int)(p->ts_ns / NS_PER_S),
		(int)(p->interval_ns / NS_PER_MS), p->gap_max_ns ? " or since the one before" : "");
	for (uint32_t i = 0; i < p->profile->samples_n; i++) {
		const struct pprof_sample *sample = &p->profile->samples[i];
		const struct pprof_location *leaf =
			&p->profile->locations[p->profile->location_ids[sample->location_first]];
		const struct pprof_line *line = &p->profile->lines[leaf->line_first];

		buf_printf(&n->text, " " STR_FMT " %d",
			STR_ARG(p->profile->strings[p->profile->functions[line->function].name]),
			(int)p->profile->values[i * p->profile->types_n]);
	}
	buf_printf(
		&n->text, " (%s%s)\n", value_kind_name(p->kinds[0]), p->as_sent ? "" : ", converted");
	if (p->stored)
		*p->stored = (struct sink_stored){ p->profile->samples_n, false };
	done(ctx, ERR_OK, NULL);
	return ERR_OK;
}

static const struct sink_ops ops = { .append = append };

/* ---- a receiver with a configuration ---- */

struct bed {
	struct notes notes;
	struct config *config;
	struct receiver *r;
	struct arena arena;
	struct err err;
};

static struct config *config_of(void *ctx)
{
	return config_ref(((struct bed *)ctx)->config);
}

static bool bed_open(struct bed *t, const char *config)
{
	struct receiver_options o = { &t->notes.sink, config_of, t, 5 * NS_PER_MIN };

	*t = (struct bed){ .notes.sink = { &ops } };
	arena_init(&t->arena, 0);
	CHECK_OK(config_load_text("test.yml", STR("."), str_of(config), &t->config, &t->err), &t->err);
	return t->config && !receiver_open(&o, &t->r, &t->err);
}

static void bed_close(struct bed *t)
{
	receiver_close(t->r);
	config_unref(t->config);
	arena_release(&t->arena);
	buf_release(&t->notes.text);
}

/* "a=b,c=d" */
static struct labels labels_of(struct arena *a, const char *text)
{
	struct labels_builder b;
	struct labels out = { 0 };
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	while (*text) {
		size_t name = strcspn(text, "="), value = strcspn(text + name + 1, ",");

		labels_builder_set(&b, (struct str){ text, name }, (struct str){ text + name + 1, value });
		text += name + 1 + value;
		text += *text == ',';
	}
	CHECK_OK(labels_builder_build(&b, &out, &err), &err);
	return out;
}

/* One sample of `function`. */
static struct pprof *profile(struct arena *a, const char *type, const char *function, int64_t value)
{
	struct pprof_builder *b;
	struct pprof_function f = { 0 };
	struct pprof_line line = { 0 };
	struct pprof *p = NULL;
	struct err err;
	uint32_t at;

	if (pprof_builder_open(a, &b, &err))
		abort();
	pprof_builder_type(b, str_of(type), STR("count"));
	f.name = pprof_builder_string(b, str_of(function));
	line.function = pprof_builder_function(b, &f);
	at = pprof_builder_location(b, (struct pprof_location){ .mapping = PPROF_NONE }, &line, 1);
	pprof_builder_sample(b, &at, 1, NULL, 0, &value);
	if (pprof_builder_finish(b, &p, &err))
		abort();
	return p;
}

static struct received sent(struct bed *t, const char *labels, const char *function, int64_t value)
{
	return (struct received){ .labels = labels_of(&t->arena, labels),
		.profile = profile(&t->arena, "samples", function, value),
		.ts_ns = 100 * NS_PER_S,
		.interval_ns = 10 * NS_PER_S };
}

static void store(struct bed *t, struct received *v, size_t n)
{
	struct receive_turn turn;

	REQUIRE_OK(receive_begin(t->r, STR("me"), &turn, &t->err), &t->err);
	receive_store(&turn, v, n);
	/* Labels may be in the turn's arena: answers are looked at while it lasts. */
	for (size_t i = 0; i < n; i++)
		v[i].labels = labels_dup(&t->arena, v[i].labels);
	receive_end(&turn);
}

/* ---- labels ---- */

static void check_label(const char *config, const char *name, const char *want)
{
	struct receive_turn turn;
	struct str is = str_of(name);
	struct bed t;

	REQUIRE(bed_open(&t, config));
	REQUIRE_OK(receive_begin(t.r, STR("me"), &turn, &t.err), &t.err);
	if (!receive_label(&turn, &is))
		is = STR("-");
	if (!str_is(is, want))
		CHECK_FAIL("%s becomes " STR_FMT ", want %s", name, STR_ARG(is), want);
	receive_end(&turn);
	bed_close(&t);
}

TEST(names_of_senders_become_names_of_labels)
{
	static const char changed[] = "push_config:\n"
								  "  drop_labels: ['a\\.b', 'c.*']\n"
								  "  attributes: {service.name: app, thread.name: thread}\n";

	check_label("{}", "service.name", "service_name");
	check_label("{}", "k8s.pod.name", "pod");
	check_label("{}", "k8s.namespace.name", "namespace");
	check_label("{}", "k8s.container.name", "container");
	check_label("{}", "k8s.node.name", "node");
	check_label("{}", "deployment.environment", "deployment_environment");
	check_label("{}", "2nd-try", "_2nd_try");
	check_label("{}", "plain", "plain");
	check_label("{}", "process.pid", "-");
	check_label("{}", "process.runtime.version", "-");
	check_label("{}", "thread.id", "-");
	check_label("{}", "__session_id__", "-");
	check_label("{}", "k8s.pod.uid", "-");
	check_label("{}", "process.executable.name", "process_executable_name");
	check_label(changed, "service.name", "app");
	check_label(changed, "k8s.pod.name", "pod");
	check_label(changed, "thread.name", "thread");
	check_label(changed, "process.pid", "process_pid");
	check_label(changed, "a.b", "-");
	check_label(changed, "axb", "axb");
	check_label(changed, "cdef", "-");
	check_label("push_config: {drop_labels: []}", "thread.id", "thread_id");
}

TEST(labels_are_added_and_relabelled)
{
	struct received v[3];
	struct bed t;

	REQUIRE(bed_open(&t,
		"push_config:\n"
		"  labels: {cluster: a, zone: z}\n"
		"  relabel_configs:\n"
		"  - {source_labels: [zone], regex: secret, action: drop}\n"
		"  - {source_labels: [zone, __hint__], separator: /, target_label: place}\n"
		"  - {regex: zone, action: labeldrop}\n"));
	v[0] = sent(&t, "__name__=cpu,job=j", "f", 1);
	v[1] = sent(&t, "__name__=cpu,zone=y,__hint__=h", "f", 2);
	v[2] = sent(&t, "__name__=cpu,zone=secret", "f", 3);
	store(&t, v, 3);
	CHECK_STR(buf_str(&t.notes.text),
		"cpu{cluster=\"a\", job=\"j\", place=\"z/\"} @100 every 10000 ms: f 1 (gauge)\n"
		"cpu{cluster=\"a\", place=\"y/h\"} @100 every 10000 ms: f 2 (gauge)\n");
	for (size_t i = 0; i < 3; i++)
		CHECK_OK(v[i].rc, &v[i].err);
	CHECK(!v[0].dropped && !v[1].dropped && v[2].dropped);
	CHECK_INT(v[0].samples, 1);
	CHECK_INT(v[2].samples, 0);
	bed_close(&t);
}

static void wrong_config(const char *push, const char *want)
{
	struct arena a;
	struct config *c = NULL;
	struct err err;
	char *text;

	arena_init(&a, 0);
	text = arena_printf(&a, "push_config: %s\n", push);
	CHECK_ERR(
		config_load_text("test.yml", STR("."), str_of(text), &c, &err), &err, ERR_INVALID, want);
	config_unref(c);
	arena_release(&a);
}

TEST(a_wrong_configuration_is_named)
{
	wrong_config("{drop_label: [a]}",
		"test.yml:1:15: field drop_label not found in type push_config; did you mean "
		"\"drop_labels\"?");
	wrong_config("{drop_labels: ['a', '(']}",
		"test.yml:1:14: drop_labels: \"(\": error parsing regexp: missing ): (");
	wrong_config("{drop_labels: ['a)', '(b']}",
		"test.yml:1:14: drop_labels: \"a)\": error parsing regexp: unexpected ): a)");
	wrong_config(
		"{labels: {a-b: c}}", "test.yml:1:14: labels: \"a-b\" cannot be the name of a label");
	wrong_config("{labels: {__name__: c}}",
		"test.yml:1:14: labels: \"__name__\" cannot be the name of a label");
	wrong_config("{attributes: {a.b: c.d}}",
		"test.yml:1:14: attributes: \"c.d\" cannot be the name of a label");
	wrong_config("{relabel_configs: [{action: nothing}]}",
		"test.yml:1:42: unknown relabel action \"nothing\"");
}

/* ---- rows ---- */

TEST(profiles_of_one_series_and_time_are_one_row)
{
	struct received v[6];
	struct bed t;

	REQUIRE(bed_open(&t, "{}"));
	v[0] = sent(&t, "__name__=cpu,job=b", "f", 1);
	v[1] = sent(&t, "__name__=cpu,job=a", "f", 2);
	v[2] = sent(&t, "__name__=cpu,job=b", "g", 4);
	v[3] = sent(&t, "__name__=cpu,job=b", "f", 8);
	v[4] = sent(&t, "__name__=cpu,job=b", "f", 16);
	v[4].ts_ns += NS_PER_S;
	v[5] = sent(&t, "__name__=cpu,job=b", "f", 32);
	v[5].profile = profile(&t.arena, "objects", "f", 32);
	v[3].interval_ns = 20 * NS_PER_S;
	store(&t, v, 6);
	CHECK_STR(buf_str(&t.notes.text),
		"cpu{job=\"a\"} @100 every 10000 ms: f 2 (gauge)\n"
		"cpu{job=\"b\"} @100 every 20000 ms: f 1 g 4 f 8 f 0 (gauge)\n"
		"cpu{job=\"b\"} @101 every 10000 ms: f 16 (gauge)\n");
	CHECK_INT(v[0].samples, 4); /* of the row; it is counted once */
	CHECK_INT(v[2].samples + v[3].samples, 0);
	bed_close(&t);
}

TEST(one_that_is_refused_stops_no_other)
{
	struct received v[6];
	struct bed t;
	char longer[RECEIVE_VALUE_BYTES_MAX + 2];

	REQUIRE(bed_open(&t, "{}"));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	t.notes.refuse = "taken";
	v[0] = sent(&t, "__name__=cpu,job=a-ok", "f", 1);
	v[1] = sent(&t, "job=a", "f", 1);
	v[2] = sent(&t, "__name__=cpu,a-b=c", "f", 1);
	v[3] = sent(&t, arena_printf(&t.arena, "__name__=cpu,v=%s", longer), "f", 1);
	v[4] = sent(&t, "__name__=cpu,job=taken", "f", 1);
	v[5] = sent(&t, "__name__=cpu,job=b", "f", 1);
	v[5].ts_ns = -1;
	store(&t, v, 6);
	CHECK_OK(v[0].rc, &v[0].err);
	CHECK_ERR(v[1].rc, &v[1].err, ERR_INVALID, "\"\" cannot be the name of a profile");
	CHECK_ERR(v[2].rc, &v[2].err, ERR_INVALID, "\"a-b\" cannot be the name of a label");
	CHECK_ERR(v[3].rc, &v[3].err, ERR_LIMIT, "the value of label v is longer than 4096 bytes");
	CHECK_ERR(v[4].rc, &v[4].err, ERR_EXISTS, "another profile is stored already");
	CHECK_ERR(v[5].rc, &v[5].err, ERR_INVALID, "the profile's time is before 1970 or after 2116");
	CHECK_STR(buf_str(&t.notes.text), "cpu{job=\"a-ok\"} @100 every 10000 ms: f 1 (gauge)\n");
	bed_close(&t);
}

TEST(without_an_interval_the_profiles_duration_or_the_one_before_counts)
{
	struct received v[2];
	struct bed t;

	REQUIRE(bed_open(&t, "{}"));
	v[0] = sent(&t, "__name__=a", "f", 1);
	v[0].interval_ns = 0;
	v[1] = sent(&t, "__name__=b", "f", 1);
	v[1].interval_ns = 0;
	((struct pprof *)(uintptr_t)v[1].profile)->duration_nanos = 3 * NS_PER_S;
	v[1].convert = true;
	store(&t, v, 2);
	CHECK_STR(buf_str(&t.notes.text),
		"a @100 every 1000 ms or since the one before: f 1 (gauge)\n"
		"b @100 every 3000 ms: f 1 (delta, converted)\n");
	bed_close(&t);
}

TEST(older_than_the_retention_is_refused)
{
	static const char want[] = "profile of 1970-01-01T00:01:40.000Z is older than the retention, "
							   "which ends at 20";
	struct receiver_options o;
	struct received v[2];
	struct bed t;

	REQUIRE(bed_open(&t, "{}"));
	receiver_close(t.r);
	o = (struct receiver_options){ &t.notes.sink, config_of, &t, 5 * NS_PER_MIN,
		.retention_ns = NS_PER_HOUR };
	REQUIRE_OK(receiver_open(&o, &t.r, &t.err), &t.err);
	v[0] = sent(&t, "__name__=a", "f", 1);
	v[1] = sent(&t, "__name__=b", "f", 1);
	v[1].ts_ns = clock_now_ns() - NS_PER_HOUR / 2;
	store(&t, v, 2);
	CHECK_INT(v[0].rc, ERR_INVALID);
	CHECK(!strncmp(v[0].err.msg, want, sizeof(want) - 1));
	CHECK_OK(v[1].rc, &v[1].err);
	CHECK(!strncmp(t.notes.text.ptr, "b @", 3));
	bed_close(&t);
}

/* ---- turns ---- */

TEST(a_sender_that_sends_too_much_waits_and_no_other)
{
	struct received v[120];
	struct receive_turn turn;
	int64_t began_ns;
	struct bed t;

	REQUIRE(bed_open(&t, "push_config: {profiles_per_second: 2}"));
	for (int i = 0; i < 120; i++)
		v[i] = sent(&t, "__name__=cpu", "f", 1);
	began_ns = clock_monotonic_ns();
	store(&t, v, 120); /* 4 are its credit: 116 too many are 58 s */
	CHECK_ERR(receive_begin(t.r, STR("me"), &turn, &t.err), &t.err, ERR_LIMIT,
		"this sender sends more than 2 profiles per second (profiles_per_second)");
	CHECK(turn.retry_s <= 59);
	CHECK(turn.retry_s * NS_PER_S >= 58 * NS_PER_S - (clock_monotonic_ns() - began_ns));
	REQUIRE_OK(receive_begin(t.r, STR("you"), &turn, &t.err), &t.err);
	receive_end(&turn);
	bed_close(&t);
}

struct waiter {
	struct bed *t;
	const char *sender;
	struct thread thread;
	atomic_int *in;
	enum err_code rc;
};

static void begin(void *ctx)
{
	struct waiter *w = ctx;
	struct receive_turn turn;
	struct err err;

	atomic_fetch_add(w->in, 1);
	w->rc = receive_begin(w->t->r, str_of(w->sender), &turn, &err);
	if (!w->rc)
		receive_end(&turn);
}

/* All that run are mine, and so are some that wait: another sender's turn comes when one ends, and
 * mine beyond my share are refused at once. */
TEST(no_sender_takes_all_turns)
{
	struct receive_turn mine[RECEIVE_RUNNING_MAX], turn;
	struct waiter v[RECEIVE_SENDER_MAX - RECEIVE_RUNNING_MAX + 1];
	size_t n = sizeof(v) / sizeof(v[0]);
	atomic_int in = 0;
	struct bed t;
	enum err_code rc;

	REQUIRE(bed_open(&t, "{}"));
	for (unsigned i = 0; i < RECEIVE_RUNNING_MAX; i++)
		REQUIRE_OK(receive_begin(t.r, STR("me"), &mine[i], &t.err), &t.err);
	for (size_t i = 0; i < n; i++) {
		v[i] = (struct waiter){ &t, i ? "me" : "you", .in = &in };
		REQUIRE_OK(thread_start(&v[i].thread, "waiter", begin, &v[i], &t.err), &t.err);
	}
	/* Until they are in, this one may take the place of one of them, and then waits as they do. */
	CHECK(WAIT_FOR(atomic_load(&in) == (int)n && receiver_waiting(t.r) == n));
	rc = receive_begin(t.r, STR("me"), &turn, &t.err);
	CHECK_ERR(rc, &t.err, ERR_LIMIT, "16 requests of this sender are in progress: try again later");
	CHECK_INT(turn.retry_s, 1);
	for (unsigned i = 0; i < RECEIVE_RUNNING_MAX; i++)
		receive_end(&mine[i]);
	for (size_t i = 0; i < n; i++) {
		thread_join(&v[i].thread);
		CHECK_INT(v[i].rc, ERR_OK);
	}
	bed_close(&t);
}

TEST(stopping_ends_all_waiting)
{
	struct receive_turn mine[RECEIVE_RUNNING_MAX], turn;
	atomic_int in = 0;
	struct bed t;
	struct waiter w = { &t, "you", .in = &in };

	REQUIRE(bed_open(&t, "{}"));
	for (unsigned i = 0; i < RECEIVE_RUNNING_MAX; i++)
		REQUIRE_OK(receive_begin(t.r, STR("me"), &mine[i], &t.err), &t.err);
	REQUIRE_OK(thread_start(&w.thread, "waiter", begin, &w, &t.err), &t.err);
	CHECK(WAIT_FOR(receiver_waiting(t.r) == 1));
	receiver_stop(t.r);
	thread_join(&w.thread);
	CHECK_INT(w.rc, ERR_UNAVAILABLE);
	CHECK_ERR(receive_begin(t.r, STR("he"), &turn, &t.err), &t.err, ERR_UNAVAILABLE,
		"the server is shutting down");
	for (unsigned i = 0; i < RECEIVE_RUNNING_MAX; i++)
		receive_end(&mine[i]);
	bed_close(&t);
}
