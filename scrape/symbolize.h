/*
 * Symbolize: names for the addresses of one profile of a format before protobuf, from the process
 * that it is of.
 *
 *	symbolize_open       worker: which addresses are not known yet?
 *	symbolize_ask        loop: asks for them by POST, batch after batch
 *	symbolize_apply      worker: reads the answers, remembers them, names the profile
 *	symbolize_close      any
 *
 * What has no name afterwards stays an address, and is no error of the scrape: the service may be
 * missing (that is remembered), slow, or broken (it is asked again later).
 *
 * No wrong names. Answers are of the process that answers now, and it may have been replaced since
 * the profile was taken. So names are kept per process (its executable mappings tell), each
 * question repeats some addresses whose names are known, and where one of their names changed, or
 * another process has been seen meanwhile, the answers are not used.
 *
 * Units:     nanoseconds of the monotonic clock.
 * Errors:    ERR_NOMEM, ERR_LIMIT of the arena.
 * Ownership: all in the arena given, but for what symbolize_close frees.
 * Threads:   one at a time, as above.
 * Source:    google/pprof, internal/symbolz; proto/legacy/symbols.h.
 */
#ifndef SCRAPE_SYMBOLIZE_H
#define SCRAPE_SYMBOLIZE_H

#include "base/net/http_client.h"
#include "proto/pprof.h"
#include "scrape/symbol_cache.h"
#include "scrape/targets/targets.h"

#define SYMBOLS_BATCH 1000u /* addresses in a question */
#define SYMBOLS_ASKED_MAX 50000u /* by a scrape; the next one asks for the others */
#define SYMBOLS_CHECKED 16u /* known ones in the first question */
#define SYMBOLS_ANSWER_BYTES_MAX ((size_t)4 << 20) /* of a batch */
#define SYMBOLS_ANSWERS_BYTES_MAX ((size_t)16 << 20)

struct symbolize;

/*
 * p was read from raw. *out is NULL if all addresses of p have names. job, target: of the scrape,
 * held by the caller until symbolize_close.
 */
MUST_CHECK enum err_code symbolize_open(struct symbol_cache *cache, struct arena *a,
	const struct pprof *p, struct str raw, const struct scrape_config *job,
	const struct target *target, struct symbolize **out, struct err *err);
/* Whether somebody is to be asked. */
bool symbolize_has_question(const struct symbolize *s);
/* client NULL: nobody can be asked any more. Calls done once, now or later. */
void symbolize_ask(struct symbolize *s, struct http_client *client, int64_t deadline_ns,
	void (*done)(void *ctx), void *ctx);
MUST_CHECK enum err_code symbolize_apply(
	struct symbolize *s, const struct pprof *p, const struct pprof **out, struct err *err);
void symbolize_close(struct symbolize *s); /* NULL is fine */

/* Tells processes apart by the executable mappings in a profile's text; 0: it has none. */
uint64_t symbolize_process(struct str raw);

#endif
