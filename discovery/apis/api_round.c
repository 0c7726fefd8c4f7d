/*
 * One round: a seat, then list after list and page after page, then api_source_ended. Every step
 * ends in a request, in another step or in the end of the round.
 */
#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/net/loop.h"
#include "base/quote.h"
#include "discovery/apis/api_internal.h"

#define BLOCKING_TIMEOUT_NS \
	(135 * NS_PER_S) /* servers add a sixteenth to the two minutes asked for */
#define TIMEOUT_MIN_NS NS_PER_S
#define TIMEOUT_MAX_NS (2 * NS_PER_MIN)
#define RETRY_NS \
	(15 * NS_PER_S) /* after a failure, if the next round of a blocking query is later */
#define REASON_BYTES_MAX 200u /* of a server's own words in a message */

static void api_round_step(struct api_round *r);

/* ---- seats ---- */

static bool api_round_is_blocking(const struct api_round *r)
{
	return r->index && r->source->api->index_header;
}

/* False: it waits for one. */
static bool api_round_take_seat(struct api_round *r)
{
	struct api_seats *s = r->source->seats;

	assert(r->seat == API_NO_SEAT);
	if (api_round_is_blocking(r) && s->blocking < API_BLOCKING_MAX) {
		s->blocking++;
		r->seat = API_BLOCKING;
		return true;
	}
	if (s->plain < API_PLAIN_MAX) {
		s->plain++;
		r->seat = API_PLAIN;
		return true;
	}
	r->seat = API_WAITING;
	TAILQ_INSERT_TAIL(&s->waiting, r, link);
	return false;
}

static void api_round_leave_seat(struct api_round *r)
{
	struct api_seats *s = r->source->seats;
	struct api_round *next;

	if (r->seat == API_WAITING)
		TAILQ_REMOVE(&s->waiting, r, link);
	if (r->seat == API_BLOCKING)
		s->blocking--;
	if (r->seat == API_PLAIN)
		s->plain--;
	r->seat = API_NO_SEAT;
	/* A step may end a round at once, which calls this again: one next round each time. */
	if (s->plain < API_PLAIN_MAX && (next = TAILQ_FIRST(&s->waiting))) {
		TAILQ_REMOVE(&s->waiting, next, link);
		s->plain++;
		next->seat = API_PLAIN;
		timer_after(next->timer, 0);
	}
}

/* ---- the end of a round ---- */

static void api_round_drop_pages(struct api_round *r)
{
	for (size_t i = 0; i < r->pages_n; i++)
		groups_unref(r->pages[i]);
	r->pages_n = 0;
}

static void api_round_end(struct api_round *r, const struct err *why)
{
	int64_t now = clock_monotonic_ns();

	api_round_leave_seat(r);
	if (why && r->source->api->index_header && r->due_ns > now + RETRY_NS)
		r->due_ns = now + RETRY_NS;
	if (!why && r->source->api->index_header)
		r->index = r->index_new < r->index ? 0 : r->index_new; /* a server that began anew */
	api_source_ended(r, why);
	api_round_drop_pages(r);
	arena_release(&r->arena);
	timer_after(r->timer, r->due_ns - now);
}

static const struct api_list *api_round_current(const struct api_round *r)
{
	return &r->lists[r->at];
}

static void api_round_fail(struct api_round *r, enum err_code rc, struct err *err)
{
	const struct api_list *l = api_round_current(r);

	if (l->optional && rc != ERR_NOMEM) {
		r->at++;
		api_round_step(r);
		return;
	}
	if (r->key.len)
		err_wrap(err, rc, "%s: %s %s", r->source->shown.ptr, l->what, QUOTED(r->key));
	else
		err_wrap(err, rc, "%s: %s", r->source->shown.ptr, l->what);
	api_round_end(r, err);
}

/* ---- answers ---- */

/* Where servers say in words what is wrong; of JSON and XML, as api_xml.c reads it. */
static const char *const reasons[] = { "message", "error.message", "Errors.Error.Message",
	"Error.Message" };
static const char *const codes[] = { "Errors.Error.Code", "Error.Code" };

static struct str api_round_first_text(const json_t *value, const char *const *paths, size_t n)
{
	const json_t *at;

	for (size_t i = 0; i < n; i++)
		if (json_is_string(at = json_path_at(value, paths[i])))
			return (struct str){ json_string_value(at), json_string_length(at) };
	return STR("");
}

static enum err_code api_round_parse(
	const struct api *api, struct str body, json_t **out, struct err *err)
{
	return api->xml ? api_xml_parse(body, out, err) : api_json_parse(body, out, err);
}

/* ": AuthFailure: AWS was not able to ...", as far as the body says so. */
static void api_round_print_reason(
	struct buf *out, const struct api *api, const struct http_response *res)
{
	struct str code = STR(""), reason = STR("");
	struct buf text = { 0 };
	json_t *v = NULL;

	if (!api_round_parse(api, res->body, &v, NULL)) {
		code = api_round_first_text(v, codes, sizeof(codes) / sizeof(codes[0]));
		reason = api_round_first_text(v, reasons, sizeof(reasons) / sizeof(reasons[0]));
	} else if (str_has_prefix_nocase(res->content_type, STR("text/plain"))) {
		reason = str_trim(res->body);
	}
	if (code.len)
		buf_printf(&text, ": " STR_FMT, STR_ARG(code));
	if (reason.len)
		buf_printf(&text, ": " STR_FMT, STR_ARG(reason));
	if (text.len > REASON_BYTES_MAX)
		text.len = REASON_BYTES_MAX;
	buf_add_printable(out, buf_str(&text));
	buf_release(&text);
	json_decref(v);
}

static enum err_code api_round_refused(
	const struct api_round *r, const struct http_response *res, struct err *err)
{
	struct buf reason = { 0 };

	api_round_print_reason(&reason, r->source->api, res);
	err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d%s" STR_FMT STR_FMT, res->status,
		res->reason.len ? " " : "", STR_ARG(res->reason), STR_ARG(buf_str(&reason)));
	buf_release(&reason);
	return ERR_UNAVAILABLE;
}

static enum err_code api_round_read_targets(
	struct api_round *r, const json_t *answer, struct err *err)
{
	struct api_source *s = r->source;
	struct api_target t = { .api = s->api,
		.config = s->config,
		.answers = (const json_t *const *)s->answers,
		.key = r->key,
		.region = s->aws ? aws_region(s->aws) : STR("") };
	enum err_code rc;

	if (r->pages_n == API_PAGES_MAX)
		return err_set(err, ERR_LIMIT, "more than %u pages", API_PAGES_MAX);
	if (!array_room(&r->pages, r->pages_n, 1, &r->pages_cap))
		return err_nomem(err, "answer");
	if ((rc = api_page_read(&t, answer, &r->pages[r->pages_n], err)))
		return rc;
	r->pages_n++;
	return ERR_OK;
}

/* The token of the page that follows in r->token, or "". */
static enum err_code api_round_next_page(struct api_round *r, const json_t *answer, struct err *err)
{
	const json_t *v = api_round_current(r)->next ?
		json_path_at(answer, api_round_current(r)->next) :
		NULL;
	struct str token = { json_string_value(v), json_string_length(v) };

	if (token.len && str_eq(token, r->token))
		return err_set(err, ERR_INVALID, "two pages in a row name the same next one");
	r->token = str_dup(&r->arena, token);
	return r->token.ptr ? ERR_OK : arena_fail(&r->arena, "answer", err);
}

static enum err_code api_round_take(struct api_round *r, json_t *answer, struct err *err)
{
	struct api_source *s = r->source;
	bool last = r->at + 1 == r->lists_n;
	enum err_code rc;

	if (!last) {
		json_decref(s->answers[r->at]);
		s->answers[r->at] = json_incref(answer);
		return ERR_OK;
	}
	r->changed = true;
	if (r == s->own && s->api->each) {
		s->api->keys(s->config, answer, &r->keys);
		if (r->keys.failed)
			return err_set(err, ERR_LIMIT, "out of memory, or more than %u keys", API_KEYS_MAX);
	} else if ((rc = api_round_read_targets(r, answer, err))) {
		return rc;
	}
	return api_round_next_page(r, answer, err);
}

static enum err_code api_round_read_answer(
	struct api_round *r, const struct http_response *res, struct err *err)
{
	const struct api *api = r->source->api;
	struct str index = STR(""), encoding = res->content_encoding;
	json_t *answer;
	enum err_code rc;

	if (res->status != 200)
		return api_round_refused(r, res, err);
	if (encoding.len && !str_is(encoding, "identity"))
		return err_set(err, ERR_INVALID, "unsupported content encoding %s", QUOTED(encoding));
	if (api->index_header && api_round_current(r)->blocking) {
		index = http_response_header(res, api->index_header);
		if (!str_to_u64(index, &r->index_new))
			r->index_new = 0;
		if (r->index_new && r->index_new == r->index && r->was_good)
			return ERR_OK; /* the time was up, nothing has changed */
	}
	if ((rc = api_round_parse(api, res->body, &answer, err)))
		return rc;
	rc = api_round_take(r, answer, err);
	json_decref(answer);
	return rc;
}

static void api_round_on_answer(void *ctx, const struct http_response *res)
{
	struct api_round *r = ctx;
	struct err err = res->err;
	enum err_code rc = res->rc;

	r->request = NULL;
	if (!rc && r->source->aws && res->status >= 400 && res->status < 500)
		aws_forget(r->source->aws);
	if (!rc)
		rc = api_round_read_answer(r, res, &err);
	if (rc) {
		api_round_fail(r, rc, &err);
		return;
	}
	r->at += !r->token.len;
	api_round_step(r);
}

/* ---- asking ---- */

static void api_round_on_credentials(void *ctx, enum err_code rc, const struct err *err)
{
	struct api_round *r = ctx;
	struct err why;

	if (!rc) {
		api_round_step(r);
		return;
	}
	why = *err;
	api_round_end(r, &why);
}

static int64_t api_round_timeout_of(const struct api_round *r)
{
	int64_t ns = r->source->common->refresh_interval_ns;

	if (r->seat == API_BLOCKING)
		return BLOCKING_TIMEOUT_NS;
	return ns < TIMEOUT_MIN_NS ? TIMEOUT_MIN_NS : ns > TIMEOUT_MAX_NS ? TIMEOUT_MAX_NS : ns;
}

static void api_round_ask(struct api_round *r)
{
	uint64_t index = r->seat == API_BLOCKING && api_round_current(r)->blocking ? r->index : 0;
	struct http_request_options o = { 0 };
	struct api_source *s = r->source;
	struct api_question q;
	enum err_code rc;
	struct err err;

	rc = api_question_make(s, api_round_current(r), r->key, r->token, index, &r->arena, &q, &err);
	if (!rc) {
		o = (struct http_request_options){ .method = s->api->form ? "POST" : NULL,
			.url = q.url,
			.unix_path = s->server.unix_path,
			.config = &s->common->http,
			.headers = q.headers,
			.body = q.body,
			.timeout_ns = api_round_timeout_of(r),
			.body_size_max = API_BODY_BYTES_MAX };
		rc = http_client_send(s->client, &o, api_round_on_answer, r, &r->request, &err);
	}
	if (rc)
		api_round_fail(r, rc, &err);
}

static bool api_round_is_needed(const struct api_round *r)
{
	const struct api_list *l = api_round_current(r);

	if (l->needed && !l->needed(r->source->config))
		return false;
	return !l->once || !r->source->answers[r->at];
}

/* Recursion through fail is at most API_LISTS_MAX deep. */
static void api_round_step(struct api_round *r)
{
	struct api_source *s = r->source;

	while (r->at < r->lists_n && !api_round_is_needed(r)) {
		if (r->at + 1 == r->lists_n && r == s->own && s->api->each) {
			s->api->keys(s->config, NULL, &r->keys);
			r->changed = true;
		}
		r->at++;
	}
	if (r->at == r->lists_n)
		api_round_end(r, NULL);
	else if (s->aws && !aws_is_ready(s->aws))
		aws_prepare(s->aws, api_round_on_credentials, r);
	else
		api_round_ask(r);
}

void api_round_begin(struct api_round *r)
{
	if (r->seat == API_NO_SEAT) {
		r->due_ns = clock_monotonic_ns() + r->source->common->refresh_interval_ns;
		arena_init(&r->arena, 0);
		r->keys = (struct api_keys){ .arena = &r->arena };
		r->token = STR("");
		r->at = 0;
		r->index_new = 0;
		r->changed = false;
		if (!api_round_take_seat(r))
			return;
	}
	api_round_step(r);
}

static void api_round_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	api_round_begin(ctx);
}

enum err_code api_round_new(
	struct api_source *s, struct str key, struct api_round **out, struct err *err)
{
	struct api_round *r = calloc(1, sizeof(*r));
	char *name = r ? strndup(key.len ? key.ptr : "", key.len) : NULL;

	if (r)
		r->timer = evtimer_new(s->base, api_round_on_timer, r);
	if (!name || !r->timer) {
		free(name);
		free(r);
		return err_nomem(err, "discovery");
	}
	r->source = s;
	r->key = (struct str){ name, key.len };
	r->lists = key.ptr ? s->api->each : s->api->lists;
	r->lists_n = key.ptr ? 1 : s->api->lists_n;
	*out = r;
	return ERR_OK;
}

void api_round_free(struct api_round *r)
{
	if (!r)
		return;
	http_request_cancel(r->request);
	api_round_leave_seat(r);
	event_free(r->timer);
	api_round_drop_pages(r);
	free(r->pages);
	groups_unref(r->set);
	arena_release(&r->arena);
	free((char *)(uintptr_t)r->key.ptr);
	free(r);
}
