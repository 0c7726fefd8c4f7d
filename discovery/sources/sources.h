/*
 * The registry of sources: found by kind and identity, shared by all their users.
 *
 * Ownership: `use` is the caller's. sources_acquire links it to the source; the last
 * sources_release closes the source. All uses are released before sources_close. Threads:   one,
 * discovery's: the one that called sources_open.
 */
#ifndef DISCOVERY_SOURCES_SOURCES_H
#define DISCOVERY_SOURCES_SOURCES_H

#include <sys/queue.h>

#include "discovery/sources/source.h"

struct sources;

struct source_use {
	LIST_ENTRY(source_use) link;
	struct sd_source *source; /* NULL: none */
	/* The source has published another set. Not called for a publish within acquire. */
	void (*changed)(void *ctx);
	void *ctx;
};

MUST_CHECK enum err_code sources_open(
	const struct source_env *env, struct sources **out, struct err *err);
void sources_close(struct sources *s); /* NULL is fine */

MUST_CHECK enum err_code sources_acquire(
	struct sources *s, const struct source_config *c, struct source_use *use, struct err *err);
void sources_release(struct source_use *use);

/* The latest set that it published, or NULL. Valid until the loop runs again. */
struct groups *source_groups(const struct sd_source *s);

#endif
