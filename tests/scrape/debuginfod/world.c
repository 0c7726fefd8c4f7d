#include "tests/scrape/debuginfod/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/debuginfo/elf/bundle.h"
#include "tsdb/debuginfo/index/symindex.h"

/* ---- files ---- */

char *elf_file(const char *build_id, enum debuginfo_quality q)
{
	char *text = malloc(256);

	if (text)
		snprintf(text, 256, "\177ELF %d %s that has some more bytes, so that half of it is some", q,
			build_id);
	return text;
}

static enum err_code make_index(
	struct symindex_builder *b, struct str build_id, int q, struct buf *out, struct err *err)
{
	uint32_t function, frame;
	enum err_code rc;

	if ((rc = symindex_function(b, STR("main"), SYMINDEX_NONE, 0, &function, err)) ||
			(rc = symindex_frame(b, SYMINDEX_NONE, function, SYMINDEX_NONE, 0, &frame, err)) ||
			(rc = symindex_add(b, 0x1000, 0x2000, frame, (enum symindex_quality)q, err)))
		return rc;
	return symindex_finish(b, build_id, out, err);
}

/* Runs in the child. */
static enum err_code extract(struct str input, struct str older, struct buf *out, struct err *err)
{
	struct str head = STR("\177ELF "), id;
	struct symindex_builder *b;
	struct bundle bundle;
	enum bundle_kind kind;
	const char *end;
	enum err_code rc;
	int quality;

	if ((rc = bundle_open(input, &bundle, err)))
		return rc;
	if (!str_has_prefix(input, head) || input.len < head.len + 4)
		return err_set(err, ERR_INVALID, "not an ELF file");
	id = (struct str){ input.ptr + head.len + 2, input.len - head.len - 2 };
	if (!(end = memchr(id.ptr, ' ', id.len)))
		return err_set(err, ERR_INVALID, "no build id");
	id.len = (size_t)(end - id.ptr);
	quality = input.ptr[head.len] - '0';
	if (bundle.files_n) {
		struct str common = bundle_file(&bundle, 0, &kind);

		if (bundle.files_n != 1 || kind != BUNDLE_ALT || !str_has_prefix(common, head))
			return err_set(err, ERR_INVALID, "another bundle");
		quality = common.ptr[head.len] - '0';
	}
	if ((rc = symindex_builder_open(&symindex_limits_default, &b, err)))
		return rc;
	rc = make_index(b, id, quality, out, err);
	symindex_builder_close(b);
	return rc;
}

/* ---- servers ---- */

static void send_file(struct peer *p, struct fake *s, struct answer a, const struct answer *from)
{
	size_t len = a.len ? a.len : strlen(a.text), sent = a.how == HOW_FILE ? len : len / 2;
	char head[128];
	bool same = true;

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
	if (!peer_print(p, head) || !peer_write(p, (struct str){ a.text, sent }))
		return;
	while (a.how == HOW_STALL && same && !peer_gone(p) && !atomic_load(&s->http.stopping)) {
		sleep_ms(1);
		mutex_lock(&s->lock);
		same = from->how == HOW_STALL;
		mutex_unlock(&s->lock);
	}
	if (!same)
		(void)peer_write(p, (struct str){ a.text + sent, len - sent });
}

static void send_endless(struct peer *p, const char *text)
{
	char chunk[512];

	snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", strlen(text), text);
	if (!peer_print(p, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return;
	while (!atomic_load(&p->server->stopping) && peer_print(p, chunk))
		;
}

static bool answer(struct peer *p, struct fake *s, struct answer a, const struct answer *from)
{
	switch (a.how) {
	case HOW_TEXT:
		return peer_print(p, a.text);
	case HOW_FILE:
		send_file(p, s, a, from);
		return true;
	case HOW_HALF:
	case HOW_STALL:
		send_file(p, s, a, from);
		return false;
	case HOW_ENDLESS:
		send_endless(p, a.text);
		return false;
	}
	return false;
}

/* Counts the request. */
static struct answer *fake_choose(struct fake *s, struct str path)
{
	if (str_has_suffix(path, STR("/section/.gnu_debugaltlink HTTP/1.1"))) {
		s->section_n++;
		return &s->section;
	}
	if (str_has_suffix(path, STR("/" COMMON_ID "/debuginfo HTTP/1.1"))) {
		s->common_n++;
		return &s->common;
	}
	if (str_has_suffix(path, STR("/debuginfo HTTP/1.1"))) {
		s->debuginfo_n++;
		return &s->debuginfo;
	}
	s->executable_n++;
	return &s->executable;
}

static void script(struct peer *p, void *ctx)
{
	struct fake *s = ctx;
	struct str path, request;
	struct answer a, *from;
	bool goes_on = true;

	while (goes_on && peer_read_request(p)) {
		request = buf_str(&p->request);
		path = (struct str){ request.ptr, (size_t)str_find(request, STR("\r\n")) };
		mutex_lock(&s->lock);
		from = fake_choose(s, path);
		if (from != &s->section)
			snprintf(s->last, sizeof(s->last), STR_FMT, STR_ARG(request));
		a = *from;
		s->now++;
		s->now_max = s->now > s->now_max ? s->now : s->now_max;
		mutex_unlock(&s->lock);
		goes_on = answer(p, s, a, from);
		mutex_lock(&s->lock);
		s->now--;
		mutex_unlock(&s->lock);
	}
}

void fake_set(struct fake *s, struct answer debuginfo, struct answer executable)
{
	mutex_lock(&s->lock);
	s->debuginfo = debuginfo;
	s->executable = executable;
	mutex_unlock(&s->lock);
}

void fake_set_common(struct fake *s, struct answer section, struct answer common)
{
	mutex_lock(&s->lock);
	s->section = section;
	s->common = common;
	mutex_unlock(&s->lock);
}

static unsigned read_count(struct fake *s, const unsigned *n)
{
	unsigned was;

	mutex_lock(&s->lock);
	was = *n;
	mutex_unlock(&s->lock);
	return was;
}

unsigned fake_debuginfo_n(struct fake *s)
{
	return read_count(s, &s->debuginfo_n);
}

unsigned fake_executable_n(struct fake *s)
{
	return read_count(s, &s->executable_n);
}

unsigned fake_at_once(struct fake *s)
{
	return read_count(s, &s->now_max);
}

unsigned fake_section_n(struct fake *s)
{
	return read_count(s, &s->section_n);
}

unsigned fake_common_n(struct fake *s)
{
	return read_count(s, &s->common_n);
}

bool fake_saw(struct fake *s, const char *text)
{
	bool yes;

	mutex_lock(&s->lock);
	yes = strstr(s->last, text);
	mutex_unlock(&s->lock);
	return yes;
}

/* ---- the world ---- */

static bool failed(const char *what, const struct err *err)
{
	printf("  %s: %s\n", what, err->msg);
	return false;
}

bool world_open(struct world *w, size_t servers)
{
	return world_open_on(w, servers, &fs_posix);
}

bool world_open_on(struct world *w, size_t servers, struct fs *fs)
{
	const struct answer none = { HOW_TEXT, NOT_FOUND };
	const struct extractor_options x = { .fn = extract };
	struct debuginfo_service_options o = { .fs = fs };
	struct debuginfod_options f = { .rest_min_ns = 5 * NS_PER_MS, .rest_max_ns = 20 * NS_PER_MS };
	char dir[96];
	struct err err;

	memset(w, 0, sizeof(*w));
	snprintf(w->dir, sizeof(w->dir), "/tmp/epi-debuginfod-XXXXXX");
	if (!mkdtemp(w->dir))
		return false;
	snprintf(dir, sizeof(dir), "%s/store", w->dir);
	o.dir = dir;
	if (extractor_open(&x, &w->extractor, &err)) /* before any thread */
		return failed("extractor", &err);
	o.extractor = w->extractor;
	if (debuginfo_service_open(&o, &w->debuginfo, &err))
		return failed("service", &err);
	f.debuginfo = w->debuginfo;
	if (debuginfod_open(&f, &w->fetcher, &err))
		return failed("fetcher", &err);
	for (; w->servers_n < servers; w->servers_n++) {
		struct fake *s = &w->servers[w->servers_n];

		mutex_init(&s->lock);
		s->debuginfo = s->executable = s->section = s->common = none;
		if (!http_server_start(&s->http, script, s, NULL))
			return false;
	}
	return true;
}

void world_close(struct world *w)
{
	struct err err;

	debuginfo_stop(w->debuginfo);
	debuginfod_close(w->fetcher);
	for (size_t i = 0; i < w->servers_n; i++) {
		http_server_stop(&w->servers[i].http);
		mutex_destroy(&w->servers[i].lock);
	}
	debuginfo_service_close(w->debuginfo);
	extractor_close(w->extractor);
	if (fs_remove_tree(&fs_posix, w->dir, &err))
		printf("  %s: %s\n", w->dir, err.msg);
}

void world_apply_text(struct world *w, const char *text)
{
	struct config *c;
	struct err err;

	if (config_load_text("c.yml", str_of(w->dir), str_of(text), &c, &err)) {
		printf("  %s: %s\n", text, err.msg);
		abort();
	}
	if (debuginfod_apply(w->fetcher, c, &err))
		abort();
	config_unref(c);
}

void world_apply(struct world *w, const char *settings, const char *more)
{
	struct buf text = { 0 };

	buf_add_cstr(&text, "debuginfod:");
	for (size_t i = 0; i < w->servers_n; i++)
		buf_printf(&text, "\n- {url: 'http://127.0.0.1:%u/%zu/', %s}", w->servers[i].http.port, i,
			settings ? settings : "");
	buf_printf(&text, "%s\n%s\n", w->servers_n ? "" : " []", more ? more : "");
	buf_add_char(&text, '\0');
	world_apply_text(w, text.ptr);
	buf_release(&text);
}

static struct debuginfo_id id_of(const char *build_id)
{
	struct debuginfo_id id;
	struct err err;

	if (debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(build_id), &err))
		abort();
	return id;
}

void world_want(struct world *w, const char *build_id, const char *path)
{
	struct debuginfo_id id = id_of(build_id);

	debuginfo_want(w->debuginfo, &id, str_of(path));
}

bool world_info(struct world *w, const char *build_id, struct debuginfo_info *out)
{
	static char why[256], path[256];
	struct debuginfo_id id = id_of(build_id);
	struct debuginfo_info *v;
	struct arena a;
	bool found = false;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	if (debuginfo_list(debuginfo_store(w->debuginfo), &a, &v, &n, &err))
		abort();
	for (size_t i = 0; i < n; i++)
		if (debuginfo_id_eq(&v[i].id, &id)) {
			found = true;
			*out = v[i];
			snprintf(why, sizeof(why), STR_FMT, STR_ARG(v[i].why));
			snprintf(path, sizeof(path), STR_FMT, STR_ARG(v[i].path));
			out->why = str_of(why);
			out->path = str_of(path);
		}
	arena_release(&a);
	return found;
}

bool world_has(struct world *w, const char *build_id)
{
	struct debuginfo_info info;

	return world_info(w, build_id, &info) && info.present;
}

bool world_is_missing(struct world *w, const char *build_id)
{
	struct debuginfo_id id = id_of(build_id);

	return debuginfo_is_missing(debuginfo_store(w->debuginfo), &id);
}

struct debuginfod_info world_server(struct world *w, size_t i)
{
	static char error[1024], url[256];
	struct debuginfod_info info = { 0 }, *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	if (debuginfod_list(w->fetcher, &a, &v, &n, &err))
		abort();
	if (i < n) {
		info = v[i];
		snprintf(error, sizeof(error), STR_FMT, STR_ARG(v[i].error));
		snprintf(url, sizeof(url), STR_FMT, STR_ARG(v[i].url));
		info.error = str_of(error);
		info.url = str_of(url);
	}
	arena_release(&a);
	return info;
}
