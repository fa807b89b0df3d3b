/**
 * Authorizer: may this user do that? Several are asked in turn; the first that says yes, or a no that is final, decides.
 * A request is asked about as it came (`RequestInfo`); reviews and the server's own checks make up an `Access`.
 */
import { goQuote } from '#lib/go-text.ts'
import { forbiddenError, internalError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

import type { Authorize, Decision } from '../filters/access.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'

/** What somebody wants to do. Every `RequestInfo` is one. */
export interface Access extends RequestInfo {
  /** Of a list, watch or collection delete, as text; what cannot be understood of it narrows nothing. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
}

export interface Verdict extends Decision {
  /** A no that nobody asked later may overrule. */
  readonly denied: boolean
  /** What went wrong on the way. An allowed request stays allowed. */
  readonly error?: string
}

/** A rule as SelfSubjectRulesReview shows it: about resources, or about paths. */
export interface RuleLists {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly NonResourceRule[]
  /** Whether there may be more than is listed. */
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
  /** Answers at once where it can: most requests are decided without a promise. */
  authorize(user: User, access: Access): Verdict | Promise<Verdict>
  /** Everything the user may do in a namespace, as far as that can be listed. */
  rulesFor(user: User, namespace: string): RuleLists
}

/** Members of this group may do everything; nobody is asked. */
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

/** An access to a resource that no request made, with what is not given left empty. */
export function resourceAccess(parts: Partial<Access> & Pick<Access, 'verb' | 'resource'>): Access {
  return { ...NOTHING, ...parts }
}

export function pathAccess(verb: string, path: string): Access {
  return { ...NOTHING, isResource: false, verb, path }
}

/** What the server asks of every request. A question that could not be answered is the server's failure, not a no. */
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

/** The refusal of an access, in upstream's words. */
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

/** Refusals are shown to whoever sent the names in them: a browser must not take them for markup. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Several texts as Go's aggregated errors print them: one as it is, more in brackets, repeated ones once. */
export function aggregatedText(texts: readonly string[]): string {
  const distinct = [...new Set(texts)]
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : (distinct[0] ?? '')
}
