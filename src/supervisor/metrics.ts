/** Metrics of the supervisor and its agent, computed from their status on each scrape. */
import type { Registry } from '#lib/metrics/metrics.ts'

import type { AgentStatus } from './agent/agent.ts'
import type { SupervisorStatus } from './supervisor.ts'

/** Undefined if it does not exist yet. */
export interface NodeStatusSnapshot {
  readonly supervisor: SupervisorStatus | undefined
  readonly agent: AgentStatus | undefined
}

type PerProcess = 'starts' | 'ended'

const PER_PROCESS: Readonly<Record<PerProcess, readonly [name: string, help: string]>> = {
  starts: ['hyperkube_node_starts_total', 'Number of times a process of the node was started.'],
  ended: ['hyperkube_node_unhealthy_total', 'Number of times a process of the node was ended because it was not well.'],
}

const AGENT: readonly (readonly [
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  read: (status: AgentStatus) => number,
])[] = [
  ['gauge', 'hyperkube_node_agent_connected', 'Whether there is a tunnel to the server.', (s) => Number(s.isConnected)],
  ['counter', 'hyperkube_node_agent_connects_total', 'Number of tunnels to the server.', (s) => s.connects],
  [
    'counter',
    'hyperkube_node_agent_plan_requests_total',
    'Number of times the plan was asked for.',
    (s) => s.planRequests,
  ],
]

export function declareNodeMetrics(registry: Registry, status: () => NodeStatusSnapshot): void {
  for (const key of ['starts', 'ended'] as const) {
    const [name, help] = PER_PROCESS[key]
    registry.callback({
      name,
      help,
      type: 'counter',
      labels: ['process'],
      collect(emit) {
        for (const [process, count] of Object.entries(status().supervisor?.[key] ?? {})) emit(count, process)
      },
    })
  }
  registry.callback({
    name: 'hyperkube_node_looks_total',
    help: 'Number of times the supervisor looked at its processes, by what came of it.',
    type: 'counter',
    labels: ['outcome'],
    collect(emit) {
      for (const [outcome, count] of Object.entries(status().supervisor?.outcomes ?? {})) emit(count, outcome)
    },
  })
  for (const [type, name, help, read] of AGENT)
    registry.callback({
      name,
      help,
      type,
      collect(emit) {
        const { agent } = status()
        if (agent !== undefined) emit(read(agent))
      },
    })
}
