#include "cmd/epitool/flame/color.h"

#include <math.h>

#include "cmd/epitool/compare/names.h"

#define HUES 30u
#define SHADES 3u
/* More colour than on the page: the cube has few steps. */
#define LIGHTNESS 0.82
#define CHROMA 0.11
#define SHADE 0.045
#define CUBE_FIRST 16u

uint32_t color_hash(struct str s)
{
	uint32_t h = 0x811c9dc5;

	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * 0x01000193;
	return h;
}

static unsigned flame_cube_step(double linear)
{
	static const unsigned levels[] = { 0, 95, 135, 175, 215, 255 };
	double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
	unsigned best = 0;

	for (unsigned i = 1; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (fabs(255 * v - levels[i]) < fabs(255 * v - levels[best]))
			best = i;
	return best;
}

unsigned color_nearest(double lightness, double chroma, double hue)
{
	double a = chroma * cos(hue * M_PI / 180), b = chroma * sin(hue * M_PI / 180);
	double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3),
		   m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3),
		   s = pow(lightness - 0.0894841775 * a - 1.291485548 * b, 3);
	unsigned red = flame_cube_step(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
			 green = flame_cube_step(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
			 blue = flame_cube_step(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);

	return CUBE_FIRST + 36 * red + 6 * green + blue;
}

static bool flame_is_runtime(struct str package)
{
	return str_is(package, "runtime") ||
		str_has_prefix(package, STR("runtime/")) || str_is(package, "libc") ||
			str_is(package, "syscall");
}

unsigned color_of(struct str name)
{
	struct str package = name_package(name);
	unsigned shade = color_hash(name) % SHADES, hue = color_hash(package) % HUES;

	if (!name.len || name.ptr[0] == '[' ||
		str_has_prefix(name, STR("0x")) || str_is(name, "<unknown>"))
		return COLOR_UNNAMED;
	if (flame_is_runtime(package))
		return COLOR_RUNTIME + shade - 1;
	return color_nearest(LIGHTNESS + ((double)shade - 1) * SHADE, CHROMA, 360.0 * hue / HUES + 12);
}
