#include "cmd/epimetheus/config_file.h"

#include <stdlib.h>

#include "base/log.h"
#include "cmd/shared/config_check.h"

enum err_code config_file_load(
	const struct options *o, bool log, struct config **out, struct err *err)
{
	const struct config_reading how = { .ignore_foreign = o->ignore_foreign };
	struct yaml_problems problems;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_file(o->config_file, &how, &problems, out, err);
	if (!rc)
		config_check_names(*out, &problems);
	for (size_t i = 0; !rc && log && i < problems.n; i++)
		log_warn("main", "configuration", LOG_S("warning", problems.v[i].text));
	rc = config_first_error(&problems, rc, err);
	yaml_problems_release(&problems);
	return rc;
}

/* The address by which the server reaches itself: localhost for a wildcard address. */
static void config_file_own_address(const char *listen_address, struct web *web, struct buf *out)
{
	struct str address = str_of(listen_address), host;
	size_t n = address.len;

	while (n && address.ptr[n - 1] != ':')
		n--;
	host = (struct str){ address.ptr, n ? n - 1 : 0 };
	if (!host.len || str_is(host, "0.0.0.0") || str_is(host, "[::]") || str_is(host, "::"))
		host = STR("localhost");
	buf_printf(out, STR_FMT ":%u", STR_ARG(host), web_port(web));
	buf_add_char(out, '\0');
}

enum err_code config_file_load_builtin(
	const char *listen_address, struct web *web, struct config **out, struct err *err)
{
	struct buf text = { 0 }, address = { 0 };
	enum err_code rc;

	config_file_own_address(listen_address, web, &address);
	if (!buf_failed(&address))
		config_builtin_text(&text, web_scheme(web), address.ptr, web_prefix(web));
	if (buf_failed(&address) || buf_failed(&text))
		rc = err_nomem(err, "built-in configuration");
	else
		rc = config_load_text("built-in configuration", STR("."), buf_str(&text), out, err);
	buf_release(&text);
	buf_release(&address);
	return rc;
}

enum err_code config_file_tell_labels(const struct config *c, struct db *db, struct err *err)
{
	struct db_job_labels *v = calloc(c->scrape_n + 1, sizeof(*v));
	enum err_code rc;

	if (!v)
		return err_nomem(err, "configuration");
	for (size_t i = 0; i < c->scrape_n; i++)
		v[i] = (struct db_job_labels){ c->scrape[i].job_name, c->scrape[i].instance_labels,
			c->scrape[i].instance_labels_n };
	rc = db_set_instance_labels(db, v, c->scrape_n, err);
	free(v);
	return rc;
}
