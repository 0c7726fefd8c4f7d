// What the unit tests import: the modules that need no browser.
export * as api from "./lib/api";
export * as edit from "./lib/edit";
export * as fleet from "./lib/fleet";
export * as measured from "./lib/measured";
export * as query from "./lib/query";
export * as relabel from "./lib/relabel";
export * as rules from "./lib/rules";
export * as series from "./lib/series";
export * as targets from "./lib/targets";
export * as timerange from "./lib/timerange";
export * as units from "./lib/units";
export * as urlstate from "./lib/urlstate";
export * as color from "./flame/color";
export * as layout from "./flame/layout";
export * as look from "./flame/look";
export * as search from "./flame/search";
