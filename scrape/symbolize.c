#include "scrape/symbolize.h"

#include <assert.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "proto/legacy/symbols.h"
#include "scrape/targets/url.h"

METRIC_COUNTER(questions_total, "epimetheus_scrape_symbol_questions_total",
	"Profiles whose target was asked for names of addresses, by what came of it.", "result");

struct symbolize {
	struct arena *a;
	const struct scrape_config *job;
	const struct target *target;
	struct symbol_entry *entry; /* held */
	struct str url;
	uint64_t *wanted; /* ascending */
	struct symbol_known *known; /* of them */
	uint32_t wanted_n;
	uint32_t *ask; /* of wanted: first those that check, then those that are not known */
	uint32_t ask_n, checks_n;
	/* the loop's */
	struct http_client *client;
	int64_t deadline_ns;
	void (*done)(void *ctx);
	void *ctx;
	uint32_t asked_n; /* in the question under way, or before it */
	uint32_t answered_n; /* of ask */
	struct buf answers; /* whole lines */
	bool has_none;
	enum err_code rc;
	struct err err;
};

/* ---- the process ---- */

/* "400000-401000 r-xp 00000000 fe:00 123 /bin/x", however it is spaced; of a file. */
static bool symbolize_is_code(struct str line)
{
	return str_find(line, STR(" r-xp ")) > 0 &&
		(str_find(line, STR("/")) >= 0 || str_find(line, STR("[")) >= 0);
}

static uint64_t symbolize_mix_line(uint64_t hash, struct str line)
{
	for (size_t i = 0, end; i < line.len; i = end) {
		while (i < line.len && line.ptr[i] == ' ')
			i++;
		for (end = i; end < line.len && line.ptr[end] != ' ';)
			end++;
		hash = hash_bytes(line.ptr + i, end - i, hash);
	}
	return hash;
}

uint64_t symbolize_process(struct str raw)
{
	uint64_t hash = 0;

	while (raw.len) {
		const char *end = memchr(raw.ptr, '\n', raw.len);
		struct str line = { raw.ptr, end ? (size_t)(end - raw.ptr) : raw.len };

		if (symbolize_is_code(line))
			hash = symbolize_mix_line(hash + 1, line);
		raw.ptr += line.len + (end != NULL);
		raw.len -= line.len + (end != NULL);
	}
	return hash;
}

/* ---- what to ask for ---- */

/* Of the known names a few, from all over the addresses. */
static void symbolize_choose_checks(struct symbolize *s)
{
	uint32_t named = 0, seen = 0;

	for (uint32_t i = 0; i < s->wanted_n; i++)
		named += s->known[i].name.len > 0;
	for (uint32_t i = 0; i < s->wanted_n && s->checks_n < SYMBOLS_CHECKED; i++)
		if (s->known[i].name.len && seen++ >= s->checks_n * (uint64_t)named / SYMBOLS_CHECKED)
			s->ask[s->checks_n++] = i;
	s->ask_n = s->checks_n;
}

static enum err_code symbolize_choose(struct symbolize *s, struct err *err)
{
	s->known = arena_array(s->a, struct symbol_known, s->wanted_n);
	s->ask = arena_array(s->a, uint32_t, s->wanted_n);
	if (!s->known || !s->ask)
		return arena_fail(s->a, "symbols", err);
	symbol_entry_find(s->entry, s->wanted, s->wanted_n, s->known);
	if (!symbol_entry_may_ask(s->entry, clock_monotonic_ns()))
		return ERR_OK;
	symbolize_choose_checks(s);
	for (uint32_t i = 0; i < s->wanted_n && s->ask_n < SYMBOLS_ASKED_MAX; i++)
		if (!s->known[i].known)
			s->ask[s->ask_n++] = i;
	return ERR_OK;
}

static enum err_code symbolize_find_entry(
	struct symbolize *s, struct symbol_cache *cache, struct str raw, struct err *err)
{
	struct buf b = { 0 };
	bool ok;

	url_print_symbol(&b, s->target->url, s->job->path_prefix, s->job->symbol_path);
	ok = !buf_failed(&b) && (s->url = str_dup(s->a, buf_str(&b))).ptr;
	buf_clear(&b);
	buf_add_str(&b, s->job->job_name);
	buf_add_char(&b, ' ');
	buf_add_str(&b, s->target->url);
	buf_add_char(&b, ' ');
	buf_add_str(&b, s->url);
	if (s->target->unix_path)
		buf_printf(&b, " %s", s->target->unix_path);
	if (ok && !buf_failed(&b))
		s->entry = symbol_cache_enter(
			cache, buf_str(&b), symbolize_process(raw), clock_monotonic_ns());
	buf_release(&b);
	return s->entry ? ERR_OK : err_nomem(err, "symbols");
}

enum err_code symbolize_open(struct symbol_cache *cache, struct arena *a, const struct pprof *p,
	struct str raw, const struct scrape_config *job, const struct target *target,
	struct symbolize **out, struct err *err)
{
	struct symbolize *s = arena_new(a, struct symbolize);
	enum err_code rc;

	*out = NULL;
	if (!s)
		return arena_fail(a, "symbols", err);
	*s = (struct symbolize){ .a = a, .job = job, .target = target };
	if ((rc = symbols_wanted(a, p, &s->wanted, &s->wanted_n, err)) || !s->wanted_n)
		return rc;
	if ((rc = symbolize_find_entry(s, cache, raw, err)) || (rc = symbolize_choose(s, err))) {
		symbolize_close(s);
		return rc;
	}
	*out = s;
	return ERR_OK;
}

void symbolize_close(struct symbolize *s)
{
	if (!s)
		return;
	buf_release(&s->answers);
	symbol_cache_leave(s->entry);
	s->entry = NULL;
}

bool symbolize_has_question(const struct symbolize *s)
{
	return s->ask_n > 0;
}

/* ---- on the loop ---- */

static void symbolize_ask_next(struct symbolize *s);

static void symbolize_end(struct symbolize *s)
{
	s->client = NULL;
	s->done(s->ctx);
}

/* Of the lines that have an end: a line that is cut off must not go on in the next answer. */
static void symbolize_keep_lines(struct symbolize *s, struct str body)
{
	while (body.len && body.ptr[body.len - 1] != '\n')
		body.len--;
	buf_add_str(&s->answers, body);
}

static bool symbolize_means_none(int status)
{
	return status == 501 ||
		(status >= 300 && status < 500 && status != 401 && status != 403 && status != 408 &&
			status != 429);
}

static void symbolize_on_answer(void *ctx, const struct http_response *res)
{
	struct symbolize *s = ctx;

	if ((s->rc = res->rc)) {
		s->err = res->err;
	} else if (res->status == 200) {
		symbolize_keep_lines(s, res->body);
		s->answered_n = s->asked_n;
		if (buf_failed(&s->answers))
			s->rc = err_nomem(&s->err, "symbols");
	} else if (symbolize_means_none(res->status)) {
		s->has_none = true;
	} else {
		s->rc = err_set(&s->err, ERR_UNAVAILABLE, "server returned HTTP status %d", res->status);
	}
	if (s->rc || s->has_none || s->answers.len > SYMBOLS_ANSWERS_BYTES_MAX)
		symbolize_end(s);
	else
		symbolize_ask_next(s);
}

static void symbolize_ask_next(struct symbolize *s)
{
	uint64_t batch[SYMBOLS_BATCH];
	int64_t left = s->deadline_ns - clock_monotonic_ns();
	struct buf body = { 0 };
	struct http_request_options o = {
		.method = "POST",
		.url = s->url,
		.unix_path = target_unix_path(s->target),
		.config = &s->job->http,
		.timeout_ns = left,
		.body_size_max = SYMBOLS_ANSWER_BYTES_MAX,
	};
	uint32_t n = 0;

	if (s->answered_n == s->ask_n) {
		symbolize_end(s);
		return;
	}
	while (n < SYMBOLS_BATCH && s->answered_n + n < s->ask_n) {
		batch[n] = s->wanted[s->ask[s->answered_n + n]];
		n++;
	}
	s->asked_n = s->answered_n + n;
	symbols_request(batch, n, &body);
	o.body = buf_str(&body);
	if (buf_failed(&body))
		s->rc = err_nomem(&s->err, "symbols");
	else if (left <= 0)
		s->rc = err_set(&s->err, ERR_TIMEOUT, "no time is left of the scrape's timeout");
	else
		s->rc = http_client_send(s->client, &o, symbolize_on_answer, s, NULL, &s->err);
	buf_release(&body);
	if (s->rc)
		symbolize_end(s);
}

void symbolize_ask(struct symbolize *s, struct http_client *client, int64_t deadline_ns,
	void (*done)(void *ctx), void *ctx)
{
	assert(s->ask_n && !s->client);
	s->done = done;
	s->ctx = ctx;
	s->client = client;
	s->deadline_ns = deadline_ns;
	if (client) {
		symbolize_ask_next(s);
	} else {
		s->rc = err_set(&s->err, ERR_CANCELED, "canceled");
		symbolize_end(s);
	}
}

/* ---- the answers ---- */

static void symbolize_log_outcome(const struct symbolize *s, const char *message)
{
	log_warn("scrape", message, LOG_STR("job", s->job->job_name),
		LOG_STR("target", s->target->shown_url), LOG_STR("asked", hidden_url(s->a, s->url)),
		LOG_E(&s->err));
}

static void symbolize_failed(struct symbolize *s)
{
	bool news;

	if (s->rc == ERR_CANCELED) /* the server ends */
		return;
	symbol_entry_failed(s->entry, clock_monotonic_ns(), &news);
	metric_add(&questions_total, "failed", 1);
	if (news)
		symbolize_log_outcome(s, "names of addresses cannot be read");
}

static void symbolize_none(struct symbolize *s)
{
	bool news;

	symbol_entry_has_none(s->entry, clock_monotonic_ns(), &news);
	metric_add(&questions_total, "none", 1);
	if (news)
		log_info("scrape", "target has no names of addresses", LOG_STR("job", s->job->job_name),
			LOG_STR("target", s->target->shown_url), LOG_STR("asked", hidden_url(s->a, s->url)));
}

/* Another process answered than that of the profile, or of the cache: all names are doubtful. */
static void symbolize_changed(struct symbolize *s)
{
	symbol_entry_retire(s->entry);
	metric_add(&questions_total, "changed", 1);
	for (uint32_t i = 0; i < s->wanted_n; i++)
		s->known[i] = (struct symbol_known){ .name = STR("") };
}

static bool symbolize_checks_hold(const struct symbolize *s, const struct symbols *symbols)
{
	uint32_t n = s->checks_n < s->answered_n ? s->checks_n : s->answered_n;

	if (s->has_none && s->checks_n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct symbol *now = symbols_find(symbols, s->wanted[s->ask[i]]);

		if (!now || !str_eq(now->name, s->known[s->ask[i]].name))
			return false;
	}
	return true;
}

/* "num_symbols: 1": the service has names, though perhaps not of these addresses. */
static bool symbolize_is_service(struct str answers)
{
	static const struct str key = { "num_symbols: ", 13 };
	ptrdiff_t at = str_find(answers, key);

	return at >= 0 && answers.ptr[(size_t)at + key.len] > '0' &&
		answers.ptr[(size_t)at + key.len] <= '9';
}

/* Remembers the answers, names or none. */
static enum err_code symbolize_learn(
	struct symbolize *s, const struct symbols *symbols, struct err *err)
{
	uint32_t n = 0, most = s->answered_n;
	uint64_t *addresses = arena_array(s->a, uint64_t, most + 1);
	struct symbol_known *names = arena_array(s->a, struct symbol_known, most + 1);

	if (!addresses || !names)
		return arena_fail(s->a, "symbols", err);
	for (uint32_t i = s->checks_n; i < s->answered_n; i++, n++) {
		struct symbol_known *known = &s->known[s->ask[i]];
		const struct symbol *found = symbols_find(symbols, s->wanted[s->ask[i]]);

		*known = (struct symbol_known){ .name = found ? found->name : STR(""), .known = true };
		names[n] = *known;
		addresses[n] = s->wanted[s->ask[i]];
	}
	symbol_entry_add(s->entry, addresses, n, names);
	return ERR_OK;
}

static enum err_code symbolize_read_answers(struct symbolize *s, struct err *err)
{
	struct symbols symbols = { 0 };
	enum err_code rc;

	if ((rc = symbols_read(s->a, buf_str(&s->answers), &symbols, &s->err))) {
		s->rc = rc;
		s->answered_n = symbols.n = 0;
	}
	symbols_sort(&symbols);
	if (!symbolize_checks_hold(s, &symbols) || symbol_entry_is_replaced(s->entry)) {
		symbolize_changed(s);
		return ERR_OK;
	}
	if (s->answered_n && !symbols.n && !symbolize_is_service(buf_str(&s->answers)))
		s->has_none = true;
	if (s->rc) {
		symbolize_failed(s);
	} else if (s->has_none) {
		symbolize_none(s);
	} else {
		symbol_entry_answered(s->entry);
		metric_add(&questions_total, "ok", 1);
	}
	return s->answered_n && !s->has_none ? symbolize_learn(s, &symbols, err) : ERR_OK;
}

enum err_code symbolize_apply(
	struct symbolize *s, const struct pprof *p, const struct pprof **out, struct err *err)
{
	struct symbols all = { 0 };
	enum err_code rc;

	*out = p;
	if (s->done && (rc = symbolize_read_answers(s, err)))
		return rc;
	if (!(all.v = arena_array(s->a, struct symbol, s->wanted_n)))
		return arena_fail(s->a, "symbols", err);
	for (uint32_t i = 0; i < s->wanted_n; i++)
		if (s->known[i].name.len)
			all.v[all.n++] = (struct symbol){ .address = s->wanted[i],
				.name = s->known[i].name,
				.file = STR("") };
	return symbols_apply(s->a, p, &all, out, err);
}
