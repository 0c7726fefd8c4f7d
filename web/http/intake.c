#include "web/http/intake.h"

#include "base/clock.h"

#define LOOK_NS (200 * NS_PER_MS) /* how often a waiting reader checks for cancellation */

void intake_init(struct intake *i, void (*wake)(void *ctx), void *ctx)
{
	*i = (struct intake){ .wake = wake, .ctx = ctx };
	mutex_init(&i->lock);
	cond_init(&i->changed);
}

void intake_release(struct intake *i)
{
	buf_release(&i->ready);
	buf_release(&i->piece);
	cond_destroy(&i->changed);
	mutex_destroy(&i->lock);
}

/* ---- the receiver ---- */

bool intake_add(struct intake *i, const void *data, size_t n, void (*sleep)(void *ctx))
{
	bool fits;

	mutex_lock(&i->lock);
	fits = i->left || !i->ready.len || n <= INTAKE_BYTES_MAX - i->ready.len;
	if (!fits) {
		i->asleep = true;
		sleep(i->ctx);
	} else if (!i->left) {
		buf_add(&i->ready, data, n);
		cond_signal(&i->changed);
	}
	mutex_unlock(&i->lock);
	return fits;
}

void intake_end(struct intake *i)
{
	mutex_lock(&i->lock);
	i->ended = true;
	cond_signal(&i->changed);
	mutex_unlock(&i->lock);
}

void intake_gone(struct intake *i)
{
	mutex_lock(&i->lock);
	i->gone = true;
	i->asleep = false;
	cond_signal(&i->changed);
	mutex_unlock(&i->lock);
}

/* ---- the reader ---- */

static void intake_wake(struct intake *i)
{
	mutex_assert_held(&i->lock);
	if (!i->asleep)
		return;
	i->asleep = false;
	i->wake(i->ctx);
}

/* Under the lock: both buffers change places, so no byte is copied and both keep their memory. */
static void intake_take(struct intake *i)
{
	struct buf read = i->piece;

	mutex_assert_held(&i->lock);
	buf_clear(&read);
	i->piece = i->ready;
	i->ready = read;
	intake_wake(i);
}

enum err_code intake_read(struct intake *i, uint64_t bytes_max, const atomic_bool *canceled,
	struct str *piece, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&i->lock);
	while (
		!i->ready.len && !buf_failed(&i->ready) && !i->ended && !i->gone && !atomic_load(canceled))
		cond_wait_until(&i->changed, &i->lock, clock_monotonic_ns() + LOOK_NS);
	if (buf_failed(&i->ready))
		rc = err_nomem(err, "body");
	else if (!i->ended && (i->gone || atomic_load(canceled)))
		rc = err_set(err, ERR_CANCELED, "the client closed the connection");
	else
		intake_take(i);
	mutex_unlock(&i->lock);
	if (rc)
		return rc;
	*piece = buf_str(&i->piece);
	i->bytes += piece->len;
	if (i->bytes > bytes_max)
		return err_set(
			err, ERR_LIMIT, "the body is longer than %llu bytes", (unsigned long long)bytes_max);
	return ERR_OK;
}

void intake_leave(struct intake *i)
{
	mutex_lock(&i->lock);
	i->left = true;
	buf_release(&i->ready);
	intake_wake(i);
	mutex_unlock(&i->lock);
}
