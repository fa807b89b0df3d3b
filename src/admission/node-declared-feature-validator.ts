/**
 * NodeDeclaredFeatureValidator: refuses updates of a running pod that need a feature its node does not declare. Of
 * upstream's features, only two concern updates (component-helpers/nodedeclaredfeatures, v1.36).
 */
import { type Container, Nodes, type Pod } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { isSidecar } from '#model/pod-spec/walk.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface NodeDeclaredFeatureValidatorOptions {
  readonly isEnabled: (gate: string) => boolean
}

/** By name, in order: the predicate that tells if an update needs the feature. */
const FEATURES: readonly (readonly [name: string, isNeeded: (next: Pod, old: Pod) => boolean])[] = [
  ['InPlacePodLevelResourcesVerticalScaling', ({ spec }, old) => !semanticEqual(spec.resources, old.spec.resources)],
  ['InPlacePodVerticalScalingInitContainers', resizesInitContainer],
]

export function createNodeDeclaredFeatureValidator(options: NodeDeclaredFeatureValidatorOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'NodeDeclaredFeatureValidator',
    on: ['UPDATE'],
    resources: ['pods', 'pods/resize'],

    validate(attributes) {
      const next = attributes.object as Pod
      if ((next.spec.nodeName ?? '') === '' || !options.isEnabled('NodeDeclaredFeatures')) return
      const needed = FEATURES.filter(([, isNeeded]) => isNeeded(next, attributes.oldObject as Pod))
      if (needed.length === 0) return
      return requireFeatures(
        attributes,
        needed.map(([name]) => name),
      )
    },
  })
}

function resizesInitContainer({ spec }: Pod, old: Pod): boolean {
  const changed = (container: Container, at: number): boolean =>
    !isSidecar(container) && !semanticEqual(container.resources, spec.initContainers?.[at]?.resources)
  return (old.spec.initContainers ?? []).some(changed)
}

async function requireFeatures(attributes: Attributes, needed: readonly string[]): Promise<void> {
  const name = (attributes.object as Pod).spec.nodeName ?? ''
  const node = await attributes.objects.get(Nodes, '', name)
  if (node === undefined) throw refuse(attributes, `node ${goQuote(name)} not found`)
  const declared = new Set(node.status?.declaredFeatures)
  const missing = needed.filter((feature) => !declared.has(feature))
  if (missing.length === 0) return
  const why = `pod update requires features ${missing.join(', ')} which are not available on node ${goQuote(name)}`
  throw refuse(attributes, why)
}
