/*
 * Source links: the section `source_links`, where the code of profiled programs can be seen. A link
 * is a URL that a person's browser opens; the server fetches nothing.
 *
 *	source_links:
 *	- path: /src/(?P<file>.+)
 *	  labels: {service_repository: 'https://(?P<repo>github\.com/.+)'}
 *	  template: https://${repo}/blob/${service_git_ref}/${file}#L${line}
 *
 * The first link that fits counts: its `path` matches the whole path of the file, its `labels`
 * whole values, and everything that the template names has a value: ${path}, ${line}, groups of the
 * expressions by their names, else labels. Values are percent-encoded, but for letters, digits and
 * -._~/:@, so they cannot end the path of the URL. One that has a ".." fits no link: a browser
 * would go where the URL does not say.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT at a place in the file.
 * Ownership: strings in the configuration's arena; source_links_release frees what is compiled.
 * Threads:   immutable.
 */
#ifndef SCRAPE_CONFIG_SOURCE_LINKS_H
#define SCRAPE_CONFIG_SOURCE_LINKS_H

#include "base/labels.h"
#include "base/yaml/yaml.h"

#define SOURCE_LINKS_MAX 256u
#define SOURCE_LINK_LABELS_MAX 16u
#define SOURCE_LINK_URL_BYTES_MAX 4096u /* of a link that was made; a longer one is none */

struct source_link_label {
	struct str name;
	struct regex *re; /* of whole values */
};

enum source_link_what {
	SOURCE_LINK_TEXT,
	SOURCE_LINK_PATH,
	SOURCE_LINK_LINE,
	SOURCE_LINK_GROUP, /* of the path's expression, or of a label's */
	SOURCE_LINK_LABEL,
};
struct source_link_part {
	enum source_link_what what;
	struct str text; /* of TEXT; the name of LABEL */
	size_t of; /* GROUP: 0 the path's expression, else 1 + that of a label */
	int group;
};

extern const struct yaml_schema source_link_schema;

struct source_link {
	struct regex *path; /* NULL: any */
	struct source_link_label *labels; /* ascending by name */
	size_t labels_n;
	struct source_link_part *parts; /* of the URL */
	size_t parts_n;
};

struct source_links {
	struct source_link *v; /* the first that fits counts */
	size_t n;
	struct str *labels; /* that links look at or put in; ascending, distinct */
	size_t labels_n;
};

/* n: the section, or NULL. On failure it leaves nothing. */
MUST_CHECK enum err_code source_links_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct source_links *out, struct err *err);
void source_links_release(struct source_links *l);

/*
 * Adds the URL of the first link that fits. line "": ${line} stays. False: none fits, and nothing
 * was added.
 */
bool source_links_url(const struct source_links *l, struct str path, struct str line,
	struct labels labels, struct buf *out);

#endif
