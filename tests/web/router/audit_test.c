/* The audit log: which requests have a line, what it says, and that no refusal is lost. */
#include "web/router/audit.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

static char lines[65536];

/* What a call writes on standard error, each line without its time and level. */
#define CAPTURE(call) \
	do { \
		int saved_ = dup(2); \
		FILE *f_ = tmpfile(); \
		dup2(fileno(f_), 2); \
		call; \
		dup2(saved_, 2); \
		close(saved_); \
		rewind(f_); \
		lines[fread(lines, 1, sizeof(lines) - 1, f_)] = '\0'; \
		fclose(f_); \
		cut_times(); \
	} while (0)

static void cut_times(void)
{
	static const char from[] = "component=";
	char *to = lines;

	for (char *p = lines, *end; *p; p = end) {
		char *at = strstr(p, from);
		size_t n;

		end = strchr(p, '\n');
		end = end ? end + 1 : p + strlen(p);
		p = at && at < end ? at : p;
		n = (size_t)(end - p);
		memmove(to, p, n);
		to += n;
	}
	*to = '\0';
}

static struct http_in request_from(unsigned char address)
{
	struct http_in in = { .method = HTTP_GET,
		.path = STR("/api/v1/query"),
			.remote = STR("10.0.0.7:1234"), .client = { .bytes = { 10, 0, 0, address, [8] = 4 } } };

	return in;
}

static void send(
	struct audit *a, const struct http_in *in, int status, enum http_needs needs, int64_t now_ns)
{
	const struct http_out out = { .status = status };

	audit_request(a, in, &out, needs, now_ns);
}

static struct audit *open_audit(void)
{
	struct audit *a = NULL;
	struct err err;

	CHECK_OK(audit_open(&a, &err), &err);
	return a;
}

TEST(refusals_and_requests_of_admins_have_lines)
{
	struct http_param params[] = { { STR("match[]"), STR("{job=\"a b\"}") },
		{ STR("start"), STR("1") }, { STR("secret"), STR("x") } };
	struct audit *a = open_audit();
	struct http_in in = request_from(7);

	CAPTURE(send(a, &in, 200, NEEDS_READ, 1));
	CHECK_STR(str_of(lines), "");
	CAPTURE(send(a, &in, 404, NEEDS_NOT_SAID, 1));
	CHECK_STR(str_of(lines), "");
	in.user.why = "unknown token";
	CAPTURE(send(a, &in, 401, NEEDS_NOT_SAID, 1));
	CHECK_STR(str_of(lines),
		"component=audit msg=\"request refused\" address=10.0.0.7:1234 method=GET "
		"path=/api/v1/query status=401 reason=\"unknown token\"\n");
	in.user = (struct http_user){ .name = STR("ci"), .sign_in = "token", .roles = ROLE_INGEST };
	CAPTURE(send(a, &in, 403, NEEDS_READ_ALL, 1));
	CHECK_STR(str_of(lines),
		"component=audit msg=\"request refused\" user=ci sign_in=token address=10.0.0.7:1234 "
		"method=GET path=/api/v1/query status=403 needs=\"read without matchers\"\n");
	in.user = (struct http_user){ .name = STR("root"), .sign_in = "password", .roles = ROLES_ALL };
	in.method = HTTP_POST;
	in.path = STR("/api/v1/admin/tsdb/delete_series");
	in.params = params;
	in.params_n = 3;
	CAPTURE(send(a, &in, 204, NEEDS_ADMIN, 1));
	CHECK_STR(str_of(lines),
		"component=audit msg=\"admin request\" user=root sign_in=password address=10.0.0.7:1234 "
		"method=POST path=/api/v1/admin/tsdb/delete_series status=204 "
		"params=\"match[]={job=\\\"a b\\\"}&start=1\"\n");
	in.method = HTTP_DELETE;
	in.path = STR("/api/v1/files/1");
	CAPTURE(send(a, &in, 200, NEEDS_READ, 1));
	CHECK_STR(str_of(lines),
		"component=audit msg=\"delete request\" user=root sign_in=password "
		"address=10.0.0.7:1234 method=DELETE path=/api/v1/files/1 status=200\n");
	audit_close(a);
}

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (const char *p = lines; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void send_many(struct audit *a, struct http_in *in, unsigned n, int64_t now_ns)
{
	for (unsigned i = 0; i < n; i++)
		send(a, in, 403, NEEDS_READ, now_ns);
}

#define MORE(n) \
	"component=audit msg=\"more requests refused\" requests=" #n " address=10.0.0.7:1234\n"

TEST(refusals_beyond_the_limit_are_counted)
{
	struct audit *a = open_audit();
	struct http_in in = request_from(7), admin = request_from(7);

	CAPTURE(send_many(a, &in, 100, 1));
	CHECK_INT(lines_of("request refused"), AUDIT_LINES_MAX);
	CAPTURE(audit_tell_hidden(a, AUDIT_WINDOW_NS)); /* the window has not ended */
	CHECK_STR(str_of(lines), "");
	CAPTURE(audit_tell_hidden(a, AUDIT_WINDOW_NS + 1));
	CHECK_STR(str_of(lines), MORE(90));
	CAPTURE(audit_tell_hidden(a, 3 * AUDIT_WINDOW_NS));
	CHECK_STR(str_of(lines), "");
	/* The next request tells too, and has a line. */
	CAPTURE(send_many(a, &in, 12, 4 * AUDIT_WINDOW_NS));
	CHECK_INT(lines_of("request refused"), AUDIT_LINES_MAX);
	CAPTURE(send_many(a, &in, 1, 5 * AUDIT_WINDOW_NS));
	CHECK_INT(lines_of(MORE(2)), 1);
	CHECK_INT(lines_of("request refused"), 1);
	/* Admins are in no limit. */
	CAPTURE(
		for (unsigned i = 0; i < 100; i++) send(a, &admin, 200, NEEDS_ADMIN, 5 * AUDIT_WINDOW_NS));
	CHECK_INT(lines_of("admin request"), 100);
	/* What is counted when the server ends is told. */
	(void)(send_many(a, &in, 12, 5 * AUDIT_WINDOW_NS), 0);
	CAPTURE(audit_close(a));
	CHECK_STR(str_of(lines), MORE(3));
}

/* However many addresses there are, each refusal has a line or is in a count. */
TEST(no_refusal_of_many_addresses_is_lost)
{
	struct audit *a = open_audit();
	size_t shown = 0, counted = 0;
	const char *p;

	for (unsigned i = 0; i < 2000; i++) {
		struct http_in in = request_from((unsigned char)i);

		in.client.bytes[0] = (unsigned char)(i >> 8);
		CAPTURE(send_many(a, &in, 4, 1));
		shown += lines_of("request refused");
	}
	CHECK(shown > 128 * AUDIT_LINES_MAX && shown <= 256 * AUDIT_LINES_MAX);
	CAPTURE(audit_close(a));
	CHECK(lines_of("address=several") > 0);
	for (p = lines; (p = strstr(p, "requests=")); p++)
		counted += strtoul(p + 9, NULL, 10);
	CHECK_INT(shown + counted, 8000);
}
