/* A range reader over bytes in memory that counts reads, fails from the nth on, and keeps what is
 * expected. */
#ifndef TESTS_TSDB_MEMORY_RANGE_H
#define TESTS_TSDB_MEMORY_RANGE_H

#include "tsdb/store/range.h"

struct memory {
	struct range_reader r;
	const char *bytes;
	int reads, fail_from; /* the read from which on all fail; 0: none */
	enum err_code fail_with; /* ERR_OK: ERR_IO */
	int closed;
	uint64_t expected_from, expected_n; /* the last time */
};

static inline enum err_code memory_read(
	struct range_reader *r, uint64_t offset, size_t n, void *into, struct err *err)
{
	struct memory *m = (struct memory *)r;

	if (m->fail_from && m->reads + 1 >= m->fail_from)
		return err_set(err, m->fail_with ? m->fail_with : ERR_IO, "%s: no reading today", r->name);
	m->reads++;
	if (offset > r->bytes || n > r->bytes - offset)
		return err_set(err, ERR_CORRUPT, "%s: ends too early", r->name);
	memcpy(into, m->bytes + offset, n);
	return ERR_OK;
}

static inline void memory_close(struct range_reader *r)
{
	((struct memory *)r)->closed++;
}

static inline void memory_expect(struct range_reader *r, uint64_t offset, uint64_t n)
{
	struct memory *m = (struct memory *)r;

	m->expected_from = offset;
	m->expected_n = n;
}

static const struct range_ops memory_ops = { memory_read, memory_close, memory_expect };

static inline struct memory memory_of(const char *bytes, size_t n)
{
	return (struct memory){ .r = { &memory_ops, n, "t.ldb" }, .bytes = bytes };
}

#endif
