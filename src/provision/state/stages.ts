/**
 * Divides changes of certificates and keys of a running cluster into stages. Each stage begins after every machine has
 * completed the previous one. Pure.
 */
import { isExpired, parseCertificate } from '#lib/x509/certificate.ts'

import type { ClusterFile } from '../cluster.ts'
import { encryptionConfig, planEncryption, planKeyRotation } from '../components/encryption.ts'
import {
  type Bundle,
  type BundleEntry,
  completeBundle,
  type PkiTools,
  type Rotation,
  rotateBundle,
  settleBundle,
} from '../pki/bundle.ts'
import { planCertificates } from '../pki/plan.ts'

/** The actions after every machine has it. */
export type Afterwards = 'rewrite-secrets' | 'restart-pods'

export interface Stage {
  readonly certificatesBundle: Bundle
  readonly encryptionConfig: string
  readonly after?: Afterwards
}

/** The certificates and keys of the cluster, as far as they exist. */
export interface CurrentMaterial {
  readonly bundle: Bundle
  readonly encryption: string
  /** The encryption configuration of running API servers; undefined without servers and Secrets. */
  readonly built: string | undefined
}

/** The stages that the file requires. */
export function ordinaryStages(
  cluster: ClusterFile,
  { bundle, encryption, built }: CurrentMaterial,
  tools: PkiTools,
): Stage[] {
  const certificatesBundle = completeBundle(cluster, bundle, tools).bundle
  const wanted = encryptionConfig(cluster, encryption, tools.random)
  const keys = built === undefined ? [{ config: wanted, rewrites: false }] : planEncryption(built, wanted)
  return keys.map(({ config, rewrites }) => ({
    certificatesBundle,
    encryptionConfig: config,
    ...(rewrites && { after: 'rewrite-secrets' as const }),
  }))
}

/**
 * New certificates. New authorities take three stages: all machines trust them, then all use certificates from them,
 * then all drop the old ones. Expired authorities are replaced at once.
 */
export function certificateStages(
  cluster: ClusterFile,
  current: CurrentMaterial,
  rotation: Rotation,
  tools: PkiTools,
): Stage[] {
  const { bundle: rotated } = rotateBundle(cluster, current.bundle, rotation, tools)
  const encryption = { encryptionConfig: current.encryption }
  if (rotation.authorities !== true) return [{ certificatesBundle: rotated, ...encryption }]
  const isLate = authoritiesOf(cluster, current.bundle).some(([, { certificatePEM }]) =>
    isExpired(parseCertificate(certificatePEM), tools.clock.now()),
  )
  const whole = isLate ? {} : completeBundle(cluster, current.bundle, tools).bundle
  return [
    ...(isLate ? [] : [{ certificatesBundle: trusting(cluster, whole, rotated), ...encryption }]),
    { certificatesBundle: rotated, ...encryption, after: 'restart-pods' },
    { certificatesBundle: settleBundle(cluster, rotated), ...encryption },
  ]
}

function authoritiesOf(cluster: ClusterFile, bundle: Bundle): [string, BundleEntry][] {
  return planCertificates(cluster)
    .filter(({ purpose }) => purpose === 'authority')
    .flatMap(({ name }): [string, BundleEntry][] => (bundle[name] ? [[name, bundle[name]]] : []))
}

/** The old bundle with the new authorities appended: the first one signs. */
function trusting(cluster: ClusterFile, old: Bundle, rotated: Bundle): Bundle {
  const both = authoritiesOf(cluster, old).map(([name, entry]): [string, BundleEntry] => {
    const fresh = rotated[name]?.certificatePEM
    const pems = [entry.certificatePEM, ...(fresh === undefined ? [] : [fresh])]
    return [name, { ...entry, certificatePEM: pems.map((pem) => parseCertificate(pem).pem).join('') }]
  })
  return { ...old, ...Object.fromEntries(both) }
}

/** A new encryption key for Secrets. */
export function keyStages(cluster: ClusterFile, current: CurrentMaterial, tools: PkiTools): Stage[] {
  const certificatesBundle = completeBundle(cluster, current.bundle, tools).bundle
  return planKeyRotation(current.encryption, tools.random).map(({ config, rewrites }) => ({
    certificatesBundle,
    encryptionConfig: config,
    ...(rewrites && { after: 'rewrite-secrets' as const }),
  }))
}

/** The remaining stages of an interrupted change, completed for the current file, followed by new changes. */
export function stagesAfter(
  {
    cluster,
    current,
    left,
    tools,
  }: { cluster: ClusterFile; current: CurrentMaterial; left: readonly Stage[]; tools: PkiTools },
  change: (cluster: ClusterFile, current: CurrentMaterial, tools: PkiTools) => Stage[] = ordinaryStages,
): Stage[] {
  const begun = left.map((stage) => ({
    ...stage,
    certificatesBundle: completeBundle(cluster, stage.certificatesBundle, tools).bundle,
  }))
  const last = begun.at(-1)
  if (last === undefined) return change(cluster, current, tools)
  const { certificatesBundle: bundle, encryptionConfig: encryption } = last
  const next = change(cluster, { bundle, encryption, built: encryption }, tools)
  const [only] = next
  // A complete bundle stays the same, so the file requires nothing more.
  const wantsNoMore = change === ordinaryStages && next.length === 1 && only?.encryptionConfig === encryption
  return wantsNoMore ? begun : [...begun, ...next]
}
