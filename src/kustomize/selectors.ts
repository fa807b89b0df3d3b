/** Selects resources for patches and replacements by id patterns, labels and annotations. */
import { compileRegexp } from '#lib/regexp.ts'
import { matchesLabels, parseSelector } from '#meta/labels.ts'

import { effectiveNamespace, type Gvk, type Id } from './ids.ts'
import type { Resource, Resources } from './resource.ts'

export interface ResourceSelector extends Partial<Gvk> {
  readonly name?: string
  readonly namespace?: string
  readonly labelSelector?: string
  readonly annotationSelector?: string
}

/** Patterns match whole words; an empty one matches all. Throws RegexpError. */
function fits(pattern: string | undefined, text: string): boolean {
  if (pattern === undefined || pattern === '') return true
  return compileRegexp(`^(?:${pattern.replace(/^\^/, '').replace(/\$$/, '')})$`).test(text)
}

export function fitsGvk(selector: ResourceSelector, { group, version, kind }: Gvk): boolean {
  return fits(selector.group, group) && fits(selector.version, version) && fits(selector.kind, kind)
}

export function fitsId(selector: ResourceSelector, id: Id): boolean {
  return fitsGvk(selector, id) && fits(selector.name, id.name) && fits(selector.namespace, effectiveNamespace(id))
}

/** Throws an Error for an invalid selector. */
export function fitsMarks(selector: ResourceSelector, resource: Resource): boolean {
  const { labelSelector = '', annotationSelector = '' } = selector
  return (
    (annotationSelector === '' || matchesLabels(parseSelector(annotationSelector), resource.annotations)) &&
    (labelSelector === '' || matchesLabels(parseSelector(labelSelector), resource.labels))
  )
}

/** By original or current name and namespace. */
export function selected({ list }: Resources, selector: ResourceSelector): Resource[] {
  return list.filter((resource) => {
    const { id, originalId } = resource
    const isOneOf = (part: (one: Id) => string, pattern: string | undefined): boolean =>
      fits(pattern, part(originalId)) || fits(pattern, part(id))
    return (
      isOneOf(effectiveNamespace, selector.namespace) &&
      isOneOf(({ name }) => name, selector.name) &&
      fitsGvk(selector, id) &&
      fitsMarks(selector, resource)
    )
  })
}
