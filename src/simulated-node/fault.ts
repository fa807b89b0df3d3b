/**
 * Computes the behavior of simulated containers from injected faults and from annotations on pods and nodes.
 * docs/simulated-nodes.md lists them. Pure.
 */
import type { Pod } from '#apis/core/v1.ts'
import { durationMs } from '#lib/go/duration.ts'

/** Selects the containers of a fault; an omitted field matches all. */
export interface FaultSelector {
  readonly node?: string
  readonly namespace?: string
  readonly pod?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly container?: string
  readonly image?: string
}

export type Fault =
  /** The machine is off. When it is back, containers start again. */
  | { readonly type: 'node-down'; readonly node: string }
  /** The node is disconnected; its containers keep running. */
  | { readonly type: 'network-cut'; readonly node: string }
  | ({ readonly type: 'image-pull-error'; readonly message?: string } & FaultSelector)
  /** Exits repeatedly. */
  | ({ readonly type: 'crash'; readonly exitCode?: number; readonly afterMs?: number } & FaultSelector)
  /** Is OOM-killed repeatedly. */
  | ({ readonly type: 'oom'; readonly afterMs?: number } & FaultSelector)
  | ({ readonly type: 'slow-start'; readonly delayMs: number } & FaultSelector)
  /** Probes fail from `afterMs` after the start. */
  | ({ readonly type: 'unhealthy'; readonly afterMs?: number } & FaultSelector)

/** Behavior of one container that differs from its command. */
export interface Behavior {
  readonly exitCode?: number
  readonly runMs?: number
  readonly oomMs?: number
  readonly pullMs?: number
  readonly pullError?: string
  /** Time after the start until probes pass; without probes, until it is ready. */
  readonly readyMs?: number
  /** Time after the start from which probes fail. */
  readonly unhealthyMs?: number
  /** Time it takes to stop. */
  readonly stopMs?: number
  /** Text written to its log at the start. */
  readonly log?: string
}

export const ANNOTATION_PREFIX = 'simulated.hyperkube.io/'
/** On a Node: `down` or `network-cut`. */
export const NODE_FAULT: string = `${ANNOTATION_PREFIX}fault`

export type Silence = 'down' | 'network-cut'

/** The fault in a node's annotations; undefined for unknown values. */
export function silenceOf(annotations: Readonly<Record<string, string>> | undefined): Silence | undefined {
  const fault = annotations?.[NODE_FAULT]
  return fault === 'down' || fault === 'network-cut' ? fault : undefined
}

/** Parsers of annotations; undefined for an invalid value. */
const READERS: Readonly<Record<string, (text: string) => Behavior | undefined>> = {
  'exit-code': (text) => numberOf(text, (exitCode) => ({ exitCode })),
  'run-time': (text) => timeOf(text, (runMs) => ({ runMs })),
  crash: (text) => timeOf(text, (runMs) => ({ runMs, exitCode: 1 })),
  oom: (text) => timeOf(text, (oomMs) => ({ oomMs })),
  'pull-time': (text) => timeOf(text, (pullMs) => ({ pullMs })),
  'pull-error': (pullError) => ({ pullError }),
  'ready-delay': (text) => timeOf(text, (readyMs) => ({ readyMs })),
  'unhealthy-after': (text) => timeOf(text, (unhealthyMs) => ({ unhealthyMs })),
  log: (log) => ({ log }),
  'stop-time': (text) => timeOf(text, (stopMs) => ({ stopMs })),
}

function numberOf(text: string, toBehavior: (value: number) => Behavior): Behavior | undefined {
  return /^\d{1,3}$/.test(text) ? toBehavior(Number(text)) : undefined
}

/** `3s`, `1m30s` or seconds; `true` means at once. */
function timeOf(text: string, toBehavior: (ms: number) => Behavior): Behavior | undefined {
  if (text === 'true') return toBehavior(0)
  try {
    return toBehavior(Math.max(0, /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : durationMs(text)))
  } catch {
    return undefined
  }
}

const NONE: Behavior = {}

/** Annotations for the container: `run-time` for all, `run-time.web` for one, which takes precedence. */
export function annotatedBehavior({ metadata }: Pick<Pod, 'metadata'>, container: string): Behavior {
  const { annotations } = metadata
  if (annotations === undefined) return NONE
  let behavior = NONE
  for (const suffix of ['', `.${container}`]) {
    for (const [name, read] of Object.entries(READERS)) {
      const text = annotations[`${ANNOTATION_PREFIX}${name}${suffix}`]
      if (text !== undefined) behavior = { ...behavior, ...read(text) }
    }
  }
  return behavior
}

/** Faults override annotations, and newer faults override older ones. */
export function behaviorOf(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  container: { readonly name: string; readonly image?: string },
  faults: Iterable<Fault>,
): Behavior {
  let behavior = annotatedBehavior(pod, container.name)
  for (const fault of faults) if (isSelected(fault, pod, container)) behavior = { ...behavior, ...faultBehavior(fault) }
  return behavior
}

/** True if a fault selects the container. */
export function isSelected(
  fault: Fault,
  { metadata, spec }: Pick<Pod, 'metadata' | 'spec'>,
  { name, image }: { readonly name: string; readonly image?: string },
): boolean {
  if (fault.type === 'node-down' || fault.type === 'network-cut') return false
  const is = (wanted: string | undefined, has: string | undefined): boolean => wanted === undefined || wanted === has
  const labels = Object.entries(fault.labels ?? {})
  return (
    is(fault.node, spec.nodeName) &&
    is(fault.namespace, metadata.namespace) &&
    is(fault.pod, metadata.name) &&
    is(fault.container, name) &&
    is(fault.image, image) &&
    labels.every(([key, value]) => metadata.labels?.[key] === value)
  )
}

function faultBehavior(fault: Fault): Behavior {
  switch (fault.type) {
    case 'image-pull-error':
      return { pullError: fault.message ?? '' }
    case 'crash':
      return { runMs: fault.afterMs ?? 0, exitCode: fault.exitCode ?? 1 }
    case 'oom':
      return { oomMs: fault.afterMs ?? 0 }
    case 'slow-start':
      return { readyMs: fault.delayMs }
    case 'unhealthy':
      return { unhealthyMs: fault.afterMs ?? 0 }
    default:
      return NONE
  }
}
