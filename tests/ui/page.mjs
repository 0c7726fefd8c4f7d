// The page's modules with the language that the server told: language.json, which
// server.test.mjs compares with a running server.
import { readFileSync } from "node:fs";

const modules = await import(process.env.EPI_UI_BUNDLE);
export const LANGUAGE = JSON.parse(readFileSync(new URL("language.json", import.meta.url), "utf8"));
modules.language.installLanguage(LANGUAGE);
export const page = modules;
