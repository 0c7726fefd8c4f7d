/*
 * Colours of a flame graph on terminals of 256 colours: a package has the hue that it has on the
 * page (web/ui/src/flame/color.ts), runtimes and what has no name are grey.
 *
 * Threads: pure functions.
 */
#ifndef CMD_EPITOOL_FLAME_COLOR_H
#define CMD_EPITOOL_FLAME_COLOR_H

#include <stdint.h>

#include "base/str.h"

#define COLOR_TEXT 16u /* black, on all of these */
#define COLOR_ROOT 252u
#define COLOR_RUNTIME 250u
#define COLOR_UNNAMED 248u
#define COLOR_DIM 255u /* beside what a search found */

uint32_t color_hash(struct str s); /* FNV-1a, as the page's */
/* Of the 256 colours of terminals; 16 and above, which themes leave alone. */
unsigned color_of(struct str name);
/* The nearest of the cube of 216 colours to one of OKLCH; hue in degrees. */
unsigned color_nearest(double lightness, double chroma, double hue);

#endif
