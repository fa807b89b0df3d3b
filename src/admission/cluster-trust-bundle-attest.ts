/** ClusterTrustBundleAttest: users who publish trust anchors for a signer need permission for that signer. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'

import { refuse } from './kit/refusal.ts'
import { type Authorize, mayUseSigner } from './kit/signer-access.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface ClusterTrustBundleAttestOptions {
  readonly ask: Authorize
  readonly isEnabled: (gate: string) => boolean
}

type ClusterTrustBundle = KubeObject & { readonly spec: { readonly signerName?: string } }

export function createClusterTrustBundleAttest(options: ClusterTrustBundleAttestOptions): AdmissionPlugin {
  const { ask, isEnabled } = options
  return defineAdmission({
    name: 'ClusterTrustBundleAttest',
    on: ['CREATE', 'UPDATE'],
    resources: ['clustertrustbundles.certificates.k8s.io'],

    validate(attributes) {
      const signerName = (attributes.object as ClusterTrustBundle).spec.signerName ?? ''
      if (signerName === '' || !isEnabled('ClusterTrustBundle') || isHousekeeping(attributes)) return
      return check(ask, attributes, signerName)
    },
  })
}

/** Garbage collection and storage migration change nothing that is attested. */
function isHousekeeping({ object, oldObject }: Attributes): boolean {
  return oldObject !== undefined && semanticEqual(substance(object), substance(oldObject))
}

function substance(object: KubeObject | undefined): unknown {
  if (object === undefined) return undefined
  const { ownerReferences: _, finalizers: __, managedFields: ___, resourceVersion: ____, ...metadata } = object.metadata
  return { ...object, metadata }
}

async function check(ask: Authorize, attributes: Attributes, signerName: string): Promise<void> {
  if (await mayUseSigner(ask, attributes, { verb: 'attest', signerName })) return
  throw refuse(attributes, `user not permitted to attest for signerName ${goQuote(signerName)}`)
}
