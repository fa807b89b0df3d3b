/**
 * The `token` subresource of service accounts: issues a signed token with audiences and a lifetime, optionally bound to
 * a pod, node or secret. Upstream's pkg/registry/core/serviceaccount, v1.36.
 */
import type { BoundObjectReference, TokenRequest } from '#apis/authentication/v1.ts'
import { Nodes, type Pod, Pods, Secrets, type ServiceAccount } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Handler } from '#apiserver/dispatch.ts'
import { admitBody } from '#apiserver/handlers/admit.ts'
import { answerWithValue } from '#apiserver/handlers/answers.ts'
import { decodeBody, managerOf, settleNamespace } from '#apiserver/handlers/body.ts'
import { readEntry } from '#apiserver/handlers/get.ts'
import { formOf } from '#apiserver/handlers/view.ts'
import { trackAnswered } from '#apiserver/registry/field-tracking.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import { serviceAccountUser } from '#auth/credentials/service-account-name.ts'
import type { Call } from '#component/requests/call.ts'
import type { TokenSigner } from '#lib/jwt/token.ts'
import { uuid } from '#lib/random.ts'
import { parseApiVersion } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError, conflictError, invalidError, notFoundError } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

export interface ServiceAccountTokenOptions {
  readonly signer: TokenSigner
  /** The first of `--service-account-issuer`. */
  readonly issuer: string
  /** `--api-audiences`: the default audiences of a token. */
  readonly apiAudiences: readonly string[]
  /** `--service-account-max-token-expiration`; 0: no limit. */
  readonly maxExpirationSeconds?: number
  /** `--service-account-extend-token-expiration`: tokens of pods last a year, with a warning after an hour. */
  readonly extendExpiration?: boolean
}

const KIND = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } as const

const DEFAULT_SECONDS = 3600
const MIN_SECONDS = 600
/** The lifetime that kubelets request by default for pods: the odd seven seconds identify it. */
const INJECTED_SECONDS = 3607
const EXTENDED_SECONDS = 365 * 24 * 3600

export function createServiceAccountTokenHandler(options: ServiceAccountTokenOptions): Handler {
  return async (call, view) => {
    const form = formOf(call, 'object', false)
    const query = decodeQuery(createOptionsQuery, call.query)
    const errors = validateCreateOptions(query)
    if (errors.length > 0) throw invalidOptionsError('CreateOptions', errors)
    const sent = (await decodeBody(call, view, KIND, query.fieldValidation)) as TokenRequest
    settleNamespace(sent, call, true)
    sent.spec.expirationSeconds ??= DEFAULT_SECONDS
    const asking = { manager: managerOf(call, query), subresource: 'token' }
    const request = (await trackAnswered(KIND, view.services, asking, sent)) as TokenRequest
    // The existence of objects is not revealed to clients without permission.
    const validate = await admitBody(call, view, KIND, request)
    matchName(request, call)
    const account = (await readEntry(call, view)).object as ServiceAccount
    const nowMs = view.services.clock.now()
    settle(request, account, options, nowMs)
    const problems = validateTokenRequest(request)
    if (problems.length > 0) throw invalidError(KIND, '', problems)
    await validate()
    const bound = await findBound(view.services.objects, request, account)
    shorten(request, call, options)
    const seconds = request.spec.expirationSeconds ?? DEFAULT_SECONDS
    const tokenId = uuid(view.services.random)
    const claims = claimsFor({ request, account, bound, nowMs, options, tokenId })
    call.audit?.annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${tokenId}`)
    request.status = { token: options.signer.sign(claims), expirationTimestamp: timeOf(nowMs + seconds * 1000) }
    const { apiVersion, kind } = { apiVersion: `${KIND.group}/${KIND.version}`, kind: KIND.kind }
    return answerWithValue(view.representation, { ...request, kind, apiVersion }, { form, status: 201 })
  }
}

/** The body may omit the name, but not contain another. */
function matchName({ metadata: { name = '' } }: TokenRequest, { info }: Call): void {
  if (name === '' || name === info.name) return
  const detail = 'must match the service account name if specified'
  throw invalidError(KIND, info.name, [fieldPath('metadata.name').invalid(name, detail)])
}

function settle(
  request: TokenRequest,
  { metadata }: ServiceAccount,
  { apiAudiences }: ServiceAccountTokenOptions,
  nowMs: number,
): void {
  const { uid = '' } = request.metadata
  if (uid !== '' && uid !== metadata.uid) {
    const why = `the UID in the token request (${uid}) does not match the UID of the service account (${metadata.uid})`
    throw conflictError({ group: KIND.group, resource: KIND.kind }, metadata.name ?? '', why)
  }
  const { name, namespace, uid: own } = metadata
  const settled = { name, namespace, uid: own, creationTimestamp: timeOf(nowMs) }
  // Twice: for the order of members, and for their values.
  request.metadata = { ...settled, ...request.metadata, ...settled } as KubeObject['metadata']
  if ((request.spec.audiences ?? []).length === 0) request.spec.audiences = [...apiAudiences]
}

export function validateTokenRequest({ spec }: TokenRequest): FieldError[] {
  const field = fieldPath('spec.expirationSeconds')
  const seconds = spec.expirationSeconds ?? DEFAULT_SECONDS
  if (seconds < MIN_SECONDS) return [field.invalid(seconds, 'may not specify a duration less than 10 minutes')]
  if (seconds > 2 ** 32) return [field.invalid(seconds, 'may not specify a duration larger than 2^32 seconds')]
  return []
}

/** The object that the token is bound to. */
interface BoundObjects {
  readonly pod?: KubeObject
  readonly node?: KubeObject
  readonly secret?: KubeObject
}

const BINDABLE: Readonly<Record<string, Kind>> = { Pod: Pods, Node: Nodes, Secret: Secrets }

async function findBound(objects: ObjectReader, request: TokenRequest, account: ServiceAccount): Promise<BoundObjects> {
  const reference = request.spec.boundObjectRef
  if (reference === null || reference === undefined) return {}
  const kind = bindableKind(reference)
  const { name = '', uid = '' } = reference
  const namespace = kind.namespaced ? (account.metadata.namespace ?? '') : ''
  const object = await objects.get(kind, namespace, name)
  if (object === undefined) throw notFoundError({ group: '', resource: kind.plural }, name)
  if (kind === Pods) checkAccount(object as Pod, account)
  if (uid !== '' && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflictError({ group: '', resource: kind.kind }, name, why)
  }
  if (kind === Pods) return withNode(objects, object as Pod)
  return kind === Nodes ? { node: object } : { secret: object }
}

function bindableKind({ apiVersion = '', kind = '' }: BoundObjectReference): Kind {
  const { group, version } = parseApiVersion(apiVersion)
  const found = group === '' && Object.hasOwn(BINDABLE, kind) ? BINDABLE[kind] : undefined
  if (found !== undefined) return found
  throw badRequestError(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`)
}

function checkAccount({ spec }: Pod, { metadata: { name = '' } }: ServiceAccount): void {
  if (spec.serviceAccountName === name) return
  throw badRequestError(
    `cannot bind token for serviceaccount "${name}" to pod running with different serviceaccount name.`,
  )
}

/** A token of a pod also contains its node, by name only if the Node does not exist. */
async function withNode(objects: ObjectReader, pod: Pod): Promise<BoundObjects> {
  const name = pod.spec.nodeName ?? ''
  if (name === '') return { pod }
  return { pod, node: (await objects.get(Nodes, '', name)) ?? { metadata: { name } } }
}

function shorten({ spec }: TokenRequest, call: Call, { maxExpirationSeconds = 0 }: ServiceAccountTokenOptions): void {
  const requested = spec.expirationSeconds ?? DEFAULT_SECONDS
  if (maxExpirationSeconds <= 0 || requested <= maxExpirationSeconds) return
  call.warn(`requested expiration of ${requested} seconds shortened to ${maxExpirationSeconds} seconds`)
  spec.expirationSeconds = maxExpirationSeconds
}

interface ClaimParts {
  readonly request: TokenRequest
  readonly account: ServiceAccount
  readonly bound: BoundObjects
  readonly nowMs: number
  readonly options: ServiceAccountTokenOptions
  readonly tokenId: string
}

/** Sorted names, like Go's maps. */
function claimsFor({ request, account, bound, nowMs, options, tokenId }: ClaimParts): Record<string, unknown> {
  const now = Math.floor(nowMs / 1000)
  const audiences = request.spec.audiences ?? []
  const seconds = request.spec.expirationSeconds ?? DEFAULT_SECONDS
  const isOwn = audiences.every((one) => options.apiAudiences.includes(one))
  const isExtended =
    (options.extendExpiration ?? true) && bound.pod !== undefined && seconds === INJECTED_SECONDS && isOwn
  const life = isExtended ? EXTENDED_SECONDS : seconds
  const { namespace = '', name = '' } = account.metadata
  return {
    aud: audiences,
    exp: now + life,
    iat: now,
    iss: options.issuer,
    jti: tokenId,
    'kubernetes.io': {
      namespace,
      ...(bound.node === undefined ? {} : { node: referenceTo(bound.node) }),
      ...(bound.pod === undefined ? {} : { pod: referenceTo(bound.pod) }),
      ...(bound.secret === undefined ? {} : { secret: referenceTo(bound.secret) }),
      serviceaccount: referenceTo(account),
      ...(isExtended ? { warnafter: now + seconds } : {}),
    },
    nbf: now,
    sub: serviceAccountUser({ namespace, name }),
  }
}

function referenceTo({ metadata: { name, uid } }: KubeObject): object {
  return uid === undefined ? { name } : { name, uid }
}
