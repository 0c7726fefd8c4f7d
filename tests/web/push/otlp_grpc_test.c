/* OTLP over gRPC against a real database: the same as over HTTP, and its refusals. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "proto/base64.h"
#include "scrape/config/config.h"
#include "tests/check.h"
#include "tests/web/grafana.h"
#include "tests/web/grpc/h2_client.h"
#include "web/grpc/grpc.h"

#define EXPORT "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define CHECK_HEALTH "/grpc.health.v1.Health/Check"
#define RECORDED "tests/proto/otlp/testdata/p2-standalone-99hz-steady.pb.gz"
#define TOTALS \
	"/api/v1/" \
	"query?query=sort_desc(total(merge%20by%20(job)%20(process_cpu%5B1h%5D)))&time=1795326360"

static const char *const as_gzip[] = { "grpc-encoding", "gzip", NULL };

static struct h2_reply call(const char *path, const char *const *fields, struct str body)
{
	struct h2_client *c = malloc(sizeof(*c));
	struct h2_reply *r, out;

	h2_open(c, web_grpc_port(grafana.web), NULL);
	r = h2_call(c, path, fields, body, true);
	h2_wait(c, r);
	out = *r;
	r->body = (struct buf){ 0 };
	h2_close(c);
	free(c);
	return out;
}

static void read_recorded(struct buf *out)
{
	struct err err;

	buf_clear(out);
	must(fs_read_file(RECORDED, 1u << 20, out, &err), &err);
}

static void check_body(struct h2_reply *r, struct str want)
{
	REQUIRE(r->body.len >= 5);
	CHECK(str_eq((struct str){ r->body.ptr + 5, r->body.len - 5 }, want));
	buf_release(&r->body);
}

TEST(what_grpc_stores_equals_what_http_stores)
{
	struct buf file = { 0 }, body = { 0 }, got[2] = { { 0 }, { 0 } };
	struct h2_reply r;

	read_recorded(&file);
	h2_message(&body, 1, buf_str(&file));
	for (int grpc = 0; grpc < 2; grpc++) {
		grafana_start_grpc();
		if (grpc) {
			r = call(EXPORT, as_gzip, buf_str(&body));
			CHECK_INT(r.status, GRPC_OK);
			check_body(&r, STR(""));
		} else {
			peer_ask(web_port(grafana.web), &grafana.r, "POST /v1development/profiles",
				"Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n",
				buf_str(&file));
			CHECK_INT(grafana.r.status, 200);
		}
		buf_add_str(&got[grpc], grafana_get(TOTALS));
		grafana_stop();
	}
	CHECK(str_find(buf_str(&got[0]), STR("\"java\"")) > 0);
	CHECK(str_eq(buf_str(&got[0]), buf_str(&got[1])));
	buf_release(&file);
	buf_release(&body);
	buf_release(&got[0]);
	buf_release(&got[1]);
}

TEST(requests_that_are_refused_for_good)
{
	struct buf zeros = { 0 }, bomb = { 0 }, body = { 0 };
	struct err err;
	struct h2_reply r;

	grafana_start_grpc();
	r = call(EXPORT, NULL, (struct str){ "\0\0\0\0\2\x0a\x7f", 7 });
	CHECK_INT(r.status, GRPC_INVALID_ARGUMENT);
	CHECK_STR(str_of(r.message),
		"request is not well-formed: a field is cut off, or of an unknown wire type");
	r = call(EXPORT, as_gzip, (struct str){ "\1\0\0\0\2xy", 7 });
	CHECK_INT(r.status, GRPC_INVALID_ARGUMENT);
	CHECK_STR(str_of(r.message), "Content-Encoding is gzip, the body is not");
	/* A hundred MiB of zeros in a hundred KiB. */
	buf_reserve(&zeros, 100u << 20);
	memset(zeros.ptr, 0, 100u << 20);
	zeros.len = 100u << 20;
	must(gzip_compress(buf_str(&zeros), 1, &bomb, &err), &err);
	buf_release(&zeros);
	h2_message(&body, 1, buf_str(&bomb));
	r = call(EXPORT, as_gzip, buf_str(&body));
	CHECK_INT(r.status, GRPC_RESOURCE_EXHAUSTED);
	CHECK_STR(str_of(r.message), "request is more than 67108864 bytes inflated, the limit");
	CHECK_STR(str_of(r.details), ""); /* nobody tries again */
	r = call(EXPORT, NULL, (struct str){ "\0\1\0\0\1", 5 });
	CHECK_INT(r.status, GRPC_RESOURCE_EXHAUSTED);
	CHECK_STR(str_of(r.message), "the message is 16777217 bytes long, limit 16777216");
	grafana_stop();
	buf_release(&bomb);
	buf_release(&body);
}

TEST(a_sender_that_is_too_fast_is_to_try_again)
{
	struct buf file = { 0 }, body = { 0 };
	struct config *slow, *usual;
	char details[1600];
	struct h2_reply r;
	struct err err;
	size_t n;

	grafana_start_grpc();
	must(config_load_text(
		"test.yml", STR("."), STR("push_config: {profiles_per_second: 1}"), &slow, &err), &err);
	usual = grafana.config;
	grafana.config = slow;
	read_recorded(&file);
	h2_message(&body, 1, buf_str(&file));
	r = call(EXPORT, as_gzip, buf_str(&body));
	CHECK_INT(r.status, GRPC_OK);
	check_body(&r, STR(""));
	do { /* it has credit for some */
		r = call(EXPORT, as_gzip, buf_str(&body));
		buf_release(&r.body);
	} while (r.status == GRPC_OK);
	CHECK_INT(r.status, GRPC_UNAVAILABLE);
	REQUIRE(base64_decode(str_of(r.details), details, &n));
	CHECK(
		str_find((struct str){ details, n }, STR("type.googleapis.com/google.rpc.RetryInfo")) > 0);
	grafana.config = usual;
	grafana_stop();
	config_unref(slow);
	buf_release(&file);
	buf_release(&body);
}

TEST(health)
{
	struct h2_reply r;

	grafana_start_grpc();
	r = call(CHECK_HEALTH, NULL, (struct str){ "\0\0\0\0", 5 });
	CHECK_INT(r.status, GRPC_OK);
	check_body(&r, STR("\x08\x01"));
	r = call(CHECK_HEALTH, NULL, (struct str){ "\0\0\0\0\3\x0a\1x", 8 });
	CHECK_INT(r.status, GRPC_NOT_FOUND);
	CHECK_STR(str_of(r.message), "unknown service");
	r = call(CHECK_HEALTH, NULL, (struct str){ "\0\0\0\0\2\x0a\5", 7 });
	CHECK_INT(r.status, GRPC_INVALID_ARGUMENT);
	web_set_ready(grafana.web, false);
	r = call(CHECK_HEALTH, NULL, (struct str){ "\0\0\0\0", 5 });
	CHECK_INT(r.status, GRPC_UNAVAILABLE);
	CHECK_STR(str_of(r.message), "not ready: the server is starting");
	grafana_stop();
}

TEST(the_port_needs_ingest)
{
	const struct web_options o = { .listen_address = "127.0.0.1:0",
		.otlp_grpc_listen_address = "127.0.0.1:0" };
	struct web *w = NULL;
	struct err err;

	CHECK_ERR(web_open(&o, &w, &err), &err, ERR_INVALID,
		"--web.otlp-grpc-listen-address needs --web.enable-ingest");
}
