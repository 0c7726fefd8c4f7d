#include "web/api/report.h"

#include "web/render/notices.h"
#include "web/router/envelope.h"

static enum err_code api_report_read_base(
	const struct http_in *in, struct api_report *out, struct err *err)
{
	struct str base = http_param(in, "base"), diff_base = http_param(in, "diff_base");
	bool normalize;
	enum err_code rc;

	if ((rc = api_bool(in, "normalize", &normalize, err)))
		return rc;
	if (base.len && diff_base.len)
		return err_set(err, ERR_INVALID, "use either base or diff_base");
	if (base.len || diff_base.len) {
		out->base_name = out->given = base.len ? "base" : "diff_base";
		out->base_text = base.len ? base : diff_base;
		out->base.options.diff_base = !base.len;
	}
	if (normalize && !out->base_name)
		return err_set(err, ERR_INVALID, "normalize is given with base or diff_base");
	out->base.options.normalize = normalize;
	return ERR_OK;
}

enum err_code api_report_read(const struct http_in *in, struct api_report *out, struct err *err)
{
	enum err_code rc;

	*out = (struct api_report){ .options = pprof_options_default };
	for (size_t i = 0; i < PPROF_OPTIONS; i++) {
		const struct pprof_option *row = &pprof_option_rows[i];
		struct str value = http_param(in, row->name);

		if (!value.len)
			continue;
		out->given = row->name;
		if ((rc = pprof_options_set(&out->options, row, value, err)))
			return err_wrap(err, rc, "invalid parameter \"%s\"", row->name);
	}
	return api_report_read_base(in, out, err);
}

enum err_code api_report_run_base(struct web *w, struct http_in *in, struct http_out *out,
	struct api_report *report, const struct query_options *qo, struct err *err)
{
	struct query_options options = *qo;
	struct render_options render = { 0 };
	struct notices notices;
	struct query *q = NULL;
	enum err_code rc;

	if (!report->base_name)
		return ERR_OK;
	options.text = report->base_text;
	options.limits = in->user.limits;
	if ((rc = query_run_cancelable(w->o.engine, &options, &in->canceled, &q, err)))
		return err_wrap(err, rc, "%s", report->base_name);
	notices = notices_of(query_result(q));
	render.arena = query_arena(q);
	render.canceled = query_stop_flag(q);
	if (!(rc = notices_add_header(&notices, &in->arena, out, err)))
		rc = render_text_keep_base(query_result(q), &render, &in->arena, &report->base, err);
	if (rc == ERR_CANCELED)
		rc = query_stopped(q, "rendering", err);
	query_close(q);
	return rc ? err_wrap(err, rc, "%s", report->base_name) : ERR_OK;
}
