#include <sys/random.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tsdb/block/block.h"

/*
 * ULID: 48 bits of milliseconds and 80 random bits in 26 letters of Crockford's base 32, so that
 * names sort by time. Within a process each is above the one before: if the clock stops or goes
 * back, the random part is counted up.
 */

static const char letters[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static struct mutex lock = MUTEX_INIT; /* guards the two below */
static uint64_t last_ms;
static unsigned char last_random[10];

static void ulid_draw(unsigned char *into, size_t n)
{
	uint64_t mix;

	if (getrandom(into, n, 0) == (ssize_t)n)
		return;
	/* Without the system's randomness names are still unique in this process. */
	mix = (uint64_t)clock_monotonic_ns() ^ (uint64_t)(uintptr_t)into;
	for (size_t i = 0; i < n; i++, mix = mix * UINT64_C(0x9e3779b97f4a7c15) + 1)
		into[i] = (unsigned char)(mix >> 56);
}

static void ulid_count_up(void)
{
	for (int i = 9; i >= 0; i--)
		if (++last_random[i])
			return;
	last_ms++; /* 2^80 names in a millisecond */
}

struct ulid ulid_new(int64_t now_ns)
{
	uint64_t ms = now_ns > 0 ? (uint64_t)now_ns / 1000000 : 0;
	unsigned char bytes[16];
	struct ulid u;

	mutex_lock(&lock);
	if (ms > last_ms) {
		last_ms = ms;
		ulid_draw(last_random, sizeof(last_random));
	} else {
		ulid_count_up();
	}
	for (int i = 0; i < 6; i++)
		bytes[i] = (unsigned char)(last_ms >> (40 - 8 * i));
	memcpy(bytes + 6, last_random, sizeof(last_random));
	mutex_unlock(&lock);
	for (int i = 0; i < ULID_LEN; i++) {
		int bit = i * 5 - 2; /* 130 bits for 128: the first letter has three */
		unsigned v = 0;

		for (int k = bit; k < bit + 5; k++)
			v = v << 1 | (k < 0 ? 0 : bytes[k / 8] >> (7 - k % 8) & 1u);
		u.text[i] = letters[v];
	}
	u.text[ULID_LEN] = '\0';
	return u;
}

bool ulid_parse(struct str text, struct ulid *out)
{
	if (text.len != ULID_LEN || text.ptr[0] > '7')
		return false;
	for (size_t i = 0; i < ULID_LEN; i++)
		if (!text.ptr[i] || !strchr(letters, text.ptr[i]))
			return false;
	memcpy(out->text, text.ptr, ULID_LEN);
	out->text[ULID_LEN] = '\0';
	return true;
}

bool ulid_eq(const struct ulid *a, const struct ulid *b)
{
	return memcmp(a->text, b->text, ULID_LEN) == 0;
}

int ulid_cmp(const void *a, const void *b)
{
	return memcmp(((const struct ulid *)a)->text, ((const struct ulid *)b)->text, ULID_LEN);
}
