/** Label selectors of objects: as text of a query, and against labels. */
import type { LabelSelector, LabelSelectorRequirement } from '#meta/label-selector.ts'

export type Labels = Readonly<Record<string, string>>

/** `app=web,tier in (a,b),!old`; undefined for a selector that is absent or selects nothing. */
export function selectorQuery(selector: LabelSelector | undefined): string | undefined {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  const parts = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(textOf),
  ]
  return parts.length === 0 ? undefined : parts.join(',')
}

function textOf({ key, operator, values = [] }: LabelSelectorRequirement): string {
  if (operator === 'Exists') return key
  if (operator === 'DoesNotExist') return `!${key}`
  return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`
}

/** Whether a selector of a Service or a workload selects these labels. An empty one selects nothing here. */
export function selects(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  const wanted = Object.entries(matchLabels)
  if (wanted.length === 0 && matchExpressions.length === 0) return false
  return wanted.every(([key, value]) => labels[key] === value) && matchExpressions.every((one) => meets(one, labels))
}

function meets({ key, operator, values = [] }: LabelSelectorRequirement, labels: Labels): boolean {
  const value = labels[key]
  switch (operator) {
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
  }
}

/** The selector of the pods of a workload or a Service. */
export function podSelectorOf(object: { readonly kind?: string; readonly spec?: unknown }): LabelSelector | undefined {
  const { selector } = (object.spec ?? {}) as { selector?: unknown }
  if (typeof selector !== 'object' || selector === null) return undefined
  // Services and ReplicationControllers have a plain map.
  if (object.kind === 'Service' || object.kind === 'ReplicationController') {
    return { matchLabels: selector as Record<string, string> }
  }
  return selector
}
