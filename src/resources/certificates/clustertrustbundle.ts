/** ClusterTrustBundle: certificates to trust, on their own or as those of a signer; for everybody in the cluster. */
import { ClusterTrustBundles as AlphaClusterTrustBundles } from '#apis/certificates/v1alpha1.ts'
import { type ClusterTrustBundle, ClusterTrustBundles } from '#apis/certificates/v1beta1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { type FieldError, invalid, tooLong } from '#meta/validation/field-error.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateSignerName } from '#model/pod-spec/signer-names.ts'

import { findPemBlocks, type FoundBlock } from './pem-blocks.ts'

const FIELD = 'spec.trustBundle'
const MAX_BUNDLE_BYTES = 1 << 20

export const clusterTrustBundle: Resource<ClusterTrustBundle> = defineResource<ClusterTrustBundle>({
  kind: ClusterTrustBundles,
  otherVersions: [{ kind: AlphaClusterTrustBundles }],
  metadataRules: { update: ['whole', 'change'] },
  // What it may be called depends on the signer: see validateNames.
  nameRule: () => [],
  validate: (bundle) => [...validateNames(bundle), ...validateBundle(bundle.spec.trustBundle)],
  validateUpdate: (next, old) => [
    ...validateNames(next),
    // A bundle that stays is not parsed again: parsers change, and it has been accepted once.
    ...(next.spec.trustBundle === old.spec.trustBundle ? [] : validateBundle(next.spec.trustBundle)),
    ...immutable('spec.signerName', next.spec.signerName ?? '', old.spec.signerName ?? ''),
  ],
  fieldSelectors: { 'spec.signerName': ({ spec }) => spec.signerName ?? '' },
  unknownField: (label) => `field label not supported: ${label}`,
  columns: [nameColumn, { name: 'SignerName', value: ({ spec }) => spec.signerName || '<none>' }],
  putNeedsVersion: true,
})

/** `example.com/signer` has bundles called `example.com:signer:name`; other names have no colon. */
function validateNames({ metadata, spec: { signerName = '' } }: ClusterTrustBundle): FieldError[] {
  const { name = '', generateName = '' } = metadata
  return [
    ...(generateName === ''
      ? []
      : complaining('metadata.generateName', generateName, nameComplaints(generateName, true, signerName))),
    ...(name === '' ? [] : complaining('metadata.name', name, nameComplaints(name, false, signerName))),
    ...(signerName === '' ? [] : validateSignerName('spec.signerName', signerName)),
  ]
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

/** Certificates of authorities and nothing else, each once, at least one. The value is never shown. */
function validateBundle(text: string): FieldError[] {
  if (byteLength(text) > MAX_BUNDLE_BYTES) return [tooLong(FIELD, MAX_BUNDLE_BYTES)]
  const complaints: string[] = []
  const places = new Map<string, number[]>()
  for (const [at, block] of [...findPemBlocks(text)].entries()) {
    const complaint = blockComplaint(block)
    const key = block.bytes.toString('latin1')
    if (complaint !== undefined) complaints.push(`entry ${at} ${complaint}`)
    else places.set(key, [...(places.get(key) ?? []), at])
  }
  if (complaints.length === 0 && places.size === 0) complaints.push('at least one trust anchor must be provided')
  if (complaints.length === 0) {
    const repeated = [...places.values()].filter(({ length }) => length > 1)
    complaints.push(...repeated.map((indices) => `duplicate trust anchor (indices [${indices.join(' ')}])`))
  }
  return complaints.map((complaint) => invalid(FIELD, '<value omitted>', complaint))
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
