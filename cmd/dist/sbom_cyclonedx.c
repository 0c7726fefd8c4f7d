/* CycloneDX 1.5 as JSON. */
#include "base/json.h"
#include "base/version.h"
#include "cmd/dist/sbom.h"

#define CYCLONEDX_ROOT "epimetheus"

static void cyclonedx_pair(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstr(j, value);
}

static void cyclonedx_write_component(struct json *j, const char *type, const char *ref,
	const char *name, const char *version, const char *license, const char *copyright)
{
	cyclonedx_pair(j, "type", type);
	cyclonedx_pair(j, "bom-ref", ref);
	cyclonedx_pair(j, "name", name);
	cyclonedx_pair(j, "version", version);
	json_key(j, "licenses");
	json_array(j);
	json_object(j);
	cyclonedx_pair(j, "expression", license);
	json_object_end(j);
	json_array_end(j);
	cyclonedx_pair(j, "copyright", copyright);
}

void sbom_write_cyclonedx(struct buf *out, const struct sbom *s)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	cyclonedx_pair(&j, "bomFormat", "CycloneDX");
	cyclonedx_pair(&j, "specVersion", "1.5");
	json_key(&j, "version");
	json_u64(&j, 1);
	json_key(&j, "metadata");
	json_object(&j);
	if (build_date[0])
		cyclonedx_pair(&j, "timestamp", build_date);
	json_key(&j, "component");
	json_object(&j);
	cyclonedx_write_component(
		&j, "application", CYCLONEDX_ROOT, "epimetheus", EPI_VERSION, SBOM_LICENSE, SBOM_COPYRIGHT);
	json_object_end(&j);
	json_object_end(&j);
	json_key(&j, "components");
	json_array(&j);
	for (size_t i = 0; i < s->n; i++) {
		const struct sbom_component *c = &s->components[i];

		json_object(&j);
		cyclonedx_write_component(&j, "library", c->purl, c->library->name, c->version, c->license,
			c->library->copyright);
		cyclonedx_pair(&j, "purl", c->purl);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "dependencies");
	json_array(&j);
	json_object(&j);
	cyclonedx_pair(&j, "ref", CYCLONEDX_ROOT);
	json_key(&j, "dependsOn");
	json_array(&j);
	for (size_t i = 0; i < s->n; i++)
		json_cstr(&j, s->components[i].purl);
	json_array_end(&j);
	json_object_end(&j);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
