/** Causes of steps: references to objects of any kind, which the asker may not be allowed to get. */
import { preferredKind } from '#apis/kinds.ts'
import { parseGroupResource } from '#meta/kind.ts'
import { splitKey } from '#meta/object.ts'

import type { Finding, Step } from './explanation.ts'
import { HIDDEN, type Reader } from './reader.ts'

/** In the place of a reference. */
const UNSEEN = 'an object that you may not see'

/** Replaces references to objects that the asker may not get, and to kinds that are not known here. */
export async function withVisibleCauses(finding: Finding, reader: Reader): Promise<Finding> {
  const refs = new Set(finding.steps.flatMap(({ because }) => because))
  if (refs.size === 0) return finding
  const visible = new Set<string>()
  await Promise.all(
    Array.from(refs, async (ref) => {
      if (await isVisible(ref, reader)) visible.add(ref)
    }),
  )
  const shown = (step: Step): Step => ({
    ...step,
    because: [...new Set(step.because.map((ref) => (visible.has(ref) ? ref : UNSEEN)))],
  })
  return { ...finding, steps: finding.steps.map(shown) }
}

/** An object that is gone counts as visible if the asker may get one of its name. */
async function isVisible(ref: string, reader: Reader): Promise<boolean> {
  const [, resource = '', key = ''] = /^([^/]+)\/(.+)@\d*$/.exec(ref) ?? []
  const kind = preferredKind(parseGroupResource(resource))
  if (kind === undefined) return false
  const { namespace, name } = splitKey(key)
  return (await reader.get(kind, { ...(kind.namespaced && { namespace }), name })) !== HIDDEN
}
