/**
 * Warnings about new finalizers of custom resources that have no domain in their name, because such names may clash.
 */
import { goQuote } from '#lib/go/text.ts'
import type { KubeObject } from '#meta/object.ts'
import { qualifiedName } from '#meta/validation/names.ts'

const STANDARD: ReadonlySet<string> = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

export function finalizerWarnings({ metadata }: KubeObject, old: KubeObject | undefined): string[] {
  const added = (metadata.finalizers ?? []).filter((name) => old?.metadata.finalizers?.includes(name) !== true)
  return [...new Set(added)].sort().flatMap((name) => {
    const faults = [...qualifiedName(name)]
    if (!name.includes('/') && !STANDARD.has(name)) {
      const how = name.includes('.') ? ' including a path (/)' : ''
      faults.push(
        `prefer a domain-qualified finalizer name${how} to avoid accidental conflicts with other finalizer writers`,
      )
    }
    return faults.map((fault) => `metadata.finalizers: ${goQuote(name)}: ${fault}`)
  })
}
