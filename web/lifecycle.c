#include <assert.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/self/process_metrics.h"
#include "web/handlers.h"
#include "web/selfprofile.h"

#define PROFILE_HZ 100
#define PROFILE_SECONDS_DEFAULT 30
#define PROFILE_SECONDS_MAX 600

void handle_healthy(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)in;
	http_text(out, 200, "Epimetheus is Healthy.");
}

void handle_ready(struct web *w, struct http_in *in, struct http_out *out)
{
	struct buf why = { 0 };

	/* The reason names hosts and shards, which are for users. */
	if (router_is_ready(w, &why))
		http_text(out, 200, "Epimetheus is Ready.");
	else
		router_refuse_unready(out, in->user.why ? STR("not ready") : buf_str(&why));
	buf_release(&why);
}

void handle_reload(struct web *w, struct http_in *in, struct http_out *out)
{
	struct err err;

	(void)in;
	if (w->o.reload(w->o.ctx, &err))
		http_text(out, 500, "failed to reload config: %s", err.msg);
}

void handle_quit(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)in;
	http_text(out, 200, "Requesting termination... Goodbye!");
	w->o.quit(w->o.ctx);
}

void handle_metrics(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)in;
	out->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_print(&out->body);
	process_metrics_print(&out->body);
}

/* ---- the profile of this process ---- */

void handle_pprof_index(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	if (str_is(in->path, "/debug/pprof/"))
		http_text(out, 200,
			"profile: CPU profile of this server's threads, as pprof. "
			"seconds=N says for how long, 1 to %u; %u unless said.\n\n"
			"go tool pprof http://HOST:PORT/debug/pprof/profile?seconds=10",
			PROFILE_SECONDS_MAX, PROFILE_SECONDS_DEFAULT);
	else
		http_text(out, 404, "Unknown profile");
}

/* Errors as Go's handlers send them, so that `go tool pprof` shows their text. */
static void lifecycle_pprof_error(struct http_out *out, int status, const char *msg)
{
	http_text(out, status, "%s", msg);
	http_add_header(out, "X-Go-Pprof", STR("1"));
}

/* One capture at a time. web_close cancels it through w->capture. */
static const char *web_enter_capture(struct web *w, struct http_in *in)
{
	const char *why = NULL;

	mutex_lock(&w->lock);
	if (w->closing)
		why = "the server is shutting down";
	else if (w->capture)
		why = "Could not enable CPU profiling: cpu profiling already in use";
	else
		w->capture = in;
	mutex_unlock(&w->lock);
	return why;
}

static void web_leave_capture(struct web *w)
{
	mutex_lock(&w->lock);
	assert(w->capture);
	w->capture = NULL;
	mutex_unlock(&w->lock);
}

void handle_pprof_profile(struct web *w, struct http_in *in, struct http_out *out)
{
	uint64_t seconds = PROFILE_SECONDS_DEFAULT;
	struct str text = http_param(in, "seconds");
	const char *why;
	struct err err;
	enum err_code rc;

	if (text.len && (!str_to_u64(text, &seconds) || !seconds || seconds > PROFILE_SECONDS_MAX)) {
		lifecycle_pprof_error(out, 400, "seconds is a number from 1 to 600");
		return;
	}
	if ((why = web_enter_capture(w, in))) {
		lifecycle_pprof_error(out, 500, why);
		return;
	}
	rc = selfprofile_capture(
		(int64_t)seconds * NS_PER_S, PROFILE_HZ, &in->canceled, &out->body, &err);
	web_leave_capture(w);
	if (rc) {
		lifecycle_pprof_error(out, rc == ERR_CANCELED ? 503 : 500, err.msg);
		return;
	}
	out->content_type = "application/octet-stream";
	out->encoded = true;
	http_add_header(out, "Content-Disposition", STR("attachment; filename=\"profile\""));
}
