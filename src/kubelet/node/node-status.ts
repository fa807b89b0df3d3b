/** Computes the Node object and its status, with upstream's reasons and messages. Pure. */
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
  /** Reservations. Default: the default eviction thresholds. */
  readonly reserved?: Reserved
  /** Maximum number of images reported; -1: no limit. Default: 50. */
  readonly maxImages?: number
  readonly machineId: string
  /** The UUID of the hardware. Default: the machine ID. */
  readonly systemUuid?: string
  readonly bootId: string
  /** `containerd://2.4.2`. */
  readonly runtime: string
  readonly kernel: string
  readonly osImage: string
  readonly architecture: string
  /** The port of the kubelet API. */
  readonly port: number
  readonly images: readonly ContainerImage[]
  /** Handlers reported by the runtime. */
  readonly handlers?: readonly NodeRuntimeHandler[]
  /** Features of the runtime; null: it does not report them. Default: all. */
  readonly features?: NodeFeatures | null
  /** Declared features beyond those of every node, by feature gate. */
  readonly declared?: readonly string[]
  /** Resources of device plugins. */
  readonly devices?: Pick<NodeStatus, 'capacity' | 'allocatable'>
  /** Volumes that must not be detached. Default: not reported. */
  readonly volumesInUse?: readonly string[]
  /** Set when a cloud controller sets the addresses. */
  readonly cloud?: Cloud | undefined
  /** Conditions that are not healthy. */
  readonly unhealthy?: readonly NodeConditionValue[]
}

export interface Cloud {
  /** Addresses from `--node-ip`. */
  readonly given: readonly string[]
}

const isSpecified = (address: string): boolean => address !== '0.0.0.0' && address !== '::'

/** The annotation from which the cloud controller chooses the addresses. */
function providedIp({ given }: Cloud): Record<string, string> {
  const specified = given.filter(isSpecified)
  return specified.length === 0 ? {} : { 'alpha.kubernetes.io/provided-node-ip': specified.join(',') }
}

export interface NodeConditionValue {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/** In the order in which the kubelet writes them. */
const HEALTHY: readonly NodeConditionValue[] = [
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

const PRESSURES: readonly NodeConditionValue[] = [
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

/** `types` are the pressure conditions that are True. */
export const pressureConditions = (types: readonly string[]): readonly NodeConditionValue[] =>
  PRESSURES.filter(({ type }) => types.includes(type))

/** Images beyond this number, smallest first, are not reported. */
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

/** The whole status. Transition times change only with the status of a condition. */
export function nodeStatusOf(facts: NodeFacts, before: readonly NodeCondition[], nowMs: number): NodeStatus {
  const { name, addresses, cloud, capacity, port, unhealthy = [], handlers, features = ALL_FEATURES } = facts
  const known = cloud !== undefined && cloud.given.length === 0 ? [] : addresses
  return {
    capacity: { ...capacity, ...facts.devices?.capacity },
    allocatable: { ...allocatableOf(capacity, facts.reserved), ...facts.devices?.allocatable },
    conditions: nodeConditions(before, nowMs, unhealthy),
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
 * Without ExtendWebSocketsToKubelet: streams pass through to the runtime, and older runtimes do not support the
 * newest WebSocket protocol. The API server then translates.
 */
const DECLARED_FEATURES = [
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
] as const

export function nodeConditions(
  before: readonly NodeCondition[],
  nowMs: number,
  unhealthy: readonly NodeConditionValue[] = [],
): NodeCondition[] {
  const now = timeOf(nowMs)
  return HEALTHY.map((healthy) => {
    const { type, status, reason, message } = unhealthy.find((condition) => condition.type === healthy.type) ?? healthy
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
