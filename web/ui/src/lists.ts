// The pages for operators: loaded when the first of them is opened.
export { ClusterPage } from "./cluster/clusterpage";
export { DiscoveryPage } from "./fleet/discoverypage";
export { SendersPage } from "./fleet/senderspage";
export { TargetsPage } from "./fleet/targetspage";
export { ConfigPage, FlagsPage, StatusPage } from "./status/statuspage";
export { TsdbPage } from "./status/tsdbpage";
export { SymbolsPage } from "./symbols/symbolspage";
