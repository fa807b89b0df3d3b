/** Describes nodes: conditions, capacity, pods and allocated resources. */
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

import { type DescribedKinds, describes } from './describer.ts'
import { eventRows, eventsAbout } from './events.ts'
import type { RelatedObjects } from './related.ts'
import { nested, type Part, type Row, type Table, tableOf, unlessEmpty } from './rows.ts'
import { labelRows, sortedBy, taintRow } from './sections.ts'
import { dateIfAny, dateText, sinceText } from './times.ts'

export const NODE_KINDS: DescribedKinds = { Node: describes('v1/nodes', nodeRows, nodeEvents) }

async function nodeRows(node: Node, around: RelatedObjects): Promise<Part[]> {
  const { metadata, spec, status } = node
  const addresses = (status.addresses ?? []).map(({ type, address }) => [type, address] as const)
  return [
    ['Name', metadata.name],
    ['Roles', rolesText(node)],
    ...labelRows(node),
    ['CreationTimestamp', dateText(metadata.creationTimestamp)],
    taintRow(spec.taints),
    ['Unschedulable', spec.unschedulable === true],
    await leaseRow(node, around),
    ['Conditions', conditionTable(node)],
    ['Addresses', addresses],
    ['Capacity', unlessEmpty(sortedAmounts(status.capacity))],
    ['Allocatable', unlessEmpty(sortedAmounts(status.allocatable))],
    ['Node-Local ResourceSlices', await sliceRows(node, around)],
    ['System Info', SYSTEM.map(([label, field]) => [label, (status.nodeInfo?.[field] as string | undefined) ?? ''])],
    ['PodCIDR', spec.podCIDR || undefined],
    ['PodCIDRs', spec.podCIDRs?.join(',') || undefined],
    ['ProviderID', spec.providerID || undefined],
    ...(await podRows(node, around)),
  ]
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

async function leaseRow({ metadata }: Node, around: RelatedObjects): Promise<Row> {
  try {
    const { spec } = await around.get<Lease>('coordination.k8s.io/v1/leases', 'kube-node-lease', metadata.name ?? '')
    return [
      'Lease',
      [
        ['HolderIdentity', spec?.holderIdentity ?? '<unset>'],
        ['AcquireTime', dateIfAny(spec?.acquireTime) ?? '<unset>'],
        ['RenewTime', dateIfAny(spec?.renewTime) ?? '<unset>'],
      ],
    ]
  } catch (error) {
    return ['Lease', `Failed to get lease: ${(error as Error).message}`]
  }
}

const CONDITION_COLUMNS = ['Type', 'Status', 'LastHeartbeatTime', 'LastTransitionTime', 'Reason', 'Message']

function conditionTable({ status }: Node): Table | undefined {
  const rows = (status.conditions ?? []).map((one) => [
    `${one.type} `,
    `${one.status} `,
    `${dateText(one.lastHeartbeatTime)} `,
    `${dateText(one.lastTransitionTime)} `,
    `${one.reason ?? ''} `,
    one.message,
  ])
  return tableOf(CONDITION_COLUMNS, rows)
}

type Amounts = Readonly<Record<string, string>> | undefined

const MAX_POOLS = 10

/** The pools of devices on the node; undefined without any. */
async function sliceRows({ metadata }: Node, around: RelatedObjects): Promise<Part[] | undefined> {
  const fields = `spec.nodeName=${metadata.name}`
  const slices = await around
    .list<ResourceSlice>('resource.k8s.io/v1/resourceslices', '', { fields })
    .catch((): ResourceSlice[] => [])
  if (slices.length === 0) return undefined
  const pools = Map.groupBy(slices, ({ spec }) => `${spec.driver}/${spec.pool.name}`)
  const rows = sortedBy([...pools], ([key]) => key).map(([, ofPool]) => {
    const devices = ofPool.reduce((sum, { spec }) => sum + (spec.devices ?? []).length, 0)
    return [ofPool[0]?.spec.driver, ofPool[0]?.spec.pool.name, ofPool.length, devices]
  })
  return [
    { columns: ['Driver', 'Pool', 'Slices', 'Devices'], rows: rows.slice(0, MAX_POOLS) },
    rows.length > MAX_POOLS ? `...and ${rows.length - MAX_POOLS} more pools` : undefined,
  ]
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

const NO_AMOUNT = quantityOf(0)

/** `100m (5%)`: the share of the allocatable amount in whole percent. */
function shareText(amount: Quantity = NO_AMOUNT, whole: Quantity, value: (amount: Quantity) => number): string {
  const all = value(whole)
  const percent = all === 0 ? 0 : Math.trunc((value(amount) / all) * 100)
  return `${quantityText(amount)} (${percent}%)`
}

async function podRows(node: Node, around: RelatedObjects): Promise<Part[]> {
  const fields = `spec.nodeName=${node.metadata.name},status.phase!=Failed,status.phase!=Succeeded`
  let pods: Pod[]
  try {
    pods = await around.list<Pod>('v1/pods', '', { fields })
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== 'Forbidden') throw error
    return [['Pods', 'not authorized']]
  }
  const { allocatable = {}, capacity = {} } = node.status
  const there = Object.keys(allocatable).length > 0 ? allocatable : capacity
  return [
    ['Non-terminated Pods', `(${pods.length} in total)`],
    nested(podTable(pods, there, around.nowMs)),
    ['Allocated resources', totalRows(pods, there)],
  ]
}

function amount(list: Amounts, name: string): Quantity {
  return parseQuantity(list?.[name] ?? '0')
}

const POD_COLUMNS = ['Namespace', 'Name', '', 'CPU Requests', 'CPU Limits', 'Memory Requests', 'Memory Limits', 'Age']

function podTable(pods: readonly Pod[], there: Amounts, nowMs: number): Table {
  const [cpu, memory] = [amount(there, 'cpu'), amount(there, 'memory')]
  const rows = pods.map((pod) => {
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
  })
  return { columns: POD_COLUMNS, rows }
}

function totalOf(lists: readonly ReadonlyMap<string, Quantity>[]): Map<string, Quantity> {
  const total = new Map<string, Quantity>()
  for (const [name, added] of lists.flatMap((list) => [...list])) {
    const known = total.get(name)
    total.set(name, known === undefined ? added : addQuantities(known, added))
  }
  return total
}

/** Resources that the table always lists. */
const STANDARD = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

function totalRows(pods: readonly Pod[], there: Amounts): Part[] {
  const requests = totalOf(pods.map((pod) => podRequests(pod)))
  const limits = totalOf(pods.map((pod) => podLimits(pod)))
  const others = Object.keys(there ?? {}).sort()
  const huge = others.filter((name) => name.startsWith('hugepages-'))
  const shares = ['cpu', 'memory', 'ephemeral-storage', ...huge].map((name) => {
    const value = name === 'cpu' ? quantityMilliValue : quantityValue
    const whole = amount(there, name)
    return [name, shareText(requests.get(name), whole, value), shareText(limits.get(name), whole, value)]
  })
  const plain = others
    .filter((name) => !STANDARD.has(name) && !huge.includes(name))
    .map((name) => [name, quantityText(requests.get(name) ?? NO_AMOUNT), quantityText(limits.get(name) ?? NO_AMOUNT)])
  return [
    '(Total limits may be over 100 percent, i.e., overcommitted.)',
    { columns: ['Resource', 'Requests', 'Limits'], rows: [...shares, ...plain] },
  ]
}

/** Controllers record events with the uid of a node, kubelets with its name. */
async function nodeEvents({ metadata }: Node, around: RelatedObjects): Promise<Part[]> {
  const { name = '', uid } = metadata
  const [byUid, byName] = await Promise.all([
    eventsAbout(around, { name, uid, kind: 'Node' }),
    eventsAbout(around, { name, uid: name, kind: 'Node' }),
  ])
  return eventRows([...byUid, ...byName], around.nowMs)
}
