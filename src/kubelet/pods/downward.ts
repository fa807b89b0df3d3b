/** What a pod may be told of itself: its fields, and what its containers ask for. Pure. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { isZeroQuantity, parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'
import type { ResourceList } from '#model/resource-lists.ts'

export interface Addresses {
  readonly hostIps: readonly string[]
  readonly podIps: readonly string[]
}

/** `metadata.labels['app']`, `status.podIP`. Throws for what no pod has. */
export function fieldText({ metadata, spec }: Pod, path: string, { hostIps, podIps }: Addresses): string {
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

/** One line for each, in order of keys. */
function mapText(map: Readonly<Record<string, string>> = {}): string {
  const lines = Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? '')}`)
  return lines.join('\n')
}

/** `limits.cpu` in units of `divisor`, rounded up. Who has no limit is limited by the node. */
export function resourceText(
  container: Container | EphemeralContainer,
  { resource, divisor = '0' }: { readonly resource: string; readonly divisor?: string },
  allocatable: ResourceList,
): string {
  const [part = '', name = ''] = splitOnce(resource)
  const isKnown = RESOURCES.has(name) || name.startsWith('hugepages-')
  if (!isKnown || (part !== 'limits' && part !== 'requests')) {
    throw new Error(`unsupported container resource : ${resource}`)
  }
  const own = container.resources?.[part]?.[name]
  const amount = parseQuantity(own ?? (part === 'limits' ? (allocatable[name] ?? '0') : '0'))
  const asked = parseQuantity(divisor)
  const unit = isZeroQuantity(asked) ? parseQuantity('1') : asked
  const units =
    name === 'cpu' ? quantityMilliValue(amount) / quantityMilliValue(unit) : quantityValue(amount) / quantityValue(unit)
  return String(Math.ceil(units))
}

const RESOURCES: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage'])

function splitOnce(text: string): string[] {
  const at = text.indexOf('.')
  return [text.slice(0, at), text.slice(at + 1)]
}
