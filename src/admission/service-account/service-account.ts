/**
 * ServiceAccount: checks that the service account of a pod exists, and adds the account's token and pull secrets to the
 * pod. Upstream's plugin/pkg/admission/serviceaccount, v1.36.
 */
import { type Pod, type ServiceAccount, ServiceAccounts } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import { failure } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'
import { alignServiceAccount } from '#model/pod-spec/defaults.ts'

import { secretNames } from '../kit/pod-references.ts'
import { refuse, refuseEarly } from '../kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from '../plugin.ts'
import { ephemeralSecretComplaint, restrictsSecrets, secretComplaint } from './mountable-secrets.ts'
import { mountToken } from './token-volume.ts'

export interface ServiceAccountOptions {
  readonly clock: Clock
  readonly random: Random
}

const DEFAULT_NAME = 'default'
const MIRROR = 'kubernetes.io/config.mirror'

export function createServiceAccountPlugin(options: ServiceAccountOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'ServiceAccount',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods', 'pods/ephemeralcontainers'],

    mutate(attributes) {
      if (attributes.operation !== 'CREATE' || attributes.subresource !== '') return
      const pod = attributes.object as Pod
      // A kubelet deletes mirror pods that differ from its own version.
      return isMirror(pod) ? checkMirror(attributes, pod) : assign(attributes, pod, options)
    },
    validate(attributes) {
      const pod = attributes.object as Pod
      if (attributes.subresource === 'ephemeralcontainers') {
        return attributes.operation === 'UPDATE' ? checkEphemeral(attributes, pod, options) : undefined
      }
      if (attributes.operation !== 'CREATE') return
      return isMirror(pod) ? checkMirror(attributes, pod) : check(attributes, pod, options)
    },
  })
}

function isMirror({ metadata }: Pod): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, MIRROR)
}

function checkMirror(attributes: Attributes, { spec }: Pod): void {
  if ((spec.serviceAccountName ?? '') !== '') {
    throw refuse(attributes, 'a mirror pod may not reference service accounts')
  }
  if (secretNames(spec).length > 0) throw refuse(attributes, 'a mirror pod may not reference secrets')
  const hasToken = (spec.volumes ?? []).some(({ projected }) =>
    projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined),
  )
  if (hasToken) throw refuse(attributes, 'a mirror pod may not use ServiceAccountToken volume projections')
}

async function assign(attributes: Attributes, { spec }: Pod, options: ServiceAccountOptions): Promise<void> {
  spec.serviceAccountName ||= DEFAULT_NAME
  alignServiceAccount(spec)
  const account = await find(attributes, spec.serviceAccountName, options)
  if (account === undefined) throw missing(attributes, spec.serviceAccountName, refuseEarly)
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) {
    mountToken(spec, options.random)
  }
  if ((spec.imagePullSecrets ?? []).length > 0 || (account.imagePullSecrets ?? []).length === 0) return
  spec.imagePullSecrets = (account.imagePullSecrets ?? []).map(({ name = '' }) => ({ name }))
}

async function check(attributes: Attributes, pod: Pod, options: ServiceAccountOptions): Promise<void> {
  const account = await require(attributes, pod, options)
  const complaint = restrictsSecrets(account) ? secretComplaint(account, pod.spec) : undefined
  if (complaint !== undefined) throw refuse(attributes, complaint)
}

/** Upstream does not return a 403 here. */
async function checkEphemeral(attributes: Attributes, pod: Pod, options: ServiceAccountOptions): Promise<void> {
  const account = await require(attributes, pod, options)
  const complaint = restrictsSecrets(account) ? ephemeralSecretComplaint(account, pod.spec) : undefined
  if (complaint !== undefined) throw failure({ code: 500, message: complaint })
}

async function require(attributes: Attributes, pod: Pod, options: ServiceAccountOptions): Promise<ServiceAccount> {
  const name = pod.spec.serviceAccountName ?? ''
  if (name === '') {
    const path = `${attributes.namespace}/${pod.metadata.name ?? ''}`
    throw refuse(attributes, `no service account specified for pod ${path}`)
  }
  const account = await find(attributes, name, options)
  if (account === undefined) throw missing(attributes, name, refuse)
  return account
}

function missing(attributes: Attributes, name: string, say: typeof refuse): StatusError {
  const path = `${attributes.namespace}/${name}`
  return say(attributes, `error looking up service account ${path}: serviceaccount ${goQuote(name)} not found`)
}

/** The number and interval of look-ups for the account that a controller creates in every new namespace. */
const DEFAULT_TRIES = 10
const WAIT_MS = 100

async function find(
  { objects, namespace, signal }: Attributes,
  name: string,
  { clock, random }: ServiceAccountOptions,
): Promise<ServiceAccount | undefined> {
  for (let tries = name === DEFAULT_NAME ? DEFAULT_TRIES : 1; ; tries--) {
    const found = await objects.get(ServiceAccounts, namespace, name)
    if (found !== undefined || tries <= 1) return found
    await sleep(clock, WAIT_MS + random.int(WAIT_MS), signal)
  }
}
