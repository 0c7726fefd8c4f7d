#include "discovery/sources/json_path.h"

struct str json_path_first(const char *path)
{
	return (struct str){ path, strcspn(path, ".|") };
}

const char *json_path_rest(const char *path)
{
	path += json_path_first(path).len;
	return *path == '.' ? path + 1 : path;
}

bool json_path_is_end(const char *path)
{
	return !*path || *path == '|';
}

json_t *json_path_step(const json_t *value, struct str name)
{
	uint64_t i;

	if (json_is_array(value) && str_to_u64(name, &i))
		return json_array_get(value, (size_t)i);
	return json_object_getn(value, name.ptr, name.len);
}

json_t *json_path_at(const json_t *value, const char *path)
{
	json_t *at = (json_t *)(uintptr_t)value; /* as jansson's own getters */

	for (; at && !json_path_is_end(path); path = json_path_rest(path))
		at = json_path_step(at, json_path_first(path));
	return at;
}

struct str json_path_text(const json_t *value, const char *path)
{
	return json_text_of(json_path_at(value, path));
}
