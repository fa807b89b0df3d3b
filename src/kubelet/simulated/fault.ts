/**
 * What is to go wrong, or to go otherwise, as values: faults that somebody injects, and wishes written on pods and nodes as
 * annotations. Both come to the same: how a container is to behave (`Wishes`). docs/simulated-nodes.md lists them. Pure.
 */
import type { Pod } from '#apis/core/v1.ts'
import { durationMs } from '#meta/duration.ts'

/** Which containers a fault is about; what is left out matches all. */
export interface Aim {
  readonly node?: string
  readonly namespace?: string
  readonly pod?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly container?: string
  readonly image?: string
}

export type Fault =
  /** The machine is off: nothing runs and nothing is said. When it comes back, containers start anew. */
  | { readonly type: 'node-down'; readonly node: string }
  /** Nothing gets to the node or from it; what runs there goes on. */
  | { readonly type: 'network-cut'; readonly node: string }
  | ({ readonly type: 'image-pull-error'; readonly message?: string } & Aim)
  /** Ends by itself, again and again. */
  | ({ readonly type: 'crash'; readonly exitCode?: number; readonly afterMs?: number } & Aim)
  /** Killed for want of memory, again and again. */
  | ({ readonly type: 'oom'; readonly afterMs?: number } & Aim)
  | ({ readonly type: 'slow-start'; readonly delayMs: number } & Aim)
  /** Probes fail from so long after the start. */
  | ({ readonly type: 'unhealthy'; readonly afterMs?: number } & Aim)

/** How one container is to behave, where it is not as its command says. */
export interface Wishes {
  readonly exitCode?: number
  readonly runMs?: number
  readonly oomMs?: number
  readonly pullMs?: number
  readonly pullError?: string
  /** So long after its start it answers its probes; without probes, it is ready. */
  readonly readyMs?: number
  /** From then on it does not. */
  readonly unhealthyMs?: number
  /** How long it takes to end when it is told to. */
  readonly stopMs?: number
  /** What it writes to its log when it starts. */
  readonly log?: string
}

export const ANNOTATION_PREFIX = 'simulated.hyperkube.io/'
/** On a Node: `down` or `network-cut`. */
export const NODE_FAULT: string = `${ANNOTATION_PREFIX}fault`

export type Silence = 'down' | 'network-cut'

/** What a node's annotation says; undefined for nothing that is known. */
export function silenceOf(annotations: Readonly<Record<string, string>> | undefined): Silence | undefined {
  const said = annotations?.[NODE_FAULT]
  return said === 'down' || said === 'network-cut' ? said : undefined
}

/** What an annotation wishes for; undefined when it cannot be read. */
const READERS: Readonly<Record<string, (text: string) => Wishes | undefined>> = {
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

function numberOf(text: string, wish: (value: number) => Wishes): Wishes | undefined {
  return /^\d{1,3}$/.test(text) ? wish(Number(text)) : undefined
}

/** `3s`, `1m30s`, or seconds; `true` is at once. */
function timeOf(text: string, wish: (ms: number) => Wishes): Wishes | undefined {
  if (text === 'true') return wish(0)
  try {
    return wish(Math.max(0, /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : durationMs(text)))
  } catch {
    return undefined
  }
}

const NONE: Wishes = {}

/** What is written on the pod for the container: `run-time` for all, `run-time.web` for one, which counts more. */
export function annotatedWishes({ metadata }: Pick<Pod, 'metadata'>, container: string): Wishes {
  const { annotations } = metadata
  if (annotations === undefined) return NONE
  let wishes = NONE
  for (const suffix of ['', `.${container}`]) {
    for (const [name, read] of Object.entries(READERS)) {
      const text = annotations[`${ANNOTATION_PREFIX}${name}${suffix}`]
      if (text !== undefined) wishes = { ...wishes, ...read(text) }
    }
  }
  return wishes
}

/** Faults and annotations together: faults count more, the newest most. */
export function wishesOf(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  container: { readonly name: string; readonly image?: string },
  faults: Iterable<Fault>,
): Wishes {
  let wishes = annotatedWishes(pod, container.name)
  for (const fault of faults) if (hits(fault, pod, container)) wishes = { ...wishes, ...wishesFrom(fault) }
  return wishes
}

/** Whether a fault is about the container. */
export function hits(
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

function wishesFrom(fault: Fault): Wishes {
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
