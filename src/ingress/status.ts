/** Writes the addresses of Ingresses to their status. One elected controller does it. */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { type Ingress, Ingresses } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { aborted } from '#lib/abort.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { isNotFound } from '#meta/status.ts'

import { addressesFor, isPublished } from './addresses.ts'
import type { WatchedRoutingState } from './routing-state.ts'

export interface StatusOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly watched: WatchedRoutingState
  /** This pod. */
  readonly pod: { readonly namespace: string; readonly name: string }
  /** The labels of all controller pods. */
  readonly selector: string
  readonly electionId: string
  /** Addresses to publish instead of the nodes'. */
  readonly published: readonly string[]
}

/** Runs until the signal is aborted; the last leader then removes the addresses. */
export async function keepStatus(options: StatusOptions, signal: AbortSignal): Promise<void> {
  const { client, random, log, pod, electionId } = options
  const election = { client, random, namespace: pod.namespace, name: electionId, identity: pod.name }
  const onError = (error: unknown): void =>
    log.error(error, 'Failed to acquire the lease for updating Ingress status', { lease: electionId })
  while (!signal.aborted) {
    try {
      await lead({ ...election, onError }, signal, (leading) => write(options, leading, signal))
    } catch (error) {
      if (!(error instanceof LeadershipLost)) throw error
    }
  }
}

async function write(options: StatusOptions, leading: AbortSignal, ending: AbortSignal): Promise<void> {
  const { client, random, log, watched, pod, selector } = options
  const failed = (error: unknown): void => log.error(error, 'Failed to update Ingress status')
  const stop = new AbortController()
  const pods = new Informer<Pod>({
    client,
    random,
    kind: Pods,
    selection: { namespace: pod.namespace, labelSelector: selector },
    onError: failed,
  })
  const nodes = new Informer<Node>({ client, random, kind: Nodes, transform: onlyAddresses, onError: failed })
  void pods.run(stop.signal)
  void nodes.run(stop.signal)
  try {
    await Promise.race([Promise.all([pods.synced, nodes.synced]), aborted(leading)])
    const say = createStatusWriter(options, () => [...pods.list()], nodes)
    const look = (): void => void say().catch(failed)
    const listener = { added: look, updated: look, deleted: look }
    pods.listen(listener)
    nodes.listen(listener)
    watched.onChange(() => !leading.aborted && look())
    look()
    await aborted(leading)
    if (ending.aborted) await say(pod.name).catch(failed)
  } finally {
    stop.abort()
  }
}

/** One run at a time; changes meanwhile cause another one. */
function createStatusWriter(
  { client, watched, published }: StatusOptions,
  pods: () => readonly Pod[],
  nodes: Informer<Node>,
): (without?: string) => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  const turn = async (without: string | undefined): Promise<void> => {
    const others = pods().filter(({ metadata }) => metadata.name !== without)
    const names = new Map([...nodes.list()].map((node) => [node.metadata.name ?? '', node]))
    const found = addressesFor(others, names)
    const wanted = published.length > 0 && found.length > 0 ? published.map((ip) => ({ ip })) : found
    for (const ingress of watched.ingresses) {
      if (isPublished(ingress, wanted)) continue
      const { namespace, name = '' } = ingress.metadata
      const value = { status: { loadBalancer: { ingress: [...wanted] } } }
      const where = { ...(namespace !== undefined && { namespace }), name, subresource: 'status' }
      await client.patch<Ingress>(Ingresses, where, { type: 'merge', value }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    }
  }
  return (without) => (running = running.catch(() => undefined).then(() => turn(without)))
}

function onlyAddresses({ metadata, status }: Node): Node {
  const { name, uid, resourceVersion } = metadata
  return {
    metadata: { name, uid, resourceVersion },
    spec: {},
    status: { addresses: status?.addresses ?? [] },
  } as unknown as Node
}
