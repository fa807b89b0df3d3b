/** Runs scenarios on a server with virtual nodes, several at a time, and records each. */
import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'

import type { NodesPlan, VirtualNodes } from '../virtual-nodes.ts'
import { serveMetrics } from './autoscaling.ts'
import { Recorder, type Recording } from './recording.ts'
import { Act, type Scenario } from './scenario.ts'

const QUIET_MS = 3000
const LOOK_EVERY_MS = 50

/** Long enough for a controller manager to do all there is to do about one pod. */
const PACE_MS = 250
const NODES = [1, 2, 3].map((at) => ({
  name: `virtual-${at}`,
  labels: { 'topology.kubernetes.io/zone': `zone-${at}`, 'topology.kubernetes.io/region': 'region' },
}))

/** The nodes of all scenarios. */
export const NODES_PLAN: NodesPlan = { nodes: NODES, binds: true, paceMs: PACE_MS }
/** Address ranges of Services. */
export const SERVICE_RANGES = '10.0.0.0/20,fd00:99::/112'
export const CONTROLLERS: readonly string[] = ['*', 'bootstrap-signer-controller', 'token-cleaner-controller']
/** Flags of kube-controller-manager, with which both are quicker than clusters let them be. */
export const QUICK = {
  // Unprompted syncs of claims, and so the number of their events, depend on chance.
  'pvclaimbinder-sync-period': 3_600_000,
  'horizontal-pod-autoscaler-sync-period': 2000,
}

/** Recordings by the name of the scenario; those that are alone come last. */
export async function playAll(
  scenarios: readonly Scenario[],
  nodes: VirtualNodes,
  { atOnce, onPlayed = () => undefined }: { readonly atOnce: number; readonly onPlayed?: () => void },
): Promise<Map<string, Recording>> {
  await serveMetrics(nodes.client)
  const recorder = new Recorder(nodes, [...new Set(scenarios.flatMap(({ clusterKinds = [] }) => clusterKinds))])
  const recordings = new Map<string, Recording>()
  const play = async (scenario: Scenario): Promise<void> => {
    recordings.set(scenario.name, await playOne(scenario, nodes, recorder))
    onPlayed()
  }
  try {
    await recorder.synced()
    const [alone, together] = [true, false].map((isAlone) =>
      scenarios.filter((one) => (one.isAlone ?? false) === isAlone),
    )
    await inTurns(together ?? [], atOnce, play)
    await inTurns(alone ?? [], 1, play)
  } finally {
    await recorder.stop()
  }
  return recordings
}

async function inTurns<T>(all: readonly T[], atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const open = [...all]
  const worker = async (): Promise<void> => {
    for (let one = open.shift(); one !== undefined; one = open.shift()) await work(one)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function playOne(scenario: Scenario, nodes: VirtualNodes, recorder: Recorder): Promise<Recording> {
  const { client } = nodes
  const { run, clusterKinds = [], quietMs = QUIET_MS } = scenario
  const ns = namespaceOf(scenario)
  await client.create(Namespaces, { metadata: { name: ns } })
  await untilThere(nodes, ns)
  const act = new Act(nodes, ns)
  const failure = await run(act).then(
    () => [],
    (error: unknown) => [`failed: ${String(error)}`],
  )
  const seen = await recorder.record(ns, quietMs, clusterKinds)
  await scenario.clean?.(act)
  await client.delete(Namespaces, { name: ns }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
  return { ...seen, lost: [...act.lost, ...failure] }
}

function namespaceOf({ name }: Scenario): string {
  return `s-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 50).replace(/-$/, '')
}

/** Pods need an account. */
async function untilThere({ client, clock }: VirtualNodes, namespace: string): Promise<void> {
  const isThere = (): Promise<boolean> =>
    client.get(ServiceAccounts, { namespace, name: 'default' }).then(
      () => true,
      () => false,
    )
  while (!(await isThere())) await sleep(clock, LOOK_EVERY_MS)
}
