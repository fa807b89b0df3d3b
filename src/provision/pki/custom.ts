/**
 * Imports certificates from an external authority: signing requests (`cert generate-csr`) and the folder of signed
 * certificates (`--custom-certs --cert-dir`). File names are RKE's: `<name>.pem`, `<name>-key.pem`, `<name>-csr.pem`.
 */
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey, isSameKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import type { ClusterFile } from '../cluster.ts'
import type { Bundle, BundleEntry } from './bundle.ts'
import { ETCD_CA, KUBE_CA, type PlannedCertificate, planCertificates, REQUESTHEADER_CA } from './plan.ts'

/** File names and contents of the folder. */
export type FolderFiles = ReadonlyMap<string, string>

/** A key and a request for every certificate except the authorities. Existing keys are reused. */
export function makeRequests(cluster: ClusterFile, present: FolderFiles): Map<string, string> {
  const out = new Map<string, string>()
  for (const plan of planCertificates(cluster)) {
    if (plan.purpose === 'authority') continue
    const existing = present.get(`${plan.name}-key.pem`)
    const key = existing === undefined ? createKey() : parsePrivateKey(existing)
    const { commonName, organizations, names } = plan
    out.set(`${plan.name}-key.pem`, existing ?? keyToPem(key))
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
  /** The faults that the operator must fix, as sentences. */
  readonly faults: readonly string[]
}

/**
 * The folder's certificates as a partial bundle; `completeBundle` creates missing ones if the folder has the key of the
 * authority. Like RKE, etcd uses the cluster's authority if the folder has none.
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
