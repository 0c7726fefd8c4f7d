/* The book below /docs/: its files, the page for an unknown chapter, prefixes. */
#include "tests/check.h"
#include "tests/web/asking.h"
#include "web/ui_assets.h"

/* "<p>x</p>", gzipped. */
static const unsigned char book_page[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 179, 41, 176, 171,
	176, 209, 47, 176, 3, 0, 58, 166, 72, 203, 8, 0, 0, 0 };
static const unsigned char book_missing[] = "<base href=\"%BASE%docs/\">";
static const struct ui_asset book[] = {
	{ "index.html", "text/html; charset=utf-8", "\"1\"", book_page, sizeof(book_page), false,
		false },
	{ "start/a.html", "text/html; charset=utf-8", "\"2\"", book_page, sizeof(book_page), false,
		false },
	{ "missing.html", "text/html; charset=utf-8", "\"3\"", book_missing, sizeof(book_missing) - 1,
		false, true },
};

TEST(the_book)
{
	static const struct asking_row plain[] = {
		{ "GET /epi/docs", 302, NULL },
		{ "GET /epi/docs/", 200, "<p>x</p>" },
		{ "HEAD /epi/docs/", 200, "" },
		{ "GET /epi/docs/index.html", 200, "<p>x</p>" },
		{ "GET /epi/docs/start/a.html", 200, "<p>x</p>" },
		{ "GET /epi/docs/start/", 404, "<base href=\"/epi/docs/\">" },
		{ "GET /epi/docs/start/b.html", 404, "<base href=\"/epi/docs/\">" },
		{ "GET /epi/docs/missing.html", 404, "<base href=\"/epi/docs/\">" },
		{ "GET /epi/docs/../docs/start/a.html", 404, NULL },
		{ "GET /epi/docss", 404, "404 page not found\n" },
		{ "POST /epi/docs/", 405, "Method Not Allowed\n" },
		{ "GET /docs/", 404, NULL },
	};
	static const struct asking_row none[] = {
		{ "GET /docs/", 404, "404 page not found\n" },
	};
	struct web_options o = { .listen_address = "127.0.0.1:0" };
	struct response r = { 0 };
	struct web *w = asking_open(&o);

	ASK_ALL(w, none);
	web_close(w);
	o.route_prefix = "/epi";
	o.book = book;
	o.book_n = sizeof(book) / sizeof(book[0]);
	w = asking_open(&o);
	ASK_ALL(w, plain);
	CHECK_INT(asking_get(w, "GET /epi/docs", "", &r), 302);
	CHECK_STR(response_header(&r, "Location"), "/epi/docs/");
	CHECK_INT(asking_get(w, "GET /epi/docs/", "Accept-Encoding: gzip\r\n", &r), 200);
	CHECK_STR(response_header(&r, "Content-Encoding"), "gzip");
	CHECK_STR(response_header(&r, "ETag"), "\"1\"");
	CHECK_STR(response_header(&r, "Cache-Control"), "no-cache");
	CHECK(str_has_prefix(response_header(&r, "Content-Security-Policy"),
		STR("default-src 'none'; script-src 'self';")));
	CHECK_INT(asking_get(w, "GET /epi/docs/", "If-None-Match: \"1\"\r\n", &r), 304);
	CHECK_INT(asking_get(w, "GET /epi/docs/start/b.html", "", &r), 404);
	CHECK_STR(response_header(&r, "Content-Type"), "text/html; charset=utf-8");
	CHECK(str_has_prefix(response_header(&r, "Content-Security-Policy"),
		STR("default-src 'none'; script-src 'self';")));
	response_release(&r);
	web_close(w);
}
