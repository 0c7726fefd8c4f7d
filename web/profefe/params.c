#include "base/quote.h"
#include "scrape/config/config.h"
#include "web/profefe/profefe.h"

enum err_code profefe_read_params(
	struct http_in *in, bool type_needed, struct profefe_params *out, struct err *err)
{
	struct str type = str_trim(http_param(in, "type")), labels = http_param(in, "labels");
	enum err_code rc;

	*out = (struct profefe_params){ .service = http_param(in, "service") };
	if (!out->service.len)
		return err_set(err, ERR_INVALID, "bad request: missing \"service\"");
	if (out->service.len > PROFEFE_SERVICE_BYTES_MAX)
		return err_set(err, ERR_INVALID, "bad request: \"service\" is longer than %u bytes",
			PROFEFE_SERVICE_BYTES_MAX);
	if (!type.len && type_needed)
		return err_set(err, ERR_INVALID, "bad request: missing \"type\"");
	if (str_is(type, "trace"))
		return err_set(err, ERR_INVALID,
			"bad request: type \"trace\": runtime traces are no profiles, none are stored");
	if (type.len && !(out->profile = profefe_profile_of(type)))
		return err_set(err, ERR_INVALID, "bad request: unknown profile type %s", QUOTED(type));
	if (out->profile)
		out->type = profefe_type_of(str_of(out->profile));
	if ((rc = profefe_labels_parse(&in->arena, labels, &out->labels, &out->labels_n, err)))
		return err_wrap(err, rc, "bad request: bad \"labels\"");
	return ERR_OK;
}

static enum err_code profefe_read_time(
	const struct http_in *in, const char *name, int64_t *out, struct err *err)
{
	struct str text = http_param(in, name);
	enum err_code rc;

	if (!text.len)
		return err_set(err, ERR_INVALID, "bad request: missing \"%s\"", name);
	rc = profefe_time_parse(text, out, err);
	return rc ? err_wrap(err, rc, "bad request: bad \"%s\"", name) : ERR_OK;
}

static enum err_code profefe_read_limit(const struct http_in *in, size_t *out, struct err *err)
{
	struct str text = http_param(in, "limit");
	int64_t limit = 0;

	if (text.len && !str_to_i64(text, &limit))
		return err_set(
			err, ERR_INVALID, "bad request: bad \"limit\" %s: not a number", QUOTED(text));
	*out = limit > 0 ? (size_t)limit : 0;
	return ERR_OK;
}

/* Labels are asked for as they were sent, and stored as push_config names them. */
static enum err_code profefe_rename_labels(
	struct web *w, struct http_in *in, struct profefe_params *p, struct err *err)
{
	static const struct push_config defaults;
	struct config *config = w->o.config ? w->o.config(w->o.ctx) : NULL;
	const struct push_config *push = config ? &config->push : &defaults;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < p->labels_n && !rc; i++) {
		struct str name = push_label_name(push, &in->arena, p->labels[i].name);

		/* A copy: the name may be the configuration's. */
		p->labels[i].name = str_dup(&in->arena, name);
		if (!p->labels[i].name.len)
			rc = arena_fail(&in->arena, "labels", err);
	}
	config_unref(config);
	return rc;
}

enum err_code profefe_read_query(struct web *w, struct http_in *in, bool type_needed,
	struct profefe_params *out, struct err *err)
{
	enum err_code rc;

	if ((rc = profefe_read_params(in, type_needed, out, err)) ||
		(rc = profefe_read_time(in, "from", &out->from_ns, err)) ||
		(rc = profefe_read_time(in, "to", &out->to_ns, err)) ||
		(rc = profefe_read_limit(in, &out->limit, err)))
		return rc;
	if (out->from_ns > out->to_ns)
		return err_set(err, ERR_INVALID, "bad request: created_at min after max: from is after to");
	return profefe_rename_labels(w, in, out, err);
}
