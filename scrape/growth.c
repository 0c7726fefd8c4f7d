#include "scrape/growth.h"

void growth_note(struct growth_watch *g, const struct growth_scrape *s)
{
	bool known;

	if (s->kind == KIND_GAUGE || s->kind != (enum value_kind)g->kind)
		*g = (struct growth_watch){ .kind = (uint8_t)s->kind };
	if (s->kind == KIND_GAUGE)
		return;
	known = g->answered_ns && (s->kind == KIND_DELTA || s->connected_ns <= g->answered_ns);
	if (known && s->total != g->total) {
		g->falls = g->falls << 1 | (s->total < g->total);
		g->n += g->n < GROWTH_CHANGES;
	}
	g->total = s->total;
	g->answered_ns = s->answered_ns;
}

void growth_lose(struct growth_watch *g)
{
	g->answered_ns = 0;
}

const char *growth_warning(const struct growth_watch *g)
{
	if (g->kind == KIND_CUMULATIVE && __builtin_popcount(g->falls) >= GROWTH_FALLS_MIN)
		return "counters of this profile fall again and again although the process goes on: if the "
			   "endpoint gives differences, write `delta: true` for the profile; if several "
			   "processes answer at this address, scrape each of them";
	if (g->kind == KIND_DELTA && g->n == GROWTH_CHANGES && !g->falls)
		return "amounts of this profile only grow from scrape to scrape: the endpoint seems to "
			   "count "
			   "since the process began; without `delta: true` the server stores the increase";
	return NULL;
}
