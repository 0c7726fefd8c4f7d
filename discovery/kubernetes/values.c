#include "discovery/kubernetes/values.h"

#include <stdlib.h>

#include "base/array.h"

#define SWEEP_MIN 1024
#define DEPTH_MAX 16 /* deeper values are not hashed; they are compared anyway */

/* Equal values have equal hashes, whatever the order of an object's members. */
static uint64_t kube_hash_of(const json_t *value, unsigned depth)
{
	uint64_t h = map_hash_u64((uint64_t)json_typeof(value) + 1), member;
	const json_t *inner;
	const char *name;
	json_t *member_value;
	size_t i;

	if (depth == DEPTH_MAX)
		return h;
	switch (json_typeof(value)) {
	case JSON_STRING:
		return hash_bytes(json_string_value(value), json_string_length(value), h);
	case JSON_INTEGER:
		return map_hash_u64(h ^ (uint64_t)json_integer_value(value));
	case JSON_ARRAY:
		json_array_foreach (value, i, inner)
			h = map_hash_u64(h ^ kube_hash_of(inner, depth + 1));
		return h;
	case JSON_OBJECT:
		json_object_foreach ((json_t *)(uintptr_t)value, name, member_value) {
			member = hash_bytes(name, strlen(name), depth);
			h += map_hash_u64(member ^ kube_hash_of(member_value, depth + 1)) | 1;
		}
		return h;
	default:
		return h;
	}
}

static bool kube_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct kube_values *t = ctx;

	return json_equal(t->v[id].v, key);
}

void kube_values_init(struct kube_values *k)
{
	*k = (struct kube_values){ .sweep_at = SWEEP_MIN };
	map_init(&k->map);
}

void kube_values_release(struct kube_values *k)
{
	for (size_t i = 0; i < k->n; i++)
		json_decref(k->v[i].v);
	map_release(&k->map);
	free(k->v);
	kube_values_init(k);
}

/* Frees values that only the table holds, and those for which the new index has no memory. */
static void kube_values_sweep(struct kube_values *k)
{
	size_t n = 0;

	map_release(&k->map);
	map_init(&k->map);
	for (size_t i = 0; i < k->n; i++) {
		if (k->v[i].v->refcount > 1 && map_add(&k->map, k->v[i].hash, (uint32_t)n))
			k->v[n++] = k->v[i];
		else
			json_decref(k->v[i].v);
	}
	k->n = n;
	k->sweep_at = 2 * n > SWEEP_MIN ? 2 * n : SWEEP_MIN;
}

json_t *kube_values_share(struct kube_values *k, json_t *value)
{
	uint64_t hash = kube_hash_of(value, 0);
	uint32_t id = map_find(&k->map, hash, kube_eq, k, value);

	if (id != MAP_NONE) {
		json_t *same = json_incref(k->v[id].v);

		json_decref(value);
		return same;
	}
	if (k->n >= k->sweep_at)
		kube_values_sweep(k);
	if (k->n < MAP_NONE && array_room(&k->v, k->n, 1, &k->cap) &&
		map_add(&k->map, hash, (uint32_t)k->n))
		k->v[k->n++] = (struct kube_value){ hash, json_incref(value) };
	return value;
}
