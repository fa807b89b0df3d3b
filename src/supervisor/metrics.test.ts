import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createRegistry } from '#lib/metrics/metrics.ts'

import { declareNodeMetrics, type NodeStatusSnapshot } from './metrics.ts'
import { perProcess } from './process-names.ts'

const SUPERVISOR: NonNullable<NodeStatusSnapshot['supervisor']> = {
  looks: 6,
  outcomes: { ok: 4, crash: 0, retry: 2 },
  last: { kind: 'ok', started: [] },
  starting: undefined,
  starts: { ...perProcess(1), kubelet: 3 },
  sick: perProcess(0),
  ended: perProcess(0),
}

it('metrics of the supervisor contain the counters of the supervisor and the agent, and omit missing counters', () => {
  const registry = createRegistry()
  let seen: NodeStatusSnapshot = { supervisor: undefined, agent: undefined }
  declareNodeMetrics(registry, () => seen)
  assert.equal(registry.render(), '')
  seen = { supervisor: SUPERVISOR, agent: { isConnected: true, connects: 2, planRequests: 9, lastAnswer: 'plan' } }
  const lines = registry
    .render()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.deepEqual(lines, [
    'hyperkube_node_agent_connected 1',
    'hyperkube_node_agent_connects_total 2',
    'hyperkube_node_agent_plan_requests_total 9',
    'hyperkube_node_looks_total{outcome="crash"} 0',
    'hyperkube_node_looks_total{outcome="ok"} 4',
    'hyperkube_node_looks_total{outcome="retry"} 2',
    'hyperkube_node_starts_total{process="flanneld"} 1',
    'hyperkube_node_starts_total{process="kube-network-policies"} 1',
    'hyperkube_node_starts_total{process="kube-proxy"} 1',
    'hyperkube_node_starts_total{process="kubelet"} 3',
    'hyperkube_node_unhealthy_total{process="flanneld"} 0',
    'hyperkube_node_unhealthy_total{process="kube-network-policies"} 0',
    'hyperkube_node_unhealthy_total{process="kube-proxy"} 0',
    'hyperkube_node_unhealthy_total{process="kubelet"} 0',
  ])
})
