/** What a kubelet says about its node, with upstream's reasons and messages. Pure. */
import type {
  ContainerImage,
  Node,
  NodeCondition,
  NodeFeatures,
  NodeRuntimeHandler,
  NodeStatus,
} from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'
import { GIT_VERSION } from '#model/version.ts'

import { allocatableOf, type Reserved } from './allocatable.ts'

export interface NodeFacts {
  readonly name: string
  readonly addresses: readonly string[]
  readonly capacity: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  /** What pods cannot have. Default: what evictions keep free. */
  readonly reserved?: Reserved
  /** More are not told; -1: no limit. Default: 50. */
  readonly maxImages?: number
  readonly machineId: string
  /** Of the machine, where it has one of its own. Default: as above. */
  readonly systemUuid?: string
  readonly bootId: string
  /** `containerd://2.4.2`. */
  readonly runtime: string
  readonly kernel: string
  readonly osImage: string
  readonly architecture: string
  /** Of the kubelet's own server. */
  readonly port: number
  readonly images: readonly ContainerImage[]
  /** What the runtime says of its handlers. */
  readonly handlers?: readonly NodeRuntimeHandler[]
  /** What the runtime can do; null: it does not say. Default: all of it. */
  readonly features?: NodeFeatures | null
  /** What it can do beside what every node can, by name of the gate. */
  readonly declared?: readonly string[]
  /** What others bring to the node. */
  readonly devices?: Pick<NodeStatus, 'capacity' | 'allocatable'>
  /** Volumes that nobody may detach. Default: not told. */
  readonly volumesInUse?: readonly string[]
  /** Who says where the node is. Default: the kubelet. */
  readonly cloud?: Cloud | undefined
  /** Of its conditions, those that are not as they should be. */
  readonly ills?: readonly Health[]
}

export interface Cloud {
  /** Addresses that the kubelet was told. */
  readonly given: readonly string[]
}

const isSaid = (address: string): boolean => address !== '0.0.0.0' && address !== '::'

/** What the cloud is to find among those it knows. */
function providedIp({ given }: Cloud): Record<string, string> {
  const said = given.filter(isSaid)
  return said.length === 0 ? {} : { 'alpha.kubernetes.io/provided-node-ip': said.join(',') }
}

export interface Health {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/** In the order in which they are written. */
const HEALTHY: readonly Health[] = [
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'kubelet has no disk pressure',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'kubelet has sufficient PID available',
  },
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
]

const PRESSURES: readonly Health[] = [
  {
    type: 'MemoryPressure',
    status: 'True',
    reason: 'KubeletHasInsufficientMemory',
    message: 'kubelet has insufficient memory available',
  },
  { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' },
  {
    type: 'PIDPressure',
    status: 'True',
    reason: 'KubeletHasInsufficientPID',
    message: 'kubelet has insufficient PID available',
  },
]

/** `types`: what it is short of. */
export const pressureIlls = (types: readonly string[]): readonly Health[] =>
  PRESSURES.filter(({ type }) => types.includes(type))

/** More are not told, the largest first. */
const MAX_IMAGES = 50

/** The object with which a kubelet registers its node. */
export function nodeOf(facts: NodeFacts, nowMs: number): Pick<Node, 'metadata' | 'spec' | 'status'> {
  const { name, labels, architecture, cloud } = facts
  return {
    metadata: {
      name,
      labels: {
        'beta.kubernetes.io/arch': architecture,
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': architecture,
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        ...labels,
      },
      annotations: {
        'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
        ...(cloud !== undefined && providedIp(cloud)),
      },
    },
    spec: {},
    status: nodeStatusOf(facts, [], nowMs),
  }
}

/** Every heartbeat says all of it; times of transition stay as long as the status does. */
export function nodeStatusOf(facts: NodeFacts, before: readonly NodeCondition[], nowMs: number): NodeStatus {
  const { name, addresses, cloud, capacity, port, ills = [], handlers, features = ALL_FEATURES } = facts
  const known = cloud !== undefined && cloud.given.length === 0 ? [] : addresses
  return {
    capacity: { ...capacity, ...facts.devices?.capacity },
    allocatable: { ...allocatableOf(capacity, facts.reserved), ...facts.devices?.allocatable },
    conditions: nodeConditions(before, nowMs, ills),
    addresses: [...known.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: name }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
    nodeInfo: {
      machineID: facts.machineId,
      systemUUID: facts.systemUuid ?? facts.machineId,
      bootID: facts.bootId,
      kernelVersion: facts.kernel,
      osImage: facts.osImage,
      containerRuntimeVersion: facts.runtime,
      kubeletVersion: GIT_VERSION,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: facts.architecture,
    },
    images: facts.maxImages === -1 ? [...facts.images] : facts.images.slice(0, facts.maxImages ?? MAX_IMAGES),
    ...(facts.volumesInUse !== undefined && { volumesInUse: [...facts.volumesInUse] }),
    ...(handlers !== undefined && { runtimeHandlers: [...handlers] }),
    ...(features !== null && { features }),
    declaredFeatures: [...DECLARED_FEATURES, ...(facts.declared ?? [])],
  }
}

const ALL_FEATURES: NodeFeatures = { supplementalGroupsPolicy: true }

/**
 * Not ExtendWebSocketsToKubelet: streams are joined to the runtime's as they come, and older runtimes do not know the newest protocol of
 * WebSockets. An API server that does not find it here translates.
 */
const DECLARED_FEATURES = [
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
] as const

export function nodeConditions(
  before: readonly NodeCondition[],
  nowMs: number,
  ills: readonly Health[] = [],
): NodeCondition[] {
  const now = timeOf(nowMs)
  return HEALTHY.map((healthy) => {
    const { type, status, reason, message } = ills.find((ill) => ill.type === healthy.type) ?? healthy
    const known = before.find((condition) => condition.type === type)
    return {
      type,
      status,
      lastHeartbeatTime: now,
      lastTransitionTime: known?.status === status ? known.lastTransitionTime : now,
      reason,
      message,
    }
  })
}
