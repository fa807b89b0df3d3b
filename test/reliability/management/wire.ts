/** The types of messages between the management load test and its child process with the agents. */
export interface AgentPlan {
  /** Of the management server. */
  readonly port: number
  readonly ca: string
  /** A registration token for each cluster. */
  readonly tokens: readonly string[]
}

/** `kill` has the number of a cluster, `cut` a fraction of the connections. */
export type AgentCommand = { readonly plan: AgentPlan } | { readonly kill: number } | { readonly cut: number }
