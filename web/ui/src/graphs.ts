// What draws profiles: loaded when the first of it is opened.
export { AlertDrawer } from "./alert/drawer";
export { Compare } from "./compare/comparepage";
export { Explore } from "./explore/explorepage";
export { AlertsPage } from "./rules/alertspage";
export { RulesPage } from "./rules/rulespage";
