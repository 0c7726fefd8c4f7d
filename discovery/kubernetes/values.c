#include "discovery/kubernetes/values.h"

#include <stdlib.h>

#include "base/array.h"

#define SWEEP_MIN 1024
#define DEPTH_MAX 16 /* deeper values are not hashed; they are compared anyway */

/* Equal values have equal hashes, whatever the order of an object's members. */
static uint64_t kube_hash_of(const json_t *v, unsigned depth)
{
	uint64_t h = map_hash_u64((uint64_t)json_typeof(v) + 1), member;
	const json_t *inner;
	const char *name;
	json_t *member_value;
	size_t i;

	if (depth == DEPTH_MAX)
		return h;
	switch (json_typeof(v)) {
	case JSON_STRING:
		return hash_bytes(json_string_value(v), json_string_length(v), h);
	case JSON_INTEGER:
		return map_hash_u64(h ^ (uint64_t)json_integer_value(v));
	case JSON_ARRAY:
		json_array_foreach (v, i, inner)
			h = map_hash_u64(h ^ kube_hash_of(inner, depth + 1));
		return h;
	case JSON_OBJECT:
		json_object_foreach ((json_t *)(uintptr_t)v, name, member_value) {
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

void kube_values_init(struct kube_values *t)
{
	*t = (struct kube_values){ .sweep_at = SWEEP_MIN };
	map_init(&t->map);
}

void kube_values_release(struct kube_values *t)
{
	for (size_t i = 0; i < t->n; i++)
		json_decref(t->v[i].v);
	map_release(&t->map);
	free(t->v);
	kube_values_init(t);
}

/* Frees values that only the table holds, and those for which the new index has no memory. */
static void kube_values_sweep(struct kube_values *t)
{
	size_t n = 0;

	map_release(&t->map);
	map_init(&t->map);
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].v->refcount > 1 && map_add(&t->map, t->v[i].hash, (uint32_t)n))
			t->v[n++] = t->v[i];
		else
			json_decref(t->v[i].v);
	}
	t->n = n;
	t->sweep_at = 2 * n > SWEEP_MIN ? 2 * n : SWEEP_MIN;
}

json_t *kube_values_share(struct kube_values *t, json_t *v)
{
	uint64_t hash = kube_hash_of(v, 0);
	uint32_t id = map_find(&t->map, hash, kube_eq, t, v);

	if (id != MAP_NONE) {
		json_t *same = json_incref(t->v[id].v);

		json_decref(v);
		return same;
	}
	if (t->n >= t->sweep_at)
		kube_values_sweep(t);
	if (t->n < MAP_NONE && array_room(&t->v, t->n, 1, &t->cap) &&
		map_add(&t->map, hash, (uint32_t)t->n))
		t->v[t->n++] = (struct kube_value){ hash, json_incref(v) };
	return v;
}
