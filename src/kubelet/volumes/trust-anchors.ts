/** Combines the certificates of ClusterTrustBundles into one PEM text, without duplicates, in stable order. Pure. */
import type { ClusterTrustBundle } from '#apis/certificates/v1beta1.ts'
import { goQuote } from '#lib/go/text.ts'
import { encodePem, parsePem } from '#lib/x509/pem.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'

import type { TrustSelection } from './volume-plugin.ts'

export function trustAnchors(bundles: readonly ClusterTrustBundle[], request: TrustSelection): string {
  const { name, isOptional } = request
  const found = bundles.filter((bundle) =>
    name === undefined ? isOfSigner(bundle, request) : bundle.metadata.name === name,
  )
  if (found.length === 0 && !isOptional) {
    throw new Error(
      name === undefined
        ? 'combination of signerName and labelSelector matched zero ClusterTrustBundles'
        : `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io ${goQuote(name)} not found`,
    )
  }
  const anchors = found.flatMap(({ spec }) => parsePem(spec.trustBundle)).map(({ bytes }) => bytes.toString('base64'))
  return [...new Set(anchors)]
    .sort()
    .map((anchor) => encodePem('CERTIFICATE', Buffer.from(anchor, 'base64')))
    .join('')
}

/** An absent selector matches nothing, an empty one everything. */
function isOfSigner({ metadata, spec }: ClusterTrustBundle, { signerName, labelSelector }: TrustSelection): boolean {
  return spec.signerName === signerName && matchesLabels(asSelector(labelSelector), metadata.labels ?? {})
}
