/* Rules, alerts and where they go, as Prometheus answers them. */
#include "web/api.h"
#include "web/handlers.h"

/* ---- Alertmanagers ---- */

static void add_alertmanagers(
	struct json *j, const struct alertmanager_info *v, size_t n, bool dropped)
{
	json_key(j, dropped ? "droppedAlertmanagers" : "activeAlertmanagers");
	json_array(j);
	for (size_t i = 0; i < n; i++) {
		if (v[i].dropped != dropped)
			continue;
		json_object(j);
		json_key(j, "url");
		json_str(j, v[i].url);
		if (!dropped) { /* ours: how it goes */
			json_key(j, "lastError");
			json_str(j, v[i].last_error);
			json_key(j, "sent");
			json_u64(j, v[i].sent);
			json_key(j, "failed");
			json_u64(j, v[i].failed);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

void api_alertmanagers(struct web *w, struct http_in *in, struct http_out *out)
{
	struct alertmanager_info *v = NULL;
	struct json j;
	struct err err;
	enum err_code rc;
	size_t n = 0;

	if (w->o.notifier &&
		(rc = notifier_alertmanagers(w->o.notifier, &in->arena, &v, &n, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	add_alertmanagers(&j, v, n, false);
	add_alertmanagers(&j, v, n, true);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
