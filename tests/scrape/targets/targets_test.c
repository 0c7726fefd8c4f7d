#include "scrape/targets/targets.h"

#include <stdlib.h>

#include "scrape/targets/url.h"
#include "tests/check.h"

/* A job (what follows job_name) and the set it makes, as text. */
struct row {
	const char *name, *job, *want;
};

struct nth_dropped {
	size_t i;
	const struct target_dropped *found;
};

static void look_at_part(void *ctx, struct target_part *p)
{
	struct nth_dropped *d = ctx;

	if (!d->found && d->i < p->dropped_n)
		d->found = &p->dropped[d->i];
	d->i -= p->dropped_n;
}

static const struct target_dropped *dropped(const struct target_set *s, size_t i)
{
	struct nth_dropped d = { i, NULL };

	target_node_each_part(s->tree, look_at_part, &d);
	if (!d.found)
		abort();
	return d.found;
}

static int by_labels(const void *a, const void *b)
{
	const struct target *const *x = a, *const *y = b;

	return labels_cmp((*x)->labels, (*y)->labels);
}

/* The ith by labels. */
static const struct target *nth(const struct target_set *s, size_t i)
{
	const struct target *v[16];

	if (s->n > sizeof(v) / sizeof(v[0]))
		abort();
	for (size_t k = 0; k < s->n; k++)
		v[k] = target_set_at(s, k);
	qsort(v, s->n, sizeof(v[0]), by_labels);
	return v[i];
}

static void print_set(struct buf *out, const struct target_set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct target *t = nth(s, i);

		labels_print(out, t->labels);
		buf_printf(out, " " STR_FMT, STR_ARG(t->url));
		if (t->unix_path)
			buf_printf(out, " through %s", t->unix_path);
		buf_printf(out, " %ds/%ds\n", (int)(t->interval_ns / 1000000000),
			(int)(t->timeout_ns / 1000000000));
	}
	for (size_t i = 0; i < s->dropped_n; i++) {
		buf_add_cstr(out, "dropped ");
		buf_add_str(out, labels_get(dropped(s, i)->discovered, STR("__address__")));
		buf_add_char(out, ' ');
		buf_add_str(out, labels_get(dropped(s, i)->discovered, STR(LABEL_NAME)));
		buf_add_char(out, '\n');
	}
	if (s->error)
		buf_printf(out, "error %s\n", s->error);
}

static struct shard shard; /* that targets are for; all of them */

static struct target_set *expand(const char *job, struct err *err)
{
	struct buf text = { 0 };
	struct config *c = NULL;
	struct groups *g = groups_new(0);
	struct target_set *s = NULL;

	buf_printf(&text,
		"scrape_configs:\n- {job_name: j, scrape_interval: 10s, scrape_timeout: 5s, %s}\n", job);
	if (!config_load_text("c.yml", STR("."), buf_str(&text), &c, err)) {
		g->v = c->scrape[0].sd.statics;
		g->n = c->scrape[0].sd.statics_n;
		if (targets_expand(c, &c->scrape[0], shard, g, NULL, &s, err))
			s = NULL;
	}
	config_unref(c);
	groups_unref(g);
	buf_release(&text);
	return s;
}

#define NONE \
	"process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, " \
	"mutex: {enabled: false}, goroutine: {enabled: false}, goroutineleak: {enabled: false}"
#define ONLY(profile) "profiling_config: {pprof_config: {" NONE ", " profile "}}, "
#define MEM ONLY("m: {path: /m}")
#define CPU \
	"profiling_config: {pprof_config: {memory: {enabled: false}, " \
	"block: {enabled: false}, mutex: {enabled: false}, goroutine: {enabled: false}, " \
	"goroutineleak: {enabled: false}}}, "

#define LONG_PATH \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
	"xxxxxxxxxxxxxxx"

/* clang-format off */
static const struct row expansion_rows[] = {
	{ "through sockets: two of one address; the address has a default",
	  MEM "static_configs: [{targets: ['app'], labels: {__unix_socket__: /run/a.sock, n: a}}, "
	  "{targets: ['app'], labels: {__scrape_unix_socket__: /run/b.sock, n: b}}, "
	  "{targets: ['drop'], labels: {n: c}}], "
	  "relabel_configs: [{source_labels: [__address__], regex: drop, target_label: "
	  "__unix_socket__, replacement: /run/c.sock}, {source_labels: [__address__], regex: drop, "
	  "replacement: '', target_label: __address__}]",
	  "m{instance=\"app\", job=\"j\", n=\"a\"} http://app/m through /run/a.sock 10s/5s\n"
	  "m{instance=\"app\", job=\"j\", n=\"b\"} http://app/m through /run/b.sock 10s/5s\n"
	  "m{instance=\"localhost\", job=\"j\", n=\"c\"} http://localhost/m through /run/c.sock "
	  "10s/5s\n" },
	{ "two sockets are two targets, even if all labels are equal",
	  MEM "static_configs: [{targets: ['app'], labels: {__unix_socket__: /run/a.sock}}, "
	  "{targets: ['app'], labels: {__unix_socket__: /run/b.sock}}, "
	  "{targets: ['app'], labels: {__unix_socket__: /run/a.sock}}]",
	  "m{instance=\"app\", job=\"j\"} http://app/m through /run/a.sock 10s/5s\n"
	  "error http://app/m through /run/b.sock is not scraped: http://app/m through /run/a.sock "
	  "has the same labels m{instance=\"app\", job=\"j\"}\n" },
	{ "what is no path of a socket",
	  MEM "static_configs: [{targets: [app]}], "
	  "relabel_configs: [{target_label: __unix_socket__, replacement: run/a.sock}]",
	  "error instance 0 in group 0: \"run/a.sock\" is not the absolute path of a socket\n" },
	{ "a path that the kernel does not take",
	  MEM "static_configs: [{targets: [app]}], "
	  "relabel_configs: [{target_label: __unix_socket__, replacement: /" LONG_PATH "}]",
	  "error instance 0 in group 0: path of a socket is 108 bytes, limit 107: \"/"
	  LONG_PATH "\"\n" },
	{ "every profile that is on, with its own times", "static_configs: [{targets: ['a:1']}]",
	  "block{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/block 10s/5s\n"
	  "goroutine{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/goroutine 10s/5s\n"
	  "goroutineleak{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/goroutineleak 120s/5s\n"
	  "memory{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/allocs 10s/5s\n"
	  "mutex{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/mutex 10s/5s\n"
	  "process_cpu{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/debug/pprof/profile?seconds=9 10s/14s\n" },
	{ "seconds, interval and timeout as configured; a delta heap",
	  "profiling_config: {pprof_config: {process_cpu: {seconds: 3, interval: 20s, timeout: "
	  "4s}, "
	  "memory: {delta: true, seconds: 2}, block: {enabled: false}, mutex: {enabled: false}, "
	  "goroutine: {enabled: false}, goroutineleak: {enabled: false}}}, "
	  "static_configs: [{targets: ['a:1']}]",
	  "memory{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/debug/pprof/allocs?seconds=2 10s/7s\n"
	  "process_cpu{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/debug/pprof/profile?seconds=3 20s/7s\n" },
	{ "labels of the group, and what wins over the defaults",
	  MEM "static_configs: [{targets: ['a:1'], labels: {job: mine, instance: i, env: prod, "
	  "__scheme__: "
	  "https, __profile_path__: /other, __scrape_interval__: 1m, __scrape_timeout__: 2s, __x: "
	  "y}}]",
	  "m{env=\"prod\", instance=\"i\", job=\"mine\"} https://a:1/other 60s/2s\n" },
	{ "params: the profile's over the job's, further values stay",
	  "params: {b: ['1', '2'], 'c d': ['&='], e: [], f: [x]}, "
	  ONLY("m: {path: /m, params: {f: [own]}}")
	  "static_configs: [{targets: ['a:1'], labels: {__param_b: 'n', __param_z: 'ä'}}]",
	  "m{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/m?b=n&b=2&c+d=%26%3D&f=own&z=%C3%A4 10s/5s\n" },
	{ "the prefix, and paths that need escapes",
	  "profiling_config: {path_prefix: pre/, pprof_config: {process_cpu: {enabled: false}, "
	  "memory: "
	  "{enabled: false}, block: {enabled: false}, mutex: {enabled: false}, goroutine: "
	  "{enabled: false}, goroutineleak: {enabled: false}, "
	  "m: {path: 'a b#c%'}}}, static_configs: [{targets: ['[::1]:1']}, {targets: [b], "
	  "labels: {__profile_path__: '/a?b'}}]",
	  "m{instance=\"[::1]:1\", job=\"j\"} http://[::1]:1/pre/a%20b%23c%25 10s/5s\n"
	  "m{instance=\"b\", job=\"j\"} http://b/a%3Fb 10s/5s\n" },
	{ "seconds that we chose follow a relabelled interval; chosen ones stay",
	  CPU "relabel_configs: [{target_label: __scrape_interval__, replacement: 30s}], "
	  "static_configs: [{targets: ['a:1']}, {targets: ['b:1'], labels: {__param_seconds: "
	  "'2'}}]",
	  "process_cpu{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/debug/pprof/profile?seconds=29 30s/34s\n"
	  "process_cpu{instance=\"b:1\", job=\"j\"} "
	  "http://b:1/debug/pprof/profile?seconds=2 30s/7s\n" },
	{ "an interval of one second still asks for one",
	  CPU "static_configs: [{targets: ['a:1'], labels: {__scrape_interval__: 1s, "
	  "__scrape_timeout__: "
	  "1s}}]",
	  "process_cpu{instance=\"a:1\", job=\"j\"} "
	  "http://a:1/debug/pprof/profile?seconds=1 1s/2s\n" },
	{ "relabelling sees everything, drops what it says, and leaks no reserved label",
	  MEM "relabel_configs: [{source_labels: [__address__], regex: 'b.*', action: drop}, "
	  "{source_labels: [__name__, __scheme__, __profile_path__, __scrape_timeout__, job], "
	  "target_label: seen}, {target_label: __tmp_x, replacement: y}, "
	  "{source_labels: [__meta_k], target_label: k}], "
	  "static_configs: [{targets: ['a:1', 'b:1'], labels: {__meta_k: v}}]",
	  "m{instance=\"a:1\", job=\"j\", k=\"v\", seen=\"m;http;/m;5s;j\"} "
	  "http://a:1/m 10s/5s\ndropped b:1 \n" },
	{ "a profile is dropped by its name",
	  "relabel_configs: [{source_labels: [__name__], regex: 'memory', action: keep}], "
	  "static_configs: [{targets: ['a:1']}]",
	  "memory{instance=\"a:1\", job=\"j\"} http://a:1/debug/pprof/allocs 10s/5s\n" },
	{ "a target is dropped once, whatever its profiles; so many are kept to show",
	  "relabel_configs: [{source_labels: [__address__], regex: 'c.*', action: keep}], "
	  "keep_dropped_targets: 2, static_configs: [{targets: ['a:1', 'b:1', 'd:1']}]",
	  "dropped a:1 \ndropped b:1 \n" },
	{ "rules choose path, parameters, times and scheme",
	  MEM "params: {debug: ['0', 'x']}, relabel_configs: ["
	  "{source_labels: [__meta_path], target_label: __profile_path__}, "
	  "{target_label: __param_debug, replacement: '1'}, "
	  "{target_label: __param_gc, replacement: 'a b'}, "
	  "{target_label: __param_seconds, replacement: '3'}, "
	  "{target_label: __scrape_interval__, replacement: 1m}, "
	  "{target_label: __scrape_timeout__, replacement: 20s}, "
	  "{target_label: __scheme__, replacement: https}, "
	  "{source_labels: [__address__], regex: '(.*):1', target_label: __address__, "
	  "replacement: '$1:2'}], "
	  "static_configs: [{targets: ['a:1'], labels: {__meta_path: /p}}]",
	  "m{instance=\"a:2\", job=\"j\"} "
	  "https://a:2/p?debug=1&debug=x&gc=a+b&seconds=3 60s/23s\n" },
	{ "the same target twice is one",
	MEM "static_configs: [{targets: ['a:1', 'a:1']}, {targets: ['a:1']}]",
	  "m{instance=\"a:1\", job=\"j\"} http://a:1/m 10s/5s\n" },
	{ "two targets of one label set: the second is told",
	  MEM "relabel_configs: [{target_label: instance, replacement: x}], "
	  "static_configs: [{targets: ['b:1', 'a:1', 'c:1']}]",
	  "m{instance=\"x\", job=\"j\"} http://a:1/m 10s/5s\n"
	  "error http://b:1/m is not scraped: http://a:1/m has the same labels m{instance=\"x\", "
	  "job=\"j\"} "
	  "(and 1 more)\n" },
	{ "a target limit stops the job",
	MEM "target_limit: 1, static_configs: [{targets: ['a:1', 'b:1']}]",
	  "m{instance=\"a:1\", job=\"j\"} http://a:1/m 10s/5s\n"
	  "m{instance=\"b:1\", job=\"j\"} http://b:1/m 10s/5s\n"
	  "error target_limit exceeded (number of targets: 2, limit: 1)\n" },
	{ "no address", MEM "relabel_configs: [{target_label: __address__, replacement: ''}], "
	  "static_configs: [{targets: ['a:1', 'b:1']}]",
	  "error instance 0 in group 0: no address (and 1 more)\n" },
	{ "a bad address", MEM "static_configs: [{targets: ['a:1', 'u@b']}]",
	  "m{instance=\"a:1\", job=\"j\"} http://a:1/m 10s/5s\n"
	  "error instance 1 in group 0: \"xxxxx@b\" is not a valid hostname\n" },
	{ "IPv6 without brackets", MEM "static_configs: [{targets: ['a:1', '[::1]:2']}], "
	  "relabel_configs: [{source_labels: [__address__], regex: '\\[(.+)\\](.+)', "
	  "replacement: '$1$2', target_label: __address__}]",
	  "m{instance=\"a:1\", job=\"j\"} http://a:1/m 10s/5s\n"
	  "error instance 1 in group 0: \"::1:2\" is IPv6 without brackets: write "
	  "[::1]:2 or [::1:2]\n" },
	{ "brackets by a rule", MEM "static_configs: [{targets: ['2001:db8::1']}], "
	  "relabel_configs: [{source_labels: [__address__], replacement: '[$1]:80', "
	  "target_label: __address__}]",
	  "m{instance=\"[2001:db8::1]:80\", job=\"j\"} http://[2001:db8::1]:80/m 10s/5s\n" },
	{ "a bad scheme", MEM "static_configs: [{targets: ['a:1'], labels: {__scheme__: gopher}}]",
	  "error instance 0 in group 0: invalid scheme: \"gopher\"\n" },
	{ "a bad interval",
	MEM "static_configs: [{targets: ['a:1'], labels: {__scrape_interval__: x}}]",
	  "error instance 0 in group 0: error parsing scrape interval: not a valid duration "
	  "string: \"x\"\n" },
	{ "no interval",
	MEM "static_configs: [{targets: ['a:1'], labels: {__scrape_interval__: 0s}}]",
	  "error instance 0 in group 0: scrape interval cannot be 0\n" },
	{ "no timeout",
	MEM "static_configs: [{targets: ['a:1'], labels: {__scrape_timeout__: 0s}}]",
	  "error instance 0 in group 0: scrape timeout cannot be 0\n" },
	{ "a timeout beyond the interval",
	  MEM "static_configs: [{targets: ['a:1'], labels: {__scrape_timeout__: 11s}}]",
	  "error instance 0 in group 0: scrape timeout cannot be greater than scrape interval "
	  "(\"11s\" > "
	  "\"10s\")\n" },
	{ "no name", MEM "relabel_configs: [{regex: __name__, action: labeldrop}], "
	  "static_configs: [{targets: ['a:1']}]",
	  "error instance 0 in group 0: no profile name\n" },
};
/* clang-format on */

TEST(expansion)
{
	for (size_t i = 0; i < sizeof(expansion_rows) / sizeof(expansion_rows[0]); i++) {
		struct buf out = { 0 };
		struct err err = { 0 };
		struct target_set *s = expand(expansion_rows[i].job, &err);

		if (s)
			print_set(&out, s);
		else
			buf_add_cstr(&out, err.msg);
		if (!str_eq(buf_str(&out), str_of(expansion_rows[i].want)))
			CHECK_FAIL("%s:\n" STR_FMT "want\n%s", expansion_rows[i].name, STR_ARG(buf_str(&out)),
				expansion_rows[i].want);
		buf_release(&out);
		target_set_unref(s);
	}
}

TEST(what_a_cpu_endpoint_shares)
{
	struct err err;
	struct target_set *s = expand(
		ONLY("x: {path: /debug/pprof/profile}, h: {path: /heap}") "static_configs: [{targets: "
																  "['a:1']}]",
		&err);

	REQUIRE(s && s->n == 2);
	CHECK_STR(nth(s, 0)->name, "h");
	CHECK_STR(nth(s, 0)->exclusive, "");
	CHECK_STR(nth(s, 1)->exclusive, "a:1 /debug/pprof/profile");
	CHECK(nth(s, 0)->hash != nth(s, 1)->hash);
	CHECK(target_cmp(target_set_at(s, 0), target_set_at(s, 0)) == 0 &&
		target_cmp(target_set_at(s, 0), target_set_at(s, 1)) < 0);
	target_set_unref(s);
}

TEST(global_urls)
{
	static const char *const rows[][4] = {
		/* url, listen address, external url, want */
		{ "http://a:1/x", "0.0.0.0:7272", "https://ext/y", "http://a:1/x" },
		{ "http://localhost:1/x?y", "0.0.0.0:7272", "https://ext:9/y", "http://ext:1/x?y" },
		{ "http://127.0.0.1:7272/x", "0.0.0.0:7272", "https://ext:9/y", "https://ext:9/x" },
		{ "http://[::1]:7272/x", "[::]:7272", "https://ext/y", "https://ext/x" },
		{ "http://localhost/x", "0.0.0.0:7272", "https://ext/y", "http://localhost/x" },
		{ "http://localhost:7272/x", "", "", "http://localhost:7272/x" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = { 0 };

		url_print_global(&out, str_of(rows[i][0]), str_of(rows[i][1]), str_of(rows[i][2]));
		CHECK_STR(buf_str(&out), rows[i][3]);
		buf_release(&out);
	}
}

TEST(urls_with_another_parameter)
{
	/* clang-format off */
	static const char *const rows[][2] = {
		{ "http://a:1/x", "http://a:1/x?seconds=a+%26" },
		{ "http://a:1/x?seconds=9", "http://a:1/x?seconds=a+%26" },
		{ "http://a:1/x?seconds=9&b=1&seconds=3", "http://a:1/x?b=1&seconds=a+%26" },
		{ "http://a:1/x?secondsx=9&s=seconds=1",
			"http://a:1/x?secondsx=9&s=seconds=1&seconds=a+%26" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = { 0 };

		url_print_with(&out, str_of(rows[i][0]), STR("seconds"), STR("a &"));
		CHECK_STR(buf_str(&out), rows[i][1]);
		buf_release(&out);
	}
}

/* ---- shards ---- */

#define TARGETS 60

/* One job with many targets; `more` are its other settings. */
static struct target_set *expand_shard(unsigned ordinal, unsigned total, const char *more)
{
	struct buf text = { 0 };
	struct target_set *s;
	struct err err;

	buf_printf(
		&text, "%s" ONLY("m: {path: /m}, n: {path: /n}") "static_configs: [{targets: [", more);
	for (int i = 0; i < TARGETS; i++)
		buf_printf(&text, "'10.0.0.%d:1',", i);
	buf_add_cstr(&text, "]}]");
	buf_add_char(&text, '\0');
	shard = (struct shard){ ordinal, total };
	s = expand(text.ptr, &err);
	shard = (struct shard){ 0 };
	buf_release(&text);
	return s;
}

TEST(each_target_is_scraped_by_one_shard)
{
	unsigned times[TARGETS] = { 0 }, i;
	struct target_set *s;

	for (unsigned k = 0; k < 3; k++) {
		REQUIRE((s = expand_shard(k, 3, "")) != NULL);
		CHECK(s->n > 0 && s->n % 2 == 0); /* both profiles, or none */
		CHECK_INT(s->n / 2 + s->dropped_n, TARGETS);
		CHECK_INT(s->dropped_total, s->dropped_n);
		CHECK_INT(s->elsewhere, s->dropped_n);
		for (size_t n = 0; n < s->n; n++) {
			sscanf(labels_get(target_set_at(s, n)->labels, STR("instance")).ptr, "10.0.0.%u", &i);
			times[i]++;
		}
		for (size_t n = 0; n < s->dropped_n; n++) {
			struct labels l = dropped(s, n)->discovered;

			char want[64];
			unsigned owner = shard_of(STR("j"), labels_get(l, STR("__address__")), 3);

			CHECK(owner != k);
			snprintf(want, sizeof(want), "shard %u scrapes it (shards 0 to 2)", owner);
			CHECK_STR(dropped(s, n)->reason, want);
		}
		CHECK(!s->error);
		target_set_unref(s);
	}
	for (i = 0; i < TARGETS; i++)
		CHECK_INT(times[i], 2);
}

TEST(relabelled_job_and_address_decide)
{
	struct target_set *s;
	unsigned owner = shard_of(STR("k"), STR("one:1"), 8);

	for (unsigned k = 0; k < 8; k++) {
		s = expand_shard(k, 8,
			"relabel_configs: [{target_label: job, replacement: k}, {source_labels: "
			"[__address__], target_label: instance}, "
			"{target_label: __address__, replacement: 'one:1'}], ");
		REQUIRE(s != NULL);
		CHECK_INT(s->n, k == owner ? 2 * TARGETS : 0);
		target_set_unref(s);
	}
}

TEST(limits_count_what_is_scraped_here)
{
	struct target_set *s = expand_shard(0, 3, "");
	size_t own = s->n / 2;
	char more[64];

	target_set_unref(s);
	snprintf(more, sizeof(more), "target_limit: %zu, ", own);
	s = expand_shard(0, 3, more);
	CHECK(!s->limit_exceeded);
	target_set_unref(s);
	snprintf(more, sizeof(more), "target_limit: %zu, ", own - 1);
	s = expand_shard(0, 3, more);
	CHECK(s->limit_exceeded);
	target_set_unref(s);
	s = expand_shard(0, 3, "keep_dropped_targets: 4, ");
	CHECK_INT(s->dropped_n, 4);
	CHECK_INT(s->dropped_total, TARGETS - own);
	target_set_unref(s);
}

TEST(errors_are_of_the_shard_that_would_scrape)
{
	struct target_set *s;
	unsigned wrong = 0;

	for (unsigned k = 0; k < 4; k++) {
		s = expand_shard(
			k, 4, "relabel_configs: [{target_label: __address__, replacement: 'a/b'}], ");
		wrong += s->error != NULL;
		CHECK_INT(s->n, 0);
		target_set_unref(s);
	}
	CHECK_INT(wrong, 1);
}
