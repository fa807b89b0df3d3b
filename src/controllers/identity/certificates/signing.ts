/**
 * Signs approved CSRs with the CA of their signer, or fails them if they request usages that the signer does not grant.
 * All four signers share one CA, or each has its own.
 */
import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { type Authority, loadAuthority } from '#lib/x509/authority.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import type { CertificateRequest } from '#lib/x509/request.ts'
import { timeOf } from '#meta/time.ts'
import {
  CLIENT_SIGNER,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
  LEGACY_SIGNER,
  readCertificateRequest,
  SIGNER_RULES,
} from '#model/certificate-requests.ts'
import { itself, rule } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import type { ControllerSettings } from '../../settings.ts'
import { CERTIFICATE_RETRY, decisionOn } from './requests.ts'

const NAME = 'certificatesigningrequest-signing-controller'
/** The minimum validity; a certificate starts five minutes in the past. */
const SHORTEST_MS = 600_000

export const certificateSigningController: Controller = defineController({
  name: NAME,
  aliases: ['csrsigning'],
  account: 'certificate-controller',
  retry: CERTIFICATE_RETRY,
  watches: [itself(CertificateSigningRequests)],
  rules: [
    rule('certificates.k8s.io', 'certificatesigningrequests', 'get list watch'),
    rule('certificates.k8s.io', 'certificatesigningrequests/status', 'update'),
    rule('certificates.k8s.io', 'signers', 'sign'),
  ],

  async prepare(context) {
    const { settings, log } = context
    const plan = planSigners(settings)
    if (plan === undefined) {
      log.info('Skipping CSR signer controller because no csr cert/key was specified')
      return false
    }
    for (const [signer, files] of plan) {
      const why = `failed to init ${signer} certificate controller`
      if (files !== undefined) await authorityOf(signer, context, why)
      else
        log.info(
          'Skipping CSR signer controller because specific files were specified for other signers and not this one',
          { controller: signer },
        )
    }
    return true
  },

  async reconcile(name, context) {
    const request = context.cache.get(CertificateSigningRequests, name)
    if (request === undefined || (request.status.certificate ?? '') !== '') return
    const { signerName, usages = [] } = request.spec
    if (decisionOn(request) !== 'approved' || hasFailed(request)) return
    const complaintOf = SIGNER_RULES.get(signerName)
    if (complaintOf === undefined || planSigners(context.settings)?.get(signerName) === undefined) return
    const csr = readCertificateRequest(request)
    const complaint = complaintOf(csr, usages)
    if (complaint === undefined) await sign(request, csr, context)
    else await fail(request, complaint, context)
  },
})

function hasFailed({ status }: CertificateSigningRequest): boolean {
  return (status.conditions ?? []).some(({ type, status: value }) => type === 'Failed' && ['', 'True'].includes(value))
}

async function fail(
  request: CertificateSigningRequest,
  message: string,
  { client, clock, signal }: ControllerContext,
): Promise<void> {
  const lastUpdateTime = timeOf(clock.now())
  const failed = {
    type: 'Failed',
    status: 'True',
    reason: 'SignerValidationFailure',
    message,
    lastUpdateTime,
    lastTransitionTime: null,
  }
  const conditions = [...(request.status.conditions ?? []), failed]
  await client.updateStatus(
    CertificateSigningRequests,
    { ...request, status: { ...request.status, conditions } },
    { signal },
  )
}

async function sign(
  request: CertificateSigningRequest,
  csr: CertificateRequest,
  context: ControllerContext,
): Promise<void> {
  const { client, settings, signal } = context
  const { signerName, usages = [], expirationSeconds } = request.spec
  const authority = await authorityOf(signerName, context, 'error auto signing csr')
  const validityMs = lifeOf(expirationSeconds, settings['cluster-signing-duration'])
  const { pem } = authority.sign(csr, { usages, validityMs })
  const certificate = Buffer.from(pem).toString('base64')
  await client.updateStatus(
    CertificateSigningRequests,
    { ...request, status: { ...request.status, certificate } },
    { signal },
  )
}

/** The requested validity within the limits. */
export function lifeOf(requestedSeconds: number | undefined, longestMs: number): number {
  if (requestedSeconds === undefined || requestedSeconds * 1000 > longestMs) return longestMs
  return Math.max(SHORTEST_MS, requestedSeconds * 1000)
}

interface Files {
  readonly certificate: string
  readonly key: string
}

/** The flags of each signer, in upstream's order. */
const FLAGS = [
  [KUBELET_SERVING_SIGNER, 'kubelet-serving'],
  [KUBELET_CLIENT_SIGNER, 'kubelet-client'],
  [CLIENT_SIGNER, 'kube-apiserver-client'],
  [LEGACY_SIGNER, 'legacy-unknown'],
] as const

/** The files of each signer; undefined for a signer without files. Throws if the flags conflict. */
export function planSigners(settings: ControllerSettings): Map<string, Files | undefined> | undefined {
  const filesOf = (certificate: string, key: string): Files | undefined =>
    certificate === '' && key === '' ? undefined : { certificate, key }
  const own = FLAGS.map(([signer, name]) => {
    const files = filesOf(settings[`cluster-signing-${name}-cert-file`], settings[`cluster-signing-${name}-key-file`])
    return [signer, files] as const
  })
  const [certificate, key] = [settings['cluster-signing-cert-file'], settings['cluster-signing-key-file']]
  const isShared = certificate !== '' && key !== ''
  const hasOwn = own.some(([, files]) => files !== undefined)
  if (isShared && hasOwn) throw new Error('cannot specify default and per controller certs at the same time')
  if (hasOwn) return new Map(own)
  return isShared ? new Map(own.map(([signer]) => [signer, { certificate, key }])) : undefined
}

interface LoadedAuthority extends Files {
  readonly authority: Authority
}

/** By certificate file: signers often share one. */
const loadedOf = perRun(() => new Map<string, LoadedAuthority>())

/** Reads the files again. Throws errors prefixed with `why`. */
async function authorityOf(signer: string, context: ControllerContext, why: string): Promise<Authority> {
  const { settings, readFile, clock, random } = context
  const loaded = loadedOf(context)
  const files = planSigners(settings)?.get(signer) ?? { certificate: '', key: '' }
  try {
    const [certificate, key] = await Promise.all([readFile(files.certificate), readFile(files.key)])
    const known = loaded.get(files.certificate)
    if (known?.certificate === certificate && known.key === key) return known.authority
    const found = parseBundle(certificate).length
    if (found !== 1) throw new Error(`expected 1 certificate, found ${found}`)
    const authority = loadAuthority({ certificate, key }, { clock, random })
    loaded.set(files.certificate, { certificate, key, authority })
    return authority
  } catch (cause) {
    const what = `error reading CA cert file ${goQuote(files.certificate)}`
    throw new Error(`${why}: ${what}: ${(cause as Error).message}`, { cause })
  }
}
