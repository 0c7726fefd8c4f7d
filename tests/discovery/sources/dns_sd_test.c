/* DNS discovery against a real name server on loopback: published groups and reported failures. */
#include "discovery/sources/dns_sd.h"

#include <event2/event.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/discovery/sources/dns_server.h"
#include "tests/wait.h"

/* The host: what discovery/sources/sources.c is to a provider, as text. */
struct sd_source {
	struct event_base *base;
	void *provider;
	struct dns_server server;
	struct buf set, told; /* the last set; the failures since the test began, one per line */
	unsigned publishes, failures;
};

void source_publish(struct sd_source *s, struct groups *set)
{
	buf_clear(&s->set);
	for (size_t i = 0; i < set->n; i++) {
		buf_add_str(&s->set, set->v[i].source);
		buf_add_cstr(&s->set, ":\n");
		for (size_t k = 0; k < set->v[i].targets_n; k++) {
			buf_add_cstr(&s->set, "  ");
			labels_print(&s->set, set->v[i].targets[k]);
			buf_add_char(&s->set, '\n');
		}
	}
	groups_unref(set);
	s->publishes++;
}

void source_failed(struct sd_source *s, const struct err *why)
{
	buf_printf(&s->told, "%s\n", why->msg);
	s->failures++;
}

static bool host_open(struct sd_source *s, const char *zone)
{
	*s = (struct sd_source){ .base = event_base_new() };
	return s->base && dns_server_start(&s->server, zone);
}

static enum err_code host_run(struct sd_source *s, const char *type, int64_t port,
	int64_t interval_ns, struct str *names, size_t n, struct err *err)
{
	/* on the port of all name servers it is found by resolv.conf */
	struct source_env env = { .base = s->base,
		.dns_servers = s->server.port == 53 ? NULL : s->server.address };
	struct dns_sd_config c = { .names = { names, n },
		.type = str_of(type),
		.port = port,
		.refresh_interval_ns = interval_ns };

	return dns_sd_ops.open(&env, &c, s, &s->provider, err);
}

static void host_close(struct sd_source *s)
{
	if (s->provider)
		dns_sd_ops.close(s->provider);
	event_base_free(s->base);
	dns_server_stop(&s->server);
	buf_release(&s->set);
	buf_release(&s->told);
}

#define LOST_NS (14 * NS_PER_S) /* a question counts as lost: base/net/resolver.h */
#define AGAIN_NS (2 * NS_PER_S) /* it is sent again, and then a failure is told as a timeout */

/* Runs the base until *count is at least that, or time is up. */
static void run_until(struct sd_source *s, const unsigned *count, unsigned at_least)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	struct timeval tick = { .tv_usec = 5000 };

	while (*count < at_least && clock_monotonic_ns() < end) {
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	if (*count < at_least)
		CHECK_FAIL("nothing more came: %u of %u", *count, at_least);
}

/* Runs the base until this is the set. */
static void run_until_set(struct sd_source *s, const char *want)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	struct timeval tick = { .tv_usec = 5000 };

	while (!str_is(buf_str(&s->set), want) && clock_monotonic_ns() < end) {
		event_base_loopexit(s->base, &tick);
		event_base_dispatch(s->base);
	}
	CHECK_STR(buf_str(&s->set), want);
}

static bool was_told(const struct sd_source *s, const char *want)
{
	return str_find(buf_str(&s->told), str_of(want)) >= 0;
}

/* ---- records ---- */

struct record_case {
	const char *type;
	int64_t port;
	const char *name, *zone, *want;
};

#define ADDRESS(a, n) "  {__address__=\"" a "\", __meta_dns_name=\"" n "\"}\n"

static const struct record_case records[] = {
	{ "SRV", 0, "_api._tcp.test.",
		"_api._tcp.test SRV 8081 b.test\n_api._tcp.test SRV 8080 a.test\n",
		"_api._tcp.test.:\n"
		"  {__address__=\"a.test:8080\", __meta_dns_name=\"_api._tcp.test.\","
		" __meta_dns_srv_record_port=\"8080\", __meta_dns_srv_record_target=\"a.test.\"}\n"
		"  {__address__=\"b.test:8081\", __meta_dns_name=\"_api._tcp.test.\","
		" __meta_dns_srv_record_port=\"8081\", __meta_dns_srv_record_target=\"b.test.\"}\n" },
	/* as in Prometheus, RFC 2782's "there is no such service" is a target like any other */
	{ "srv", 0, "none.test.", "none.test SRV 0 .\n",
		"none.test.:\n"
		"  {__address__=\":0\", __meta_dns_name=\"none.test.\","
		" __meta_dns_srv_record_port=\"0\", __meta_dns_srv_record_target=\".\"}\n" },
	{ "SRV", 0, "odd.test.", "odd.test SRV 1 a(b);c\001.test\n",
		"odd.test.:\n"
		"  {__address__=\"a\\\\(b\\\\)\\\\;c\\\\001.test:1\", __meta_dns_name=\"odd.test.\","
		" __meta_dns_srv_record_port=\"1\","
		" __meta_dns_srv_record_target=\"a\\\\(b\\\\)\\\\;c\\\\001.test.\"}\n" },
	{ "A", 80, "web.test.", "web.test A 10.0.0.2\nweb.test A 10.0.0.1\nweb.test A 10.0.0.2\n",
		"web.test.:\n" ADDRESS("10.0.0.1:80", "web.test.") ADDRESS("10.0.0.2:80", "web.test.") },
	{ "A", 80, "six.test.", "six.test AAAA fd00::1\n", "six.test.:\n" },
	{ "AAAA", 6060, "six.test.",
		"six.test AAAA fd00::1\nsix.test A 10.0.0.1\nsix.test AAAA ::ffff:10.0.0.9\n",
		"six.test.:\n" ADDRESS("10.0.0.9:6060", "six.test.")
			ADDRESS("[fd00::1]:6060", "six.test.") },
	{ "MX", 25, "test.", "test MX mx2.test\ntest MX mx1.test\n",
		"test.:\n"
		"  {__address__=\"mx1.test:25\", __meta_dns_mx_record_target=\"mx1.test.\","
		" __meta_dns_name=\"test.\"}\n"
		"  {__address__=\"mx2.test:25\", __meta_dns_mx_record_target=\"mx2.test.\","
		" __meta_dns_name=\"test.\"}\n" },
	{ "ns", 53, "test.", "test NS ns1.test\ntest NS ns2.test\n",
		"test.:\n"
		"  {__address__=\"ns1.test:53\", __meta_dns_name=\"test.\","
		" __meta_dns_ns_record_target=\"ns1.test.\"}\n"
		"  {__address__=\"ns2.test:53\", __meta_dns_name=\"test.\","
		" __meta_dns_ns_record_target=\"ns2.test.\"}\n" },
	{ "A", 80, "alias.test.",
		"alias.test CNAME next.test\nnext.test CNAME web.test\nweb.test A 10.0.0.1\n",
		"alias.test.:\n" ADDRESS("10.0.0.1:80", "alias.test.") },
	{ "SRV", 0, "alias.test.", "alias.test CNAME s.test\ns.test SRV 1 a.test\n",
		"alias.test.:\n"
		"  {__address__=\"a.test:1\", __meta_dns_name=\"alias.test.\","
		" __meta_dns_srv_record_port=\"1\", __meta_dns_srv_record_target=\"a.test.\"}\n" },
	{ "A", 80, "alias.test.", "alias.test CNAME gone.test\n", "alias.test.:\n" },
	{ "MX", 80, "alias.test.", "alias.test CNAME gone.test\n", "alias.test.:\n" },
	{ "NS", 80, "alias.test.", "alias.test CNAME gone.test\n", "alias.test.:\n" },
	{ "SRV", 0, "empty.test.", "empty.test EMPTY\n", "empty.test.:\n" },
	{ "A", 80, "nosuch.test.", "web.test A 10.0.0.1\n", "nosuch.test.:\n" },
};

TEST(records_become_targets)
{
	struct err err;
	struct sd_source s;
	struct str name;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		name = str_of(records[i].name);
		REQUIRE(host_open(&s, records[i].zone));
		REQUIRE_OK(host_run(&s, records[i].type, records[i].port, NS_PER_S, &name, 1, &err), &err);
		run_until(&s, &s.publishes, 1);
		CHECK_STR(buf_str(&s.set), records[i].want);
		CHECK_STR(buf_str(&s.told), "");
		host_close(&s);
	}
}

TEST(an_answer_that_was_cut_is_asked_for_again_over_tcp)
{
	struct str name = STR("big.test.");
	struct buf zone = { 0 };
	struct err err;
	struct sd_source s;
	size_t lines = 0;

	buf_add_cstr(&zone, "big.test CUT\n");
	for (unsigned i = 0; i < 2000; i++)
		buf_printf(&zone, "big.test A 10.1.%u.%u\n", i / 250, i % 250);
	buf_add_char(&zone, '\0');
	REQUIRE(host_open(&s, zone.ptr));
	REQUIRE_OK(host_run(&s, "A", 80, NS_PER_MIN, &name, 1, &err), &err);
	run_until(&s, &s.publishes, 1);
	for (size_t i = 0; i < s.set.len; i++)
		lines += s.set.ptr[i] == '\n';
	CHECK_INT(lines, 2001);
	CHECK_INT(dns_server_asked(&s.server, "udp big.test A"), 1);
	CHECK_INT(dns_server_asked(&s.server, "tcp big.test A"), 1);
	host_close(&s);
	buf_release(&zone);
}

/* ---- failures ---- */

#define TOLD(name, why) \
	"could not resolve \"" name "\": all servers responded with errors to at least one search " \
	"domain: " name ": " why "\n"

static const struct {
	const char *zone, *told;
} failures[] = {
	{ "bad.test SERVFAIL\n", TOLD("bad.test.", "servers unreachable or failing") },
	{ "bad.test REFUSED\n", TOLD("bad.test.", "servers unreachable or failing") },
	{ "bad.test LIES\nbad.test A 10.0.0.1\n", TOLD("bad.test.", "Misformatted DNS reply") },
};

TEST(a_name_that_fails_keeps_its_group_while_others_go_on)
{
	static const char before[] = "bad.test A 10.0.0.1\ngood.test A 10.0.0.2\n";
	struct str names[] = { STR("bad.test."), STR("good.test."), STR("bad.test.") };
	struct buf zone = { 0 };
	struct err err;
	struct sd_source s;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		int64_t began = clock_monotonic_ns(), until = 0;

		REQUIRE(host_open(&s, before));
		REQUIRE_OK(host_run(&s, "A", 80, 30 * NS_PER_MS, names, 3, &err), &err);
		run_until_set(&s,
			"bad.test.:\n" ADDRESS("10.0.0.1:80", "bad.test.") "good.test.:\n" ADDRESS(
				"10.0.0.2:80", "good.test."));
		buf_clear(&zone);
		buf_printf(&zone, "%sgood.test A 10.0.0.3\n", failures[i].zone);
		buf_add_char(&zone, '\0');
		dns_server_zone(&s.server, zone.ptr);
		run_until(&s, &s.failures, 3);
		while (!was_told(&s, failures[i].told) && wait_more(&until))
			run_until(&s, &s.failures, s.failures + 1);
		CHECK(was_told(&s, failures[i].told));
		CHECK(str_has_prefix(buf_str(&s.told), str_of(failures[i].told)) ||
			clock_monotonic_ns() - began > AGAIN_NS);
		run_until_set(&s,
			"bad.test.:\n" ADDRESS("10.0.0.1:80", "bad.test.") "good.test.:\n" ADDRESS(
				"10.0.0.3:80", "good.test."));
		/* gone for good now */
		dns_server_zone(&s.server, "good.test A 10.0.0.3\n");
		run_until_set(&s,
			"bad.test.:\n"
			"good.test.:\n" ADDRESS("10.0.0.3:80", "good.test."));
		host_close(&s);
	}
	buf_release(&zone);
}

TEST(a_silent_name_keeps_no_other_waiting)
{
	struct str names[] = { STR("deaf.test."), STR("good.test.") };
	int64_t began = clock_monotonic_ns();
	struct err err;
	struct sd_source s;

	REQUIRE(host_open(&s, "deaf.test A 10.0.0.1\ngood.test A 10.0.0.2\n"));
	REQUIRE_OK(host_run(&s, "A", 80, 50 * NS_PER_MS, names, 2, &err), &err);
	run_until_set(&s,
		"deaf.test.:\n" ADDRESS("10.0.0.1:80", "deaf.test.") "good.test.:\n" ADDRESS(
			"10.0.0.2:80", "good.test."));
	dns_server_zone(&s.server, "deaf.test SILENT\ngood.test A 10.0.0.3\n");
	run_until_set(&s,
		"deaf.test.:\n" ADDRESS("10.0.0.1:80", "deaf.test.") "good.test.:\n" ADDRESS(
			"10.0.0.3:80", "good.test."));
	CHECK(!s.told.len || clock_monotonic_ns() - began > LOST_NS);
	/* 2 s + 4 s + 8 s */
	run_until(&s, &s.failures, 1);
	CHECK(str_has_prefix(
		buf_str(&s.told), STR(TOLD("deaf.test.", "Timeout while contacting DNS servers"))));
	dns_server_zone(&s.server, "deaf.test A 10.0.0.4\ngood.test A 10.0.0.3\n");
	run_until_set(&s,
		"deaf.test.:\n" ADDRESS("10.0.0.4:80", "deaf.test.") "good.test.:\n" ADDRESS(
			"10.0.0.3:80", "good.test."));
	host_close(&s);
}

TEST(closing_ends_what_is_under_way_and_tells_nobody)
{
	struct str names[200];
	struct arena a;
	struct err err;
	struct sd_source s;

	arena_init(&a, 0);
	REQUIRE(host_open(&s, "n0.test SILENT\nn1.test GARBAGE\n"));
	for (size_t i = 0; i < 200; i++)
		names[i] = str_of(arena_printf(&a, "n%zu.test.", i % 2));
	REQUIRE_OK(host_run(&s, "SRV", 0, NS_PER_S, names, 200, &err), &err);
	for (int i = 0; i < 100 && dns_server_asked(&s.server, "") < 2; i++)
		event_base_loop(s.base, EVLOOP_ONCE);
	CHECK_INT(s.publishes + s.failures, 0);
	host_close(&s);
	arena_release(&a);
}

TEST(many_names_are_asked_for_a_few_at_a_time)
{
	struct buf zone = { 0 };
	struct str names[500];
	struct arena a;
	struct err err;
	struct sd_source s;
	size_t lines = 0;
	int64_t began, took;

	arena_init(&a, 0);
	for (unsigned i = 0; i < 500; i++) {
		names[i] = str_of(arena_printf(&a, "n%u.test.", i));
		buf_printf(&zone, "n%u.test A 10.0.%u.%u\n", i, i / 250, i % 250);
	}
	buf_add_char(&zone, '\0');
	REQUIRE(host_open(&s, zone.ptr));
	began = clock_monotonic_ns();
	/* On a busy machine an answer may come too late. That name is asked for again in the next turn.
	 */
	REQUIRE_OK(host_run(&s, "A", 80, NS_PER_MIN, names, 500, &err), &err);
	while (lines < 1000 && !check_failures) {
		run_until(&s, &s.publishes, s.publishes + 1);
		lines = 0;
		for (size_t i = 0; i < s.set.len; i++)
			lines += s.set.ptr[i] == '\n';
	}
	took = clock_monotonic_ns() - began;
	CHECK_INT(lines, 1000);
	/* Answers are published together, or those of the first 5 s and then of each half second. */
	CHECK(s.publishes <= 1 + (took < 5 * NS_PER_S ? 0 : took / (NS_PER_S / 2) - 9));
	CHECK(s.failures == 0 || took > LOST_NS);
	host_close(&s);
	buf_release(&zone);
	arena_release(&a);
}

/* ---- search domains ---- */

static const struct {
	const char *domains, *options, *name, *zone, *asked, *set, *told;
} searches[] = {
	{ "a.test b.test", "", "web", "web.b.test A 10.0.0.1\n", "udp web.a.test A\nudp web.b.test A\n",
		"web:\n" ADDRESS("10.0.0.1:80", "web"), "" },
	/* enough dots: the name as written comes first */
	{ "a.test b.test", "", "web.c", "web.c.a.test A 10.0.0.1\n",
		"udp web.c A\nudp web.c.a.test A\n", "web.c:\n" ADDRESS("10.0.0.1:80", "web.c"), "" },
	{ "a.test b.test", "ndots:2", "web.c", "web.c A 10.0.0.1\n",
		"udp web.c.a.test A\nudp web.c.b.test A\nudp web.c A\n",
		"web.c:\n" ADDRESS("10.0.0.1:80", "web.c"), "" },
	{ "a.test b.test", "", "web.", "web.a.test A 10.0.0.1\n", "udp web A\n", "web.:\n", "" },
	/* a name that exists without such records decides */
	{ "a.test b.test", "", "web", "web.a.test EMPTY\nweb.b.test A 10.0.0.1\n", "udp web.a.test A\n",
		"web:\n", "" },
	{ "a.test b.test", "", "web", "", "udp web.a.test A\nudp web.b.test A\nudp web A\n", "web:\n",
		"" },
	/* a later domain may answer if an earlier one fails; if none answers, the lookup failed */
	{ "a.test b.test", "", "web", "web.a.test REFUSED\nweb.b.test A 10.0.0.1\n",
		"udp web.a.test A\nudp web.b.test A\n", "web:\n" ADDRESS("10.0.0.1:80", "web"), "" },
	{ "a.test b.test", "", "web", "web.b.test REFUSED\n",
		"udp web.a.test A\nudp web.b.test A\nudp web A\n", "",
		"could not resolve \"web\": all servers responded with errors to at least one search "
		"domain: web.b.test.: servers unreachable or failing\n" },
};

/* The server's questions in their order, each once. */
static void questions_once(const struct sd_source *s, struct buf *out)
{
	const char *at = s->server.asked.ptr ? s->server.asked.ptr : "";
	size_t n;

	buf_clear(out);
	for (; at < s->server.asked.ptr + s->server.asked.len; at += n) {
		n = strcspn(at, "\n") + 1;
		if (str_find(buf_str(out), (struct str){ at, n }) < 0)
			buf_add(out, at, n);
	}
}

TEST(names_are_tried_along_the_search_domains)
{
	struct buf asked = { 0 };
	int64_t began;
	struct err err;
	struct sd_source s;
	struct str name;

	for (size_t i = 0; i < sizeof(searches) / sizeof(searches[0]); i++) {
		name = str_of(searches[i].name);
		setenv("LOCALDOMAIN", searches[i].domains, 1);
		setenv("RES_OPTIONS", searches[i].options, 1);
		began = clock_monotonic_ns();
		REQUIRE(host_open(&s, searches[i].zone));
		REQUIRE_OK(host_run(&s, "A", 80, 30 * NS_PER_S, &name, 1, &err), &err);
		run_until(&s, searches[i].told[0] ? &s.failures : &s.publishes, 1);
		dns_server_asked(&s.server, ""); /* the text ends in NUL */
		questions_once(&s, &asked);
		CHECK_STR(buf_str(&asked), searches[i].asked);
		CHECK_STR(buf_str(&s.set), searches[i].set);
		CHECK_INT(s.told.len > 0, searches[i].told[0] != '\0');
		if (clock_monotonic_ns() - began < AGAIN_NS)
			CHECK_STR(buf_str(&s.told), searches[i].told);
		host_close(&s);
	}
	unsetenv("LOCALDOMAIN");
	unsetenv("RES_OPTIONS");
	buf_release(&asked);
}

TEST(servers_that_make_no_sense_are_refused)
{
	struct source_env env = { .base = event_base_new(), .dns_servers = "no address" };
	struct str name = STR("a.test");
	struct dns_sd_config c = { .names = { &name, 1 },
		.type = STR("SRV"), .refresh_interval_ns = NS_PER_S };
	struct err err;
	void *p;

	CHECK_ERR(dns_sd_ops.open(&env, &c, NULL, &p, &err), &err, ERR_INVALID,
		"resolver: Misformatted string");
	event_base_free(env.base);
}

/* ---- resolv.conf ---- */

/* A separate network, in which port 53 is free, and a separate resolv.conf. */
static bool enter_namespace(const char *conf)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount(conf, "/etc/resolv.conf", NULL, MS_BIND, NULL))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		return false;
	close(fd);
	return true;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		CHECK_FAIL("cannot write %s", path);
}

#define AT(deaf, web) "deaf:\n" deaf "web:\n" web

/*
 * The question that is under way stays with the old servers. *in_time false: the machine was so
 * busy that it was given up before it could be answered.
 */
static void change_meanwhile(struct sd_source *s, const char *conf, bool *in_time)
{
	const char *answered = AT(ADDRESS("10.0.0.7:80", "deaf"), ADDRESS("10.0.0.2:80", "web"));
	const char *given_up = AT("", ADDRESS("10.0.0.2:80", "web"));

	buf_clear(&s->told); /* of a question that was given up */
	put(conf, "nameserver 127.0.0.1\nsearch a.test\n");
	dns_server_zone(&s->server, "deaf.a.test A 10.0.0.9\nweb.a.test A 10.0.0.1\n");
	run_until_set(s, AT(ADDRESS("10.0.0.9:80", "deaf"), ADDRESS("10.0.0.1:80", "web")));
	dns_server_zone(&s->server, "deaf.a.test SILENT\nweb.a.test A 10.0.0.3\n");
	run_until(s, &s->publishes, s->publishes + 1);
	put(conf, "nameserver 127.0.0.2\nsearch b.test\n");
	dns_server_zone(&s->server, "deaf.a.test SILENT\nweb.a.test A 10.0.0.4\n");
	while (!str_has_suffix(buf_str(&s->set), STR(ADDRESS("10.0.0.2:80", "web"))) && !check_failures)
		run_until(s, &s->publishes, s->publishes + 1);
	/* it is answered at last, by its own server, and its channel ends */
	dns_server_zone(&s->server, "deaf.a.test A 10.0.0.7\n");
	while (!str_is(buf_str(&s->set), answered) && !str_is(buf_str(&s->set), given_up) &&
		!check_failures)
		run_until(s, &s->publishes, s->publishes + 1);
	*in_time = str_is(buf_str(&s->set), answered);
}

/* One question stays with the old servers; the others go to the new ones at once. */
static void follow_changes(const char *conf)
{
	struct str names[] = { STR("deaf"), STR("web") };
	struct dns_server second;
	struct err err;
	struct sd_source s = { .base = event_base_new() };
	bool in_time = false;

	REQUIRE(dns_server_start_at(
		&s.server, "127.0.0.1", 53, "deaf.a.test A 10.0.0.9\nweb.a.test A 10.0.0.1\n"));
	REQUIRE(dns_server_start_at(&second, "127.0.0.2", 53, "web.b.test A 10.0.0.2\n"));
	REQUIRE_OK(host_run(&s, "A", 80, 50 * NS_PER_MS, names, 2, &err), &err);
	for (int round = 0; round < 10 && !in_time && !check_failures; round++)
		change_meanwhile(&s, conf, &in_time);
	CHECK(in_time);
	dns_server_zone(&second, "deaf.b.test A 10.0.0.8\n");
	run_until_set(&s, AT(ADDRESS("10.0.0.8:80", "deaf"), ""));
	CHECK_STR(buf_str(&s.told), "");
	host_close(&s);
	dns_server_stop(&second);
}

TEST(a_changed_resolv_conf_is_followed_at_once)
{
	char conf[] = "/tmp/epimetheus-resolv-XXXXXX";
	int fd = mkstemp(conf), status = 0;
	pid_t pid;

	REQUIRE(fd >= 0);
	close(fd);
	put(conf, "nameserver 127.0.0.1\nsearch a.test\n");
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		if (!enter_namespace(conf))
			_exit(77);
		follow_changes(conf);
		_exit(check_failures ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	unlink(conf);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no namespaces to be had");
	CHECK_INT(status, 0);
}
