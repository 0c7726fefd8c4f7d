/*
 * PKCS#11 for a static GnuTLS: not available.
 *
 * Debian ships p11-kit as a shared library only, and a static program could not load a PKCS#11
 * module anyway. GnuTLS's archive still refers to these functions; each answers what p11-kit
 * answers when there is nothing: no object, no module, CKR_GENERAL_ERROR. Keys and certificates
 * come from files, so none of them is called when the server runs. The linker takes this file only
 * where the references are open, which is in the static programs.
 */
#include <stddef.h>

#define CKR_GENERAL_ERROR 5

#define NOTHING(name) \
	void *name(void); \
	void *name(void) \
	{ \
		return NULL; \
	}
#define FAILS(name) \
	int name(void); \
	int name(void) \
	{ \
		return CKR_GENERAL_ERROR; \
	}
#define NO(name) \
	size_t name(void); \
	size_t name(void) \
	{ \
		return 0; \
	}

NOTHING(p11_kit_uri_new)
NOTHING(p11_kit_uri_get_token_info)
NOTHING(p11_kit_uri_get_module_info)
NOTHING(p11_kit_uri_get_attribute)
NOTHING(p11_kit_uri_get_attributes)
NOTHING(p11_kit_uri_get_pin_source)
NOTHING(p11_kit_uri_get_pin_value)
NOTHING(p11_kit_module_get_name)
NOTHING(p11_kit_module_load)
NOTHING(p11_kit_modules_load)
NOTHING(p11_kit_config_option)
NOTHING(p11_kit_pin_new_for_string)
NOTHING(p11_kit_pin_file_callback)
NOTHING(p11_kit_pin_request)
NOTHING(p11_kit_pin_get_value)
NOTHING(p11_kit_space_strdup)

FAILS(p11_kit_uri_parse)
FAILS(p11_kit_uri_format)
FAILS(p11_kit_uri_set_attribute)
FAILS(p11_kit_module_finalize)
FAILS(p11_kit_pin_register_callback)

NO(p11_kit_space_strlen)
NO(p11_kit_uri_match_token_info)
NO(p11_kit_uri_match_module_info)
NO(p11_kit_module_get_flags)
NO(p11_kit_pin_get_length)
NO(p11_kit_uri_free)
NO(p11_kit_module_release)
NO(p11_kit_pin_unref)
NO(p11_kit_pin_unregister_callback)

const char *p11_kit_strerror(int rv);
const char *p11_kit_strerror(int rv)
{
	(void)rv;
	return "PKCS#11 is not available in a static program";
}

const char *p11_kit_message(void);
const char *p11_kit_message(void)
{
	return p11_kit_strerror(0);
}
