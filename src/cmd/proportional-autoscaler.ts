/**
 * `cluster-proportional-autoscaler`: scales a Deployment with the size of the cluster, by upstream's rule `linear` and
 * its ConfigMap. Changes of the ConfigMap apply at once.
 */
import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps, type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { sleep } from '#lib/clock.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { kubernetesVersion } from '#model/version.ts'

import { openNodeClient } from './node-client.ts'

const NAME = 'cluster-proportional-autoscaler'

const FLAGS = {
  autoscaler: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: the service account of the pod)'),
    master: flag(string, '', '`address` of the API server; overrides the kubeconfig'),
    namespace: flag(string, 'kube-system', 'namespace of the ConfigMap and the target'),
    configmap: flag(string, '', 'ConfigMap with the rule in its key "linear"'),
    target: flag(string, '', 'target to scale: deployment/NAME'),
    'poll-period-seconds': flag(int, 10, 'polling interval'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

export const proportionalAutoscaler: Program = defineProgram({
  name: NAME,
  long: 'cluster-proportional-autoscaler scales a Deployment in proportion to the nodes and cores of the cluster.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runAutoscaler,
})

async function runAutoscaler(invocation: Invocation<typeof FLAGS>, signal: AbortSignal): Promise<number> {
  const { flags, clock, log } = invocation
  const [, name = ''] = /^deployment\/(.+)$/i.exec(flags.target) ?? []
  if (name === '') throw new ProgramError('--target must be deployment/NAME')
  await using closing = new AsyncDisposableStack()
  const where = { kubeconfig: flags.kubeconfig, master: flags.master }
  const client = await openNodeClient(invocation, closing, { name: NAME, where })
  while (!signal.aborted) {
    await scale(client, { namespace: flags.namespace, name, configmap: flags.configmap }, signal).then(
      (replicas) => replicas !== undefined && log.info('Scaled the target workload', { name, replicas }),
      (error: unknown) => !signal.aborted && log.error(error, 'Failed to scale the target workload', { name }),
    )
    await sleep(clock, flags['poll-period-seconds'] * 1000, signal).catch(() => undefined)
  }
  return 0
}

/** The new number of replicas; undefined if it was correct. */
async function scale(
  client: ApiClient,
  { namespace, name, configmap }: { readonly namespace: string; readonly name: string; readonly configmap: string },
  signal: AbortSignal,
): Promise<number | undefined> {
  const { data = {} } = await client.get(ConfigMaps, { namespace, name: configmap }, { signal })
  const { items } = await client.list(Nodes, { signal })
  const replicas = replicasFor(JSON.parse(data['linear'] ?? '{}') as Linear, sizeOf(items))
  const { spec } = await client.get(Deployments, { namespace, name }, { signal })
  if (spec.replicas === replicas) return undefined
  const value = { spec: { replicas } }
  await client.patch(Deployments, { namespace, name, subresource: 'scale' }, { type: 'merge', value }, { signal })
  return replicas
}

/** Upstream's text. */
export interface Linear {
  readonly coresPerReplica?: number
  readonly nodesPerReplica?: number
  readonly min?: number
  readonly max?: number
  readonly preventSinglePointFailure?: boolean
}

export interface ClusterSize {
  readonly nodes: number
  readonly cores: number
}

/** The schedulable nodes and their cores. Pure. */
export function sizeOf(nodes: readonly Node[]): ClusterSize {
  const open = nodes.filter(({ spec }) => spec?.unschedulable !== true)
  const milli = open.map(({ status }) => quantityMilliValue(parseQuantity(status?.allocatable?.['cpu'] ?? '0')))
  return { nodes: open.length, cores: milli.reduce((sum, one) => sum + one, 0) / 1000 }
}

/** Pure. */
export function replicasFor(rule: Linear, { nodes, cores }: ClusterSize): number {
  const { coresPerReplica = 0, nodesPerReplica = 0, min = 1, max = Infinity, preventSinglePointFailure = false } = rule
  const by = (amount: number, each: number): number => (each > 0 ? Math.ceil(amount / each) : 0)
  const least = preventSinglePointFailure && nodes > 1 ? Math.max(2, min) : Math.max(1, min)
  return Math.min(max, Math.max(least, by(cores, coresPerReplica), by(nodes, nodesPerReplica)))
}
