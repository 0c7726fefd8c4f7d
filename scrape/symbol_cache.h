/*
 * Symbol cache: the names that processes gave to addresses of their code, so that only new
 * addresses are asked for.
 *
 * An entry belongs to one service (a URL of one job) and one process behind it. Another process
 * gets an entry of its own, and the entry before is retired: its names stay readable to those that
 * hold it, and nobody finds it any more.
 *
 * Bounded: an entry over SYMBOL_ENTRY_BYTES_MAX is retired; over SYMBOL_CACHE_BYTES_MAX, or
 * SYMBOL_ENTRIES_MAX, the one that was unused for longest is.
 *
 * Units:     nanoseconds of the monotonic clock.
 * Errors:    what finds no memory is not kept, so it is asked for again.
 * Ownership: symbol_cache_enter holds an entry until symbol_cache_leave. Names live as long as the
 *            entry is held.
 * Threads:   any. The cache is closed after the last entry was left.
 */
#ifndef SCRAPE_SYMBOL_CACHE_H
#define SCRAPE_SYMBOL_CACHE_H

#include "base/str.h"

#define SYMBOL_ENTRY_BYTES_MAX ((size_t)16 << 20)
#define SYMBOL_CACHE_BYTES_MAX ((size_t)64 << 20)
#define SYMBOL_ENTRIES_MAX 20000u

struct symbol_cache;
struct symbol_entry;

struct symbol_cache *symbol_cache_open(void); /* NULL: out of memory */
void symbol_cache_close(struct symbol_cache *c); /* NULL is fine */

/*
 * process: tells the processes of a service apart; 0: nothing does, and no name is kept. NULL: out
 * of memory.
 */
struct symbol_entry *symbol_cache_enter(
	struct symbol_cache *c, struct str service, uint64_t process, int64_t now_ns);
void symbol_cache_leave(struct symbol_entry *e); /* NULL is fine */

/* Whether there is anybody to ask: no failure, and no answer that there are no names, is recent. */
bool symbol_entry_may_ask(struct symbol_entry *e, int64_t now_ns);
/* The service has no names, or is none. *news: it was not known. */
void symbol_entry_has_none(struct symbol_entry *e, int64_t now_ns, bool *news);
/* It did not answer: the time until the next question doubles, from 30 s to 10 min. */
void symbol_entry_failed(struct symbol_entry *e, int64_t now_ns, bool *news);
void symbol_entry_answered(struct symbol_entry *e);
/* Its names changed: nobody finds it any more. */
void symbol_entry_retire(struct symbol_entry *e);
/* It was retired for that, or for another process; not for want of room. */
bool symbol_entry_is_replaced(struct symbol_entry *e);

struct symbol_known {
	struct str name; /* empty: it has none */
	bool known; /* it was asked for */
};
/* Fills out[0..n). */
void symbol_entry_find(
	struct symbol_entry *e, const uint64_t *addresses, size_t n, struct symbol_known *out);
/* Keeps what is known of out[0..n); an address that is there stays as it is. */
void symbol_entry_add(
	struct symbol_entry *e, const uint64_t *addresses, size_t n, const struct symbol_known *names);

/* For tests: of all entries that can be found. */
struct symbol_cache_stats {
	size_t entries, bytes;
};
struct symbol_cache_stats symbol_cache_stats(struct symbol_cache *c);

#endif
