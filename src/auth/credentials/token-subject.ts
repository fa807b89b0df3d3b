/** Reads the service account and the bound objects from the claims of a verified token. */
import { timingSafeEqual } from 'node:crypto'

import { Nodes, Pods, type Secret, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Claims } from '#lib/jwt/token.ts'
import type { KubeObject } from '#meta/object.ts'

import { CredentialError } from '../authenticator.ts'
import { parseServiceAccountUser } from './service-account-name.ts'

/** The issuer of legacy tokens, which are stored in Secrets. */
export const LEGACY_ISSUER = 'kubernetes/serviceaccount'

/** An object without which the token is invalid, and the error text for that case. */
export interface Bond {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  /** Undefined if the token does not contain it. */
  readonly uid: string | undefined
  readonly whenMissing: string
  whenOther(uid: string): string
  readonly whenDeleted: string
  /** True if an object that is being deleted counts as gone, without leeway. */
  readonly diesAtOnce?: true
  /** Further checks of the object. */
  check?(object: KubeObject): string | undefined
}

interface Reference {
  readonly name: string
  readonly uid: string
}

export interface Subject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly pod?: Reference
  readonly node?: Reference
  /** The claim `jti`; empty in old tokens. */
  readonly tokenId: string
  /** In the order of the checks. */
  readonly bonds: readonly Bond[]
  /** Only for a legacy token. Its bound objects, if they are looked up, are the Secret and the account. */
  readonly isLegacy: boolean
}

/** Throws CredentialError for incomplete claims. */
export function subjectOf(claims: Claims, token: string, lookup: boolean): Subject {
  return claims['iss'] === LEGACY_ISSUER ? legacySubject(claims, token, lookup) : boundSubject(claims)
}

const INVALIDATED = 'service account token has been invalidated'

function boundSubject(claims: Claims): Subject {
  const own = recordOf(claims['kubernetes.io'])
  const namespace = textOf(own['namespace'])
  const account = referenceOf(own['serviceaccount']) ?? { name: '', uid: '' }
  const { name, uid } = account
  const pod = referenceOf(own['pod'])
  const node = referenceOf(own['node'])
  const secret = referenceOf(own['secret'])
  const bond = (kind: Kind, what: string, reference: Reference | undefined): Bond[] =>
    reference === undefined
      ? []
      : [
          {
            kind,
            namespace: kind.namespaced ? namespace : '',
            ...reference,
            whenMissing: INVALIDATED,
            whenOther: (found) =>
              `${what} UID (${found}) does not match service account ${what} ref claim (${reference.uid})`,
            whenDeleted: INVALIDATED,
          },
        ]
  const owner: Bond = {
    kind: ServiceAccounts,
    namespace,
    name,
    uid,
    whenMissing: `serviceaccounts "${name}" not found`,
    whenOther: (found) => `service account UID (${found}) does not match claim (${uid})`,
    whenDeleted: `service account ${namespace}/${name} has been deleted`,
  }
  // For a pod's token the node is only information: it goes when the pod goes.
  const boundNode = pod === undefined ? node : undefined
  return {
    isLegacy: false,
    namespace,
    name,
    uid,
    tokenId: textOf(claims['jti']),
    ...(pod === undefined ? {} : { pod }),
    ...(node === undefined ? {} : { node }),
    bonds: [owner, ...bond(Secrets, 'secret', secret), ...bond(Pods, 'pod', pod), ...bond(Nodes, 'node', boundNode)],
  }
}

const LEGACY = 'kubernetes.io/serviceaccount/'

function legacySubject(claims: Claims, token: string, lookup: boolean): Subject {
  const subject = need(claims, 'sub', 'sub')
  const namespace = need(claims, `${LEGACY}namespace`, 'namespace')
  const secret = need(claims, `${LEGACY}secret.name`, 'secretName')
  const name = need(claims, `${LEGACY}service-account.name`, 'serviceAccountName')
  const uid = need(claims, `${LEGACY}service-account.uid`, 'serviceAccountUID')
  const stated = parseServiceAccountUser(subject)
  if (stated?.namespace !== namespace || stated.name !== name) throw new CredentialError('sub claim is invalid')
  const kept: Bond = {
    kind: Secrets,
    namespace,
    name: secret,
    uid: undefined,
    whenMissing: 'Token has been invalidated',
    whenOther: () => 'Token has been invalidated',
    whenDeleted: 'Token has been invalidated',
    diesAtOnce: true,
    check: (object) => findSecretProblem(object, token),
  }
  const owner: Bond = {
    kind: ServiceAccounts,
    namespace,
    name,
    uid,
    whenMissing: `serviceaccounts "${name}" not found`,
    whenOther: (found) => `ServiceAccount UID (${found}) does not match claim (${uid})`,
    whenDeleted: `ServiceAccount ${namespace}/${name} has been deleted`,
    diesAtOnce: true,
  }
  return { namespace, name, uid, tokenId: '', bonds: lookup ? [kept, owner] : [], isLegacy: true }
}

function findSecretProblem({ data }: Secret, token: string): string | undefined {
  const [copy, given] = [Buffer.from(data?.['token'] ?? '', 'base64'), Buffer.from(token)]
  const isSame = copy.length === given.length && timingSafeEqual(copy, given)
  return isSame ? undefined : "Token does not match server's copy"
}

function need(claims: Claims, claim: string, what: string): string {
  const value = textOf(claims[claim])
  if (value === '') throw new CredentialError(`${what} claim is missing`)
  return value
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function referenceOf(value: unknown): Reference | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { name, uid } = recordOf(value)
  return { name: textOf(name), uid: textOf(uid) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
