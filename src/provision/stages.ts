/**
 * What certificates and keys a cluster has while they are changed under a cluster that is at work: one stage after the other, each
 * when every machine has the one before. Pure.
 */
import { isExpired, parseCertificate } from '#lib/x509/certificate.ts'

import type { ClusterFile } from './cluster.ts'
import { encryptionConfig, planEncryption, planKeyRotation } from './encryption.ts'
import {
  type Bundle,
  type BundleEntry,
  completeBundle,
  type PkiTools,
  type Rotation,
  rotateBundle,
  settleBundle,
} from './pki/bundle.ts'
import { planCertificates } from './pki/plan.ts'

/** What is done once every machine has it. */
export type Afterwards = 'rewrite-secrets' | 'restart-pods'

export interface Stage {
  readonly certificatesBundle: Bundle
  readonly encryptionConfig: string
  readonly after?: Afterwards
}

/** What the cluster has, as far as it was made. */
export interface Held {
  readonly bundle: Bundle
  readonly encryption: string
  /** The encryption that API servers at work have; undefined: there are none, and no Secrets. */
  readonly built: string | undefined
}

/** What the file wants, from what there is. */
export function ordinaryStages(cluster: ClusterFile, { bundle, encryption, built }: Held, tools: PkiTools): Stage[] {
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
 * New certificates. With new authorities in three stages: all trust the new ones, then all show certificates of them, then nobody
 * trusts the old ones. Authorities that have expired are trusted by nobody anyway, and replaced at once.
 */
export function certificateStages(cluster: ClusterFile, held: Held, rotation: Rotation, tools: PkiTools): Stage[] {
  const { bundle: rotated } = rotateBundle(cluster, held.bundle, rotation, tools)
  const encryption = { encryptionConfig: held.encryption }
  if (rotation.authorities !== true) return [{ certificatesBundle: rotated, ...encryption }]
  const isLate = authoritiesOf(cluster, held.bundle).some(([, { certificatePEM }]) =>
    isExpired(parseCertificate(certificatePEM), tools.clock.now()),
  )
  const whole = isLate ? {} : completeBundle(cluster, held.bundle, tools).bundle
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

/** As it was, with the certificates of the new authorities behind those of the old: what comes first signs. */
function trusting(cluster: ClusterFile, old: Bundle, rotated: Bundle): Bundle {
  const both = authoritiesOf(cluster, old).map(([name, entry]): [string, BundleEntry] => {
    const fresh = rotated[name]?.certificatePEM
    const pems = [entry.certificatePEM, ...(fresh === undefined ? [] : [fresh])]
    return [name, { ...entry, certificatePEM: pems.map((pem) => parseCertificate(pem).pem).join('') }]
  })
  return { ...old, ...Object.fromEntries(both) }
}

/** A new key for Secrets. */
export function keyStages(cluster: ClusterFile, held: Held, tools: PkiTools): Stage[] {
  const certificatesBundle = completeBundle(cluster, held.bundle, tools).bundle
  return planKeyRotation(held.encryption, tools.random).map(({ config, rewrites }) => ({
    certificatesBundle,
    encryptionConfig: config,
    ...(rewrites && { after: 'rewrite-secrets' as const }),
  }))
}

/** What is left of stages that were begun, made whole for the file of today, and what it or somebody wants beyond them. */
export function stagesAfter(
  { cluster, held, left, tools }: { cluster: ClusterFile; held: Held; left: readonly Stage[]; tools: PkiTools },
  change: (cluster: ClusterFile, held: Held, tools: PkiTools) => Stage[] = ordinaryStages,
): Stage[] {
  const begun = left.map((stage) => ({
    ...stage,
    certificatesBundle: completeBundle(cluster, stage.certificatesBundle, tools).bundle,
  }))
  const last = begun.at(-1)
  if (last === undefined) return change(cluster, held, tools)
  const { certificatesBundle: bundle, encryptionConfig: encryption } = last
  const next = change(cluster, { bundle, encryption, built: encryption }, tools)
  const [only] = next
  // What is whole is completed to the same: the file wants nothing more.
  const wantsNoMore = change === ordinaryStages && next.length === 1 && only?.encryptionConfig === encryption
  return wantsNoMore ? begun : [...begun, ...next]
}
