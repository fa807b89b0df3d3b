/** The ClusterTrustBundle resource: trusted certificates for the whole cluster, optionally of a signer. */
import { ClusterTrustBundles as AlphaClusterTrustBundles } from '#apis/certificates/v1alpha1.ts'
import { type ClusterTrustBundle, ClusterTrustBundles } from '#apis/certificates/v1beta1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'
import { validateSignerName } from '#model/pod-spec/signer-names.ts'

import { findPemBlocks, type FoundBlock } from './pem-blocks.ts'

const FIELD = fieldPath('spec.trustBundle')
const MAX_BUNDLE_BYTES = 1 << 20

export const clusterTrustBundle: Resource<ClusterTrustBundle> = defineResource<ClusterTrustBundle>({
  kind: ClusterTrustBundles,
  otherVersions: [{ kind: AlphaClusterTrustBundles }],
  metadataRules: { update: ['whole', 'change'] },
  // The name depends on the signer: see validateNames.
  nameRule: () => [],
  validate: (bundle) => [...validateNames(bundle), ...validateBundle(bundle.spec.trustBundle)],
  validateUpdate: (next, old) =>
    collectErrors(
      validateNames(next),
      // An unchanged bundle is not parsed again, because parsers change.
      next.spec.trustBundle !== old.spec.trustBundle && validateBundle(next.spec.trustBundle),
      immutable(fieldPath('spec.signerName'), next.spec.signerName ?? '', old.spec.signerName ?? ''),
    ),
  fieldSelectors: { 'spec.signerName': ({ spec }) => spec.signerName ?? '' },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [nameColumn, { name: 'SignerName', value: ({ spec }) => spec.signerName || '<none>' }],
  putNeedsVersion: true,
})

/** Bundles of `example.com/signer` are named `example.com:signer:name`; other names have no colon. */
function validateNames({ metadata, spec: { signerName = '' } }: ClusterTrustBundle): FieldError[] {
  const { name = '', generateName = '' } = metadata
  return collectErrors(
    generateName !== '' &&
      fieldPath('metadata.generateName').check(generateName, () => nameComplaints(generateName, true, signerName)),
    name !== '' && fieldPath('metadata.name').check(name, () => nameComplaints(name, false, signerName)),
    signerName !== '' && validateSignerName(fieldPath('spec.signerName'), signerName),
  )
}

function nameComplaints(name: string, isPrefix: boolean, signer: string): string[] {
  if (signer === '') {
    if (name.includes(':')) return ['ClusterTrustBundle without signer name must not have ":" in its name']
    return nameIsSubdomain(name, isPrefix)
  }
  const prefix = `${signer.replaceAll('/', ':')}:`
  if (!name.startsWith(prefix)) {
    return [`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`]
  }
  return nameIsSubdomain(name.slice(prefix.length), isPrefix)
}

/** Only distinct authority certificates, at least one. Errors never print the value. */
function validateBundle(text: string): FieldError[] {
  if (byteLength(text) > MAX_BUNDLE_BYTES) return [FIELD.tooLong(MAX_BUNDLE_BYTES)]
  const complaints: string[] = []
  const indexes = new Map<string, number[]>()
  for (const [at, block] of [...findPemBlocks(text)].entries()) {
    const complaint = blockComplaint(block)
    const key = block.bytes.toString('latin1')
    if (complaint !== undefined) complaints.push(`entry ${at} ${complaint}`)
    else indexes.set(key, [...(indexes.get(key) ?? []), at])
  }
  if (complaints.length === 0 && indexes.size === 0) complaints.push('at least one trust anchor must be provided')
  if (complaints.length === 0) {
    const repeated = [...indexes.values()].filter(({ length }) => length > 1)
    complaints.push(...repeated.map((indices) => `duplicate trust anchor (indices [${indices.join(' ')}])`))
  }
  return complaints.map((complaint) => FIELD.invalid('<value omitted>', complaint))
}

function blockComplaint({ label, hasHeaders, bytes }: FoundBlock): string | undefined {
  if (label !== 'CERTIFICATE') return `has bad block type: ${label}`
  if (hasHeaders) return 'has PEM block headers'
  try {
    return parseCertificate(bytes).isAuthority ? undefined : 'does not have the CA bit set'
  } catch {
    return 'does not parse as X.509'
  }
}
