/** Sorts the resources of the output: in input order, or by kind with dependencies first. */
import { gvkText, type Id, KustomizeError, sameGvk } from './ids.ts'
import type { Resources } from './resource.ts'

export interface SortOptions {
  readonly order?: string
  readonly legacySortOptions?: { readonly orderFirst?: readonly string[]; readonly orderLast?: readonly string[] }
}

const FIRST =
  'Namespace ResourceQuota StorageClass CustomResourceDefinition ServiceAccount PodSecurityPolicy Role ClusterRole RoleBinding ClusterRoleBinding ConfigMap Secret Endpoints Service LimitRange PriorityClass PersistentVolume PersistentVolumeClaim Deployment StatefulSet CronJob PodDisruptionBudget'.split(
    ' ',
  )
const LAST = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']

/** Throws KustomizeError for an unknown order. */
export function sortResources(resources: Resources, { order = '', legacySortOptions }: SortOptions): void {
  if (order !== 'fifo' && order !== 'legacy') {
    throw new KustomizeError("the field 'sortOptions.order' must be one of [fifo, legacy]")
  }
  if (order === 'fifo') {
    if (legacySortOptions === undefined) return
    throw new KustomizeError(
      "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'",
    )
  }
  const { orderFirst = [], orderLast = [] } = legacySortOptions ?? { orderFirst: FIRST, orderLast: LAST }
  const ranks = new Map<string, number>([
    ...orderFirst.map((kind, index) => [kind, index - orderFirst.length] as const),
    ...orderLast.map((kind, index) => [kind, index + 1] as const),
  ])
  resources.list.sort((one, other) => compare(one.id, other.id, ranks))
}

function compare(one: Id, other: Id, ranks: ReadonlyMap<string, number>): number {
  if (sameGvk(one, other)) return byText(nameKey(one), nameKey(other))
  const [left, right] = [ranks.get(one.kind) ?? 0, ranks.get(other.kind) ?? 0]
  if (left !== right) return left - right
  const isNamespaces =
    one.kind === 'Namespace' && other.kind === 'Namespace' && (one.group === '' || other.group === '')
  return isNamespaces ? byText(gvkKey(other), gvkKey(one)) : byText(gvkKey(one), gvkKey(other))
}

function byText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

function gvkKey({ group, version, kind }: Id): string {
  return `${group || '~G'}_${version || '~V'}_${kind || '~K'}`
}

function nameKey(id: Id): string {
  return `${gvkText(id)}|${id.namespace || '~X'}|${id.name || '~N'}`
}
