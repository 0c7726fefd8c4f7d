#include "base/self/libraries.h"
#include "base/version.h"
#include "web/http/http.h"
#include "web/profefe/profefe.h"

void profefe_begin(struct http_out *out, struct json *j)
{
	out->content_type = "application/json";
	json_init(j, &out->body);
	json_object(j);
	json_key(j, "code");
	json_u64(j, 200);
	json_key(j, "body");
}

void profefe_end(struct json *j)
{
	json_object_end(j);
	buf_add_char(j->out, '\n');
}

static int profefe_status_of(enum err_code rc)
{
	switch (rc) {
	case ERR_INVALID:
	case ERR_UNSUPPORTED:
		return 400;
	case ERR_LIMIT:
		return 422;
	case ERR_NOT_FOUND:
		return 404;
	case ERR_EXISTS:
		return 409;
	case ERR_CANCELED:
		return 499;
	case ERR_UNAVAILABLE:
		return 503;
	default:
		return 500;
	}
}

void profefe_fail(struct http_out *out, enum err_code rc, const struct err *err)
{
	struct json j;

	if (out->status == 200)
		out->status = profefe_status_of(rc);
	if (out->status == 503)
		http_default_header(out, "Retry-After", STR("1"));
	buf_clear(&out->body);
	out->encoded = false;
	out->content_type = "application/json";
	json_init(&j, &out->body);
	json_object(&j);
	json_key(&j, "code");
	json_u64(&j, (uint64_t)out->status);
	json_key(&j, "error");
	json_cstr(&j, err->msg);
	profefe_end(&j);
}

static void profefe_write_label(struct json *j, const struct label *l)
{
	json_object(j);
	json_key(j, "key");
	json_str(j, l->name);
	json_key(j, "value");
	json_str(j, l->value);
	json_object_end(j);
}

/* What we make of the service is no label of the sender's. */
static bool profefe_is_shown(const struct label *l, struct str service)
{
	bool of_service = str_is(l->name, "service_name") || str_is(l->name, "job");

	return !str_is(l->name, LABEL_NAME) && !(of_service && str_eq(l->value, service));
}

void profefe_write(
	struct json *j, struct labels series, int64_t ts_ns, struct str service, const char *type)
{
	struct profefe_id id = profefe_id_of(series, ts_ns);
	struct buf text = { 0 };
	bool any = false;

	profefe_id_print(&text, &id);
	json_object(j);
	json_key(j, "id");
	json_str(j, buf_str(&text));
	json_key(j, "type");
	json_cstr(j, type);
	json_key(j, "service");
	json_str(j, service);
	for (size_t i = 0; i < series.n; i++) {
		if (!profefe_is_shown(&series.v[i], service))
			continue;
		if (!any) {
			json_key(j, "labels");
			json_array(j);
		}
		any = true;
		profefe_write_label(j, &series.v[i]);
	}
	if (any)
		json_array_end(j);
	buf_clear(&text);
	profefe_time_print(&text, ts_ns);
	json_key(j, "created_at");
	json_str(j, buf_str(&text));
	json_object_end(j);
	if (buf_failed(&text))
		j->out->failed = true;
	buf_release(&text);
}

void profefe_version(struct web *w, struct http_in *in, struct http_out *out)
{
	struct json j;

	(void)w;
	(void)in;
	profefe_begin(out, &j);
	json_object(&j);
	json_key(&j, "version");
	json_cstr(&j, EPI_VERSION);
	json_key(&j, "commit");
	json_cstr(&j, build_revision);
	json_key(&j, "build_time");
	json_cstr(&j, build_date);
	json_object_end(&j);
	profefe_end(&j);
}
