/* SPDX 2.3 as JSON. */
#include <string.h>

#include "base/json.h"
#include "base/version.h"
#include "cmd/dist/sbom.h"

#define SPDX_DOCUMENT "SPDXRef-DOCUMENT"
#define SPDX_ROOT "SPDXRef-epimetheus"

static void spdx_pair(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_cstr(j, value);
}

static void spdx_write_id(struct json *j, const char *key, const struct sbom_component *c)
{
	struct buf id = { 0 };

	buf_printf(&id, "SPDXRef-%s", c->id);
	json_key(j, key);
	json_str(j, buf_str(&id));
	buf_release(&id);
}

/* The same commit gives the same document, so the commit's date is its date. */
static void spdx_write_head(struct json *j)
{
	struct buf namespace = { 0 };

	buf_printf(&namespace, "urn:epimetheus:spdx:%s:%s", EPI_VERSION,
		build_revision[0] ? build_revision : "none");
	spdx_pair(j, "spdxVersion", "SPDX-2.3");
	spdx_pair(j, "dataLicense", "CC0-1.0");
	spdx_pair(j, "SPDXID", SPDX_DOCUMENT);
	spdx_pair(j, "name", "epimetheus-" EPI_VERSION);
	json_key(j, "documentNamespace");
	json_str(j, buf_str(&namespace));
	json_key(j, "creationInfo");
	json_object(j);
	spdx_pair(j, "created", build_date[0] ? build_date : "1970-01-01T00:00:00Z");
	json_key(j, "creators");
	json_array(j);
	json_cstr(j, "Tool: epimetheus-" EPI_VERSION);
	json_array_end(j);
	json_object_end(j);
	json_key(j, "documentDescribes");
	json_array(j);
	json_cstr(j, SPDX_ROOT);
	json_array_end(j);
	buf_release(&namespace);
}

static void spdx_write_package(struct json *j, const char *name, const char *version,
	const char *license, const char *copyright, const char *purpose)
{
	spdx_pair(j, "name", name);
	spdx_pair(j, "versionInfo", version);
	spdx_pair(j, "downloadLocation", "NOASSERTION");
	json_key(j, "filesAnalyzed");
	json_bool(j, false);
	spdx_pair(j, "licenseConcluded", license);
	spdx_pair(j, "licenseDeclared", license);
	spdx_pair(j, "copyrightText", copyright);
	spdx_pair(j, "primaryPackagePurpose", purpose);
}

static void spdx_write_component(struct json *j, const struct sbom_component *c)
{
	json_object(j);
	spdx_write_id(j, "SPDXID", c);
	spdx_write_package(
		j, c->library->name, c->version, c->license, c->library->copyright, "LIBRARY");
	json_key(j, "externalRefs");
	json_array(j);
	json_object(j);
	spdx_pair(j, "referenceCategory", "PACKAGE-MANAGER");
	spdx_pair(j, "referenceType", "purl");
	spdx_pair(j, "referenceLocator", c->purl);
	json_object_end(j);
	json_array_end(j);
	json_object_end(j);
}

static void spdx_write_relations(struct json *j, const struct sbom *s)
{
	json_object(j);
	spdx_pair(j, "spdxElementId", SPDX_DOCUMENT);
	spdx_pair(j, "relationshipType", "DESCRIBES");
	spdx_pair(j, "relatedSpdxElement", SPDX_ROOT);
	json_object_end(j);
	for (size_t i = 0; i < s->n; i++) {
		json_object(j);
		spdx_pair(j, "spdxElementId", SPDX_ROOT);
		spdx_pair(
			j, "relationshipType", s->components[i].library->package ? "STATIC_LINK" : "CONTAINS");
		spdx_write_id(j, "relatedSpdxElement", &s->components[i]);
		json_object_end(j);
	}
}

void sbom_write_spdx(struct buf *out, const struct sbom *s)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	spdx_write_head(&j);
	json_key(&j, "packages");
	json_array(&j);
	json_object(&j);
	spdx_pair(&j, "SPDXID", SPDX_ROOT);
	spdx_write_package(&j, "epimetheus", EPI_VERSION, SBOM_LICENSE, SBOM_COPYRIGHT, "APPLICATION");
	json_object_end(&j);
	for (size_t i = 0; i < s->n; i++)
		spdx_write_component(&j, &s->components[i]);
	json_array_end(&j);
	json_key(&j, "hasExtractedLicensingInfos");
	json_array(&j);
	json_object(&j);
	spdx_pair(&j, "licenseId", SBOM_PUBLIC_DOMAIN);
	spdx_pair(&j, "name", "Public domain");
	spdx_pair(&j, "extractedText", "The authors have put this into the public domain.");
	json_object_end(&j);
	json_array_end(&j);
	json_key(&j, "relationships");
	json_array(&j);
	spdx_write_relations(&j, s);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
