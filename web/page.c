/*
 * The page, the book, and their files. Embedded files are gzipped. A client that does not take gzip
 * gets them inflated, with a weak ETag, since a strong one would promise the same bytes.
 */
#include <stdio.h>

#include "base/gzip/gzip.h"
#include "base/map.h"
#include "web/handlers.h"
#include "web/ui_assets.h"

#define BASE_MARK "%BASE%"
#define BOOK_PATH "/docs/"
#define ASSET_BYTES_MAX (16u << 20) /* inflated */
#define CACHE_FOR_EVER "public, max-age=31536000, immutable"

static void page_add_security_headers(struct http_out *out)
{
	http_default_header(out, "Content-Security-Policy",
		STR("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		    "img-src 'self' data:; base-uri 'self'; form-action 'self'; "
		    "frame-ancestors 'none'"));
	http_default_header(out, "X-Frame-Options", STR("deny"));
	http_default_header(out, "Referrer-Policy", STR("same-origin"));
}

/* True if the client has it already. GET compares tags weakly. */
static bool page_client_has(const struct http_in *in, const char *etag)
{
	struct str list = in->if_none_match;

	return str_is(str_trim(list), "*") || str_find(list, str_of(etag)) >= 0;
}

static void page_add_caching(
	struct http_in *in, struct http_out *out, const char *etag, bool weak, bool immutable)
{
	struct str tag = str_of(etag);

	if (weak)
		tag = str_of(arena_printf(&in->arena, "W/%s", etag));
	if (tag.ptr)
		http_add_header(out, "ETag", tag);
	http_add_header(out, "Cache-Control", str_of(immutable ? CACHE_FOR_EVER : "no-cache"));
	http_add_header(out, "Vary", STR("Accept-Encoding"));
	page_add_security_headers(out);
	if (page_client_has(in, etag))
		out->status = 304;
}

static bool page_inflate(struct http_in *in, const struct ui_asset *a, struct http_out *out)
{
	struct str gz = { (const char *)a->gz, a->gz_len }, plain;

	if (gzip_inflate(&in->arena, gz, "asset", ASSET_BYTES_MAX, &plain, NULL))
		return false;
	buf_add_str(&out->body, plain);
	return true;
}

static void page_send_asset(struct http_in *in, struct http_out *out, const struct ui_asset *a)
{
	bool gzip = http_takes_gzip(in);

	page_add_caching(in, out, a->etag, !gzip, a->immutable);
	if (out->status == 304)
		return;
	out->content_type = a->content_type;
	out->encoded = true;
	if (gzip) {
		out->fixed_body = a->gz;
		out->fixed_len = a->gz_len;
		http_add_header(out, "Content-Encoding", STR("gzip"));
	} else if (!page_inflate(in, a, out)) {
		http_text(out, 500, "cannot inflate a file of the page");
	}
}

static const struct ui_asset *page_find_asset(
	const struct ui_asset *assets, size_t n, struct str name, bool is_template)
{
	for (size_t i = 0; i < n; i++)
		if (assets[i].is_template == is_template && (is_template || str_is(name, assets[i].path)))
			return &assets[i];
	return NULL;
}

void handle_asset(struct web *w, struct http_in *in, struct http_out *out)
{
	struct str name = { in->path.ptr + 1, in->path.len - 1 };
	const struct ui_asset *a = page_find_asset(ui_assets, ui_assets_n, name, false);

	(void)w;
	if (a)
		page_send_asset(in, out, a);
	else
		http_text(out, 404, "404 page not found");
}

void handle_page(struct web *w, struct http_in *in, struct http_out *out)
{
	page_add_caching(in, out, w->index_etag, false, false);
	if (out->status == 304)
		return;
	out->content_type = "text/html; charset=utf-8";
	out->fixed_body = w->index.ptr;
	out->fixed_len = w->index.len;
}

static void page_add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			buf_add_cstr(out, "&amp;");
		else if (*text == '"')
			buf_add_cstr(out, "&quot;");
		else if (*text == '<')
			buf_add_cstr(out, "&lt;");
		else
			buf_add_char(out, *text);
	}
}

/* The template with its base filled in. False: it has no place for one. */
static bool page_fill(const struct ui_asset *a, const char *base, struct buf *out)
{
	struct str text = { (const char *)a->gz, a->gz_len };
	ptrdiff_t at = str_find(text, STR(BASE_MARK));

	if (at < 0)
		return false;
	buf_add(out, text.ptr, (size_t)at);
	page_add_escaped(out, base);
	buf_add_char(out, '/');
	at += (ptrdiff_t)strlen(BASE_MARK);
	buf_add(out, text.ptr + at, text.len - (size_t)at);
	return true;
}

void handle_book_root(struct web *w, struct http_in *in, struct http_out *out)
{
	char *to = arena_printf(&in->arena, "%s" BOOK_PATH, w->base);

	http_text(out, 302, "Found");
	if (to)
		http_add_header(out, "Location", str_of(to));
}

/* The book's own page for a chapter that is not in it. */
static void page_send_no_chapter(struct web *w, struct http_out *out)
{
	const struct ui_asset *a = page_find_asset(w->o.book, w->o.book_n, (struct str){ 0 }, true);

	if (!a || !page_fill(a, w->base, &out->body)) {
		http_text(out, 404, "404 page not found");
		return;
	}
	out->status = 404;
	out->content_type = "text/html; charset=utf-8";
	http_add_header(out, "Cache-Control", STR("no-cache"));
	page_add_security_headers(out);
}

void handle_book(struct web *w, struct http_in *in, struct http_out *out)
{
	size_t skip = strlen(BOOK_PATH);
	struct str name = { in->path.ptr + skip, in->path.len - skip };
	const struct ui_asset *a;

	if (!name.len)
		name = STR("index.html");
	a = page_find_asset(w->o.book, w->o.book_n, name, false);
	if (a)
		page_send_asset(in, out, a);
	else
		page_send_no_chapter(w, out);
}

enum err_code page_prepare(struct web *w, struct err *err)
{
	const struct ui_asset *a = page_find_asset(ui_assets, ui_assets_n, (struct str){ 0 }, true);

	if (!a)
		return err_set(err, ERR_NOT_FOUND, "the page is not in this binary");
	if (!page_fill(a, w->base, &w->index))
		return err_set(err, ERR_CORRUPT, "the page has no place for the base URL");
	if (buf_failed(&w->index))
		return err_nomem(err, "page");
	snprintf(w->index_etag, sizeof(w->index_etag), "\"%016llx\"",
		(unsigned long long)hash_bytes(w->index.ptr, w->index.len, 0));
	return ERR_OK;
}
