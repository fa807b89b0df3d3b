/**
 * ResourceQuota: refuses writes beyond the quotas of a namespace. It runs last, so that only admitted objects are
 * charged.
 */
import { ResourceQuotas } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { createDeviceClaimEvaluator } from '#model/quota/device-claims.ts'
import { createCountEvaluator, type Evaluator } from '#model/quota/evaluator.ts'
import { createPodEvaluator } from '#model/quota/pods.ts'
import { serviceEvaluator } from '#model/quota/services.ts'
import { createVolumeClaimEvaluator } from '#model/quota/volume-claims.ts'

import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
import type { LimitedResource } from './check.ts'
import { createLedger, type Ledger, type QuotaWriter } from './ledger.ts'

export interface ResourceQuotaOptions {
  readonly clock: Clock
  readonly isEnabled: (gate: string) => boolean
  readonly writer: QuotaWriter
  readonly limitedResources?: readonly LimitedResource[]
}

/** Kinds that are not stored, and events, which never count. */
const IGNORED = new Set([
  'bindings',
  'componentstatuses',
  'tokenreviews.authentication.k8s.io',
  'selfsubjectreviews.authentication.k8s.io',
  'subjectaccessreviews.authorization.k8s.io',
  'selfsubjectaccessreviews.authorization.k8s.io',
  'localsubjectaccessreviews.authorization.k8s.io',
  'selfsubjectrulesreviews.authorization.k8s.io',
  'events',
  'events.events.k8s.io',
])

const DEVICE_CLAIMS = 'resourceclaims.resource.k8s.io'

export function createResourceQuota(options: ResourceQuotaOptions): AdmissionPlugin {
  const { clock, isEnabled, writer, limitedResources = [] } = options
  const shared = { nowMs: () => clock.now(), isEnabled }
  const evaluators = new Map<string, Evaluator>([
    ['pods', createPodEvaluator(shared)],
    ['services', serviceEvaluator],
    ['persistentvolumeclaims', createVolumeClaimEvaluator(shared)],
  ])
  const evaluatorFor = (attributes: Attributes, name: string): Evaluator | Promise<Evaluator> => {
    const known = evaluators.get(name)
    if (known !== undefined) return known
    if (name === DEVICE_CLAIMS) return createDeviceClaimEvaluator({ ...shared, objects: attributes.objects })
    const { group, plural } = attributes.kind
    const fresh = createCountEvaluator({ group, resource: plural })
    evaluators.set(name, fresh)
    return fresh
  }
  const context = { ledger: createLedger({ writer, clock }), limited: limitedResources, evaluatorFor }
  return defineAdmission({
    name: 'ResourceQuota',
    on: ['CREATE', 'UPDATE'],

    validate(attributes) {
      const { namespace, subresource, operation, kind } = attributes
      if (namespace === '' || kind.plural === 'namespaces') return
      const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
      // Updates and subresources of most kinds never change the usage.
      const known = evaluators.get(name)
      const mayCount = known?.handles(attributes) ?? (subresource === '' && mayGrow(operation, name))
      return mayCount && !IGNORED.has(name) ? check(attributes, name, context) : undefined
    },
  })
}

function mayGrow(operation: string, name: string): boolean {
  return operation === 'CREATE' || name === DEVICE_CLAIMS
}

interface Context {
  readonly ledger: Ledger
  readonly limited: readonly LimitedResource[]
  readonly evaluatorFor: (attributes: Attributes, name: string) => Evaluator | Promise<Evaluator>
}

async function check(attributes: Attributes, name: string, { ledger, limited, evaluatorFor }: Context): Promise<void> {
  const { objects, namespace } = attributes
  if (limited.length === 0 && (await objects.list(ResourceQuotas, namespace)).length === 0) return
  const evaluator = await evaluatorFor(attributes, name)
  await ledger.book(namespace, { attributes, evaluator, limited })
}
