/*
 * Debuginfod servers on loopback, a service of debug data whose extraction knows only files made by
 * `elf_file`, and a fetcher between them.
 *
 * Threads: a server has its own; answers may be changed at any time.
 */
#ifndef TESTS_SCRAPE_DEBUGINFOD_WORLD_H
#define TESTS_SCRAPE_DEBUGINFOD_WORLD_H

#include "base/fs.h"
#include "scrape/debuginfod/debuginfod.h"
#include "tests/base/net/http_server.h"
#include "tsdb/debuginfo/store/extractor.h"

#define SERVERS_MAX 6

enum how {
	HOW_TEXT, /* `text` is the whole answer; then the connection is kept */
	HOW_FILE, /* 200 and the body, with its length */
	HOW_HALF, /* half of it, then the connection is closed */
	HOW_STALL, /* half of it, then nothing until the client goes or the answer is another one */
	HOW_ENDLESS, /* chunks of it without end */
};
struct answer {
	enum how how;
	const char *text;
	size_t len; /* of the text, if it has NUL bytes; 0: to its NUL */
};

#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found"

#define COMMON_ID "cccc000000000000000000000000000000000003"

struct fake {
	struct http_server http;
	struct mutex lock; /* guards the rest */
	struct answer debuginfo, executable;
	struct answer section, common; /* .gnu_debugaltlink; debug data of COMMON_ID */
	unsigned debuginfo_n, executable_n, section_n, common_n, now, now_max; /* requests */
	char last[512]; /* head of the last one, but for sections */
};

struct world {
	char dir[64]; /* holds `store` and what tests put there */
	struct extractor *extractor;
	struct debuginfo *debuginfo;
	struct debuginfod *fetcher;
	struct fake servers[SERVERS_MAX];
	size_t servers_n;
};

/* Servers answer 404. fs: of the store. False: a message was printed. */
bool world_open(struct world *w, size_t servers);
bool world_open_on(struct world *w, size_t servers, struct fs *fs);
void world_close(struct world *w);

/*
 * The text that extraction takes for a file of that build id; the caller frees it. With a common
 * file behind it, the quality is that one's.
 */
char *elf_file(const char *build_id, enum debuginfo_quality q);
/* What is asked for and how often it was. */
void fake_set(struct fake *s, struct answer debuginfo, struct answer executable);
/* What is asked for behind debug data; 404 until it is set. */
void fake_set_common(struct fake *s, struct answer section, struct answer common);
unsigned fake_section_n(struct fake *s);
unsigned fake_common_n(struct fake *s);
unsigned fake_debuginfo_n(struct fake *s);
unsigned fake_executable_n(struct fake *s);
unsigned fake_at_once(struct fake *s); /* most requests at one time */
bool fake_saw(struct fake *s, const char *text); /* in the last request */

/*
 * Applies a configuration: "debuginfod: [{url: 'http://127.0.0.1:PORT/SERVER', SETTINGS}, ...]" and
 * more lines. settings NULL: none.
 */
void world_apply(struct world *w, const char *settings, const char *more);
void world_apply_text(struct world *w, const char *text);
void world_want(struct world *w, const char *build_id, const char *path);
/* In the store's list; false: it has no such key. `why` and `path` are cut and copied. */
bool world_info(struct world *w, const char *build_id, struct debuginfo_info *out);
bool world_has(struct world *w, const char *build_id); /* its index is there */
bool world_is_missing(struct world *w, const char *build_id);
/* Of the list of servers; texts are copied. */
struct debuginfod_info world_server(struct world *w, size_t i);

#endif
