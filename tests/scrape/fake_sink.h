/*
 * A sink that keeps the profiles and numbers it gets, and acknowledges when the test says so.
 *
 * Threads: append from the workers; everything else from the test.
 */
#ifndef TESTS_SCRAPE_FAKE_SINK_H
#define TESTS_SCRAPE_FAKE_SINK_H

#include "base/thread.h"
#include "proto/sink.h"

#define FAKE_SINK_MAX 4096

struct fake_append {
	char text[512]; /* labels, interval, samples, kinds; how long it took, if it says so */
	int64_t ts_ns;
	sink_done_fn done; /* NULL: acknowledged */
	void *ctx;
};

enum fake_mode { FAKE_ACK_INSIDE, FAKE_HOLD, FAKE_REFUSE, FAKE_ACK_ERROR };

struct fake_sink {
	struct sink sink;
	struct mutex lock;
	struct cond appended;
	/* guarded by lock */
	enum fake_mode mode;
	struct fake_append *v;
	size_t n;
	struct buf numbers; /* lines: labels, value, @milliseconds; or labels, stale */
	size_t number_batches;
	const char *clash; /* a name that is refused for numbers; NULL: none */
};

void fake_sink_init(struct fake_sink *f);
void fake_sink_release(struct fake_sink *f);
void fake_sink_set(struct fake_sink *f, enum fake_mode mode);
/* Acknowledges what was held back. */
void fake_sink_ack_all(struct fake_sink *f);
size_t fake_sink_count(struct fake_sink *f, const char *text_part);
/* Waits until so many appends have text_part in them; false: they did not come. */
bool fake_sink_wait(struct fake_sink *f, const char *text_part, size_t n);
/* Counts text_part in the text of all numbers; fake_sink_wait_numbers waits as for profiles. */
size_t fake_sink_numbers(struct fake_sink *f, const char *text_part);
bool fake_sink_wait_numbers(struct fake_sink *f, const char *text_part, size_t n);

#endif
