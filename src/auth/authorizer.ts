/**
 * The interface of authorizers, which decide whether a user may do something. The first authorizer in the chain that
 * allows or denies decides.
 */
import { goQuote } from '#lib/go/text.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

import type { Authorize, Decision } from './access.ts'
import type { RequestInfo } from './request-info.ts'
import type { User } from './user.ts'

/** An action to authorize. Every `RequestInfo` is one. */
export interface Access extends RequestInfo {
  /** Selectors of a list, watch or deletecollection, as text. Unparsable selectors restrict nothing. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
}

export interface Verdict extends Decision {
  /** A denial that no later authorizer can overrule. */
  readonly denied: boolean
  /** The evaluation error. An allowed request stays allowed. */
  readonly error?: string
}

/** A rule of a SelfSubjectRulesReview: for resources or for paths. */
export interface RuleLists {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly NonResourceRule[]
  /** True if the list of rules may be incomplete. */
  readonly incomplete: boolean
  readonly error?: string
}

export interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames: readonly string[]
}

export interface NonResourceRule {
  readonly verbs: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

export interface Authorizer {
  /** Returns a plain value where possible: most requests are decided without a promise. */
  authorize(user: User, access: Access): Verdict | Promise<Verdict>
  /** All rules of the user in a namespace, as far as the authorizer can list them. */
  rulesFor(user: User, namespace: string): RuleLists
}

/** Members of this group may do everything, without any authorizer. */
export const PRIVILEGED_GROUP = 'system:masters'

export const ALLOWED: Verdict = Object.freeze({ allowed: true, denied: false, reason: '' })
export const NO_OPINION: Verdict = Object.freeze({ allowed: false, denied: false, reason: '' })
export const NO_RULES: RuleLists = Object.freeze({ resourceRules: [], nonResourceRules: [], incomplete: false })

export function noOpinion(reason: string): Verdict {
  return { allowed: false, denied: false, reason }
}

const NOTHING: Access = {
  verb: '',
  path: '',
  isResource: true,
  apiPrefix: '',
  group: '',
  version: '',
  namespace: '',
  resource: '',
  subresource: '',
  name: '',
  rest: [],
}

/** An access to a resource that is not a request. Absent members are empty. */
export function resourceAccess(parts: Partial<Access> & Pick<Access, 'verb' | 'resource'>): Access {
  return { ...NOTHING, ...parts }
}

export function pathAccess(verb: string, path: string): Access {
  return { ...NOTHING, isResource: false, verb, path }
}

/** Authorizes a request. An evaluation error is the server's failure (500), not a denial. */
export function asAuthorize(authorizer: Authorizer): Authorize {
  const settle = (verdict: Verdict): Decision => {
    if (!verdict.allowed && verdict.error !== undefined) throw internalError(new Error(verdict.error))
    return verdict
  }
  return (user, info) => {
    const verdict = authorizer.authorize(user, info)
    return verdict instanceof Promise ? verdict.then(settle) : settle(verdict)
  }
}

/** The Forbidden error of an access, with upstream's text. */
export function forbiddenAccess({ name }: User, access: Access, reason: string): StatusError {
  const { group, resource } = access.isResource ? access : { group: '', resource: '' }
  const text = escapeMarkup(`User ${goQuote(name)} cannot ${access.verb} ${objectText(access)}`)
  return forbiddenError({ group, resource }, access.name, reason === '' ? text : `${text}: ${reason}`)
}

function objectText({ isResource, path, resource, subresource, group, namespace }: Access): string {
  if (!isResource) return `path ${goQuote(path)}`
  const whole = subresource === '' ? resource : `${resource}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${goQuote(namespace)}`
  return `resource ${goQuote(whole)} in API group ${goQuote(group)} ${where}`
}

/** Escapes names in the error, because a browser must not interpret them as markup. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Joins errors as Go's aggregate errors do: a single one unchanged, several in brackets, duplicates once. */
export function aggregatedText(texts: readonly string[]): string {
  const distinct = [...new Set(texts)]
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : (distinct[0] ?? '')
}
