/* The API over a union of two databases: its shards are named, and what writes is refused. */
#include "tests/check.h"
#include "tests/tsdb/read/numbers.h"
#include "tests/web/grafana.h"

static struct storage shards[2];
static struct db *all;
static struct engine *engine;

static void put(struct db *db, const char *instance)
{
	struct label v[] = { { STR(LABEL_NAME), STR("up") }, { STR("instance"), str_of(instance) } };
	struct db_number number = { { v, 2 }, T0 * 1000000000, 1 };
	struct err err;

	CHECK_OK(numbers_wait(db, &number, 1, &err), &err);
}

static void start(void)
{
	struct engine_options e = { .concurrency_max = 1 };
	struct web_options w = { .listen_address = "127.0.0.1:0", .enable_admin_api = true };
	struct err err;

	must(db_union_open(&all, &err), &err);
	for (int i = 0; i < 2; i++) {
		storage_open(&shards[i]);
		must(db_union_add(all, i ? "east" : "west", shards[i].db, NULL, NULL, &err), &err);
	}
	e.db = w.db = all;
	must(engine_open(&e, &engine, &err), &err);
	w.engine = engine;
	must(web_open(&w, &grafana.web, &err), &err);
	web_set_ready(grafana.web, true);
}

static void stop(void)
{
	web_close(grafana.web);
	engine_close(engine);
	db_union_remove(all, "east");
	db_union_remove(all, "west");
	db_close(all);
	for (int i = 0; i < 2; i++)
		storage_close(&shards[i]);
	response_release(&grafana.r);
}

static struct str ask(const char *request)
{
	peer_ask(web_port(grafana.web), &grafana.r, request, "", (struct str){ 0 });
	return buf_str(&grafana.r.body);
}

TEST(shards_are_named)
{
	struct str body;

	start();
	put(shards[0].db, "a");
	put(shards[0].db, "b");
	put(shards[1].db, "b");
	put(shards[1].db, "c");
	body = ask("GET /api/v1/status/tsdb");
	CHECK_INT(grafana.r.status, 200);
	CHECK(str_find(body, STR("\"state\":\"ready\"")) > 0);
	CHECK(str_find(body, STR("{\"shard\":\"east\",\"ulid\":\"\"")) > 0);
	CHECK(str_find(body, STR("{\"shard\":\"west\",\"ulid\":\"\"")) > 0);
	CHECK_STR(ask("GET /api/v1/label/instance/values"),
		"{\"status\":\"success\",\"data\":[\"a\",\"b\",\"c\"]}\n");
	stop();
}

TEST(what_writes_is_refused)
{
	start();
	CHECK_STR(ask("POST /api/v1/admin/tsdb/snapshot"),
		"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"snapshot: this server "
		"only answers queries: send the request to the shard\"}");
	CHECK_INT(grafana.r.status, 400);
	CHECK_STR(ask("POST /api/v1/admin/tsdb/delete_series?match[]=up"),
		"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"delete series: this "
		"server only answers queries: send the request to the shard\"}");
	CHECK_STR(ask("POST /api/v1/admin/tsdb/accept_losses"),
		"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"accept losses: this "
		"server only answers queries: send the request to the shard\"}");
	stop();
}
