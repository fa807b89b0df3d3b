/** The cluster's API server, asked for nodes and for the one secret of the builder. */
import { ConfigMaps, type Node, Nodes, Pods, type Secret, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { until } from '#client/until.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import type { ClusterApi } from './cluster-api.ts'
import type { DesiredNode, DesiredTaint } from './desired.ts'
import { type DroppedMarks, isSameTaint } from './node-difference.ts'
import { CORDONED } from './node-waves.ts'
import type { ObservedNode } from './observed.ts'
import type { DrainMode } from './step.ts'

export interface ClusterApiOptions {
  /** Opened when it is first asked for: there may be no server yet. */
  readonly client: () => Promise<ApiClient>
  /** Takes pods off a node: as the file says how, or all of them. */
  readonly evict: (node: string, mode: Exclude<DrainMode, 'cordon'>, signal: AbortSignal) => Promise<void>
  /** As kubectl does, whatever kinds there are in it. */
  readonly change: (verb: 'apply' | 'delete', manifest: string, signal: AbortSignal) => Promise<void>
}

/** Where RKE keeps it, too. */
const STATE = { namespace: 'kube-system', name: 'full-cluster-state' }
const STATE_KEY = 'full-cluster-state'
/** For a kubelet to register, and for its network to be there. */
const READY_MS = 180_000
const MAX_TRIES = 10
const ASK_MS = 30_000

/** Of ConfigMaps that remember addons. */
const ADDON_LABEL = 'build.hyperkube.io/addon'

export function clusterApi({ client: open, evict, change: kubectl }: ClusterApiOptions): ClusterApi {
  const change = async (name: string, alter: (node: Node) => object, signal: AbortSignal): Promise<void> => {
    const client = await open()
    await until({ client, kind: Nodes, name, timeoutMs: READY_MS, signal }, (node) => node !== undefined)
    // A kubelet that has just come writes to its node often.
    for (let tries = 1; ; tries++) {
      const node = await client.get(Nodes, { name }, { signal })
      try {
        await client.patch(Nodes, { name }, { type: 'merge', value: alter(node) }, { signal })
        return
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error
      }
    }
  }
  return {
    async nodes() {
      const { items } = await (await open()).list(Nodes, { signal: AbortSignal.timeout(ASK_MS) })
      return new Map(items.map((node) => [node.metadata.name ?? '', observedNode(node)]))
    },
    setNode: (name, desired, dropped, signal) => change(name, (node) => nodePatch(node, desired, dropped), signal),
    async drain(name, mode, signal) {
      const marked = { metadata: { annotations: { [CORDONED]: 'true' } }, spec: { unschedulable: true } }
      await change(name, () => marked, signal)
      if (mode !== 'cordon') await evict(name, mode, signal)
    },
    async ready(name, uncordons, signal) {
      const client = await open()
      const options = { client, kind: Nodes, name, timeoutMs: READY_MS, signal }
      await until(options, (node) => node !== undefined && observedNode(node).isReady)
      const free = { metadata: { annotations: { [CORDONED]: null } }, spec: { unschedulable: null } }
      if (uncordons) await client.patch(Nodes, { name }, { type: 'merge', value: free }, { signal })
    },
    async deleteNode(name, signal) {
      await (await open()).delete(Nodes, { name }, { signal }).catch(unlessMissing)
    },
    apply: (manifest, signal) => kubectl('apply', manifest, signal),
    delete: (manifest, signal) => kubectl('delete', manifest, signal),
    ...records(open),
    ...renewals(open),
  }
}

/** As RKE does it: so many at a time, of so many that are listed at once. */
const REWRITERS = 5
const PAGE = 250
const TRIES = 5

/** Namespaces whose pods are the cluster's own. */
const OWN_NAMESPACES = ['kube-system', 'ingress-nginx']

function renewals(open: ClusterApiOptions['client']): Pick<ClusterApi, 'rewriteSecrets' | 'restartPods'> {
  return {
    async rewriteSecrets(signal) {
      const client = await open()
      let page: string | undefined
      do {
        const { items, metadata } = await client.list(Secrets, { limit: PAGE, signal, ...(page && { continue: page }) })
        const queue = [...items]
        const work = async (): Promise<void> => {
          for (let secret = queue.shift(); secret !== undefined; secret = queue.shift())
            await rewrite(client, secret, signal)
        }
        await Promise.all(Array.from({ length: REWRITERS }, work))
        page = metadata.continue
      } while (page)
    },
    async restartPods(signal) {
      const client = await open()
      for (const namespace of OWN_NAMESPACES) {
        const { items } = await client.list(Pods, { namespace, signal })
        const remade = items.filter(({ metadata }) => metadata.ownerReferences?.some(({ controller }) => controller))
        for (const { metadata } of remade)
          await client.delete(Pods, { namespace, name: metadata.name ?? '' }, { signal }).catch(unlessMissing)
      }
    },
  }
}

/** Whoever changes it meanwhile writes it, too; then it is done again, as they may have used the old key. */
async function rewrite(client: ApiClient, secret: Secret, signal: AbortSignal): Promise<void> {
  const { namespace = '', name = '' } = secret.metadata
  let current: Secret | undefined = secret
  for (let tries = 1; current !== undefined; tries++) {
    try {
      await client.update(Secrets, current, { signal })
      return
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error) || tries === TRIES) throw error
      current = await client.get(Secrets, { namespace, name }, { signal }).catch(unlessMissing)
    }
  }
}

/** What the builder remembers in the cluster. */
function records(
  open: ClusterApiOptions['client'],
): Pick<ClusterApi, 'addons' | 'saveAddon' | 'savedState' | 'saveState'> {
  return {
    async addons() {
      const selection = { namespace: STATE.namespace, labelSelector: ADDON_LABEL }
      const { items } = await (await open()).list(ConfigMaps, selection)
      return new Map(items.map(({ metadata: { name = '' }, data = {} }) => [name, data[name] ?? '']))
    },
    async saveAddon(name, manifest, signal) {
      const client = await open()
      const place = { namespace: STATE.namespace, name }
      if (manifest === '') return client.delete(ConfigMaps, place, { signal }).catch(unlessMissing)
      const metadata = { ...place, labels: { [ADDON_LABEL]: 'true' } }
      await client.apply(ConfigMaps, { metadata, data: { [name]: manifest } }, { ...MANAGER, signal })
    },
    async savedState() {
      const secret = await (await open()).get(Secrets, STATE).catch(unlessMissing)
      const data = secret?.data?.[STATE_KEY]
      return data === undefined ? undefined : Buffer.from(data, 'base64').toString()
    },
    async saveState(state, signal) {
      const data = { [STATE_KEY]: Buffer.from(state).toString('base64') }
      await (await open()).apply(Secrets, { metadata: STATE, type: 'Opaque', data }, { ...MANAGER, signal })
    },
  }
}

const MANAGER = { fieldManager: 'hyperkube-build', force: true }

function unlessMissing(error: unknown): undefined {
  if (!isNotFound(error)) throw error
}

function observedNode({ metadata, spec, status }: Node): ObservedNode {
  return {
    isReady: status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
    isSchedulable: spec?.unschedulable !== true,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    taints: taintsOf(spec?.taints),
  }
}

function taintsOf(taints: NonNullable<Node['spec']>['taints'] = []): DesiredTaint[] {
  return taints.map(({ key, value = '', effect }) => ({ key, value, effect }))
}

/** Taints of others, such as those of the node's condition, stay as they are. */
function nodePatch(node: Node, desired: DesiredNode, dropped: DroppedMarks): object {
  const { labels, annotations, taints } = desired
  const others = (node.spec?.taints ?? []).filter((taint) => {
    const own = { key: taint.key, value: taint.value ?? '', effect: taint.effect }
    const isReplaced = taints.some(({ key, effect }) => key === own.key && effect === own.effect)
    return !isReplaced && !dropped.taints.some((each) => isSameTaint(each, own))
  })
  const wanted = taints.map(({ key, value, effect }) => ({ key, effect, ...(value !== '' && { value }) }))
  return {
    metadata: {
      labels: { ...labels, ...Object.fromEntries(dropped.labels.map((key) => [key, null])) },
      annotations,
      resourceVersion: node.metadata.resourceVersion,
    },
    spec: { taints: [...others, ...wanted] },
  }
}
