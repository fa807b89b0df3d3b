/**
 * Implements ClusterApi for `hyperkube build` with an API client: changes Nodes, applies manifests and stores the
 * cluster's state in a Secret.
 */
import { ConfigMaps, type Node, Nodes, Pods, type Secret, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { until } from '#client/until.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import type { DesiredNode, DesiredTaint } from '../desired.ts'
import { type DroppedMarks, isSameTaint } from '../plan/node-difference.ts'
import { CORDONED } from '../plan/node-waves.ts'
import type { ObservedNode } from '../plan/observed.ts'
import type { DrainMode } from '../plan/step.ts'
import type { ClusterApi } from './cluster-api.ts'

export interface ClusterApiOptions {
  /** Connects on first use, because the server may not exist yet. */
  readonly client: () => Promise<ApiClient>
  /** Drains a node with the settings of the file, or of all pods. */
  readonly evict: (node: string, mode: Exclude<DrainMode, 'cordon'>, signal: AbortSignal) => Promise<void>
  /** Like kubectl, for any kinds of objects. */
  readonly change: (verb: 'apply' | 'delete', manifest: string, signal: AbortSignal) => Promise<void>
}

/** RKE's Secret with the state. */
const STATE = { namespace: 'kube-system', name: 'full-cluster-state' }
const STATE_KEY = 'full-cluster-state'
/** The time limit for registration and network of a node. */
const READY_MS = 180_000
const MAX_TRIES = 10
const ASK_MS = 30_000

/** The label of ConfigMaps that record addons. */
const ADDON_LABEL = 'build.hyperkube.io/addon'

export function clusterApi({ client: open, evict, change: kubectl }: ClusterApiOptions): ClusterApi {
  const change = async (name: string, alter: (node: Node) => object, signal: AbortSignal): Promise<void> => {
    const client = await open()
    await until({ client, kind: Nodes, name, timeoutMs: READY_MS, signal }, (node) => node !== undefined)
    // A new kubelet updates its node often, which causes conflicts.
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

/** RKE's numbers: concurrent writes, and page size. */
const REWRITERS = 5
const PAGE = 250
const TRIES = 5

/** Namespaces with pods of the cluster itself. */
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

/** On a conflict another writer has rewritten it, possibly with the old key, so it is written again. */
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

/** The builder's records in the cluster. */
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
      const key = { namespace: STATE.namespace, name }
      if (manifest === '') return client.delete(ConfigMaps, key, { signal }).catch(unlessMissing)
      const metadata = { ...key, labels: { [ADDON_LABEL]: 'true' } }
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

/** Other taints, such as those of node conditions, stay unchanged. */
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
