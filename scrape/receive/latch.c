#include "scrape/receive/latch.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static long latch_futex(struct latch *l, int op, uint32_t value)
{
	return syscall(SYS_futex, &l->left, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void latch_init(struct latch *l, uint32_t n)
{
	atomic_init(&l->left, n);
}

void latch_down(struct latch *l)
{
	uint32_t before = atomic_fetch_sub(&l->left, 1);

	assert(before > 0);
	/* From here on the waiter may have freed it: the kernel takes its address alone. */
	if (before == 1)
		(void)latch_futex(l, FUTEX_WAKE, INT_MAX);
}

void latch_wait(struct latch *l)
{
	uint32_t left;

	while ((left = atomic_load(&l->left)) > 0)
		(void)latch_futex(l, FUTEX_WAIT, left); /* returns at once if it changed */
}
