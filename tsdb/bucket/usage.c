#include "tsdb/bucket/internal.h"

const char *bucket_kind_name(enum bucket_kind k)
{
	static const char *const names[BUCKET_KINDS] = { "get", "head", "put", "list", "delete" };

	return names[k];
}

void bucket_get_usage(const struct bucket *b, struct bucket_usage *out)
{
	for (size_t i = 0; i < BUCKET_KINDS; i++) {
		out->kinds[i].requests = b->usage.kinds[i].requests;
		out->kinds[i].sent_bytes = b->usage.kinds[i].sent;
		out->kinds[i].received_bytes = b->usage.kinds[i].received;
	}
}

double bucket_requests_cost(const struct bucket_usage *u, const struct bucket_prices *p)
{
	uint64_t puts = u->kinds[BUCKET_PUTS].requests + u->kinds[BUCKET_LISTS].requests;
	uint64_t gets = u->kinds[BUCKET_GETS].requests + u->kinds[BUCKET_HEADS].requests;

	return (double)puts / 1e6 * p->put_per_million + (double)gets / 1e6 * p->get_per_million;
}

double bucket_storage_cost(uint64_t bytes, const struct bucket_prices *p)
{
	return (double)bytes / 1e12 * p->storage_per_tb_month;
}
