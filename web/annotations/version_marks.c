#include "web/annotations/version_marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/map.h"

/* clang-format off */
/* In order. What is not here tells instances, places or kinds of one service apart. */
static const struct str service_labels[] = {
	STR("app"), STR("cluster"), STR("environment"), STR("job"), STR("namespace"), STR("service"),
	STR("service_name"), STR("service_namespace"),
};
/* The first that a series has counts. As the page's VERSION_LABELS. */
static const struct str version_labels[] = {
	STR("version"), STR("service_version"), STR("app_version"),
};
/* clang-format on */

#define SERVICE_LABELS (sizeof(service_labels) / sizeof(service_labels[0]))
#define VERSION_LABELS (sizeof(version_labels) / sizeof(version_labels[0]))
#define KEPT_LABELS (SERVICE_LABELS + VERSION_LABELS)

struct version_service {
	struct labels labels;
	struct str label; /* of versions */
};

struct version_first {
	uint32_t service;
	struct str version;
	int64_t first_ns;
};

struct versions {
	const struct version_marks_options *o;
	struct arena *a;
	size_t label; /* of version_labels: the one at hand */
	struct version_service *services;
	uint32_t services_n, services_cap;
	struct map services_map;
	struct version_first *firsts;
	uint32_t firsts_n, firsts_cap;
	struct map firsts_map;
	uint64_t seed;
	/* What version_marks_known found of the series that version_marks_take gets next. */
	struct label of[SERVICE_LABELS];
	size_t of_n;
	uint64_t service_hash, first_hash;
	uint32_t service, first;
};

static bool version_service_is(const void *ctx, const void *key, uint32_t id)
{
	const struct versions *v = ctx;
	const struct version_service *s = &v->services[id], *k = key;

	return str_eq(s->label, k->label) && labels_eq(s->labels, k->labels);
}

static bool version_first_is(const void *ctx, const void *key, uint32_t id)
{
	const struct version_first *f = &((const struct versions *)ctx)->firsts[id], *k = key;

	return f->service == k->service && str_eq(f->version, k->version);
}

static uint64_t version_marks_hash(struct str text, uint64_t seed)
{
	return hash_bytes(text.ptr, text.len, seed ^ text.len);
}

static void versions_read_service(struct versions *v, struct labels labels)
{
	v->of_n = labels_pick(labels, service_labels, SERVICE_LABELS, v->of);
	v->service_hash = version_marks_hash(version_labels[v->label], v->seed);
	for (size_t i = 0; i < v->of_n; i++) {
		v->service_hash = version_marks_hash(v->of[i].name, v->service_hash);
		v->service_hash = version_marks_hash(v->of[i].value, v->service_hash);
	}
}

/* INT64_MIN: nothing of the series is wanted. */
static int64_t version_marks_known(void *ctx, struct labels labels)
{
	struct versions *v = ctx;
	struct version_service service = { .label = version_labels[v->label] };
	struct version_first first = { .version = labels_get(labels, service.label) };

	v->service = v->first = MAP_NONE;
	for (size_t i = 0; i < v->label; i++)
		if (labels_has(labels, version_labels[i]))
			return INT64_MIN;
	versions_read_service(v, labels);
	service.labels = (struct labels){ v->of, v->of_n };
	v->service = map_find(&v->services_map, v->service_hash, version_service_is, v, &service);
	if (v->service == MAP_NONE)
		return v->o->wanted(v->o->ctx, service.labels) ? INT64_MAX : INT64_MIN;
	first.service = v->service;
	v->first_hash = version_marks_hash(first.version, v->seed + v->service);
	v->first = map_find(&v->firsts_map, v->first_hash, version_first_is, v, &first);
	return v->first == MAP_NONE ? INT64_MAX : v->firsts[v->first].first_ns;
}

static enum err_code versions_add_service(struct versions *v, struct err *err)
{
	struct version_service s = {
		.labels = labels_dup(v->a, (struct labels){ v->of, v->of_n }),
		.label = version_labels[v->label],
	};

	if (v->of_n && !s.labels.v)
		return arena_fail(v->a, "services", err);
	if (!array_room(&v->services, v->services_n, 1, &v->services_cap) ||
		!map_add(&v->services_map, v->service_hash, v->services_n))
		return err_nomem(err, "services");
	v->service = v->services_n;
	v->services[v->services_n++] = s;
	return ERR_OK;
}

static enum err_code version_marks_take(
	void *ctx, struct labels labels, int64_t first_ns, struct err *err)
{
	struct versions *v = ctx;
	struct version_first f = { .first_ns = first_ns };
	enum err_code rc;

	if (v->first != MAP_NONE) {
		if (first_ns < v->firsts[v->first].first_ns)
			v->firsts[v->first].first_ns = first_ns;
		return ERR_OK;
	}
	if (v->service == MAP_NONE && (rc = versions_add_service(v, err)))
		return rc;
	f.service = v->service;
	f.version = str_dup(v->a, labels_get(labels, version_labels[v->label]));
	if (!f.version.ptr)
		return arena_fail(v->a, "versions", err);
	v->first_hash = version_marks_hash(f.version, v->seed + v->service);
	if (!array_room(&v->firsts, v->firsts_n, 1, &v->firsts_cap) ||
		!map_add(&v->firsts_map, v->first_hash, v->firsts_n))
		return err_nomem(err, "versions");
	v->firsts[v->firsts_n++] = f;
	return ERR_OK;
}

static int version_first_cmp(const void *left, const void *right)
{
	const struct version_first *a = left, *b = right;

	if (a->service != b->service)
		return a->service < b->service ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	return str_cmp(a->version, b->version);
}

/* Versions whose first profiles have one time come after the same one. */
static enum err_code versions_mark(struct versions *v, struct annotation_marks *to, struct err *err)
{
	const struct version_first *f = v->firsts, *from = NULL;
	enum err_code rc = ERR_OK;

	if (v->firsts_n)
		qsort(v->firsts, v->firsts_n, sizeof(*v->firsts), version_first_cmp);
	for (uint32_t i = 0; i < v->firsts_n && !rc; i++) {
		const struct version_service *s = &v->services[f[i].service];

		if (!i || f[i].service != f[i - 1].service)
			from = NULL;
		else if (f[i].first_ns > f[i - 1].first_ns)
			from = &f[i - 1];
		if (!from || f[i].first_ns < v->o->start_ns || f[i].first_ns > v->o->end_ns)
			continue;
		rc = annotation_marks_add(to,
			(struct annotation_mark){ .time_ns = f[i].first_ns,
				.label = s->label,
				.from = from->version,
				.to = f[i].version,
				.labels = s->labels },
			err);
	}
	return rc;
}

static int version_label_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

enum err_code version_marks_add(const struct version_marks_options *o, struct arena *a,
	struct annotation_marks *to, struct err *err)
{
	struct versions v = { .o = o, .a = a, .seed = hash_seed() };
	struct str kept[KEPT_LABELS];
	struct db_firsts visitor = { .kept = kept,
		.kept_n = KEPT_LABELS,
		.known = version_marks_known,
		.take = version_marks_take,
		.ctx = &v };
	enum err_code rc = ERR_OK;

	memcpy(kept, service_labels, sizeof(service_labels));
	memcpy(kept + SERVICE_LABELS, version_labels, sizeof(version_labels));
	qsort(kept, KEPT_LABELS, sizeof(kept[0]), version_label_cmp);
	map_init(&v.services_map);
	map_init(&v.firsts_map);
	for (; v.label < VERSION_LABELS && !rc; v.label++) {
		visitor.label = version_labels[v.label];
		rc = db_visit_firsts(o->q, &visitor, err);
	}
	if (!rc)
		rc = versions_mark(&v, to, err);
	map_release(&v.services_map);
	map_release(&v.firsts_map);
	free(v.services);
	free(v.firsts);
	return rc;
}
