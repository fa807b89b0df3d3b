/**
 * Certificates that somebody else signs: requests to give away (`cert generate-csr`), and the folder in which the answers
 * come back (`--custom-certs --cert-dir`), as RKE names the files: `<name>.pem`, `<name>-key.pem`, `<name>-csr.pem`.
 */
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey, isSameKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import type { ClusterFile } from '../cluster.ts'
import type { Bundle, BundleEntry } from './bundle.ts'
import { ETCD_CA, KUBE_CA, type PlannedCertificate, planCertificates, REQUESTHEADER_CA } from './plan.ts'

/** Name of a file of the folder and what it holds. */
export type FolderFiles = ReadonlyMap<string, string>

/** A key and a request for every certificate but the authorities. A key that the folder has already is used again. */
export function makeRequests(cluster: ClusterFile, present: FolderFiles): Map<string, string> {
  const out = new Map<string, string>()
  for (const plan of planCertificates(cluster)) {
    if (plan.purpose === 'authority') continue
    const held = present.get(`${plan.name}-key.pem`)
    const key = held === undefined ? createKey() : parsePrivateKey(held)
    const { commonName, organizations, names } = plan
    out.set(`${plan.name}-key.pem`, held ?? keyToPem(key))
    out.set(
      `${plan.name}-csr.pem`,
      createRequest({ commonName, organizations, names, usages: usagesOf(plan) }, key).pem,
    )
  }
  return out
}

function usagesOf({ purpose }: PlannedCertificate): string[] {
  const base = ['digital signature', 'key encipherment', 'client auth']
  return purpose === 'peer' ? [...base, 'server auth'] : base
}

export interface CustomBundle {
  readonly bundle: Bundle
  /** What the operator must add or repair; sentences. */
  readonly faults: readonly string[]
}

/**
 * The folder's certificates as the beginning of a bundle; `completeBundle` makes what is missing, where the folder has the
 * key of the authority. etcd's authority is the cluster's where the folder has none, as with RKE.
 */
export function readCustomBundle(cluster: ClusterFile, files: FolderFiles): CustomBundle {
  const plans = planCertificates(cluster)
  const bundle: Record<string, BundleEntry> = {}
  const faults: string[] = []
  const wrong = new Set<string>()
  for (const plan of plans) {
    const before = faults.length
    const found = readPair(plan, files, faults)
    if (found) bundle[plan.name] = found
    if (faults.length > before) wrong.add(plan.name)
  }
  const authority = bundle[KUBE_CA]
  const hasEtcd = plans.some(({ name }) => name === ETCD_CA)
  if (hasEtcd && !bundle[ETCD_CA] && !wrong.has(ETCD_CA) && authority) bundle[ETCD_CA] = authority
  for (const { name, signer } of plans) {
    if (bundle[name] || wrong.has(name)) continue
    if (name === KUBE_CA || name === REQUESTHEADER_CA) {
      faults.push(`"${name}.pem" is missing: the certificate of the authority`)
    } else if (bundle[signer]?.keyPEM === '') {
      faults.push(`"${name}.pem" is missing, and there is no key of "${signer}" to make it with`)
    }
  }
  return { bundle, faults }
}

function readPair(plan: PlannedCertificate, files: FolderFiles, faults: string[]): BundleEntry | undefined {
  const [certificateFile, keyFile] = [`${plan.name}.pem`, `${plan.name}-key.pem`]
  const certificatePEM = files.get(certificateFile)
  const keyPEM = files.get(keyFile) ?? ''
  if (certificatePEM === undefined) return undefined
  if (keyPEM === '' && plan.purpose !== 'authority') {
    faults.push(`"${keyFile}" is missing: the key of "${certificateFile}"`)
    return undefined
  }
  try {
    const certificate = parseCertificate(certificatePEM)
    if (keyPEM !== '' && !isSameKey(certificate.publicKey, parsePrivateKey(keyPEM))) {
      faults.push(`"${keyFile}" is not the key of "${certificateFile}"`)
      return undefined
    }
    if (plan.purpose === 'authority' && !certificate.isAuthority) {
      faults.push(`"${certificateFile}" is not the certificate of an authority`)
      return undefined
    }
    return { certificatePEM, keyPEM, custom: true }
  } catch (error) {
    faults.push(`"${certificateFile}" or its key cannot be read: ${(error as Error).message}`)
    return undefined
  }
}
