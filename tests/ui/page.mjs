// The page's modules, with the query language of language.json installed. server.test.mjs compares
// that file with a running server.
import { readFileSync } from "node:fs";

const modules = await import(process.env.EPI_UI_BUNDLE);
export const LANGUAGE = JSON.parse(readFileSync(new URL("language.json", import.meta.url), "utf8"));
modules.language.installLanguage(LANGUAGE);
export const page = modules;
