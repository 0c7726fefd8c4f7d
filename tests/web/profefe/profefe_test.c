/* profefe's API against a real database: what is stored, listed, given back and refused. */
#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/self/libraries.h"
#include "base/version.h"
#include "scrape/receive/receive.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "tsdb/db.h"
#include "web/profefe/notation.h"
#include "web/profefe/read.h"

#define PROFILES "/api/0/profiles"
#define END_S (T0 + 10)
#define AROUND "&from=2023-11-14T22:00:00&to=2023-11-14T23:00:00" /* T0 is 22:13:20 */

static void profile(struct buf *gz, bool cpu, int64_t slow, int64_t end_s)
{
	buf_clear(gz);
	profile_gz(gz,
		&(struct pushed_profile){
			.cpu = cpu, .slow = slow, .own = 1, .leaf = "main.slow", .end_s = end_s });
}

static int post(const char *query, const char *headers, struct str body)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST " PROFILES "?%s", query);
	peer_ask(web_port(grafana.web), &grafana.r, request, headers, body);
	return grafana.r.status;
}

static int send_profile(const char *query, bool cpu, int64_t slow, int64_t end_s)
{
	struct buf gz = { 0 };
	int status;

	profile(&gz, cpu, slow, end_s);
	status = post(query, "", buf_str(&gz));
	buf_release(&gz);
	return status;
}

/* The nth id in the last answer. */
static const char *id_of(size_t n)
{
	static char ids[4][128];
	static size_t at;
	struct str body = buf_str(&grafana.r.body);
	char *to = ids[at++ % 4];
	ptrdiff_t found = 0;

	for (size_t i = 0; i <= n && found >= 0; i++) {
		if ((found = str_find(body, STR("\"id\":\""))) < 0)
			break;
		body.ptr += found + 6;
		body.len -= (size_t)found + 6;
	}
	to[0] = '\0';
	if (found >= 0 && memchr(body.ptr, '"', body.len))
		snprintf(to, sizeof(ids[0]), "%.*s",
			(int)((const char *)memchr(body.ptr, '"', body.len) - body.ptr), body.ptr);
	return to;
}

/* The last answer without its ids. */
static void check_answer(int status, const char *want)
{
	struct str rest = buf_str(&grafana.r.body);
	struct buf got = { 0 };
	ptrdiff_t at;

	while ((at = str_find(rest, STR("\"id\":\""))) >= 0) {
		const char *end = memchr(rest.ptr + at + 6, '"', rest.len - (size_t)at - 6);

		buf_add(&got, rest.ptr, (size_t)at + 6);
		rest.len -= (size_t)(end - rest.ptr);
		rest.ptr = end;
	}
	buf_add_str(&got, rest);
	CHECK_INT(grafana.r.status, status);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static void check_get(const char *path, int status, const char *want)
{
	(void)grafana_get(path);
	check_answer(status, want);
}

static struct pprof *fetch(struct arena *a, const char *path, const char *more)
{
	char both[1400];
	struct pprof *p = NULL;
	struct err err = { .msg = "" };
	struct str raw;

	snprintf(both, sizeof(both), "%s%s", path, more);
	(void)grafana_get(both);
	if (grafana.r.status != 200 ||
		pprof_inflate(a, buf_str(&grafana.r.body), &pprof_limits_default, &raw, &err) ||
		pprof_decode(a, raw, &pprof_limits_default, &p, &err)) {
		CHECK_FAIL("%s: %d %s " STR_FMT, both, grafana.r.status, err.msg,
			STR_ARG(buf_str(&grafana.r.body)));
		exit(1);
	}
	return p;
}

#define STACKS_MAX 16u

struct stacks {
	struct buf names[STACKS_MAX];
	int64_t values[STACKS_MAX][2];
	size_t n;
};

static size_t find_stack(struct stacks *x, struct str name)
{
	size_t i = 0;

	while (i < x->n && !str_eq(buf_str(&x->names[i]), name))
		i++;
	if (i == x->n && x->n < STACKS_MAX)
		buf_add_str(&x->names[x->n++], name);
	return i;
}

/* "stack values": a line per stack, in the order of their first samples. */
static void show(const struct pprof *p, struct buf *out)
{
	struct stacks x = { .n = 0 };
	struct buf name = { 0 };

	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];
		size_t at;

		buf_clear(&name);
		for (uint32_t k = 0; k < s->location_n; k++) {
			const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k]];

			buf_printf(&name, "%s" STR_FMT, k ? ";" : "",
				STR_ARG(p->strings[p->functions[p->lines[l->line_first].function].name]));
		}
		at = find_stack(&x, buf_str(&name));
		for (uint32_t c = 0; c < p->types_n; c++)
			x.values[at][c] += p->values[i * p->types_n + c];
	}
	buf_release(&name);
	buf_clear(out);
	for (size_t i = 0; i < x.n; i++) {
		buf_add_str(out, buf_str(&x.names[i]));
		for (uint32_t c = 0; c < p->types_n; c++)
			buf_printf(out, " %lld", (long long)x.values[i][c]);
		buf_add_char(out, '\n');
		buf_release(&x.names[i]);
	}
}

static void check_fetch(const char *path, const char *more, const char *want, int64_t duration_s)
{
	struct buf got = { 0 };
	struct pprof *p;
	struct arena a;

	arena_init(&a, 0);
	p = fetch(&a, path, more);
	show(p, &got);
	CHECK_STR(buf_str(&got), want);
	CHECK_INT(p->duration_nanos, duration_s * NS_PER_S);
	CHECK_STR(response_header(&grafana.r, "Content-Type"), "application/octet-stream");
	buf_release(&got);
	arena_release(&a);
}

#define SENT "service=api&labels=region%3Deu%2Cpod-name%3Da"
#define SENT_LABELS \
	"\"labels\":[{\"key\":\"pod_name\",\"value\":\"a\"},{\"key\":\"region\",\"value\":\"eu\"}]"
#define CPU_OF(slow, own) \
	"main.handle;main.main " own "\nmain.slow;main.handle;main.main " slow "\n"

TEST(what_is_sent_comes_back)
{
	char path[512];

	grafana_start();
	CHECK_INT(send_profile(SENT "&type=cpu", true, 3, END_S), 200);
	check_answer(200,
		"{\"code\":200,\"body\":{\"id\":\"\",\"type\":\"cpu\",\"service\":\"api\"," SENT_LABELS
		",\"created_at\":\"2023-11-14T22:13:30Z\"}}\n");
	CHECK_STR(response_header(&grafana.r, "Content-Type"), "application/json");
	snprintf(path, sizeof(path), PROFILES "/%s", id_of(0));
	check_get(PROFILES "?service=api" AROUND, 200,
		"{\"code\":200,\"body\":[{\"id\":\"\",\"type\":\"cpu\",\"service\":\"api\"," SENT_LABELS
		",\"created_at\":\"2023-11-14T22:13:30Z\"}]}\n");
	check_fetch(path, "", CPU_OF("3 30000000", "1 10000000"), 9);
	CHECK(str_find(response_header(&grafana.r, "Content-Disposition"),
			  str_of(strrchr(path, '/') + 1)) >= 0);
	/* Nothing is lost or new in blocks. */
	{
		struct err err;

		REQUIRE_OK(db_compact(grafana.storage.db, &err), &err);
	}
	check_fetch(path, "", CPU_OF("3 30000000", "1 10000000"), 9);
	/* Our own queries find it under the names of all that is pushed. */
	CHECK(str_find(grafana_get("/api/v1/series?match%5B%5D=%7Bjob=%22api%22%7D&time=1700000015"),
		STR("{\"__name__\":\"process_cpu\",\"job\":\"api\",\"pod_name\":\"a\",\"region\":"
				  "\"eu\",\"service_name\":\"api\"}")) >= 0);
	grafana_stop();
}

TEST(lists_are_the_newest_first_and_cut_by_the_limit)
{
	grafana_start();
	CHECK_INT(send_profile("service=api&type=cpu&created_at=2023-11-14T22:13:20", true, 1, 0), 200);
	CHECK_INT(send_profile("service=api&type=cpu&created_at=2023-11-14T22:13:40", true, 2, 0), 200);
	CHECK_INT(
		send_profile("service=api&type=cpu&created_at=2023-11-14T22:13:30.5", true, 4, 0), 200);
	CHECK_INT(
		send_profile("service=api&type=goroutine&created_at=2023-11-14T22:13:50", false, 1, 0),
		200);
	CHECK_INT(
		send_profile("service=apix&type=cpu&created_at=2023-11-14T22:13:50", true, 9, 0), 200);
#define ONE(type, second) \
	"{\"id\":\"\",\"type\":\"" type \
	"\",\"service\":\"api\",\"created_at\":\"2023-11-14T22:13:" second "Z\"}"
	check_get(PROFILES "?service=api&type=cpu" AROUND, 200,
		"{\"code\":200,\"body\":[" ONE("cpu", "40") "," ONE("cpu", "30") "," ONE(
			"cpu", "20") "]}\n");
	check_get(PROFILES "?service=api&limit=2" AROUND, 200,
		"{\"code\":200,\"body\":[" ONE("goroutine", "50") "," ONE("cpu", "40") "]}\n");
	check_get(PROFILES "?service=api&type=cpu&limit=-1" AROUND, 200,
		"{\"code\":200,\"body\":[" ONE("cpu", "40") "," ONE("cpu", "30") "," ONE(
			"cpu", "20") "]}\n");
	/* Both ends are inside; 30.5 is after 30. */
	check_get(PROFILES "?service=api&type=cpu&from=2023-11-14T22:13:20&to=2023-11-14T22:13:30", 200,
		"{\"code\":200,\"body\":[" ONE("cpu", "20") "]}\n");
	check_get(PROFILES "?service=api&type=cpu&from=2023-11-14T22:13:21&to=2023-11-14T22:13:40", 200,
		"{\"code\":200,\"body\":[" ONE("cpu", "40") "," ONE("cpu", "30") "]}\n");
	/* Merged: all of them, or the newest. */
	check_fetch(
		PROFILES "/merge?service=api&type=cpu", AROUND, CPU_OF("7 70000000", "3 30000000"), 27);
	check_fetch(PROFILES "/merge?service=api&type=cpu&limit=2", AROUND,
		CPU_OF("6 60000000", "2 20000000"), 18);
	CHECK_STR(response_header(&grafana.r, "Content-Disposition"), "attachment; filename=\"cpu\"");
	check_get("/api/0/services", 200, "{\"code\":200,\"body\":[\"api\",\"apix\"]}\n");
	grafana_stop();
}

TEST(levels_are_added_up_as_pprof_does)
{
	grafana_start();
	CHECK_INT(send_profile("service=a&type=goroutine", false, 3, END_S), 200);
	CHECK_INT(
		send_profile("service=a&type=goroutine&created_at=2023-11-14T22:13:40", false, 5, 0), 200);
	check_fetch(PROFILES "/merge?service=a&type=goroutine", AROUND, CPU_OF("8", "2"), 0);
	grafana_stop();
}

TEST(several_are_merged_by_their_ids)
{
	char path[512], other[1200];

	grafana_start();
	CHECK_INT(send_profile("service=a&type=cpu", true, 3, END_S), 200);
	snprintf(path, sizeof(path), PROFILES "/%s", id_of(0));
	CHECK_INT(send_profile("service=b&type=cpu", true, 5, END_S), 200);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "+%s", id_of(0));
	check_fetch(path, "", CPU_OF("8 80000000", "2 20000000"), 18);
	CHECK_STR(
		response_header(&grafana.r, "Content-Disposition"), "attachment; filename=\"profiles\"");
	/* Escaped, as some clients do. */
	snprintf(other, sizeof(other), "%.*s%%2B%s", (int)(strchr(path, '+') - path), path,
		strchr(path, '+') + 1);
	check_fetch(other, "", CPU_OF("8 80000000", "2 20000000"), 18);
	/* One is gone: the rest, and a warning. */
	snprintf(other, sizeof(other), "%s+AAAAAAAAAAAAAAAAAAAAAGE", path);
	check_fetch(other, "", CPU_OF("8 80000000", "2 20000000"), 18);
	CHECK_STR(response_header(&grafana.r, "Warning"), "299 - \"1 of 3 profiles were not found\"");
	check_get(
		PROFILES "/AAAAAAAAAAAAAAAAAAAAAGE", 404, "{\"code\":404,\"error\":\"nothing found\"}\n");
	check_get(
		PROFILES "/AAAAAAAAAAAAAAAAAAAAAA", 404, "{\"code\":404,\"error\":\"nothing found\"}\n");
	CHECK_INT(send_profile("service=a&type=goroutine", false, 3, END_S), 200);
	snprintf(other, sizeof(other), "%s+%s", path, id_of(0));
	check_get(other, 400,
		"{\"code\":400,\"error\":\"profiles of different types cannot be merged: process_cpu and "
		"goroutine\"}\n");
	grafana_stop();
}

TEST(instances_that_send_in_one_second_are_all_kept)
{
	const char *at = "service=a&type=cpu&created_at=2023-11-14T22:13:20";
	char first[128];

	grafana_start();
	CHECK_INT(send_profile(at, true, 3, 0), 200);
	snprintf(first, sizeof(first), "%s", id_of(0));
	CHECK_INT(send_profile(at, true, 5, 0), 200);
	CHECK(strcmp(first, id_of(0)) != 0);
	/* Again, as after a lost answer. */
	CHECK_INT(send_profile(at, true, 3, 0), 200);
	CHECK_STR(str_of(id_of(0)), first);
	check_fetch(
		PROFILES "/merge?service=a&type=cpu", AROUND, CPU_OF("8 80000000", "2 20000000"), 18);
	/* kube-profefe says which one it is. */
	CHECK_INT(send_profile("service=k&type=cpu&instance_id=10.0.0.1&"
						   "labels=,namespace=web,from=kube-profefe",
				  true, 3, END_S),
		200);
	check_answer(200,
		"{\"code\":200,\"body\":{\"id\":\"\",\"type\":\"cpu\",\"service\":\"k\",\"labels\":["
		"{\"key\":\"from\",\"value\":\"kube-profefe\"},{\"key\":\"instance\",\"value\":"
		"\"10.0.0.1\"},{\"key\":\"namespace\",\"value\":\"web\"}],\"created_at\":"
		"\"2023-11-14T22:13:30Z\"}}\n");
	grafana_stop();
}

TEST(labels_narrow_what_is_found)
{
	grafana_start();
	CHECK_INT(send_profile(SENT "&type=cpu", true, 3, END_S), 200);
	CHECK_INT(send_profile("service=api&type=cpu&labels=region%3Dus", true, 5, END_S), 200);
	check_fetch(PROFILES "/merge?service=api&type=cpu&labels=pod-name%3Da", AROUND,
		CPU_OF("3 30000000", "1 10000000"), 9);
	check_fetch(PROFILES "/merge?service=api&type=cpu&labels=region%3Dus,pod-name%3D", AROUND,
		CPU_OF("5 50000000", "1 10000000"), 9);
	check_get(PROFILES "?service=api&labels=region%3Deu,pod-name%3Db" AROUND, 404,
		"{\"code\":404,\"error\":\"nothing found\"}\n");
	check_get(PROFILES "/merge?service=api&type=cpu&labels=x%3Dy" AROUND, 404,
		"{\"code\":404,\"error\":\"nothing found\"}\n");
	grafana_stop();
}

TEST(what_came_another_way_is_found)
{
	grafana_start();
	check_get("/api/0/services", 404, "{\"code\":404,\"error\":\"nothing found\"}\n");
	grafana_fill(); /* as scraped: job is demo, there is no service_name */
	check_get("/api/0/services", 200, "{\"code\":200,\"body\":[\"demo\"]}\n");
	check_get(PROFILES "?service=demo&type=goroutine&limit=1" AROUND, 200,
		"{\"code\":200,\"body\":[{\"id\":\"\",\"type\":\"goroutine\",\"service\":\"demo\","
		"\"labels\":[{\"key\":\"version\",\"value\":\"v1\"}],"
		"\"created_at\":\"2023-11-14T22:13:40Z\"}]}\n");
	check_fetch(PROFILES "/merge?service=demo&type=cpu&labels=version%3Dv2", AROUND,
		CPU_OF("9 90000000", "15 150000000"), 27);
	/* What profefe has no name for is "other"; a name of job and service counts once. */
	grafana_ingest("job=j&service_name=demo", T0, true, 1, 1, "main.slow");
	CHECK_INT(send_profile("service=demo&type=other", true, 2, END_S), 200);
	check_get(PROFILES "?service=demo&type=other" AROUND, 200,
		"{\"code\":200,\"body\":[{\"id\":\"\",\"type\":\"other\",\"service\":\"demo\","
		"\"created_at\":\"2023-11-14T22:13:30Z\"}]}\n");
	check_get(PROFILES "?service=j" AROUND, 200,
		"{\"code\":200,\"body\":[{\"id\":\"\",\"type\":\"cpu\",\"service\":\"j\",\"labels\":["
		"{\"key\":\"service_name\",\"value\":\"demo\"}],"
		"\"created_at\":\"2023-11-14T22:13:20Z\"}]}\n");
	check_get("/api/0/services", 200, "{\"code\":200,\"body\":[\"demo\",\"j\"]}\n");
	grafana_stop();
}

TEST(what_is_refused_is_named)
{
#define ERROR(code, text) "{\"code\":" code ",\"error\":\"" text "\"}\n"
	static const struct {
		const char *query, *body;
		int status;
		const char *want;
	} posts[] = {
		{ "type=cpu", "x", 400, ERROR("400", "bad request: missing \\\"service\\\"") },
		{ "service=a", "x", 400, ERROR("400", "bad request: missing \\\"type\\\"") },
		{ "service=a&type=unknown", "x", 400,
			ERROR("400", "bad request: unknown profile type \\\"unknown\\\"") },
		{ "service=a&type=trace", "x", 400,
			ERROR("400",
				"bad request: type \\\"trace\\\": runtime traces are no profiles, none are "
				"stored") },
		{ "service=a&type=cpu&labels=a%3D%25zz", "x", 400,
			ERROR("400", "bad request: bad \\\"labels\\\": invalid URL escape \\\"%zz\\\"") },
		{ "service=a&type=cpu&created_at=now", "x", 400,
			ERROR("400",
				"bad request: bad \\\"created_at\\\": time in unsupported format \\\"now\\\": want "
				"2006-01-02T15:04:05") },
		{ "service=a&type=cpu", "", 400, ERROR("400", "malformed profile (the body is empty)") },
	};
	static const struct {
		const char *path;
		int status;
		const char *want;
	} gets[] = {
		{ PROFILES "?type=cpu" AROUND, 400, ERROR("400", "bad request: missing \\\"service\\\"") },
		{ PROFILES "?service=a", 400, ERROR("400", "bad request: missing \\\"from\\\"") },
		{ PROFILES "?service=a&from=2023-11-14T22:00:00", 400,
			ERROR("400", "bad request: missing \\\"to\\\"") },
		{ PROFILES "?service=a&from=2023-11-14T22:00:00&to=2023-11-14", 400,
			ERROR("400",
				"bad request: bad \\\"to\\\": time in unsupported format \\\"2023-11-14\\\": want "
				"2006-01-02T15:04:05") },
		{ PROFILES "?service=a&to=2023-11-14T22:00:00&from=2023-11-14T22:00:01", 400,
			ERROR("400", "bad request: created_at min after max: from is after to") },
		{ PROFILES "?service=a&limit=99999999999999999999" AROUND, 400,
			ERROR("400",
				"bad request: bad \\\"limit\\\" \\\"99999999999999999999\\\": not a number") },
		{ PROFILES "/merge?service=a" AROUND, 400,
			ERROR("400", "bad request: missing \\\"type\\\"") },
		{ PROFILES "/%2E%2E", 400, ERROR("400", "bad profile id \\\"..\\\"") },
		{ PROFILES "/+", 400, ERROR("400", "empty profile id") },
		{ PROFILES "?service=a&limit=9223372036854775807" AROUND, 404,
			ERROR("404", "nothing found") },
	};

	grafana_start();
	for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++) {
		post(posts[i].query, "", str_of(posts[i].body));
		check_answer(posts[i].status, posts[i].want);
	}
	CHECK_INT(post("service=a&type=cpu", "", STR("no profile")), 400);
	CHECK_INT(grafana_count("{\"code\":400,\"error\":\"malformed profile: "), 1);
	for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++)
		check_get(gets[i].path, gets[i].status, gets[i].want);
	check_get("/api/0/services", 404, ERROR("404", "nothing found"));
	grafana_stop();
}

/* One sample of 1 in a library at an address of this process's own. */
static const struct pprof *process(struct arena *a, uint64_t start)
{
	struct pprof_mapping m = { .start = start, .limit = start + 65536 };
	struct pprof_location l = { .address = start + 16 };
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	int64_t one = 1;
	uint32_t at;

	must(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("goroutine"), STR("count"));
	m.filename = pprof_builder_string(b, STR("/lib/a.so"));
	l.mapping = pprof_builder_mapping(b, &m);
	at = pprof_builder_location(b, l, NULL, 0);
	pprof_builder_sample(b, &at, 1, NULL, 0, &one);
	must(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

#define PROCESSES 1025u

static void store_processes(void)
{
	struct receive_turn turn;
	struct labels_builder b;
	struct received *v;
	struct labels labels;
	struct err err;

	must(receive_begin(grafana.web->receiver, STR("test"), &turn, &err), &err);
	v = arena_array(&turn.arena, struct received, PROCESSES);
	labels_builder_init(&b, &turn.arena, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), STR("goroutine"));
	labels_builder_set(&b, STR("job"), STR("many"));
	must(labels_builder_build(&b, &labels, &err), &err);
	for (size_t i = 0; i < PROCESSES; i++)
		v[i] = (struct received){ .labels = labels,
			.profile = process(&turn.arena, UINT64_C(0x7f0000000000) + i * 0x100000),
			.ts_ns = (T0 + (int64_t)i) * NS_PER_S };
	receive_store(&turn, v, PROCESSES);
	for (size_t i = 0; i < PROCESSES; i++)
		must(v[i].rc, &v[i].err);
	receive_end(&turn);
}

TEST(each_process_keeps_its_addresses)
{
	struct pprof *p;
	struct arena a;
	int64_t sum = 0;

	grafana_start();
	store_processes();
	check_get(PROFILES "/merge?service=many&type=goroutine" AROUND, 422,
		ERROR("422",
			"the profiles have more than 1024 sets of mappings: query a shorter time, or use "
			"labels"));
	arena_init(&a, 0);
	p = fetch(&a, PROFILES "/merge?service=many&type=goroutine&limit=1024", AROUND);
	CHECK_INT(p->samples_n, 1024);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_location *l =
			&p->locations[p->location_ids[p->samples[i].location_first]];

		CHECK_INT(l->address - p->mappings[l->mapping].start, 16);
		sum += p->values[i];
	}
	CHECK_INT(sum, 1024);
	arena_release(&a);
	grafana_stop();
}

static void set_reading(unsigned n)
{
	mutex_lock(&grafana.web->lock);
	grafana.web->reading = n;
	mutex_unlock(&grafana.web->lock);
}

static unsigned get_reading(void)
{
	unsigned n;

	mutex_lock(&grafana.web->lock);
	n = grafana.web->reading;
	mutex_unlock(&grafana.web->lock);
	return n;
}

TEST(what_is_busy_says_when_to_come_again)
{
	grafana_start();
	CHECK_INT(send_profile(SENT "&type=cpu", true, 3, END_S), 200);
	set_reading(READS_MAX);
	check_get(PROFILES "?service=api" AROUND, 503,
		ERROR("503", "8 requests read profiles already: try again later"));
	CHECK_STR(response_header(&grafana.r, "Retry-After"), "1");
	set_reading(READS_MAX - 1);
	check_get(PROFILES "?service=apix" AROUND, 404, ERROR("404", "nothing found"));
	check_get(PROFILES "/x", 400, ERROR("400", "bad profile id \\\"x\\\""));
	CHECK_INT(get_reading(), READS_MAX - 1); /* each gave its turn back */
	set_reading(0);
	/* No agent drops its profile for that. */
	receiver_stop(grafana.web->receiver);
	CHECK_INT(send_profile(SENT "&type=cpu", true, 3, END_S), 503);
	CHECK_INT(grafana_count("{\"code\":503,\"error\":\""), 1);
	CHECK(response_header(&grafana.r, "Retry-After").len > 0);
	grafana_stop();
}

TEST(the_version_is_ours)
{
	char want[256];

	grafana_start();
	snprintf(want, sizeof(want),
		"{\"code\":200,\"body\":{\"version\":\"" EPI_VERSION
		"\",\"commit\":\"%s\",\"build_time\":\"%s\"}}\n",
		build_revision, build_date);
	check_get("/api/0/version", 200, want);
	grafana_stop();
}
