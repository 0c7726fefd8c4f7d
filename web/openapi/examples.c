#include "web/openapi/examples.h"

#include <string.h>

static const struct operation_example examples[] = {
	{ "", "{}" },
};

const struct operation_example *example_find(const char *id)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		if (!strcmp(examples[i].id, id))
			return &examples[i];
	return NULL;
}
