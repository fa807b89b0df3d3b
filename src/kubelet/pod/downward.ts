/** Resolves downward API references to pod fields and container resources. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { isZeroQuantity, parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import type { ResourceList } from '#model/resource-lists.ts'

export interface PodAddresses {
  readonly hostIps: readonly string[]
  readonly podIps: readonly string[]
}

/** Value of `metadata.labels['app']`, `status.podIP`. Throws for unsupported paths. */
export function fieldText({ metadata, spec }: Pod, path: string, { hostIps, podIps }: PodAddresses): string {
  const [, map, key = ''] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? []
  if (map !== undefined) return metadata[map as 'labels' | 'annotations']?.[key] ?? ''
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'metadata.labels': mapText(metadata.labels),
    'metadata.annotations': mapText(metadata.annotations),
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.hostIP': hostIps[0],
    'status.hostIPs': hostIps.join(','),
    'status.podIP': podIps[0],
    'status.podIPs': podIps.join(','),
  }
  if (!Object.hasOwn(fields, path)) throw new Error(`unsupported fieldPath: ${path}`)
  return fields[path] ?? ''
}

/** One line per entry, sorted by key. */
function mapText(map: Readonly<Record<string, string>> = {}): string {
  const lines = Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? '')}`)
  return lines.join('\n')
}

type PodContainer = Container | EphemeralContainer

/** Finds the container that a reference names: `own` unless it names another. Throws for names that no container has. */
export function containerNamed({ spec }: Pod, name: string, own?: PodContainer): PodContainer {
  const { containers, initContainers = [] } = spec
  const found = name === '' ? own : [...containers, ...initContainers].find((container) => container.name === name)
  if (found === undefined) throw new Error(`container ${name} not found`)
  return found
}

/** The limits of containers that have none: those of the pod as a whole, else what the node can allocate. */
export function defaultLimits({ spec: { resources } }: Pod, allocatable: ResourceList): ResourceList {
  const limits: Record<string, string> = {}
  for (const name of RESOURCES) {
    const ofNode = allocatable[name]
    const ofPod = POD_LEVEL_RESOURCES.has(name) ? resources?.limits?.[name] : undefined
    if (ofNode !== undefined) limits[name] = isLimit(ofPod) ? ofPod : ofNode
  }
  return limits
}

const isLimit = (amount: string | undefined): amount is string =>
  amount !== undefined && !isZeroQuantity(parseQuantity(amount))

/** `limits.cpu` in units of `divisor`, rounded up. Huge pages are never overcommitted and have no default limit. */
export function resourceText(
  container: PodContainer,
  { resource, divisor = '0' }: { readonly resource: string; readonly divisor?: string },
  defaults: ResourceList,
): string {
  const [part = '', name = ''] = splitOnce(resource)
  const isSupported = RESOURCES.has(name) || name.startsWith('hugepages-')
  if (!isSupported || (part !== 'limits' && part !== 'requests')) {
    throw new Error(`unsupported container resource : ${resource}`)
  }
  const own = container.resources?.[part]?.[name]
  const amount = parseQuantity((part === 'limits' && !isLimit(own) ? defaults[name] : own) ?? '0')
  const requested = parseQuantity(divisor)
  const unit = isZeroQuantity(requested) ? parseQuantity('1') : requested
  const units =
    name === 'cpu' ? quantityMilliValue(amount) / quantityMilliValue(unit) : quantityValue(amount) / quantityValue(unit)
  return String(Math.ceil(units))
}

/** The resources that have default limits. */
const RESOURCES: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage'])
const POD_LEVEL_RESOURCES: ReadonlySet<string> = new Set(['cpu', 'memory'])

function splitOnce(text: string): string[] {
  const at = text.indexOf('.')
  return [text.slice(0, at), text.slice(at + 1)]
}
