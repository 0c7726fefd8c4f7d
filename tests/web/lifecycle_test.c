/* Health, for who has credentials and who has none. */
#include <unistd.h>

#include "tests/check.h"
#include "tests/web/asking.h"

static void lease_waits(void *ctx, struct buf *out)
{
	(void)ctx;
	buf_add_cstr(out, "waiting for the lease of shard a");
}

/* The reason names hosts and shards: it is for users. */
TEST(who_has_no_credentials_learns_that_a_server_is_not_ready_and_no_more)
{
	char dir[] = "/tmp/epi-web-XXXXXX", web_file[64], token_file[64];
	const char *user = "Authorization: Bearer the-token-of-an-admin\r\n";
	struct web_options o = { .listen_address = "127.0.0.1:0" };
	struct response r = { 0 };
	struct web *w;
	FILE *f;

	REQUIRE(mkdtemp(dir));
	snprintf(web_file, sizeof(web_file), "%s/web.yml", dir);
	snprintf(token_file, sizeof(token_file), "%s/admin", dir);
	REQUIRE((f = fopen(token_file, "w")) && fputs("the-token-of-an-admin", f) > 0 && !fclose(f));
	REQUIRE((f = fopen(web_file, "w")) &&
		fputs("users: [{name: root, token_file: admin, roles: [admin]}]\n", f) > 0 && !fclose(f));
	o.waiting = lease_waits;
	o.config_file = web_file;
	w = asking_open(&o);
	CHECK_INT(asking_get(w, "GET /-/ready", "", &r), 503);
	CHECK_STR(buf_str(&r.body), "not ready\n");
	CHECK_INT(asking_get(w, "GET /-/ready", user, &r), 503);
	CHECK_STR(buf_str(&r.body), "not ready: waiting for the lease of shard a\n");
	CHECK_INT(asking_get(w, "GET /-/ready", "Authorization: Bearer wrong\r\n", &r), 401);
	CHECK_INT(asking_get(w, "GET /-/healthy", "", &r), 200);
	CHECK_INT(asking_get(w, "GET /metrics", "", &r), 401);
	response_release(&r);
	web_close(w);
	CHECK(!unlink(web_file) && !unlink(token_file) && !rmdir(dir));
}
