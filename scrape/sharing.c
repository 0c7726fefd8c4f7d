#include "scrape/sharing.h"

#include <assert.h>

#include "base/clock.h"

#define ASK_AGAIN_NS (100 * NS_PER_MS)
#define ASK_OFTEN_NS (20 * NS_PER_MS)
/*
 * Ask earlier than the others should end, so that we are refused and know that they are there: on a
 * busy machine requests and answers are late, and others that do not refuse us count as gone.
 */
#define ASK_EARLY_NS (1500 * NS_PER_MS)
#define MISSED_MAX 2u
#define LOOK_NS NS_PER_HOUR
#define LOOK_TURNS 10

const char *sharing_mode_name(enum sharing_mode m)
{
	/* clang-format off */
	static const char *const names[] = {
		[SHARING_ALONE] = "alone", [SHARING_HALVES] = "halves", [SHARING_TURNS] = "turns",
	};
	/* clang-format on */

	assert(m <= SHARING_TURNS);
	return names[m];
}

int64_t sharing_seconds(const struct sharing *s, int64_t interval_ns, int64_t seconds)
{
	int64_t half = interval_ns / 2 / NS_PER_S;

	if (s->mode != SHARING_HALVES || half >= seconds)
		return seconds;
	return half < 1 ? 1 : half;
}

int64_t sharing_refused(struct sharing *s, int64_t interval_ns, int64_t now_ns)
{
	if (!s->refused_ns)
		s->refused_ns = now_ns;
	if (s->mode == SHARING_ALONE) {
		s->mode = SHARING_HALVES;
		s->missed = 0;
		s->late = 0;
		s->often = false;
	}
	s->often |= now_ns - s->refused_ns > interval_ns;
	return s->often ? ASK_OFTEN_NS : ASK_AGAIN_NS;
}

bool sharing_is_starved(const struct sharing *s, int64_t interval_ns, int64_t now_ns)
{
	return s->refused_ns && now_ns - s->refused_ns > SHARING_STARVED_TURNS * interval_ns;
}

void sharing_gave_up(struct sharing *s)
{
	s->refused_ns = 0;
}

/* Alone: as scheduled, but for the turns that look for others. */
static int64_t sharing_look(struct sharing *s, int64_t interval_ns, int64_t now_ns)
{
	if (!s->looked_ns || now_ns - s->looked_ns >= LOOK_NS) {
		s->looked_ns = now_ns;
		s->late = LOOK_TURNS;
	}
	if (!s->late)
		return 0;
	s->late--;
	return -(interval_ns / LOOK_TURNS);
}

/* The mode, after a turn that was refused first (met) or not. */
static void sharing_learn(struct sharing *s, bool met)
{
	if (!met) {
		if (s->mode != SHARING_ALONE && ++s->missed >= MISSED_MAX)
			s->mode = SHARING_ALONE;
		return;
	}
	/* The other one came only after a whole interval, though it could have come at any time. */
	if (s->mode == SHARING_HALVES && s->missed)
		s->mode = SHARING_TURNS;
	s->missed = 0;
}

int64_t sharing_ended(struct sharing *s, int64_t interval_ns, int64_t began_ns, int64_t now_ns)
{
	bool met = s->refused_ns != 0;
	int64_t rest;

	s->refused_ns = 0;
	sharing_learn(s, met);
	if (s->mode == SHARING_ALONE)
		return sharing_look(s, interval_ns, now_ns);
	rest = s->mode == SHARING_TURNS || s->missed ? interval_ns : now_ns - began_ns;
	return now_ns + (rest > 2 * ASK_EARLY_NS ? rest - ASK_EARLY_NS : rest / 2);
}
