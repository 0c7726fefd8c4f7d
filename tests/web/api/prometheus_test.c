/* Requests of dashboards and editors beside queries, over a socket, on a real database. */

#include "base/clock.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/grafana.h"
#include "tsdb/columns/number_chunk.h"
#include "tsdb/db.h"

static struct str post_form(const char *path, const char *form)
{
	char request[256];

	snprintf(request, sizeof(request), "POST %s", path);
	peer_ask(web_port(grafana.web), &grafana.r, request,
		"Content-Type: application/x-www-form-urlencoded\r\n", str_of(form));
	return buf_str(&grafana.r.body);
}

#define DATA(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define BAD(msg) "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" msg "\"}"
#define CUT ",\"warnings\":[\"results truncated due to limit\"]}\n"

struct asked {
	const char *path;
	int status;
	const char *want;
};

static void check_all(const struct asked *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CHECK_STR(grafana_get(v[i].path), v[i].want);
		CHECK_INT(grafana.r.status, v[i].status);
	}
}

#define CHECK_ALL(table) check_all(table, sizeof(table) / sizeof(table[0]))

/* ---- functions ---- */

TEST(functions_are_completed)
{
	static const struct asked table[] = {
		{ "/api/v1/functions", 200,
			DATA("[\"main.handle\",\"main.main\",\"main.slow\",\"main.wait\",\"net.Poll\"]") },
		{ "/api/v1/functions?prefix=main.&limit=2", 200,
			"{\"status\":\"success\",\"data\":[\"main.handle\",\"main.main\"]" CUT },
		{ "/api/v1/functions?prefix=main.&limit=4", 200,
			DATA("[\"main.handle\",\"main.main\",\"main.slow\",\"main.wait\"]") },
		{ "/api/v1/functions?substring=PoLL", 200, DATA("[\"net.Poll\"]") },
		{ "/api/v1/functions?prefix=main&substring=ll", 200, DATA("[]") },
		/* By the job's symbols, not by the series'. */
		{ "/api/v1/functions?match[]=cpu{job=%22other%22}", 200,
			DATA("[\"main.handle\",\"main.main\",\"net.Poll\"]") },
		{ "/api/v1/functions?match[]=memory", 200, DATA("[]") },
		{ "/api/v1/functions?match[]=cpu:alloc_space", 200, DATA("[]") },
		{ "/api/v1/functions?match[]=memory&match[]=cpu:samples{job=%22other%22}", 200,
			DATA("[\"main.handle\",\"main.main\",\"net.Poll\"]") },
		{ "/api/v1/functions?start=1600000000&end=1600000001", 200, DATA("[]") },
		{ "/api/v1/functions?match[]=sum(", 400,
			BAD("invalid parameter \\\"match[]\\\": 1:5: unexpected end of query") },
		{ "/api/v1/functions?limit=x", 400,
			BAD("invalid parameter \\\"limit\\\": \\\"x\\\" is not a number from 0 on") },
	};

	grafana_start();
	grafana_fill();
	grafana_ingest("job=other", T0, true, 1, 1, "net.Poll");
	CHECK_ALL(table);
	CHECK_STR(post_form("/api/v1/functions", "prefix=net&limit=5"), DATA("[\"net.Poll\"]"));
	grafana_stop();
}

#define MANY 5000u

/* Many names out of order: only a few more than the limit are held at a time. */
TEST(the_first_of_many_functions)
{
	struct pprof_builder *b;
	struct buf raw = { 0 };
	struct pprof *p;
	struct arena a;
	struct err err;

	grafana_start();
	arena_init(&a, 0);
	CHECK_OK(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	for (uint32_t i = 0; i < MANY; i++) {
		char name[32];
		struct pprof_function fn = { 0 };
		struct pprof_line line = { .line = 1 };
		struct pprof_location l = { .address = 4096u + i, .mapping = PPROF_NONE };
		uint32_t location;

		snprintf(name, sizeof(name), "f%04u", (i * 2897u) % MANY); /* each once */
		fn.name = pprof_builder_string(b, str_of(name));
		line.function = pprof_builder_function(b, &fn);
		location = pprof_builder_location(b, l, &line, 1);
		pprof_builder_sample(b, &location, 1, NULL, 0, (int64_t[]){ 1 });
	}
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	CHECK_OK(pprof_encode(p, &raw, &err), &err);
	peer_ask(web_port(grafana.web), &grafana.r, "POST /api/v1/ingest?name=x&job=many", "",
		buf_str(&raw));
	CHECK_INT(grafana.r.status, 200);
	CHECK_STR(grafana_get("/api/v1/functions?limit=3"),
		"{\"status\":\"success\",\"data\":[\"f0000\",\"f0001\",\"f0002\"]" CUT);
	CHECK_STR(grafana_get("/api/v1/functions?limit=2&prefix=f49"),
		"{\"status\":\"success\",\"data\":[\"f4900\",\"f4901\"]" CUT);
	CHECK_STR(grafana_get("/api/v1/functions?substring=F499&limit=10"),
		DATA("[\"f4990\",\"f4991\",\"f4992\",\"f4993\",\"f4994\",\"f4995\",\"f4996\","
			 "\"f4997\",\"f4998\",\"f4999\"]"));
	grafana_get("/api/v1/functions");
	CHECK_INT(grafana.r.body.len, MANY * 8 + sizeof(DATA("[]")) - 2);
	buf_release(&raw);
	arena_release(&a);
	grafana_stop();
}

/* ---- trees ---- */

#define AT(start, end) ",\"position\":{\"start\":" #start ",\"end\":" #end "}}"
#define NUMBER(v, start, end) \
	"{\"type\":\"numberLiteral\",\"val\":\"" v "\",\"valueTypes\":\"scalar\"" AT(start, end)
#define MATCHER(name, type, value) \
	"{\"name\":\"" name "\",\"value\":\"" value "\",\"type\":\"" type "\"}"
#define SELECTOR(type, name, range, offset, matchers, at, side, start, end) \
	"{\"type\":\"" type "\",\"name\":\"" name "\"" range ",\"offset\":" #offset \
	",\"matchers\":[" matchers "],\"timestamp\":" at ",\"startOrEnd\":" side \
	",\"valueTypes\":\"vector|profiles\"" AT(start, end)
#define NAME(name, start, end) \
	SELECTOR( \
		"vectorSelector", name, "", 0, MATCHER("__name__", "=", name), "null", "null", start, end)

TEST(queries_as_trees)
{
	/* clang-format off */
	static const struct {
		const char *form, *want;
	} table[] = {
		{ "query=1e3", DATA(NUMBER("1000", 0, 3)) },
		{ "query=-Inf", DATA(NUMBER("-Inf", 0, 4)) },
		{ "query=1e-7", DATA(NUMBER("0.0000001", 0, 4)) },
		{ "query=%22a%5Cn%22",
			DATA("{\"type\":\"stringLiteral\",\"val\":\"a\\n\",\"valueTypes\":\"string\""
			     AT(0, 5)) },
		{ "query=cpu{a!~%22b%22}[5m]+offset+-1h+@+1.5",
			DATA("{\"type\":\"matrixSelector\",\"name\":\"cpu\",\"range\":300000,"
			     "\"offset\":-3600000,\"matchers\":[" MATCHER("a", "!~", "b") ","
			     MATCHER("__name__", "=", "cpu") "],\"timestamp\":1500,"
			     "\"startOrEnd\":null,\"valueTypes\":\"profiles\"" AT(0, 32)) },
		{ "query={a=%22b%22}+@+end()",
			DATA(SELECTOR("vectorSelector", "", "", 0, MATCHER("a", "=", "b"), "null",
				"\"end\"", 0, 15)) },
		{ "query=topk+by(a)(2,total(cpu))",
			DATA("{\"type\":\"aggregation\",\"op\":\"topk\",\"expr\":{\"type\":\"call\","
			     "\"func\":{\"name\":\"total\",\"argTypes\":[\"profiles\"],\"variadic\":0,"
			     "\"returnType\":\"vector\"},\"args\":[" NAME("cpu", 19, 22)
			     "],\"valueTypes\":\"vector\"" AT(13, 23) ",\"param\":" NUMBER("2", 11, 12)
			     ",\"grouping\":[\"a\"],\"without\":false,\"valueTypes\":\"vector\""
			     AT(0, 24)) },
		{ "query=diff+on+(job)+(cpu,mem)",
			DATA("{\"type\":\"call\",\"func\":{\"name\":\"diff\",\"argTypes\":["
			     "\"profiles\",\"profiles\"],\"variadic\":0,\"returnType\":\"profiles\"},"
			     "\"args\":[" NAME("cpu", 15, 18) "," NAME("mem", 19, 22)
			     "],\"modifier\":\"on\",\"labels\":[\"job\"],\"valueTypes\":\"profiles\""
			     AT(0, 23)) },
		{ "query=merge+without+(pod)+(cpu)",
			DATA("{\"type\":\"aggregation\",\"op\":\"merge\",\"expr\":"
			     NAME("cpu", 21, 24) ",\"param\":null,\"grouping\":[\"pod\"],\"without\":true,"
			     "\"valueTypes\":\"profiles\"" AT(0, 25)) },
		{ "query=-(1)",
			DATA("{\"type\":\"unaryExpr\",\"op\":\"-\",\"expr\":{\"type\":\"parenExpr\",\"expr\":"
			     NUMBER("1", 2, 3) ",\"valueTypes\":\"scalar\"" AT(1, 4)
			     ",\"valueTypes\":\"scalar\"" AT(0, 4)) },
		{ "query=1+>bool+2",
			DATA("{\"type\":\"binaryExpr\",\"op\":\">\",\"lhs\":" NUMBER("1", 0, 1)
			     ",\"rhs\":" NUMBER("2", 8, 9) ",\"matching\":null,\"bool\":true,"
			     "\"valueTypes\":\"scalar\"" AT(0, 9)) },
		{ "query=up+*+on(a)+group_left(b)+down",
			DATA("{\"type\":\"binaryExpr\",\"op\":\"*\",\"lhs\":" NAME("up", 0, 2)
			     ",\"rhs\":" NAME("down", 25, 29) ",\"matching\":{\"card\":\"many-to-one\","
			     "\"labels\":[\"a\"],\"on\":true,\"include\":[\"b\"]},\"bool\":false,"
			     "\"valueTypes\":\"vector\"" AT(0, 29)) },
		{ "query=flat(cpu,{function=%22f%22})",
			DATA("{\"type\":\"call\",\"func\":{\"name\":\"flat\",\"argTypes\":[\"profiles\","
			     "\"frames\"],\"variadic\":1,\"returnType\":\"vector\"},\"args\":["
			     NAME("cpu", 5, 8) ",{\"type\":\"frameMatchers\",\"matchers\":["
			     MATCHER("function", "=", "f") "],\"valueTypes\":\"frames\"" AT(9, 23)
			     "],\"valueTypes\":\"vector\"" AT(0, 24)) },
		{ "query=1%2B", BAD("1:3: unexpected end of query") },
		{ "query=flat(1)", BAD("1:6: flat() needs profiles, got a scalar") },
	};
	/* clang-format on */
	struct buf deep = { 0 };

	grafana_start();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		CHECK_STR(post_form("/api/v1/parse_query", table[i].form), table[i].want);
	/* As deep as a query may be. */
	buf_add_cstr(&deep, "query=");
	for (int i = 0; i < 98; i++)
		buf_add_cstr(&deep, "abs(");
	buf_add_cstr(&deep, "vector(1)");
	for (int i = 0; i < 98; i++)
		buf_add_char(&deep, ')');
	buf_add_char(&deep, '\0');
	post_form("/api/v1/parse_query", deep.ptr);
	CHECK_INT(grafana.r.status, 200);
	buf_release(&deep);
	grafana_stop();
}

/* ---- metadata ---- */

#define CPU_ENTRY \
	"{\"type\":\"counter\",\"unit\":\"nanoseconds\"," \
	"\"help\":\"cpu of process_cpu profiles, counted over each scrape\"," \
	"\"profile_type\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta\"}"
#define SAMPLES_ENTRY \
	"{\"type\":\"counter\",\"unit\":\"count\"," \
	"\"help\":\"samples of process_cpu profiles, counted over each scrape\"," \
	"\"profile_type\":\"process_cpu:samples:count:cpu:nanoseconds:delta\"}"
#define GOROUTINE_ENTRY \
	"{\"type\":\"gauge\",\"unit\":\"count\"," \
	"\"help\":\"goroutine of goroutine profiles, the level at each scrape\"," \
	"\"profile_type\":\"goroutine:goroutine:count:goroutine:count\"}"

TEST(metadata_tells_units)
{
	static const struct asked table[] = {
		{ "/api/v1/metadata", 200,
			DATA("{\"goroutine\":[" GOROUTINE_ENTRY "],\"process_cpu\":[" CPU_ENTRY
				 "," SAMPLES_ENTRY "]}") },
		{ "/api/v1/metadata?limit=1", 200, DATA("{\"goroutine\":[" GOROUTINE_ENTRY "]}") },
		{ "/api/v1/metadata?limit_per_metric=1&metric=process_cpu", 200,
			DATA("{\"process_cpu\":[" CPU_ENTRY "]}") },
		{ "/api/v1/metadata?metric=cpu:samples", 200,
			DATA("{\"cpu:samples\":[" SAMPLES_ENTRY "]}") },
		{ "/api/v1/metadata?metric=nothing", 200, DATA("{}") },
		{ "/api/v1/metadata?limit_per_metric=-", 400,
			BAD("invalid parameter \\\"limit_per_metric\\\": \\\"-\\\" is not a number "
				"from 0 on") },
	};

	grafana_start();
	grafana_fill();
	CHECK_ALL(table);
	grafana_stop();
}

/* ---- what others ask of every Prometheus ---- */

TEST(empty_answers_have_prometheus_shapes)
{
	static const struct asked table[] = {
		{ "/api/v1/query_exemplars?query=test&start=1700000000000&end=1700000001000", 200,
			DATA("[]") },
		{ "/api/v1/query_exemplars?query=1%2B", 400, BAD("1:3: unexpected end of query") },
		{ "/api/v1/rules", 200, DATA("{\"groups\":[]}") },
		{ "/api/v1/rules?type=alert", 200, DATA("{\"groups\":[]}") },
		{ "/api/v1/alertmanagers", 200,
			DATA("{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}") },
		{ "/api/v1/rules?type=x", 400,
			BAD("invalid parameter \\\"type\\\": not supported value \\\"x\\\"") },
	};

	grafana_start();
	CHECK_ALL(table);
	CHECK_STR(post_form("/api/v1/query_exemplars", "query=up"), DATA("[]"));
	grafana_stop();
}

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	(void)rc;
	(void)err;
	atomic_fetch_add((atomic_int *)ctx, 1);
}

TEST(names_that_need_quotes_are_federated)
{
	int64_t now = clock_now_ns() / NS_PER_MS * NS_PER_MS;
	struct label labels[] = { { STR("0.x"), STR("b") },
		{ STR("__name__"), STR("http.temp\u00e9") }, { STR("host.name"), STR("a") } };
	const struct db_number v[] = { { { labels, 3 }, now - NS_PER_S, 1 } };
	const char *asked = "GET /federate?match[]={%22host.name%22=%22a%22}";
	atomic_int done = 0;
	struct buf want = { 0 };
	struct err err;

	grafana_start();
	CHECK_OK(db_append_numbers(grafana.storage.db, v, 1, acked, &done, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&done)));
	buf_printf(&want,
		"# TYPE http_temp_ untyped\nhttp_temp_{_0_x=\"b\",host_name=\"a\",instance=\"\"} 1 %lld\n",
		(long long)(now / NS_PER_MS - 1000));
	buf_add_char(&want, '\0');
	CHECK_STR(grafana_get(asked + 4), want.ptr);
	buf_clear(&want);
	buf_printf(&want,
		"# TYPE \"http.temp\u00e9\" untyped\n"
		"{\"http.temp\u00e9\",\"0.x\"=\"b\",\"host.name\"=\"a\",instance=\"\"} 1 %lld\n",
		(long long)(now / NS_PER_MS - 1000));
	buf_add_char(&want, '\0');
	peer_ask(web_port(grafana.web), &grafana.r, asked,
		"Accept: text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.1\r\n", STR(""));
	CHECK_STR(buf_str(&grafana.r.body), want.ptr);
	CHECK_STR(response_header(&grafana.r, "Content-Type"),
		"text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8");
	buf_release(&want);
	grafana_stop();
}

TEST(numbers_are_federated)
{
	int64_t now = clock_now_ns() / NS_PER_MS * NS_PER_MS;
	struct label up_a[] = { { STR("__name__"), STR("up") },
		{ STR("instance"), STR("a\"b") }, { STR("job"), STR("x") } };
	struct label up_b[] = { { STR("__name__"), STR("up") }, { STR("job"), STR("y") } };
	struct label gone[] = { { STR("__name__"), STR("up") }, { STR("job"), STR("z") } };
	struct label cost[] = { { STR("__name__"), STR("job:cost:sum") } };
	const struct db_number v[] = {
		{ { up_a, 3 }, now - NS_PER_MIN, 0 },
		{ { up_a, 3 }, now - NS_PER_S, 1 },
		{ { up_b, 2 }, now - NS_PER_S, 0.5 },
		{ { gone, 2 }, now - 2 * NS_PER_S, 1 },
		{ { gone, 2 }, now - NS_PER_S, number_of_bits(NUMBER_STALE_BITS) },
		{ { cost, 1 }, now - 10 * NS_PER_MIN, 7 },
	};
	atomic_int done = 0;
	struct buf want = { 0 };
	struct err err;

	grafana_start();
	grafana_fill();
	CHECK_OK(db_append_numbers(grafana.storage.db, v, 6, acked, &done, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&done)));
	buf_printf(&want,
		"# TYPE up untyped\n"
		"up{instance=\"a\\\"b\",job=\"x\"} 1 %lld\n"
		"up{job=\"y\",instance=\"\"} 0.5 %lld\n",
		(long long)(now / NS_PER_MS - 1000), (long long)(now / NS_PER_MS - 1000));
	buf_add_char(&want, '\0');
	CHECK_STR(grafana_get("/federate?match[]={job=~%22.%2B%22}&match[]=up"), want.ptr);
	CHECK_STR(
		response_header(&grafana.r, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
	CHECK_STR(grafana_get("/federate?match[]=cpu&match[]=job:cost:sum"), "");
	CHECK_STR(grafana_get("/federate?match[]=x("),
		"invalid parameter \"match[]\": 1:3: unexpected end of query\n");
	CHECK_INT(grafana.r.status, 400);
	buf_release(&want);
	grafana_stop();
}

/* ---- profiles for clients that know numbers only ---- */

#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"

TEST(profiles_come_as_totals_for_clients_of_prometheus)
{
	static const char *const vector = DATA(
		"{\"resultType\":\"vector\",\"unit\":\"count\",\"result\":[{\"metric\":{},"
		"\"value\":[1700000030,\"42\"]}]}");
	static const char get[] = "GET /api/v1/query?query=merge(cpu:samples[1m])&time=1700000030";
	static const char post[] = "POST /api/v1/query";
	static const char form[] = "query=merge(cpu:samples[1m])&time=1700000030";
	static const struct {
		const char *request, *headers, *form;
		bool totals;
	} clients[] = {
		{ get, "User-Agent: Grafana/12.1.0\r\n", "", true },
		{ get, "User-Agent: promtool/3.8.0\r\n", "", true },
		{ get, "User-Agent: Prometheus/3.8.0\r\n", "", true },
		{ post, FORM "User-Agent: promtool/3.8.0\r\n", form, true },
		{ post, FORM "User-Agent: Go-http-client/1.1\r\n", form, true },
		{ post, FORM "User-Agent: Go-http-client/2.0\r\n", form, true },
		/* go tool pprof, and programs that were written for this server */
		{ get, "User-Agent: Go-http-client/1.1\r\n", "", false },
		{ post, FORM "User-Agent: Go-http-client/1.1\r\n",
			"query=merge(cpu:samples[1m])&time=1700000030&max_nodes=9", false },
		{ post, FORM "User-Agent: Go-http-client/1.1\r\n",
			"query=merge(cpu:samples[1m])&time=1700000030&format=json", false },
		{ post, FORM "User-Agent: Go-http-client/1.1\r\n",
			"query=merge(cpu:samples)&start=1699999990&end=1700000030", false },
		/* the page, curl, epitool */
		{ get, "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n", "", false },
		{ post, FORM "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n", form, false },
		{ get, "User-Agent: curl/7.88.1\r\nAccept: */*\r\n", "", false },
		{ post, FORM "User-Agent: curl/7.88.1\r\nAccept: */*\r\n", form, false },
		{ get, "User-Agent: epitool/1.0\r\n", "", false },
		{ get, "", "", false },
	};

	grafana_start();
	grafana_fill();
	CHECK_STR(
		grafana_get("/api/v1/query?query=merge(cpu:samples[1m])&profiles=totals&time=1700000030"),
		vector);
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		peer_ask(web_port(grafana.web), &grafana.r, clients[i].request, clients[i].headers,
			str_of(clients[i].form));
		CHECK_INT(grafana.r.status, 200);
		if (clients[i].totals)
			CHECK_STR(buf_str(&grafana.r.body), vector);
		else if (!grafana_count("\"resultType\":\"profiles\""))
			CHECK_FAIL("%zu: no profiles: " STR_FMT, i, STR_ARG(buf_str(&grafana.r.body)));
	}
	peer_ask(web_port(grafana.web), &grafana.r,
		"GET /api/v1/query?query=merge(cpu:samples[1m])&time=1700000030&profiles=flame",
		"User-Agent: Grafana/12.1.0\r\n", STR(""));
	CHECK(str_find(buf_str(&grafana.r.body), STR("\"resultType\":\"profiles\"")) > 0);
	CHECK_STR(grafana_get("/api/v1/query?query=top(1,merge(cpu:samples[1m]))&profiles=totals"
						  "&time=1700000030"),
		DATA("{\"resultType\":\"vector\",\"result\":[{\"metric\":{"
			 "\"function\":\"main.handle\"},\"value\":[1700000030,\"30\"]}]}"));
	CHECK_STR(grafana_get("/api/v1/query?query=cpu&profiles=x"),
		BAD("invalid parameter \\\"profiles\\\": must be \\\"totals\\\" or \\\"flame\\\""));
	grafana_stop();
}

/* ---- units ---- */

TEST(numbers_have_units)
{
	static const struct {
		const char *query, *unit;
	} table[] = {
		{ "total(cpu[1m])", "nanoseconds" },
		{ "sum(flat(merge(cpu:samples[1m])))", "count" },
		{ "topk(1,cum(merge(cpu[1m])))", "nanoseconds" },
		{ "flat_share(merge(cpu[1m]))", "ratio" },
		{ "total(cpu[1m])/total(cpu[1m])", "ratio" },
		{ "total(cpu[1m])/total(cpu:samples[1m])", "" },
		{ "total(cpu[1m])/1e9", "" },
		{ "total(cpu[1m])%2B1", "nanoseconds" },
		{ "-total(cpu[1m])", "nanoseconds" },
		{ "total(cpu[1m])-total(cpu[1m]%20offset%205s)", "nanoseconds" },
		{ "total(cpu[1m]-cpu[1m]%20offset%205s)", "nanoseconds" },
		{ "total(cpu[1m])>1", "nanoseconds" },
		{ "1<total(cpu[1m])", "nanoseconds" },
		{ "total(cpu[1m])>bool%201", "" },
		{ "count(total(cpu[1m]))", "" },
		{ "total(cpu[1m])*flat_share(merge(cpu[1m]))", "nanoseconds" },
		{ "total(cpu[1m]*2)", "nanoseconds" },
		{ "scalar(sum(total(cpu[1m])))", "nanoseconds" },
		{ "vector(1)", "" },
		{ "total(focus(cpu[1m],%22slow%22))", "nanoseconds" },
	};
	char path[512];

	grafana_start();
	grafana_fill();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct str body, unit = STR("");
		ptrdiff_t at;

		snprintf(path, sizeof(path), "/api/v1/query?time=1700000030&query=%s", table[i].query);
		body = grafana_get(path);
		CHECK_INT(grafana.r.status, 200);
		if ((at = str_find(body, STR("\"unit\":\""))) > 0) {
			unit = (struct str){ body.ptr + at + 8, body.len - (size_t)at - 8 };
			unit.len = (size_t)str_find(unit, STR("\""));
		}
		if (!str_is(unit, table[i].unit))
			CHECK_FAIL("%s: \"" STR_FMT "\", want \"%s\": " STR_FMT, table[i].query, STR_ARG(unit),
				table[i].unit, STR_ARG(body));
	}
	grafana_stop();
}

/* ---- HEAD ---- */

TEST(what_can_be_got_has_a_head)
{
	struct peer p;

	grafana_start();
	peer_open(&p, web_port(grafana.web));
	peer_send(&p, STR("HEAD /api/v1/labels HTTP/1.1\r\nHost: x\r\n\r\n"));
	peer_receive(&p, &grafana.r, true);
	CHECK_INT(grafana.r.status, 200);
	CHECK_STR(response_header(&grafana.r, "Content-Type"), "application/json");
	CHECK_STR(response_header(&grafana.r, "Content-Length"), "31");
	peer_close(&p);
	grafana_stop();
}
