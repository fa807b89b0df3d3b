/** Nodes: conditions, what they have, what runs there and how much of them is spoken for. */
import type { Lease } from '#apis/coordination/v1.ts'
import type { Node, NodeSystemInfo, Pod } from '#apis/core/v1.ts'
import type { ResourceSlice } from '#apis/resource/v1.ts'
import {
  addQuantities,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantityOf,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'
import { StatusError } from '#meta/status.ts'
import { podLimits, podRequests } from '#model/pod-resources.ts'
import { sortedAmounts } from '#model/resource-lists.ts'

import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { eventsAbout, putAnnotations, putEvents, putLabels, putTaints } from './sections.ts'
import { dateIfAny, dateText, sinceText } from './times.ts'

export async function describeNode(node: Node, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = node
  page.row(0, 'Name', metadata.name)
  page.row(0, 'Roles', rolesText(node))
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
  page.row(0, 'CreationTimestamp', dateText(metadata.creationTimestamp))
  putTaints(page, spec.taints)
  page.row(0, 'Unschedulable', spec.unschedulable === true)
  await putLease(page, node, around)
  putNodeConditions(page, node)
  page.put(0, 'Addresses:\n')
  page.rows(
    1,
    (status.addresses ?? []).map(({ type, address }) => [type, address]),
  )
  putAmounts(page, 'Capacity', status.capacity)
  putAmounts(page, 'Allocatable', status.allocatable)
  await putSlices(page, node, around)
  putSystem(page, node)
  await putPods(page, node, around)
  if (around.showsEvents) putEvents(page, await nodeEvents(node, around), around.nowMs)
  return page.text()
}

const ROLE_PREFIX = 'node-role.kubernetes.io/'
const ROLE_LABEL = 'kubernetes.io/role'

function rolesText({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return key.slice(ROLE_PREFIX.length)
    return key === ROLE_LABEL ? value : ''
  })
  const named = new Set(roles.filter((role) => role !== ''))
  return named.size === 0 ? '<none>' : [...named].sort().join(',')
}

async function putLease(page: Page, { metadata }: Node, around: Surroundings): Promise<void> {
  try {
    const { spec } = await around.get<Lease>('coordination.k8s.io/v1/leases', 'kube-node-lease', metadata.name ?? '')
    page.put(0, 'Lease:\n')
    page.rows(1, [
      ['HolderIdentity', spec?.holderIdentity ?? '<unset>'],
      ['AcquireTime', dateIfAny(spec?.acquireTime) ?? '<unset>'],
      ['RenewTime', dateIfAny(spec?.renewTime) ?? '<unset>'],
    ])
  } catch (error) {
    page.row(0, 'Lease', `Failed to get lease: ${(error as Error).message}`)
  }
}

function putNodeConditions(page: Page, { status }: Node): void {
  const { conditions = [] } = status
  if (conditions.length === 0) return
  page.put(0, 'Conditions:\n')
  page.table(
    1,
    ['Type', 'Status', 'LastHeartbeatTime', 'LastTransitionTime', 'Reason', 'Message'],
    conditions.map((one) => [
      `${one.type} `,
      `${one.status} `,
      `${dateText(one.lastHeartbeatTime)} `,
      `${dateText(one.lastTransitionTime)} `,
      `${one.reason ?? ''} `,
      one.message,
    ]),
  )
}

type Amounts = Readonly<Record<string, string>> | undefined

function putAmounts(page: Page, label: string, amounts: Amounts): void {
  const rows = sortedAmounts(amounts)
  if (rows.length === 0) return
  page.put(0, `${label}:\n`)
  page.rows(1, rows)
}

const MAX_POOLS = 10

async function putSlices(page: Page, { metadata }: Node, around: Surroundings): Promise<void> {
  const fields = `spec.nodeName=${metadata.name}`
  const slices = await around
    .list<ResourceSlice>('resource.k8s.io/v1/resourceslices', '', { fields })
    .catch((): ResourceSlice[] => [])
  const pools = new Map<string, { driver: string; pool: string; slices: number; devices: number }>()
  for (const { spec } of slices) {
    const key = `${spec.driver}/${spec.pool.name}`
    const known = pools.get(key) ?? { driver: spec.driver, pool: spec.pool.name, slices: 0, devices: 0 }
    pools.set(key, { ...known, slices: known.slices + 1, devices: known.devices + (spec.devices ?? []).length })
  }
  if (pools.size === 0) return
  const keys = [...pools.keys()].sort()
  page.put(0, 'Node-Local ResourceSlices:\n')
  const shown = keys.slice(0, MAX_POOLS).flatMap((key) => pools.get(key) ?? [])
  page.table(
    1,
    ['Driver', 'Pool', 'Slices', 'Devices'],
    shown.map((one) => [one.driver, one.pool, one.slices, one.devices]),
  )
  if (keys.length > MAX_POOLS) page.line(1, `...and ${keys.length - MAX_POOLS} more pools`)
}

const SYSTEM: readonly (readonly [label: string, field: keyof NodeSystemInfo])[] = [
  ['Machine ID', 'machineID'],
  ['System UUID', 'systemUUID'],
  ['Boot ID', 'bootID'],
  ['Kernel Version', 'kernelVersion'],
  ['OS Image', 'osImage'],
  ['Operating System', 'operatingSystem'],
  ['Architecture', 'architecture'],
  ['Container Runtime Version', 'containerRuntimeVersion'],
  ['Kubelet Version', 'kubeletVersion'],
]

function putSystem(page: Page, { spec, status }: Node): void {
  page.put(0, 'System Info:\n')
  for (const [label, field] of SYSTEM) page.row(1, label, (status.nodeInfo?.[field] as string | undefined) ?? '')
  const { podCIDRs = [] } = spec
  page.rows(0, [
    ['PodCIDR', spec.podCIDR || undefined],
    ['PodCIDRs', podCIDRs.length === 0 ? undefined : podCIDRs.join(',')],
    ['ProviderID', spec.providerID || undefined],
  ])
}

const NO_AMOUNT = quantityOf(0)

/** `100m (5%)`: of what can be had there, in whole percent. */
function shareText(amount: Quantity = NO_AMOUNT, whole: Quantity, value: (amount: Quantity) => number): string {
  const all = value(whole)
  const percent = all === 0 ? 0 : Math.trunc((value(amount) / all) * 100)
  return `${quantityText(amount)} (${percent}%)`
}

async function putPods(page: Page, node: Node, around: Surroundings): Promise<void> {
  const fields = `spec.nodeName=${node.metadata.name},status.phase!=Failed,status.phase!=Succeeded`
  let pods: Pod[]
  try {
    pods = await around.list<Pod>('v1/pods', '', { fields })
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== 'Forbidden') throw error
    return page.row(0, 'Pods', 'not authorized')
  }
  const { allocatable = {}, capacity = {} } = node.status
  const there = Object.keys(allocatable).length > 0 ? allocatable : capacity
  putPodRows(page, pods, there, around.nowMs)
  putTotals(page, pods, there)
}

function amount(list: Amounts, name: string): Quantity {
  return parseQuantity(list?.[name] ?? '0')
}

function putPodRows(page: Page, pods: readonly Pod[], there: Amounts, nowMs: number): void {
  const [cpu, memory] = [amount(there, 'cpu'), amount(there, 'memory')]
  page.row(0, 'Non-terminated Pods', `(${pods.length} in total)`)
  page.table(
    1,
    ['Namespace', 'Name', '', 'CPU Requests', 'CPU Limits', 'Memory Requests', 'Memory Limits', 'Age'],
    pods.map((pod) => {
      const [requests, limits] = [podRequests(pod, { useStatus: true }), podLimits(pod, { useStatus: true })]
      return [
        pod.metadata.namespace,
        pod.metadata.name,
        '',
        shareText(requests.get('cpu'), cpu, quantityMilliValue),
        shareText(limits.get('cpu'), cpu, quantityMilliValue),
        shareText(requests.get('memory'), memory, quantityValue),
        shareText(limits.get('memory'), memory, quantityValue),
        sinceText(pod.metadata.creationTimestamp, nowMs),
      ]
    }),
  )
}

function totalOf(lists: readonly ReadonlyMap<string, Quantity>[]): Map<string, Quantity> {
  const total = new Map<string, Quantity>()
  for (const [name, added] of lists.flatMap((list) => [...list])) {
    const known = total.get(name)
    total.set(name, known === undefined ? added : addQuantities(known, added))
  }
  return total
}

/** Not shown by themselves. */
const STANDARD = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

function putTotals(page: Page, pods: readonly Pod[], there: Amounts): void {
  const requests = totalOf(pods.map((pod) => podRequests(pod)))
  const limits = totalOf(pods.map((pod) => podLimits(pod)))
  page.put(0, 'Allocated resources:\n')
  page.put(1, '(Total limits may be over 100 percent, i.e., overcommitted.)\n')
  page.line(1, 'Resource', 'Requests', 'Limits')
  page.line(1, '--------', '--------', '------')
  const others = Object.keys(there ?? {}).sort()
  const huge = others.filter((name) => name.startsWith('hugepages-'))
  for (const name of ['cpu', 'memory', 'ephemeral-storage', ...huge]) {
    const value = name === 'cpu' ? quantityMilliValue : quantityValue
    const whole = amount(there, name)
    page.line(1, name, shareText(requests.get(name), whole, value), shareText(limits.get(name), whole, value))
  }
  for (const name of others.filter((other) => !STANDARD.has(other) && !huge.includes(other))) {
    page.line(1, name, quantityText(requests.get(name) ?? NO_AMOUNT), quantityText(limits.get(name) ?? NO_AMOUNT))
  }
}

/** Controllers know a node by its uid, kubelets by its name. */
async function nodeEvents({ metadata }: Node, around: Surroundings): ReturnType<typeof eventsAbout> {
  const { name = '', uid } = metadata
  const [byUid, byName] = await Promise.all([
    eventsAbout(around, { name, uid, kind: 'Node' }),
    eventsAbout(around, { name, uid: name, kind: 'Node' }),
  ])
  return [...byUid, ...byName]
}
